// The splitter against a backtracking matcher: random patterns and the registry's, random texts, every cut.

#include <stdexcept>

#include "entries.h"

using namespace ggufbpe;
using model::Entry;

namespace {

CharSet random_set(Choices &choices) {
    CharSet set;
    const size_t terms = 1 + choices.one_in(6);
    for (size_t i = 0; i < terms; ++i) {
        CharSet::Term term;
        term.negated = choices.one_in(4);
        if (choices.one_in(3)) term.classes = 1u << choices.below(7);
        for (size_t ranges = choices.below(4); ranges > 0; --ranges) {
            const uint32_t low = choices.of(characters());
            const uint32_t high = choices.one_in(3) ? low + static_cast<uint32_t>(choices.below(300)) : low;
            term.ranges.emplace_back(low, choices.one_in(50) ? 0xFFFFFFFFu : high);
        }
        set.terms.push_back(term);
    }
    return set;
}

// A pattern that takes at least one character if `takes`; what is repeated always does.
Program random_program(Choices &choices, size_t sets, int depth, bool takes) {
    const int32_t set = static_cast<int32_t>(choices.below(sets));
    Program program;
    auto append = [&](const Program &part) { program.insert(program.end(), part.begin(), part.end()); };
    switch (depth <= 0 ? 0 : choices.below(7)) {
        case 1:
        case 2: {
            const size_t count = 1 + choices.below(4), taking = choices.below(count);
            program = {SEQUENCE, static_cast<int32_t>(count)};
            for (size_t i = 0; i < count; ++i) append(random_program(choices, sets, depth - 1, takes && i == taking));
            return program;
        }
        case 3:
        case 4: {
            const size_t count = 1 + choices.below(4);
            program = {CHOICE, static_cast<int32_t>(count)};
            for (size_t i = 0; i < count; ++i) append(random_program(choices, sets, depth - 1, takes));
            return program;
        }
        case 5: {
            const int32_t least = static_cast<int32_t>(takes ? 1 + choices.below(2) : choices.below(3));
            const int32_t most = choices.one_in(2) ? -1 : std::max<int32_t>(1, least + static_cast<int32_t>(choices.below(4)));
            program = {REPEAT, least, most};
            append(random_program(choices, sets, depth - 1, true));
            return program;
        }
        case 6:
            if (!takes) return {AHEAD, static_cast<int32_t>(choices.below(2)), set};
            return {SEQUENCE, 2, CHARS, set, AHEAD, static_cast<int32_t>(choices.below(2)), set};
        default:
            return {CHARS, set};
    }
}

Entry random_entry(Choices &choices) {
    Entry entry;
    entry.name = "random";
    entry.escape_spaces = choices.one_in(4);
    const size_t sets = 1 + choices.below(6);
    for (size_t i = 0; i < sets; ++i) entry.sets.push_back(random_set(choices));
    auto set = [&] { return static_cast<int32_t>(choices.below(sets)); };
    for (size_t stages = 1 + choices.below(3); stages > 0; --stages) {
        Splitter::Rule rule;
        switch (choices.below(10)) {
            case 6:
                rule = {{}, "digit_groups", {set()}, {}};
                break;
            case 7:
                rule = {{}, "thousands", {set()}, {}};
                break;
            case 8:
                rule = {{}, "trailing_white_space", {set()}, {}};
                break;
            case 9: {
                // Its second set has all of the first.
                const int32_t blank = set();
                rule = {{}, "blocks_of_white_space", {blank, blank}, {}};
                break;
            }
            default:
                rule.rule = random_program(choices, sets, 3, true);
        }
        entry.rules.push_back(rule);
    }
    return entry;
}

std::string random_text(Choices &choices, size_t most) {
    // A few characters, so that runs and repeats come about.
    std::vector<uint32_t> used;
    for (size_t i = 1 + choices.below(8); i > 0; --i) used.push_back(choices.of(characters()));
    std::string text;
    for (size_t count = choices.below(most); count > 0; --count) {
        const uint32_t c = choices.one_in(8) ? choices.of(characters()) : choices.of(used);
        for (size_t run = choices.one_in(20) ? choices.below(70) : 1; run > 0; --run) append_utf8(text, c);
        if (choices.empty()) break;
    }
    return text;
}

// Where the words of a block of so many bytes end, which was split before.
std::vector<size_t> ends_of_block(const Splitter &splitter, Splitter::Scratch &scratch, size_t size) {
    std::vector<size_t> ends;
    size_t done = 0;
    while (splitter.words(scratch)) {
        CHECK(scratch.word_count > 0 && scratch.starts[0] == done);
        for (size_t i = 0; i < scratch.word_count; ++i) {
            CHECK(scratch.starts[i] < scratch.starts[i + 1]);
            ends.push_back(scratch.starts[i + 1]);
        }
        done = scratch.starts[scratch.word_count];
    }
    CHECK(done == size);
    return ends;
}

std::vector<size_t> word_ends(const Splitter &splitter, const unsigned char *text, size_t size) {
    std::vector<size_t> ends;
    Splitter::Scratch scratch;
    for (size_t start = 0; start < size;) {
        const size_t block_end = splitter.block(text, size, start, scratch);
        CHECK(block_end > start && block_end <= size);
        for (const size_t end : ends_of_block(splitter, scratch, block_end - start)) ends.push_back(start + end);
        start = block_end;
    }
    return ends;
}

// The model's answer, in bytes.
std::vector<size_t> expected_ends(const model::Split &split, bool escape_spaces, const std::string &text) {
    std::vector<uint32_t> seen;
    std::vector<size_t> bytes;
    for (const model::Character &c : model::decoded(text)) {
        seen.push_back(escape_spaces && c.code_point == ' ' && c.size == 1 ? 0x2581 : c.code_point);
        bytes.push_back(c.start + c.size);
    }
    std::vector<size_t> ends = split.ends(seen);
    for (size_t &end : ends) end = bytes[end - 1];
    return ends;
}

[[noreturn]] void fail(const Entry &entry, const std::string &text, size_t cut, const std::vector<size_t> &expected,
                       const std::vector<size_t> &found) {
    std::fprintf(stderr, "%s splits otherwise, cut at %zu:", entry.name.c_str(), cut);
    for (char c : text) std::fprintf(stderr, " %02x", static_cast<unsigned char>(c));
    auto print = [](const char *name, const auto &numbers) {
        std::fprintf(stderr, "\n%s", name);
        for (auto number : numbers) std::fprintf(stderr, " %lld", static_cast<long long>(number));
    };
    print("expected", expected);
    print("found", found);
    for (const auto &rule : entry.rules) {
        print("rule", rule.rule);
        print(rule.step.c_str(), rule.sets);
    }
    for (const auto &set : entry.sets) {
        std::fprintf(stderr, "\nset");
        for (const auto &term : set.terms) {
            std::fprintf(stderr, " [%s %x:", term.negated ? "not" : "", term.classes);
            for (auto [low, high] : term.ranges) std::fprintf(stderr, " %x-%x", low, high);
            std::fprintf(stderr, "]");
        }
    }
    std::fprintf(stderr, "\n");
    std::abort();
}

// Pieces that are split together have the words that each of them has alone.
void compare_pieces(const Entry &entry, const Splitter &splitter, const std::string &text, Choices &choices) {
    std::vector<uint32_t> edges;
    std::vector<size_t> expected;
    size_t start = 0;
    for (const model::Character &c : model::decoded(text)) {
        const size_t end = c.start + c.size;
        if (end < text.size() && !choices.one_in(6)) continue;
        const Exact piece(text.substr(start, end - start), choices.below(32));
        for (const size_t word_end : word_ends(splitter, piece.data(), piece.size())) expected.push_back(start + word_end);
        for (const size_t edge : {start, end}) edges.push_back(static_cast<uint32_t>(edge));
        start = end;
    }
    const Exact exact(text, choices.below(32));
    Splitter::Scratch scratch;
    splitter.block_of_pieces(exact.data(), exact.size(), edges, scratch);
    const std::vector<size_t> found = ends_of_block(splitter, scratch, exact.size());
    if (found != expected) fail(entry, text, 0, expected, found);
}

void compare(const Entry &entry, const Splitter &splitter, const model::Split &split, const std::string &text, Choices &choices) {
    std::vector<size_t> expected;
    try {
        expected = expected_ends(split, entry.escape_spaces, text);
    } catch (const model::Matcher::GivesUp &) {
        return;
    }
    const Exact exact(text, choices.below(32));
    const std::vector<size_t> found = word_ends(splitter, exact.data(), exact.size());
    if (found != expected) fail(entry, text, 0, expected, found);
    if (choices.one_in(2)) compare_pieces(entry, splitter, text, choices);
    // A text that is cut where it may be has the same words.
    const size_t place = choices.below(text.size() + 1);
    const size_t cut = splitter.cut(exact.data(), exact.size(), place);
    CHECK(cut >= place && cut <= text.size());
    if (cut == 0 || cut == text.size()) return;
    const Exact left(text.substr(0, cut)), right(text.substr(cut), choices.below(32));
    std::vector<size_t> both = word_ends(splitter, left.data(), left.size());
    for (size_t end : word_ends(splitter, right.data(), right.size())) both.push_back(cut + end);
    if (both != expected) fail(entry, text, cut, expected, both);
}

// The class of a code point is in the sets that have the code point.
void check_alphabet(const std::vector<CharSet> &sets, Choices &choices) {
    const Alphabet alphabet(sets);
    const auto &runs = alphabet.runs();
    CHECK(!runs.empty() && runs[0].first == 0);
    for (int i = 0; i < 40; ++i) {
        const uint32_t near = choices.of(characters()) + static_cast<uint32_t>(choices.below(5)) - 2;
        const uint32_t c = choices.one_in(3) ? static_cast<uint32_t>(choices.below(0x110000)) : near;
        if (c > 0x10FFFF) continue;
        auto behind = std::upper_bound(runs.begin(), runs.end(), std::make_pair(c, uint8_t(255)));
        const size_t found = std::prev(behind)->second;
        CHECK(found < alphabet.size());
        for (size_t set = 0; set < sets.size(); ++set) {
            CHECK(alphabet.in_set(found, set) == sets[set].contains(c, class_letter(c)));
        }
    }
}

// Blocks end somewhere behind Splitter::BLOCK bytes, if a quarter more is there; something of interest is put around it.
void across_blocks(const model::Made &made, Choices &choices) {
    const std::string middle = random_text(choices, 60);
    const std::string fill = choices.one_in(3) ? random_text(choices, 40) + "a " : "the words of a text, 123 of them.\n";
    std::string text;
    const size_t before = Splitter::BLOCK - choices.below(2 * middle.size() + 20);
    while (text.size() < before) text += fill;
    text += middle;
    const size_t size = Splitter::BLOCK + Splitter::BLOCK / 4 + choices.below(40);
    while (text.size() < size) text += fill;
    compare(*made.entry, *made.splitter, made.split, text, choices);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Choices choices(data, size);
    const auto &made = model::made_entries();
    const size_t kind = choices.below(256);
    if (kind < 100) {
        const Entry entry = random_entry(choices);
        try {
            if (choices.one_in(4)) check_alphabet(entry.sets, choices);
            const auto splitter = entry.splitter();
            const model::Split split(entry);
            for (int i = 0; i < 6 && !choices.empty(); ++i) compare(entry, *splitter, split, random_text(choices, 200), choices);
        } catch (const std::invalid_argument &) {  // too many states, or a pattern for the empty text
        }
        return 0;
    }
    if (kind < 105) {  // programs of any numbers, which are refused or not, but read to their end at most
        Entry entry = random_entry(choices);
        Splitter::Rule &rule = entry.rules[choices.below(entry.rules.size())];
        for (int32_t &number : rule.rule) {
            if (choices.one_in(8)) number = choices.one_in(4) ? INT32_MAX : static_cast<int32_t>(choices.below(9)) - 2;
        }
        if (choices.one_in(6)) rule.rule.resize(choices.below(rule.rule.size() + 1));
        if (choices.one_in(6)) rule.sets.assign(choices.below(4), static_cast<int32_t>(choices.below(9)) - 2);
        if (choices.one_in(20)) entry.rules.clear();
        try {
            const std::string text = random_text(choices, 100);
            const Exact exact(text);
            word_ends(*entry.splitter(), exact.data(), exact.size());
        } catch (const std::invalid_argument &) {
        }
        return 0;
    }
    const model::Made &one = choices.of(made);
    if (kind == 255) {
        across_blocks(one, choices);
        return 0;
    }
    for (int i = 0; i < 4 && !choices.empty(); ++i) {
        std::string text = random_text(choices, 400);
        if (kind < 115) {  // any bytes
            for (char &c : text) {
                if (choices.one_in(10)) c = static_cast<char>(choices.byte());
            }
            const Exact exact(text, choices.below(32));
            word_ends(*one.splitter, exact.data(), exact.size());
            continue;
        }
        compare(*one.entry, *one.splitter, one.split, text, choices);
    }
    return 0;
}
