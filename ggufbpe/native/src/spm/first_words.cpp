#include "spm/first_words.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace ggufbpe {

bool FirstWords::append_ids(const unsigned char *text, size_t size, bool has_prefix, Sink &ids) const {
    constexpr char SPACE[] = "\xE2\x96\x81";
    constexpr uint64_t NO_TOKEN = UINT64_MAX;
    if (size > LONGEST || ids.spans() || !build_budget_.take(size)) return false;
    char written[3 * (LONGEST + 1)];
    uint16_t starts[LONGEST + 2];  // of each symbol, and where the last one ends
    uint64_t orders[LONGEST + 2];  // of each symbol joined to the next one
    char *to = written;
    size_t count = 0;
    const auto add_space = [&] {
        starts[count++] = static_cast<uint16_t>(to - written);
        to = std::copy_n(SPACE, 3, to);
    };
    if (has_prefix) add_space();
    for (size_t i = 0; i < size; ++i) {
        if (text[i] == ' ') {
            add_space();
            continue;
        }
        if ((text[i] & 0xC0) != 0x80) starts[count++] = static_cast<uint16_t>(to - written);
        *to++ = static_cast<char>(text[i]);
    }
    starts[count] = static_cast<uint16_t>(to - written);
    const auto token = [&](size_t first, size_t last) {
        return tokens_->find({written + starts[first], size_t(starts[last] - starts[first])});
    };
    const auto order_of_pair = [&](size_t first) {
        const int64_t joined = token(first, first + 2);
        return joined == Strings::NOT_FOUND ? NO_TOKEN : scores_->empty() ? 0 : order_of((*scores_)[static_cast<size_t>(joined)]);
    };
    for (size_t i = 0; i + 1 < count; ++i) orders[i] = order_of_pair(i);
    while (count > 1) {
        const size_t best = static_cast<size_t>(std::min_element(orders, orders + count - 1) - orders);  // the leftmost of equal ones
        if (orders[best] == NO_TOKEN) break;
        std::copy(starts + best + 2, starts + count + 1, starts + best + 1);
        std::copy(orders + best + 1, orders + count - 1, orders + best);
        --count;
        if (best + 1 < count) orders[best] = order_of_pair(best);
        if (best > 0) orders[best - 1] = order_of_pair(best - 1);
    }
    int32_t found[LONGEST + 1];
    for (size_t i = 0; i < count; ++i) {
        const int64_t id = token(i, i + 1);
        if (id == Strings::NOT_FOUND) return false;
        found[i] = static_cast<int32_t>(id);
    }
    for (size_t i = 0; i < count; ++i) ids.push(found[i]);
    return true;
}

}  // namespace ggufbpe
