// Text to ids: the steps that all tokenizer models share.
//
//     text -> special.h -> fragments -> parts -> [the model: text_model.h] -> ids
//
// Source of the order of steps: src/llama-vocab.cpp, llama_vocab::impl::tokenize.
//
// No Python. One Encoder serves many threads at once; nothing in it changes but caches and values made on first use.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "ids.h"
#include "lazy.h"
#include "poll.h"
#include "sink.h"
#include "special.h"
#include "text_model.h"

namespace ggufbpe {

struct Text {
    const unsigned char *data;
    size_t size;
    bool is_valid;  // known to be UTF-8
};

constexpr size_t LONG_TEXT = 1 << 20;  // bytes; for a longer one, room is reserved at once
constexpr size_t BYTES_A_TOKEN = 3;    // room reserved at first: one token per so many

struct EncodeOptions {
    bool add_special = true;
    bool parse_special = true;
    bool continues = false;  // the text continues where another ended (TextModel::cut)
    bool is_plain = false;   // it is known to have no special tokens in it
};

class Encoder {
public:
    // `texts` are the texts of all tokens, by which special ones are found. `before` and `behind` are the tokens added to a
    // text with add_special. Unless `strict_utf8`, overlong forms in texts are decoded, as by older builds of llama.cpp.
    Encoder(std::shared_ptr<const TextModel> model, std::shared_ptr<const Strings> texts,
            const std::vector<SpecialToken> &special, std::vector<int32_t> before, std::vector<int32_t> behind,
            bool strict_utf8 = true);

    // The ids of consecutive texts, the first of them texts[first]: ends[i] is where those of texts[first + i] end.
    struct Encoded {
        size_t first = 0;
        Ids ids;
        std::vector<size_t> ends;
    };

    // Receives the ids of a batch. Both are called on the calling thread only, and an exception ends the batch.
    struct Collector {
        std::function<bool()> is_due;                        // whether to call take() now
        std::function<void(std::vector<Encoded> &)> take;  // in no order; ids may be moved away
    };

    // Appends the ids of a text; on `threads` threads if it is long. An exception from poll ends it.
    void encode(const Text &text, const EncodeOptions &options, size_t threads, Ids &ids, const Poll &poll) const;
    // Encodes each text, and gives the ids to `collector`, some texts at a time while other threads work on.
    void encode_batch(const std::vector<Text> &texts, const EncodeOptions &options, size_t threads,
                      const Collector &collector, const Poll &poll) const;
    size_t count(const Text &text, const EncodeOptions &options, size_t threads, const Poll &poll) const;
    // The same for one of many short texts, on this thread.
    size_t count(const Text &text, const EncodeOptions &options, TextModel::Scratch &scratch, const Poll &poll) const;

    // The ids of a text and the span of each, on this thread.
    void encode_with_spans(const Text &text, const EncodeOptions &options, Ids &ids, Spans &spans, const Poll &poll) const;
    // The ids of a text that is UTF-8 and has no special tokens, and where its words begin if the model looks them up as they
    // stand in it (WordPiece).
    void encode_with_words(const Text &text, const EncodeOptions &options, Ids &ids, WordStarts &words, const Poll &poll) const;

    // The pieces of a text, all of it taken as plain text; false, and nothing, if the model has none.
    bool words(const Text &text, const TextModel::TakesWord &take, const Poll &poll) const;

    // The ids of a text, all of it taken as plain text, with nothing added.
    void encode_plain(const Text &text, Ids &ids, const Poll &poll) const;

    // Where the longest special token at each place begins and ends; tokens may overlap.
    std::vector<std::pair<size_t, size_t>> special_token_spans(const unsigned char *text, size_t size, bool parse_special,
                                                               const Poll &poll) const;

    const TextModel &model() const { return *model_; }
    const std::vector<int32_t> &before() const { return before_; }
    const std::vector<int32_t> &behind() const { return behind_; }

private:
    const Partition &partition(bool parse_special, const Poll &poll) const;
    void encode_alone(const Text &text, const EncodeOptions &options, TextModel::Scratch &scratch, Sink &ids,
                      const Poll &poll) const;
    void encode_shared(const Text &text, const EncodeOptions &options, size_t threads, Sink &ids, const Poll &poll) const;
    void encode_any(const Text &text, const EncodeOptions &options, size_t threads, Sink &ids, const Poll &poll) const;
    std::vector<Fragment> fragments_of(const Text &text, bool parse_special, size_t threads, bool &is_valid,
                                       const Poll &poll) const;
    struct Share {
        bool are_parts;  // or fragments
        size_t first, end;
    };
    std::vector<Share> shares_of(const Text &text, const std::vector<Fragment> &fragments, std::vector<Part> &parts,
                                 const Poll &poll) const;
    void encode_fragments(const Text &text, const Fragment *fragments, size_t count, TextModel::Scratch &scratch, Sink &ids,
                          const Poll &poll) const;
    void encode_parts(const Text &text, const Part *parts, size_t count, TextModel::Scratch &scratch, Sink &ids,
                      const Poll &poll) const;
    void encode_rewritten(const Text &text, const Part &part, TextModel::Scratch &scratch, Sink &ids,
                          const Poll &poll) const;
    void continue_with(std::vector<Fragment> &fragments) const;
    static void add(const std::vector<int32_t> &tokens, const EncodeOptions &options, size_t at, Sink &ids);
    std::vector<unsigned char> rewrite(const unsigned char *text, size_t size, ChangedText *changes, const Poll &poll) const;

    std::shared_ptr<const TextModel> model_;
    std::shared_ptr<const Strings> texts_;
    std::vector<SpecialToken> special_;
    std::vector<int32_t> before_, behind_;
    bool strict_utf8_;
    Lazy<Partition> partitions_[2];
};

}  // namespace ggufbpe
