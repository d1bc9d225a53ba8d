#include "split/splitter.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

#include "machine.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

// How frequent an ASCII character is in text, in per cent, very roughly. Only speed depends on it.
double frequency(uint32_t c) {
    if (c == ' ') return 15;
    if (c >= 'a' && c <= 'z') return std::strchr("etaoinshrdl", static_cast<int>(c)) ? 5 : 1.5;
    if ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return 0.15;
    return c == '\n' || c == ',' || c == '.' ? 1 : 0.1;
}

constexpr size_t MOST_STAGES = 30;  // a bit each, and one more

#if GGUFBPE_X86

__attribute__((target("avx2,bmi"))) size_t gather_starts(const uint8_t *flags, size_t from, size_t count, uint32_t *&to) {
    size_t i = from;
    for (; i + 64 <= count; i += 64) {
        auto bits_at = [&](size_t at) __attribute__((target("avx2"))) {
            return static_cast<uint64_t>(static_cast<uint32_t>(
                _mm256_movemask_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(flags + at)))));
        };
        uint64_t bits = bits_at(i) | bits_at(i + 32) << 32;
        size_t found = static_cast<size_t>(__builtin_popcountll(bits));
        // Eight at a time without asking how many there are; what is too much is written over.
        uint32_t *end = to + found;
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

Splitter::Splitter(const std::vector<CharSet> &sets, const std::vector<Rule> &stages, bool escape_spaces)
    : sets_(sets), rules_(stages), escape_spaces_(escape_spaces) {
    if (stages.empty() || stages.size() > MOST_STAGES) throw std::invalid_argument("no stages, or too many");
    Alphabet alphabet(sets);
    auto set_at = [&](int32_t index) {
        if (index < 0 || size_t(index) >= sets.size()) throw std::invalid_argument("a set that is not there");
        return size_t(index);
    };
    static const std::map<std::string, std::pair<Stage::Step, size_t>> STEPS = {
        {"", {Stage::NONE, 0}},
        {"digit_groups", {Stage::DIGIT_GROUPS, 1}},
        {"thousands", {Stage::THOUSANDS, 1}},
        {"trailing_white_space", {Stage::TRAILING_WHITE_SPACE, 1}},
        {"blocks_of_white_space", {Stage::BLOCKS_OF_WHITE_SPACE, 2}},
        {"letters_joined_by_spaces", {Stage::LETTERS_JOINED_BY_SPACES, 2}},
    };

    // What each class of the alphabet is to each stage; classes that are the same to all become one.
    std::map<std::vector<int>, uint8_t> numbers;
    std::vector<std::vector<int>> meaning(alphabet.size());
    std::vector<std::vector<uint8_t>> columns(stages.size());
    std::vector<std::unique_ptr<Automaton>> contractions;
    for (size_t i = 0; i < stages.size(); ++i) {
        const Rule &rule = stages[i];
        auto step = STEPS.find(rule.step);
        if (step == STEPS.end()) throw std::invalid_argument("the step " + rule.step + " is not known");
        if (rule.sets.size() != step->second.second) throw std::invalid_argument("a step with the wrong number of sets");
        auto stage = std::make_unique<Stage>();
        stage->step = step->second.first;
        if (stage->step == Stage::NONE || stage->step == Stage::LETTERS_JOINED_BY_SPACES) {
            Automaton whole(rule.rule, alphabet);
            stage->automaton = std::make_unique<Automaton>(whole.merged(columns[i]));
            for (size_t c = 0; c < alphabet.size(); ++c) meaning[c].push_back(columns[i][c]);
        }
        if (stage->step == Stage::LETTERS_JOINED_BY_SPACES) {
            std::vector<uint8_t> contraction_columns;
            Automaton contraction = Automaton(rule.extra, alphabet);
            contraction.merged(contraction_columns);
            for (size_t c = 0; c < alphabet.size(); ++c) meaning[c].push_back(contraction_columns[c]);
        }
        for (int32_t set : rule.sets) {
            for (size_t c = 0; c < alphabet.size(); ++c) meaning[c].push_back(alphabet.in_set(c, set_at(set)));
        }
        stages_.push_back(std::move(stage));
    }
    std::vector<uint8_t> class_of(alphabet.size());
    std::vector<size_t> representative;
    // A single stage without a step needs no classes but its columns, under the same numbers.
    for (size_t c = 0; c < alphabet.size(); ++c) {
        auto [found, is_new] = numbers.try_emplace(meaning[c], static_cast<uint8_t>(numbers.size()));
        if (is_new) representative.push_back(c);
        class_of[c] = found->second;
    }
    classes_ = representative.size();
    for (size_t i = 0; i < stages.size(); ++i) {
        Stage &stage = *stages_[i];
        if (stage.automaton) {
            for (size_t c : representative) stage.column_of.push_back(columns[i][c]);
            stage.column_of.push_back(static_cast<uint8_t>(stage.automaton->classes()));
            stage.is_identity = true;
            for (size_t c = 0; c <= classes_; ++c) stage.is_identity = stage.is_identity && stage.column_of[c] == c;
        }
        for (int32_t set : stages[i].sets) {
            std::vector<bool> member;
            for (size_t c : representative) member.push_back(alphabet.in_set(c, size_t(set)));
            member.push_back(false);  // the end
            stage.members.push_back(member);
        }
        if (stage.step == Stage::LETTERS_JOINED_BY_SPACES) {
            // Over the classes of the entry, which are what a step sees.
            stage.contraction = std::make_unique<Automaton>(Automaton(stages[i].extra, alphabet).chosen(representative));
        }
    }
    std::vector<std::pair<uint32_t, uint8_t>> runs;
    for (const auto &[start, number] : alphabet.runs()) runs.emplace_back(start, class_of[number]);
    table_ = std::make_unique<ClassTable>(std::move(runs), escape_spaces);
    for (const auto &stage : stages_) {
        if (!stage->automaton) continue;
        stage->weights.assign(stage->automaton->classes(), 0.1);
        for (uint32_t c = 0; c < 0x80; ++c) stage->weights[stage->column_of[table_->ascii()[c]]] += frequency(c);
    }
    prepare_pairs();
}

