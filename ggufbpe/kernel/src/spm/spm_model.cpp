#include "spm/spm_model.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "bpe/bpe_scratch.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr int32_t PLAIN = -1;     // a part's token: text within a fragment, UTF-8
constexpr int32_t FRAGMENT = -3;  // a plain fragment, from its beginning; any bytes
constexpr size_t HEAD = 1 << 12;  // bytes of a fragment that are copied to stand behind a space
constexpr char SPACE[] = " ", WRITTEN_SPACE[] = "\xE2\x96\x81";

// 0 for the best score.
std::vector<uint32_t> ranks_of(const std::vector<float> &scores, size_t count) {
    if (scores.empty()) return std::vector<uint32_t>(count, 0);
    std::vector<float> order = scores;
    std::sort(order.begin(), order.end(), std::greater<>());
    order.erase(std::unique(order.begin(), order.end()), order.end());
    std::vector<uint32_t> ranks;
    ranks.reserve(scores.size());
    for (const float score : scores) {
        const auto place = std::lower_bound(order.begin(), order.end(), score, std::greater<>());
        ranks.push_back(static_cast<uint32_t>(place - order.begin()));
    }
    return ranks;
}

// All of a text as one word, which the model parts where it may.
std::shared_ptr<const Splitter> whole_text() {
    CharSet any;
    any.terms.emplace_back();
    any.terms.back().negated = true;
    Splitter::Rule rule;
    rule.rule = {REPEAT, 1, NO_LIMIT, CHARS, 0};
    return std::make_shared<Splitter>(std::vector<CharSet>{any}, std::vector<Splitter::Rule>{rule}, true);
}

MergeOptions options() {
    MergeOptions options;
    options.byte_encode = false;
    options.escape_spaces = true;
    options.needs_bytes = true;
    return options;
}

// src/unicode.cpp, unicode_len_utf8: by the first byte alone.
size_t announced_length(unsigned char lead) { return lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4; }

}  // namespace

SpmModel::SpmModel(std::shared_ptr<const Strings> tokens, std::vector<float> scores, bool add_space_prefix, size_t cache_bytes,
                   const Poll &poll)
    : BPEModel(tokens, ranks_of(scores, tokens->size()), whole_text(), options(), cache_bytes, poll),
      add_space_prefix_(add_space_prefix) {}

void SpmModel::cut_fragments(const unsigned char *, std::vector<Fragment> &fragments, const Poll &) const {
    for (Fragment &fragment : fragments) {
        if (fragment.token == PLAIN) fragment.token = FRAGMENT;
    }
}

void SpmModel::divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const {
    const size_t first = part.size > size + size / 2 && is_utf8(part.data, part.size, poll)
                             ? splitter().cut(part.data, part.size, size, poll)
                             : part.size;
    parts.push_back({FRAGMENT, part.data, first});
    BPEModel::divide({PLAIN, part.data + first, part.size - first}, size, parts, poll);
}

void SpmModel::encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const {
    auto &own = static_cast<Scratch &>(scratch);
    if (part.token == PLAIN) {
        BPEModel::encode(part, scratch, ids, poll);
    } else if (is_utf8(part.data, part.size, poll)) {
        encode_utf8(part.data, part.size, add_space_prefix_, own, ids, poll);
    } else {
        encode_bytes(part.data, part.size, own, ids, poll);
    }
}

// The first words are copied to stand behind the space; the others are where they are.
void SpmModel::encode_utf8(const unsigned char *text, size_t size, bool has_prefix, Scratch &scratch, Sink &ids,
                           const Poll &poll) const {
    size_t head = 0;
    if (has_prefix) {
        head = size > HEAD + HEAD / 4 ? splitter().cut(text, size, HEAD, poll) : size;
        scratch.changed = SPACE;
        scratch.changed.append(reinterpret_cast<const char *>(text), head);
        const auto *begun = reinterpret_cast<const unsigned char *>(scratch.changed.data());
        BPEModel::encode({PLAIN, begun, scratch.changed.size()}, scratch, ids, poll);
    }
    if (head < size) BPEModel::encode({PLAIN, text + head, size - head}, scratch, ids, poll);
}

// Bytes are parted into characters after spaces were escaped: the first byte of a character that is none may take bytes of an
// escaped space. Such a character is in no token, so that what is on either side of it is merged by itself.
void SpmModel::encode_bytes(const unsigned char *text, size_t size, Scratch &scratch, Sink &ids, const Poll &poll) const {
    std::string escaped = add_space_prefix_ ? WRITTEN_SPACE : "";
    Pace pace(poll);
    for (size_t i = 0; i < size; ++i) {
        pace.count(1);
        if (text[i] == ' ') {
            escaped += WRITTEN_SPACE;
        } else {
            escaped += static_cast<char>(text[i]);
        }
    }
    const auto *data = reinterpret_cast<const unsigned char *>(escaped.data());
    Ids bytes;
    for (size_t at = 0, start = 0; at < escaped.size() || start < at;) {
        const size_t length = std::min(announced_length(at < escaped.size() ? data[at] : 0), escaped.size() - at);
        pace.count(length);
        if (length && is_utf8(data + at, length)) {
            at += length;
            continue;
        }
        if (start < at) encode_utf8(data + start, at - start, false, scratch, ids, poll);
        bytes.clear();
        for (const size_t end = at + length; at < end; ++at) merger().append_byte(data[at], bytes);
        for (size_t i = 0; i < bytes.size(); ++i) ids.push(bytes.data()[i]);
        start = at;
    }
}

}  // namespace ggufbpe
