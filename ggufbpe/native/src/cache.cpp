#include "cache.h"

#include <algorithm>
#include <new>

namespace ggufbpe {

namespace {

constexpr uint64_t ones(size_t bytes) { return bytes >= 8 ? ~uint64_t(0) : (uint64_t(1) << (8 * bytes)) - 1; }

}  // namespace

#define GGUFBPE_FOR_EACH_SIZE(form) {form(0), form(1), form(2), form(3), form(4), form(5), form(6), form(7), \
                                     form(8), form(9), form(10), form(11), form(12), form(13), form(14), form(15)}
#define GGUFBPE_MASK(size) {ones(size##u), size##u > 8 ? ones(size##u - 8) : 0}
#define GGUFBPE_LENGTH(size) {0, uint64_t(size) << 56}
const WordKey::Forms WordKey::FORMS = {GGUFBPE_FOR_EACH_SIZE(GGUFBPE_MASK), GGUFBPE_FOR_EACH_SIZE(GGUFBPE_LENGTH)};
#undef GGUFBPE_LENGTH
#undef GGUFBPE_MASK
#undef GGUFBPE_FOR_EACH_SIZE

// Not inline, so that a loop over many words, of which few are so long, stays in registers.
NEVER_INLINE WordKey WordKey::of_long(const unsigned char *word, size_t size) {
    return {hash_bytes(reinterpret_cast<const char *>(word), size), uint64_t(0xFF) << 56 | size};
}

bool WordTable::find_further(const WordKey &key, const Bucket &first, const unsigned char *word, Found &found) const {
    size_t bucket = static_cast<size_t>(&first - buckets_.data());
    for (size_t turn = 0; turn < MAX_PROBES; bucket = (bucket + ++turn) & mask_) {
        const Bucket &both = buckets_[bucket];
        for (size_t slot = 0; slot < Bucket::SLOTS; ++slot) {
            const Bucket::Key &here = both.keys[slot];
            const uint64_t high = here.high.load(std::memory_order_acquire);
            if (high == 0) return false;
            if (high != key.high || here.low.load(std::memory_order_relaxed) != key.low) continue;
            found = both.value(slot);
            if (key.is_inline() || is_word(found, word)) return true;
        }
    }
    return false;
}

WordTable::~WordTable() {
    for (Chunk *chunk = chunks_.load(); chunk;) {
        Chunk *older = chunk->older;
        ::operator delete(chunk);
        chunk = older;
    }
}

WordTable::Record *WordTable::Writer::new_record(size_t size, size_t count) {
    constexpr size_t CHUNK = 1 << 11;  // numbers of 8 bytes
    constexpr size_t READ_BEYOND = 32;  // bytes: ids are copied eight at a time
    const size_t needed = (sizeof(Record) + count * sizeof(int32_t) + size + 7) / 8;
    if (needed > left_) {
        const size_t length = std::max(CHUNK, needed);
        auto *chunk = static_cast<Chunk *>(::operator new(sizeof(Chunk) + length * 8 + READ_BEYOND));
        chunk->older = table_->chunks_.load(std::memory_order_relaxed);
        while (!table_->chunks_.compare_exchange_weak(chunk->older, chunk, std::memory_order_release)) {
        }
        next_ = chunk->content();
        left_ = length;
        table_->record_bytes_.fetch_add(length * 8, std::memory_order_relaxed);
    }
    auto *record = reinterpret_cast<Record *>(next_);
    next_ += needed;
    left_ -= needed;
    record->size = static_cast<uint32_t>(size);
    record->count = static_cast<uint32_t>(count);
    return record;
}

void WordTable::Writer::count_kept() {
    if (kept_) table_->used_.fetch_add(kept_, std::memory_order_relaxed);
    kept_ = 0;
}

