// Plain text to words, by the patterns of one registry entry: ggufbpe/models/pretokenizers/splitter.py, compiled.
//
//     text -> blocks -> classes -> [one stage after the other] -> where words begin -> encoder.h
//
// A text is taken in blocks that end where the classes of two code points make a cut that no stage looks across. In a
// block every code point becomes its class, and every stage marks where its matches begin and end. All of it is linear
// in the text.
//
// Words are merged, and special tokens found, elsewhere. A splitter does not know which model it works for.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "memory.h"
#include "poll.h"
#include "split/automaton.h"
#include "split/classes.h"
#include "split/stage.h"

namespace ggufbpe {

class Splitter {
public:
    using Rule = Stage::Rule;

    // Memory of one caller at a time, reused between calls.
    struct Scratch {
        Buffer<uint8_t> classes, flags[2];
        Stage::Scratch stage;
        Buffer<uint32_t> offsets;         // where each code point begins, in a block that is not ASCII
        Buffer<uint32_t> starts;          // where each word begins, in bytes of the block; then where the last one ends
        size_t word_count = 0;
        // For words(): the code points of the block, how many were handed out, and where words begin.
        size_t count = 0, done = 0;
        uint8_t *boundary = nullptr;
        bool is_ascii = false;
        uint32_t size = 0;  // bytes of the block

        size_t bytes() const {
            return classes.bytes() + flags[0].bytes() + flags[1].bytes() + stage.bytes() + offsets.bytes() + starts.bytes();
        }
    };

    // With `escape_spaces` the byte of a space counts as U+2581, as in merging; other forms of it do not. Throws
    // std::invalid_argument if the rules cannot be compiled.
    Splitter(const std::vector<CharSet> &sets, const std::vector<Rule> &rules, bool escape_spaces);

    // One that leaves a text whole, unless stages are added.
    static std::shared_ptr<const Splitter> of_whole_text(bool escape_spaces);

    // The same with one more stage, which cuts before every run of U+2581 except after one of `joined`. If merges join nothing
    // else to a following U+2581, this changes no id, and makes words out of lines.
    std::shared_ptr<const Splitter> parted_at_spaces(const std::vector<uint32_t> &joined) const;

    // The same with one more stage, which cuts between two characters of different `groups`, and on both sides of one of
    // `alone` if the other is in a group or alone, too. If merges join no such two, this changes no id, and makes short words
    // out of long ones.
    std::shared_ptr<const Splitter> parted_between(const std::vector<std::string> &groups, const std::string &alone) const;

    // The same with a stage before all others, which cuts around every run of white space.
    std::shared_ptr<const Splitter> parted_at_white_space() const;

    // Splits the block that begins at `start` of the text and returns where it ends; words() then gives its words. The text
    // is UTF-8 (surrogates may be in it), and `start` is 0 or the result of a call or of cut(). Throws std::length_error for a
    // block of more than 4 GiB.
    size_t block(const unsigned char *text, size_t size, size_t start, Scratch &scratch, const Poll &poll = NO_POLL) const;

    // Splits a text of less than 4 GiB whose pieces are each split on its own, as one block; then words() gives its words. `edges`
    // are where pieces begin and end, ascending, none of them within a character.
    void block_of_pieces(const unsigned char *text, size_t size, const std::vector<uint32_t> &edges, Scratch &scratch,
                         const Poll &poll = NO_POLL) const;

    // The next words of the block: where they begin, relative to its start, is in scratch.starts (scratch.word_count of them),
    // then where the last one ends. All of them for a block of usual length, else so many that their memory stays small.
    // False if there are no more.
    bool words(Scratch &scratch, const Poll &poll = NO_POLL) const;

    // The first place at or after `from` where the text may be cut without changing a word; the size if there is none.
    size_t cut(const unsigned char *text, size_t size, size_t from, const Poll &poll = NO_POLL) const;

    static constexpr size_t BLOCK = 1 << 16;  // bytes: the least size of a block, if there are as many

private:
    // A stage that leaves all text whole would also keep it from being cut into blocks, so others take its place.
    std::vector<Rule> rules_to_add_to() const { return leaves_whole_ ? std::vector<Rule>{} : rules_; }

    // What a pair of classes says: whether the text may be cut there, and which stage, if any, has a boundary there.
    static constexpr uint32_t IS_CUT = 1;
    static constexpr uint32_t boundary_bit(size_t stage) { return 2u << stage; }
    uint32_t cut_between(uint8_t first, uint8_t second) const { return cuts_[first * (class_count_ + 1) + second]; }
    void find_cuts();
    uint8_t *classify(const unsigned char *text, size_t size, Scratch &scratch, const Poll &poll) const;
    void run_stages(uint8_t *prior, bool ends_text, uint32_t cut_at_end, Scratch &scratch, const Poll &poll) const;

    const std::vector<CharSet> sets_;
    const std::vector<Rule> rules_;
    bool leaves_whole_ = false;
    const bool escape_spaces_;
    size_t class_count_ = 0;
    std::unique_ptr<const ClassTable> table_;
    std::vector<std::unique_ptr<Stage>> stages_;
    std::vector<uint32_t> cuts_;  // for each pair of classes
};

}  // namespace ggufbpe
