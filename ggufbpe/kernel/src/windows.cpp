#include "windows.h"

#include <algorithm>

#include "machine.h"

namespace ggufbpe {

namespace {

// What can be at the place asked about: bits, so that several ways can be or-ed.
constexpr int NO_BOUNDARY = 1, BOUNDARY = 2;

// The columns of an automaton in groups, at most `most` of them: rare ones that differ little go together.
class Groups {
public:
    explicit Groups(const Automaton &automaton) : Groups(automaton, {}, automaton.classes()) {}

    Groups(const Automaton &automaton, const std::vector<double> &weights, size_t most) {
        for (size_t column = 0; column < automaton.classes(); ++column) members_.push_back({static_cast<uint8_t>(column)});
        auto weight = [&](const std::vector<uint8_t> &group) {
            double sum = 0;
            for (uint8_t column : group) sum += weights[column];
            return sum;
        };
        auto differences = [&](uint8_t a, uint8_t b) {
            size_t count = 0;
            for (size_t state = 1; state < automaton.states(); ++state) {
                count += automaton.next(state, a) != automaton.next(state, b) ||
                         automaton.accepts(state, a) != automaton.accepts(state, b);
            }
            return static_cast<double>(count);
        };
        while (members_.size() > most) {
            double best = 1e300;
            size_t one = 0, other = 1;
            for (size_t i = 0; i < members_.size(); ++i) {
                for (size_t k = i + 1; k < members_.size(); ++k) {
                    // Every window with one or the other tells less.
                    double found = differences(members_[i][0], members_[k][0]) *
                                   (weight(members_[i]) + weight(members_[k]));
                    if (found < best) {
                        best = found;
                        one = i;
                        other = k;
                    }
                }
            }
            members_[one].insert(members_[one].end(), members_[other].begin(), members_[other].end());
            members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(other));
        }
        members_.push_back({static_cast<uint8_t>(automaton.classes())});  // the end
    }

    size_t size() const { return members_.size(); }
    const std::vector<uint8_t> &operator[](size_t group) const { return members_[group]; }

    std::vector<uint8_t> group_of() const {
        std::vector<uint8_t> result(256, 0);
        for (size_t group = 0; group < members_.size(); ++group) {
            for (uint8_t column : members_[group]) result[column] = static_cast<uint8_t>(group);
        }
        return result;
    }

private:
    std::vector<std::vector<uint8_t>> members_;
};

constexpr size_t WIDEST = 5;
using Window = std::array<uint8_t, WIDEST>;

// Runs the automaton over windows, from every state that it can be in. Where a group has several columns, all of them
// are tried, which can only make more windows uncertain.
class Explorer {
public:
    Explorer(const Automaton &automaton, const Groups &groups, size_t length, size_t asked)
        : automaton_(automaton), groups_(groups), length_(length), asked_(asked), end_(groups.size() - 1) {
        // States in the middle of a match.
        std::vector<bool> reached(automaton.states(), false);
        std::vector<uint16_t> todo{Automaton::START};
        while (!todo.empty()) {
            uint16_t state = todo.back();
            todo.pop_back();
            for (size_t c = 0; c < automaton.classes(); ++c) {
                uint16_t next = automaton.next(state, c);
                if (next != Automaton::DEAD && !reached[next]) {
                    reached[next] = true;
                    todo.push_back(next);
                }
            }
        }
        for (size_t state = 0; state < reached.size(); ++state) {
            if (reached[state]) inside_.push_back(static_cast<uint16_t>(state));
        }
    }

    // The possible outcomes at window[asked], where before the window anything may have been. A window that begins with
    // the end value stands at the beginning of a piece.
    int outcomes(const Window &window) const {
        if (window[0] == end_) return asked_ == 1 ? BOUNDARY : from_start(window, 1);
        int found = from_start(window, 0);
        for (uint16_t state : inside_) {
            found |= in_match(window, state);
            if (found == (BOUNDARY | NO_BOUNDARY)) break;
        }
        return found;
    }

private:
    // What walking a window can give, as bits: bit 2 * end + alive, where the match may end last before window[end] (0:
    // nowhere), and `alive` says that the automaton was still running at the end of the window.
    uint32_t walk(const Window &window, uint16_t state, size_t from, size_t at, size_t end) const {
        if (at == length_) return 1u << (2 * end + 1);
        uint32_t results = 0;
        for (uint8_t column : groups_[window[at]]) {
            size_t new_end = at > from && automaton_.accepts(state, column) ? at : end;
            uint16_t next = window[at] == end_ ? Automaton::DEAD : automaton_.next(state, column);
            results |= next == Automaton::DEAD ? 1u << (2 * new_end) : walk(window, next, from, at + 1, new_end);
        }
        return results;
    }

