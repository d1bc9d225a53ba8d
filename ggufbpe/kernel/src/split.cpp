#include "split.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

#include "machine.h"
#include "utf8.h"

#if !defined(GGUFBPE_PIECE)
#define GGUFBPE_PIECE (1 << 17)  // tests take a short one
#endif

namespace ggufbpe {

namespace {

constexpr uint32_t ESCAPED_SPACE = 0x2581;
constexpr size_t MARGIN = 64;  // bytes before and behind what windows and wide loads may touch
// How frequent an ASCII character is in text, in per cent, very roughly. Only speed depends on it.
double frequency(uint32_t c) {
    if (c == ' ') return 15;
    if (c >= 'a' && c <= 'z') return std::strchr("etaoinshrdl", static_cast<int>(c)) ? 5 : 1.5;
    if ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return 0.15;
    return c == '\n' || c == ',' || c == '.' ? 1 : 0.1;
}

constexpr size_t MOST_STAGES = 30;  // a bit each, and one more
constexpr size_t PIECE = GGUFBPE_PIECE;  // code points that are looked at together; what is kept of them is small then
constexpr size_t SHORT = 48;   // code points; for fewer, walking is faster than windows, and needs no tables

}  // namespace

namespace {

#if GGUFBPE_X86

// Classes of ASCII bytes, 32 at a time, until one is not ASCII; returns how many were done.
__attribute__((target("avx2"))) size_t classify_ascii(const unsigned char *text, size_t size, const uint8_t *table,
                                                      uint8_t *classes) {
    __m256i rows[8];
    for (int row = 0; row < 8; ++row) {
        rows[row] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i *>(table + 16 * row)));
    }
    const __m256i limit = _mm256_set1_epi8(0x70);
    size_t i = 0;
    for (; i < size; i += 32) {
        if (size - i < 32) {
            if (size < 32) break;
            i = size - 32;  // some of them once more
        }
        __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(text + i));
        if (_mm256_movemask_epi8(bytes)) break;
        __m256i result = _mm256_setzero_si256();
        for (int row = 0; row < 8; ++row) {
            // In its own row a byte is 0x70 to 0x7F, a shuffle's index; in others the upper bit is set, which gives 0.
            __m256i index = _mm256_adds_epu8(_mm256_xor_si256(bytes, _mm256_set1_epi8(static_cast<char>(row << 4))), limit);
            result = _mm256_or_si256(result, _mm256_shuffle_epi8(rows[row], index));
        }
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(classes + i), result);
    }
    return i;
}

// Columns of classes below 64, 32 at a time, the last of them maybe behind the end: both buffers have a margin there.
__attribute__((target("avx2"))) void translate(const uint8_t *classes, size_t size, const uint8_t *table, size_t width,
                                               uint8_t *columns) {
    __m256i rows[4];
    const int count = static_cast<int>((width + 15) / 16);
    for (int row = 0; row < count; ++row) {
        rows[row] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i *>(table + 16 * row)));
    }
    const __m256i limit = _mm256_set1_epi8(0x70);
    for (size_t i = 0; i < size; i += 32) {
        __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(classes + i));
        __m256i result = _mm256_setzero_si256();
        for (int row = 0; row < count; ++row) {
            __m256i index = _mm256_adds_epu8(_mm256_xor_si256(bytes, _mm256_set1_epi8(static_cast<char>(row << 4))), limit);
            result = _mm256_or_si256(result, _mm256_shuffle_epi8(rows[row], index));
        }
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(columns + i), result);
    }
}

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

// A buffer for `count` code points with a margin before and behind.
uint8_t *fitted(Buffer<uint8_t> &buffer, size_t count) { return buffer.room(count + 2 * MARGIN) + MARGIN; }

// to[i] = table[from[i]], where `width` is how many values there are; both are in fitted() buffers.
void look_up_each(const uint8_t *from, size_t count, const uint8_t *table, size_t width, uint8_t *to) {
#if GGUFBPE_X86
    if (has_avx2() && width <= 64) {
        alignas(16) uint8_t rows[64] = {};
        std::memcpy(rows, table, width);
        translate(from, count, rows, width, to);
        return;
    }
#else
    (void)width;
#endif
    for (size_t i = 0; i < count; ++i) to[i] = table[from[i]];
}

}  // namespace

// One stage over the classes of the whole entry.
struct Splitter::Stage {
    enum Step { NONE, DIGIT_GROUPS, THOUSANDS, TRAILING_WHITE_SPACE, BLOCKS_OF_WHITE_SPACE, LETTERS_JOINED_BY_SPACES };

