#include "spm/spm_model.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "bpe/bpe_scratch.h"
#include "radix_sort.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr int32_t FRAGMENT = -3;  // a plain fragment, from its beginning; any bytes
constexpr int32_t CONTINUED = -4;  // a plain fragment that continues where another text ended; any bytes
constexpr size_t HEAD = 1 << 12;  // bytes of a fragment that are copied after a space
constexpr char SPACE[] = " ", WRITTEN_SPACE[] = "\xE2\x96\x81";

// 0 for the best score; equal ones share a rank.
std::vector<uint32_t> ranks_of(const std::vector<float> &scores, size_t count, const Poll &poll) {
    if (scores.empty()) return std::vector<uint32_t>(count, 0);
    std::vector<uint64_t> keys;
    keys.reserve(scores.size());
    in_pieces(scores.size(), poll, [&](size_t from, size_t end) {
        for (size_t i = from; i < end; ++i) keys.push_back(order_of(scores[i]));
    });
    std::vector<uint32_t> ranks(scores.size());
    uint32_t rank = 0;
    uint64_t former = UINT64_MAX;
    Pace pace(poll);
    for (const uint32_t place : sorted_places(keys, poll)) {
        pace.count(4);
        rank += former != UINT64_MAX && keys[place] != former;
        former = keys[place];
        ranks[place] = rank;
    }
    return ranks;
}

MergeOptions options() {
    MergeOptions options;
    options.byte_encode = false;
    options.escape_spaces = true;
    options.needs_bytes = true;
    return options;
}

// The characters that tokens have before a U+2581 that does not begin them, ascending.
std::vector<uint32_t> joined_to_spaces(const Strings &tokens, const Poll &poll) {
    std::vector<uint32_t> joined;
    Pace pace(poll);
    for (size_t id = 0; id < tokens.size(); ++id) {
        const std::string_view text = tokens[id];
        pace.count(text.size() + 1);
        for (size_t at = text.find(WRITTEN_SPACE, 1); at != text.npos; at = text.find(WRITTEN_SPACE, at + 1)) {
            size_t before = at - 1;
            while (before > 0 && (text[before] & 0xC0) == 0x80) --before;
            unsigned length;
            const auto *data = reinterpret_cast<const unsigned char *>(text.data());
            const uint32_t code_point = code_point_at(data + before, data + at, length);
            if (code_point != MergeTable::ESCAPED_SPACE) joined.push_back(code_point);
        }
    }
    std::sort(joined.begin(), joined.end());
    joined.erase(std::unique(joined.begin(), joined.end()), joined.end());
    return joined;
}

}  // namespace

SpmModel::SpmModel(std::shared_ptr<const Strings> tokens, std::vector<float> scores, bool add_space_prefix, size_t cache_bytes)
    : SpmModel(tokens, std::make_shared<const std::vector<float>>(std::move(scores)), add_space_prefix, cache_bytes) {}

SpmModel::SpmModel(std::shared_ptr<const Strings> tokens, std::shared_ptr<const std::vector<float>> scores, bool add_space_prefix,
                   size_t cache_bytes)
    : BPEModel(
          [tokens, scores](const Poll &poll) {
              const std::vector<uint32_t> ranks = ranks_of(*scores, tokens->size(), poll);
              return std::make_unique<Tables>(std::make_unique<const Merger>(tokens, ranks, options(), poll),
                                              Splitter::of_whole_text(true));
          },
          options(), cache_bytes),
      tokens_(tokens),
      add_space_prefix_(add_space_prefix),
      first_words_(tokens, scores) {
    if (!tokens->indexed()) throw std::invalid_argument("the tokens have no index");
    if (!scores->empty() && scores->size() != tokens->size()) throw std::invalid_argument("as many scores as tokens are needed");
}

void SpmModel::cut_fragments(const unsigned char *, std::vector<Fragment> &fragments, const Poll &) const {
    for (Fragment &fragment : fragments) {
        if (fragment.token == PLAIN) fragment.token = FRAGMENT;
    }
}

