#include "special.h"

#include <algorithm>
#include <cstring>

#include "machine.h"

namespace ggufbpe {

namespace {

using Item = std::pair<size_t, size_t>;

bool is_space(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }  // isspace in the C locale

// ---- the order of libstdc++'s std::sort, whatever library this is built with ---------------------------------------

constexpr size_t INSERTION_SORT_UP_TO = 16;

bool before(const Item &a, const Item &b) { return a.first > b.first; }

// Lets the hole sink to the bottom, then the value rise from there.
void sift(Item *heap, size_t hole, size_t size, Item value) {
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

void heap_sort(Item *heap, size_t size) {
    for (size_t parent = (size - 2) / 2 + 1; parent-- > 0;) sift(heap, parent, size, heap[parent]);
    for (size_t end = size - 1; end > 0; --end) {
        Item value = heap[end];
        heap[end] = heap[0];
        sift(heap, 0, end, value);
    }
}

// Parts [first, last) around the median of three; returns where the second part begins.
Item *part(Item *first, Item *last) {
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

void sort_longest_first(std::vector<Item> &items) {
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
                heap_sort(items.data() + range.first, range.last - range.first);
                break;
            }
            --range.depth;
            size_t cut = static_cast<size_t>(part(items.data() + range.first, items.data() + range.last) - items.data());
            ranges.push_back({cut, range.last, range.depth});
            range.last = cut;
        }
    }
    std::stable_sort(items.begin(), items.end(), before);  // as insertion sort is
}

// ---- the search ---------------------------------------------------------------------------------------------------

Partition::Partition(std::shared_ptr<const Strings> tokens, const std::vector<SpecialToken> &special, bool parse_special)
    : tokens_(std::move(tokens)), pairs_(1024) {
    std::vector<Item> order;
    for (size_t i = 0; i < special.size(); ++i) order.emplace_back(text_of(special[i].id).size(), i);
    sort_longest_first(order);
    for (const auto &[length, index] : order) {
        const SpecialToken &token = special[index];
        if (length == 0 || (token.hidden && !parse_special)) continue;
        longest_first_.push_back(token);
        strips_ = strips_ || token.strips_left || token.strips_right;
        std::string_view text = text_of(token.id);
        ids_.try_emplace(text, token.id);
    }
    auto put = [&](unsigned first, unsigned second, size_t length) {
        uint16_t pair = static_cast<uint16_t>(first << 8 | second);
        pairs_[pair >> 6] |= uint64_t(1) << (pair & 63);
        lengths_[pair].push_back(static_cast<uint32_t>(length));
    };
    // Eight sets of pairs, each the product of first and of second bytes that it has: first bytes are dealt out in turn.
    int set_of_first[256];
    std::fill(std::begin(set_of_first), std::end(set_of_first), -1);
    int sets = 0;
    for (const auto &[text, id] : ids_) {
        const unsigned first = static_cast<unsigned char>(text[0]);
        first_[first] = true;
        if (set_of_first[first] < 0) set_of_first[first] = sets++ % 8;
        const uint8_t bit = static_cast<uint8_t>(1 << set_of_first[first]);
        low_first_[first & 15] |= bit;
        high_first_[first >> 4] |= bit;
        if (text.size() == 1) {
            for (unsigned second = 0; second < 256; ++second) put(first, second, 1);
            for (int k = 0; k < 16; ++k) {
                low_second_[k] |= bit;
                high_second_[k] |= bit;
            }
        } else {
            const unsigned second = static_cast<unsigned char>(text[1]);
            put(first, second, text.size());
            low_second_[second & 15] |= bit;
            high_second_[second >> 4] |= bit;
        }
    }
    for (auto &[pair, lengths] : lengths_) {
        std::sort(lengths.begin(), lengths.end(), std::greater<>());
        lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    }
}

namespace {

#if GGUFBPE_X86
__attribute__((target("avx2"))) size_t find_candidate(const unsigned char *text, size_t size, size_t from,
                                                      const uint8_t *tables[4]) {
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i rows[4];
    for (int i = 0; i < 4; ++i) {
        rows[i] = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i *>(tables[i])));
    }
    for (; from < size; from += 32) {
        const unsigned char *here = text + from;
        unsigned char rest[33];  // the last bytes, and zeros behind them
        if (size - from < sizeof rest) {
            std::memset(rest, 0, sizeof rest);
            here = static_cast<unsigned char *>(std::memcpy(rest, here, size - from));
        }
        __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(here));
        __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(here + 1));
        __m256i found = _mm256_shuffle_epi8(rows[0], _mm256_and_si256(first, nibble));
        found = _mm256_and_si256(found, _mm256_shuffle_epi8(rows[1], _mm256_and_si256(_mm256_srli_epi16(first, 4), nibble)));
        found = _mm256_and_si256(found, _mm256_shuffle_epi8(rows[2], _mm256_and_si256(second, nibble)));
        found = _mm256_and_si256(found, _mm256_shuffle_epi8(rows[3], _mm256_and_si256(_mm256_srli_epi16(second, 4), nibble)));
        uint32_t none = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(found, _mm256_setzero_si256())));
        if (~none) return from + lowest_bit(~none);
    }
    return size;
}
#endif

}  // namespace

