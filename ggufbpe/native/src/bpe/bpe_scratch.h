// The memory of a BPEModel during a call, and of the new words in it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "bpe/bpe_model.h"
#include "word_group.h"

namespace ggufbpe {

// A word that is not in the table.
struct BPEModel::Missing {
    Merger::Word word;
    WordKey key;
    size_t place;        // how many of the ids written so far stand before its own; or its place among the words that wait
    size_t same_as = 0;  // which of the distinct ones it is
};

struct BPEModel::Scratch : CachingModel::Scratch {
    std::string changed;  // by preprocessing.h
    std::string shown;    // a word with spaces as U+2581
    Splitter::Scratch split;
    std::vector<uint32_t> edges;  // where parts that are split together begin and end
    Merger::Scratch merge;
    std::vector<WordTables> replaced;  // in this block: words found in them are still to be copied
    // Of the words looked up together: the results, the missing ones, and the distinct ones of these.
    WordGroup group;
    std::vector<WordTable::Found> found;
    std::vector<Merger::Word> found_words;  // the words themselves, if spans are wanted
    ChangedText lowered;                    // likewise: the changes by lower case
    std::vector<Missing> missing;
    std::vector<uint32_t> slots;
    std::vector<Merger::Word> words;
    std::vector<WordKey> word_keys;
    std::vector<Merger::Result> results;
    std::vector<WordTable::Found> new_founds;
    std::vector<uint32_t> to_encode;          // which of the distinct ones are not in the former table either,
    std::vector<Merger::Word> words_to_encode;  // and these
    std::deque<std::vector<uint32_t>> long_ids;  // records of words not in a table

    size_t bytes() const override {
        return CachingModel::Scratch::bytes() + changed.capacity() + split.bytes() + merge.bytes() +
               edges.capacity() * sizeof(uint32_t) + found.capacity() * sizeof(WordTable::Found);
    }
};

}  // namespace ggufbpe
