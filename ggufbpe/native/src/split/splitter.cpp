#include "split/splitter.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

#include "simd.h"
#include "split/certainty.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr size_t MOST_STAGES = 30;  // a bit each, and one more

#if GGUFBPE_VECTORS

// Appends the places of flags that are set, in whole 64s up to `count`; returns how many flags were read.
WITH_AVX2 size_t gather_starts(const uint8_t *flags, size_t from, size_t count, uint32_t *&to) {
    size_t i = from;
    for (; i + 64 <= count; i += 64) {
        uint64_t bits = highest_bits(load(flags + i)) | uint64_t(highest_bits(load(flags + i + VECTOR_BYTES))) << 32;
        uint32_t *const end = to + count_bits(bits);
        // Eight at a time without counting them; the excess is overwritten.
        while (bits) {
            for (int k = 0; k < 8; ++k) {
                to[k] = static_cast<uint32_t>(i + lowest_bit(bits | 1ull << 63));
                bits &= bits - 1;
            }
            to += 8;
        }
        to = end;
    }
    return i;
}

#endif

}  // namespace

Splitter::Splitter(const std::vector<CharSet> &sets, const std::vector<Rule> &rules, bool escape_spaces)
    : sets_(sets), rules_(rules), escape_spaces_(escape_spaces) {
    if (rules.empty() || rules.size() > MOST_STAGES) throw std::invalid_argument("no stages, or too many");
    const Alphabet alphabet(sets);
    std::vector<std::vector<int>> meaning(alphabet.size());
    for (const Rule &rule : rules) stages_.push_back(std::make_unique<Stage>(rule, alphabet, meaning));

    // Classes of the alphabet that mean the same to all stages become one.
    std::map<std::vector<int>, uint8_t> numbers;
    std::vector<uint8_t> class_of(alphabet.size());
    std::vector<size_t> representatives;
    for (size_t c = 0; c < alphabet.size(); ++c) {
        auto [found, is_new] = numbers.try_emplace(meaning[c], static_cast<uint8_t>(numbers.size()));
        if (is_new) representatives.push_back(c);
        class_of[c] = found->second;
    }
    class_count_ = representatives.size();
    std::vector<std::pair<uint32_t, uint8_t>> runs;
    for (const auto &[start, number] : alphabet.runs()) runs.emplace_back(start, class_of[number]);
    table_ = std::make_unique<ClassTable>(std::move(runs), escape_spaces);
    for (size_t i = 0; i < rules.size(); ++i) {
        stages_[i]->set_classes(rules[i], alphabet, representatives);
        stages_[i]->set_weights(table_->ascii());
    }
    find_cuts();
}

std::shared_ptr<const Splitter> Splitter::of_whole_text(bool escape_spaces) {
    CharSet any;
    any.terms.emplace_back();
    any.terms.back().negated = true;
    Rule rule;
    rule.rule = {REPEAT, 1, NO_LIMIT, CHARS, 0};
    const auto made = std::make_shared<Splitter>(std::vector<CharSet>{any}, std::vector<Rule>{rule}, escape_spaces);
    made->leaves_whole_ = true;
    return made;
}

std::shared_ptr<const Splitter> Splitter::parted_at_spaces(const std::vector<uint32_t> &joined) const {
    CharSet space, joining, neither;
    CharSet::Term is_space, is_joining, is_either;
    is_space.ranges = is_either.ranges = {{ESCAPED_SPACE, ESCAPED_SPACE}};
    for (uint32_t code_point : joined) {
        // Sets see white space beyond ASCII as a vertical tab.
        const uint32_t seen = code_point > 0x7F && class_letter(code_point) == 'W' ? 0x0B : code_point;
        is_joining.ranges.emplace_back(seen, seen);
        is_either.ranges.emplace_back(seen, seen);
    }
    is_either.negated = true;
    space.terms = {is_space};
    joining.terms = {is_joining};
    neither.terms = {is_either};
    std::vector<CharSet> sets = sets_;
    const int32_t s = static_cast<int32_t>(sets.size()), x = s + 1, n = s + 2;
    sets.insert(sets.end(), {space, joining, neither});
    // (?:s|x|n+x)+n*|n+ : everything in which no s comes after an n
    Rule rule;
    rule.rule = {CHOICE, 2,
                 SEQUENCE, 2,
                 REPEAT, 1, NO_LIMIT, CHOICE, 3, CHARS, s, CHARS, x, SEQUENCE, 2, REPEAT, 1, NO_LIMIT, CHARS, n, CHARS, x,
                 REPEAT, 0, NO_LIMIT, CHARS, n,
                 REPEAT, 1, NO_LIMIT, CHARS, n};
    std::vector<Rule> rules = rules_to_add_to();
    rules.push_back(rule);
    return std::make_shared<Splitter>(sets, rules, escape_spaces_);
}