    Step step = NONE;
    std::unique_ptr<Automaton> automaton;     // over columns; none for steps that only look at sets
    std::vector<uint8_t> column_of;           // of each class, and of the end
    std::vector<double> weights;              // of each column: how frequent it is
    bool is_identity = false;                 // columns are classes
    std::vector<std::vector<bool>> members;   // [set of the step][class]
    std::unique_ptr<Automaton> contraction;   // of letters_joined_by_spaces, over classes
    Lazy<Windows> windows;

    const Windows &get_windows() const {
        return windows.get([this] { return std::make_unique<Windows>(*automaton, weights); });
    }

    bool in(size_t set, uint8_t c) const { return members[set][c]; }

    // Where the match that begins at `from` ends; `from` if there is none. A boundary in `prior` ends the piece.
    size_t match(const uint8_t *columns, const uint8_t *prior, size_t count, size_t from) const {
        const Automaton &a = *automaton;
        const size_t end = a.classes();
        uint16_t state = Automaton::START;
        size_t last = from;
        for (size_t i = from;; ++i) {
            size_t c = prior && i > from && prior[i] ? end : columns[i];
            if (a.accepts(state, c)) last = i;
            if (c == end) break;
            state = a.next(state, c);
            if (state == Automaton::DEAD) break;
            // At `count` the block ends, where nothing goes on; the end itself was read as look-ahead.
            if (i == count) break;
        }
        return last;
    }

    // Marks the matches from `position` on until one ends behind `until`; returns where it stopped. `in_rest` says, before
    // and after, that the code point before is in no match.
    size_t walk(const uint8_t *columns, const uint8_t *prior, size_t count, size_t position, size_t until, bool &in_rest,
                uint8_t *boundary) const {
        while (position < count && position <= until) {
            size_t end = match(columns, prior, count, position);
            if (end == position) {
                if (!in_rest) boundary[position] = 0xFF;
                in_rest = true;
                ++position;
            } else {
                boundary[position] = 0xFF;
                if (end < count) boundary[end] = 0xFF;
                position = end;
                in_rest = false;
            }
        }
        return position;
    }

    void run_automaton(const uint8_t *columns, const uint8_t *prior, size_t count, uint8_t *boundary,
                       Scratch &scratch) const {
        if (count < SHORT || !get_windows().usable()) {
            if (prior) {
                std::memcpy(boundary, prior, count);
            } else {
                std::memset(boundary, 0, count);
            }
            boundary[0] = 0xFF;
            bool in_rest = false;
            walk(columns, prior, count, 0, count, in_rest, boundary);
            return;
        }
        const uint8_t *narrow = columns;
        if (!get_windows().group_of().empty()) {
            uint8_t *groups = fitted(scratch.groups, count);
            look_up_each(columns, count + 1, get_windows().group_of().data(), automaton->classes() + 1, groups);
            groups[-3] = groups[-2] = groups[-1] = get_windows().end();
            narrow = groups;
        }
        // In pieces, for in a run of line breaks every place may be uncertain. Where a walk stops may be in a later piece.
        std::vector<uint32_t> &uncertain = scratch.uncertain;
        size_t done = 0;
        bool in_rest = false, is_boundary = false;  // before `done`
        for (size_t from = 0; from < count; from += PIECE) {
            const size_t end = std::min(from + PIECE, count);
            uncertain.clear();
            get_windows().mark(narrow, prior, from, end, boundary, uncertain);
            if (is_boundary && done >= from && done < end) boundary[done] = 0xFF;
            for (uint32_t place : uncertain) {
                if (place < done) continue;
                size_t begin = place;
                while (begin > done && !boundary[begin]) --begin;
                if (begin > done) in_rest = false;
                done = walk(columns, prior, count, begin, place, in_rest, boundary);
                is_boundary = !in_rest;
            }
        }
    }

    // ---- the steps of ggufbpe/split.py ------------------------------------------------------------------------

    // Calls function(first, end) for each run of code points that are in a set and in one piece.
    template <typename Function>
    void each_run(const uint8_t *classes, const uint8_t *prior, size_t count, size_t set, Function function) const {
        for (size_t i = 0; i < count;) {
            if (!in(set, classes[i])) {
                ++i;
                continue;
            }
            size_t first = i++;
            while (i < count && in(set, classes[i]) && !(prior && prior[i])) ++i;
            function(first, i);
        }
    }

