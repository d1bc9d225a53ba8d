// The rules of loading for Python: values that ggufbpe/gguf/metadata.py reads to the fields of ggufbpe/models/vocabulary.py.

#include <nanobind/nanobind.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bind_lock.h"
#include "bindings.h"
#include "buffer_view.h"
#include "gguf/metadata.h"
#include "gguf/value_types.h"
#include "vocabulary/loading.h"

namespace nb = nanobind;

namespace ggufbpe {

namespace {

// What a function of Python returns for a key.
nb::object returned_by(const nb::object &function, const char *key) {
    const nb::str argument(key);
    PyObject *const end = nullptr;
    PyObject *const returned = in_python([&] { return PyObject_CallFunctionObjArgs(function.ptr(), argument.ptr(), end); });
    if (!returned) throw nb::python_error();
    return nb::steal(returned);
}

// Metadata that Python reads: `kind` gives the types and the length of a key, or None, and `content` its value.
class PythonMetadata final : public Metadata {
public:
    PythonMetadata(nb::object kind, nb::object content) : kind_(std::move(kind)), content_(std::move(content)) {}

private:
    struct Known {
        Value value;
        bool is_there = false, is_read = false;
        std::unique_ptr<BufferView> numbers;
    };

    const Value *look_up(const char *key, bool is_read) const override {
        const auto [place, is_new] = known_.try_emplace(key);
        Known &known = place->second;
        if (is_new) find_kind(key, known);
        if (!known.is_there) return nullptr;
        if (is_read && !known.is_read) read(key, known);
        return &known.value;
    }

    void find_kind(const char *key, Known &known) const {
        const nb::object kind = returned_by(kind_, key);
        if (kind.is_none()) return;
        known.value.type = nb::cast<int32_t>(kind[0]);
        known.value.element = nb::cast<int32_t>(kind[1]);
        known.value.count = nb::cast<uint64_t>(kind[2]);
        known.is_there = true;
    }

    // The content of a value whose type llama.cpp takes.
    void read(const char *key, Known &known) const {
        const nb::object content = returned_by(content_, key);
        Value &value = known.value;
        if (value.type == ARRAY && value.element == STRING) {
            value.strings = nb::cast<std::shared_ptr<Strings>>(content);
            const nb::ft_object_guard guard(content);  // where Python has no lock: other vocabularies may have the same tokens
            value.strings->index(LOOK_AT_SIGNALS);
        } else if (value.type == ARRAY) {
            known.numbers = std::make_unique<BufferView>(content);
            value.borrowed = {known.numbers->data(), known.numbers->size()};
        } else if (value.type == STRING) {
            const auto text = nb::cast<std::string>(content);
            value.bytes = text.substr(0, text.find('\0'));
        } else if (value.type == BOOL) {
            value.bytes = nb::cast<bool>(content) ? '\1' : '\0';
        } else {
            const auto number = nb::cast<uint32_t>(content);
            value.bytes.assign(reinterpret_cast<const char *>(&number), sizeof number);
        }
        known.is_read = true;
    }

    const nb::object kind_, content_;
    mutable std::unordered_map<std::string, Known, TextHash> known_;
};

template <typename Number>
nb::bytes memory_of(const std::vector<Number> &numbers) {
    return nb::bytes(numbers.data(), numbers.size() * sizeof(Number));
}

nb::object id_or_none(int32_t id) { return id == NO_TOKEN ? nb::none() : nb::object(nb::int_(id)); }

template <typename Items, typename Make>
nb::tuple tuple_of(const Items &items, Make make) {
    nb::list list;
    Pace pace(LOOK_AT_SIGNALS);
    for (const auto &item : items) {
        pace.count(Pace::OBJECT);
        list.append(make(item));
    }
    return nb::tuple(list);
}

nb::tuple correction_of(const Correction &made) {
    return nb::make_tuple(made.id, made.what, id_or_none(made.token));
}

nb::dict fields_of(const Vocabulary &vocabulary) {
    const auto number = [](int32_t id) { return nb::int_(id); };
    nb::dict fields;
    fields["names"] = vocabulary.names;
    fields["tokens"] = vocabulary.tokens;
    fields["attributes"] = memory_of(vocabulary.attributes);
    fields["first_attributes"] = memory_of(vocabulary.first_attributes);
    fields["charsmap"] = nb::bytes(vocabulary.charsmap.data(), vocabulary.charsmap.size());
    fields["special_ids"] = tuple_of(vocabulary.special_ids, id_or_none);
    fields["eog_ids"] = tuple_of(vocabulary.end_of_generation, number);
    fields["special_token_ids"] = tuple_of(vocabulary.special_tokens, number);
    fields["add_bos"] = vocabulary.add_bos;
    fields["add_eos"] = vocabulary.add_eos;
    fields["add_sep"] = vocabulary.add_sep;
    fields["add_space_prefix"] = vocabulary.add_space_prefix;
    fields["lowercase"] = vocabulary.lowercase;
    fields["strip_accents"] = vocabulary.strip_accents;
    fields["remove_extra_whitespaces"] = vocabulary.remove_extra_whitespaces;
    fields["nfc"] = vocabulary.nfc;
    fields["strict_utf8"] = vocabulary.strict_utf8;
    fields["warnings"] = tuple_of(vocabulary.warnings, [](const std::string &text) { return nb::cast(text); });
    fields["corrections"] = tuple_of(vocabulary.corrections, correction_of);
    return fields;
}

nb::object load_vocabulary(nb::object kind, nb::object content, const Lacking &lacking) {
    try {
        return fields_of(load(PythonMetadata(std::move(kind), std::move(content)), lacking, LOOK_AT_SIGNALS));
    } catch (const LoadError &) {
        return nb::none();
    }
}

}  // namespace

void bind_loading(nb::module_ &module) {
    module.def("load_vocabulary", &load_vocabulary, nb::arg("kind"), nb::arg("content"), nb::arg("lacking"),
               nb::sig("def load_vocabulary(kind: object, content: object, lacking: set[str]) -> dict[str, typing.Any] | None"),
               "Return the fields of a vocabulary that llama.cpp's rules give; None if they refuse it. `kind` gives (type, element"
               " type, length) of a key, or None, and `content` its value. `lacking` names what the state of llama.cpp lacks.");
}

}  // namespace ggufbpe
