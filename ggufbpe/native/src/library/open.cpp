#include <algorithm>
#include <cstring>
#include <mutex>

#include "bpe/bpe_model.h"
#include "fork.h"
#include "gguf/byte_source.h"
#include "gguf/file_metadata.h"
#include "library/handles.h"
#include "library/table_cache.h"
#include "vocabulary/loading.h"
#include "vocabulary/metadata_keys.h"
#include "vocabulary/pre_tokenizers.h"
#include "vocabulary/text_models.h"

namespace ggufbpe {

namespace {

class Memory final : public ByteSource {
public:
    Memory(const void *data, size_t size) : data_(static_cast<const char *>(data)), size_(size) {}

    uint64_t size() const override { return size_; }
    size_t read(uint64_t offset, char *to, size_t size) override {
        const size_t count = offset < size_ ? std::min<size_t>(size, size_ - static_cast<size_t>(offset)) : 0;
        if (count) std::memcpy(to, data_ + offset, count);
        return count;
    }

private:
    const char *data_;
    size_t size_;
};

class Callback final : public ByteSource {
public:
    Callback(ggufbpe_read function, void *context, uint64_t size) : read_(function), context_(context), size_(size) {}

    uint64_t size() const override { return size_; }
    size_t read(uint64_t offset, char *to, size_t size) override {
        const int64_t count = read_(context_, offset, to, size);
        if (count < 0) throw LoadError(Fault::io, "the read callback failed", offset);
        if (static_cast<uint64_t>(count) > size) throw CallError(GGUFBPE_INVALID_ARGUMENT, "the read callback gave too many bytes");
        return static_cast<size_t>(count);
    }

private:
    ggufbpe_read read_;
    void *context_;
    uint64_t size_;
};

constexpr size_t FEWEST_MERGES = 10000;  // the table of fewer is made in the time that reading a file takes

// What names the tables of a vocabulary: its tokens and merges, how they are merged, and what lays tables out.
Digest key_of_tables(const Vocabulary &vocabulary, const HashKey &secret) {
    const PreTokenizer &pre = vocabulary.pre;
    const bool about[] = {IS_BIG_ENDIAN,    sizeof(void *) == 8, pre.byte_encode,       pre.ignore_merges,
                          pre.newline_runs, pre.prepend_space,   pre.escape_whitespaces};
    KeyedHash hash(secret);
    vocabulary.names->add_to(hash);
    vocabulary.merges->add_to(hash);
    hash.add(about, sizeof about);
    hash.add(GGUFBPE_BUILD, std::strlen(GGUFBPE_BUILD));
    return hash.digest();
}

// The model, with tables of merges from the user's cache if they are there; else they are put there.
std::shared_ptr<const TextModel> model_of(const Vocabulary &vocabulary, const std::shared_ptr<const Splitter> &splitter,
                                          size_t cache_bytes, const Poll &poll) {
    const auto cache = vocabulary.merges->size() < FEWEST_MERGES ? nullptr : TableCache::of_user();
    if (!cache) return text_model(vocabulary, splitter, cache_bytes, poll);
    const Digest key = key_of_tables(vocabulary, cache->secret());
    const auto made = cache->read(key);
    auto model = text_model(vocabulary, splitter, cache_bytes, poll, made);
    if (!made) cache->keep(key, dynamic_cast<const BPEModel &>(*model));
    return model;
}

std::unique_ptr<ggufbpe_tokenizer> opened(ByteSource &source, const ggufbpe_open_options &options) {
    static std::once_flag is_ready;
    std::call_once(is_ready, ForkGate::install);
    const Poll poll = poll_of(options);
    auto made = std::make_unique<ggufbpe_tokenizer>();
    const FileMetadata file(source, poll);
    file.require_first_shard();
    made->vocabulary = load(file, {}, poll);
    Vocabulary &vocabulary = made->vocabulary;
    vocabulary.merges = vocabulary.has_merges ? file.require(MERGES).strings : std::make_shared<Strings>();
    if (vocabulary.kind->has_pre_tokenizer) made->splitter = splitter_of(vocabulary.pre);
    const size_t cache_bytes = options.cache_bytes ? options.cache_bytes : BPEModel::CACHE_BYTES;
    auto model = model_of(vocabulary, made->splitter, cache_bytes, poll);
    made->encoder.reset(new Encoder(encoder_of(vocabulary, std::move(model), vocabulary.before(), vocabulary.behind())));
    for (const bool parse_special : {false, true}) {
        made->places[parse_special] =
            std::make_unique<SplitPoints>(vocabulary, *made->encoder, made->splitter.get(), parse_special);
    }
    return made;
}

// Opens what make() returns, a ByteSource.
template <typename Make>
ggufbpe_status open_with(Make make, const ggufbpe_open_options *given, ggufbpe_tokenizer **tokenizer, ggufbpe_error *error) {
    if (tokenizer) *tokenizer = nullptr;
    const auto work = [&] {
        require(tokenizer, "there is no place for the tokenizer");
        const ggufbpe_open_options options = options_from(given, GGUFBPE_OPEN_OPTIONS_INIT);
        const std::unique_ptr<ByteSource> source = make();
        *tokenizer = opened(*source, options).release();
    };
    return answer(error, work, GGUFBPE_BAD_VOCABULARY);
}

}  // namespace

}  // namespace ggufbpe

using namespace ggufbpe;

ggufbpe_status ggufbpe_open_file(const char *path, const ggufbpe_open_options *options, ggufbpe_tokenizer **tokenizer,
                                 ggufbpe_error *error) {
    const auto make = [&] {
        require(path, "the path is NULL");
        return open_file(path);
    };
    return open_with(make, options, tokenizer, error);
}

ggufbpe_status ggufbpe_open_buffer(const void *data, size_t size, const ggufbpe_open_options *options,
                                   ggufbpe_tokenizer **tokenizer, ggufbpe_error *error) {
    const auto make = [&] {
        require(data || !size, "the buffer is NULL");
        require(size <= LARGEST_SIZE, "no buffer has so many bytes");
        return std::make_unique<Memory>(data, size);
    };
    return open_with(make, options, tokenizer, error);
}

ggufbpe_status ggufbpe_open_callback(ggufbpe_read read, void *read_context, uint64_t file_size,
                                     const ggufbpe_open_options *options, ggufbpe_tokenizer **tokenizer, ggufbpe_error *error) {
    const auto make = [&] {
        require(read, "the callback is NULL");
        return std::make_unique<Callback>(read, read_context, file_size);
    };
    return open_with(make, options, tokenizer, error);
}

void ggufbpe_close(ggufbpe_tokenizer *tokenizer) { delete tokenizer; }

void ggufbpe_release_memory(ggufbpe_tokenizer *tokenizer) {
    if (tokenizer) answer(nullptr, [&] { tokenizer->encoder->model().release_memory(); });
}
