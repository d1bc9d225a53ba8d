#include "rwkv/rwkv_model.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "machine.h"

namespace ggufbpe {

namespace {

constexpr size_t BLOCK = size_t(1) << 13;  // bytes between two checks for room
constexpr size_t PLACES = 64;              // looked at together
constexpr size_t PAIRS = size_t(1) << 16;  // of bytes
constexpr size_t STEPS_A_TOKEN = 16;       // the cost of one while opening, in bytes looked at

// The value of a hexadecimal digit; for other characters, llama.cpp's result on machines with signed char.
unsigned digit(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 'a' && byte < 0x80 ? byte - 'a' + 10u : byte - unsigned('0');
}

}  // namespace

char *unescape_rwkv_token(std::string_view token, char *to) {
    for (size_t i = 0; i < token.size(); ++i) {
        if (token[i] != '\\') {
            *to++ = token[i];
        } else if (++i < token.size()) {
            const char escaped = token[i];
            if (escaped != 'x') {
                *to++ = escaped == 't' ? '\t' : escaped == 'n' ? '\n' : escaped == 'r' ? '\r' : escaped;
            } else {
                if (i + 2 < token.size()) *to++ = static_cast<char>(digit(token[i + 1]) * 16 + digit(token[i + 2]));
                i += 2;
            }
        }
    }
    return to;
}

namespace {

// The tokens as bytes.
Strings unescaped(const Strings &tokens, const Poll &poll) {
    Pace pace(poll);
    LargeVector<char> bytes(tokens.byte_size());
    LargeVector<uint32_t> ends(tokens.size() + 1);
    ends[0] = 0;
    char *to = bytes.data();
    for (size_t i = 0; i < tokens.size(); ++i) {
        pace.count(STEPS_A_TOKEN + tokens[i].size());
        to = unescape_rwkv_token(tokens[i], to);
        ends[i + 1] = static_cast<uint32_t>(to - bytes.data());
    }
    return Strings(std::move(bytes), std::move(ends));
}

}  // namespace

struct RWKVModel::Unescaped {
    Strings texts;
};

struct RWKVModel::Scratch : CachingModel::Scratch {
    Words words;
};

RWKVModel::RWKVModel(const Strings &tokens, int32_t unknown, size_t cache_bytes, const Poll &poll)
    : RWKVModel(Unescaped{unescaped(tokens, poll)}, unknown, cache_bytes, poll) {}

RWKVModel::RWKVModel(const Unescaped &tokens, int32_t unknown, size_t cache_bytes, const Poll &poll)
    : CachingModel(cache_bytes),
      tokens_(tokens.texts, poll),
      unknown_(unknown),
      lengths_(tokens.texts.size()),
      joined_(PAIRS / 64) {
    Pace pace(poll);
    uint64_t *const joined = joined_.data();
    for (size_t id = 0; id < tokens.texts.size(); ++id) {
        const std::string_view text = tokens.texts[id];
        pace.count(STEPS_A_TOKEN + text.size());
        lengths_[id] = static_cast<uint32_t>(text.size());
        for (size_t i = 1; i < text.size(); ++i) {
            const size_t pair = size_t(static_cast<unsigned char>(text[i - 1])) << 8 | static_cast<unsigned char>(text[i]);
            joined[pair >> 6] |= uint64_t(1) << (pair & 63);
        }
    }
}

std::unique_ptr<TextModel::Scratch> RWKVModel::new_scratch() const { return std::make_unique<Scratch>(); }

void RWKVModel::encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const {
    auto &own = static_cast<Scratch &>(scratch);
    const unsigned char *at = part.data, *const end = part.data + part.size;
    Pace pace(poll);
    const auto match = [&](const unsigned char *word, size_t size) {
        own.word_ids.clear();
        for (const unsigned char *const stop = word + size; word < stop;) {
            const TokenTrie::Match found = tokens_.find(word, stop);
            own.word_ids.push(found.size ? found.token : unknown_);
            word += found.size ? found.size : 1;
        }
    };
    const auto append_spans = [&](const unsigned char *word, size_t size, const int32_t *found, size_t count) {
        const unsigned char *const stop = word + size;
        for (size_t i = 0; i < count; ++i) {
            // The unknown token may be one that has a text of its own.
            const size_t length = found[i] == unknown_ ? std::max<size_t>(tokens_.find(word, stop).size, 1)
                                                       : lengths_[static_cast<size_t>(found[i])];
            ids.spans()->push(word, length);
            word += length;
        }
    };
    while (at < end) {
        const unsigned char *const begin = at;
        own.words.count = 0;
        at = find_words(at, end, own.words);
        encode_words(end, own.words, own, ids, match, append_spans);
        pace.count(static_cast<size_t>(at - begin));
        if (!own.words.count) at = encode_long(at, end, ids, pace);
    }
}

// The next words, from `at` on; returns where they end. None if the first one is too long for the cache.
const unsigned char *RWKVModel::find_words(const unsigned char *at, const unsigned char *end, Words &words) const {
    const unsigned char *start = at, *next = at + 1;  // of a word, and the current place
    while (words.count < Words::GROUP && next < end && static_cast<size_t>(next - start) <= WordTable::LONGEST) {
        const size_t places = std::min<size_t>(end - next, PLACES);
        uint64_t cuts = 0;
        for (size_t i = 0; i < places; ++i) cuts |= uint64_t(is_cut(next[i - 1], next[i])) << i;
        for (; cuts; cuts &= cuts - 1) {
            const unsigned char *const cut = next + lowest_bit(cuts);
            words.add(start, static_cast<size_t>(cut - start));
            start = cut;
        }
        next += places;
    }
    if (next >= end && words.count < Words::MOST && static_cast<size_t>(end - start) <= WordTable::LONGEST) {
        words.add(start, static_cast<size_t>(end - start));
        start = end;
    }
    return start;
}

// A word of any length; returns where it ends.
const unsigned char *RWKVModel::encode_long(const unsigned char *at, const unsigned char *end, Sink &ids, Pace &pace) const {
    Spans *const spans = ids.spans();
    for (bool is_at_end = false; !is_at_end;) {
        const unsigned char *stop = at + std::min(BLOCK, static_cast<size_t>(end - at));
        size_t count = 0;
        int32_t *to = ids.room(BLOCK);
        while (at < stop && !is_at_end) {
            const TokenTrie::Match match = tokens_.find(at, end);
            pace.count(match.read);
            const bool is_known = match.size > 0;
            if (spans) spans->push(at, is_known ? match.size : 1);
            at += is_known ? match.size : 1;
            if (to) *to++ = is_known ? match.token : unknown_;
            ++count;
            is_at_end = at == end || is_cut(at[-1], at[0]);
        }
        if (to) {
            ids.advance(to);
        } else {
            ids.add(count);
        }
    }
    return at;
}

// The text as it is: nothing splits it.
bool RWKVModel::words(const unsigned char *text, size_t size, TextModel::Scratch &, const TakesWord &take, const Poll &) const {
    if (size) take(text, size);
    return true;
}

size_t RWKVModel::cut(const unsigned char *text, size_t size, size_t from, const Poll &poll) const {
    Pace pace(poll);
    return find_first(from, size, pace, [&](size_t at) { return is_cut(text[at - 1], text[at]); });
}

void RWKVModel::divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const {
    for (size_t start = 0; start < part.size;) {
        size_t end = part.size;
        if (part.size - start > size + size / 2) {
            end = cut(part.data, part.size, start + size, poll);
        }
        parts.push_back({part.token, part.data + start, end - start});
        start = end;
    }
}

}  // namespace ggufbpe
