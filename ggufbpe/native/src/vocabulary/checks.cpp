// What some models refuse, and line breaks without a token: `check` and `has_line_break` in ggufbpe/models/, for C++.

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>

#include "bpe/byte_alphabet.h"
#include "ugm/charsmap.h"
#include "vocabulary/loading.h"
#include "vocabulary/metadata_keys.h"
#include "vocabulary/text_models.h"

namespace ggufbpe {

namespace {

void check_scores(const Metadata &file, const Vocabulary &vocabulary) {
    const auto wrong = std::find_if(vocabulary.scores.begin(), vocabulary.scores.end(), [](float score) { return std::isnan(score); });
    if (wrong == vocabulary.scores.end()) return;
    throw file.error(SCORES, "the score of token " + std::to_string(wrong - vocabulary.scores.begin()) + " is not a number");
}

// Whether nothing is left of a text with this replacement.
bool drops(const Charsmap::Match &match, bool drops_spaces) {
    if (!match.length) return false;
    return std::all_of(match.text, match.text + match.size, [&](char c) { return drops_spaces && c == ' '; });
}

// llama.cpp looks for the token of a line break while it loads, and refuses an id without a token.
void check_unigram(const Metadata &file, Vocabulary &vocabulary, const Poll &poll) {
    const auto begins_token = [&](size_t i) {
        return vocabulary.matched_by()[i] & USER_DEFINED_TOKEN && (*vocabulary.tokens)[i].substr(0, 1) == "\n";
    };
    bool is_kept = false;
    for (size_t i = 0; i < vocabulary.size() && !is_kept; ++i) is_kept = begins_token(i);
    try {
        const Charsmap charsmap(vocabulary.charsmap, poll);
        const unsigned char text[] = {'\n'};
        Pace pace(poll);
        if (!is_kept && drops(charsmap.longest(text, text + 1, pace), vocabulary.remove_extra_whitespaces)) {
            const int32_t taken = vocabulary.kind->default_ids[PAD];
            const std::string what = "a line break becomes nothing; for its token llama.cpp takes " + std::to_string(taken);
            vocabulary.corrections.push_back({"line_break", what, taken});
        }
    } catch (const std::invalid_argument &error) {
        throw file.error(CHARSMAP, std::string(error.what()) + "; llama.cpp refuses it");
    }
    const int32_t *defaults = vocabulary.kind->default_ids;
    const size_t size = vocabulary.size();
    if (size > static_cast<size_t>(std::max({defaults[UNK], defaults[PAD], defaults[EOS]}))) return;
    const int32_t taken = unigram_line_break(vocabulary, defaults[UNK], defaults[PAD], poll);
    if (static_cast<size_t>(taken) < size) return;
    throw file.error(LIST, "the token of a line break is " + std::to_string(taken) + ", and there are " + std::to_string(size) +
                               " tokens; llama.cpp refuses it");
}

void check_plamo(const Metadata &file, const Vocabulary &vocabulary) {
    const std::vector<int32_t> tokens = plamo_byte_tokens(vocabulary);
    const auto missing = std::count_if(tokens.begin(), tokens.end(), [](int32_t token) { return token <= 0; });
    if (missing) {
        throw file.error(LIST, "no token of type BYTE stands for " + std::to_string(missing) + " of the bytes; the token 0 counts as none");
    }
}

bool has(const Vocabulary &vocabulary, std::initializer_list<const char *> texts) {
    return std::any_of(texts.begin(), texts.end(), [&](const char *text) { return vocabulary.id_of(text) != NO_TOKEN; });
}

}  // namespace

void check_model(const Metadata &file, Vocabulary &vocabulary, const Poll &poll) {
    const std::string_view name = vocabulary.kind->name;
    if (name == "llama") check_scores(file, vocabulary);
    if (name == "t5") check_unigram(file, vocabulary, poll);
    if (name == "plamo2" || name == "plamo3") check_plamo(file, vocabulary);
}

bool has_line_break(const Vocabulary &vocabulary) {
    const std::string_view name = vocabulary.kind->name;
    if (vocabulary.kind->drops_white_space) return false;
    if (name == "rwkv") return has(vocabulary, {"\\n", "\n", "\\x0a", "\\\n"});
    if (name == "llama") return has(vocabulary, {"<0x0A>", "\n"});
    if (!vocabulary.kind->has_pre_tokenizer) return true;
    if (vocabulary.pre.byte_encode) return vocabulary.names->find(BYTE_ALPHABET.character('\n')) != Strings::NOT_FOUND;
    return has(vocabulary, {"\n", "<0x0A>"});
}

}  // namespace ggufbpe
