#include "split/windows.h"

#include <algorithm>

#include "simd.h"
#include "split/certainty.h"

namespace ggufbpe {

namespace {

// Sets of windows of five columns. The first column is a bit in a mask, since it hardly ever matters.
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

using Product = std::array<uint32_t, WIDEST_WINDOW>;  // a set of columns for each place, as bits

// Calls function(b, c, d, e) for the windows of a product until a call returns false.
template <typename Function>
bool for_each_window(const Product &product, Function function) {
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

constexpr size_t WIDENED_FIRST[WIDEST_WINDOW] = {0, 1, 4, 2, 3};  // the outer code points: they often do not matter

// The largest product around one window that avoids the `forbidden` ones; greedy.
Product product_around(Product product, const WindowSet &forbidden) {
    for (size_t place : WIDENED_FIRST) {
        for (size_t column = 0; column < forbidden.width(); ++column) {
            if (product[place] >> column & 1) continue;
            Product slice = product;
            slice[place] = 1u << column;
            const bool is_allowed = for_each_window(slice, [&](size_t b, size_t c, size_t d, size_t e) {
                return !(forbidden.at(b, c, d, e) & slice[0]);
            });
            if (is_allowed) product[place] |= 1u << column;
        }
    }
    return product;
}

// Covers the `wanted` windows by products that avoid the `forbidden` ones. If there are too many, MOST_PRODUCTS + 1.
std::vector<Product> cover(WindowSet wanted, const WindowSet &forbidden) {
    const uint32_t any = (1u << wanted.width()) - 1;
    std::vector<Product> products;
    for_each_window({0, any, any, any, any}, [&](size_t b, size_t c, size_t d, size_t e) {
        while (const uint32_t left = wanted.at(b, c, d, e)) {
            const Product one = {1u << lowest_bit(left), 1u << b, 1u << c, 1u << d, 1u << e};
            const Product product = product_around(one, forbidden);
            for_each_window(product, [&](size_t b2, size_t c2, size_t d2, size_t e2) {
                wanted.at(b2, c2, d2, e2) &= static_cast<uint16_t>(~product[0]);
                return true;
            });
            products.push_back(product);
            if (products.size() > MOST_PRODUCTS) return false;
        }
        return true;
    });
    return products;
}

// `group_of` has the group of each value that is looked up.
std::vector<Windows::Group> groups_of(const std::vector<Product> &products, const std::vector<uint8_t> &group_of) {
    std::vector<Windows::Group> groups((products.size() + 7) / 8);
    for (size_t i = 0; i < products.size(); ++i) {
        for (size_t place = 0; place < WIDEST_WINDOW; ++place) {
            for (size_t value = 0; value < group_of.size(); ++value) {
                if (products[i][place] >> group_of[value] & 1) groups[i / 8].table[place][value] |= uint8_t(1u << (i % 8));
            }
        }
    }
    return groups;
}

}  // namespace

Windows::Windows(const Automaton &automaton, const std::vector<double> &weights, const std::vector<uint8_t> &column_of) {
    const ColumnGroups groups(automaton, weights, MOST_COLUMNS);
    const size_t width = groups.size();
    const auto end = static_cast<uint8_t>(width - 1);
    const uint16_t any = static_cast<uint16_t>((1u << width) - 1);
    WindowExplorer four(automaton, groups, 4, 2), five(automaton, groups, 5, 3);
    // Windows with a certain boundary, with certainly none, with either of these, and uncertain ones.
    WindowSet with(width), without(width), known(width), unknown(width);
    const auto add = [&](Certainty certainty, size_t b, size_t c, size_t d, size_t e, uint16_t firsts) {
        if (certainty == Certainty::BOUNDARY) with.at(b, c, d, e) |= firsts;
        if (certainty == Certainty::NO_BOUNDARY) without.at(b, c, d, e) |= firsts;
        (certainty == Certainty::UNCERTAIN ? unknown : known).at(b, c, d, e) |=
            certainty == Certainty::IMPOSSIBLE ? 0 : firsts;
    };
    std::vector<Window> asked;  // about which a wider window may be certain
    for (uint8_t b = 0; b < width; ++b) {
        for (uint8_t c = 0; c < end; ++c) {
            for (uint8_t d = 0; d < end; ++d) {
                for (uint8_t e = 0; e < width; ++e) {
                    const Certainty certainty = four.certainty({b, c, d, e});
                    if (certainty == Certainty::UNCERTAIN && b != end) {
                        asked.push_back({0, b, c, d, e});
                    } else {
                        add(certainty, b, c, d, e, any);
                    }
                }
            }
        }
    }
    for (uint8_t a = 0; a < width; ++a) {
        for (Window window : asked) {
            window[0] = a;
            add(five.certainty(window), window[1], window[2], window[3], window[4], static_cast<uint16_t>(1u << a));
        }
    }
    const std::vector<Product> certain = cover(with, without), uncertain = cover(unknown, known);
    if (certain.size() > MOST_PRODUCTS || uncertain.size() > MOST_PRODUCTS) return;
    std::vector<uint8_t> values;  // the group of each: classes, or the groups themselves
    const std::vector<uint8_t> of_column = groups.group_of();
    for (uint8_t column : column_of) values.push_back(of_column[column]);
    if (values.size() > MOST_COLUMNS + 1) {
        group_of_.swap(values);
        for (size_t group = 0; group < width; ++group) values.push_back(static_cast<uint8_t>(group));
    }
    end_ = static_cast<uint8_t>(values.size() - 1);
    certain_ = groups_of(certain, values);
    uncertain_ = groups_of(uncertain, values);
    if (!matters(0, values.size())) places_ = matters(1, values.size()) || matters(4, values.size()) ? 4 : 2;
    usable_ = true;
}

// Whether a product excludes any value at a place.
bool Windows::matters(size_t place, size_t values) const {
    const auto excludes = [=](const Group &group) {
        const auto &table = group.table[place];
        return !std::all_of(table, table + values, [&](uint8_t products) { return products == table[0]; });
    };
    return std::any_of(certain_.begin(), certain_.end(), excludes) || std::any_of(uncertain_.begin(), uncertain_.end(), excludes);
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
void mark_each(const Tables &certain, const Tables &uncertain, uint8_t end, const uint8_t *values, const uint8_t *prior,
               size_t from, size_t count, uint8_t *boundary, std::vector<uint32_t> &found) {
    for (size_t i = from; i < count; ++i) {
        if (i == 0 || (prior && prior[i])) {
            boundary[i] = 0xFF;
            continue;
        }
        uint8_t window[5];
        std::copy(values + i - 3, values + i + 2, window);
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

#if GGUFBPE_VECTORS

// By the PLACES of windows that matter (Windows::places_).
template <size_t PLACES>
VECTOR_INLINE Bytes look_up(const Tables &groups, const Bytes (&window)[WIDEST_WINDOW]) {
    Bytes result = repeat(0);
    for (const Windows::Group &group : groups) {
        const auto &table = group.table;
        Bytes products = Shuffle(table[2])(window[2]) & Shuffle(table[3])(window[3]);
        if (PLACES > 2) products = products & (Shuffle(table[1])(window[1]) & Shuffle(table[4])(window[4]));
        if (PLACES > 4) products = products & Shuffle(table[0])(window[0]);
        result = result | products;
    }
    return result;
}

// As many places at a time as a vector has bytes.
template <size_t PLACES>
WITH_AVX2 void mark_vectors(const Tables &certain, const Tables &uncertain, uint8_t end, const uint8_t *values,
                            const uint8_t *prior, size_t from, size_t count, uint8_t *boundary,
                            std::vector<uint32_t> &found) {
    const Bytes ends = repeat(end);
    for (size_t i = from; i < count; i += VECTOR_BYTES) {
        const uint8_t *here = values + i;
        Bytes window[WIDEST_WINDOW] = {load(here - 3), load(here - 2), load(here - 1), load(here), load(here + 1)};
        Bytes before = repeat(0);
        if (prior) {
            before = load(prior + i);
            if (PLACES > 4) window[0] = choose(load(prior + i - 2), ends, window[0]);
            if (PLACES > 2) {
                window[1] = choose(load(prior + i - 1), ends, window[1]);
                window[4] = choose(load(prior + i + 1), ends, window[4]);
            }
        }
        const Bytes is_uncertain = and_not(is_not_zero(look_up<PLACES>(uncertain, window)), before);
        store(boundary + i, before | and_not(is_not_zero(look_up<PLACES>(certain, window)), is_uncertain));
        uint32_t bits = highest_bits(is_uncertain);
        if (i == 0) bits &= ~1u;
        if (count - i < VECTOR_BYTES) bits &= (1u << (count - i)) - 1;
        for (; bits; bits &= bits - 1) found.push_back(static_cast<uint32_t>(i + lowest_bit(bits)));
    }
    if (from == 0 && count) boundary[0] = 0xFF;
}

#endif

}  // namespace

void Windows::mark(const uint8_t *values, const uint8_t *prior, size_t from, size_t count, uint8_t *boundary,
                   std::vector<uint32_t> &uncertain) const {
#if GGUFBPE_VECTORS
    if (has_vectors()) {
        const auto mark_by = places_ == 2 ? mark_vectors<2> : places_ == 4 ? mark_vectors<4> : mark_vectors<5>;
        return mark_by(certain_, uncertain_, end_, values, prior, from, count, boundary, uncertain);
    }
#endif
    mark_each(certain_, uncertain_, end_, values, prior, from, count, boundary, uncertain);
}

}  // namespace ggufbpe