void SpmModel::divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const {
    if (part.size <= size + size / 2) {
        parts.push_back(part);
    } else if (part.is_utf8 || is_utf8(part.data, part.size, poll)) {
        const size_t first = tables(poll).splitter->cut(part.data, part.size, size, poll);
        parts.push_back({part.token, part.data, first, nullptr, true});
        BPEModel::divide({PLAIN, part.data + first, part.size - first, nullptr, true}, size, parts, poll);
    } else {
        for (size_t start = 0, end; start < part.size; start = end) {
            end = part.size - start > size + size / 2 ? cut(part.data, part.size, start + size, poll) : part.size;
            parts.push_back({start ? CONTINUED : part.token, part.data + start, end - start});
        }
    }
}

void SpmModel::encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const {
    auto &own = static_cast<Scratch &>(scratch);
    const bool has_prefix = add_space_prefix_ && part.token == FRAGMENT;
    if (part.token == PLAIN) {
        BPEModel::encode(part, scratch, ids, poll);
    } else if (part.is_utf8 || is_utf8(part.data, part.size, poll)) {
        encode_utf8(part.data, part.size, has_prefix, own, ids, poll);
    } else if (part.size > PART_BYTES + PART_BYTES / 2) {  // only parts with bytes that are no characters are copied
        std::vector<Part> parts;
        divide(part, PART_BYTES, parts, poll);
        if (parts.size() == 1) return encode_bytes(part.data, part.size, has_prefix, own, ids, poll);
        for (const Part &each : parts) encode(each, scratch, ids, poll);
    } else {
        encode_bytes(part.data, part.size, has_prefix, own, ids, poll);
    }
}

void SpmModel::prepare_for(size_t bytes, const Poll &poll) const {
    BPEModel::prepare_for(bytes, poll);
    tables(poll);
}

int32_t SpmModel::continued(int32_t token) const { return token == FRAGMENT ? CONTINUED : token; }

// A byte that is not a character may take the three after it, if they are not UTF-8 as a whole, and reading continues from
// there. But after eight bytes of UTF-8 a character begins, however reading entered them: bytes within a character are taken
// one by one.
size_t SpmModel::cut(const unsigned char *text, size_t size, size_t from, const Poll &poll) const {
    constexpr size_t AROUND = 8;
    Pace pace(poll);
    for (size_t at = std::max(from, AROUND); at < size; ++at) {
        at = find_first(at, size, pace, [&](size_t place) { return text[place] == ' ' && text[place - 1] != ' '; });
        if (at == size) break;
        const unsigned char *p = text + at - AROUND, *const end = text + at;
        while (p < end && (*p & 0xC0) == 0x80) ++p;
        const auto size_before = static_cast<size_t>(end - p);
        if (size_before <= AROUND - 4 || !is_utf8(p, size_before)) continue;
        if (size_before >= 3 && !std::memcmp(end - 3, WRITTEN_SPACE, 3)) continue;
        const size_t found = before_spaces(poll).cut(p, size_before + 1, size_before, NO_POLL);
        if (found == size_before) return at;
    }
    return size;
}

const Splitter &SpmModel::before_spaces(const Poll &poll) const {
    return *before_spaces_.get([&] {
        return std::make_unique<std::shared_ptr<const Splitter>>(
            Splitter::of_whole_text(true)->parted_at_spaces(joined_to_spaces(*tokens_, poll)));
    });
}

