#include "vocabulary/metadata_keys.h"
#include "vocabulary/loading.h"

#include <algorithm>
#include <string>

#include "vocabulary/pre_tokenizers.h"
#include "vocabulary/registry.h"

namespace ggufbpe {

namespace {

const ModelKind &kind_of(const Metadata &file) {
    const std::string &name = file.require(MODEL).bytes;
    for (const ModelKind &kind : MODEL_KINDS) {
        if (name == kind.name) return kind;
    }
    const bool is_none = name == "none" || name == "no_vocab";
    LoadError error = file.error(MODEL, is_none ? "the file has no tokenizer" : "the tokenizer \"" + name + "\" is not known");
    error.fault = Fault::unsupported;
    throw error;
}

PreTokenizer pre_tokenizer_of(const Metadata &file, const ModelKind &kind, const std::string &name,
                              std::vector<std::string> &warnings) {
    if (!kind.has_pre_tokenizer) return kind.without;
    if (name.empty() || name == "default") {
        warnings.push_back(std::string(PRE) + (name.empty() ? " is missing, so the 'default' pre-tokenizer is used"
                                                            : " is 'default', which is likely wrong"));
        return *pre_tokenizer("default");
    }
    if (const PreTokenizer *entry = pre_tokenizer(name)) return *entry;
    LoadError error = file.error(PRE, "the pre-tokenizer \"" + name + "\" is not known");
    error.fault = Fault::unsupported;
    throw error;
}

void read_merges(const Metadata &file, const std::string &name, Vocabulary &vocabulary) {
    vocabulary.merges = std::make_shared<Strings>();
    if (!vocabulary.kind->has_pre_tokenizer || (name == WITHOUT_MERGES && !file.find(MERGES))) return;
    vocabulary.merges = file.require(MERGES).strings;
}

// The size of the double array in bytes, the array, and strings. Only unigram models have one.
void read_charsmap(const Metadata &file, Vocabulary &vocabulary) {
    if (!vocabulary.kind->composes) return;
    const Value *value = file.find(CHARSMAP);
    if (!value) return;
    const std::string &data = value->bytes;
    uint64_t size = 0;
    for (size_t i = 0; i < std::min<size_t>(data.size(), 4); ++i) size |= uint64_t(static_cast<unsigned char>(data[i])) << 8 * i;
    if (data.size() < 4 || size + 4 >= data.size()) {
        throw file.error(CHARSMAP, "has " + std::to_string(data.size()) + " bytes, too few for what it should hold");
    }
    vocabulary.charsmap = data;
}

void read_flags(const Metadata &file, Vocabulary &vocabulary) {
    const PreTokenizer &pre = vocabulary.pre;
    vocabulary.add_space_prefix = file.flag("tokenizer.ggml.add_space_prefix", vocabulary.kind->add_space_prefix);
    vocabulary.remove_extra_whitespaces = file.flag("tokenizer.ggml.remove_extra_whitespaces", false);
    vocabulary.nfc = file.flag("tokenizer.ggml.normalizer.nfc", false) && vocabulary.kind->composes;
    vocabulary.add_bos = file.flag("tokenizer.ggml.add_bos_token", pre.add_bos) || pre.always_add_bos;
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

std::vector<int32_t> Vocabulary::before() const { return id_in(*this, kind->before[add_bos]); }
std::vector<int32_t> Vocabulary::behind() const { return id_in(*this, kind->behind[add_eos]); }

Vocabulary load(const Metadata &file, const Poll &poll) {
    file.require_first_shard();
    Vocabulary vocabulary;
    const ModelKind &kind = kind_of(file);
    vocabulary.kind = &kind;
    const std::string named_pre = file.string(PRE, ""), name_in_force = *kind.own_pre ? kind.own_pre : named_pre;
    file.find("tokenizer.ggml.token_type_count");  // not used, but another type is refused; so below
    read_merges(file, name_in_force, vocabulary);
    read_charsmap(file, vocabulary);
    vocabulary.pre = pre_tokenizer_of(file, kind, name_in_force, vocabulary.warnings);
    read_flags(file, vocabulary);
    read_tokens(file, vocabulary, poll);
    read_scores(file, vocabulary);
    read_attributes(file, vocabulary);
    if (kind.keeps_first_attributes) vocabulary.first_attributes = vocabulary.attributes;
    set_special_ids(file, vocabulary);
    file.find("tokenizer.ggml.suppress_tokens");
    find_special_tokens(vocabulary);
    find_end_of_generation(vocabulary);
    if (kind.refuses_short_byte_tokens) check_byte_tokens(file, vocabulary);
    for (size_t i = 0; i < vocabulary.size(); ++i) {
        if (vocabulary.attributes[i] & (CONTROL_TOKEN | USER_DEFINED_TOKEN | UNKNOWN_TOKEN)) {
            vocabulary.special_tokens.push_back(static_cast<int32_t>(i));
        }
    }
    set_strip_attributes(file, named_pre, vocabulary);
    if (!has_line_break(vocabulary)) vocabulary.warnings.push_back("the vocabulary has no token for the newline character");
    warn_of_missing(kind.before[vocabulary.add_bos], vocabulary);
    warn_of_missing(kind.behind[vocabulary.add_eos], vocabulary);
    check_model(file, vocabulary, poll);
    return vocabulary;
}

}  // namespace ggufbpe
