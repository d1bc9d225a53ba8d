#include "special.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "machine.h"
#include "simd.h"

namespace ggufbpe {

namespace {

using Item = std::pair<size_t, size_t>;

// ---- the order of libstdc++'s std::sort, whatever library this is built with ---------------------------------------

constexpr size_t INSERTION_SORT_UP_TO = 16;

struct Before {
    bool operator()(const Item &a, const Item &b) const {
        pace.count(1);
        return a.first > b.first;
    }
    Pace &pace;
};

// Lets the hole sink to the bottom, then the value rise from there.
void sift(Item *heap, size_t hole, size_t size, Item value, Before before) {
    const size_t top = hole;
    size_t child = hole;
    while (child < (size - 1) / 2) {
        child = 2 * (child + 1);
        if (before(heap[child], heap[child - 1])) --child;
        heap[hole] = heap[child];
        hole = child;
    }
    if (size % 2 == 0 && child == (size - 2) / 2) {
        child = 2 * child + 1;
        heap[hole] = heap[child];
        hole = child;
    }
    while (hole > top && before(heap[(hole - 1) / 2], value)) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = value;
}

void heap_sort(Item *heap, size_t size, Before before) {
    for (size_t parent = (size - 2) / 2 + 1; parent-- > 0;) sift(heap, parent, size, heap[parent], before);
    for (size_t end = size - 1; end > 0; --end) {
        Item value = heap[end];
        heap[end] = heap[0];
        sift(heap, 0, end, value, before);
    }
}

// Partitions [first, last) around the median of three; returns where the second part begins.
Item *quicksort_partition(Item *first, Item *last, Before before) {
    Item *a = first + 1, *b = first + (last - first) / 2, *c = last - 1;
    Item *median = before(*a, *b) ? (before(*b, *c) ? b : before(*a, *c) ? c : a)
                                  : (before(*a, *c) ? a : before(*b, *c) ? c : b);
    std::swap(*first, *median);
    Item *low = first + 1, *high = last;
    while (true) {
        while (before(*low, *first)) ++low;
        --high;
        while (before(*first, *high)) --high;
        if (low >= high) return low;
        std::swap(*low, *high);
        ++low;
    }
}

}  // namespace

void sort_longest_first(std::vector<Item> &items, Pace &pace) {
    const Before before{pace};
    struct Range {
        size_t first, last;
        int depth;
    };
    int depth = 0;
    for (size_t size = items.size(); size > 1; size >>= 1) depth += 2;
    std::vector<Range> ranges{{0, items.size(), depth}};
    while (!ranges.empty()) {
        Range range = ranges.back();
        ranges.pop_back();
        while (range.last - range.first > INSERTION_SORT_UP_TO) {
            if (range.depth == 0) {
                heap_sort(items.data() + range.first, range.last - range.first, before);
                break;
            }
            --range.depth;
            Item *const second = quicksort_partition(items.data() + range.first, items.data() + range.last, before);
            const size_t cut = static_cast<size_t>(second - items.data());
            ranges.push_back({cut, range.last, range.depth});
            range.last = cut;
        }
    }
    std::stable_sort(items.begin(), items.end(), before);  // as insertion sort is
}

// ---- the tokens searched for --------------------------------------------------------------------------------------

Partition::Partition(std::shared_ptr<const Strings> strings, const std::vector<SpecialToken> &special, bool parse_special,
                     const Poll &poll)
    : strings_(std::move(strings)), pairs_(1024) {
    Pace pace(poll);
    auto text_of = [&](const SpecialToken &token) { return (*strings_)[static_cast<size_t>(token.id)]; };
    std::vector<Item> order;
    order.reserve(special.size());
    for (size_t i = 0; i < special.size(); ++i) order.emplace_back(text_of(special[i]).size(), i);
    sort_longest_first(order, pace);
    for (const auto &[length, index] : order) {
        const SpecialToken &token = special[index];
        if (length == 0 || (token.hidden && !parse_special)) continue;
        tokens_.push_back({text_of(token), token.id, token.strips_left, token.strips_right, NONE});
        strips_ = strips_ || token.strips_left || token.strips_right;
        longest_ = std::max(longest_, length);
    }
    build_trie(pace);
    learn_beginnings();
    learn_runs();
}

// From the root on, the tokens that share all bytes up to a node are divided by the next byte.
void Partition::build_trie(Pace &pace) {
    constexpr size_t FEW = 12;  // tokens that are divided by an insertion sort
    std::vector<uint32_t> ranks(tokens_.size()), dealt(tokens_.size());
    std::iota(ranks.begin(), ranks.end(), 0u);
    // The tokens ranks[first] up to ranks[last] share the first `depth` bytes, which lead to `node`; `above` is the longest
    // token that is a proper prefix of these.
    struct TrieTask {
        uint32_t node;
        size_t first, last, depth;
        uint32_t above;
    };
    std::vector<TrieTask> tasks{{0, 0, ranks.size(), 0, NONE}};
    auto append = [&](const Node &node, unsigned char branch) {
        nodes_.push_back(node);
        branches_.push_back(branch);
    };
    nodes_.reserve(tokens_.size() + tokens_.size() / 4 + 1);
    branches_.reserve(nodes_.capacity());
    append({"", 0, 0, 0, NONE}, 0);
    for (size_t i = 0; i < tasks.size(); ++i) {
        const TrieTask task = tasks[i];  // in C++17 a lambda cannot capture what a structured binding names
        const uint32_t node = task.node;
        const size_t last = task.last, depth = task.depth;
        size_t first = task.first;
        uint32_t above = task.above;
        auto text = [&](size_t place) { return tokens_[ranks[place]].text; };
        auto branch_of = [&](size_t place) {  // 0 where the token ends
            return text(place).size() == depth ? 0u : 1u + static_cast<unsigned char>(text(place)[depth]);
        };
        if (last - first <= FEW) {
            for (size_t k = first + 1; k < last; ++k) {
                for (size_t j = k; j > first && branch_of(j - 1) > branch_of(j); --j) std::swap(ranks[j - 1], ranks[j]);
            }
        } else {
            uint32_t places[258] = {};
            for (size_t k = first; k < last; ++k) ++places[branch_of(k) + 1];
            for (size_t k = 1; k < 258; ++k) places[k] += places[k - 1];
            for (size_t k = first; k < last; ++k) dealt[first + places[branch_of(k)]++] = ranks[k];
            std::copy(&dealt[first], &dealt[first] + (last - first), &ranks[first]);
        }
        if (first < last && branch_of(first) == 0) {
            nodes_[node].rank = ranks[first];  // of equal ones, the first counts
            tokens_[ranks[first]].shorter = above;
            above = ranks[first];
            while (first < last && branch_of(first) == 0) ++first;
        }
        nodes_[node].first_child = static_cast<uint32_t>(nodes_.size());
        for (size_t next = first; first < last; first = next) {
            const std::string_view one = text(first);
            while (next < last && text(next)[depth] == one[depth]) ++next;
            // Byte by byte through all of them: each byte of a token is looked at once in the whole trie.
            size_t common = next - first == 1 ? one.size() : depth + 1;
            auto all_share_the_next = [&] {
                size_t k = first + 1;
                while (k < next && text(k).size() > common && text(k)[common] == one[common]) ++k;
                pace.count(k - first);
                return k == next;
            };
            while (common < one.size() && all_share_the_next()) ++common;
            pace.count(4 + next - first);
            const bool is_one = next - first == 1;
            if (is_one) {
                tokens_[ranks[first]].shorter = above;
            } else {
                tasks.push_back({static_cast<uint32_t>(nodes_.size()), first, next, common, above});
            }
            append({one.data() + depth + 1, static_cast<uint32_t>(common - depth - 1), 0, 0, is_one ? ranks[first] : NONE},
                   static_cast<unsigned char>(one[depth]));
            ++nodes_[node].children;
        }
    }
    const Node &root = nodes_[0];
    for (uint32_t i = 0; i < root.children; ++i) by_first_byte_[branches_[root.first_child + i]] = root.first_child + i;
}

void Partition::learn_beginnings() {
    // Eight sets of pairs, each the product of its first and second bytes: first bytes are assigned to them in turn.
    int set_of_first[256];
    std::fill(std::begin(set_of_first), std::end(set_of_first), -1);
    int sets = 0;
    for (const Token &token : tokens_) {
        const unsigned first = static_cast<unsigned char>(token.text[0]);
        if (set_of_first[first] < 0) set_of_first[first] = sets++ % 8;
        const uint8_t bit = static_cast<uint8_t>(1 << set_of_first[first]);
        low_first_[first & 15] |= bit;
        high_first_[first >> 4] |= bit;
        auto put = [&](unsigned second) {
            const unsigned pair = first << 8 | second;
            pairs_[pair >> 6] |= uint64_t(1) << (pair & 63);
            low_second_[second & 15] |= bit;
            high_second_[second >> 4] |= bit;
        };
        if (token.text.size() > 1) {
            put(static_cast<unsigned char>(token.text[1]));
        } else {
            for (unsigned second = 0; second < 256; ++second) put(second);
        }
    }
}

// Vocabularies of code have a token for each number of spaces.
void Partition::learn_runs() {
    const auto run_of = [](const Token &token) { return std::min(token.text.find_first_not_of(token.text[0]), token.text.size()); };
    for (Token &token : tokens_) {
        const size_t run = run_of(token);
        token.is_run = run > 1 && run == token.text.size();
        if (token.is_run) runs_.resize(256);
    }
    if (runs_.empty()) return;
    for (uint32_t rank = 0; rank < tokens_.size(); ++rank) {
        const std::string_view text = tokens_[rank].text;
        const size_t run = run_of(tokens_[rank]);
        Runs &runs = runs_[static_cast<unsigned char>(text[0])];
        if (runs.ranks.size() <= run) runs.ranks.resize(run + 1, NONE);
        if (run == text.size()) {
            if (runs.ranks[run] == NONE) runs.ranks[run] = rank;  // of equal ones, the first counts
        } else {
            const auto after = static_cast<unsigned char>(text[run]);
            runs.after[after >> 6] |= uint64_t(1) << (after & 63);
        }
    }
    for (Runs &runs : runs_) {
        for (size_t run = 1; run < runs.ranks.size(); ++run) {
            if (runs.ranks[run] == NONE) runs.ranks[run] = runs.ranks[run - 1];
        }
    }
}

// In a match that is a run of one byte only shorter runs can begin, which a Cutter would discard, unless the text goes on with that
// byte or with one that follows such a run in a token. Where tokens strip white space, they may take a part of a run.
bool Partition::holds_what_begins_in_it(const Token &token, const unsigned char *end, const unsigned char *text_end) const {
    if (!token.is_run || strips_ || (end < text_end && *end == end[-1])) return false;
    return end == text_end || !runs_[end[-1]].go_on_with(*end);
}

// ---- the search ---------------------------------------------------------------------------------------------------

namespace {

#if GGUFBPE_VECTORS
WITH_AVX2 size_t find_candidate(const unsigned char *text, size_t size, size_t from, const uint8_t *tables[4]) {
    const Shuffle low_first(tables[0]), high_first(tables[1]), low_second(tables[2]), high_second(tables[3]);
    for (; from < size; from += VECTOR_BYTES) {
        const unsigned char *here = text + from;
        unsigned char rest[VECTOR_BYTES + 1];  // the last bytes, and zeros after them
        if (size - from < sizeof rest) {
            std::memset(rest, 0, sizeof rest);
            here = static_cast<unsigned char *>(std::memcpy(rest, here, size - from));
        }
        const Bytes first = load(here), second = load(here + 1);
        const Bytes found = low_first(lower_nibbles(first)) & high_first(upper_nibbles(first)) &
                            low_second(lower_nibbles(second)) & high_second(upper_nibbles(second));
        const uint32_t candidates = ~highest_bits(is_zero(found));
        if (candidates) return from + lowest_bit(candidates);
    }
    return size;
}
#endif

// How many bytes from the first one on, at most `most`, are equal to it.
size_t run_length(const unsigned char *here, size_t most) {
    const uint64_t repeated = *here * 0x0101010101010101u;
    size_t run = 1;
    while (run + 8 <= most && eight_bytes(here + run) == repeated) run += 8;
    while (run < most && here[run] == *here) ++run;
    return run;
}

}  // namespace

// The first place from `from` up to `to` where a token may begin; `to` if there is none.
size_t Partition::next_candidate(const unsigned char *text, size_t size, size_t from, size_t to) const {
    while (from < to) {
#if GGUFBPE_VECTORS
        if (has_vectors()) {
            const uint8_t *tables[4] = {low_first_, high_first_, low_second_, high_second_};
            from = find_candidate(text, std::min(size, to + 1), from, tables);
        }
#endif
        if (from >= to) break;
        if (by_first_byte_[text[from]]) {
            const uint16_t pair = static_cast<uint16_t>(text[from] << 8 | (from + 1 < size ? text[from + 1] : 0));
            if (pairs_[pair >> 6] >> (pair & 63) & 1) return from;
        }
        ++from;
    }
    return to;
}

// The rank of the longest token that begins `here`, or NONE.
uint32_t Partition::longest_at(const unsigned char *here, const unsigned char *end, Pace &pace) const {
    if (!runs_.empty() && end - here > 1 && here[1] == *here) {
        const Runs &runs = runs_[*here];
        const size_t longest = runs.ranks.size() - 1, run = run_length(here, std::min(static_cast<size_t>(end - here), longest + 1));
        pace.count(1 + run / 8);
        if (run > longest) return runs.ranks[longest];
        if (here + run == end || !runs.go_on_with(here[run])) return runs.ranks[run];
    }
    const unsigned char *begun = here;
    size_t compared = 0;
    uint32_t longest = NONE;
    for (uint32_t at = by_first_byte_[*here]; at;) {
        const Node &node = nodes_[at];
        ++here;
        if (const size_t size = node.label_size) {
            compared += size / 32;
            if (static_cast<size_t>(end - here) < size || std::memcmp(here, node.label, size)) break;
            here += size;
        }
        if (node.rank != NONE) longest = node.rank;
        if (here == end) break;
        at = child_of(node, *here);
    }
    pace.count(static_cast<size_t>(here - begun) + compared);
    return longest;
}

// The child that a byte leads to, 0 for none.
uint32_t Partition::child_of(const Node &node, unsigned char byte) const {
    const unsigned char *branches = branches_.data() + node.first_child;
    constexpr uint32_t FEW = 4;
    if (node.children > FEW) {
        const void *found = std::memchr(branches, byte, node.children);
        return found ? node.first_child + static_cast<uint32_t>(static_cast<const unsigned char *>(found) - branches) : 0;
    }
    for (uint32_t i = 0; i < node.children; ++i) {
        if (branches[i] == byte) return node.first_child + i;
    }
    return 0;
}

void Partition::split(const unsigned char *text, size_t size, std::vector<Fragment> &fragments,
                      const std::function<void()> &take, const Poll &poll) const {
    Pace pace(poll);
    Cutter cutter(*this, text, size);
    std::vector<Match> matches;
    for (size_t from = 0, end; from < size; from = end) {
        end = std::min(from + STRETCH, size);
        find(text, size, from, end, Places::needed, matches, pace);
        cutter.add(matches, fragments, pace);
        if (end == size) cutter.finish(fragments, pace);
        if (fragments.empty()) continue;
        take();
        fragments.clear();
    }
}

void Partition::find(const unsigned char *text, size_t size, size_t from, size_t to, Places places,
                     std::vector<Match> &matches, Pace &pace) const {
    if (tokens_.empty()) return;
    // Up to where a token may reach that begins before a place.
    size_t reached = from > 0 ? from + longest_ : 0;
    for (size_t at = from; at < to; ++at) {
        const size_t begun = at;
        at = next_candidate(text, size, at, std::min(to, at + Pace::STEPS));  // or where it stops for the pace
        pace.count(at - begun);
        if (at >= to) break;
        const uint32_t rank = longest_at(text + at, text + size, pace);
        if (rank == NONE) continue;
        matches.push_back({at, rank});
        const Token &token = tokens_[rank];
        const size_t end = at + token.text.size();
        if (places == Places::needed && at >= reached && holds_what_begins_in_it(token, text + end, text + size)) at = end - 1;
        reached = std::max(reached, end);
    }
}

// ---- cutting out what was found -----------------------------------------------------------------------------------

void Partition::Cutter::put(const Fragment &fragment, std::vector<Fragment> &fragments) {
    if (fragment.start >= fragment.end) return;
    if (fragment.token < 0 && plain_.end == fragment.start && plain_.start < plain_.end) {
        plain_.end = fragment.end;  // cut only because a region ended
        return;
    }
    if (plain_.start < plain_.end) fragments.push_back(plain_);
    plain_ = {-1, 0, 0};
    if (fragment.token < 0) {
        plain_ = fragment;
    } else {
        fragments.push_back(fragment);
    }
}

// The text that a match may touch: itself, and white space that one of its tokens may strip.
std::pair<size_t, size_t> Partition::Cutter::touched_range(const Match &match, Pace &pace) {
    const size_t end = match.at + partition_.length(match.rank);
    if (!partition_.strips_) return {match.at, end};
    const auto find_run = [&](size_t position) {
        if (position >= spaces_start_ && position <= spaces_end_ && spaces_start_ < spaces_end_) return;
        spaces_start_ = spaces_end_ = position;
        for (; spaces_start_ > 0 && is_c_space(text_[spaces_start_ - 1]); pace.count(1)) --spaces_start_;
        for (; spaces_end_ < size_ && is_c_space(text_[spaces_end_]); pace.count(1)) ++spaces_end_;
    };
    find_run(match.at);
    const size_t start = spaces_start_;
    find_run(end);
    return {start, spaces_end_};
}

void Partition::Cutter::add(std::vector<Match> &found, std::vector<Fragment> &fragments, Pace &pace) {
    if (matches_.empty()) {
        matches_.swap(found);
    } else {
        matches_.insert(matches_.end(), found.begin(), found.end());
        found.clear();
    }
    Match *first = matches_.data(), *const all_end = first + matches_.size();
    for (Match *next = first + seen_; next < all_end; ++next) {
        const auto [from, to] = touched_range(*next, pace);
        pace.count(4);
        if (next > first && from < end_) {
            end_ = std::max(end_, to);
            continue;
        }
        if (next > first) end_region(first, next, fragments, pace);
        first = next;
        start_ = from;
        end_ = to;
    }
    matches_.erase(matches_.begin(), matches_.begin() + (first - matches_.data()));
    seen_ = matches_.size();
}

void Partition::Cutter::finish(std::vector<Fragment> &fragments, Pace &pace) {
    if (!matches_.empty()) end_region(matches_.data(), matches_.data() + matches_.size(), fragments, pace);
    put({-1, done_, size_}, fragments);
    if (plain_.start < plain_.end) fragments.push_back(plain_);
}

void Partition::Cutter::end_region(Match *first, Match *end, std::vector<Fragment> &fragments, Pace &pace) {
    put({-1, done_, start_}, fragments);
    const Token &token = partition_.tokens_[first->rank];
    if (!partition_.strips_ && end_ - start_ == token.text.size()) {  // others that begin in it are shorter
        put({token.id, start_, end_}, fragments);
    } else {
        cut_region(first, end, fragments, pace);
    }
    done_ = end_;
    pace.count(8);
}

// In the order of ranks, and those of one rank from the left, each match is taken if all of its bytes are free. Taken text is
// tokens that are at least as long, and white space beside them. So a match whose first and last byte are free is free
// altogether: a taken token between them would be too long to fit.
//
// If only the first byte is free, a shorter token may begin there, and is tried in its turn. The number of free bytes, f, can
// only shrink, and when the next try, of a length l <= f, fails as well, a token of at least l bytes lies in those f bytes; so
// f is now less than l, and at most f - l. It at least halves each time: few tries follow the first.
void Partition::Cutter::cut_region(Match *first, Match *end_of_matches, std::vector<Fragment> &fragments, Pace &pace) {
    const std::vector<Token> &tokens = partition_.tokens_;
    const unsigned char *text = text_ + start_;
    const size_t size = end_ - start_;
    auto before = [&](const Match &a, const Match &b) {
        pace.count(1);
        return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
    };
    auto behind = [&](const Match &a, const Match &b) { return before(b, a); };
    std::sort(first, end_of_matches, before);
    std::vector<unsigned char> &is_taken = is_taken_;
    std::vector<Match> &taken = taken_, &shorter = shorter_;  // `shorter` is a heap, and empty in the end
    is_taken.assign(size, false);
    pace.count(size / 32);
    taken.clear();
    for (const Match *first_try = first; first_try < end_of_matches || !shorter.empty();) {
        Match match;
        if (shorter.empty() || (first_try < end_of_matches && before(*first_try, shorter.front()))) {
            match = *first_try++;
        } else {
            match = shorter.front();
            std::pop_heap(shorter.begin(), shorter.end(), behind);
            shorter.pop_back();
        }
        pace.count(4);
        const Token &token = tokens[match.rank];
        size_t start = match.at - start_, end = start + token.text.size();
        if (is_taken[start]) continue;
        if (is_taken[end - 1]) {
            const auto *stop = std::memchr(is_taken.data() + start, true, token.text.size());
            const size_t free = static_cast<size_t>(static_cast<const unsigned char *>(stop) - is_taken.data()) - start;
            uint32_t rank = token.shorter;
            for (; rank != NONE && tokens[rank].text.size() > free; rank = tokens[rank].shorter) pace.count(1);
            if (rank == NONE) continue;
            shorter.push_back({match.at, rank});
            std::push_heap(shorter.begin(), shorter.end(), behind);
            continue;
        }
        taken.push_back(match);
        pace.count(token.text.size() / 32);
        std::memset(is_taken.data() + start, true, token.text.size());
        if (token.strips_left) {
            for (; start > 0 && !is_taken[start - 1] && is_c_space(text[start - 1]); pace.count(1)) is_taken[--start] = true;
        }
        if (token.strips_right) {
            for (; end < size && !is_taken[end] && is_c_space(text[end]); pace.count(1)) is_taken[end++] = true;
        }
    }
    std::sort(taken.begin(), taken.end(), [&](const Match &a, const Match &b) {
        pace.count(1);
        return a.at < b.at;
    });
    size_t done = 0;
    auto add_plain = [&](size_t end) {
        for (; done < end && is_taken[done]; ++done) pace.count(1);
        for (; end > done && is_taken[end - 1]; pace.count(1)) --end;
        put({-1, start_ + done, start_ + end}, fragments);
    };
    for (const Match &match : taken) {
        const Token &token = tokens[match.rank];
        add_plain(match.at - start_);
        put({token.id, match.at, match.at + token.text.size()}, fragments);
        done = match.at - start_ + token.text.size();
        pace.count(8);
    }
    add_plain(size);
}

}  // namespace ggufbpe
