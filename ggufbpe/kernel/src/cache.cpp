#include "cache.h"

#include <algorithm>

namespace ggufbpe {

namespace {

constexpr uint64_t ones(size_t bytes) { return bytes >= 8 ? ~uint64_t(0) : (uint64_t(1) << (8 * bytes)) - 1; }

}  // namespace

#define GGUFBPE_MASK(size) {ones(size##u), size##u > 8 ? ones(size##u - 8) : 0}
const uint64_t WordKey::MASKS[16][2] = {
    GGUFBPE_MASK(0),  GGUFBPE_MASK(1),  GGUFBPE_MASK(2),  GGUFBPE_MASK(3), GGUFBPE_MASK(4),  GGUFBPE_MASK(5),
    GGUFBPE_MASK(6),  GGUFBPE_MASK(7),  GGUFBPE_MASK(8),  GGUFBPE_MASK(9), GGUFBPE_MASK(10), GGUFBPE_MASK(11),
    GGUFBPE_MASK(12), GGUFBPE_MASK(13), GGUFBPE_MASK(14), GGUFBPE_MASK(15)};
#undef GGUFBPE_MASK

// The buckets behind the first one, in which there was no room when the word came.
bool WordTable::find_further(const WordKey &key, size_t bucket, const unsigned char *word, Found &found) const {
    for (size_t turn = 0; turn < REACH; bucket = (bucket + ++turn) & mask_) {
        for (const Slot &slot : buckets_[bucket].slots) {
            const uint64_t high = slot.high.load(std::memory_order_acquire);
            if (high == 0) return false;
            if (high != key.high || slot.low.load(std::memory_order_relaxed) != key.low) continue;
            found = {slot.first_two.load(std::memory_order_relaxed), slot.third.load(std::memory_order_relaxed)};
            if (key.is_inline() || is_word(found, word)) return true;
        }
    }
    return false;
}

WordTable::Record *WordTable::new_record(size_t size, size_t count) {
    constexpr size_t CHUNK = 1 << 13;  // words of 8 bytes
    const size_t words = (sizeof(Record) + count * sizeof(int32_t) + size + 7) / 8;
    if (words > chunk_left_) {
        const size_t length = std::max(CHUNK, words);
        chunks_.push_back(std::make_unique<uint64_t[]>(length));
        chunk_next_ = chunks_.back().get();
        chunk_left_ = length;
        record_bytes_.fetch_add(length * 8, std::memory_order_relaxed);
    }
    auto *record = reinterpret_cast<Record *>(chunk_next_);
    chunk_next_ += words;
    chunk_left_ -= words;
    record->size = static_cast<uint32_t>(size);
    record->count = static_cast<uint32_t>(count);
    return record;
}

bool WordTable::insert(const WordKey &key, size_t bucket, const unsigned char *word, size_t size, const int32_t *ids,
                       size_t count, Found &found) {
    if (used_.load(std::memory_order_relaxed) >= slot_count() / 8 * 5) return false;
    if (record_bytes_.load(std::memory_order_relaxed) >= most_record_bytes_) return false;
    for (size_t turn = 0; turn < REACH; bucket = (bucket + ++turn) & mask_) {
        for (Slot &slot : buckets_[bucket].slots) {
            const uint64_t high = slot.high.load(std::memory_order_relaxed);
            if (high == key.high && slot.low.load(std::memory_order_relaxed) == key.low) {  // another thread was faster
                found = {slot.first_two.load(std::memory_order_relaxed), slot.third.load(std::memory_order_relaxed)};
                if (key.is_inline() || is_word(found, word)) return true;
            }
            if (high) continue;
            uint64_t first_two, third;
            if (key.is_inline() && count <= 3) {
                auto id = [&](size_t k) { return k < count ? static_cast<uint32_t>(ids[k]) : 0u; };
                first_two = id(0) | uint64_t(id(1)) << 32;
                third = id(2) | uint64_t(count) << 32;
            } else {
                Record *record = new_record(size, count);
                std::copy(ids, ids + count, reinterpret_cast<int32_t *>(record + 1));
                std::memcpy(reinterpret_cast<int32_t *>(record + 1) + count, word, size);
                first_two = reinterpret_cast<uint64_t>(record);
                third = IN_RECORD;
            }
            slot.low.store(key.low, std::memory_order_relaxed);
            slot.first_two.store(first_two, std::memory_order_relaxed);
            slot.third.store(third, std::memory_order_relaxed);
            slot.high.store(key.high, std::memory_order_release);
            used_.store(used_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
            found = {first_two, third};
            return true;
        }
    }
    return false;
}

void WordTable::copy_to(WordTable &other) const {
    std::lock_guard<std::mutex> lock(other.writing_);
    for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
        for (const Slot &slot : buckets_[bucket].slots) copy_slot(slot, other);
    }
}

void WordTable::copy_slot(const Slot &slot, WordTable &other) {
    const uint64_t high = slot.high.load(std::memory_order_acquire);
    if (high == 0) return;
    const WordKey key{slot.low.load(std::memory_order_relaxed), high};
    const Found found{slot.first_two.load(std::memory_order_relaxed), slot.third.load(std::memory_order_relaxed)};
    Found copied;
    if (found.third & IN_RECORD) {
        const Record &record = record_of(found);
        const auto *word = reinterpret_cast<const unsigned char *>(record.bytes());
        other.insert(key, other.bucket(key.hash()), word, record.size, record.ids(), record.count, copied);
    } else {
        const int32_t ids[3] = {static_cast<int32_t>(found.first_two), static_cast<int32_t>(found.first_two >> 32),
                                static_cast<int32_t>(found.third)};
        other.insert(key, other.bucket(key.hash()), nullptr, 0, ids, found.third >> 32, copied);
    }
}

std::shared_ptr<WordTable> WordCache::replace(const std::shared_ptr<WordTable> &full) {
    std::unique_lock<std::mutex> growing(growing_, std::try_to_lock);
    if (!growing || full->retired.load(std::memory_order_acquire)) return table();
    const size_t slots = full->slot_count(), record_bytes = full->bytes() - slots * sizeof(WordTable::Slot);
    size_t grown = 4 * slots;
    while (grown > slots && grown * sizeof(WordTable::Slot) + record_bytes > most_bytes_) grown /= 2;
    auto next = new_table(grown);
    if (grown > slots) full->copy_to(*next);
    return put_in_place_of(full, next);
}

void WordCache::expect(size_t words) {
    std::lock_guard<std::mutex> growing(growing_);
    const std::shared_ptr<WordTable> now = table();
    size_t slots = now->slot_count();
    while (slots / 2 < words && 2 * slots * sizeof(WordTable::Slot) <= most_bytes_ / 2) slots *= 2;
    if (slots == now->slot_count() || now->used() > slots / 16) return;
    auto next = new_table(slots);
    now->copy_to(*next);
    put_in_place_of(now, next);
}

// Unless the cache was emptied meanwhile; returns what is in force.
std::shared_ptr<WordTable> WordCache::put_in_place_of(const std::shared_ptr<WordTable> &former,
                                                      const std::shared_ptr<WordTable> &next) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (table_ == former) {
        table_ = next;
        former->retired.store(true, std::memory_order_release);
    }
    return table_;
}

void WordCache::clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    table_->retired.store(true, std::memory_order_release);
    table_ = new_table(FIRST_SLOTS);
}

}  // namespace ggufbpe
