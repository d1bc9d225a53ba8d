#include "library/handles.h"

using namespace ggufbpe;

namespace {

DecodeOptions flags_of(const ggufbpe_decode_options *given) {
    const ggufbpe_decode_options options = options_from(given, GGUFBPE_DECODE_OPTIONS_INIT);
    require(!options.reserved, "a reserved option is not 0");
    return {options.remove_special != 0, options.unparse_special != 0, options.clean_spaces != 0};
}

// Keeps a text in a stream's handle, and says where it is.
void give(std::string text, ggufbpe_decode_stream *stream, const char **to, size_t *size) {
    stream->text = std::move(text);
    *to = stream->text.data();
    *size = stream->text.size();
}

}  // namespace

ggufbpe_status ggufbpe_decode(const ggufbpe_tokenizer *tokenizer, const int32_t *ids, size_t count,
                              const ggufbpe_decode_options *options, char *text, size_t capacity, size_t *size,
                              ggufbpe_error *error) {
    return answer(error, [&] {
        require(tokenizer && size && (ids || !count) && (text || !capacity), "a NULL that must not be one");
        require(count <= LARGEST_SIZE / sizeof *ids, "no array has so many ids");
        write_bytes(detokenize(tokenizer->vocabulary, ids, count, flags_of(options), NO_POLL), text, capacity, size);
    });
}

ggufbpe_status ggufbpe_decode_stream_new(const ggufbpe_tokenizer *tokenizer, const ggufbpe_decode_options *options,
                                         ggufbpe_decode_stream **stream, ggufbpe_error *error) {
    if (stream) *stream = nullptr;
    return answer(error, [&] {
        require(tokenizer && stream, "there is no tokenizer or no place for the stream");
        *stream = new ggufbpe_decode_stream{DecodeStream(tokenizer->vocabulary, flags_of(options)), {}};
    });
}

void ggufbpe_decode_stream_free(ggufbpe_decode_stream *stream) { delete stream; }

ggufbpe_status ggufbpe_decode_stream_push(ggufbpe_decode_stream *stream, int32_t id, const char **text, size_t *size,
                                          ggufbpe_error *error) {
    return answer(error, [&] {
        require(stream && text && size, "a NULL that must not be one");
        give(stream->stream.push(id), stream, text, size);
    });
}

ggufbpe_status ggufbpe_decode_stream_finish(ggufbpe_decode_stream *stream, const char **text, size_t *size, ggufbpe_error *error) {
    return answer(error, [&] {
        require(stream && text && size, "a NULL that must not be one");
        give(stream->stream.finish(), stream, text, size);
    });
}