bool WordTable::Writer::insert(const WordKey &key, size_t bucket, const unsigned char *word, size_t size, const int32_t *ids,
                               size_t count, Found &found) {
    WordTable &table = *table_;
    if (table.used_.load(std::memory_order_relaxed) + kept_ >= table.slot_count() / 8 * 5) return false;
    if (table.record_bytes_.load(std::memory_order_relaxed) >= table.most_record_bytes_) return false;
    for (size_t turn = 0; turn < MAX_PROBES; bucket = (bucket + ++turn) & table.mask_) {
        Bucket &both = table.buckets_[bucket];
        for (size_t slot = 0; slot < Bucket::SLOTS; ++slot) {
            Bucket::Key &here = both.keys[slot];
            uint64_t high = here.high.load(std::memory_order_acquire);
            if (high == key.high && here.low.load(std::memory_order_relaxed) == key.low) {  // another thread was faster
                found = both.value(slot);
                if (key.is_inline() || is_word(found, word)) return true;
            }
            // If another thread claims the slot at this moment, the word may be in the table twice, which does no harm.
            if (high || !here.high.compare_exchange_strong(high, CLAIMED, std::memory_order_relaxed)) continue;
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
            Bucket::Value &value = both.values[slot];
            here.low.store(key.low, std::memory_order_relaxed);
            value.first_two.store(first_two, std::memory_order_relaxed);
            value.third.store(third, std::memory_order_relaxed);
            here.high.store(key.high, std::memory_order_release);
            ++kept_;
            found = {first_two, third};
            return true;
        }
    }
    return false;
}

void WordTable::copy_to(WordTable &larger) const {
    Writer writer;
    writer.write_to(larger);
    for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
        for (size_t slot = 0; slot < Bucket::SLOTS; ++slot) copy_slot(buckets_[bucket], slot, larger, writer);
    }
    writer.count_kept();
}

void WordTable::copy_slot(const Bucket &bucket, size_t slot, WordTable &to, Writer &writer) {
    const uint64_t high = bucket.keys[slot].high.load(std::memory_order_acquire);
    if (high == 0 || high == CLAIMED) return;
    const WordKey key{bucket.keys[slot].low.load(std::memory_order_relaxed), high};
    const Found found = bucket.value(slot);
    const bool is_record = found.third & IN_RECORD;
    const unsigned char *word = is_record ? record_of(found).bytes() : nullptr;
    int32_t few[4];
    Found copied;
    writer.insert(key, to.bucket(key.hash()), word, is_record ? record_of(found).size : 0, found.ids(few), found.count(), copied);
}

WordTables WordCache::replace(const std::shared_ptr<WordTable> &full) {
    std::unique_lock<Mutex> growing(growing_, std::try_to_lock);
    const WordTables now = tables();
    if (!growing || full != now.young_generation) return now;
    const size_t slots = full->slot_count(), record_bytes = full->bytes() - slots * WordTable::SLOT_BYTES;
    size_t grown = 4 * slots;
    while (grown > slots && grown * WordTable::SLOT_BYTES + record_bytes > most_bytes_) grown /= 2;
    auto next = new_table(grown);
    if (grown == slots) return put_in_place_of(full, {next, full});
    full->copy_to(*next);
    return put_in_place_of(full, {next, now.old_generation});
}

bool WordCache::prepare_for(size_t words) {
    std::lock_guard<Mutex> growing(growing_);
    const WordTables now = tables();
    size_t slots = now.young_generation->slot_count();
    while (slots / 2 < words && 2 * slots * WordTable::SLOT_BYTES <= most_bytes_ / 2) slots *= 2;
    if (slots == now.young_generation->slot_count() || now.young_generation->used() > slots / 16) return false;
    auto next = new_table(slots);
    now.young_generation->copy_to(*next);
    put_in_place_of(now.young_generation, {next, now.old_generation});
    return true;
}

// Replaces a table unless the cache was emptied in the meantime; returns the tables in force.
WordTables WordCache::put_in_place_of(const std::shared_ptr<WordTable> &replaced, WordTables next) {
    std::lock_guard<Mutex> lock(mutex_);
    if (tables_.young_generation == replaced) {
        tables_ = std::move(next);
        replaced->retired.store(true, std::memory_order_release);
    }
    return tables_;
}

void WordCache::clear() {
    std::lock_guard<Mutex> lock(mutex_);
    tables_.young_generation->retired.store(true, std::memory_order_release);
    tables_ = {new_table(FIRST_SLOTS), nullptr};
}

size_t WordCache::bytes() const {
    const WordTables now = tables();
    return now.young_generation->bytes() + (now.old_generation ? now.old_generation->bytes() : 0);
}

}  // namespace ggufbpe
