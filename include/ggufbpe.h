/*
 * ggufbpe.h: the tokenizer of a GGUF model, with exactly the ids of llama.cpp.
 *
 *     ggufbpe_tokenizer *tokenizer;
 *     ggufbpe_encoding *encoding = ggufbpe_encoding_new();
 *     ggufbpe_error error;
 *
 *     if (ggufbpe_open_file("model.gguf", NULL, &tokenizer, &error)) {
 *         fprintf(stderr, "%s\n", error.message);
 *         return 1;
 *     }
 *     ggufbpe_encode(tokenizer, "Hello world", 11, NULL, encoding, NULL);
 *     for (size_t i = 0; i < ggufbpe_encoding_count(encoding); ++i) {
 *         printf("%d\n", (int)ggufbpe_encoding_ids(encoding)[i]);
 *     }
 *     ggufbpe_encoding_free(encoding);
 *     ggufbpe_close(tokenizer);
 *
 * Only the metadata of a file are read, never its tensors, so a model of 40 GB opens as fast as its vocabulary alone.
 *
 * RESULTS. Every function that can fail returns a ggufbpe_status, GGUFBPE_OK (0) if it did what it says. The last parameter
 * of most is a ggufbpe_error, or NULL; it is written only if the function fails. A function that fails has no effect, and sets
 * the handles that it should have returned to NULL. No C++ exception leaves the library, and it never calls exit or abort.
 *
 * TEXT is bytes with a length; it need not end with NUL, and may contain NULs. It should be UTF-8; each byte that cannot be
 * decoded counts as U+FFFD, as in llama.cpp. The address may be NULL if the length is 0.
 *
 * THREADS. A ggufbpe_tokenizer may be used by any number of threads at once. Every other handle (encoding, decode stream,
 * growing text) is for one thread at a time. A tokenizer must not be closed while it, or a handle made from it, is in use.
 * Nothing is kept per thread, so a call may come from another thread than the last one (goroutines, async runtimes).
 *
 * MEMORY. What the library returns by a handle belongs to the handle. What it reads is not kept: texts, options and the bytes
 * of a file may be freed after the call. The words that were encoded are cached, in 32 MiB at most unless an option says
 * otherwise; ggufbpe_release_memory frees the cache.
 *
 * FILES. Opening a large vocabulary reads its merge tables from the user's cache folder, and writes them there the first time
 * (docs/c.md says where). GGUFBPE_CACHE=off in the environment keeps the library from both.
 *
 * VERSIONS. Structures of options begin with their size. Initialize them with the macros below; a program that was compiled
 * with an older header then runs with a newer library, which takes the fields that it does not find as zero. A structure that
 * is larger than the library's own is refused (GGUFBPE_INVALID_ARGUMENT) if a field that the library does not know is not zero.
 */

#ifndef GGUFBPE_H
#define GGUFBPE_H

#include <stddef.h>
#include <stdint.h>

#if defined(GGUFBPE_STATIC)
#define GGUFBPE_API
#elif defined(_WIN32) && defined(GGUFBPE_BUILDING)
#define GGUFBPE_API __declspec(dllexport)
#elif defined(_WIN32)
#define GGUFBPE_API __declspec(dllimport)
#else
#define GGUFBPE_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- version -------------------------------------------------------------------------------------------------------- */

/* The version of this interface. The minor number grows when something is added, the major one when something is changed. */
#define GGUFBPE_VERSION_MAJOR 1
#define GGUFBPE_VERSION_MINOR 0

/* Return the version of the library that runs: major * 1000 + minor. */
GGUFBPE_API int ggufbpe_version(void);

/* ---- errors --------------------------------------------------------------------------------------------------------- */

typedef int32_t ggufbpe_status;

enum {
    GGUFBPE_OK = 0,
    GGUFBPE_INVALID_ARGUMENT = 1, /* a NULL, an impossible size, a position outside of the text, or options of an unknown version */
    GGUFBPE_OUT_OF_MEMORY = 2,
    GGUFBPE_IO = 3,          /* the file cannot be opened or read, or the read callback failed */
    GGUFBPE_INTERRUPTED = 4, /* the poll callback asked to stop */
    GGUFBPE_NOT_GGUF = 5,    /* the bytes do not begin like a GGUF file */
    GGUFBPE_TRUNCATED = 6,   /* the metadata go on behind the last byte; the file has at least `needed` bytes */
    GGUFBPE_CORRUPT = 7,     /* no GGUF file looks like this: lengths, types, double keys, or text that is not UTF-8 */
    GGUFBPE_UNSUPPORTED = 8, /* a version of GGUF, a tokenizer or a pre-tokenizer that the library does not know */
    GGUFBPE_BAD_VOCABULARY = 9,   /* a key is missing or has the wrong type, or llama.cpp would refuse the vocabulary */
    GGUFBPE_BUFFER_TOO_SMALL = 10, /* the result did not fit; the size that it needs was written */
    GGUFBPE_CANNOT_ENCODE = 11, /* llama.cpp throws for this text: it has a byte without a token, or leads out of a charsmap */
    GGUFBPE_NO_SUCH_ID = 12, /* an id that is not in the vocabulary */
    GGUFBPE_INTERNAL = 13    /* an error of the library itself */
};

