// Python's side of the tokenizer models: one class each, made by ggufbpe.models and taken by an Encoder.

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bind_files.h"
#include "bind_lock.h"
#include "bindings.h"
#include "bpe/bpe_model.h"
#include "plamo/plamo_model.h"
#include "rwkv/rwkv_model.h"
#include "spm/spm_model.h"
#include "table_file.h"
#include "text_model.h"
#include "ugm/ugm_model.h"
#include "wpm/wpm_model.h"

namespace nb = nanobind;

namespace ggufbpe {

namespace {

Preprocessing own_step_of(const std::string &name) {
    if (name.empty()) return Preprocessing::none;
    if (name == "k_mers") return Preprocessing::k_mers;
    if (name == "spaced_words") return Preprocessing::spaced_words;
    if (name == "lowered_words") return Preprocessing::lowered_words;
    throw nb::value_error("there is no such step");
}

// Without `merges` if their tables were made before.
std::shared_ptr<BPEModel> bpe_model_of(std::shared_ptr<Strings> tokens, const Strings *merges,
                                       std::shared_ptr<Splitter> splitter, bool byte_encode, bool ignore_merges,
                                       bool newline_runs, bool prepend_space, bool escape_spaces, const std::string &own_step,
                                       size_t cache_bytes, std::shared_ptr<const TableFile> made) {
    const MergeOptions options{byte_encode, ignore_merges, newline_runs, prepend_space, escape_spaces};
    if (!merges && !made) throw nb::value_error("neither merges nor tables");
    const Strings none;
    return std::make_shared<BPEModel>(tokens, merges ? *merges : none, splitter, options, own_step_of(own_step), cache_bytes,
                                      LOOK_AT_SIGNALS, std::move(made));
}

nb::bytes written_tables(const BPEModel &model, const nb::bytes &secret, const nb::bytes &key) {
    TableWriter writer;
    model.write(writer);
    const std::string file = writer.finish(secret_numbers<HashKey>(secret), secret_numbers<Digest>(key));
    return nb::bytes(file.data(), file.size());
}

std::shared_ptr<WPMModel> wpm_model_of(std::shared_ptr<Strings> tokens, int32_t unknown, bool lowercase, bool strip_accents,
                                       size_t cache_bytes) {
    return std::make_shared<WPMModel>(tokens, unknown, lowercase, strip_accents, cache_bytes);
}

std::shared_ptr<RWKVModel> rwkv_model_of(const Strings &tokens, int32_t unknown, size_t cache_bytes) {
    return std::make_shared<RWKVModel>(tokens, unknown, cache_bytes, LOOK_AT_SIGNALS);
}

// The numbers in the memory of an array. ValueError if that ends within a number.
template <typename Number>
std::vector<Number> numbers_of(const nb::bytes &memory) {
    if (memory.size() % sizeof(Number)) throw nb::value_error("an array that ends within a number");
    std::vector<Number> numbers(memory.size() / sizeof(Number));
    if (!numbers.empty()) std::memcpy(numbers.data(), memory.data(), numbers.size() * sizeof(Number));
    return numbers;
}

std::shared_ptr<UGMModel> ugm_model_of(std::shared_ptr<Strings> tokens, const nb::bytes &matched_by, const nb::bytes &attributes,
                                       const nb::bytes &scores, const nb::bytes &charsmap, bool add_space_prefix,
                                       bool remove_extra_whitespaces, int32_t unknown, bool composes, bool strict_utf8,
                                       size_t cache_bytes) {
    const UGMOptions options{add_space_prefix, remove_extra_whitespaces, unknown, composes, strict_utf8};
    return std::make_shared<UGMModel>(tokens, numbers_of<uint16_t>(matched_by), numbers_of<uint16_t>(attributes),
                                      numbers_of<float>(scores), std::string(charsmap.c_str(), charsmap.size()), options,
                                      cache_bytes, LOOK_AT_SIGNALS);
}

std::shared_ptr<SpmModel> spm_model_of(std::shared_ptr<Strings> tokens, const nb::bytes &scores, bool add_space_prefix,
                                       size_t cache_bytes) {
    return std::make_shared<SpmModel>(tokens, numbers_of<float>(scores), add_space_prefix, cache_bytes);
}

std::shared_ptr<PlamoModel> plamo_model_of(const Strings &tokens, const nb::bytes &scores, const nb::bytes &byte_tokens,
                                           bool cuts_segments, bool strict_utf8, size_t cache_bytes) {
    return std::make_shared<PlamoModel>(tokens, numbers_of<int32_t>(scores), numbers_of<int32_t>(byte_tokens), cuts_segments,
                                        cache_bytes, LOOK_AT_SIGNALS, strict_utf8);
}

}  // namespace

void bind_models(nb::module_ &module) {
    nb::class_<TextModel>(module, "TextModel", "Plain text to ids, for one tokenizer model.");
    nb::class_<BPEModel, TextModel>(module, "BPEModel", "Byte pair encoding.")
        .def(nb::new_(&bpe_model_of), nb::arg("tokens"), nb::arg("merges").none(), nb::arg("splitter"), nb::arg("byte_encode"),
             nb::arg("ignore_merges"), nb::arg("newline_runs"), nb::arg("prepend_space"), nb::arg("escape_spaces"), nb::arg("own_step"),
             nb::arg("cache_bytes"), nb::arg("made").none() = nb::none())
        .def("written_tables", &written_tables, nb::arg("secret"), nb::arg("key"), "The tables as a file for TableFile.read.");
    nb::class_<WPMModel, TextModel>(module, "WPMModel", "WordPiece.")
        .def(nb::new_(&wpm_model_of), nb::arg("tokens"), nb::arg("unknown"), nb::arg("lowercase"), nb::arg("strip_accents"),
             nb::arg("cache_bytes"));
    nb::class_<RWKVModel, TextModel>(module, "RWKVModel", "RWKV's longest matches.")
        .def(nb::new_(&rwkv_model_of), nb::arg("tokens"), nb::arg("unknown"), nb::arg("cache_bytes"));
    nb::class_<UGMModel, TextModel>(module, "UGMModel", "Unigram models.")
        .def(nb::new_(&ugm_model_of), nb::arg("tokens"), nb::arg("matched_by"), nb::arg("attributes"), nb::arg("scores"),
             nb::arg("charsmap"), nb::arg("add_space_prefix"), nb::arg("remove_extra_whitespaces"), nb::arg("unknown"),
             nb::arg("composes"), nb::arg("strict_utf8"), nb::arg("cache_bytes"));
    nb::class_<SpmModel, TextModel>(module, "SpmModel", "Byte pair encoding by scores.")
        .def(nb::new_(&spm_model_of), nb::arg("tokens"), nb::arg("scores"), nb::arg("add_space_prefix"), nb::arg("cache_bytes"));
    nb::class_<PlamoModel, TextModel>(module, "PlamoModel", "PLaMo's best paths.")
        .def(nb::new_(&plamo_model_of), nb::arg("tokens"), nb::arg("scores"), nb::arg("byte_tokens"), nb::arg("cuts_segments"),
             nb::arg("strict_utf8"), nb::arg("cache_bytes"));
    module.attr("CACHE_BYTES") = BPEModel::CACHE_BYTES;
}

}  // namespace ggufbpe
