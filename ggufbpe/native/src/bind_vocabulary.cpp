#include "bind_vocabulary.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "buffer_view.h"
#include "vocabulary/loading.h"

namespace nb = nanobind;

namespace ggufbpe {

namespace {

template <typename Value>
Value field(nb::handle given, const char *name) {
    return nb::cast<Value>(nb::object(given.attr(name)));
}

// The numbers of a sequence, which mostly is an array of this type.
template <typename Number>
std::vector<Number> numbers_of(nb::handle given, const char *name, const char *type) {
    nb::object array = given.attr(name);
    const bool is_array = nb::getattr(array, "typecode", nb::none()).equal(nb::str(type));
    if (!is_array) array = nb::module_::import_("array").attr("array")(type, array);
    const BufferView view(array);
    std::vector<Number> numbers(view.size() / sizeof(Number));
    if (!numbers.empty()) std::memcpy(numbers.data(), view.data(), numbers.size() * sizeof(Number));
    return numbers;
}

PreTokenizer pre_tokenizer_of(nb::handle given) {
    PreTokenizer entry{};
    entry.name = "";
    entry.byte_encode = field<bool>(given, "byte_encode");
    entry.escape_whitespaces = field<bool>(given, "escape_whitespaces");
    entry.ignore_merges = field<bool>(given, "ignore_merges");
    entry.newline_runs = field<bool>(given, "newline_runs");
    entry.prepend_space = field<bool>(given, "prepend_space");
    return entry;
}

}  // namespace

Vocabulary vocabulary_of(nb::handle given) {
    Vocabulary vocabulary;
    vocabulary.kind = model_kind(field<std::string>(given, "model"));
    if (!vocabulary.kind) throw std::invalid_argument("there is no such tokenizer model");
    vocabulary.pre = pre_tokenizer_of(given.attr("pre_tokenizer"));
    vocabulary.attributes = numbers_of<uint16_t>(given, "attributes", "H");
    vocabulary.first_attributes = numbers_of<uint16_t>(given, "first_attributes", "H");
    vocabulary.scores = numbers_of<float>(given, "scores", "f");
    const auto charsmap = field<nb::bytes>(given, "charsmap");
    vocabulary.charsmap.assign(charsmap.c_str(), charsmap.size());
    const nb::object unknown = given.attr("special_ids")["unk"];
    vocabulary.special_ids[UNK] = unknown.is_none() ? NO_TOKEN : nb::cast<int32_t>(unknown);
    vocabulary.special_tokens = field<std::vector<int32_t>>(given, "special_token_ids");
    vocabulary.add_space_prefix = field<bool>(given, "add_space_prefix");
    vocabulary.lowercase = field<bool>(given, "lowercase");
    vocabulary.strip_accents = field<bool>(given, "strip_accents");
    vocabulary.remove_extra_whitespaces = field<bool>(given, "remove_extra_whitespaces");
    vocabulary.nfc = field<bool>(given, "nfc");
    vocabulary.strict_utf8 = field<bool>(given, "strict_utf8");
    return vocabulary;
}

}  // namespace ggufbpe