    // A match that began before the window and goes on over its first code point at least.
    int in_match(const Window &window, uint16_t state) const {
        uint32_t results = walk(window, state, 0, 0, 0);
        return alive(results) | after_end(window, results);
    }

    // A match may begin at window[from], or the code point there is left over.
    int from_start(const Window &window, size_t from) const {
        uint32_t results = walk(window, Automaton::START, from, from, 0);
        int found = alive(results) | after_end(window, results);
        if (results & 3) found |= left_over(window, from);
        return found;
    }

    static int alive(uint32_t results) { return results & 0xAAAAAAAAu ? NO_BOUNDARY : 0; }

    // A match ends at the last place where it may: the last in the window, or one behind it.
    int after_end(const Window &window, uint32_t results) const {
        int found = 0;
        for (size_t end = 1; end <= length_; ++end) {
            if (!(results >> (2 * end) & 3)) continue;
            found |= end > asked_ ? NO_BOUNDARY : end == asked_ ? BOUNDARY : from_start(window, end);
        }
        return found;
    }

    // window[at] is in no match; so it goes with what is left over behind it.
    int left_over(const Window &window, size_t at) const {
        if (at + 1 < asked_) return from_start(window, at + 1);
        uint32_t results = walk(window, Automaton::START, asked_, asked_, 0);
        int found = results >> 2 ? BOUNDARY : 0;
        if (results & 1) found |= NO_BOUNDARY;
        if (results & 2) found |= BOUNDARY | NO_BOUNDARY;
        return found;
    }

    const Automaton &automaton_;
    const Groups &groups_;
    size_t length_, asked_, end_;
    std::vector<uint16_t> inside_;
};

// What a window tells.
enum Verdict : uint8_t { CERTAIN_NO, CERTAIN_YES, UNCERTAIN, NEVER };

Verdict verdict(int outcomes) {
    return outcomes == 0 ? NEVER : outcomes == NO_BOUNDARY ? CERTAIN_NO : outcomes == BOUNDARY ? CERTAIN_YES : UNCERTAIN;
}

// Sets of windows of five columns. The first column is a bit in a mask, for it is the one that hardly ever matters.
class WindowSet {
public:
    explicit WindowSet(size_t width) : width_(width), masks_(width * width * width * width) {}
    uint16_t &at(size_t b, size_t c, size_t d, size_t e) { return masks_[((b * width_ + c) * width_ + d) * width_ + e]; }
    uint16_t at(size_t b, size_t c, size_t d, size_t e) const {
        return masks_[((b * width_ + c) * width_ + d) * width_ + e];
    }
    size_t width() const { return width_; }

private:
    size_t width_;
    std::vector<uint16_t> masks_;
};

using Product = std::array<uint32_t, 5>;  // a set of columns for each place, as bits

// Calls function(b, c, d, e) for the windows of a product until one call gives false.
template <typename Function>
bool each(const Product &product, Function function) {
    for (uint32_t bs = product[1]; bs; bs &= bs - 1) {
        for (uint32_t cs = product[2]; cs; cs &= cs - 1) {
            for (uint32_t ds = product[3]; ds; ds &= ds - 1) {
                for (uint32_t es = product[4]; es; es &= es - 1) {
                    if (!function(lowest_bit(bs), lowest_bit(cs), lowest_bit(ds), lowest_bit(es))) return false;
                }
            }
        }
    }
    return true;
}

constexpr size_t MOST_PRODUCTS = 32;

// Covers the `wanted` windows by products that keep off the `forbidden` ones; greedy. Empty if it takes too many.
std::vector<Product> cover(WindowSet wanted, const WindowSet &forbidden) {
    const size_t width = wanted.width();
    std::vector<Product> products;
    const Product all = {0, (1u << width) - 1, (1u << width) - 1, (1u << width) - 1, (1u << width) - 1};
    each(all, [&](size_t b, size_t c, size_t d, size_t e) {
        while (uint32_t left = wanted.at(b, c, d, e)) {
            Product product = {1u << lowest_bit(left), 1u << b, 1u << c, 1u << d, 1u << e};
            auto allowed = [&](const Product &tried) {
                return each(tried, [&](size_t b, size_t c, size_t d, size_t e) {
                    return !(forbidden.at(b, c, d, e) & tried[0]);
                });
            };
            // The outer code points first: they often do not matter.
            for (size_t place : {0, 1, 4, 2, 3}) {
                for (size_t column = 0; column < width; ++column) {
                    if (product[place] >> column & 1) continue;
                    Product slice = product;
                    slice[place] = 1u << column;
                    if (allowed(slice)) product[place] |= 1u << column;
                }
            }
            each(product, [&](size_t b, size_t c, size_t d, size_t e) {
                wanted.at(b, c, d, e) &= static_cast<uint16_t>(~product[0]);
                return true;
            });
            products.push_back(product);
            if (products.size() > MOST_PRODUCTS) return false;
        }
        return true;
    });
    return products;
}

std::vector<Windows::Group> groups_of(const std::vector<Product> &products, size_t width) {
    std::vector<Windows::Group> groups((products.size() + 7) / 8);
    for (size_t i = 0; i < products.size(); ++i) {
        for (size_t place = 0; place < 5; ++place) {
            for (size_t c = 0; c < width; ++c) {
                if (products[i][place] >> c & 1) groups[i / 8].table[place][c] |= uint8_t(1u << (i % 8));
            }
        }
    }
    return groups;
}

}  // namespace

