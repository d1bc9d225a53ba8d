// PLaMo: the table of suffixes, segments and words, on any bytes.

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "compare.h"
#include "plamo/plamo_model.h"

using namespace ggufbpe;

namespace {

using Characters = std::u32string;

constexpr int32_t FIRST_BYTE = 10000;

struct Scored {
    int32_t token, score;
};

// What llama.cpp is said to do (src/llama-vocab.cpp: llm_tokenizer_plamo2), with strings for the rows of its table.
class Slow {
public:
    void add(const Characters &text, Scored scored) {
        tokens_[text] = scored;
        for (size_t start = 0; start < text.size(); ++start) pieces_.insert(text.substr(start));
    }

    std::vector<int32_t> encode(Characters text, bool cuts_segments) const {
        std::vector<int32_t> ids;
        if (!cuts_segments) {
            if (!text.empty() && text[0] == 0xFEFF) text.erase(0, 1);
            append(text, ids);
            return ids;
        }
        const std::vector<bool> cuts = cuts_of(text);
        size_t start = 0;
        for (size_t at = 0; at <= text.size(); ++at) {
            const bool is_boundary = at < text.size() && text[at] == 0xEE00;
            if (at < text.size() && !cuts[at] && !is_boundary) continue;
            append(text.substr(start, at - start), ids);
            start = at + is_boundary;
        }
        return ids;
    }

private:
    static size_t marker_end(const Characters &text, size_t at) {
        static const Characters BEGIN = U"<|plamo:";
        if (text.compare(at, BEGIN.size(), BEGIN)) return 0;
        size_t end = at + BEGIN.size();
        const auto is_space = [](char32_t c) {
            return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F) || c == 0x85 || c == 0xA0 || c == 0x2009 ||
                   c == 0x2028 || c == 0x3000;  // of those that there are in these texts
        };
        for (size_t body = 0; end < text.size() && body < 64 && text[end] != '|' && !is_space(text[end]); ++body) ++end;
        return text.compare(end, 2, U"|>") ? 0 : end + 2;
    }

    static std::vector<bool> cuts_of(const Characters &text) {
        std::vector<bool> cuts(text.size() + 1);
        for (size_t at = 0; at < text.size();) {
            const size_t end = marker_end(text, at);
            if (end) cuts[at] = cuts[end] = true;
            at = end ? end : at + 1;
        }
        for (size_t at = 0, end; at < text.size(); at = end) {
            for (end = at + 1; end < text.size() && text[end] == text[at] && !cuts[end];) ++end;
            if ((end - at >= 4 && text[at] != '\n') || (end - at >= 2 && text[at] == ' ')) cuts[at] = cuts[end] = true;
        }
        return cuts;
    }

    // What may be taken where `suffix` begins, longest first, down to what is the last; empty for a character in bytes.
    std::vector<Characters> rows(const Characters &suffix) const {
        std::vector<Characters> found;
        for (size_t size = suffix.size(); size > 0; --size) {
            const Characters piece = suffix.substr(0, size);
            if (!pieces_.count(piece)) continue;
            found.push_back(piece);
            const auto token = tokens_.find(piece);
            if (token != tokens_.end() && token->second.score == -10000000) return found;
        }
        found.emplace_back();
        return found;
    }

    void append(const Characters &text, std::vector<int32_t> &ids) const {
        std::vector<int64_t> costs(text.size() + 1);
        std::vector<Characters> taken(text.size());
        Characters suffix;
        for (size_t at = text.size(); at-- > 0;) {
            Characters longer;
            for (const Characters &row : rows(suffix)) {
                if (pieces_.count(text[at] + row)) {
                    longer = text[at] + row;
                    break;
                }
            }
            suffix = longer;
            costs[at] = INT64_MAX;
            for (const Characters &row : rows(suffix)) {
                const auto token = tokens_.find(row);
                if (!row.empty() && (token == tokens_.end() || token->second.score <= -20000000)) continue;
                const int64_t cost = costs[at + std::max<size_t>(row.size(), 1)] + (row.empty() ? 10000000 : -token->second.score);
                if (cost < costs[at]) {
                    costs[at] = cost;
                    taken[at] = row;
                }
            }
        }
        for (size_t at = 0; at < text.size(); at += std::max<size_t>(taken[at].size(), 1)) {
            if (!taken[at].empty()) {
                ids.push_back(tokens_.at(taken[at]).token);
                continue;
            }
            for (const char byte : utf8(text[at])) ids.push_back(FIRST_BYTE + static_cast<unsigned char>(byte));
        }
    }

