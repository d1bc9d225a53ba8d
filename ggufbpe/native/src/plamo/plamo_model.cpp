#include "plamo/plamo_model.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "machine.h"
#include "utf8.h"

#if !defined(GGUFBPE_WINDOW)
#define GGUFBPE_WINDOW (1 << 14)  // tests take a short one
#endif

namespace ggufbpe {

namespace {

constexpr size_t LONG_WORD = GGUFBPE_WINDOW;  // bytes; the ids of a longer word are not held together
constexpr size_t IDS_AT_ONCE = 1 << 12;       // of such a word

constexpr uint32_t BYTE_ORDER_MARK = 0xFEFF, LAST_CODE_POINT = 0x10FFFF;
constexpr char REPLACEMENT[] = "\xEF\xBF\xBD";

bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// The code point at `p` and, in `length`, how many bytes it takes: up to 0x1FFFFF, which is what llama.cpp before b11739 reads.
uint32_t any_code_point_at(const unsigned char *p, const unsigned char *end, unsigned &length) {
    if (*p < 0xF4 || *p >= 0xF8 || end - p < 4 || !is_continuation(p[1]) || !is_continuation(p[2]) || !is_continuation(p[3])) {
        return code_point_at(p, end, length);
    }
    length = 4;
    return (*p & 7u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

// The code point of a character that is known to be one.
uint32_t code_point_of(const unsigned char *p, size_t size) {
    uint32_t c = size == 1 ? *p : *p & (0x7Fu >> size);
    for (size_t i = 1; i < size; ++i) c = c << 6 | (p[i] & 0x3Fu);
    return c;
}

// The same in a text, which newer builds read strictly.
uint32_t code_point_in_text(const unsigned char *p, const unsigned char *end, unsigned &length, bool is_strict) {
    return is_strict ? strict_code_point_at(p, end, length) : any_code_point_at(p, end, length);
}

// Rewrites bytes that are not UTF-8 as llama.cpp reads them: undecodable ones as U+FFFD, all else in its shortest form.
void rewrite(const unsigned char *p, const unsigned char *end, bool is_strict, std::vector<unsigned char> &to,
             ChangedText *changes, Pace &pace) {
    to.clear();
    if (changes) changes->clear();
    while (p < end) {
        unsigned length;
        unsigned char written[4];
        const unsigned size = write_utf8(code_point_in_text(p, end, length, is_strict), written);
        to.insert(to.end(), written, written + size);
        if (changes) changes->add(size, length);
        p += length;
        pace.count(length);
    }
}

// A token, or IN_BYTES, in three bytes: in a word of megabytes, fresh memory takes as long as the search. One byte more is
// written, and read.
constexpr size_t CHOICE = 3, MOST_TOKENS = 0xFFFFFF;

void write_choice(unsigned char *path, size_t place, int32_t token) {
    const uint32_t number = IS_BIG_ENDIAN ? static_cast<uint32_t>(token) << 8 : static_cast<uint32_t>(token);
    std::memcpy(path + CHOICE * place, &number, sizeof number);
}
int32_t read_choice(const unsigned char *path, size_t place) {
    uint32_t number;
    std::memcpy(&number, path + CHOICE * place, sizeof number);
    number = IS_BIG_ENDIAN ? number >> 8 : number & MOST_TOKENS;
    return number == MOST_TOKENS ? Suffixes::IN_BYTES : static_cast<int32_t>(number);
}

}  // namespace

struct PlamoModel::Scratch : CachingModel::Scratch {
    std::vector<unsigned char> rewritten;
    ChangedText changes;         // if spans are wanted: characters that this made longer or shorter
    std::vector<int64_t> costs;  // of the text after each of the last places, in a ring
    // The choice at each character, from the last to the first: see write_choice(). In small pages: it is written once, from one
    // end to the other, and the system may take milliseconds for a huge page.
    std::unique_ptr<unsigned char[]> path;
    size_t path_room = 0;
    size_t followed = 0;         // bytes of the word before the place where the path goes on,
    size_t left = 0;             // and characters after it
    Words words;

    size_t bytes() const override {
        return CachingModel::Scratch::bytes() + rewritten.capacity() + costs.capacity() * sizeof(int64_t) + path_room;
    }

    unsigned char *path_for(size_t characters) {
        const size_t room = CHOICE * characters + 1;
        if (room > path_room) {
            path_room = 0;
            path.reset();
            path.reset(new unsigned char[room + room / 8]);
            path_room = room + room / 8;
        }
        return path.get();
    }
};

// ---- loading ----

PlamoModel::PlamoModel(const Strings &tokens, const std::vector<int32_t> &scores, std::vector<int32_t> byte_tokens,
                       bool cuts_segments, size_t cache_bytes, const Poll &poll, bool strict_utf8)
    : CachingModel(cache_bytes),
      suffixes_(tokens, scores, poll),
      byte_tokens_(std::move(byte_tokens)),
      cuts_segments_(cuts_segments),
      strict_utf8_(strict_utf8) {
    if (tokens.size() >= MOST_TOKENS) throw std::length_error("more tokens than three bytes can number");
    if (byte_tokens_.size() != 256) throw std::invalid_argument("a token for each byte is needed");
    while (ring_ <= suffixes_.longest()) ring_ *= 2;
    find_joined(tokens, scores, poll);
}

// The pairs of bytes that stand side by side in some token, or within a character. A token that ends a list also hides the text
// before it, so that no word ends there.
void PlamoModel::find_joined(const Strings &tokens, const std::vector<int32_t> &scores, const Poll &poll) {
    Pace pace(poll);
    for (auto &row : joined_) row[2] = ~uint64_t(0);  // continuation bytes
    lengths_.resize(tokens.size());
    for (size_t id = 0; id < tokens.size(); ++id) {
        const std::string_view text = tokens[id];
        pace.count(16 + 2 * text.size());
        uint32_t characters = 0;
        for (const char byte : text) characters += !is_continuation(static_cast<unsigned char>(byte));
        lengths_[id] = {static_cast<uint32_t>(text.size()), characters};
        if (scores[id] == Suffixes::NOT_LOOKED_UP || text.empty()) continue;
        for (size_t i = 1; i < text.size(); ++i) {
            join(static_cast<unsigned char>(text[i - 1]), static_cast<unsigned char>(text[i]));
        }
        if (scores[id] != Suffixes::UNKNOWN_SCORE) continue;
        pace.count(256);
        for (unsigned before = 0; before < 256; ++before) {
            join(static_cast<unsigned char>(before), static_cast<unsigned char>(text[0]));
        }
    }
    for (const int32_t token : byte_tokens_) {
        if (token >= 0 && static_cast<size_t>(token) < lengths_.size()) lengths_[static_cast<size_t>(token)] = {1, 1};
    }
}

std::unique_ptr<TextModel::Scratch> PlamoModel::new_scratch() const { return std::make_unique<Scratch>(); }

// ---- text to words ----

// Whether any text may be cut at `p`, after its beginning: only after ASCII, where characters are certain.
bool PlamoModel::may_cut(const unsigned char *p, const unsigned char *end) const {
    if (p[-1] >= 0x80) return false;
    unsigned length;
    unsigned char written[4];
    const uint32_t c = code_point_in_text(p, end, length, strict_utf8_);
    write_utf8(c, written);
    if (is_joined(p[-1], written[0]) || c == BYTE_ORDER_MARK) return false;  // left out only at the beginning of a fragment
    return !cuts_segments_ || may_part_segments(p[-1], c);
}

// PLaMo-3's segments end before two spaces, whatever comes before, since a marker has no white space.
size_t PlamoModel::cut(const unsigned char *text, size_t size, size_t from, const Poll &poll) const {
    Pace pace(poll);
    const auto is_segment_end = [&](size_t at) {
        return text[at] == ' ' && text[at - 1] != ' ' && size - at > 1 && text[at + 1] == ' ';
    };
    return find_first(from, size, pace, [&](size_t at) {
        return cuts_segments_ ? is_segment_end(at) : may_cut(text + at, text + size);
    });
}

void PlamoModel::divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const {
    const unsigned char *end = part.data + part.size;
    Pace pace(poll);
    for (const unsigned char *start = part.data; start < end;) {
        const unsigned char *cut = end;
        if (size_t(end - start) > size + size / 2) {
            const size_t left = find_first(size, size_t(end - start), pace, [&](size_t at) { return may_cut(start + at, end); });
            cut = start + left;
        }
        parts.push_back({part.token, start, size_t(cut - start)});
        start = cut;
    }
}

void PlamoModel::encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const {
    auto &own = static_cast<Scratch &>(scratch);
    Pace pace(poll);
    const unsigned char *p = part.data, *end = p + part.size;
    Spans *const spans = ids.spans();
    const unsigned char *const origin = spans ? spans->origin : nullptr;
    const size_t first = spans ? spans->size() : 0;
    const bool is_changed = !is_utf8(p, part.size, poll);
    if (is_changed) {
        rewrite(p, end, strict_utf8_, own.rewritten, spans ? &own.changes : nullptr, pace);
        p = own.rewritten.data();
        end = p + own.rewritten.size();
        if (spans) spans->origin = p;
    }
    own.words.count = 0;
    each_segment(p, end, pace, [&](Segments::Segment segment) { encode_segment(segment, end, own, ids, pace); });
    look_up(end, own, ids, pace);
    if (!is_changed || !spans) return;
    own.changes.lead_back(*spans, first, part.data - origin, pace);
    spans->origin = origin;
}

// The parts encoded separately: all but a byte order mark in front, or PLaMo-3's segments.
template <typename Take>
void PlamoModel::each_segment(const unsigned char *p, const unsigned char *end, Pace &pace, Take take) const {
    if (!cuts_segments_) {
        unsigned length;
        if (p < end && any_code_point_at(p, end, length) == BYTE_ORDER_MARK) p += length;
        if (p < end) take({p, end});
        return;
    }
    Segments segments(p, end);
    for (;;) {
        const Segments::Segment segment = segments.next(pace);
        if (segment.start == segment.end) return;
        take(segment);
    }
}

// Characters beyond Unicode are shown as U+FFFD.
bool PlamoModel::words(const unsigned char *text, size_t size, TextModel::Scratch &scratch, const TakesWord &take,
                       const Poll &poll) const {
    auto &own = static_cast<Scratch &>(scratch);
    Pace pace(poll);
    const unsigned char *end = text + size;
    const bool is_changed = !is_utf8(text, size, poll);
    if (is_changed) {
        rewrite(text, end, strict_utf8_, own.rewritten, nullptr, pace);
        text = own.rewritten.data();
        end = text + own.rewritten.size();
    }
    std::string shown;
    each_segment(text, end, pace, [&](Segments::Segment segment) {
        if (!is_changed) return take(segment.start, static_cast<size_t>(segment.end - segment.start));
        shown.clear();
        unsigned length;
        for (const unsigned char *at = segment.start; at < segment.end; at += length) {
            if (any_code_point_at(at, end, length) > LAST_CODE_POINT) {
                shown += REPLACEMENT;
            } else {
                shown.append(reinterpret_cast<const char *>(at), length);
            }
            pace.count(length);
        }
        take(reinterpret_cast<const unsigned char *>(shown.data()), shown.size());
    });
    return true;
}

// The words of a segment, which are held back while they are few. Where they end is unpredictable, so ends are first found for
// many bytes, then used.
void PlamoModel::encode_segment(Segments::Segment segment, const unsigned char *end, Scratch &scratch, Sink &ids,
                                Pace &pace) const {
    constexpr size_t AT_ONCE = 64;
    const unsigned char *start = segment.start;
    const auto add = [&](const unsigned char *word_end) {
        const auto size = static_cast<size_t>(word_end - start);
        if (size > LONG_WORD) {
            look_up(end, scratch, ids, pace);
            encode_long(start, size, scratch, ids, pace);
        } else {
            scratch.words.add(start, size);
            if (scratch.words.count == Words::GROUP) look_up(end, scratch, ids, pace);
        }
        start = word_end;
    };
    for (const unsigned char *p = start + 1; p < segment.end; p += AT_ONCE) {
        const size_t count = std::min(AT_ONCE, size_t(segment.end - p));
        uint64_t word_ends = 0;
        for (size_t i = 0; i < count; ++i) word_ends |= uint64_t(!is_joined(p[i - 1], p[i])) << i;
        for (; word_ends; word_ends &= word_ends - 1) add(p + lowest_bit(word_ends));
        pace.count(count);
        if (count < AT_ONCE) break;
    }
    if (start < segment.end) add(segment.end);
}

// The ids of the held words. Text may be read up to `end`.
void PlamoModel::look_up(const unsigned char *end, Scratch &scratch, Sink &ids, Pace &pace) const {
    const auto find = [&](const unsigned char *word, size_t size) {
        find_path(word, size, scratch, pace);
        follow_path(word, size, SIZE_MAX, scratch, pace);
    };
    const auto append = [&](const unsigned char *word, size_t, const int32_t *found, size_t count) {
        append_spans(word, found, count, *ids.spans(), pace);
    };
    encode_words(end, scratch.words, scratch, ids, find, append);
    scratch.words.count = 0;
}

void PlamoModel::append_spans(const unsigned char *word, const int32_t *found, size_t count, Spans &spans, Pace &pace) const {
    for (size_t i = 0; i < count; ++i) {
        const auto token = static_cast<size_t>(found[i]);
        const size_t size = token < lengths_.size() ? lengths_[token].bytes : 1;
        spans.push(word, size);
        word += size;
    }
    pace.count(count);
}

// A word that the cache would not take.
void PlamoModel::encode_long(const unsigned char *word, size_t size, Scratch &scratch, Sink &ids, Pace &pace) const {
    const Ids &found = scratch.word_ids;
    find_path(word, size, scratch, pace);
    while (scratch.left) {
        const unsigned char *const start = word + scratch.followed;
        follow_path(word, size, IDS_AT_ONCE, scratch, pace);
        if (ids.spans()) append_spans(start, found.data(), found.size(), *ids.spans(), pace);
        int32_t *const to = ids.room(found.size());
        if (to) {
            ids.advance(std::copy(found.data(), found.data() + found.size(), to));
        } else {
            ids.add(found.size());
        }
    }
}

// ---- a word to ids ----

// The best choice at each place, from the last character to the first; of equal costs the longest token.
void PlamoModel::find_path(const unsigned char *word, size_t size, Scratch &scratch, Pace &pace) const {
    const size_t mask = ring_ - 1;
    scratch.costs.resize(ring_);
    int64_t *costs = scratch.costs.data();
    unsigned char *const path = scratch.path_for(size);
    costs[size & mask] = 0;
    uint32_t node = Suffixes::ROOT;
    size_t characters = 0;
    for (size_t at = size; at > 0;) {
        const size_t behind = at;
        while (is_continuation(word[--at])) {
        }
        const size_t length = behind - at;
        node = suffixes_.next(node, code_point_of(word + at, length));
        int64_t least = INT64_MAX;
        int32_t best = Suffixes::IN_BYTES;
        size_t steps = 1;
        const Suffixes::Step *step = &suffixes_.first(node);
        for (; step->token >= 0; ++steps) {
            const int64_t cost = costs[(at + step->size) & mask] - step->score;
            best = cost < least ? step->token : best;
            least = std::min(cost, least);
            step = &suffixes_.shorter(step->token);
        }
        if (step->token == Suffixes::IN_BYTES) {
            const int64_t cost = costs[(at + length) & mask] - Suffixes::UNKNOWN_SCORE;
            best = cost < least ? Suffixes::IN_BYTES : best;
            least = std::min(cost, least);
        }
        costs[at & mask] = least;
        write_choice(path, characters++, best);
        pace.count(steps);
    }
    scratch.followed = 0;
    scratch.left = characters;
}

// The ids along the rest of the path, at least `enough` if there are as many, into `scratch.word_ids`.
void PlamoModel::follow_path(const unsigned char *word, size_t size, size_t enough, Scratch &scratch, Pace &pace) const {
    const unsigned char *const path = scratch.path.get();
    Ids &found = scratch.word_ids;
    found.clear();
    size_t at = scratch.followed, left = scratch.left;
    while (left > 0 && found.size() < enough) {
        const int32_t token = read_choice(path, left - 1);
        if (token >= 0) {
            const Length &length = lengths_[static_cast<size_t>(token)];
            found.push(token);
            at += length.bytes;
            left -= length.characters;
        } else {
            do found.push(byte_tokens_[word[at]]);
            while (++at < size && is_continuation(word[at]));
            --left;
        }
        pace.count(1);
    }
    scratch.followed = at;
    scratch.left = left;
}

}  // namespace ggufbpe
