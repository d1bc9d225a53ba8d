// The best path through the lattice of a word's tokens.
//
//     normalized word -> the best path to each byte -> followed from the end -> ids
//
// Words of more than a few pages are taken in windows from left to right, so that they need the memory of one window only,
// and a character costs the same in a gigabyte as in a page.

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <string_view>

#include "ugm/ugm_scratch.h"

#if !defined(GGUFBPE_WINDOW)
#define GGUFBPE_WINDOW (1 << 14)  // tests take a short one
#endif

namespace ggufbpe {

namespace {

constexpr size_t WINDOW = GGUFBPE_WINDOW;  // bytes; a longer word is taken in windows
constexpr size_t WORTH_ROOM = 64 * WINDOW;  // bytes without a place where paths meet
constexpr int32_t UNREACHED = INT32_MIN;   // in a path: nothing leads here

}  // namespace

// The ids of a text that follows others of this sum, also in `scratch.found` unless it is taken in windows; and the sum after it.
void UGMModel::encode_word(const Word &word, double sum, Scratch &scratch, Sink &ids, Pace &pace) const {
    begin_word(word, scratch);
    // Where scores are not finite, a place may be unreached, and then all text before it is left out.
    const bool is_long = word.size > std::max(WINDOW, size_t(WordTable::LONGEST));
    if (is_long && largest_ > 0) return encode_in_windows(word, sum, scratch, ids, pace);
    normalize(word.data, word.data + word.size, SIZE_MAX, scratch, pace);
    find_path(sum, scratch, pace);
    emit(scratch.found.data(), scratch.found.size(), ids);
    if (ids.spans()) append_path(scratch.normalized.size(), false, scratch, *ids.spans(), pace);
}

// Whatever follows, the best path goes on from one of the last bytes. All paths to these have the same beginning, up to the
// place where they meet: the tokens before it are certain.
void UGMModel::encode_in_windows(const Word &word, double sum, Scratch &scratch, Sink &ids, Pace &pace) const {
    const unsigned char *p = word.data, *const end = word.data + word.size;
    std::string &text = scratch.normalized;
    begin_path(sum, SIZE_MAX, scratch);
    bool was_unknown = false;
    size_t base = 0, at = 0;  // of the window: where it begins in the word; where its paths go on
    for (;;) {
        p = normalize(p, end, std::max(text.size() + WINDOW, 2 * text.size()), scratch, pace);
        const bool is_last = p == end;
        scratch.path.resize(text.size() + 1, UNREACHED);
        const size_t stop = is_last ? text.size() : text.size() - std::min(text.size(), ring_);
        at = extend_path(at, stop, base, &trie(pace.poll()), scratch, pace);
        const size_t certain = is_last ? text.size() : meeting_place(at, scratch, pace);
        follow_path(certain, scratch, pace);
        // An unknown token stands for all unknown characters side by side.
        const size_t known = was_unknown && !scratch.found.empty() && scratch.found[0] == options_.unknown;
        emit(scratch.found.data() + known, scratch.found.size() - known, ids);
        if (ids.spans()) append_path(certain, known, scratch, *ids.spans(), pace);
        if (!scratch.found.empty()) was_unknown = scratch.found.back() == options_.unknown;
        base += certain;
        at -= certain;
        if (is_last) break;
        if (!certain && text.size() >= WORTH_ROOM) {  // as in a run of one character: fresh memory is dear, so copy none of it
            const size_t room = static_cast<size_t>(double(text.size()) * double(word.size) / double(p - word.data));
            text.reserve(room);
            scratch.path.reserve(room);
        }
        text.erase(0, certain);
        scratch.path.erase(scratch.path.begin(), scratch.path.begin() + static_cast<ptrdiff_t>(certain));
        if (!ids.spans()) continue;
        for (auto *sources : {&scratch.sources.starts, &scratch.sources.ends}) {
            sources->erase(sources->begin(), sources->begin() + static_cast<ptrdiff_t>(certain));
        }
    }
    scratch.sum_of_word = scratch.sums[base & (ring_ - 1)];
}

// A text shorter than the longest token, which a file may make megabytes long, needs no room for all of it.
void UGMModel::begin_path(double sum, size_t size, Scratch &scratch) const {
    scratch.sums.assign(size < ring_ ? size + 1 : ring_, -DBL_MAX);
    scratch.sums[0] = sum;
    scratch.max_abs_sum_of_word = 0;
    scratch.path.assign(1, UNREACHED);
}

// Continues all paths from those to the place `from` to those to `stop`, or the first character's end after it, in a text that
// begins `base` bytes after its word; returns where they go on. Without a trie, all parts of the text are looked up.
size_t UGMModel::extend_path(size_t from, size_t stop, size_t base, const TokenTrie *trie, Scratch &scratch, Pace &pace) const {
    const auto *text = reinterpret_cast<const unsigned char *>(scratch.normalized.data());
    const size_t size = scratch.normalized.size(), mask = ring_ - 1;
    double *const sums = scratch.sums.data();
    int32_t *const path = scratch.path.data();
    size_t at = from;
    double largest = 0;  // of the sums that paths go on from
    for (size_t behind; at < stop; at = behind) {
        behind = std::min(at + code_units(text[at]), size);
        const double so_far = sums[(base + at) & mask];
        largest = std::max(largest, std::fabs(so_far));
        bool is_found = false;
        size_t end = at;
        const auto take = [&](int32_t token) {  // from `at` to `end`
            is_found = is_found || end == behind;
            const double here = so_far + double(scores_[static_cast<size_t>(token)]);
            double &sum = sums[(base + end) & mask];
            if (here > sum) {
                sum = here;
                path[end] = token;
            }
        };
        if (trie) {
            TokenTrie::Walk walk(*trie);
            while (end < size && walk.step(text[end])) {
                ++end;
                if (walk.is_at_token()) take(trie->token(walk));
            }
        } else {
            const size_t most = std::min(size, at + longest_);
            while (end < most) {
                ++end;
                const int64_t token = tokens_->find(std::string_view(scratch.normalized).substr(at, end - at));
                if (token != Strings::NOT_FOUND && lengths_[static_cast<size_t>(token)]) take(static_cast<int32_t>(token));
            }
        }
        double &sum_behind = sums[(base + behind) & mask];
        if (!is_found && so_far + double(unknown_score_) > sum_behind) {
            sum_behind = so_far + double(unknown_score_);
            path[behind] = static_cast<int32_t>(-1 - int32_t(behind - at));
        }
        for (size_t i = at; i < behind; ++i) sums[(base + i) & mask] = -DBL_MAX;  // for the text `ring_` bytes later
        pace.count(end - at + 1);
    }
    scratch.max_abs_sum_of_word = std::max(scratch.max_abs_sum_of_word, largest + largest_);
    return at;
}

// Where a token begins that ends at `end`.
size_t UGMModel::former_place(int32_t step, size_t end) const {
    if (step == UNREACHED) return 0;
    return end - (step < 0 ? static_cast<size_t>(-1 - step) : lengths_[static_cast<size_t>(step)]);
}

// The last place that all paths go through which may still be continued: those to `from`, and to places after it.
size_t UGMModel::meeting_place(size_t from, Scratch &scratch, Pace &pace) const {
    const std::vector<int32_t> &path = scratch.path;
    std::vector<bool> &is_passed = scratch.is_passed;
    is_passed.assign(path.size(), false);
    size_t paths = 0, last = from;
    for (size_t at = from; at < path.size(); ++at) {
        if (at > from && path[at] == UNREACHED) continue;
        is_passed[at] = true;
        last = at;
        ++paths;
    }
    size_t at = last;
    for (; paths > 1; --at) {
        pace.count(1);
        if (!is_passed[at]) continue;
        const size_t former = former_place(path[at], at);
        paths -= is_passed[former];
        is_passed[former] = true;
    }
    while (!is_passed[at]) --at;
    return at;
}

void UGMModel::find_path(double sum, Scratch &scratch, Pace &pace) const {
    const size_t size = scratch.normalized.size();
    begin_path(sum, size, scratch);
    scratch.path.resize(size + 1, UNREACHED);
    extend_path(0, size, 0, trie_for(size, pace.poll()), scratch, pace);
    scratch.sum_of_word = scratch.sums[size & (ring_ - 1)];
    follow_path(size, scratch, pace);
}

// The ids of the best path to `end`, into `scratch.found`, and its unknown characters.
void UGMModel::follow_path(size_t end, Scratch &scratch, Pace &pace) const {
    std::vector<int32_t> &found = scratch.found;
    found.clear();
    scratch.unknown = 0;
    bool was_unknown = false;
    while (end) {
        const int32_t step = scratch.path[end];
        scratch.unknown += step < 0;
        const int32_t token = step < 0 ? options_.unknown : step;
        const bool is_unknown = token == options_.unknown;
        if (!(was_unknown && is_unknown)) found.push_back(token);
        was_unknown = is_unknown;
        end = former_place(step, end);
        pace.count(1);
    }
    std::reverse(found.begin(), found.end());
}

// The spans of the same path. If it `continues` an unknown token, that one's span becomes longer.
void UGMModel::append_path(size_t end, bool continues, Scratch &scratch, Spans &spans, Pace &pace) const {
    auto &path = scratch.sources.path;
    path.clear();
    bool was_unknown = false;
    while (end) {
        const int32_t step = scratch.path[end];
        const bool is_unknown = step < 0 || step == options_.unknown;
        const size_t start = former_place(step, end);
        if (was_unknown && is_unknown) {
            path.back().first = start;
        } else {
            path.emplace_back(start, end);
        }
        was_unknown = is_unknown;
        end = start;
        pace.count(1);
    }
    for (auto token = path.rbegin(); token != path.rend(); ++token) {
        const unsigned char *const start = scratch.sources.starts[token->first];
        const unsigned char *const stop = scratch.sources.ends[token->second - 1];
        if (continues) {
            spans.data()[spans.size() - 1].end = stop - spans.origin;
            continues = false;
            continue;
        }
        spans.push(start - spans.origin, stop - spans.origin);
    }
}

}  // namespace ggufbpe
