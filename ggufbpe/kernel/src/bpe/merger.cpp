// One word at a time: the shortest way that its length allows.

#include "bpe/merger.h"

#include <algorithm>
#include <stdexcept>

namespace ggufbpe {

void Merger::encode(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const {
    if (may_be_whole(word, size)) {
        scratch.written.resize(std::max(scratch.written.size(), 3 * size + 4));
        const size_t written = write(word, size, scratch.written.data());
        const int64_t id = tokens_->find({scratch.written.data(), written});
        if (id >= 0) {
            scratch.ids.push(static_cast<int32_t>(id));
            return;
        }
    }
    if (is_very_long(size) && merge_in_windows(word, size, scratch, poll)) return;
    if (size > LONGEST_WORD) {
        size_t characters = 0;
        for (size_t i = 0; i < size; ++i) characters += options_.byte_encode || (word[i] & 0xC0) != 0x80;
        if (characters > LONGEST_WORD) {
            throw std::length_error("the pre-tokenizer leaves a word of " + std::to_string(characters) +
                                    " characters, which takes " + std::to_string(60 * characters >> 30) +
                                    " GiB to merge; the limit is " + std::to_string(LONGEST_WORD));
        }
    }
    const size_t count = merge_long(word, size, scratch, poll);
    append_ids({word, size}, scratch.symbols.data(), scratch.before.data(), count, scratch.ids);
}

size_t Merger::count(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const {
    scratch.ids.clear();
    scratch.dropped = 0;
    scratch.counts = true;
    struct Reset {
        bool &counts;
        ~Reset() { counts = false; }
    } reset{scratch.counts};
    encode(word, size, scratch, poll);
    return scratch.dropped + scratch.ids.size();
}

}  // namespace ggufbpe