    std::map<Characters, Scored> tokens_;
    std::set<Characters> pieces_;
};

// src/unicode.cpp: unicode_cpts_from_utf8, up to 0x1FFFFF and overlong forms unless it is strict.
Characters characters_of(const std::string &bytes, bool is_strict = false) {
    Characters found;
    for (size_t at = 0; at < bytes.size();) {
        const auto lead = static_cast<unsigned char>(bytes[at]);
        const size_t size = lead < 0x80 ? 1 : lead < 0xC0 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF8 ? 4 : 0;
        char32_t c = size > 1 ? lead & (0x7Fu >> size) : lead;
        bool is_whole = size && at + size <= bytes.size();
        for (size_t i = 1; is_whole && i < size; ++i) {
            is_whole = (bytes[at + i] & 0xC0) == 0x80;
            c = c << 6 | (static_cast<unsigned char>(bytes[at + i]) & 0x3F);
        }
        const char32_t least = size == 2 ? 0x80 : size == 3 ? 0x800 : size == 4 ? 0x10000 : 0;
        if (is_strict && (c < least || c > 0x10FFFF)) is_whole = false;
        found += is_whole ? c : char32_t(0xFFFD);
        at += is_whole ? size : 1;
    }
    return found;
}

std::string random_text(Choices &choices, size_t longest_text, bool any_bytes) {
    static const std::vector<std::string> PARTS = {
        "<|plamo:", "|>",   "<|plamo:x|>", "<<<|plamo:x|>>>>", "\xEF\xBB\xBF", "\xEE\xB8\x80", "    ",
        "aaaa",     "<<",   ">>",          "\n\n\n\n",         "[P",           "  ",
    };
    std::string text;
    const size_t kinds = choices.below(4);
    for (size_t left = choices.below(longest_text); left > 0; --left) {
        if (any_bytes && choices.one_in(9)) {
            static const std::vector<std::string> ODD = {"\xC1\x81", "\xF7\xBF\xBF\xBF", "\xED\xA0\x80", "\xE2\x82", "\xC0\xA0"};
            text += choices.one_in(2) ? choices.of(ODD) : std::string(1, static_cast<char>(choices.byte()));
        } else if (choices.one_in(8)) {
            text += choices.of(PARTS);
        } else if (kinds == 3 || choices.one_in(40)) {
            append_utf8(text, choices.of(characters()));
        } else {
            append_utf8(text, kinds > 1 && choices.one_in(6) ? ' ' : 'a' + static_cast<uint32_t>(choices.below(1 + kinds)));
        }
    }
    return text;
}

int32_t random_score(Choices &choices) {
    static const std::vector<int32_t> ODD = {-10000000, -10000000, -20000000, -19999999, -10000001, INT32_MAX, Suffixes::NOT_LOOKED_UP};
    return choices.one_in(8) ? choices.of(ODD) : -static_cast<int32_t>(choices.below(6)) * 10000;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Choices choices(data, size);
    const bool cuts_segments = choices.one_in(2);
    Slow slow;
    Strings strings;
    std::vector<int32_t> scores;
    std::set<std::string> known;
    for (size_t left = choices.below(60); left > 0; --left) {
        const std::string token = random_text(choices, choices.one_in(9) ? 60 : 5, false);
        if (!known.insert(token).second) continue;
        scores.push_back(random_score(choices));
        strings.add(token);
        if (scores.back() == Suffixes::NOT_LOOKED_UP || token.empty()) continue;
        slow.add(characters_of(token), {static_cast<int32_t>(strings.size() - 1), scores.back()});
    }
    std::vector<int32_t> byte_tokens(256);
    for (size_t byte = 0; byte < 256; ++byte) byte_tokens[byte] = FIRST_BYTE + static_cast<int32_t>(byte);
    const size_t offset = choices.below(8), part_size = 1 + choices.below(300);
    const std::string text = random_text(choices, choices.one_in(9) ? 3000 : 200, choices.one_in(2));
    const bool strict_utf8 = choices.one_in(2);
    const PlamoModel model(strings, scores, byte_tokens, cuts_segments, size_t(1) << 20, NO_POLL, strict_utf8);
    compare(model, text, offset, part_size, slow.encode(characters_of(text, strict_utf8), cuts_segments));
    return 0;
}
