// What a tokenizer model does with plain text: the side of encoder.h that differs from model to model.
//
//     encoder.h -> plain text -> [a TextModel: bpe/bpe_model.h] -> ids
//
// It is called once per block or fragment, never once per word, so a virtual call costs nothing here.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "poll.h"
#include "scratch_pool.h"
#include "sink.h"
#include "special.h"
#include "utf8.h"

namespace ggufbpe {

class ExactSumCheck;

#if !defined(GGUFBPE_PART)
#define GGUFBPE_PART (1 << 17)  // tests take a short one
#endif

constexpr int32_t PLAIN = -1;  // a part's token: text
// Bytes of a long text that one thread takes at a time: its ids stay in cache. No inline function may use it: its value depends
// on the object file in tests.
constexpr size_t PART_BYTES = GGUFBPE_PART;

// A part of a text that is encoded on its own. `token` is an id, or the kind of text, as in a Fragment.
struct Part {
    int32_t token;
    const unsigned char *data;
    size_t size;
    std::shared_ptr<ExactSumCheck> sum_check = nullptr;  // what the parts of a divided text take for granted, if they do
    bool is_utf8 = false;  // known to be, since the text is: special tokens are UTF-8, so none divides a character
};

// The first place that `cut(from)` finds in a part and that stays one if bytes are rewritten that are not UTF-8.
template <typename Cut>
size_t cut_between_utf8(const Part &part, size_t from, const Poll &poll, Cut cut) {
    Pace pace(poll);
    size_t at = cut(from);
    for (; !part.is_utf8 && at < part.size && !is_between_utf8(part.data, part.size, at); at = cut(at + 1)) pace.count(Pace::LOOKUP);
    return at;
}

// Thrown while a part is encoded if what it takes for granted is not so: ids of parts are wrong, the text must be encoded whole.
struct NotDivisible {};

class TextModel {
public:
    // Memory of one caller at a time, reused between calls.
    struct Scratch {
        virtual ~Scratch() = default;
        virtual size_t bytes() const { return fragments.capacity() * sizeof(Fragment) + parts.capacity() * sizeof(Part); }

        std::vector<Fragment> fragments;
        std::vector<Part> parts;
    };

    // A scratch for the duration of a call.
    class Lease {
    public:
        explicit Lease(const TextModel &model)
            : model_(model), place_(model.pool_.own_place()), scratch_(model.pool_.take(place_)) {
            if (!scratch_) scratch_ = model.new_scratch();
            model.begin(*scratch_);
        }
        ~Lease() {
            if (scratch_->bytes() > MOST_KEPT) return;
            model_.pool_.give_back(std::move(scratch_), place_, [this](Scratch &scratch) { model_.end(scratch); });
        }
        Lease(const Lease &) = delete;
        Lease &operator=(const Lease &) = delete;
        Scratch &operator*() { return *scratch_; }

    private:
        static constexpr size_t MOST_KEPT = size_t(8) << 20;  // bytes; a scratch that grew larger is not kept

        const TextModel &model_;
        const size_t place_;
        std::unique_ptr<Scratch> scratch_;
    };

    TextModel() = default;
    TextModel(const TextModel &) = delete;
    TextModel &operator=(const TextModel &) = delete;
    virtual ~TextModel() = default;

    // Takes further tokens out of the plain fragments of a text.
    virtual void cut_fragments(const unsigned char *, std::vector<Fragment> &, const Poll &) const {}

    // The ids of parts that lie one after the other in a text, with or without text between them.
    virtual void encode_parts(const Part *parts, size_t count, Scratch &scratch, Sink &ids, const Poll &poll) const {
        for (size_t i = 0; i < count; ++i) encode_part(parts[i], scratch, ids, poll);
    }
    void encode_part(const Part &part, Scratch &scratch, Sink &ids, const Poll &poll) const {
        if (part.token < 0) return encode(part, scratch, ids, poll);
        ids.push(part.token);
        if (Spans *const spans = ids.spans()) spans->push(part.data, part.size);
        if (WordStarts *const starts = ids.word_starts()) starts->add(part.data);
    }

    // The ids of a part that is not a token. Plain text is UTF-8 (surrogates may be in it), unless the model reads bytes. If
    // the sink wants spans, one goes beside each id; they are relative to `Spans::origin`.
    virtual void encode(const Part &part, Scratch &scratch, Sink &ids, const Poll &poll) const = 0;

    // Gives each piece into which plain text is cut before anything is encoded, as it is shown (`TextModel.words` in
    // ggufbpe/models/tokenizer_model.py); false, and nothing, if the model cannot.
    using TakesWord = std::function<void(const unsigned char *word, size_t size)>;
    virtual bool words(const unsigned char *, size_t, Scratch &, const TakesWord &, const Poll &) const { return false; }
    // Whether words() takes bytes as they are; otherwise bytes that are not UTF-8 are rewritten before.
    virtual bool words_read_bytes() const { return reads_bytes(); }
    // Whether words() gives bytes that need not be UTF-8.
    virtual bool words_are_bytes() const { return reads_bytes(); }

    // The first place at or after `from`, which is above 0, where a text may be cut so that the text before and, continued, the
    // text after keep their ids and words; the size of the text if there is none. Special tokens are ignored, and the
    // characters beside the place are UTF-8.
    virtual size_t cut(const unsigned char *, size_t size, size_t, const Poll &) const { return size; }

    // The `Part::token` of a plain fragment that continues where another text ended.
    virtual int32_t continued(int32_t token) const { return token; }

    // Cuts a part into parts of about `size` bytes that together have the same ids, in whatever order they are encoded, unless
    // that throws NotDivisible; may return it whole, which never does. Each may be encoded once. Bytes that are not UTF-8 may
    // be rewritten before or afterwards, unless the model reads bytes.
    virtual void divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const = 0;

    // Of a model that gives `Sink::word_starts`: adds the spans of a word's ids.
    virtual void append_word_spans(const unsigned char *, size_t, const int32_t *, size_t, Spans &, Pace &) const {}

    // Whether the byte of a space is not a space's overlong form to this model, so that the form must be kept.
    virtual bool keeps_overlong_spaces() const { return false; }

    // Whether plain text is bytes, whatever they are, so that invalid UTF-8 must be kept.
    virtual bool reads_bytes() const { return false; }

    // Announces that about so many bytes are to come: what they need is made once, before threads begin.
    virtual void prepare_for(size_t, const Poll &) const {}

    virtual size_t cache_bytes() const { return 0; }
    virtual uint64_t cache_misses() const { return 0; }
    virtual void clear_cache() const {}

    // Frees the memory kept for the next call.
    void release_memory() const {
        clear_cache();
        pool_.clear();
    }

protected:
    virtual std::unique_ptr<Scratch> new_scratch() const = 0;

    // Before and after a scratch is used in a call. In between, only the caller looks at it.
    virtual void begin(Scratch &) const {}
    virtual void end(Scratch &) const {}

    mutable ScratchPool<Scratch> pool_;
};

}  // namespace ggufbpe
