#include "wpm/normalizer.h"

#include <algorithm>

#include "split/automaton.h"
#include "unicode_classes.h"

namespace ggufbpe {

namespace {

// CJK as in BERT's own code; one range begins at U+2B920, a slip in HF tokenizers that llama.cpp follows.
constexpr uint32_t CJK[][2] = {
    {0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
    {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F},
};

// The last run that does not begin after a code point; null if there is none.
template <size_t N, size_t M>
const uint32_t *run_at(const uint32_t (&runs)[N][M], uint32_t code_point) {
    const auto *found =
        std::upper_bound(runs, runs + N, code_point, [](uint32_t point, const auto &run) { return point < run[0]; });
    if (found == runs || code_point > found[-1][1]) return nullptr;
    return found[-1];
}

uint32_t decomposed(uint32_t code_point) {
    const uint32_t *run = run_at(DECOMPOSED, code_point);
    return run ? run[2] : code_point;
}

uint32_t lower(uint32_t code_point) {
    const auto *end = LOWER + LOWER_PAIRS;
    const auto *found = std::lower_bound(LOWER, end, code_point, [](const auto &pair, uint32_t c) { return pair[0] < c; });
    return found != end && (*found)[0] == code_point ? (*found)[1] : code_point;
}

bool is_cjk(uint32_t code_point) {
    return std::any_of(std::begin(CJK), std::end(CJK),
                       [&](const auto &range) { return range[0] <= code_point && code_point <= range[1]; });
}

Normalizer::Kind kind_of_class(char letter, uint32_t code_point) {
    if (letter == 'W') return Normalizer::space;
    if (letter == 'P' || (letter == 'S' && code_point < 0x7F)) return Normalizer::alone;
    return Normalizer::in_word;
}

}  // namespace

Normalizer::Normalizer(bool lowercase, bool strip_accents)
    : lowercase_(lowercase), strip_accents_(strip_accents), kinds_(TABLE, in_word), written_(SHORT_TABLE) {
    for (size_t run = 0; run < CLASS_RUNS && CLASS_STARTS[run] < TABLE; ++run) {
        const uint32_t end = run + 1 < CLASS_RUNS ? std::min(CLASS_STARTS[run + 1], TABLE) : TABLE;
        for (uint32_t c = CLASS_STARTS[run]; c < end; ++c) kinds_[c] = kind_of_class(CLASS_LETTERS[run], c);
    }
    for (const auto &range : CJK) {
        for (uint32_t c = range[0]; c <= range[1] && c < TABLE; ++c) kinds_[c] = alone;
    }
    for (size_t run = 0; strip_accents && run < DECOMPOSED_RUNS; ++run) {
        const uint32_t *decomposed = DECOMPOSED[run];
        const Kind kind = decomposed[2] < TABLE ? kinds_[decomposed[2]] : slow_kind(decomposed[2]);
        for (uint32_t c = decomposed[0]; c <= decomposed[1] && c < TABLE; ++c) kinds_[c] = kind;
    }
    write_short_table();
}

// The same as slow_written() of each, in the time of a few runs.
void Normalizer::write_short_table() {
    for (uint32_t c = 0; c < SHORT_TABLE; ++c) written_[c] = c;
    for (const auto &[upper, lower_case] : LOWER) {
        if (lowercase_ && upper < SHORT_TABLE) written_[upper] = lower_case;
    }
    written_[0] = DROPPED;
    for (const auto &run : CONTROL) {
        for (uint32_t c = run[0]; c <= run[1] && c < SHORT_TABLE; ++c) written_[c] = DROPPED;
    }
    if (!strip_accents_) return;
    for (size_t run = 0; run < CLASS_RUNS && CLASS_STARTS[run] < SHORT_TABLE; ++run) {
        if (CLASS_LETTERS[run] != 'M') continue;
        for (uint32_t c = CLASS_STARTS[run]; c < CLASS_STARTS[run + 1] && c < SHORT_TABLE; ++c) written_[c] = DROPPED;
    }
    for (const auto &run : DECOMPOSED) {
        if (run[0] >= SHORT_TABLE) break;
        const uint32_t written = run[2] < SHORT_TABLE ? written_[run[2]] : slow_written(run[2]);
        for (uint32_t c = run[0]; c <= run[1] && c < SHORT_TABLE; ++c) written_[c] = written;
    }
}

Normalizer::Kind Normalizer::slow_kind(uint32_t code_point) const {
    if (strip_accents_) code_point = decomposed(code_point);
    return is_cjk(code_point) ? alone : kind_of_class(class_letter(code_point), code_point);
}

uint32_t Normalizer::slow_written(uint32_t code_point) const {
    if (strip_accents_) code_point = decomposed(code_point);
    if (code_point == 0 || code_point == 0xFFFD || run_at(CONTROL, code_point)) return DROPPED;
    if (strip_accents_ && class_letter(code_point) == 'M') return DROPPED;
    return lowercase_ ? lower(code_point) : code_point;
}

void Normalizer::write(const unsigned char *word, size_t size, std::string &to, const Poll &poll) const {
    Pace pace(poll);
    to.clear();
    to.reserve(size + size / 2);  // no character takes more than half as much again
    for (size_t i = 0; i < size;) {
        unsigned length;
        const uint32_t code_point = written(code_point_at(word + i, word + size, length));
        i += length;
        pace.count(length);
        if (code_point == DROPPED) continue;
        unsigned char bytes[4];
        to.append(reinterpret_cast<const char *>(bytes), write_utf8(code_point, bytes));
    }
}

}  // namespace ggufbpe