std::shared_ptr<const Splitter> Splitter::parted_at_spaces(const std::vector<uint32_t> &joined) const {
    CharSet space, joins, other;
    CharSet::Term one, some, all;
    one.ranges = all.ranges = {{ESCAPED_SPACE, ESCAPED_SPACE}};
    for (uint32_t code_point : joined) {
        // Sets see white space beyond ASCII as a vertical tab.
        const uint32_t seen = code_point > 0x7F && class_letter(code_point) == 'W' ? 0x0B : code_point;
        some.ranges.emplace_back(seen, seen);
        all.ranges.emplace_back(seen, seen);
    }
    all.negated = true;
    space.terms = {one};
    joins.terms = {some};
    other.terms = {all};
    std::vector<CharSet> sets = sets_;
    const int32_t s = static_cast<int32_t>(sets.size()), x = s + 1, n = s + 2;
    sets.insert(sets.end(), {space, joins, other});
    // (?:s|x|n+x)+n*|n+ : everything in which no s stands behind an n
    const Program turn = {CHOICE, 3, CHARS, s, CHARS, x, SEQUENCE, 2, REPEAT, 1, -1, CHARS, n, CHARS, x};
    Rule rule;
    rule.rule = {CHOICE, 2, SEQUENCE, 2, REPEAT, 1, -1};
    rule.rule.insert(rule.rule.end(), turn.begin(), turn.end());
    for (int32_t number : {int32_t(REPEAT), 0, -1, int32_t(CHARS), n, int32_t(REPEAT), 1, -1, int32_t(CHARS), n}) {
        rule.rule.push_back(number);
    }
    std::vector<Rule> rules = rules_;
    rules.push_back(rule);
    return std::make_shared<Splitter>(sets, rules, escape_spaces_);
}

std::shared_ptr<const Splitter> Splitter::parted_at_white_space() const {
    CharSet white_space;
    CharSet::Term all;
    all.classes = class_bit('W');
    white_space.terms = {all};
    std::vector<CharSet> sets = sets_;
    sets.push_back(white_space);
    Rule run;
    run.rule = {REPEAT, 1, -1, CHARS, static_cast<int32_t>(sets_.size())};
    std::vector<Rule> rules{run};
    rules.insert(rules.end(), rules_.begin(), rules_.end());
    return std::make_shared<Splitter>(sets, rules, escape_spaces_);
}

