// Text to ids: the steps put together.
//
//     text -> special.h -> fragments -> split.h -> words -> cache.h, merge.h -> ids
//
// Source of the order of steps: src/llama-vocab.cpp, llama_vocab::impl::tokenize.
//
// But: no Python. One Encoder serves many threads at once; nothing in it changes but the cache.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "cache.h"
#include "memory.h"
#include "merge.h"
#include "special.h"
#include "split.h"

namespace ggufbpe {

// Ids that grow at the end; many of them are in huge pages. Memory that is not used yet is not touched.
class Ids {
public:
    Ids() = default;
    ~Ids() { free(); }
    Ids(Ids &&other) noexcept { swap(other); }
    Ids &operator=(Ids &&other) noexcept {
        swap(other);
        return *this;
    }

    const int32_t *data() const { return data_; }
    size_t size() const { return size_; }

    // Where the next ids are written; there is room for `count`. advance() says how many there are then.
    int32_t *room(size_t count) {
        if (capacity_ - size_ < count) grow(count);
        return data_ + size_;
    }
    void advance(const int32_t *end) { size_ = static_cast<size_t>(end - data_); }
    void push(int32_t id) {
        *room(1) = id;
        ++size_;
    }
    void append(const Ids &other);
    void clear() { size_ = 0; }

    // Gives back what was not used, if it is much.
    void shrink();

private:
    void grow(size_t count);
    void move_to(size_t capacity);
    void free();
    void swap(Ids &other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        std::swap(pages_, other.pages_);
    }

    int32_t *data_ = nullptr;
    size_t size_ = 0, capacity_ = 0;
    HugePages::Mapping pages_;  // where the data are, if not in memory of malloc
};

struct Text {
    const unsigned char *data;
    size_t size;
    bool is_valid;  // known to be UTF-8
};

struct EncodeOptions {
    bool add_special = true;
    bool parse_special = true;
};

class Encoder {
public:
    static constexpr size_t CACHE_BYTES = size_t(96) << 20;

    // `bos` and `eos` are -1 where none is to be added.
    Encoder(std::shared_ptr<const Strings> tokens, const Strings &merges, std::shared_ptr<const Splitter> splitter,
            const MergeOptions &options, const std::vector<SpecialToken> &special, int32_t bos, int32_t eos,
            size_t cache_bytes = CACHE_BYTES);
    ~Encoder();

    // Appends the ids of a text; on `threads` threads if it is long. What poll throws ends it.
    void encode(const Text &text, const EncodeOptions &options, size_t threads, Ids &ids, const Poll &poll) const;
    // The ids of each text, in results[i]. poll is called on the calling thread only.
    void encode_batch(const std::vector<Text> &texts, const EncodeOptions &options, size_t threads, std::vector<Ids> &results,
                      const Poll &poll) const;
    size_t count(const Text &text, const EncodeOptions &options, size_t threads, const Poll &poll) const;

    // The ids of text that is plain as it is, with nothing added.
    void encode_plain(const Text &text, Ids &ids, const Poll &poll) const;

    const Merger &merger() const { return merger_; }
    size_t cache_bytes() const { return cache_.bytes(); }
    void clear_cache() const {
        cache_.clear();
        drop_retired_tables();
    }

private:
    struct Worker;
    struct Missing;
    class Lease;

    // A part of a text that is encoded on its own: a special token, or plain text.
    struct Part {
        int32_t token;
        const unsigned char *data;
        size_t size;
    };

    const Partition &partition(bool parse_special) const;
    std::vector<Part> parts_of(const Text &text, bool parse_special, size_t longest,
                               std::vector<std::vector<unsigned char>> &rewritten) const;
    void encode_parts(const std::vector<Part> &parts, size_t threads, Ids *ids, size_t *count, const Poll &poll) const;
    void encode_fragment(const unsigned char *text, size_t size, Worker &worker, Ids &ids, size_t *count,
                         const Poll &poll) const;
    int32_t *encode_words(const unsigned char *text, size_t size, Worker &worker, int32_t *to, size_t *count,
                          const Poll &poll) const;
    void encode_missing(WordTable::Found *found, Worker &worker, const Poll &poll) const;
    WordTable::Found keep(const Merger::Word &word, const WordKey &key, const int32_t *ids, size_t count, Worker &worker) const;
    std::vector<unsigned char> rewrite(const unsigned char *text, size_t size) const;
    void drop_retired_tables() const;

    std::shared_ptr<const Strings> tokens_;
    std::shared_ptr<const Splitter> splitter_;
    Merger merger_;
    bool escape_spaces_;
    std::vector<SpecialToken> special_;
    int32_t bos_, eos_;
    mutable std::once_flag partition_once_[2];
    mutable std::unique_ptr<Partition> partitions_[2];
    mutable WordCache cache_;
    mutable std::mutex workers_mutex_;
    mutable std::vector<std::unique_ptr<Worker>> workers_;  // idle ones, to be used again
};

}  // namespace ggufbpe