#define GGUFBPE_NO_OFFSET UINT64_MAX

/* Why a call failed. The caller owns it; nothing in it needs to be freed. */
typedef struct ggufbpe_error {
    ggufbpe_status status;
    char message[404]; /* one line of English in UTF-8, ending with NUL */
    char key[104];     /* the metadata key at fault, "" if there is none; long ones are cut */
    uint64_t offset;   /* where in the file the fault is, or GGUFBPE_NO_OFFSET */
    uint64_t needed;   /* GGUFBPE_TRUNCATED: the file has at least this many bytes; otherwise 0 */
} ggufbpe_error;

/* Return what a status means, in a few words of English. Never NULL, whatever the number. */
GGUFBPE_API const char *ggufbpe_error_message(ggufbpe_status status);

/* Called now and then during long calls, on the thread that made the call; anything but 0 ends the call with
 * GGUFBPE_INTERRUPTED. It may use the tokenizer, but no other handle that the call was given, and it must not close one that is
 * in use. */
typedef int (*ggufbpe_poll)(void *context);

/* ---- opening -------------------------------------------------------------------------------------------------------- */

/* A tokenizer, which never changes. */
typedef struct ggufbpe_tokenizer ggufbpe_tokenizer;

typedef struct ggufbpe_open_options {
    size_t size;        /* sizeof(ggufbpe_open_options) */
    size_t cache_bytes; /* the most memory for words that were encoded; 0 for the default of 32 MiB */
    ggufbpe_poll poll;  /* or NULL */
    void *poll_context;
} ggufbpe_open_options;

#define GGUFBPE_OPEN_OPTIONS_INIT {sizeof(ggufbpe_open_options), 0, NULL, NULL}

/* Read the bytes of a file from `offset` on, `size` of them, into `to`. Return how many were read: fewer only at the end of
 * the file, and -1 for an error. Ranges are asked for in ascending order; they do not overlap but for the first few bytes. */
typedef int64_t (*ggufbpe_read)(void *context, uint64_t offset, void *to, size_t size);

/* Open the model file at `path`, whose bytes are passed to the system as they are (UTF-8 on Windows).
 *
 * `options` may be NULL. On success, *tokenizer is the new tokenizer, for ggufbpe_close. The file is closed again before the
 * function returns. */
GGUFBPE_API ggufbpe_status ggufbpe_open_file(const char *path, const ggufbpe_open_options *options,
                                             ggufbpe_tokenizer **tokenizer, ggufbpe_error *error);

/* Open a model from the first bytes of its file, or all of them.
 *
 * If the metadata go on behind the last byte, the status is GGUFBPE_TRUNCATED, and `error->needed` is a number of bytes that
 * is greater than `size` and not greater than what is needed, often by one string only: read at least twice as much and try
 * again. */
GGUFBPE_API ggufbpe_status ggufbpe_open_buffer(const void *data, size_t size, const ggufbpe_open_options *options,
                                               ggufbpe_tokenizer **tokenizer, ggufbpe_error *error);

/* Open a model through a callback that reads ranges of its file, such as HTTP ranges. `file_size` is the size of the file,
 * or UINT64_MAX if it is not known. */
GGUFBPE_API ggufbpe_status ggufbpe_open_callback(ggufbpe_read read, void *read_context, uint64_t file_size,
                                                 const ggufbpe_open_options *options, ggufbpe_tokenizer **tokenizer,
                                                 ggufbpe_error *error);

/* Free a tokenizer. NULL is allowed. */
GGUFBPE_API void ggufbpe_close(ggufbpe_tokenizer *tokenizer);

/* Free the cache of words and the memory that is kept for the next call. Other threads may go on encoding. */
GGUFBPE_API void ggufbpe_release_memory(ggufbpe_tokenizer *tokenizer);

/* ---- text to ids ---------------------------------------------------------------------------------------------------- */

/* The ids of a text, and their spans if they were asked for. Reuse it: its memory is kept for the next text. */
typedef struct ggufbpe_encoding ggufbpe_encoding;

