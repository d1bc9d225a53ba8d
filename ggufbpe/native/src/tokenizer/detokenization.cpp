#include "tokenizer/detokenization.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "vocabulary/pieces.h"

namespace ggufbpe {

namespace {

// `text` without the spaces at which is_dropped(place) holds.
template <typename IsDropped>
std::string without_spaces(const std::string &text, IsDropped is_dropped) {
    std::string found;
    found.reserve(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != ' ' || !is_dropped(i)) found += text[i];
    }
    return found;
}

// llama.cpp's clean-up of spaces: before marks, around apostrophes, before suffixes.
std::string clean(std::string text) {
    const auto at = [&](size_t i) { return i < text.size() ? text[i] : '\0'; };
    text = without_spaces(text, [&](size_t i) { return at(i + 1) == '?' || at(i + 1) == '!' || at(i + 1) == '.' || at(i + 1) == ','; });
    std::string joined;
    for (size_t i = 0; i < text.size(); ++i) {
        if (at(i) == ' ' && at(i + 1) == '\'' && at(i + 2) == ' ') {
            joined += '\'';
            i += 2;
        } else {
            joined += text[i];
        }
    }
    text = std::move(joined);
    return without_spaces(text, [&](size_t i) {
        if (at(i + 1) != '\'') return false;
        return at(i + 2) == 's' || at(i + 2) == 'm' || ((at(i + 2) == 'r' || at(i + 2) == 'v') && at(i + 3) == 'e');
    });
}

// Where a tail begins that later text could still change: one or two spaces, an apostrophe, apostrophes and spaces, r or v.
size_t undecided_from(const std::string &text) {
    const size_t size = text.size();
    size_t end = size;
    if (end && (text[end - 1] == 'r' || text[end - 1] == 'v')) --end;
    size_t first = end;
    while (first && (text[first - 1] == ' ' || text[first - 1] == '\'')) --first;
    for (size_t at = first; at < end; ++at) {
        if (text[at] != ' ') continue;
        const size_t next = at + 1 < end && text[at + 1] == ' ' ? at + 2 : at + 1;
        if (next == size || (next < end && text[next] == '\'')) return at;
    }
    return size;
}

// How many bytes at `at` are a character, or, negated, are none though they begin like one; 0 if more could make them one.
int character_length(const std::string &bytes, size_t at) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const unsigned char lead = byte(at);
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4) return -1;
    const int size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    for (int i = 1; i < size; ++i) {
        if (at + static_cast<size_t>(i) == bytes.size()) return 0;
        const unsigned char next = byte(at + static_cast<size_t>(i));
        const unsigned char low = i > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        const unsigned char high = i > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        if (next < low || next > high) return -i;
    }
    return size;
}

}  // namespace

void check_id(const Vocabulary &vocabulary, int32_t id) {
    if (id >= 0 && static_cast<size_t>(id) < vocabulary.size()) return;
    throw NoSuchId("token id " + std::to_string(id) + " is out of range: the vocabulary has ids 0 to " +
                   std::to_string(vocabulary.size() - 1));
}

std::string detokenize(const Vocabulary &vocabulary, const int32_t *ids, size_t count, DecodeOptions options, const Poll &poll) {
    const int32_t *end = ids + count;
    bool removes_space = vocabulary.add_space_prefix;
    if (options.remove_special && vocabulary.add_bos && ids < end && *ids == vocabulary.special_ids[BOS]) {
        removes_space = false;
        ++ids;
    }
    if (options.remove_special && vocabulary.add_eos && ids < end && end[-1] == vocabulary.special_ids[EOS]) --end;
    std::string text;
    Pace pace(poll);
    for (const int32_t *id = ids; id < end; ++id) {
        check_id(vocabulary, *id);
        const std::string piece = piece_of(vocabulary, *id, options.unparse_special);
        pace.count(piece.size() + 16);
        text.append(piece, removes_space && id == ids && piece.substr(0, 1) == " ");
    }
    return options.clean_spaces && vocabulary.pre.clean_spaces ? clean(std::move(text)) : text;
}

DecodeStream::DecodeStream(const Vocabulary &vocabulary, DecodeOptions options)
    : vocabulary_(&vocabulary), options_(options), removes_space_(vocabulary.add_space_prefix) {
    options_.clean_spaces = options.clean_spaces && vocabulary.pre.clean_spaces;
}

std::string DecodeStream::push(int32_t id) {
    check_id(*vocabulary_, id);
    const auto is_dropped = [&](bool is_added, SpecialId which) {
        return options_.remove_special && is_added && id == vocabulary_->special_ids[which];
    };
    if (!std::exchange(has_begun_, true) && is_dropped(vocabulary_->add_bos, BOS)) {
        removes_space_ = false;
        return {};
    }
    std::string text;
    if (std::exchange(holds_end_, false)) text = add(vocabulary_->special_ids[EOS]);
    if (is_dropped(vocabulary_->add_eos, EOS)) {
        holds_end_ = true;
        return text;
    }
    return text + add(id);
}

std::string DecodeStream::finish() {
    const std::string text = decoded(options_.clean_spaces ? clean(undecided_) : undecided_, true);
    *this = DecodeStream(*vocabulary_, options_);
    return text;
}

std::string DecodeStream::add(int32_t id) {
    std::string piece = piece_of(*vocabulary_, id, options_.unparse_special);
    if (std::exchange(removes_space_, false) && piece.substr(0, 1) == " ") piece.erase(0, 1);
    if (!options_.clean_spaces) return decoded(piece, false);
    undecided_ += piece;
    const size_t cut = undecided_from(undecided_);
    const std::string settled = undecided_.substr(0, cut);
    undecided_.erase(0, cut);
    return decoded(clean(settled), false);
}

// Bytes as UTF-8, in which those that form no character are U+FFFD; at most the beginning of one is kept back.
std::string DecodeStream::decoded(const std::string &bytes, bool is_end) {
    const std::string all = std::exchange(broken_, {}) + bytes;
    std::string text;
    for (size_t at = 0; at < all.size();) {
        int length = character_length(all, at);
        if (length == 0 && !is_end) {
            broken_ = all.substr(at);
            break;
        }
        if (length > 0) {
            text.append(all, at, static_cast<size_t>(length));
        } else {
            text += "\xEF\xBF\xBD";
            length = length ? -length : static_cast<int>(all.size() - at);
        }
        at += static_cast<size_t>(length);
    }
    return text;
}

}  // namespace ggufbpe
