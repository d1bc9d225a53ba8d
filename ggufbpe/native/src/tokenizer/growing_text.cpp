#include "tokenizer/growing_text.h"

#include <algorithm>
#include <utility>

namespace ggufbpe {

namespace {

constexpr size_t OPEN = 384;  // bytes; so many open ones, and those that decide about a place, are divided

}  // namespace

GrowingText::GrowingText(const Vocabulary &vocabulary, const Encoder &encoder, const Splitter *splitter, bool add_special,
                         bool parse_special)
    : encoder_(encoder), places_(vocabulary, encoder, splitter, parse_special), parse_special_(parse_special) {
    if (add_special) {
        ids_ = vocabulary.before();
        behind_ = vocabulary.behind();
    }
    settled_ = ids_.size();
    ids_.insert(ids_.end(), behind_.begin(), behind_.end());
}

Ids GrowingText::encode(const std::string &text, size_t from, bool continues, const Poll &poll) const {
    Ids ids;
    const auto *data = reinterpret_cast<const unsigned char *>(text.data());
    encoder_.encode({data + from, text.size() - from, false}, {false, parse_special_, continues}, 1, ids, poll);
    return ids;
}

GrowingText::Change GrowingText::append(const char *text, size_t size, const Poll &poll) {
    std::string open = open_;
    open.append(text, size);
    const Ids made = encode(open, 0, continues_, poll);
    size_t place = 0, still_open = made.size();
    if (open.size() > places_.reach() + OPEN) {
        const auto *data = reinterpret_cast<const unsigned char *>(open.data());
        place = places_.last(data, open.size(), open.size() - places_.reach(), poll);
        if (place) still_open = encode(open, place, true, poll).size();
    }
    std::vector<int32_t> end(made.data(), made.data() + made.size());
    end.insert(end.end(), behind_.begin(), behind_.end());
    const auto old = ids_.begin() + static_cast<std::ptrdiff_t>(settled_);
    const size_t old_count = ids_.size() - settled_, most = std::min(old_count, end.size());
    const size_t same = static_cast<size_t>(std::mismatch(end.begin(), end.begin() + static_cast<std::ptrdiff_t>(most), old).first - end.begin());
    size_t tail = 0;
    while (tail < most - same && end[end.size() - 1 - tail] == ids_[ids_.size() - 1 - tail]) ++tail;
    const Change change{settled_ + same, old_count - same - tail, end.size() - same - tail};
    const size_t needed = settled_ + end.size();
    if (ids_.capacity() < needed) ids_.reserve(std::max(needed, 2 * ids_.capacity()));  // nothing fails from here on
    ids_.resize(settled_);
    ids_.insert(ids_.end(), end.begin(), end.end());
    settled_ += made.size() - still_open;
    continues_ = continues_ || place > 0;
    open.erase(0, place);
    open_ = std::move(open);
    return change;
}

}  // namespace ggufbpe