/* Where a token lies in the text: the bytes from `start` up to `end`. */
typedef struct ggufbpe_span {
    int64_t start;
    int64_t end;
} ggufbpe_span;

typedef struct ggufbpe_encode_options {
    size_t size;           /* sizeof(ggufbpe_encode_options) */
    int32_t add_special;   /* add BOS, EOS and the like where the model wants them (llama_tokenize's add_special) */
    int32_t parse_special; /* recognize control tokens in the text (llama_tokenize's parse_special) */
    int32_t continues;     /* the text continues one that was cut at ggufbpe_find_split_point: nothing is put before it */
    int32_t threads;       /* the most threads for a long text; 0 counts as 1 */
    ggufbpe_poll poll;     /* or NULL */
    void *poll_context;
    int32_t is_utf8; /* of ggufbpe_encode, _encode_with_offsets and _count: the caller knows that the text is UTF-8, as a str
                        of Rust is, so it is not checked; anything may happen with a text that is not */
    int32_t reserved; /* must be 0; without it, the next field would lie in padding */
} ggufbpe_encode_options;

/* NULL in place of options means these. */
#define GGUFBPE_ENCODE_OPTIONS_INIT {sizeof(ggufbpe_encode_options), 1, 1, 0, 1, NULL, NULL, 0, 0}

/* Return a new encoding, which is empty; NULL if there is no memory. */
GGUFBPE_API ggufbpe_encoding *ggufbpe_encoding_new(void);
/* Free an encoding. NULL is allowed. */
GGUFBPE_API void ggufbpe_encoding_free(ggufbpe_encoding *encoding);

/* Return the number of ids, their array, and the array of their spans (NULL unless it was filled by
 * ggufbpe_encode_with_offsets, and perhaps if there are no ids). The arrays are valid until the encoding is used again or freed. */
GGUFBPE_API size_t ggufbpe_encoding_count(const ggufbpe_encoding *encoding);
GGUFBPE_API const int32_t *ggufbpe_encoding_ids(const ggufbpe_encoding *encoding);
GGUFBPE_API const ggufbpe_span *ggufbpe_encoding_spans(const ggufbpe_encoding *encoding);

/* Put the ids of a text into `encoding`, in place of what is there. A call that fails leaves it empty.
 *
 * The ids are those of llama_tokenize in llama.cpp. As there, an id is -1 where the text has no token and the model has no
 * unknown token (WordPiece, Unigram, RWKV). */
GGUFBPE_API ggufbpe_status ggufbpe_encode(const ggufbpe_tokenizer *tokenizer, const char *text, size_t size,
                                          const ggufbpe_encode_options *options, ggufbpe_encoding *encoding,
                                          ggufbpe_error *error);

/* The same, with the span of each token in bytes of the text, before any normalization. Tokens that are added have empty
 * spans at the ends of the text. A token that is part of a character has the span of its bytes; tokens that together stand for
 * a byte that is not UTF-8 each have its span. One thread does the work. */
GGUFBPE_API ggufbpe_status ggufbpe_encode_with_offsets(const ggufbpe_tokenizer *tokenizer, const char *text, size_t size,
                                                       const ggufbpe_encode_options *options, ggufbpe_encoding *encoding,
                                                       ggufbpe_error *error);

/* Write the number of ids of a text to *count, without storing them. */
GGUFBPE_API ggufbpe_status ggufbpe_count(const ggufbpe_tokenizer *tokenizer, const char *text, size_t size,
                                         const ggufbpe_encode_options *options, size_t *count, ggufbpe_error *error);

/* Write to *place the first place at or after `start`, above 0, where the text may be cut: the ids of the text before it,
 * followed by those of the text after it, encoded with `continues`, are the ids of the whole text. `size` if there is none.
 *
 * Of the options, `parse_special` and `poll` count. BOS and EOS must be added to one part only. Texts of
 * Unigram (t5) and hybriddna models have no such places. */
GGUFBPE_API ggufbpe_status ggufbpe_find_split_point(const ggufbpe_tokenizer *tokenizer, const char *text, size_t size,
                                                    size_t start, const ggufbpe_encode_options *options, size_t *place,
                                                    ggufbpe_error *error);

/* ---- a text that grows ---------------------------------------------------------------------------------------------- */

/* A text to which more is appended, and its ids. An append costs what the end of the text costs, not all of it
 * (in t5 and hybriddna models, all of it). */
typedef struct ggufbpe_growing_text ggufbpe_growing_text;