    void run_step(const uint8_t *classes, const uint8_t *columns, const uint8_t *prior, size_t count, uint8_t end_class,
                  uint8_t *boundary, Scratch &scratch) const {
        if (step == LETTERS_JOINED_BY_SPACES) {
            run_automaton(columns, prior, count, boundary, scratch);
            join_letters(classes, count, boundary);
            return;
        }
        if (prior) {
            std::memcpy(boundary, prior, count);
        } else {
            std::memset(boundary, 0, count);
        }
        boundary[0] = 0xFF;
        auto mark = [&](size_t i) {
            if (i < count) boundary[i] = 0xFF;
        };
        switch (step) {
            case DIGIT_GROUPS:
                each_run(classes, prior, count, 0, [&](size_t first, size_t end) {
                    size_t size = end - first;
                    for (size_t i = first + (size % 3 ? size % 3 : 3); i < end; i += 3) mark(i);
                    mark(end);
                });
                return;
            case THOUSANDS:
                each_run(classes, prior, count, 0, [&](size_t first, size_t end) {
                    for (size_t i = first + (end - first) % 3; i < end; i += 3) mark(i);
                });
                return;
            case TRAILING_WHITE_SPACE:
                each_run(classes, prior, count, 0, [&](size_t first, size_t end) {
                    bool ends_piece = end < count ? prior && prior[end] : classes[count] == end_class || (prior && prior[count]);
                    if (ends_piece) mark(first);
                });
                return;
            case BLOCKS_OF_WHITE_SPACE:  // set 0: white space but line breaks; set 1: all white space
                each_run(classes, prior, count, 0, [&](size_t first, size_t end) {
                    bool goes_on = !(prior && prior[end]) && in(1, classes[end]);
                    if (end - first < 1025 || goes_on) return;
                    for (size_t i = first; i < end; i += 512) mark(i);
                });
                return;
            default:
                return;
        }
    }

    // Words of letters that a single space parts are one. Set 0: letters; set 1: the space.
    void join_letters(const uint8_t *classes, size_t count, uint8_t *boundary) const {
        bool open = false;
        for (size_t start = 0; start < count;) {
            size_t end = start + 1;
            while (end < count && !boundary[end]) ++end;
            bool continues = in(1, classes[start]) && start + 1 < end && in(0, classes[start + 1]);
            if (start && open && continues) {
                boundary[start] = 0;
            } else {
                bool letters = in(0, classes[start]) || (start + 1 < end && in(0, classes[start + 1]));
                open = letters && !is_contraction(classes, start, end);
            }
            start = end;
        }
    }

    bool is_contraction(const uint8_t *classes, size_t start, size_t end) const {
        uint16_t state = Automaton::START;
        for (size_t i = start; i < end; ++i) {
            state = contraction->next(state, classes[i]);
            if (state == Automaton::DEAD) return false;
        }
        return contraction->accepts(state, contraction->classes());
    }

    // ---- pairs of classes ------------------------------------------------------------------------------------

    // Whether no match of this stage has the two classes one behind the other, nor looks past the second.
    bool parts(uint8_t first, uint8_t second) const {
        auto both_in = [&](size_t a, size_t b) { return in(a, first) && in(b, second); };
        switch (step) {
            case DIGIT_GROUPS:
            case THOUSANDS:
                return !both_in(0, 0);
            case TRAILING_WHITE_SPACE:
                return !in(0, first);
            case BLOCKS_OF_WHITE_SPACE:
                return !both_in(0, 1);
            case LETTERS_JOINED_BY_SPACES:
                if (in(1, second)) return false;
                break;
            default:
                break;
        }
        const Automaton &a = *automaton;
        for (size_t state = 1; state < a.states(); ++state) {
            uint16_t between = a.next(state, column_of[first]);
            if (a.next(between, column_of[second]) != Automaton::DEAD) return false;
            // Nor may a look-ahead tell the second from the end of the text, which it sees where the text was cut.
            if (a.accepts(between, column_of[second]) != a.accepts(between, a.classes())) return false;
        }
        return true;
    }

    // 1: a boundary for certain, 0: none for certain, 2: it depends.
    int boundary_between(uint8_t first, uint8_t second) const {
        switch (step) {
            case DIGIT_GROUPS:
                return in(0, first) && !in(0, second);
            case THOUSANDS:
                return in(0, second) ? 2 : 0;
            case TRAILING_WHITE_SPACE:
                return in(0, second) ? 2 : 0;
            case BLOCKS_OF_WHITE_SPACE:
                return in(0, second) ? 2 : 0;
            default: {
                int verdict = certainty_of_pair(*automaton, column_of[first], column_of[second]);
                return verdict == 3 ? 2 : verdict;
            }
        }
    }
};

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
    for (const auto &[start, number] : alphabet.runs()) runs_.emplace_back(start, class_of[number]);
    for (size_t run = 0; run < runs_.size() && runs_[run].first < 0x80; ++run) {
        uint32_t end = run + 1 < runs_.size() ? std::min<uint32_t>(runs_[run + 1].first, 0x80) : 0x80;
        for (uint32_t c = runs_[run].first; c < end; ++c) ascii_[c] = runs_[run].second;
    }
    if (escape_spaces_) {
        auto behind = std::upper_bound(runs_.begin(), runs_.end(), std::make_pair(ESCAPED_SPACE, uint8_t(255)));
        ascii_[int(' ')] = std::prev(behind)->second;
    }
    for (const auto &stage : stages_) {
        if (!stage->automaton) continue;
        stage->weights.assign(stage->automaton->classes(), 0.1);
        for (uint32_t c = 0; c < 0x80; ++c) stage->weights[stage->column_of[ascii_[c]]] += frequency(c);
    }
    prepare_pairs();
}