// The first words are copied after the space; the others stay where they are.
void SpmModel::encode_utf8(const unsigned char *text, size_t size, bool has_prefix, Scratch &scratch, Sink &ids,
                           const Poll &poll) const {
    if (!has_tables() && first_words_.append_ids(text, size, has_prefix, ids)) return;
    size_t head = 0;
    if (has_prefix) {
        head = size > HEAD + HEAD / 4 ? tables(poll).splitter->cut(text, size, HEAD, poll) : size;
        scratch.changed = SPACE;
        scratch.changed.append(reinterpret_cast<const char *>(text), head);
        const auto *begun = reinterpret_cast<const unsigned char *>(scratch.changed.data());
        Spans *const spans = ids.spans();
        const unsigned char *const origin = spans ? spans->origin : nullptr;
        const size_t first = spans ? spans->size() : 0;
        if (spans) spans->origin = begun + 1;  // so that only the space is at -1
        BPEModel::encode({PLAIN, begun, scratch.changed.size()}, scratch, ids, poll);
        if (spans) {
            spans->origin = origin;
            const size_t count = spans->size();
            for (size_t i = first; i < count; ++i) {
                Span &span = spans->data()[i];
                span = {text - origin + std::max<int64_t>(span.start, 0), text - origin + std::max<int64_t>(span.end, 0)};
            }
        }
    }
    if (head < size) BPEModel::encode({PLAIN, text + head, size - head}, scratch, ids, poll);
}

// Bytes are divided into characters after spaces are escaped: the first byte of an invalid character may take bytes of an
// escaped space. Such a character is in no token, so the text on either side of it is merged separately.
void SpmModel::encode_bytes(const unsigned char *text, size_t size, bool has_prefix, Scratch &scratch, Sink &ids,
                            const Poll &poll) const {
    std::string escaped = has_prefix ? WRITTEN_SPACE : "";
    Spans *const spans = ids.spans();
    std::vector<size_t> ends(spans ? escaped.size() : 0);  // where each escaped byte ends in the text
    Pace pace(poll);
    for (size_t i = 0; i < size; ++i) {
        pace.count(1);
        if (text[i] == ' ') {
            escaped += WRITTEN_SPACE;
        } else {
            escaped += static_cast<char>(text[i]);
        }
        if (spans) ends.resize(escaped.size(), i + 1);
    }
    const auto *data = reinterpret_cast<const unsigned char *>(escaped.data());
    const unsigned char *const origin = spans ? spans->origin : nullptr;
    const size_t first = spans ? spans->size() : 0;
    if (spans) spans->origin = data;
    ChangedText changes;
    size_t source_end = 0;
    const auto note = [&](size_t at, size_t length) {
        if (!spans) return;
        changes.add(length, ends[at + length - 1] - source_end);
        source_end = ends[at + length - 1];
    };
    Ids bytes;
    for (size_t at = 0, start = 0; at < escaped.size() || start < at;) {
        const size_t length = std::min(length_by_lead(at < escaped.size() ? data[at] : 0), escaped.size() - at);
        pace.count(length);
        if (length && is_utf8(data + at, length)) {
            note(at, length);
            at += length;
            continue;
        }
        if (start < at) encode_utf8(data + start, at - start, false, scratch, ids, poll);
        for (const size_t end = at + length; at < end; ++at) {
            note(at, 1);
            bytes.clear();
            tables(poll).merger->append_byte(data[at], bytes);  // throws where it has no id
            ids.push(bytes.data()[0]);
            if (spans) spans->push(data + at, 1);
        }
        start = at;
    }
    if (!spans) return;
    changes.lead_back(*spans, first, text - origin, pace);
    spans->origin = origin;
}

bool SpmModel::words(const unsigned char *text, size_t size, TextModel::Scratch &scratch, const TakesWord &take,
                     const Poll &poll) const {
    if (!is_utf8(text, size, poll)) return false;
    if (!size) return true;
    auto &own = static_cast<Scratch &>(scratch);
    if (add_space_prefix_) {
        own.changed = SPACE;
        own.changed.append(reinterpret_cast<const char *>(text), size);
        text = reinterpret_cast<const unsigned char *>(own.changed.data());
        size = own.changed.size();
    }
    split(before_spaces(poll), text, size, own, take, poll);
    return true;
}

}  // namespace ggufbpe