/* How ids have changed: the first `kept` of them are as before, `removed` behind these are gone, and `inserted` others stand
 * in their place. The old ids from kept + removed on, such as a final SEP, follow as they were. */
typedef struct ggufbpe_change {
    size_t kept;
    size_t removed;
    size_t inserted;
} ggufbpe_change;

/* Begin an empty text. Of the options, `add_special`, `parse_special` and `poll` count, and are copied. The tokenizer must
 * outlive the text. */
GGUFBPE_API ggufbpe_status ggufbpe_growing_text_new(const ggufbpe_tokenizer *tokenizer, const ggufbpe_encode_options *options,
                                                    ggufbpe_growing_text **growing, ggufbpe_error *error);
/* Free it. NULL is allowed. */
GGUFBPE_API void ggufbpe_growing_text_free(ggufbpe_growing_text *growing);

/* Append to the text; a character may be divided between two calls, unless the model has no tokens for single
 * bytes (GGUFBPE_CANNOT_ENCODE). `change` may be NULL. If the call fails, the text is as it
 * was before. */
GGUFBPE_API ggufbpe_status ggufbpe_growing_text_append(ggufbpe_growing_text *growing, const char *text, size_t size,
                                                       ggufbpe_change *change, ggufbpe_error *error);

/* Return the number of ids of all of the text so far, which are those of ggufbpe_encode, and their array, which is valid until
 * the next append. */
GGUFBPE_API size_t ggufbpe_growing_text_count(const ggufbpe_growing_text *growing);
GGUFBPE_API const int32_t *ggufbpe_growing_text_ids(const ggufbpe_growing_text *growing);

/* ---- ids to text ---------------------------------------------------------------------------------------------------- */

typedef struct ggufbpe_decode_options {
    size_t size;             /* sizeof(ggufbpe_decode_options) */
    int32_t remove_special;  /* leave out the BOS and EOS that encoding adds (llama_detokenize's remove_special) */
    int32_t unparse_special; /* write control tokens as text (llama_detokenize's unparse_special) */
    int32_t clean_spaces;    /* drop spaces before punctuation where the model's pre-tokenizer asks for that, as llama.cpp does */
    int32_t reserved;        /* must be 0; without it, the next field would lie in padding */
} ggufbpe_decode_options;

/* NULL in place of options means these. */
#define GGUFBPE_DECODE_OPTIONS_INIT {sizeof(ggufbpe_decode_options), 0, 0, 1, 0}

/* Write the text of ids to `text`, which has room for `capacity` bytes, and its size to *size. No NUL is added.
 *
 * If there is not enough room, the status is GGUFBPE_BUFFER_TOO_SMALL, *size is what is needed, and what `text` holds is
 * undefined; with a capacity of 0, `text` may be NULL. The text need not be UTF-8: a token may be part of a character. */
GGUFBPE_API ggufbpe_status ggufbpe_decode(const ggufbpe_tokenizer *tokenizer, const int32_t *ids, size_t count,
                                          const ggufbpe_decode_options *options, char *text, size_t capacity, size_t *size,
                                          ggufbpe_error *error);

/* Ids in, one by one; text out, as soon as it is whole UTF-8 and no id to come can change it. */
typedef struct ggufbpe_decode_stream ggufbpe_decode_stream;

/* Begin a stream. The tokenizer must outlive it. */
GGUFBPE_API ggufbpe_status ggufbpe_decode_stream_new(const ggufbpe_tokenizer *tokenizer, const ggufbpe_decode_options *options,
                                                     ggufbpe_decode_stream **stream, ggufbpe_error *error);
/* Free it. NULL is allowed. */
GGUFBPE_API void ggufbpe_decode_stream_free(ggufbpe_decode_stream *stream);

/* Give the stream an id, and set *text and *size to the text that this settles, often none. The text is UTF-8, in which bytes
 * that form no character have become U+FFFD; it is valid until the next call for this stream. */
GGUFBPE_API ggufbpe_status ggufbpe_decode_stream_push(ggufbpe_decode_stream *stream, int32_t id, const char **text, size_t *size,
                                                      ggufbpe_error *error);

/* Set *text and *size to the rest of the text. The stream is then as new. */
GGUFBPE_API ggufbpe_status ggufbpe_decode_stream_finish(ggufbpe_decode_stream *stream, const char **text, size_t *size,
                                                        ggufbpe_error *error);

/* ---- the vocabulary ------------------------------------------------------------------------------------------------- */

/* Return the number of tokens; the ids are 0 up to it. */
GGUFBPE_API size_t ggufbpe_vocabulary_size(const ggufbpe_tokenizer *tokenizer);

