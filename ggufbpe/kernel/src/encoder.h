// Text to ids: the steps put together.
//
//     text -> special.h -> fragments -> split.h -> words -> cache.h, merge.h -> ids
//                              own_steps.h, in two kinds of models
//
// Source of the order of steps: src/llama-vocab.cpp, llama_vocab::impl::tokenize.
//
// But: no Python. One Encoder serves many threads at once; nothing in it changes but the cache.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "cache.h"
#include "ids.h"
#include "lazy.h"
#include "merge.h"
#include "own_steps.h"
#include "special.h"
#include "split.h"

namespace ggufbpe {

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

    // By `tokens` words are looked up; `texts` is what the same tokens are in text, where special ones are found. `bos` and
    // `eos` are -1 where none is to be added.
    Encoder(std::shared_ptr<const Strings> tokens, std::shared_ptr<const Strings> texts, const Strings &merges,
            std::shared_ptr<const Splitter> splitter, const MergeOptions &options, OwnStep own_step,
            const std::vector<SpecialToken> &special, int32_t bos, int32_t eos, size_t cache_bytes = CACHE_BYTES);
    ~Encoder();

    // Takes the ids of some texts that follow each other, texts[first] the first of them: ends[i] is where those of
    // texts[first + i] end in `ids`, which may be moved away.
    using Take = std::function<void(size_t first, Ids &ids, const std::vector<size_t> &ends)>;

    // Appends the ids of a text; on `threads` threads if it is long. What poll throws ends it.
    void encode(const Text &text, const EncodeOptions &options, size_t threads, Ids &ids, const Poll &poll) const;
    // Encodes each text, and gives the ids to `take`, some texts at a time and in no order, while other threads go on. poll
    // and take are called on the calling thread only; what they throw ends it.
    void encode_batch(const std::vector<Text> &texts, const EncodeOptions &options, size_t threads, const Take &take,
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

    // A part of a text that is encoded on its own: plain text, or as a Fragment's token says.
    struct Part {
        int32_t token;
        const unsigned char *data;
        size_t size;
    };

    const Partition &partition(bool parse_special, const Poll &poll) const;
    void encode_alone(const Text &text, const EncodeOptions &options, Worker &worker, Ids &ids, size_t *count,
                      const Poll &poll) const;
    void encode_shared(const Text &text, const EncodeOptions &options, size_t threads, Ids &ids, size_t *count,
                       const Poll &poll) const;
    std::vector<Fragment> fragments_of(const Text &text, bool parse_special, size_t threads, bool &is_valid,
                                       const Poll &poll) const;
    std::vector<Part> parts_of(const Text &text, const std::vector<Fragment> &fragments, bool is_valid,
                               std::vector<std::vector<unsigned char>> &rewritten, const Poll &poll) const;
    size_t cut(const unsigned char *text, size_t size, size_t from, const Poll &poll) const;
    void encode_fragments(const Text &text, const std::vector<Fragment> &fragments, Worker &worker, Ids &ids, size_t *count,
                          const Poll &poll) const;
    void encode_part(const Part &part, Worker &worker, Ids &ids, size_t *count, const Poll &poll) const;
    void encode_sequence(const Part &part, Worker &worker, Ids &ids, size_t *count, const Poll &poll) const;
    void encode_spaced(const Part &part, Worker &worker, Ids &ids, size_t *count, const Poll &poll) const;
    void encode_fragment(const unsigned char *text, size_t size, Worker &worker, Ids &ids, size_t *count,
                         const Poll &poll) const;
    int32_t *encode_words(const unsigned char *text, size_t size, Worker &worker, int32_t *to, size_t *count,
                          const Poll &poll) const;
    void encode_very_long(const unsigned char *word, size_t size, Worker &worker, int32_t *&to, size_t *count,
                          const Poll &poll) const;
    void encode_missing(WordTable::Found *found, Worker &worker, const Poll &poll) const;
    WordTable::Found keep(const Merger::Word &word, const WordKey &key, const int32_t *ids, size_t count, Worker &worker,
                          std::optional<WordTable::Writer> &writer) const;
    std::vector<unsigned char> rewrite(const unsigned char *text, size_t size, const Poll &poll) const;
    void drop_retired_tables() const;
    bool take_next_table(Worker &worker) const;

    std::shared_ptr<const Strings> tokens_, texts_;
    std::shared_ptr<const Splitter> splitter_;
    Merger merger_;
    bool escape_spaces_;
    std::unique_ptr<const KMers> k_mers_;               // null in models without this step
    std::unique_ptr<const SpacedWords> spaced_words_;  // as well
    std::vector<SpecialToken> special_;
    int32_t bos_, eos_;
    Lazy<Partition> partitions_[2];
    mutable WordCache cache_;
    mutable std::mutex workers_mutex_;
    mutable std::vector<std::unique_ptr<Worker>> workers_;  // idle ones, to be used again
};

}  // namespace ggufbpe
