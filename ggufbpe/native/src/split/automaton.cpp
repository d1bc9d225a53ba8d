#include "split/automaton.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "unicode_classes.h"

namespace ggufbpe {

namespace {

constexpr char CLASS_NAMES[] = "LMNPSW-";
constexpr uint32_t VERTICAL_TAB = 0x0B;
constexpr size_t MOST_STATES = 8192;
constexpr size_t MOST_PLACES = 20000;
constexpr size_t MOST_STEPS = 1000000;  // of the compiler, which may take many for few places

}  // namespace

uint32_t class_bit(char letter) {
    for (uint32_t i = 0; i < 7; ++i) {
        if (CLASS_NAMES[i] == letter) return 1u << i;
    }
    return 0;
}

char class_letter(uint32_t code_point) {
    const uint32_t *found = std::upper_bound(CLASS_STARTS, CLASS_STARTS + CLASS_RUNS, code_point);
    return CLASS_LETTERS[found - CLASS_STARTS - 1];
}

bool CharSet::Term::contains(uint32_t code_point, uint32_t class_bit) const {
    if (class_bit & classes) return !negated;
    bool found = false;
    for (const auto &[low, high] : ranges) found = found || (low <= code_point && code_point <= high);
    return found != negated;
}

bool CharSet::contains(uint32_t code_point, char class_letter) const {
    // llama.cpp writes white space beyond ASCII as a vertical tab before it matches (src/unicode.cpp:
    // unicode_regex_split).
    if (class_letter == 'W' && code_point > 0x7F) code_point = VERTICAL_TAB;
    uint32_t bit = class_bit(class_letter);
    return std::all_of(terms.begin(), terms.end(), [&](const Term &term) { return term.contains(code_point, bit); });
}

Alphabet::Alphabet(const std::vector<CharSet> &sets) {
    std::vector<uint32_t> edges{0, 0x80};  // between two of them, only its class decides whether a code point is in a set
    for (const CharSet &set : sets) {
        for (const CharSet::Term &term : set.terms) {
            for (const auto &[low, high] : term.ranges) {
                if (low < 0x110000) edges.push_back(low);
                if (high + 1 < 0x110000) edges.push_back(high + 1);
            }
        }
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    std::vector<uint32_t> cuts;
    cuts.reserve(CLASS_RUNS + edges.size());
    std::set_union(CLASS_STARTS, CLASS_STARTS + CLASS_RUNS, edges.begin(), edges.end(), std::back_inserter(cuts));
    std::map<std::vector<bool>, uint8_t> numbers;
    constexpr int UNKNOWN = -1;
    int numbers_here[128] = {};  // by the letter of the class, since the last edge
    auto edge = edges.begin();
    size_t run = 0;
    std::vector<bool> membership(sets.size());
    for (uint32_t cut : cuts) {
        while (run + 1 < CLASS_RUNS && CLASS_STARTS[run + 1] <= cut) ++run;
        if (edge != edges.end() && *edge == cut) {
            ++edge;
            std::fill(std::begin(numbers_here), std::end(numbers_here), UNKNOWN);
        }
        int &here = numbers_here[static_cast<size_t>(CLASS_LETTERS[run])];
        if (here == UNKNOWN) {
            for (size_t i = 0; i < sets.size(); ++i) membership[i] = sets[i].contains(cut, CLASS_LETTERS[run]);
            const auto [found, is_new] = numbers.try_emplace(membership, static_cast<uint8_t>(members_.size()));
            if (is_new) {
                members_.push_back(membership);
                if (members_.size() > 250) throw std::invalid_argument("too many classes of code points");
            }
            here = found->second;
        }
        if (runs_.empty() || runs_.back().second != here) runs_.emplace_back(cut, static_cast<uint8_t>(here));
    }
}

namespace {

// A program compiled to places, in Thompson's way: each reads a code point, checks the next one, continues at two others in
// order, or is the match.
struct Place {
    static constexpr size_t NOT_YET = SIZE_MAX;
    enum Kind { READ, CHECK, FORK, JUMP, MATCH } kind;
    size_t set = 0;
    bool negated = false;
    size_t first = NOT_YET, second = NOT_YET;  // places
};

class Compiler {
public:
    Compiler(const Program &program, size_t sets) : program_(program), sets_(sets) {
        compile(0);
        if (position_ != program_.size()) throw std::invalid_argument("a program with something behind it");
        add({Place::MATCH});
    }
    std::vector<Place> places;

private:
    // Emits the part at position_; control continues after the emitted places.
    void compile(int depth) {
        if (depth > 100) throw std::invalid_argument("a program that is nested too deep");
        if (++steps_ > MOST_STEPS) throw std::invalid_argument("a program that repeats too much");
        switch (take()) {
            case CHARS: {
                const size_t set = take_set();
                add({Place::READ, set, false, size() + 1});
                return;
            }
            case SEQUENCE: {
                int count = take();
                for (int i = 0; i < count; ++i) compile(depth + 1);
                return;
            }
            case CHOICE: {
                int count = take();
                std::vector<size_t> jumps;
                for (int i = 0; i < count; ++i) {
                    if (i + 1 == count) {
                        compile(depth + 1);
                        break;
                    }
                    const size_t fork = add({Place::FORK, 0, false, size() + 1});
                    compile(depth + 1);
                    jumps.push_back(add({Place::JUMP}));
                    places[fork].second = size();
                }
                for (size_t jump : jumps) places[jump].first = size();
                return;
            }
            case REPEAT: {
                int least = take(), most = take();
                size_t operand = position_;
                auto compile_operand = [&] {
                    position_ = operand;
                    compile(depth + 1);
                };
                const bool has_limit = most >= 0;  // like NO_LIMIT, other negative numbers mean none
                if (least < 0 || (has_limit && most < least)) throw std::invalid_argument("a repeat of no sense");
                for (int i = 0; i < least - (!has_limit && least > 0); ++i) compile_operand();
                if (!has_limit) {
                    if (least > 0) {
                        const size_t start = size();
                        compile_operand();
                        add({Place::FORK, 0, false, start, size() + 1});
                    } else {
                        const size_t fork = add({Place::FORK, 0, false, size() + 1});
                        compile_operand();
                        add({Place::JUMP, 0, false, fork});
                        places[fork].second = size();
                    }
                } else {
                    std::vector<size_t> forks;
                    for (int i = least; i < most; ++i) {
                        forks.push_back(add({Place::FORK, 0, false, size() + 1}));
                        compile_operand();
                    }
                    for (size_t fork : forks) places[fork].second = size();
                    if (most == 0) skip(depth);
                }
                return;
            }
            case AHEAD: {
                bool negated = take() != 0;
                const size_t set = take_set();
                add({Place::CHECK, set, negated, size() + 1});
                return;
            }
            default:
                throw std::invalid_argument("an unknown code in a program");
        }
    }

    void skip(int depth) {
        size_t before = places.size();
        compile(depth + 1);
        places.resize(before);
    }

    int32_t take() {
        if (position_ >= program_.size()) throw std::invalid_argument("a program that ends too early");
        return program_[position_++];
    }
    size_t take_set() {
        int32_t set = take();
        if (set < 0 || static_cast<size_t>(set) >= sets_) throw std::invalid_argument("a set that is not there");
        return static_cast<size_t>(set);
    }
    size_t size() const { return places.size(); }
    size_t add(Place place) {
        if (places.size() >= MOST_PLACES) throw std::invalid_argument("a pattern of too many places");
        places.push_back(place);
        return size() - 1;
    }

    const Program &program_;
    const size_t sets_;
    size_t position_ = 0, steps_ = 0;
};

}  // namespace

Automaton::Automaton(const Program &program, const Alphabet &alphabet) : classes_(alphabet.size()) {
    Compiler compiler(program, alphabet.sets());
    const std::vector<Place> &places = compiler.places;
    const size_t end = classes_;
    using List = std::vector<size_t>;
    std::vector<uint32_t> seen(places.size(), 0);
    uint32_t round = 0;
    List stack;

    // The places that control reaches from `from` without reading, in order; forks and jumps are followed.
    auto follow = [&](size_t from, List &into) {
        stack.assign(1, from);
        while (!stack.empty()) {
            const size_t at = stack.back();
            stack.pop_back();
            if (seen[at] == round) continue;
            seen[at] = round;
            const Place &place = places[at];
            if (place.kind == Place::FORK) {
                stack.push_back(place.second);
                stack.push_back(place.first);
            } else if (place.kind == Place::JUMP) {
                stack.push_back(place.first);
            } else {
                into.push_back(at);
            }
        }
    };

    std::map<List, uint16_t> numbers;
    std::vector<List> lists{{}};  // of each state; the dead state has none
    numbers[{}] = DEAD;
    ++round;
    List start;
    follow(0, start);
    numbers[start] = START;
    lists.push_back(start);

    std::vector<uint32_t> seen_now(places.size(), 0);
    for (size_t state = 0; state < lists.size(); ++state) {
        for (size_t c = 0; c <= end; ++c) {
            List next, now(lists[state].rbegin(), lists[state].rend());  // a stack: the first one on top
            bool accepts = false;
            uint32_t this_round = ++round;
            // `seen` serves the places of the next list; checks that hold continue within this one.
            while (!now.empty() && !accepts) {
                const size_t at = now.back();
                now.pop_back();
                if (seen_now[at] == this_round) continue;
                seen_now[at] = this_round;
                const Place &place = places[at];
                if (place.kind == Place::MATCH) {
                    accepts = true;
                } else if (place.kind == Place::READ) {
                    if (c < end && alphabet.in_set(c, place.set)) follow(place.first, next);
                } else if (place.kind == Place::CHECK) {
                    bool inside = c < end && alphabet.in_set(c, place.set);
                    if (inside != place.negated) now.push_back(place.first);
                } else if (place.kind == Place::FORK) {
                    now.push_back(place.second);
                    now.push_back(place.first);
                } else {
                    now.push_back(place.first);
                }
            }
            if (state == START && accepts) throw std::invalid_argument("a pattern that matches the empty text");
            auto [found, is_new] = numbers.try_emplace(next, static_cast<uint16_t>(lists.size()));
            if (is_new) {
                lists.push_back(next);
                if (lists.size() > MOST_STATES) throw std::invalid_argument("a pattern of too many states");
            }
            next_.push_back(found->second);
            accepts_.push_back(accepts);
        }
    }
    // The start may recur as a later state of the same list; a match that has begun must not be taken for one that has not.
    // It cannot, since no pattern matches the empty text and what follows from there is the same.
    minimise();
}

void Automaton::minimise() {
    // Moore's algorithm. States begin apart by what they accept; dead and start keep their numbers.
    const size_t width = classes_ + 1, count = states();
    std::vector<uint32_t> group(count);
    size_t group_count = 0;
    for (size_t pass = 0;; ++pass) {
        std::map<std::vector<uint32_t>, uint32_t> numbers;
        std::vector<uint32_t> refined(count);
        for (size_t state = 0; state < count; ++state) {
            std::vector<uint32_t> signature;
            signature.push_back(state == START ? 1u << 31 : group[state]);
            for (size_t c = 0; c < width; ++c) {
                signature.push_back(group[next_[state * width + c]] << 1 | accepts_[state * width + c]);
            }
            refined[state] = numbers.try_emplace(signature, static_cast<uint32_t>(numbers.size())).first->second;
        }
        bool same = numbers.size() == group_count && pass > 0;
        group_count = numbers.size();
        group = refined;
        if (same || group_count == count) break;
        if (pass > 64) return;  // a chain of many states (jais-2 counts to 512) has next to nothing to merge
    }
    if (group_count == count) return;
    std::vector<uint16_t> next(group_count * width);
    std::vector<uint8_t> accepts(group_count * width);
    // Numbers of groups follow the order of states, so dead stays 0 and start, which is alone in its group, stays 1.
    for (size_t state = count; state-- > 0;) {
        for (size_t c = 0; c < width; ++c) {
            next[group[state] * width + c] = static_cast<uint16_t>(group[next_[state * width + c]]);
            accepts[group[state] * width + c] = accepts_[state * width + c];
        }
    }
    next_ = std::move(next);
    accepts_ = std::move(accepts);
}

Automaton Automaton::merged(std::vector<uint8_t> &column_of) const {
    const size_t width = classes_ + 1, count = states();
    std::map<std::vector<uint32_t>, uint8_t> numbers;
    std::vector<size_t> representative;
    column_of.assign(width, 0);
    for (size_t c = 0; c < classes_; ++c) {
        std::vector<uint32_t> column;
        for (size_t state = 0; state < count; ++state) column.push_back(next(state, c) * 2u + accepts(state, c));
        auto [found, is_new] = numbers.try_emplace(column, static_cast<uint8_t>(numbers.size()));
        if (is_new) representative.push_back(c);
        column_of[c] = found->second;
    }
    column_of[classes_] = static_cast<uint8_t>(representative.size());
    return chosen(std::move(representative));
}

Automaton Automaton::chosen(std::vector<size_t> classes) const {
    Automaton result;
    result.classes_ = classes.size();
    classes.push_back(classes_);  // the end
    for (size_t state = 0; state < states(); ++state) {
        for (size_t c : classes) {
            result.next_.push_back(next(state, c));
            result.accepts_.push_back(accepts(state, c));
        }
    }
    return result;
}

}  // namespace ggufbpe
