#include "bpe/pair_table.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "string_array.h"

namespace ggufbpe {

namespace {

constexpr size_t PAIRS_AHEAD = 16;         // pairs whose buckets are fetched before they are inserted
constexpr size_t AT_ONCE = 1 << 17;  // pairs that are inserted between two polls

int bits_of(uint64_t number) {
    int bits = 0;
    for (; number; number >>= 1) ++bits;
    return bits;
}

}  // namespace

void PairTable::Pairs::grow() {
    Buffer<Pair> larger;
    room_ = 2 * room_ + 16;
    larger.room(room_);
    std::copy(memory_.data(), memory_.data() + size_, larger.data());
    memory_ = std::move(larger);
}

PairTable::PairTable(const Pairs &pairs, size_t symbol_count, const Poll &poll, Ranks ranks) {
    reader_.no_symbol_ = static_cast<Symbol>(symbol_count);
    uint64_t odd = hash_seed() | 1;
    size_t rank_count = 0;
    in_pieces(pairs.size(), poll, [&](size_t from, size_t end) {
        for (size_t i = from; i < end; ++i) rank_count = std::max(rank_count, pairs[i].merge.rank + size_t(1));
    });
    int bucket_bits = 4, tries = 0;
    while ((size_t(BUCKET_ENTRIES) * 3 << bucket_bits) < pairs.size() * 5) ++bucket_bits;
    do {
        // Rarely all buckets of a pair are full: another factor mostly helps, and a larger table always does.
        lay_out(bucket_bits + tries++ / 2, bits_of(symbol_count), bits_of(rank_count), rank_count, ranks, odd);
        odd *= 0x9E3779B97F4A7C15u;
    } while (!insert(pairs, poll));
}

PairTable::PairTable(TableReader &from) : file_(from.file()) {
    static_assert(std::is_trivially_copyable<Reader>::value, "only what its bytes are");
    reader_ = *from.array_of<Reader>(1);
    reader_.buckets_ = from.array_of<Bucket>(lines_of(reader_.bucket_count_));
    reader_.filters_ = reinterpret_cast<const uint64_t *>(reader_.buckets_ + reader_.bucket_count_ + 1);
    size_t result_count;
    const Symbol *results = from.array<Symbol>(result_count);
    reader_.results_ = result_count ? results : nullptr;
}

void PairTable::write(TableWriter &to) const {
    Reader reader = reader_;
    reader.buckets_ = nullptr;  // addresses of this process
    reader.filters_ = nullptr;
    reader.results_ = nullptr;
    to.add(&reader, 1);
    to.add(reader_.buckets_, lines_of(reader_.bucket_count_));
    to.add(results_.data(), results_.size());
}

// Chooses which bits of an entry hold what, and allocates the buckets.
void PairTable::lay_out(int bucket_bits, int symbol_bits, int rank_bits, size_t rank_count, Ranks ranks, uint64_t odd) {
    while (2 * symbol_bits < bucket_bits + FILTER_BITS) ++symbol_bits;
    const auto width = [&] { return 2 * symbol_bits - bucket_bits + PROBE_BITS + rank_bits; };
    // Results are stored separately by rank, which then must be unique.
    while (ranks == Ranks::SHARED && width() + symbol_bits > 64) ++bucket_bits;
#if defined(GGUFBPE_RESULTS_APART)
    const bool has_results = ranks == Ranks::SHARED;  // tests: as with a million tokens and as many merges
#else
    const bool has_results = width() + symbol_bits <= 64;
#endif
    while (width() > 64) ++bucket_bits;  // only for more than 2^28 merges
    if (bucket_bits > 40) throw std::invalid_argument("more tokens and merges than there are numbers for");
    results_.assign(has_results ? 0 : rank_count, 0);
    const size_t bucket_count = size_t(1) << bucket_bits;
    // After the buckets come one that is always empty and the filters, in the same huge pages.
    buckets_ = ZeroedArray<Bucket>();
    buckets_ = ZeroedArray<Bucket>(lines_of(bucket_count));
    Reader &to = reader_;
    to.buckets_ = buckets_.data();
    to.bucket_count_ = bucket_count;
    to.filters_ = filters();
    to.results_ = has_results ? nullptr : results_.data();
    to.left_factor_ = odd << (64 - symbol_bits);
    to.right_factor_ = odd << (64 - 2 * symbol_bits);
    to.bucket_bits_ = bucket_bits;
    to.rank_shift_ = has_results ? symbol_bits : 0;
    to.probe_shift_ = 64 - (2 * symbol_bits - bucket_bits) - PROBE_BITS;
    to.tag_bits_ = ~uint64_t(0) << to.probe_shift_;
    to.rank_bits_ = static_cast<uint32_t>((uint64_t(1) << rank_bits) - 1);
    to.result_bits_ = static_cast<uint32_t>((uint64_t(1) << symbol_bits) - 1);
}

// False if there is no room for one of them.
bool PairTable::insert(const Pairs &pairs, const Poll &poll) {
    std::vector<uint8_t> used(reader_.bucket_count_, 0);  // entries of each bucket: small enough to stay in cache
    for (size_t begin = 0; begin < pairs.size(); begin += AT_ONCE) {
        if (begin) poll();
        for (size_t i = begin; i < std::min(begin + AT_ONCE, pairs.size()); ++i) {
            if (i + PAIRS_AHEAD < pairs.size()) {
                prefetch_to_write(&buckets_[reader_.first_probe(pairs[i + PAIRS_AHEAD].left, pairs[i + PAIRS_AHEAD].right).bucket]);
            }
            if (!insert(pairs[i], used)) return false;
        }
    }
    return true;
}

bool PairTable::insert(const Pair &pair, std::vector<uint8_t> &used) {
    Query query = reader_.first_probe(pair.left, pair.right);
    uint64_t &filter = filters()[query.bucket];
    const uint64_t bit = uint64_t(1) << (query.tag >> (64 - FILTER_BITS));
    const bool may_be_there = filter & bit;
    filter |= bit;
    const uint64_t result = results_.empty() ? pair.merge.result : 0;
    const uint64_t content = uint64_t(pair.merge.rank + 1) << reader_.rank_shift_ | result;
    for (int probe = 0; probe < PROBES; reader_.move_to_probe(query, ++probe)) {
        uint64_t (&entries)[BUCKET_ENTRIES] = buckets_[query.bucket].entries;
        if (may_be_there) {
            bool is_there = false;
            for (const uint64_t entry : entries) is_there |= (entry != 0) & ((entry & reader_.tag_bits_) == query.tag);
            if (is_there) return true;
        }
        uint8_t &count = used[query.bucket];
        if (count == BUCKET_ENTRIES) continue;
        entries[count++] = query.tag | content;
        if (!results_.empty()) results_[pair.merge.rank] = pair.merge.result;
        return true;
    }
    return false;
}

}  // namespace ggufbpe
