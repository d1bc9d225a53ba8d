// Whatever a text or a vocabulary can make long asks often enough whether it shall go on.

#include <memory>

#include "charsmaps.h"
#include "entries.h"
#include "preprocessing.h"
#include "plamo/plamo_model.h"
#include "rwkv/rwkv_model.h"
#include "special.h"
#include "spm/spm_model.h"
#include "ugm/charsmap.h"
#include "ugm/ugm_model.h"
#include "utf8.h"
#include "wpm/wpm_model.h"

using namespace ggufbpe;

namespace {

constexpr size_t SIZE = 6 * Pace::STEPS;             // bytes of a text
constexpr uint64_t MOST_BLOCKS = 32 * Pace::STEPS;  // between two questions: some 50 ms

template <typename Work>
void check(const char *name, size_t least, Work work, uint64_t most = MOST_BLOCKS) {
    size_t polls = 0;
    uint64_t last = work_done(), longest = 0;
    const Poll poll = [&] {
        ++polls;
        longest = std::max(longest, work_done() - last);
        last = work_done();
    };
    work(poll);
    longest = std::max(longest, work_done() - last);
    std::printf("%s: asked %zu times, at most %llu blocks between\n", name, polls, static_cast<unsigned long long>(longest));
    CHECK(polls >= least && longest <= most);
}

std::string repeated(const std::string &part, size_t size = SIZE) {
    std::string text;
    while (text.size() < size) text += part;
    return text;
}

struct Case {
    const char *name;
    std::vector<std::string> tokens;
    bool strip;
    std::string text;
};

std::vector<std::string> runs(const std::string &first, const std::string &last, size_t count) {
    std::vector<std::string> texts;
    for (size_t i = 1; i <= count; ++i) texts.push_back(repeated(first, i * first.size()) + last);
    return texts;
}

void check_partition(const Case &one) {
    auto strings = std::make_shared<Strings>();
    std::vector<SpecialToken> special;
    for (const std::string &token : one.tokens) {
        special.push_back({static_cast<int32_t>(strings->size()), false, one.strip, one.strip});
        strings->add(token);
    }
    const Partition partition(strings, special, true, [] {});
    const Exact text(one.text);
    std::vector<Fragment> fragments;
    check(one.name, SIZE / Pace::STEPS / 2, [&](const Poll &poll) { partition.split(text.data(), text.size(), fragments, [] {}, poll); });
    std::vector<Partition::Match> matches;
    check("all places", SIZE / Pace::STEPS / 2, [&](const Poll &poll) {
        Pace pace(poll);
        partition.find(text.data(), text.size(), 0, text.size(), Partition::Places::all, matches, pace);
    });
}

void check_opening() {
    auto strings = std::make_shared<Strings>();
    std::vector<SpecialToken> special;
    for (int32_t i = 0; i < 300000; ++i) {
        special.push_back({i, false, false, false});
        strings->add(repeated("<unused", 7 + static_cast<size_t>(i) % 5) + std::to_string(i));
    }
    check("opening", 8, [&](const Poll &poll) { Partition(strings, special, true, poll); });
}

void check_own_steps() {
    auto strings = std::make_shared<Strings>();
    for (const char *token : {"<dna>", "</dna>", "<oov>"}) strings->add(token);
    strings->index();
    const auto k_mers = KMers::of(strings);
    for (const std::string &part : {std::string("a"), std::string("<dna"), std::string("<dna>ACGT</dna> "), std::string("</dna")}) {
        const Exact text("<dna>" + repeated(part));
        std::vector<Fragment> fragments{{-1, 0, text.size()}};
        check(("k-mers, " + part).c_str(), 3, [&](const Poll &poll) { k_mers->cut(text.data(), fragments, poll); });
    }
    const SpacedWords words(true, false);
    const Exact text(repeated("\xC3\x84z"));
    std::string lower;
    check("white space", 5, [&](const Poll &poll) { CHECK(words.cut(text.data(), text.size(), 0, poll) == text.size()); });
    check("lower case", 3, [&](const Poll &poll) { words.write_lower(text.data(), text.size(), lower, nullptr, poll); });
    check("UTF-8", 5, [&](const Poll &poll) { CHECK(is_utf8(text.data(), text.size(), poll)); });
}

// Texts without a place to cut them, each a single block. The steps of splitting that go through all of it: looking for a
// cut, classes, copying the flags of the stage before, and the stage itself; words() goes through long words once more.
void check_splitting() {
    constexpr size_t EACH = SIZE / Pace::STEPS - 1;
    const CharSet digits = model::set_of({}, class_bit('N')), spaces = model::set_of({{' ', ' '}}),
                  letters = model::set_of({}, class_bit('L')), any = model::set_of({}, 0, true);
    struct Split {
        const char *name;
        std::vector<CharSet> sets;
        Splitter::Rule rule;
        std::string part;
        size_t least;
        uint64_t most;
    };
    const Program words = {CHOICE, 2, SEQUENCE, 2, REPEAT, 0, 1, CHARS, 1, REPEAT, 1, NO_LIMIT, CHARS, 0, CHARS, 1};
    const std::vector<Split> splits = {
        {"groups of digits", {digits}, {{}, "digit_groups", {0}, {}}, "1", 4 * EACH + 1, MOST_BLOCKS},
        {"thousands", {digits}, {{}, "thousands", {0}, {}}, "1", 4 * EACH + 1, MOST_BLOCKS},
        {"digits beyond ASCII", {digits}, {{}, "digit_groups", {0}, {}}, "\xD9\xA1", 3 * EACH, MOST_BLOCKS},
        {"blocks of white space", {spaces}, {{}, "blocks_of_white_space", {0, 0}, {}}, " ", 4 * EACH + 1, MOST_BLOCKS},
        {"white space", {spaces}, {{}, "trailing_white_space", {0}, {}}, " ", 5 * EACH, MOST_BLOCKS},
        {"joined words", {letters, spaces}, {words, "letters_joined_by_spaces", {0, 1}, {CHARS, 0}}, "ab ", 2 * EACH, 16 * Pace::STEPS},
    };
    const auto check_text = [](const char *name, const Splitter &splitter, const std::string &part, size_t least, uint64_t most) {
        const Exact text(repeated(part));
        check(name, least, [&](const Poll &poll) {
            Splitter::Scratch scratch;
            CHECK(splitter.block(text.data(), text.size(), 0, scratch, poll) == text.size());
            while (splitter.words(scratch, poll)) {}
        }, most);
    };
    for (const Split &one : splits) {
        check_text(one.name, Splitter(one.sets, {one.rule}, false), one.part, one.least, one.most);
    }

    // A pattern that is too irregular for windows: many words of three letters, else everything to the end.
    Random random(1);
    std::vector<CharSet> sets{any};
    for (uint32_t letter = 'a'; letter < 'o'; ++letter) sets.push_back(model::set_of({{letter, letter}}));
    const int32_t count = 60;
    Splitter::Rule irregular{{CHOICE, count + 1}, "", {}, {}};
    for (int32_t i = 0; i < count; ++i) {
        irregular.rule.insert(irregular.rule.end(), {SEQUENCE, 3});
        for (int k = 0; k < 3; ++k) irregular.rule.insert(irregular.rule.end(), {CHARS, 1 + static_cast<int32_t>(random.below(14))});
    }
    irregular.rule.insert(irregular.rule.end(), {REPEAT, 1, NO_LIMIT, CHARS, 0});
    const Alphabet alphabet(sets);
    std::vector<uint8_t> columns;
    const Automaton automaton = Automaton(irregular.rule, alphabet).merged(columns);
    CHECK(!Windows(automaton, std::vector<double>(automaton.classes(), 1.0), columns).usable());
    check_text("one long match without windows", Splitter(sets, {irregular}, false), "z", 5 * EACH, MOST_BLOCKS);
}

// Many short fragments, and the vocabulary of their tokens.
void check_fragments() {
    model::Vocabulary v;
    v.tokens = {"a", "<s>"};
    v.special = {{1, false, false, false}};
    const auto encoder = v.encoder(model::made_entry("words", false).splitter, BPEModel::CACHE_BYTES);
    const Exact text(repeated("<s>a"));
    for (size_t threads : {1, 2}) {
        Ids ids;
        check("fragments", 8, [&](const Poll &poll) { encoder->encode({text.data(), text.size(), true}, {false, true}, threads, ids, poll); });
        CHECK(ids.size() == SIZE / 2);
    }
}

// A long text in which no place is between two characters of UTF-8.
void check_bytes() {
    model::Vocabulary v;
    v.tokens = model::byte_alphabet();
    v.options.byte_encode = true;
    const auto encoder = v.encoder(model::made_entry("words", false).splitter, BPEModel::CACHE_BYTES);
    const Exact text(repeated(" \xFF"));
    std::vector<Part> parts;
    check("bytes that are not UTF-8", SIZE / Pace::STEPS / 2, [&](const Poll &poll) {
        encoder->model().divide({PLAIN, text.data(), text.size()}, PART_BYTES, parts, poll);
    });
    CHECK(parts.size() == 1);
}

// A file's strings, and what is made of them.
void check_vocabulary() {
    constexpr size_t COUNT = 400'000;
    std::string file;
    const auto append = [&](const std::string &text) {
        const auto size = static_cast<uint32_t>(text.size());
        file.append(reinterpret_cast<const char *>(&size), sizeof size);
        file += text;
    };
    for (size_t i = 0; i < COUNT; ++i) append("token" + std::to_string(i));
    auto tokens = std::make_shared<Strings>();
    check("scanning", 7, [&](const Poll &poll) {
        CHECK(scan(file.data(), file.size(), 0, COUNT, 4, IS_BIG_ENDIAN, tokens.get(), poll).plain);
    });
    check("indexing", 8, [&](const Poll &poll) { CHECK(tokens->index(poll) == Strings::NOT_FOUND); });
    Strings merges;
    for (size_t i = 0; i < COUNT; ++i) merges.add("token" + std::to_string(i) + " token" + std::to_string(i * 7919 % COUNT));
    const auto splitter = model::made_entry("words", false).splitter;
    check("merges", 30, [&](const Poll &poll) { BPEModel(tokens, merges, splitter, {}, Preprocessing::none, 1 << 20, poll); });
}

// Opening a model, and what it makes of its tokens when the first long text comes.
void check_models() {
    constexpr size_t COUNT = 100'000;
    constexpr uint16_t NORMAL = 4, USER_DEFINED = 16;  // ggufbpe/models/vocabulary.py
    constexpr size_t CACHE = size_t(1) << 20;
    const auto tokens = std::make_shared<Strings>(), alike = std::make_shared<Strings>();
    for (size_t i = 0; i < COUNT; ++i) tokens->add("token" + std::to_string(i));
    for (size_t i = 0; i < COUNT; ++i) alike->add("a beginning of all tokens" + std::to_string(i * 7919 % COUNT));
    tokens->index();
    alike->index();
    const std::vector<float> scores(COUNT, -1);
    const std::vector<uint16_t> normal(COUNT, NORMAL), user_defined(COUNT, USER_DEFINED);
    const UGMOptions options{true, true, -1};
    const auto check_model = [](const char *name, size_t least, const auto &make) {
        check(name, least, [&](const Poll &poll) { make(poll)->prepare_for(SIZE, poll); });
    };
    for (const auto &texts : {tokens, alike}) {
        check_model("RWKV", 4, [&](const Poll &poll) { return std::make_unique<RWKVModel>(*texts, -1, CACHE, poll); });
        check_model("WPM", 4, [&](const Poll &) { return std::make_unique<WPMModel>(texts, -1, true, true, CACHE); });
        check_model("SPM", 4, [&](const Poll &) { return std::make_unique<SpmModel>(texts, scores, true, CACHE); });
        check_model("PLaMo", 4, [&](const Poll &poll) {
            return std::make_unique<PlamoModel>(*texts, std::vector<int32_t>(COUNT, -1), std::vector<int32_t>(256, 0), false, CACHE, poll);
        });
        for (const auto &kinds : {normal, user_defined}) {
            check_model("UGM", 4, [&](const Poll &poll) {
                return std::make_unique<UGMModel>(texts, kinds, kinds, scores, "", options, CACHE, poll);
            });
        }
    }
    // All parts of a long token may be tokens.
    const auto long_one = std::make_shared<Strings>();
    for (const char *text : {"a", "aa", "aab"}) long_one->add(text);
    long_one->add(repeated("ab", 200'000));
    long_one->index();
    const SpmModel of_long(long_one, std::vector<float>(), true, CACHE);
    check("SPM, a long token", 0, [&](const Poll &poll) { of_long.prepare_for(SIZE, poll); });
}

// What a charsmap costs to open, by its size: however often its units lead to the same places, and its keys to the same replacement.
void check_charsmaps() {
    constexpr uint32_t BLOCKS = 1000;
    constexpr size_t BLOCKS_A_BYTE = 20;
    const std::string long_text = repeated("\xC3\xA9", 60'000);
    struct Map {
        const char *name;
        bool is_circular;  // each byte leads to a block of its own, from all blocks; otherwise all lead to the next block
        bool are_keys;
        std::string text;  // of the replacement of all keys
    };
    const Map maps[] = {
        {"circles", true, false, "a"},
        {"a chain of blocks", false, false, "a"},
        {"circles of keys", true, true, "a"},
        {"keys that share a replacement", false, true, long_text},
        {"circles of keys that share a replacement", true, true, long_text},
    };
    for (const Map &one : maps) {
        CharsmapUnits units(1 + BLOCKS);
        const auto place = [](uint32_t block) { return CharsmapUnits::BLOCK * (1 + block % BLOCKS); };
        units.set_root(place(0));
        for (uint32_t block = 0; block < BLOCKS; ++block) {
            units.set_value(place(block), 2 * (block % 7));
            for (uint32_t byte = 1; byte < 256; ++byte) {
                const uint32_t next = place(one.is_circular ? block + byte : block + 1);
                units.add(place(block), static_cast<unsigned char>(byte), next, one.are_keys);
            }
        }
        const std::string data = units.data(one.text + '\0');
        const uint64_t begun = work_done();
        check(one.name, 0, [&](const Poll &poll) { Charsmap(data, poll).survey(poll); });
        std::printf("  %.1f blocks a byte\n", double(work_done() - begun) / double(data.size()));
        CHECK(work_done() - begun < BLOCKS_A_BYTE * data.size());
    }
}

}  // namespace

int main() {
    const std::vector<Case> cases = {
        {"no special token", {"<s>"}, false, repeated("text ")},
        {"runs of another byte", {"  "}, false, repeated("x")},
        {"beginnings", {"<s>"}, false, repeated("<s ")},
        {"one after the other", {"<s>"}, false, repeated("<s>")},
        {"overlaps", {"aba", "bab"}, false, repeated("ab")},
        {"runs", runs("a", "", 20), false, repeated("a")},
        {"chains", runs("a", "b", 20), false, repeated("a")},
        {"white space", {"<s>"}, true, "<s>" + repeated(" ") + "<s>"},
        {"white space between", {"<s>", "  "}, true, repeated("<s>    ")},
    };
    for (const Case &one : cases) check_partition(one);
    check_opening();
    check_own_steps();
    check_splitting();
    check_fragments();
    check_bytes();
    check_vocabulary();
    check_models();
    check_charsmaps();
    return 0;
}
