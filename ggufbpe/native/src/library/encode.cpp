#include <algorithm>
#include <new>
#include <optional>

#include "library/handles.h"
#include "threads.h"

using namespace ggufbpe;

namespace {

ggufbpe_encode_options encode_options(const ggufbpe_encode_options *given) {
    const ggufbpe_encode_options options = options_from(given, GGUFBPE_ENCODE_OPTIONS_INIT);
    require(!options.reserved, "a reserved option is not 0");
    return options;
}

EncodeOptions flags_of(const ggufbpe_encode_options &options) {
    return {options.add_special != 0, options.parse_special != 0, options.continues != 0};
}

size_t threads_of(const ggufbpe_encode_options &options) { return static_cast<size_t>(std::max(options.threads, 1)); }

ggufbpe_status encode(const ggufbpe_tokenizer *tokenizer, const char *text, size_t size, const ggufbpe_encode_options *given,
                      bool with_spans, ggufbpe_encoding *encoding, ggufbpe_error *error) {
    const auto clear = [&] {
        encoding->ids.clear();
        encoding->spans.clear();
        encoding->has_spans = with_spans;
    };
    if (encoding) clear();
    const auto work = [&] {
        require(tokenizer && encoding, "there is no tokenizer or no encoding");
        const ggufbpe_encode_options options = encode_options(given);
        const Poll poll = poll_of(options);
        const Text source = text_of(text, size, options.is_utf8 != 0);
        const Encoder &encoder = *tokenizer->encoder;
        if (with_spans) {
            encoder.encode_with_spans(source, flags_of(options), encoding->ids, encoding->spans, poll);
        } else if (threads_of(options) == 1) {
            encoder.encode(source, flags_of(options), 1, encoding->ids, poll);
        } else {
            std::optional<SharedWork<Ids>> ids;
            though_forked(threads_of(options), [&](size_t threads) {
                encoder.encode(source, flags_of(options), threads, *ids.emplace(), poll);
            });
            encoding->ids = std::move(**ids);
        }
    };
    const ggufbpe_status status = answer(error, work);
    if (status && encoding) clear();
    return status;
}

const int32_t NO_IDS[1] = {0};  // slices of Rust must not be null, even if they are empty

}  // namespace

ggufbpe_encoding *ggufbpe_encoding_new(void) { return new (std::nothrow) ggufbpe_encoding; }

void ggufbpe_encoding_free(ggufbpe_encoding *encoding) { delete encoding; }

size_t ggufbpe_encoding_count(const ggufbpe_encoding *encoding) { return encoding ? encoding->ids.size() : 0; }

const int32_t *ggufbpe_encoding_ids(const ggufbpe_encoding *encoding) {
    return encoding && encoding->ids.size() ? encoding->ids.data() : NO_IDS;
}

const ggufbpe_span *ggufbpe_encoding_spans(const ggufbpe_encoding *encoding) {
    static_assert(sizeof(ggufbpe_span) == sizeof(Span), "spans are handed out as they are");
    if (!encoding || !encoding->has_spans) return nullptr;
    return reinterpret_cast<const ggufbpe_span *>(encoding->spans.data());
}

ggufbpe_status ggufbpe_encode(const ggufbpe_tokenizer *tokenizer, const char *text, size_t size,
                              const ggufbpe_encode_options *options, ggufbpe_encoding *encoding, ggufbpe_error *error) {
    return encode(tokenizer, text, size, options, false, encoding, error);
}

ggufbpe_status ggufbpe_encode_with_offsets(const ggufbpe_tokenizer *tokenizer, const char *text, size_t size,
                                           const ggufbpe_encode_options *options, ggufbpe_encoding *encoding,
                                           ggufbpe_error *error) {
    return encode(tokenizer, text, size, options, true, encoding, error);
}

ggufbpe_status ggufbpe_count(const ggufbpe_tokenizer *tokenizer, const char *text, size_t size,
                             const ggufbpe_encode_options *given, size_t *count, ggufbpe_error *error) {
    return answer(error, [&] {
        require(tokenizer && count, "there is no tokenizer or no place for the number");
        const ggufbpe_encode_options options = encode_options(given);
        const Poll poll = poll_of(options);
        const Text source = text_of(text, size, options.is_utf8 != 0);
        though_forked(threads_of(options), [&](size_t threads) {
            *count = tokenizer->encoder->count(source, flags_of(options), threads, poll);
        });
    });
}

ggufbpe_status ggufbpe_find_split_point(const ggufbpe_tokenizer *tokenizer, const char *text, size_t size, size_t start,
                                        const ggufbpe_encode_options *given, size_t *place, ggufbpe_error *error) {
    return answer(error, [&] {
        require(tokenizer && place, "there is no tokenizer or no place for the result");
        require(start <= size, "the start is behind the end of the text");
        const ggufbpe_encode_options options = encode_options(given);
        const Text source = text_of(text, size);
        *place = tokenizer->places[options.parse_special != 0]->next(source.data, size, start, poll_of(options));
    });
}

ggufbpe_status ggufbpe_growing_text_new(const ggufbpe_tokenizer *tokenizer, const ggufbpe_encode_options *given,
                                        ggufbpe_growing_text **growing, ggufbpe_error *error) {
    if (growing) *growing = nullptr;
    return answer(error, [&] {
        require(tokenizer && growing, "there is no tokenizer or no place for the text");
        const ggufbpe_encode_options options = encode_options(given);
        *growing = new ggufbpe_growing_text{
            GrowingText(tokenizer->vocabulary, *tokenizer->encoder, tokenizer->splitter.get(), options.add_special != 0,
                        options.parse_special != 0),
            poll_of(options)};
    });
}

void ggufbpe_growing_text_free(ggufbpe_growing_text *growing) { delete growing; }

ggufbpe_status ggufbpe_growing_text_append(ggufbpe_growing_text *growing, const char *text, size_t size, ggufbpe_change *change,
                                           ggufbpe_error *error) {
    return answer(error, [&] {
        require(growing, "there is no text to append to");
        text_of(text, size);
        const GrowingText::Change made = growing->text.append(text ? text : "", size, growing->poll);
        if (change) *change = {made.kept, made.removed, made.inserted};
    });
}

size_t ggufbpe_growing_text_count(const ggufbpe_growing_text *growing) { return growing ? growing->text.ids().size() : 0; }

const int32_t *ggufbpe_growing_text_ids(const ggufbpe_growing_text *growing) {
    return growing && !growing->text.ids().empty() ? growing->text.ids().data() : NO_IDS;
}
