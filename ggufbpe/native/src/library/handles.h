// What stands behind the handles of include/ggufbpe.h, and how exceptions become its results.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "encoder.h"
#include "ggufbpe.h"
#include "gguf/load_error.h"
#include "ids.h"
#include "poll.h"
#include "spans.h"
#include "split/splitter.h"
#include "tokenizer/detokenization.h"
#include "tokenizer/growing_text.h"
#include "tokenizer/split_points.h"
#include "vocabulary/vocabulary.h"

struct ggufbpe_tokenizer {
    ggufbpe::Vocabulary vocabulary;
    std::shared_ptr<const ggufbpe::Splitter> splitter;  // null in models without pre-tokenizers
    std::unique_ptr<const ggufbpe::Encoder> encoder;
    std::unique_ptr<const ggufbpe::SplitPoints> places[2];  // by whether control tokens are recognized
};

struct ggufbpe_encoding {
    ggufbpe::Ids ids;
    ggufbpe::Spans spans;
    bool has_spans = false;
};

struct ggufbpe_growing_text {
    ggufbpe::GrowingText text;
    ggufbpe::Poll poll;
};

struct ggufbpe_decode_stream {
    ggufbpe::DecodeStream stream;
    std::string text;
};

namespace ggufbpe {

// An error of the caller, or of what the caller asked for.
struct CallError : std::runtime_error {
    CallError(ggufbpe_status code, const std::string &problem) : std::runtime_error(problem), status(code) {}

    ggufbpe_status status;
};

inline void require(bool holds, const char *problem) {
    if (!holds) throw CallError(GGUFBPE_INVALID_ARGUMENT, problem);
}

// More bytes than any array has; a size beyond is a mistake, such as -1.
constexpr size_t LARGEST_SIZE = PTRDIFF_MAX;
constexpr size_t LONGEST_OPTIONS = 4096;  // longer than those of any version

// The status of the exception that is being handled; `error` may be null. `of_argument` is the status of a
// std::invalid_argument, whose meaning depends on the call.
ggufbpe_status status_of_exception(ggufbpe_error *error, ggufbpe_status of_argument) noexcept;

// Calls work(); its exceptions end here.
template <typename Work>
ggufbpe_status answer(ggufbpe_error *error, Work work, ggufbpe_status of_argument = GGUFBPE_CANNOT_ENCODE) noexcept {
    try {
        work();
        return GGUFBPE_OK;
    } catch (...) {
        return status_of_exception(error, of_argument);
    }
}

// Options of any version: fields that the caller does not know are zero. `defaults` if there are none.
template <typename Options>
Options options_from(const Options *given, const Options &defaults) {
    if (!given) return defaults;
    require(given->size >= sizeof given->size && given->size <= LONGEST_OPTIONS, "options without their size");
    Options options;
    std::memset(static_cast<void *>(&options), 0, sizeof options);
    const size_t known = given->size < sizeof options ? given->size : sizeof options;
    std::memcpy(static_cast<void *>(&options), given, known);
    const auto *bytes = reinterpret_cast<const unsigned char *>(given);
    for (size_t i = known; i < given->size; ++i) require(!bytes[i], "options of a newer version of the library");
    return options;
}

// The poll of some options, which ends the call if the caller asks for that.
template <typename Options>
Poll poll_of(const Options &options) {
    if (!options.poll) return NO_POLL;
    return [poll = options.poll, context = options.poll_context] {
        if (poll(context)) throw CallError(GGUFBPE_INTERRUPTED, "the call was interrupted");
    };
}

inline Text text_of(const char *text, size_t size, bool is_utf8 = false) {
    require(text || !size, "the text is NULL");
    require(size <= LARGEST_SIZE, "a text of so many bytes is too long");
    return {reinterpret_cast<const unsigned char *>(text ? text : ""), size, is_utf8};
}

// Writes bytes as ggufbpe_decode does.
inline void write_bytes(const std::string &bytes, char *to, size_t capacity, size_t *size) {
    *size = bytes.size();
    if (bytes.size() > capacity) throw CallError(GGUFBPE_BUFFER_TOO_SMALL, "the buffer is too small");
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
}

}  // namespace ggufbpe