// The first place from `from` up to `to` where a token may begin; `to` if there is none.
size_t Partition::next_candidate(const unsigned char *text, size_t size, size_t from, size_t to) const {
    while (from < to) {
#if GGUFBPE_X86
        if (has_avx2()) {
            const uint8_t *tables[4] = {low_first_, high_first_, low_second_, high_second_};
            from = find_candidate(text, std::min(size, to + 1), from, tables);
        }
#endif
        if (from >= to) break;
        if (first_[text[from]]) {
            const uint16_t pair = static_cast<uint16_t>(text[from] << 8 | (from + 1 < size ? text[from + 1] : 0));
            if (pairs_[pair >> 6] >> (pair & 63) & 1) return from;
        }
        ++from;
    }
    return to;
}

// The length of the longest token that begins at a place, 0 for none.
size_t Partition::longest_at(const unsigned char *text, size_t size, size_t at) const {
    const uint16_t pair = static_cast<uint16_t>(text[at] << 8 | (at + 1 < size ? text[at + 1] : 0));
    auto lengths = lengths_.find(pair);
    if (lengths == lengths_.end()) return 0;
    for (uint32_t length : lengths->second) {
        if (length <= size - at && ids_.count({reinterpret_cast<const char *>(text + at), length})) return length;
    }
    return 0;
}

void Partition::add(std::vector<Fragment> &fragments, const Fragment &fragment) {
    if (fragment.start >= fragment.end) return;
    if (!fragments.empty() && fragments.back().token < 0 && fragment.token < 0 && fragments.back().end == fragment.start) {
        fragments.back().end = fragment.end;  // cut only by where a region ended
    } else {
        fragments.push_back(fragment);
    }
}

void Partition::split(const unsigned char *text, size_t size, std::vector<Fragment> &fragments) const {
    std::vector<Match> matches;
    find(text, size, 0, size, matches);
    cut(text, size, matches, fragments);
}

void Partition::find(const unsigned char *text, size_t size, size_t from, size_t to, std::vector<Match> &matches) const {
    if (ids_.empty()) return;
    for (size_t at = from; (at = next_candidate(text, size, at, to)) < to; ++at) {
        if (const size_t length = longest_at(text, size, at)) matches.push_back({at, length});
    }
}

void Partition::cut(const unsigned char *text, size_t size, const std::vector<Match> &matches,
                    std::vector<Fragment> &fragments) const {
    size_t end = 0;  // up to here all is in fragments
    auto close = [&](const Region &region) {
        add(fragments, {-1, end, region.start});
        if (region.single) {
            std::string_view found(reinterpret_cast<const char *>(text + region.start), region.end - region.start);
            add(fragments, {ids_.at(found), region.start, region.end});
        } else {
            cut_region(text, region, fragments);
        }
        end = region.end;
    };
    bool open = false;
    Region region{0, 0, true};
    size_t spaces_start = 0, spaces_end = 0;  // the run of white space that was looked at last
    auto run_around = [&](size_t position) {
        if (position < spaces_start || position > spaces_end || spaces_start == spaces_end) {
            spaces_start = spaces_end = position;
            while (spaces_start > 0 && is_space(text[spaces_start - 1])) --spaces_start;
            while (spaces_end < size && is_space(text[spaces_end])) ++spaces_end;
        }
    };
    for (const auto &[at, length] : matches) {
        size_t first = at, last = at + length;
        if (strips_) {
            run_around(at);
            first = spaces_start;
            run_around(at + length);
            last = spaces_end;
        }
        if (open && first >= region.end) {
            close(region);
            open = false;
        }
        if (!open) {
            region = {first, last, !strips_};
            open = true;
        } else {
            region.end = std::max(region.end, last);
            region.single = false;
        }
    }
    if (open) close(region);
    add(fragments, {-1, end, size});
}

// llama.cpp's own way, on the part of the text where it matters.
void Partition::cut_region(const unsigned char *text, const Region &region, std::vector<Fragment> &result) const {
    bool letters[256] = {};
    for (size_t i = region.start; i < region.end; ++i) letters[text[i]] = true;
    std::vector<Fragment> fragments{{-1, region.start, region.end}}, cut;
    for (const SpecialToken &token : longest_first_) {
        std::string_view searched = text_of(token.id);
        if (searched.size() > region.end - region.start ||
            !std::all_of(searched.begin(), searched.end(), [&](char c) { return letters[static_cast<unsigned char>(c)]; })) {
            continue;
        }
        cut.clear();
        for (const Fragment &fragment : fragments) {
            if (fragment.token >= 0) {
                cut.push_back(fragment);
                continue;
            }
            size_t start = fragment.start;
            while (start < fragment.end) {
                std::string_view rest(reinterpret_cast<const char *>(text + start), fragment.end - start);
                size_t found = rest.find(searched);
                if (found == std::string_view::npos) break;
                size_t at = start + found, left = at;
                while (token.strips_left && left > start && is_space(text[left - 1])) --left;
                if (start < left) cut.push_back({-1, start, left});
                start = at + searched.size();
                cut.push_back({token.id, at, start});
                while (token.strips_right && start < fragment.end && is_space(text[start])) ++start;
            }
            if (start < fragment.end) cut.push_back({-1, start, fragment.end});
        }
        fragments.swap(cut);
    }
    for (const Fragment &fragment : fragments) add(result, fragment);
}

}  // namespace ggufbpe
