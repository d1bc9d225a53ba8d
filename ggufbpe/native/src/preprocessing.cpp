#include "preprocessing.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "split/automaton.h"
#include "unicode_classes.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr std::string_view BEGIN = "<dna>", CLOSE = "</dna>", UNKNOWN = "<oov>";
constexpr std::string_view MARKER = "\xEE\x80\x80";  // U+E000 ends the text of a k-mer (ggufbpe/models/dna.py)

unsigned char ascii_lower(unsigned char c) { return c >= 'A' && c <= 'Z' ? static_cast<unsigned char>(c + 32) : c; }

uint32_t lower(uint32_t code_point) {
    const auto *end = LOWER + LOWER_PAIRS;
    const auto *found = std::lower_bound(LOWER, end, code_point, [](const auto &pair, uint32_t c) { return pair[0] < c; });
    return found != end && (*found)[0] == code_point ? (*found)[1] : code_point;
}

// Where `searched` first occurs at or after `from`; the size of the text if it does not.
size_t find(std::string_view text, std::string_view searched, size_t from, Pace &pace) {
    while (text.size() - from > Pace::STEPS) {
        const size_t found = text.substr(from, Pace::STEPS).find(searched);
        if (found != text.npos) return from + found;
        from += Pace::STEPS - (searched.size() - 1);  // its end may be in the next part
        pace.count(Pace::STEPS);
    }
    return std::min(text.find(searched, from), text.size());
}

}  // namespace

std::unique_ptr<KMers> KMers::of(std::shared_ptr<const Strings> tokens) {
    const int64_t begin = tokens->find(BEGIN), close = tokens->find(CLOSE), unknown = tokens->find(UNKNOWN);
    if (begin < 0 || close < 0 || unknown < 0) return nullptr;
    return std::unique_ptr<KMers>(new KMers(std::move(tokens), static_cast<int32_t>(begin), static_cast<int32_t>(close),
                                            static_cast<int32_t>(unknown)));
}

void KMers::cut(const unsigned char *text, std::vector<Fragment> &fragments, const Poll &poll) const {
    Pace pace(poll);
    std::vector<Fragment> result;
    result.reserve(fragments.size());
    auto add = [&](int32_t token, size_t start, size_t end) {
        if (start < end) result.push_back({token, start, end});
    };
    for (const Fragment &fragment : fragments) {
        if (fragment.token >= 0) {
            result.push_back(fragment);
            continue;
        }
        const std::string_view plain(reinterpret_cast<const char *>(text), fragment.end);
        for (size_t at = fragment.start; at < fragment.end;) {
            const size_t start = find(plain, BEGIN, at, pace);
            add(-1, at, start);
            if (start == fragment.end) break;
            const size_t first = start + BEGIN.size(), last = find(plain, CLOSE, first, pace);
            add(begin_, start, first);
            add(SEQUENCE, first, last);
            pace.count(last - at + 1);
            at = std::min(last + CLOSE.size(), fragment.end);
            add(close_, last, at);
        }
    }
    fragments = std::move(result);
}

int32_t KMers::id(const unsigned char *k_mer, size_t size) const {
    char written[LENGTH + MARKER.size()];
    for (size_t i = 0; i < LENGTH; ++i) {
        const unsigned char c = i < size ? k_mer[i] : 'A';
        written[i] = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    }
    std::memcpy(written + LENGTH, MARKER.data(), MARKER.size());
    const int64_t found = tokens_->find({written, sizeof written});
    return found < 0 ? unknown_ : static_cast<int32_t>(found);
}

SpacedWords::SpacedWords(bool lowercase, bool escape_spaces) : lowercase_(lowercase), escape_spaces_(escape_spaces) {
    for (uint32_t c = 0; c < 128; ++c) is_ascii_space_[c] = class_letter(c) == 'W';
}

void SpacedWords::write_lower(const unsigned char *text, size_t size, std::string &to, ChangedText *changes,
                              const Poll &poll) const {
    Pace pace(poll);
    to.clear();
    to.reserve(size + size / 2);  // no character takes more than half as much again in lower case
    for (size_t i = 0; i < size;) {
        pace.count(1);
        if (text[i] < 128) {
            to += static_cast<char>(ascii_lower(text[i++]));
            if (changes) changes->add(1, 1);
            continue;
        }
        pace.count(4);
        unsigned length;
        const uint32_t code_point = code_point_at(text + i, text + size, length), lowered = lower(code_point);
        const size_t size_before = to.size();
        if (lowered == code_point) {  // unchanged: an overlong space must stay one
            to.append(reinterpret_cast<const char *>(text + i), length);
        } else {
            unsigned char written[4];
            to.append(reinterpret_cast<const char *>(written), write_utf8(lowered, written));
        }
        if (changes) changes->add(to.size() - size_before, length);
        i += length;
    }
}

bool SpacedWords::is_white_space(uint32_t code_point, unsigned length) const {
    if (escape_spaces_ && code_point == ' ' && length == 1) return false;
    if (code_point < 128) return is_ascii_space_[code_point];
    return class_letter(code_point) == 'W';
}

bool SpacedWords::is_white_space(const unsigned char *word, size_t size) const {
    unsigned length;
    const uint32_t first = code_point_at(word, word + size, length);
    return is_white_space(first, length);
}

size_t SpacedWords::cut(const unsigned char *text, size_t size, size_t from, const Poll &poll) const {
    Pace pace(poll);
    while (from < size && (text[from] & 0xC0) == 0x80) ++from;
    for (unsigned length; from < size; from += length) {
        const uint32_t code_point = code_point_at(text + from, text + size, length);
        if (is_white_space(code_point, length)) break;
        pace.count(4);
    }
    return from;
}

}  // namespace ggufbpe