Splitter::~Splitter() = default;

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

const uint8_t *Splitter::wide() const {
    const auto make = [this] {
        auto table = std::make_unique<ClassTable>();
        for (size_t run = 0; run < runs_.size(); ++run) {
            uint32_t end = run + 1 < runs_.size() ? runs_[run + 1].first : 0x110000;
            std::memset(table->data() + runs_[run].first, runs_[run].second, end - runs_[run].first);
        }
        return table;
    };
    return wide_.get(make).data();
}

uint8_t Splitter::class_at(const unsigned char *text, size_t size, size_t position) const {
    if (text[position] < 0x80) return ascii_[text[position]];
    unsigned length;
    return wide()[code_point_at(text + position, text + size, length)];
}

uint8_t Splitter::class_before(const unsigned char *text, size_t position) const {
    size_t start = position - 1;
    while (start > 0 && position - start < 4 && (text[start] & 0xC0) == 0x80) --start;
    return class_at(text, position, start);
}

size_t Splitter::cut(const unsigned char *text, size_t size, size_t from) const {
    if (from == 0) return 0;
    while (from < size && (text[from] & 0xC0) == 0x80) ++from;
    if (from >= size) return size;
    uint8_t before = class_before(text, from);
    while (from < size) {
        const uint8_t here = class_at(text, size, from);
        if (is_safe(before, here)) return from;
        before = here;
        unsigned length;
        code_point_at(text + from, text + size, length);
        from += length;
    }
    return size;
}

// Writes the class of every code point and returns how many there are. Where not all are ASCII, scratch.offsets gets
// the place of each.
size_t Splitter::classify(const unsigned char *text, size_t size, uint8_t *classes, Scratch &scratch, bool &is_ascii) const {
    auto ascii_run = [&](const unsigned char *from, size_t most, uint8_t *to) -> size_t {
        size_t done = 0;
#if GGUFBPE_X86
        if (has_avx2()) done = classify_ascii(from, most, ascii_, to);
#endif
        while (done < most && from[done] < 0x80) {
            to[done] = ascii_[from[done]];
            ++done;
        }
        return done;
    };
    size_t done = ascii_run(text, size, classes);
    is_ascii = done == size;
    if (is_ascii) return size;
    const uint8_t *wide_classes = wide();
    uint32_t *offsets = scratch.offsets.room(size + MARGIN);
    for (size_t i = 0; i < done; ++i) offsets[i] = static_cast<uint32_t>(i);
    size_t count = done;
    for (size_t i = done; i < size;) {
        unsigned char lead = text[i];
        offsets[count] = static_cast<uint32_t>(i);
        if (lead < 0x80) {
            classes[count++] = ascii_[lead];
            ++i;
            continue;
        }
        unsigned length;
        classes[count++] = wide_classes[code_point_at(text + i, text + size, length)];
        i += length;
    }
    offsets[count] = static_cast<uint32_t>(size);
    return count;
}

size_t Splitter::block(const unsigned char *text, size_t size, size_t start, Scratch &scratch) const {
    size_t end = size;
    if (size - start > BLOCK + BLOCK / 4) end = cut(text, size, start + BLOCK);
    const size_t bytes = end - start;
    if (bytes > 0xFFFFFF00u) throw std::length_error("more than 4 GiB of text without a place to cut it");

    uint8_t *classes = fitted(scratch.classes, bytes);
    bool is_ascii;
    const size_t count = classify(text + start, bytes, classes, scratch, is_ascii);
    const uint8_t end_class = static_cast<uint8_t>(classes_);
    classes[-3] = classes[-2] = classes[-1] = end_class;
    uint32_t at_end = 0;  // the stages that have a boundary where the block ends
    if (end < size) {
        classes[count] = class_at(text, size, end);
        at_end = safe_[class_before(text, end) * (classes_ + 1) + classes[count]];
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
            stage.run_automaton(columns, prior, count, boundary, scratch);
        } else {
            stage.run_step(classes, columns, prior, count, end_class, boundary, scratch);
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
