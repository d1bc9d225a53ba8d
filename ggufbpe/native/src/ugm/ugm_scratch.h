// The memory of a UGMModel during a call, and what the parts of a divided text have in common.

#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "spans.h"
#include "ugm/ugm_model.h"

namespace ggufbpe {

// That the sums of a text are exact, which is known when all its parts are encoded. Their order does not matter, so every part
// counts as if all others came before it.
class ExactSumCheck {
public:
    // Adds a part. Returns what sums of the text reached at most so far: for the part that ends last, those of all parts.
    double add(double sum, double max_abs_sum) {
        change(sum_, [&](double old) { return old + std::fabs(sum); });
        change(reach_, [&](double old) { return old < max_abs_sum ? max_abs_sum : old; });
        return sum_.load() + reach_.load();
    }

private:
    template <typename Change>
    static void change(std::atomic<double> &value, Change change) {
        double old = value.load();
        while (!value.compare_exchange_weak(old, change(old))) {}
    }

    std::atomic<double> sum_{0}, reach_{0};
};

struct UGMModel::Scratch : CachingModel::Scratch {
    // If spans are wanted: the bytes of the text that each normalized byte, and the next U+2581, stands for.
    struct Sources {
        bool are_wanted = false;
        std::vector<const unsigned char *> starts, ends;
        const unsigned char *space_start = nullptr, *space_end = nullptr, *read = nullptr;
        std::vector<std::pair<size_t, size_t>> path;  // of normalized bytes, from the last token to the first

        // White space that is in no word.
        void skip_to(const unsigned char *word) {
            if (word > read) {
                space_start = space_start ? space_start : read;
                space_end = word;
            }
        }
    };

    std::vector<unsigned char> composed;  // the part that is encoded, if composing changes it
    ChangedText changes;
    std::string normalized;
    Sources sources;
    bool is_prefix_due = false;     // a space is still due before the first character that is not one
    bool is_in_word = false;        // the normalized text does not end with a space
    std::vector<double> sums;       // of the last bytes, in a ring
    std::vector<int32_t> path;      // what ends at each byte: a token, -1 - bytes for an unknown character, or UNREACHED
    std::vector<bool> is_passed;    // whether a path goes through each byte, of those that are followed to where they meet
    std::vector<int32_t> found;     // ids of a word
    size_t unknown = 0;             // characters of it
    double sum = 0;                 // of the text so far, if it is needed
    double max_abs_sum = 0;               // what sums of the part reached at most, whichever path they belong to
    double sum_of_word = 0, max_abs_sum_of_word = 0;
    std::vector<Word> words;

    size_t bytes() const override {
        return CachingModel::Scratch::bytes() + normalized.capacity() + composed.capacity() + sums.capacity() * sizeof(double) +
               (path.capacity() + found.capacity()) * sizeof(int32_t);
    }
};

}  // namespace ggufbpe