std::shared_ptr<const Splitter> Splitter::parted_between(const std::vector<std::string> &groups,
                                                         const std::string &alone) const {
    std::vector<CharSet> sets = sets_;
    CharSet::Term others;
    others.negated = true;
    const auto add_set = [&](const std::string &characters) {
        CharSet::Term term;
        for (char c : characters) {
            const auto code_point = static_cast<unsigned char>(c);
            term.ranges.emplace_back(code_point, code_point);
            others.ranges.emplace_back(code_point, code_point);
        }
        sets.emplace_back();
        sets.back().terms = {term};
        return static_cast<int32_t>(sets.size() - 1);
    };
    // run: one of a group's runs, or one of `alone`
    Program run{CHOICE, static_cast<int32_t>(groups.size() + !alone.empty())};
    for (const std::string &group : groups) run.insert(run.end(), {REPEAT, 1, NO_LIMIT, CHARS, add_set(group)});
    if (!alone.empty()) run.insert(run.end(), {CHARS, add_set(alone)});
    const auto other = static_cast<int32_t>(sets.size());
    sets.emplace_back();
    sets.back().terms = {others};
    // (?:run?other)+run?|run : no run is beside another one
    Rule rule;
    const auto append = [&](const Program &part) { rule.rule.insert(rule.rule.end(), part.begin(), part.end()); };
    append({CHOICE, 2, SEQUENCE, 2, REPEAT, 1, NO_LIMIT, SEQUENCE, 2, REPEAT, 0, 1});
    append(run);
    append({CHARS, other, REPEAT, 0, 1});
    append(run);
    append(run);
    std::vector<Rule> rules = rules_to_add_to();
    rules.push_back(rule);
    return std::make_shared<Splitter>(sets, rules, escape_spaces_);
}

std::shared_ptr<const Splitter> Splitter::parted_at_white_space() const {
    CharSet white_space;
    CharSet::Term is_white_space;
    is_white_space.classes = class_bit('W');
    white_space.terms = {is_white_space};
    std::vector<CharSet> sets = sets_;
    sets.push_back(white_space);
    Rule run;
    run.rule = {REPEAT, 1, NO_LIMIT, CHARS, static_cast<int32_t>(sets_.size())};
    std::vector<Rule> rules{run};
    rules.insert(rules.end(), rules_.begin(), rules_.end());
    return std::make_shared<Splitter>(sets, rules, escape_spaces_);
}

void Splitter::find_cuts() {
    const size_t width = class_count_ + 1;
    cuts_.assign(width * width, 0);
    for (uint8_t first = 0; first < class_count_; ++first) {
        for (uint8_t second = 0; second < class_count_; ++second) {
            // Stage by stage, up to the first that certainly has a boundary there: the others see two pieces.
            for (size_t i = 0; i < stages_.size() && stages_[i]->separates(first, second); ++i) {
                const Certainty certainty = stages_[i]->certainty_between(first, second);
                if (certainty == Certainty::BOUNDARY) cuts_[first * width + second] = IS_CUT | boundary_bit(i);
                if (certainty != Certainty::NO_BOUNDARY) break;
            }
        }
    }
}

size_t Splitter::cut(const unsigned char *text, size_t size, size_t from, const Poll &poll) const {
    if (from == 0) return 0;
    Pace pace(poll);
    while (from < size && (text[from] & 0xC0) == 0x80) ++from;
    if (from >= size) return size;
    uint8_t before = table_->class_before(text, from);
    while (from < size) {
        const uint8_t here = table_->class_at(text, size, from);
        if (cut_between(before, here) & IS_CUT) return from;
        before = here;
        unsigned length;
        code_point_at(text + from, text + size, length);
        from += length;
        pace.count(length);
    }
    return size;
}

size_t Splitter::block(const unsigned char *text, size_t size, size_t start, Scratch &scratch, const Poll &poll) const {
    size_t end = size;
    if (size - start > BLOCK + BLOCK / 4) end = cut(text, size, start + BLOCK, poll);
    const size_t bytes = end - start;
    if (bytes > 0xFFFFFF00u) throw std::length_error("more than 4 GiB of text without a place to cut it");

    uint8_t *const classes = classify(text + start, bytes, scratch, poll);
    uint32_t cut_at_end = 0;
    if (end < size) {
        classes[scratch.count] = table_->class_at(text, size, end);
        cut_at_end = cut_between(table_->class_before(text, end), classes[scratch.count]);
    }
    run_stages(nullptr, end == size, cut_at_end, scratch, poll);
    return end;
}

