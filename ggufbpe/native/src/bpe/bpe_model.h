// Byte pair encoding of plain text: words are looked up in a cache, and merged if they are new.
//
//     text -> split/ -> words -> cache.h -> ids
//                                   ^ new words: merger.h
//
// Two kinds of models built on it have a step of their own first: preprocessing.h.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "bpe/merger.h"
#include "caching_model.h"
#include "lazy.h"
#include "preprocessing.h"
#include "split/splitter.h"

namespace ggufbpe {

class BPEModel : public CachingModel {
public:
    static constexpr size_t CACHE_BYTES = size_t(32) << 20;

    // Words are looked up by `tokens`. `made` has the tables that write() wrote of a model with these tokens, merges and
    // options, or is null.
    BPEModel(std::shared_ptr<const Strings> tokens, const Strings &merges, std::shared_ptr<const Splitter> splitter,
             const MergeOptions &options, Preprocessing own_step, size_t cache_bytes, const Poll &poll = NO_POLL,
             std::shared_ptr<const TableFile> made = nullptr);
    // For models that are made from merges.
    void write(TableWriter &to) const { merger(NO_POLL).write(to); }
    ~BPEModel() override;

    void cut_fragments(const unsigned char *text, std::vector<Fragment> &fragments, const Poll &poll) const override;
    void encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const override;
    void encode_parts(const Part *parts, size_t count, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const override;
    void divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const override;
    bool keeps_overlong_spaces() const override { return escape_spaces_; }
    bool words(const unsigned char *text, size_t size, TextModel::Scratch &scratch, const TakesWord &take,
               const Poll &poll) const override;

protected:
    struct Scratch;

    // What merges words, and what cuts texts into them: shorter ones where that changes no id, and those without that.
    struct Tables {
        Tables(std::unique_ptr<const Merger> merger, std::shared_ptr<const Splitter> splitter);

        std::unique_ptr<const Merger> merger;
        std::shared_ptr<const Splitter> splitter, splitter_of_words;
    };
    using MakeTables = std::function<std::unique_ptr<Tables>(const Poll &poll)>;

    // The tables are made on first use.
    BPEModel(MakeTables make_tables, const MergeOptions &options, size_t cache_bytes);

    const Tables &tables(const Poll &poll) const {
        return tables_.get([&] { return make_tables_(poll); });
    }
    bool has_tables() const { return tables_.is_made(); }

    // Gives each word, with spaces as U+2581 if they are written so.
    void split(const Splitter &splitter, const unsigned char *text, size_t size, Scratch &scratch, const TakesWord &take,
               const Poll &poll) const;

    std::unique_ptr<TextModel::Scratch> new_scratch() const override;
    void end(TextModel::Scratch &scratch) const override;

private:
    struct Missing;

    void write_k_mer_spans(const Part &part, Scratch &scratch, Spans &spans, const Poll &poll) const;
    void encode_k_mers(const Part &part, Scratch &scratch, Sink &ids, const Poll &poll) const;
    void encode_spaced(const Part &part, Scratch &scratch, Sink &ids, const Poll &poll) const;
    void encode_text(const unsigned char *text, size_t size, Scratch &scratch, Sink &ids, const Poll &poll) const;
    void encode_together(const Part *parts, size_t count, Scratch &scratch, Sink &ids, const Poll &poll) const;
    void encode_words(const unsigned char *text, size_t readable, const uint32_t *starts, size_t words, Scratch &scratch, Sink &ids,
                      const Poll &poll) const;
    int32_t *write_words(const unsigned char *text, size_t readable, const uint32_t *starts, size_t words, Scratch &scratch,
                         int32_t *to, Sink &ids, const Poll &poll) const;
    int32_t *encode_very_long(const unsigned char *word, size_t size, Scratch &scratch, int32_t *to, Sink &ids,
                              const Poll &poll) const;
    void encode_missing(Scratch &scratch, const Poll &poll) const;
    static int32_t *insert_missing(const Scratch &scratch, int32_t *begin, int32_t *end);
    static void find_different(Scratch &scratch);
    void find_in_former(Scratch &scratch) const;
    WordTable::Found cache_or_rotate(const Merger::Word &word, const WordKey &key, const int32_t *ids, size_t count, Scratch &scratch,
                          bool &keeps) const;
    WordTable::Found cache_or_rotate(const Merger::Word &word, const WordKey &key, const WordTable::Found &former, Scratch &scratch,
                          bool &keeps) const;
    bool insert(const Merger::Word &word, const WordKey &key, const int32_t *ids, size_t count, Scratch &scratch, bool &keeps,
                WordTable::Found &found) const;
    bool take_next_tables(Scratch &scratch) const;

    const Merger &merger(const Poll &poll) const { return *tables(poll).merger; }
    const Splitter &splitter(const Poll &poll) const { return *tables(poll).splitter; }

    const MakeTables make_tables_;
    Lazy<Tables> tables_;
    bool escape_spaces_;
    std::unique_ptr<const KMers> k_mers_;              // null in models without this step
    std::unique_ptr<const SpacedWords> spaced_words_;  // likewise
};

}  // namespace ggufbpe
