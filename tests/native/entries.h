// Splittings to test with: those of the registry, and a few plain ones.
//
//     scripts/check_kernel.py: tables of every family -> a file -> registry_entries()

#pragma once

#include <fstream>

#include "model.h"

namespace model {

inline CharSet set_of(std::vector<std::pair<uint32_t, uint32_t>> ranges, uint32_t classes = 0, bool negated = false) {
    CharSet::Term term;
    term.negated = negated;
    term.ranges = std::move(ranges);
    term.classes = classes;
    CharSet set;
    set.terms.push_back(term);
    return set;
}

inline Program one_or_more(int32_t set) { return {ggufbpe::REPEAT, 1, -1, ggufbpe::CHARS, set}; }

// Everything is one word; lines; runs of letters and of white space; single characters.
inline const std::vector<Entry> &plain_entries() {
    using namespace ggufbpe;
    static const std::vector<Entry> all = [] {
        std::vector<Entry> entries;
        for (bool escape : {false, true}) {
            const CharSet any = set_of({}, 0, true), line_break = set_of({{'\n', '\n'}}), other = set_of({{'\n', '\n'}}, 0, true);
            const CharSet letters = set_of({}, 1), spaces = set_of({{'\t', '\r'}, {' ', ' '}, {0x2581, 0x2581}});
            CharSet rest = set_of({{'\t', '\r'}, {' ', ' '}, {0x2581, 0x2581}}, 1, true);
            entries.push_back({"whole", escape, {any}, {{one_or_more(0), "", {}, {}}}});
            entries.push_back({"single", escape, {any}, {{{CHARS, 0}, "", {}, {}}}});
            Program lines = {CHOICE, 2};
            for (int32_t number : one_or_more(1)) lines.push_back(number);
            for (int32_t number : one_or_more(0)) lines.push_back(number);
            entries.push_back({"lines", escape, {line_break, other}, {{lines, "", {}, {}}}});
            Program words = {CHOICE, 3, SEQUENCE, 2, REPEAT, 0, 1, CHARS, 1};
            for (int32_t set : {0, 1, 2}) {
                for (int32_t number : one_or_more(set)) words.push_back(number);
            }
            entries.push_back({"words", escape, {letters, spaces, rest}, {{words, "", {}, {}}}});
        }
        return entries;
    }();
    return all;
}

// The registry's, from the file that the environment names; none without it.
inline const std::vector<Entry> &registry_entries() {
    static const std::vector<Entry> all = [] {
        std::vector<Entry> entries;
        const char *path = std::getenv("GGUFBPE_TABLES");
        if (!path) return entries;
        std::ifstream file(path);
        CHECK(file.good());
        auto number = [&] {
            int64_t value = 0;
            file >> value;
            CHECK(file.good());
            return value;
        };
        auto numbers = [&] {
            std::vector<int32_t> values(static_cast<size_t>(number()));
            for (int32_t &value : values) value = static_cast<int32_t>(number());
            return values;
        };
        for (Entry entry; file >> entry.name; entries.push_back(std::move(entry)), entry = Entry()) {
            entry.escape_spaces = number() != 0;
            for (int64_t sets = number(); sets > 0; --sets) {
                CharSet set;
                for (int64_t terms = number(); terms > 0; --terms) {
                    CharSet::Term term;
                    term.negated = number() != 0;
                    term.classes = static_cast<uint32_t>(number());
                    for (int64_t ranges = number(); ranges > 0; --ranges) {
                        const auto low = static_cast<uint32_t>(number());
                        term.ranges.emplace_back(low, static_cast<uint32_t>(number()));
                    }
                    set.terms.push_back(term);
                }
                entry.sets.push_back(set);
            }
            for (int64_t rules = number(); rules > 0; --rules) {
                Splitter::Rule rule;
                rule.rule = numbers();
                file >> rule.step;
                if (rule.step == "-") rule.step.clear();
                rule.sets = numbers();
                rule.extra = numbers();
                entry.rules.push_back(rule);
            }
        }
        CHECK(!entries.empty());
        return entries;
    }();
    return all;
}

// An entry with what is made of it, once.
struct Made {
    const Entry *entry;
    std::shared_ptr<const Splitter> splitter;
    Split split;
};

inline const std::vector<Made> &made_entries() {
    static const std::vector<Made> all = [] {
        std::vector<Made> made;
        for (const auto *entries : {&plain_entries(), &registry_entries()}) {
            for (const Entry &entry : *entries) made.push_back({&entry, entry.splitter(), Split(entry)});
        }
        return made;
    }();
    return all;
}

inline const Made &made_entry(const std::string &name, bool escape_spaces) {
    for (const Made &made : made_entries()) {
        if (made.entry->name == name && made.entry->escape_spaces == escape_spaces) return made;
    }
    std::fprintf(stderr, "no entry %s\n", name.c_str());
    std::abort();
}

}  // namespace model
