#include "vocabulary/metadata_keys.h"
#include "vocabulary/loading.h"

#include <algorithm>
#include <string>

#include "vocabulary/pre_tokenizers.h"
#include "vocabulary/registry.h"

namespace ggufbpe {

namespace {

constexpr const char *LIKELY_WRONG =
    ", and the ids are likely not those that the model was trained with; `ggufbpe doctor` finds the right one";

const ModelKind &kind_of(const Metadata &file, const Lacking &lacking) {
    const std::string name(file.require(MODEL).content());
    const ModelKind *kind = lacking.count(name) ? nullptr : model_kind(name);
    if (kind) return *kind;
    const bool is_none = name == "none" || name == "no_vocab";
    LoadError error = file.error(MODEL, is_none ? "the file has no tokenizer" : "the tokenizer \"" + name + "\" is not known");
    error.fault = Fault::unsupported;
    throw error;
}

PreTokenizer pre_tokenizer_of(const Metadata &file, const ModelKind &kind, const std::string &name, const Lacking &lacking,
                              std::vector<std::string> &warnings) {
    if (!kind.has_pre_tokenizer) return kind.without;
    if (name.empty() || name == "default") {
        warnings.push_back(std::string(PRE) + (name.empty() ? " is missing, so the 'default' pre-tokenizer is used" : " is 'default'") +
                           LIKELY_WRONG);
        return *pre_tokenizer("default");
    }
    const PreTokenizer *entry = lacking.count(name) ? nullptr : pre_tokenizer(name);
    if (entry) return *entry;
    LoadError error = file.error(PRE, "the pre-tokenizer \"" + name + "\" is not known");
    error.fault = Fault::unsupported;
    throw error;
}

bool uses_merges(const Metadata &file, const ModelKind &kind, const std::string &name) {
    if (!kind.has_pre_tokenizer || file.find(MERGES, false)) return kind.has_pre_tokenizer;
    if (name == WITHOUT_MERGES) return false;
    throw file.error(MERGES, "the key is missing");
}

// The size of the double array in bytes, the array, and strings. Only unigram models have one.
void read_charsmap(const Metadata &file, Vocabulary &vocabulary) {
    if (!vocabulary.kind->composes) return;
    const Value *value = file.find(CHARSMAP);
    if (!value) return;
    const std::string data(value->content());
    uint64_t size = 0;
    for (size_t i = 0; i < std::min<size_t>(data.size(), 4); ++i) size |= uint64_t(static_cast<unsigned char>(data[i])) << 8 * i;
    if (data.size() < 4 || size + 4 >= data.size()) {
        throw file.error(CHARSMAP, "has " + std::to_string(data.size()) + " bytes, too few for what it should hold");
    }
    vocabulary.charsmap = data;
}

void read_flags(const Metadata &file, const Lacking &lacking, Vocabulary &vocabulary) {
    const PreTokenizer &pre = vocabulary.pre;
    vocabulary.add_space_prefix = file.flag("tokenizer.ggml.add_space_prefix", vocabulary.kind->add_space_prefix);
    vocabulary.remove_extra_whitespaces = file.flag("tokenizer.ggml.remove_extra_whitespaces", false);
    vocabulary.nfc = !lacking.count(NFC) && file.flag(NFC, false) && vocabulary.kind->composes;
    vocabulary.strict_utf8 = !lacking.count(STRICT_UTF8);
    vocabulary.add_bos = file.flag(ADD_BOS, pre.add_bos);
    if (pre.always_add_bos && !vocabulary.add_bos) {
        const std::string what = std::string(ADD_BOS) + " is overridden: " + pre.name + " always adds BOS";
        vocabulary.corrections.push_back({"add_bos", what, NO_TOKEN});
        vocabulary.add_bos = true;
    }
    vocabulary.add_eos = file.flag("tokenizer.ggml.add_eos_token", vocabulary.kind->add_eos);
    vocabulary.add_sep = file.flag("tokenizer.ggml.add_sep_token", pre.add_sep);
    vocabulary.lowercase = file.flag("tokenizer.ggml.normalizer.lowercase", pre.lowercase);
    vocabulary.strip_accents = file.flag("tokenizer.ggml.normalizer.strip_accents", vocabulary.lowercase);
}

std::vector<int32_t> id_in(const Vocabulary &vocabulary, SpecialId which) {
    if (which == NO_SPECIAL_ID || vocabulary.special_ids[which] == NO_TOKEN) return {};
    return {vocabulary.special_ids[which]};
}

void warn_of_missing(SpecialId which, Vocabulary &vocabulary) {
    if (which == NO_SPECIAL_ID || vocabulary.special_ids[which] != NO_TOKEN) return;
    vocabulary.warnings.push_back(std::string(SPECIAL_KINDS[which].name) +
                                  " should be added, but there is none, so none is added (llama.cpp aborts)");
}

}  // namespace

const ModelKind *model_kind(const std::string &name) {
    for (const ModelKind &kind : MODEL_KINDS) {
        if (name == kind.name) return &kind;
    }
    return nullptr;
}

std::vector<int32_t> Vocabulary::before() const { return id_in(*this, kind->before[add_bos]); }
std::vector<int32_t> Vocabulary::behind() const { return id_in(*this, kind->behind[add_eos]); }

Vocabulary load(const Metadata &file, const Lacking &lacking, const Poll &poll) {
    Vocabulary vocabulary;
    const ModelKind &kind = kind_of(file, lacking);
    vocabulary.kind = &kind;
    const std::string named_pre = file.string(PRE, ""), name_in_force = *kind.own_pre ? kind.own_pre : named_pre;
    file.find("tokenizer.ggml.token_type_count");  // not used, but another type is refused; so below
    vocabulary.has_merges = uses_merges(file, kind, name_in_force);
    read_charsmap(file, vocabulary);
    vocabulary.pre = pre_tokenizer_of(file, kind, name_in_force, lacking, vocabulary.warnings);
    read_tokens(file, vocabulary, poll);
    poll();
    read_scores(file, vocabulary);
    read_attributes(file, vocabulary);
    if (kind.keeps_first_attributes) vocabulary.first_attributes = vocabulary.attributes;
    set_special_ids(file, vocabulary);
    read_flags(file, lacking, vocabulary);
    file.find("tokenizer.ggml.suppress_tokens", false);
    find_special_tokens(vocabulary, lacking);
    poll();
    find_end_of_generation(vocabulary, lacking);
    if (kind.refuses_short_byte_tokens) check_byte_tokens(file, vocabulary);
    for_tokens_with(CONTROL_TOKEN | USER_DEFINED_TOKEN | UNKNOWN_TOKEN, vocabulary.attributes,
                    [&](size_t i) { vocabulary.special_tokens.push_back(static_cast<int32_t>(i)); });
    set_strip_attributes(file, named_pre, vocabulary);
    if (!has_line_break(vocabulary)) vocabulary.warnings.push_back("the vocabulary has no token for the newline character");
    warn_of_missing(kind.before[vocabulary.add_bos], vocabulary);
    warn_of_missing(kind.behind[vocabulary.add_eos], vocabulary);
    check_model(file, vocabulary, poll);
    return vocabulary;
}

}  // namespace ggufbpe