/* Return tokenizer.ggml.model of the file, and the name in tokenizer.ggml.pre that is in force ("default" if the file has
 * none, "" for models that have no pre-tokenizers). */
GGUFBPE_API const char *ggufbpe_model_name(const ggufbpe_tokenizer *tokenizer);
GGUFBPE_API const char *ggufbpe_pre_tokenizer_name(const ggufbpe_tokenizer *tokenizer);

/* Set *text and *size to a token as the file writes it ("\xC4\xA0world" for " world"); valid as long as the tokenizer. Empty
 * tokens are "[EMPTY_id]", and k-mers of hybriddna lack their marker. */
GGUFBPE_API ggufbpe_status ggufbpe_token_text(const ggufbpe_tokenizer *tokenizer, int32_t id, const char **text, size_t *size,
                                              ggufbpe_error *error);

/* Return the id of the token that the file writes so, or -1 if there is none. */
GGUFBPE_API int32_t ggufbpe_find_token(const ggufbpe_tokenizer *tokenizer, const char *text, size_t size);

/* Write the bytes that a token stands for to `piece`, as ggufbpe_decode writes text. Control and unknown tokens are empty unless
 * `special`. The bytes are those of llama_token_to_piece. */
GGUFBPE_API ggufbpe_status ggufbpe_token_piece(const ggufbpe_tokenizer *tokenizer, int32_t id, int32_t special, char *piece,
                                               size_t capacity, size_t *size, ggufbpe_error *error);

/* The kind of a token; the values are those of llama_token_attr. */
enum {
    GGUFBPE_TOKEN_UNKNOWN = 1,
    GGUFBPE_TOKEN_UNUSED = 2,
    GGUFBPE_TOKEN_NORMAL = 4,
    GGUFBPE_TOKEN_CONTROL = 8,
    GGUFBPE_TOKEN_USER_DEFINED = 16,
    GGUFBPE_TOKEN_BYTE = 32,
    GGUFBPE_TOKEN_LSTRIP = 128,
    GGUFBPE_TOKEN_RSTRIP = 256
};

/* Return the attributes of a token, some of the values above; 0 for an id that is not in the vocabulary. */
GGUFBPE_API int32_t ggufbpe_token_attributes(const ggufbpe_tokenizer *tokenizer, int32_t id);

/* Special tokens, by what they are for. */
enum {
    GGUFBPE_BOS = 0,     /* begins a text */
    GGUFBPE_EOS = 1,     /* ends a text */
    GGUFBPE_EOT = 2,     /* ends a turn of a chat */
    GGUFBPE_EOM = 3,     /* ends a message */
    GGUFBPE_UNK = 4,     /* stands for text that has no token */
    GGUFBPE_SEP = 5,     /* separates sentences */
    GGUFBPE_PAD = 6,     /* fills up a batch */
    GGUFBPE_MASK = 7,    /* is to be guessed */
    GGUFBPE_FIM_PRE = 8, /* fill-in-the-middle: before the prefix, the suffix, and the middle; padding, repository, file */
    GGUFBPE_FIM_SUF = 9,
    GGUFBPE_FIM_MID = 10,
    GGUFBPE_FIM_PAD = 11,
    GGUFBPE_FIM_REP = 12,
    GGUFBPE_FIM_SEP = 13
};

/* Return the id of a special token, or -1 if the vocabulary has none of that kind. */
GGUFBPE_API int32_t ggufbpe_special_id(const ggufbpe_tokenizer *tokenizer, int32_t which);

/* Return 1 if a token ends a generation (llama_vocab_is_eog), otherwise 0. */
GGUFBPE_API int32_t ggufbpe_is_end_of_generation(const ggufbpe_tokenizer *tokenizer, int32_t id);

/* Return 1 if BOS (EOS) is added to texts with `add_special`, otherwise 0: llama_vocab_get_add_bos and _eos. */
GGUFBPE_API int32_t ggufbpe_adds_bos(const ggufbpe_tokenizer *tokenizer);
GGUFBPE_API int32_t ggufbpe_adds_eos(const ggufbpe_tokenizer *tokenizer);

/* Return the number of problems in the file though it loads, and problem `index` of them as a line of English, NULL beyond the
 * last; valid as long as the tokenizer. The Python package knows more of them (`ggufbpe doctor`). */
GGUFBPE_API size_t ggufbpe_warning_count(const ggufbpe_tokenizer *tokenizer);
GGUFBPE_API const char *ggufbpe_warning(const ggufbpe_tokenizer *tokenizer, size_t index);

#ifdef __cplusplus
}
#endif

#endif /* GGUFBPE_H */
