#include "vocabulary/text_models.h"

#include <cmath>
#include <stdexcept>
#include <string_view>

#include "bpe/bpe_model.h"
#include "plamo/plamo_model.h"
#include "rwkv/rwkv_model.h"
#include "spm/spm_model.h"
#include "ugm/ugm_model.h"
#include "wpm/wpm_model.h"

namespace ggufbpe {

namespace {

int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

void check_sizes(const Vocabulary &vocabulary) {
    const size_t size = vocabulary.size();
    const auto fits = [size](const auto &numbers) { return numbers.empty() || numbers.size() == size; };
    const bool has_attributes = vocabulary.attributes.size() == size && fits(vocabulary.first_attributes);
    if (!has_attributes || !fits(vocabulary.scores) || vocabulary.names->size() != size) {
        throw std::invalid_argument("as many attributes and scores as tokens are needed");
    }
    for (const int32_t id : vocabulary.special_tokens) {
        if (id < 0 || static_cast<size_t>(id) >= size) throw std::invalid_argument("a special token that is not there");
    }
}

std::shared_ptr<const TextModel> bpe_model(const Vocabulary &vocabulary, std::shared_ptr<const Splitter> splitter,
                                           size_t cache_bytes, const Poll &poll, std::shared_ptr<const TableFile> made) {
    const PreTokenizer &pre = vocabulary.pre;
    const MergeOptions options{pre.byte_encode, pre.ignore_merges, pre.newline_runs, pre.prepend_space, pre.escape_whitespaces};
    Preprocessing step = Preprocessing::none;
    if (vocabulary.kind->has_sequences) step = Preprocessing::k_mers;
    if (vocabulary.kind->drops_white_space) step = vocabulary.lowercase ? Preprocessing::lowered_words : Preprocessing::spaced_words;
    return std::make_shared<BPEModel>(vocabulary.names, *vocabulary.merges, std::move(splitter), options, step, cache_bytes, poll,
                                      std::move(made));
}

std::shared_ptr<UGMModel> ugm_model(const Vocabulary &vocabulary, const std::vector<uint16_t> &attributes, int32_t unknown,
                                    size_t cache_bytes, const Poll &poll) {
    const UGMOptions options{vocabulary.add_space_prefix, vocabulary.remove_extra_whitespaces, unknown, vocabulary.nfc,
                             vocabulary.strict_utf8};
    return std::make_shared<UGMModel>(vocabulary.names, vocabulary.matched_by(), attributes, vocabulary.scores,
                                      vocabulary.charsmap, options, cache_bytes, poll);
}

// A score in ten-thousandths, as on x86-64. Source: src/llama-vocab.cpp, llm_tokenizer_plamo2.
int32_t in_ten_thousandths(float score) {
    if (!std::isfinite(score)) return Suffixes::INVALID_SCORE;
    const double scaled = double(score) * 1e4;
    double whole = std::trunc(scaled);
    if (std::fabs(scaled - whole) >= 0.5) whole += scaled > 0 ? 1 : -1;  // half away from zero
    return whole > Suffixes::INVALID_SCORE && whole < 2147483648.0 ? static_cast<int32_t>(whole) : Suffixes::INVALID_SCORE;
}

std::shared_ptr<const TextModel> plamo_model(const Vocabulary &vocabulary, bool cuts_segments, size_t cache_bytes, const Poll &poll) {
    std::vector<int32_t> scores(vocabulary.size());
    for (size_t i = 0; i < scores.size(); ++i) {
        const bool is_byte = vocabulary.matched_by()[i] & BYTE_TOKEN;
        scores[i] = is_byte ? Suffixes::NOT_LOOKED_UP : in_ten_thousandths(vocabulary.scores.empty() ? 0.0f : vocabulary.scores[i]);
    }
    return std::make_shared<PlamoModel>(*vocabulary.tokens, scores, plamo_byte_tokens(vocabulary), cuts_segments, cache_bytes, poll,
                                        vocabulary.strict_utf8);
}

}  // namespace

int named_byte(std::string_view token) {
    if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return -1;
    const int high = digit_of(token[3]), low = digit_of(token[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

std::vector<int32_t> plamo_byte_tokens(const Vocabulary &vocabulary) {
    std::vector<int32_t> tokens(256, NO_TOKEN);
    for (size_t i = 0; i < vocabulary.size(); ++i) {
        if (!(vocabulary.matched_by()[i] & BYTE_TOKEN)) continue;
        const int byte = named_byte((*vocabulary.tokens)[i]);
        if (byte >= 0) tokens[static_cast<size_t>(byte)] = static_cast<int32_t>(i);
    }
    return tokens;
}

std::shared_ptr<const TextModel> text_model(const Vocabulary &vocabulary, std::shared_ptr<const Splitter> splitter,
                                            size_t cache_bytes, const Poll &poll, std::shared_ptr<const TableFile> made) {
    check_sizes(vocabulary);
    const std::string_view name = vocabulary.kind->name;
    const int32_t unknown = vocabulary.special_ids[UNK];
    if (vocabulary.kind->has_pre_tokenizer) {
        return bpe_model(vocabulary, std::move(splitter), cache_bytes, poll, std::move(made));
    }
    if (name == "llama") {
        return std::make_shared<SpmModel>(vocabulary.names, vocabulary.scores, vocabulary.add_space_prefix, cache_bytes);
    }
    if (name == "bert") {
        return std::make_shared<WPMModel>(vocabulary.names, unknown, vocabulary.lowercase, vocabulary.strip_accents, cache_bytes);
    }
    if (name == "rwkv") return std::make_shared<RWKVModel>(*vocabulary.tokens, unknown, cache_bytes, poll);
    if (name == "t5") return ugm_model(vocabulary, vocabulary.attributes, unknown, cache_bytes, poll);
    return plamo_model(vocabulary, name == "plamo3", cache_bytes, poll);
}

Encoder encoder_of(const Vocabulary &vocabulary, std::shared_ptr<const TextModel> model, std::vector<int32_t> before,
                   std::vector<int32_t> behind) {
    std::vector<SpecialToken> special;
    for (const int32_t id : vocabulary.special_tokens) {
        const uint16_t attributes = vocabulary.attributes[static_cast<size_t>(id)];
        special.push_back({id, (attributes & (CONTROL_TOKEN | UNKNOWN_TOKEN)) != 0, (attributes & LSTRIP_TOKEN) != 0,
                           (attributes & RSTRIP_TOKEN) != 0});
    }
    return Encoder(std::move(model), vocabulary.tokens, special, std::move(before), std::move(behind), vocabulary.strict_utf8);
}

int32_t unigram_line_break(const Vocabulary &vocabulary, int32_t unknown, int32_t none, const Poll &poll) {
    const auto model = ugm_model(vocabulary, vocabulary.matched_by(), unknown, 0, poll);
    const unsigned char text[] = {'\n'};
    Ids ids;
    Sink sink(ids);
    TextModel::Lease scratch(*model);
    model->encode(Part{-1, text, 1}, *scratch, sink, poll);
    return ids.size() ? ids.data()[0] : none;
}

}  // namespace ggufbpe