void Splitter::prepare_pairs() {
    const size_t width = classes_ + 1;
    safe_.assign(width * width, 0);
    for (uint8_t a = 0; a < classes_; ++a) {
        for (uint8_t b = 0; b < classes_; ++b) {
            // Stage by stage, up to the first that surely has a boundary there: the others see two pieces.
            for (size_t i = 0; i < stages_.size() && stages_[i]->parts(a, b); ++i) {
                int verdict = stages_[i]->boundary_between(a, b);
                if (verdict == 1) safe_[a * width + b] = 2u << i | 1;
                if (verdict != 0) break;
            }
        }
    }
}

size_t Splitter::cut(const unsigned char *text, size_t size, size_t from) const {
    if (from == 0) return 0;
    while (from < size && (text[from] & 0xC0) == 0x80) ++from;
    if (from >= size) return size;
    uint8_t before = table_->class_before(text, from);
    while (from < size) {
        const uint8_t here = table_->class_at(text, size, from);
        if (is_safe(before, here)) return from;
        before = here;
        unsigned length;
        code_point_at(text + from, text + size, length);
        from += length;
    }
    return size;
}

size_t Splitter::block(const unsigned char *text, size_t size, size_t start, Scratch &scratch) const {
    size_t end = size;
    if (size - start > BLOCK + BLOCK / 4) end = cut(text, size, start + BLOCK);
    const size_t bytes = end - start;
    if (bytes > 0xFFFFFF00u) throw std::length_error("more than 4 GiB of text without a place to cut it");

    uint8_t *classes = fitted(scratch.classes, bytes);
    bool is_ascii;
    const size_t count = table_->classify(text + start, bytes, classes, scratch.offsets, is_ascii);
    const uint8_t end_class = static_cast<uint8_t>(classes_);
    classes[-3] = classes[-2] = classes[-1] = end_class;
    uint32_t at_end = 0;  // the stages that have a boundary where the block ends
    if (end < size) {
        classes[count] = table_->class_at(text, size, end);
        at_end = safe_[table_->class_before(text, end) * (classes_ + 1) + classes[count]];
    } else {
        classes[count] = end_class;
    }
    classes[count + 1] = end_class;

    uint8_t *prior = nullptr;
    for (size_t i = 0; i < stages_.size() && count; ++i) {
        const Stage &stage = *stages_[i];
        uint8_t *boundary = fitted(scratch.flags[i & 1], bytes);
        boundary[-2] = boundary[-1] = 0;
        const uint8_t *columns = classes;
        if (stage.automaton && !stage.is_identity) {
            uint8_t *translated = fitted(scratch.columns, bytes);
            look_up_each(classes, count + 1, stage.column_of.data(), stage.column_of.size(), translated);
            translated[-3] = translated[-2] = translated[-1] = static_cast<uint8_t>(stage.automaton->classes());
            columns = translated;
        }
        if (stage.step == Stage::NONE) {
            stage.run_automaton(columns, prior, count, boundary, scratch.stage);
        } else {
            stage.run_step(classes, columns, prior, count, end_class, boundary, scratch.stage);
        }
        boundary[count] = (prior && prior[count]) || (at_end >> (i + 1) & 1) ? 0xFF : 0;
        prior = boundary;
    }

    scratch.count = count;
    scratch.done = 0;
    scratch.boundary = prior;
    scratch.is_ascii = is_ascii;
    scratch.size = static_cast<uint32_t>(bytes);
    return end;
}

bool Splitter::words(Scratch &scratch) const {
    const size_t from = scratch.done, count = scratch.count;
    if (from == count) return false;
    size_t end = count - from <= PIECE + PIECE / 4 ? count : from + PIECE;
    uint8_t *const boundary = scratch.boundary;
    uint32_t *const starts = scratch.starts.room(end - from + 2 * MARGIN), *to = starts;
    size_t done = from;
#if GGUFBPE_X86
    if (has_avx2()) {
        if (end == count) std::memset(boundary + count, 0, MARGIN);  // so that the last flags can be taken with what is behind
        done = gather_starts(boundary, from, end == count ? count + MARGIN - 1 : end, to);
    }
#endif
    for (; done < end; ++done) {
        *to = static_cast<uint32_t>(done);
        to += boundary[done] & 1;
    }
    if (end < count && to == starts + 1) {  // a long word: where does it end?
        const void *next = std::memchr(boundary + end, 0xFF, count - end);
        end = next ? static_cast<size_t>(static_cast<const uint8_t *>(next) - boundary) : count;
        if (next) *to++ = static_cast<uint32_t>(end);
    }
    // The last word that was found goes on behind `end`: it is the first of the next ones.
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