Windows::Windows(const Automaton &automaton, const std::vector<double> &weights) {
    const Groups columns(automaton, weights, MOST_COLUMNS);
    const size_t width = columns.size();
    end_ = static_cast<uint8_t>(width - 1);
    if (automaton.classes() >= width) group_of_ = columns.group_of();
    const uint16_t any = static_cast<uint16_t>((1u << width) - 1);
    const Explorer four(automaton, columns, 4, 2), five(automaton, columns, 5, 3);
    WindowSet boundary(width), none(width), unknown(width);
    for (uint8_t b = 0; b < width; ++b) {
        for (uint8_t c = 0; c < end_; ++c) {
            for (uint8_t d = 0; d < end_; ++d) {
                for (uint8_t e = 0; e < width; ++e) {
                    Verdict found = verdict(four.outcomes({b, c, d, e}));
                    if (found == CERTAIN_YES) boundary.at(b, c, d, e) = any;
                    if (found == CERTAIN_NO) none.at(b, c, d, e) = any;
                    if (found != UNCERTAIN) continue;
                    if (b == end_) {
                        unknown.at(b, c, d, e) = any;
                        continue;
                    }
                    for (uint8_t a = 0; a < width; ++a) {  // a wider window may tell
                        const uint16_t bit = static_cast<uint16_t>(1u << a);
                        found = verdict(five.outcomes({a, b, c, d, e}));
                        if (found == CERTAIN_YES) boundary.at(b, c, d, e) |= bit;
                        if (found == CERTAIN_NO) none.at(b, c, d, e) |= bit;
                        if (found == UNCERTAIN) unknown.at(b, c, d, e) |= bit;
                    }
                }
            }
        }
    }
    WindowSet certain(width);
    each({0, any, any, any, any}, [&](size_t b, size_t c, size_t d, size_t e) {
        certain.at(b, c, d, e) = boundary.at(b, c, d, e) | none.at(b, c, d, e);
        return true;
    });
    const std::vector<Product> yes = cover(boundary, none), maybe = cover(unknown, certain);
    if (yes.size() > MOST_PRODUCTS || maybe.size() > MOST_PRODUCTS) return;
    certain_ = groups_of(yes, width);
    uncertain_ = groups_of(maybe, width);
    usable_ = true;
}

int certainty_of_pair(const Automaton &automaton, uint8_t first, uint8_t second) {
    const Groups columns(automaton);
    const std::vector<uint8_t> group_of = columns.group_of();
    return verdict(Explorer(automaton, columns, 2, 1).outcomes({group_of[first], group_of[second]}));
}

