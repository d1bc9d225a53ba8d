// Every step of special.h, own_steps.h and utf8.h asks often enough whether it shall go on, in whatever takes it long.

#include "harness.h"
#include "own_steps.h"
#include "special.h"
#include "utf8.h"

using namespace ggufbpe;

namespace {

constexpr size_t SIZE = 6 * Pace::STEPS;             // bytes of a text
constexpr uint64_t MOST_BLOCKS = 32 * Pace::STEPS;  // between two questions: some 50 ms

template <typename Work>
void check(const char *name, size_t least, Work work) {
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
    CHECK(polls >= least && longest <= MOST_BLOCKS);
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
    check(one.name, SIZE / Pace::STEPS / 2, [&](const Poll &poll) { partition.split(text.data(), text.size(), fragments, poll); });
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
    check("lower case", 3, [&](const Poll &poll) { words.write_lower(text.data(), text.size(), lower, poll); });
    check("UTF-8", 5, [&](const Poll &poll) { CHECK(is_utf8(text.data(), text.size(), poll)); });
}

}  // namespace

int main() {
    const std::vector<Case> cases = {
        {"no special token", {"<s>"}, false, repeated("text ")},
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
    return 0;
}
