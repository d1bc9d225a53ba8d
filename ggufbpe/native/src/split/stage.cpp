#include "split/stage.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "machine.h"
#include "split/classes.h"

namespace ggufbpe {

namespace {

constexpr size_t SHORT = 48;  // code points; for fewer, walking is faster than windows, and needs no tables

// How frequent an ASCII character is in text, in per cent, very roughly. Only speed depends on it.
double frequency(uint32_t c) {
    if (c == ' ') return 15;
    if (c >= 'a' && c <= 'z') return std::strchr("etaoinshrdl", static_cast<int>(c)) ? 5 : 1.5;
    if ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return 0.15;
    return c == '\n' || c == ',' || c == '.' ? 1 : 0.1;
}

void copy_prior(const Stage::Block &block, uint8_t *boundary, const Poll &poll) {
    in_pieces(block.count, poll, [&](size_t from, size_t end) {
        if (block.prior) {
            std::memcpy(boundary + from, block.prior + from, end - from);
        } else {
            std::memset(boundary + from, 0, end - from);
        }
    });
    boundary[0] = BOUNDARY;
}

void look_up_block(const uint8_t *from, size_t count, const std::vector<uint8_t> &table, uint8_t *to, const Poll &poll) {
    in_pieces(count, poll, [&](size_t first, size_t end) {
        look_up_each(from + first, end - first, table.data(), table.size(), to + first);
    });
}

}  // namespace

Stage::Stage(const Rule &rule, const Alphabet &alphabet, std::vector<std::vector<int>> &meaning) {
    static constexpr struct {
        std::string_view name;
        Step step;
        size_t sets;
    } STEPS[] = {
        {"", Step::NONE, 0},
        {"digit_groups", Step::DIGIT_GROUPS, 1},
        {"thousands", Step::THOUSANDS, 1},
        {"trailing_white_space", Step::TRAILING_WHITE_SPACE, 1},
        {"blocks_of_white_space", Step::BLOCKS_OF_WHITE_SPACE, 2},
        {"letters_joined_by_spaces", Step::LETTERS_JOINED_BY_SPACES, 2},
    };
    const auto found = std::find_if(std::begin(STEPS), std::end(STEPS), [&](const auto &step) { return step.name == rule.step; });
    if (found == std::end(STEPS)) throw std::invalid_argument("the step " + rule.step + " is not known");
    if (rule.sets.size() != found->sets) throw std::invalid_argument("a step with the wrong number of sets");
    step_ = found->step;
    if (step_ == Step::NONE || step_ == Step::LETTERS_JOINED_BY_SPACES) {
        automaton_ = std::make_unique<Automaton>(Automaton(rule.rule, alphabet).merged(alphabet_columns_));
        for (size_t c = 0; c < alphabet.size(); ++c) meaning[c].push_back(alphabet_columns_[c]);
    }
    if (step_ == Step::LETTERS_JOINED_BY_SPACES) {
        std::vector<uint8_t> columns;
        Automaton(rule.extra, alphabet).merged(columns);
        for (size_t c = 0; c < alphabet.size(); ++c) meaning[c].push_back(columns[c]);
    }
    for (int32_t set : rule.sets) {
        if (set < 0 || static_cast<size_t>(set) >= alphabet.sets()) throw std::invalid_argument("a set that is not there");
        for (size_t c = 0; c < alphabet.size(); ++c) meaning[c].push_back(alphabet.in_set(c, static_cast<size_t>(set)));
    }
}

void Stage::set_classes(const Rule &rule, const Alphabet &alphabet, const std::vector<size_t> &representatives) {
    if (automaton_) {
        for (size_t c : representatives) column_of_.push_back(alphabet_columns_[c]);
        column_of_.push_back(static_cast<uint8_t>(automaton_->classes()));
    }
    for (int32_t set : rule.sets) {
        std::vector<uint8_t> member;
        for (size_t c : representatives) member.push_back(alphabet.in_set(c, static_cast<size_t>(set)));
        member.push_back(false);  // the end
        members_.push_back(member);
    }
    if (step_ == Step::LETTERS_JOINED_BY_SPACES) {
        contraction_ = std::make_unique<Automaton>(Automaton(rule.extra, alphabet).chosen(representatives));
    }
}

void Stage::set_weights(const uint8_t *ascii) {
    if (!automaton_) return;
    weights_.assign(automaton_->classes(), 0.1);
    for (uint32_t c = 0; c < 0x80; ++c) weights_[column_of_[ascii[c]]] += frequency(c);
}

void Stage::run(const Block &block, uint8_t *boundary, Scratch &scratch, const Poll &poll) const {
    if (automaton_) {
        run_automaton(block, boundary, scratch, poll);
        if (step_ == Step::LETTERS_JOINED_BY_SPACES) join_letters(block, boundary, poll);
    } else {
        copy_prior(block, boundary, poll);
        mark_steps(block, boundary, poll);
    }
}

// ---- automata -----------------------------------------------------------------------------------------------------

void Stage::run_automaton(const Block &block, uint8_t *boundary, Scratch &scratch, const Poll &poll) const {
    Pace pace(poll);
    if (block.count < SHORT || !windows().usable()) {
        copy_prior(block, boundary, poll);
        bool is_unmatched = false;
        mark_matches(block, 0, block.count, is_unmatched, boundary, pace);
        return;
    }
    const uint8_t *values = block.classes;
    if (!windows().group_of().empty()) {
        uint8_t *groups = with_margins(scratch.groups, block.count);
        look_up_block(block.classes, block.count + 1, windows().group_of(), groups, poll);
        groups[-3] = groups[-2] = groups[-1] = windows().end();
        values = groups;
    }
    // In pieces, because in a run of line breaks every place may be uncertain. A match may end in a later piece.
    size_t done = 0;
    bool is_unmatched = false, is_boundary = false;  // before `done`
    for (size_t from = 0; from < block.count; from += PIECE) {
        const size_t end = std::min(from + PIECE, block.count);
        scratch.uncertain.clear();
        windows().mark(values, block.prior, from, end, boundary, scratch.uncertain);
        if (is_boundary && done >= from && done < end) boundary[done] = BOUNDARY;
        for (uint32_t place : scratch.uncertain) {
            if (place < done) continue;
            size_t begin = place;
            for (const size_t near = place - std::min(place - done, SHORT); begin > near && !boundary[begin];) --begin;
            begin -= find_first(0, begin - done, pace, [=](size_t back) { return boundary[begin - back]; });
            if (begin > done) is_unmatched = false;
            done = mark_matches(block, begin, place, is_unmatched, boundary, pace);
            is_boundary = !is_unmatched;
        }
        if (end < block.count) poll();
    }
}

// Where the run of one class that goes on from `from` ends, or `stop` before that.
static size_t run_end(const Stage::Block &block, size_t from, size_t stop) {
    const uint8_t of_run = block.classes[from];
    for (size_t i = from + 1; i < stop; i += 8) {
        const uint64_t prior = block.prior ? eight_bytes(block.prior + i) : 0;
        const uint64_t ends = prior | (eight_bytes(block.classes + i) ^ of_run * 0x0101010101010101u);
        if (ends) return std::min(i + lowest_bit(ends) / 8, stop);
    }
    return stop;
}

// Where the match that begins at `from` ends; `from` if there is none. A boundary in `prior` ends the piece.
size_t Stage::match_end(const Block &block, size_t from, Pace &pace) const {
    const Automaton &automaton = *automaton_;
    const size_t end = automaton.classes();
    uint16_t state = Automaton::START;
    size_t last = from, counted = from;
    size_t i = from, stop = from + std::min(block.count - from, Pace::STEPS);
    for (;; ++i) {
        const size_t column = block.prior && i > from && block.prior[i] ? end : column_of_[block.classes[i]];
        if (automaton.accepts(state, column)) last = i;
        if (column == end) break;
        const uint16_t next = automaton.next(state, column);
        if (next == Automaton::DEAD) break;
        if (next == state && i < stop) {  // nor do more of this class change the state
            i = run_end(block, i, stop) - 1;
            if (automaton.accepts(state, column)) last = i;
        }
        state = next;
        if (i < stop) continue;
        // At `count` the block ends and no match continues; the end itself was read as lookahead.
        if (i == block.count) break;
        pace.count(i - counted);
        counted = i;
        stop = i + std::min(block.count - i, Pace::STEPS);
    }
    pace.count(i - counted);
    return last;
}

// Marks the matches from `position` on until one ends at `until` or after; returns where it stopped. `is_unmatched` says, before
// and after the call, that the preceding code point is in no match: then it goes on until it is known what comes at `until`.
size_t Stage::mark_matches(const Block &block, size_t position, size_t until, bool &is_unmatched, uint8_t *boundary,
                           Pace &pace) const {
    while (position < std::min(block.count, until + is_unmatched)) {
        const size_t end = match_end(block, position, pace);
        if (end == position) {
            if (!is_unmatched) boundary[position] = BOUNDARY;
            is_unmatched = true;
            ++position;
        } else {
            boundary[position] = BOUNDARY;
            if (end < block.count) boundary[end] = BOUNDARY;
            position = end;
            is_unmatched = false;
        }
    }
    return position;
}

// ---- the steps of splitter.py -------------------------------------------------------------------------------------

// Calls function(first, end) for each run of code points that are in a set and in one piece.
template <typename Function>
void Stage::for_each_run(const Block &block, size_t set, const Poll &poll, Function function) const {
    Pace pace(poll);
    const uint8_t *const is_member = members_[set].data(), *const classes = block.classes, *const prior = block.prior;
    const auto ends_run = [=](size_t i) { return !is_member[classes[i]] || (prior && prior[i]); };
    for (size_t i = 0; i < block.count;) {
        const size_t begun = i, stop = i + std::min(block.count - i, Pace::STEPS);
        while (i < stop) {
            if (!is_member[classes[i]]) {
                ++i;
                continue;
            }
            const size_t first = i++;
            while (i < stop && !ends_run(i)) ++i;
            if (i == stop) i = find_first(i, block.count, pace, ends_run);
            function(first, i);
        }
        pace.count(stop - begun);
    }
}

void Stage::mark_steps(const Block &block, uint8_t *boundary, const Poll &poll) const {
    const uint8_t *prior = block.prior;
    const auto mark_from = [&](size_t place, size_t end, size_t distance) {
        if (place >= end) return;
        in_pieces((end - place - 1) / distance + 1, poll, [&](size_t from, size_t last) {
            for (size_t i = from; i < last; ++i) boundary[place + i * distance] = BOUNDARY;
        });
    };
    switch (step_) {
        case Step::DIGIT_GROUPS:
            for_each_run(block, 0, poll, [&](size_t first, size_t end) {
                const size_t size = end - first;
                mark_from(first + (size % 3 ? size % 3 : 3), end, 3);
                if (end < block.count) boundary[end] = BOUNDARY;
            });
            return;
        case Step::THOUSANDS:
            for_each_run(block, 0, poll, [&](size_t first, size_t end) { mark_from(first + (end - first) % 3, end, 3); });
            return;
        case Step::TRAILING_WHITE_SPACE:
            for_each_run(block, 0, poll, [&](size_t first, size_t end) {
                const bool ends_piece = (prior && prior[end]) || (end == block.count && block.ends_text);
                if (ends_piece) boundary[first] = BOUNDARY;
            });
            return;
        case Step::BLOCKS_OF_WHITE_SPACE:  // set 0: white space but line breaks; set 1: all white space
            for_each_run(block, 0, poll, [&](size_t first, size_t end) {
                const bool goes_on = !(prior && prior[end]) && is_in(1, block.classes[end]);
                if (end - first >= 1025 && !goes_on) mark_from(first, end, 512);
            });
            return;
        case Step::NONE:
        case Step::LETTERS_JOINED_BY_SPACES:
            return;
    }
}

// Words of letters with a single space between them become one. Set 0: letters; set 1: the space.
void Stage::join_letters(const Block &block, uint8_t *boundary, const Poll &poll) const {
    Pace pace(poll);
    size_t asked_at = std::min(block.count, Pace::STEPS);
    const uint8_t *classes = block.classes;
    bool is_open = false;  // the previous word may be joined to the next one
    for (size_t start = 0; start < block.count;) {
        size_t end = start + 1;
        while (end < asked_at && !boundary[end]) ++end;
        if (end >= asked_at && end < block.count) {
            pace.count(Pace::STEPS);
            end = find_first(end, block.count, pace, [=](size_t i) { return boundary[i]; });
            asked_at = end + std::min(block.count - end, Pace::STEPS);
        }
        const bool continues = is_in(1, classes[start]) && start + 1 < end && is_in(0, classes[start + 1]);
        if (start && is_open && continues && !(block.prior && block.prior[start])) {
            boundary[start] = 0;
        } else {
            const bool has_letters = is_in(0, classes[start]) || (start + 1 < end && is_in(0, classes[start + 1]));
            is_open = has_letters && !is_contraction(classes, start, end);
        }
        start = end;
    }
}

bool Stage::is_contraction(const uint8_t *classes, size_t start, size_t end) const {
    uint16_t state = Automaton::START;
    for (size_t i = start; i < end; ++i) {  // at most as long as the longest contraction
        state = contraction_->next(state, classes[i]);
        if (state == Automaton::DEAD) return false;
    }
    return contraction_->accepts(state, contraction_->classes());
}

// ---- pairs of classes ---------------------------------------------------------------------------------------------

bool Stage::separates(uint8_t first, uint8_t second) const {
    switch (step_) {
        case Step::DIGIT_GROUPS:
        case Step::THOUSANDS:
            return !(is_in(0, first) && is_in(0, second));
        case Step::TRAILING_WHITE_SPACE:
            return !is_in(0, first);
        case Step::BLOCKS_OF_WHITE_SPACE:
            return !(is_in(0, first) && is_in(1, second));
        case Step::LETTERS_JOINED_BY_SPACES:
            if (is_in(1, second)) return false;
            break;
        case Step::NONE:
            break;
    }
    const Automaton &automaton = *automaton_;
    for (size_t state = 1; state < automaton.states(); ++state) {
        const uint16_t between = automaton.next(state, column_of_[first]);
        if (automaton.next(between, column_of_[second]) != Automaton::DEAD) return false;
        // Nor may a lookahead distinguish the second from the end of the text, which it sees where the text was cut.
        if (automaton.accepts(between, column_of_[second]) != automaton.accepts(between, automaton.classes())) return false;
    }
    return true;
}

Certainty Stage::certainty_between(uint8_t first, uint8_t second) {
    switch (step_) {
        case Step::DIGIT_GROUPS:
            return is_in(0, first) && !is_in(0, second) ? Certainty::BOUNDARY : Certainty::NO_BOUNDARY;
        case Step::THOUSANDS:
        case Step::TRAILING_WHITE_SPACE:
        case Step::BLOCKS_OF_WHITE_SPACE:
            return is_in(0, second) ? Certainty::UNCERTAIN : Certainty::NO_BOUNDARY;
        case Step::NONE:
        case Step::LETTERS_JOINED_BY_SPACES:
            break;
    }
    if (!pairs_) pairs_ = std::make_unique<PairExplorer>(*automaton_);
    return pairs_->certainty(column_of_[first], column_of_[second]);
}

}  // namespace ggufbpe