namespace {

using Tables = std::vector<Windows::Group>;

bool in_any(const Tables &groups, const uint8_t *w) {
    uint8_t found = 0;
    for (const Windows::Group &group : groups) {
        const auto &table = group.table;
        found |= table[0][w[0]] & table[1][w[1]] & table[2][w[2]] & table[3][w[3]] & table[4][w[4]];
    }
    return found;
}

// One code point after the other: any processor.
void mark_each(const Tables &certain, const Tables &uncertain, uint8_t end, const uint8_t *columns, const uint8_t *prior,
               size_t from, size_t count, uint8_t *boundary, std::vector<uint32_t> &found) {
    for (size_t i = from; i < count; ++i) {
        if (i == 0 || (prior && prior[i])) {
            boundary[i] = 0xFF;
            continue;
        }
        uint8_t window[5];
        std::copy(columns + i - 3, columns + i + 2, window);
        if (prior) {
            const uint8_t *here = prior + i;
            if (here[-2]) window[0] = end;
            if (here[-1]) window[1] = end;
            if (here[1]) window[4] = end;
        }
        bool is_uncertain = in_any(uncertain, window);
        boundary[i] = in_any(certain, window) && !is_uncertain ? 0xFF : 0;
        if (is_uncertain) found.push_back(static_cast<uint32_t>(i));
    }
}

#if GGUFBPE_X86

__attribute__((target("avx2"), always_inline)) inline __m256i load(const uint8_t *from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
}

__attribute__((target("avx2"), always_inline)) inline __m256i shuffle(const uint8_t *table, __m256i indices) {
    __m128i half = _mm_load_si128(reinterpret_cast<const __m128i *>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(half), indices);
}

__attribute__((target("avx2"), always_inline)) inline __m256i look_up(const Tables &groups, __m256i a, __m256i b, __m256i c,
                                                                        __m256i d, __m256i e) {
    __m256i result = _mm256_setzero_si256();
    for (const Windows::Group &group : groups) {
        __m256i left = _mm256_and_si256(shuffle(group.table[0], a), shuffle(group.table[1], b));
        __m256i right = _mm256_and_si256(shuffle(group.table[2], c), shuffle(group.table[3], d));
        left = _mm256_and_si256(left, shuffle(group.table[4], e));
        result = _mm256_or_si256(result, _mm256_and_si256(left, right));
    }
    return result;
}

__attribute__((target("avx2"))) void mark_32(const Tables &certain, const Tables &uncertain, uint8_t end,
                                             const uint8_t *columns, const uint8_t *prior, size_t from, size_t count,
                                             uint8_t *boundary, std::vector<uint32_t> &found) {
    const __m256i ends = _mm256_set1_epi8(static_cast<char>(end)), zero = _mm256_setzero_si256();
    const __m256i all = _mm256_set1_epi8(-1);
    for (size_t i = from; i < count; i += 32) {
        __m256i a = load(columns + i - 3), b = load(columns + i - 2), c = load(columns + i - 1), d = load(columns + i);
        __m256i e = load(columns + i + 1);
        __m256i before = zero;
        if (prior) {
            before = load(prior + i);
            a = _mm256_blendv_epi8(a, ends, load(prior + i - 2));
            b = _mm256_blendv_epi8(b, ends, load(prior + i - 1));
            e = _mm256_blendv_epi8(e, ends, load(prior + i + 1));
        }
        __m256i is_certain = _mm256_xor_si256(_mm256_cmpeq_epi8(look_up(certain, a, b, c, d, e), zero), all);
        __m256i is_uncertain = _mm256_xor_si256(_mm256_cmpeq_epi8(look_up(uncertain, a, b, c, d, e), zero), all);
        is_uncertain = _mm256_andnot_si256(before, is_uncertain);
        __m256i result = _mm256_or_si256(before, _mm256_andnot_si256(is_uncertain, is_certain));
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(boundary + i), result);
        uint32_t bits = static_cast<uint32_t>(_mm256_movemask_epi8(is_uncertain));
        if (i == 0) bits &= ~1u;
        if (count - i < 32) bits &= (1u << (count - i)) - 1;
        for (; bits; bits &= bits - 1) found.push_back(static_cast<uint32_t>(i + lowest_bit(bits)));
    }
    if (from == 0 && count) boundary[0] = 0xFF;
}

#endif

}  // namespace

void Windows::mark(const uint8_t *columns, const uint8_t *prior, size_t from, size_t count, uint8_t *boundary,
                   std::vector<uint32_t> &uncertain) const {
#if GGUFBPE_X86
    if (has_avx2()) return mark_32(certain_, uncertain_, end_, columns, prior, from, count, boundary, uncertain);
#endif
    mark_each(certain_, uncertain_, end_, columns, prior, from, count, boundary, uncertain);
}

}  // namespace ggufbpe