void Splitter::block_of_pieces(const unsigned char *text, size_t size, const std::vector<uint32_t> &edges, Scratch &scratch,
                               const Poll &poll) const {
    classify(text, size, scratch, poll);
    const size_t count = scratch.count;
    uint8_t *const prior = with_margins(scratch.flags[1], size);  // the first stage writes to the other one
    std::memset(prior - 2, 0, count + 2 + MARGIN);
    const uint32_t *const offsets = scratch.offsets.data(), *place = offsets;
    for (const uint32_t edge : edges) {
        if (edge == size) break;
        if (!scratch.is_ascii) place = std::lower_bound(place, offsets + count, edge);
        prior[scratch.is_ascii ? edge : static_cast<size_t>(place - offsets)] = BOUNDARY;
    }
    run_stages(prior, true, 0, scratch, poll);
}

// The class of each code point of a block; the end of the text before them, and after them.
uint8_t *Splitter::classify(const unsigned char *text, size_t size, Scratch &scratch, const Poll &poll) const {
    uint8_t *const classes = with_margins(scratch.classes, size);
    scratch.count = table_->classify(text, size, classes, scratch.offsets, scratch.is_ascii, poll);
    scratch.size = static_cast<uint32_t>(size);
    const uint8_t end_class = static_cast<uint8_t>(class_count_);
    classes[-3] = classes[-2] = classes[-1] = classes[scratch.count] = classes[scratch.count + 1] = end_class;
    return classes;
}

// Where words begin in a block. `prior`, which may be null, has the boundaries that are known before.
void Splitter::run_stages(uint8_t *prior, bool ends_text, uint32_t cut_at_end, Scratch &scratch, const Poll &poll) const {
    const size_t count = scratch.count;
    const uint8_t *const classes = scratch.classes.data() + MARGIN;
    for (size_t i = 0; i < stages_.size() && count; ++i) {
        uint8_t *boundary = with_margins(scratch.flags[i & 1], scratch.size);
        boundary[-2] = boundary[-1] = 0;
        stages_[i]->run({classes, prior, count, ends_text}, boundary, scratch.stage, poll);
        boundary[count] = (prior && prior[count]) || (cut_at_end & boundary_bit(i)) ? BOUNDARY : 0;
        prior = boundary;
    }
    scratch.done = 0;
    scratch.boundary = prior;
}

bool Splitter::words(Scratch &scratch, const Poll &poll) const {
    const size_t from = scratch.done, count = scratch.count;
    if (from == count) return false;
    size_t end = count - from <= PIECE + PIECE / 4 ? count : from + PIECE;
    uint8_t *const boundary = scratch.boundary;
    uint32_t *const starts = scratch.starts.room(end - from + 2 * MARGIN), *to = starts;
    size_t done = from;
#if GGUFBPE_VECTORS
    if (has_vectors()) {
        if (end == count) std::memset(boundary + count, 0, MARGIN);  // so that the last flags can be read with the margin
        done = gather_starts(boundary, from, end == count ? count + MARGIN - 1 : end, to);
    }
#endif
    for (; done < end; ++done) {
        *to = static_cast<uint32_t>(done);
        to += boundary[done] & 1;
    }
    if (end < count && to == starts + 1) {  // a long word: where does it end?
        const uint8_t *next = nullptr;
        for (size_t at = end; !next && at < count; at += Pace::STEPS) {
            if (at > end) poll();
            next = static_cast<const uint8_t *>(std::memchr(boundary + at, BOUNDARY, std::min(count - at, Pace::STEPS)));
        }
        end = next ? static_cast<size_t>(next - boundary) : count;
        if (next) *to++ = static_cast<uint32_t>(end);
    }
    // The last word found continues after `end`: it is the first of the next ones.
    const bool is_all = end == count;
    scratch.word_count = static_cast<size_t>(to - starts) - !is_all;
    scratch.done = is_all ? count : starts[scratch.word_count];
    if (!scratch.is_ascii) {
        for (uint32_t *at = starts; at < to; ++at) *at = scratch.offsets[*at];
    }
    if (is_all) *to = scratch.size;
    return true;
}

}  // namespace ggufbpe
