// The slow models that the kernel is held against: what splitter.py, special_tokens.py and merge.py do, in the plainest way.
//
//     text -> partition() -> split() -> merged() -> ids
//
// But: nothing is fast here, and nothing is shared with the kernel but the data: sets of code points and programs.

#pragma once

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bpe/bpe_model.h"
#include "split/automaton.h"
#include "encoder.h"
#include "harness.h"
#include "split/splitter.h"
#include "table_file.h"
#include "unicode_classes.h"

namespace model {

using ggufbpe::CharSet;
using ggufbpe::Program;
using ggufbpe::Splitter;

// A character of a text, and the bytes that it was.
struct Character {
    uint32_t code_point;
    size_t start, size;
};

// Reads UTF-8 as llama.cpp does (src/unicode.cpp: unicode_cpts_from_utf8): what cannot be decoded is U+FFFD, a byte each. So
// are overlong forms if it is strict.
inline std::vector<Character> decoded(const std::string &text, bool is_strict = false) {
    std::vector<Character> result;
    for (size_t i = 0; i < text.size();) {
        auto byte = [&](size_t k) -> uint32_t { return static_cast<unsigned char>(text[i + k]); };
        auto inside = [&](size_t k) { return i + k < text.size() && (byte(k) & 0xC0) == 0x80; };
        uint32_t found = 0xFFFD;
        size_t size = 1;
        if (byte(0) < 0x80) {
            found = byte(0);
        } else if (byte(0) >> 5 == 6 && inside(1)) {
            found = (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
            size = 2;
        } else if (byte(0) >> 4 == 14 && inside(1) && inside(2)) {
            found = (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
            size = 3;
        } else if (byte(0) >> 3 == 30 && inside(1) && inside(2) && inside(3)) {
            found = (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
            size = 4;
            if (found > 0x10FFFF) found = 0xFFFD, size = 1;
        }
        if (is_strict && size > 1 && utf8(found).size() < size) found = 0xFFFD, size = 1;
        result.push_back({found, i, size});
        i += size;
    }
    return result;
}

// Whether all of it is as the standard has it.
inline bool is_utf8(const std::string &text) {
    for (const Character &c : decoded(text)) {
        const std::string bytes = text.substr(c.start, c.size);
        if (utf8(c.code_point) != bytes || (c.code_point >= 0xD800 && c.code_point < 0xE000)) return false;
    }
    return true;
}

// ---- splitting -------------------------------------------------------------------------------------------------------

// A backtracking matcher over a program: alternatives in their order, as often as possible. Gives up after many steps.
class Matcher {
public:
    struct GivesUp {};

    Matcher(const std::vector<CharSet> &sets, const Program &program) : sets_(sets) {
        size_t at = 0;
        root_ = read(program, at);
    }

    // Where the match that begins at `from` ends, if there is one; nothing behind `end` is seen.
    std::optional<size_t> match(const std::vector<uint32_t> &text, size_t from, size_t end) const {
        text_ = &text;
        end_ = end;
        steps_ = 0;
        if (!run(*root_, from, nullptr)) return std::nullopt;
        return found_;
    }

private:
    struct Node {
        int code = 0, set = 0, least = 0, most = 0;
        bool negated = false;
        std::vector<std::unique_ptr<Node>> parts;
    };

    // What is to be matched behind a part: item `index` of a sequence, or one more turn of a repeat.
    struct Then {
        const Node *node;
        int index;
        const Then *next;
    };

    static std::unique_ptr<Node> read(const Program &program, size_t &at) {
        auto node = std::make_unique<Node>();
        node->code = program[at++];
        if (node->code == ggufbpe::CHARS) {
            node->set = program[at++];
        } else if (node->code == ggufbpe::SEQUENCE || node->code == ggufbpe::CHOICE) {
            const int count = program[at++];
            for (int i = 0; i < count; ++i) node->parts.push_back(read(program, at));
        } else if (node->code == ggufbpe::REPEAT) {
            node->least = program[at++];
            node->most = program[at++];
            node->parts.push_back(read(program, at));
        } else {
            node->negated = program[at++] != 0;
            node->set = program[at++];
        }
        return node;
    }

    bool is_in(int set, size_t at) const {
        const uint32_t c = (*text_)[at];
        return sets_[size_t(set)].contains(c, ggufbpe::class_letter(c));
    }

    bool run(const Node &node, size_t at, const Then *then) const {
        if (++steps_ > 200000) throw GivesUp();
        if (node.code == ggufbpe::CHARS) return at < end_ && is_in(node.set, at) && go_on(then, at + 1);
        if (node.code == ggufbpe::AHEAD) return (at < end_ && is_in(node.set, at)) != node.negated && go_on(then, at);
        if (node.code == ggufbpe::REPEAT && node.parts[0]->code == ggufbpe::CHARS) return run_of(node, at, then);
        if (node.code == ggufbpe::SEQUENCE || node.code == ggufbpe::REPEAT) {
            const Then first{&node, 0, then};
            return go_on(&first, at);
        }
        return std::any_of(node.parts.begin(), node.parts.end(), [&](const auto &part) { return run(*part, at, then); });
    }

    // Single characters, without a call for each, for runs are long.
    bool run_of(const Node &node, size_t at, const Then *then) const {
        const size_t least = at + size_t(node.least), most = node.most < 0 ? end_ : std::min(end_, at + size_t(node.most));
        size_t stop = at;
        while (stop < most && is_in(node.parts[0]->set, stop)) ++stop;
        for (; stop >= least; --stop) {
            if (go_on(then, stop)) return true;
            if (++steps_ > 200000) throw GivesUp();
            if (stop == 0) break;
        }
        return false;
    }

    bool go_on(const Then *then, size_t at) const {
        if (!then) {
            found_ = at;
            return true;
        }
        const Node &node = *then->node;
        if (node.code == ggufbpe::REPEAT && then->index > 4000) throw GivesUp();  // for want of stack
        const Then again{&node, then->index + 1, then->next};
        if (node.code == ggufbpe::SEQUENCE) {
            if (size_t(then->index) == node.parts.size()) return go_on(then->next, at);
            return run(*node.parts[size_t(then->index)], at, &again);
        }
        if (then->index < node.least) return run(*node.parts[0], at, &again);
        if ((node.most < 0 || then->index < node.most) && run(*node.parts[0], at, &again)) return true;
        return go_on(then->next, at);
    }

    const std::vector<CharSet> &sets_;
    std::unique_ptr<Node> root_;
    mutable const std::vector<uint32_t> *text_ = nullptr;
    mutable size_t end_ = 0, steps_ = 0, found_ = 0;
};

// An entry of the registry, as numbers.
struct Entry {
    std::string name;
    bool escape_spaces = false;
    std::vector<CharSet> sets;
    std::vector<Splitter::Rule> rules;

    std::shared_ptr<const Splitter> splitter() const { return std::make_shared<Splitter>(sets, rules, escape_spaces); }
};

class Split {
public:
    explicit Split(const Entry &entry) : entry_(entry) {
        for (const Splitter::Rule &rule : entry.rules) {
            matchers_.emplace_back(rule.rule.empty() ? nullptr : std::make_unique<Matcher>(entry.sets, rule.rule));
            extras_.emplace_back(rule.extra.empty() ? nullptr : std::make_unique<Matcher>(entry.sets, rule.extra));
        }
    }

    // Where each word ends, in characters.
    std::vector<size_t> ends(const std::vector<uint32_t> &text) const {
        std::vector<size_t> ends;
        if (!text.empty()) ends.push_back(text.size());
        for (size_t i = 0; i < entry_.rules.size(); ++i) {
            std::set<size_t> cuts;  // behind each part
            size_t start = 0;
            for (size_t end : ends) {
                part(i, text, start, end, cuts);
                cuts.insert(end);
                start = end;
            }
            cuts.erase(0);
            ends.assign(cuts.begin(), cuts.end());
        }
        return ends;
    }

private:
    bool is_in(size_t rule, size_t set, uint32_t c) const {
        return entry_.sets[size_t(entry_.rules[rule].sets[set])].contains(c, ggufbpe::class_letter(c));
    }

    void part(size_t rule, const std::vector<uint32_t> &text, size_t start, size_t end, std::set<size_t> &cuts) const {
        const std::string &step = entry_.rules[rule].step;
        auto in = [&](size_t set, size_t at) { return is_in(rule, set, text[at]); };
        if (step.empty()) {
            for (size_t at = start; at < end;) {
                const std::optional<size_t> found = matchers_[rule]->match(text, at, end);
                if (!found) {
                    ++at;
                    continue;
                }
                cuts.insert(at);
                cuts.insert(*found);
                at = *found;
            }
            return;
        }
        if (step == "trailing_white_space") {
            size_t at = end;
            while (at > start && in(0, at - 1)) --at;
            cuts.insert(at);
            return;
        }
        if (step == "letters_joined_by_spaces") {
            join(rule, text, start, end, cuts);
            return;
        }
        for (size_t at = start; at < end;) {  // runs of the first set
            size_t first = at;
            while (at < end && in(0, at)) ++at;
            const size_t size = at - first;
            if (size && step == "digit_groups") {
                for (size_t cut = first + (size % 3 ? size % 3 : 3); cut < at; cut += 3) cuts.insert(cut);
                cuts.insert(at);
            } else if (size && step == "thousands") {
                for (size_t cut = first + size % 3; cut < at; cut += 3) cuts.insert(cut);
            } else if (step == "blocks_of_white_space" && size >= 1025 && !(at < end && in(1, at))) {
                for (size_t cut = first; cut < at; cut += 512) cuts.insert(cut);
            }
            if (!size) ++at;
        }
    }

    void join(size_t rule, const std::vector<uint32_t> &text, size_t start, size_t end, std::set<size_t> &cuts) const {
        bool open = false;
        for (size_t at = start; at < end;) {
            const size_t stop = matchers_[rule]->match(text, at, end).value();  // such a rule matches everywhere
            auto in = [&](size_t set, size_t place) { return place < stop && is_in(rule, set, text[place]); };
            if (!(open && in(1, at) && in(0, at + 1))) {
                cuts.insert(at);
                const std::optional<size_t> contraction = extras_[rule]->match(text, at, stop);
                open = (in(0, at) || in(0, at + 1)) && contraction != stop;
            }
            at = stop;
        }
    }

    const Entry &entry_;
    std::vector<std::unique_ptr<Matcher>> matchers_, extras_;
};

// ---- special tokens --------------------------------------------------------------------------------------------------

inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Through all tokens, the longest first, as src/llama-vocab.cpp (tokenizer_st_partition) does.
inline std::vector<ggufbpe::Fragment> partition(const std::vector<std::string> &tokens,
                                                std::vector<ggufbpe::SpecialToken> special, bool parse_special,
                                                const std::string &text) {
    using ggufbpe::Fragment;
    auto size = [&](const ggufbpe::SpecialToken &token) { return tokens[size_t(token.id)].size(); };
#ifdef __GLIBCXX__
    std::sort(special.begin(), special.end(), [&](const auto &a, const auto &b) { return size(a) > size(b); });
#else  // llama.cpp's order of equal lengths is libstdc++'s, to which the kernel's is held where there is libstdc++
    std::vector<std::pair<size_t, size_t>> order;
    for (size_t i = 0; i < special.size(); ++i) order.emplace_back(size(special[i]), i);
    ggufbpe::Pace pace(ggufbpe::NO_POLL);
    ggufbpe::sort_longest_first(order, pace);
    std::vector<ggufbpe::SpecialToken> sorted;
    for (const auto &[length, index] : order) sorted.push_back(special[index]);
    special = std::move(sorted);
#endif
    std::vector<Fragment> fragments;
    if (!text.empty()) fragments.push_back({-1, 0, text.size()});
    for (const ggufbpe::SpecialToken &token : special) {
        const std::string &searched = tokens[size_t(token.id)];
        if (searched.empty() || (token.hidden && !parse_special)) continue;
        std::vector<Fragment> cut;
        for (const Fragment &fragment : fragments) {
            if (fragment.token >= 0) {
                cut.push_back(fragment);
                continue;
            }
            const std::string part = text.substr(0, fragment.end);
            size_t start = fragment.start;
            for (size_t at; start < fragment.end && (at = part.find(searched, start)) != std::string::npos;) {
                size_t left = at;
                while (token.strips_left && left > start && is_space(text[left - 1])) --left;
                if (left > start) cut.push_back({-1, start, left});
                start = at + searched.size();
                cut.push_back({token.id, at, start});
                while (token.strips_right && start < fragment.end && is_space(text[start])) ++start;
            }
            if (start < fragment.end) cut.push_back({-1, start, fragment.end});
        }
        fragments = cut;
    }
    return fragments;
}

// ---- merging ---------------------------------------------------------------------------------------------------------

// GPT-2's alphabet of bytes (src/unicode.cpp: unicode_byte_to_utf8_map).
inline const std::vector<std::string> &byte_alphabet() {
    static const std::vector<std::string> all = [] {
        std::vector<std::string> texts;
        uint32_t other = 0x100;
        for (uint32_t byte = 0; byte < 256; ++byte) {
            const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
            texts.push_back(utf8(printable ? byte : other++));
        }
        return texts;
    }();
    return all;
}

class Words {
public:
    Words(const std::vector<std::string> &tokens, const std::vector<std::string> &merges, const ggufbpe::MergeOptions &options)
        : options_(options) {
        for (size_t i = 0; i < tokens.size(); ++i) ids_.emplace(tokens[i], static_cast<int32_t>(i));
        for (size_t i = 0; i < merges.size(); ++i) {
            const size_t space = merges[i].find(' ', 1);
            if (space == std::string::npos) continue;
            ranks_.emplace(std::make_pair(merges[i].substr(0, space), merges[i].substr(space + 1)), static_cast<int>(i));
        }
    }

    // The ids of a word, whose characters are given as they are written before GPT-2's alphabet.
    void encode(const std::vector<std::string> &characters, std::vector<int32_t> &ids) const {
        std::vector<std::string> symbols;
        const std::string space = "\xE2\x96\x81";
        if (options_.prepend_space && characters[0] != space && characters[0] != "\n") symbols.push_back(space);
        for (const std::string &c : characters) {
            if (!options_.byte_encode) {
                symbols.push_back(c);
                continue;
            }
            for (char byte : c) symbols.push_back(byte_alphabet()[static_cast<unsigned char>(byte)]);
        }
        std::string whole;
        for (const std::string &symbol : symbols) whole += symbol;
        const bool newlines = whole.find_first_not_of('\n') == std::string::npos;
        if (options_.ignore_merges || (options_.newline_runs && newlines)) {
            if (ids_.count(whole)) {
                ids.push_back(ids_.at(whole));
                return;
            }
        }
        merge(symbols);
        for (const std::string &symbol : symbols) {
            if (ids_.count(symbol)) {
                ids.push_back(ids_.at(symbol));
                continue;
            }
            for (char c : symbol) {
                if (options_.byte_encode && static_cast<unsigned char>(c) >= 0x80) continue;  // such a token is not UTF-8
                char name[8];
                std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned char>(c));
                const auto found = ids_.find(options_.byte_encode ? std::string(1, c) : name);
                if (found != ids_.end()) ids.push_back(found->second);
            }
        }
    }

private:
    // The lowest rank first, the leftmost of equal ones.
    void merge(std::vector<std::string> &symbols) const {
        auto rank = [&](size_t at) {
            const auto found = ranks_.find({symbols[at], symbols[at + 1]});
            return found == ranks_.end() ? INT32_MAX : found->second;
        };
        std::vector<int> ranks;
        for (size_t i = 0; i + 1 < symbols.size(); ++i) ranks.push_back(rank(i));
        while (!ranks.empty()) {
            const auto lowest = std::min_element(ranks.begin(), ranks.end());
            if (*lowest == INT32_MAX) return;
            const size_t at = static_cast<size_t>(lowest - ranks.begin());
            symbols[at] += symbols[at + 1];
            symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
            ranks.erase(lowest);
            if (at) ranks[at - 1] = rank(at - 1);
            if (at < ranks.size()) ranks[at] = rank(at);
        }
    }

    ggufbpe::MergeOptions options_;
    std::map<std::string, int32_t> ids_;
    std::map<std::pair<std::string, std::string>, int> ranks_;
};

// ---- all of it -------------------------------------------------------------------------------------------------------

inline std::vector<int32_t> one_or_none(int32_t token) { return token < 0 ? std::vector<int32_t>() : std::vector<int32_t>{token}; }

// A vocabulary, and how text is encoded by it.
struct Vocabulary {
    std::vector<std::string> tokens, merges;
    ggufbpe::MergeOptions options;
    ggufbpe::Preprocessing own_step = ggufbpe::Preprocessing::none;
    std::vector<ggufbpe::SpecialToken> special;
    int32_t bos = -1, eos = -1;
    bool strict_utf8 = true;
    bool has_tables_of_file = false;  // the model reads its tables from a file that another one wrote

    static std::shared_ptr<const ggufbpe::TableFile> table_file(const ggufbpe::BPEModel &model) {
        const ggufbpe::HashKey secret = {1, 2, 3, 4, 5, 6, 7, 8};
        ggufbpe::TableWriter writer;
        model.write(writer);
        const std::string content = writer.finish(secret, {9, 10});
        std::FILE *file = std::tmpfile();
        if (!file || std::fwrite(content.data(), 1, content.size(), file) != content.size()) throw std::runtime_error("no file");
        std::rewind(file);
#if defined(_WIN32)
        const int descriptor = _fileno(file);
#else
        const int descriptor = fileno(file);
#endif
        auto read = ggufbpe::TableFile::read(descriptor, content.size(), secret, {9, 10});
        std::fclose(file);
        if (!read) throw std::runtime_error("a file that was written is not read");
        return read;
    }

    std::unique_ptr<ggufbpe::Encoder> encoder(std::shared_ptr<const Splitter> splitter, size_t cache_bytes) const {
        auto strings = std::make_shared<ggufbpe::Strings>();
        for (const std::string &token : tokens) strings->add(token);
        strings->index();
        ggufbpe::Strings pairs;
        for (const std::string &merge : merges) pairs.add(merge);
        auto made = std::make_unique<ggufbpe::BPEModel>(strings, pairs, splitter, options, own_step, cache_bytes);
        if (has_tables_of_file) {
            made = std::make_unique<ggufbpe::BPEModel>(strings, pairs, splitter, options, own_step, cache_bytes, ggufbpe::NO_POLL,
                                                       table_file(*made));
        }
        return std::make_unique<ggufbpe::Encoder>(std::move(made), strings, special, one_or_none(bos), one_or_none(eos),
                                                  strict_utf8);
    }
};

class Encoder {
public:
    Encoder(const Vocabulary &vocabulary, const Entry &entry)
        : vocabulary_(vocabulary), split_(entry), words_(vocabulary.tokens, vocabulary.merges, vocabulary.options) {}

    // Text in which no special tokens are looked for.
    std::vector<int32_t> plain(const std::string &text) const {
        std::vector<int32_t> ids;
        if (vocabulary_.own_step == ggufbpe::Preprocessing::k_mers && id_of("<dna>") >= 0 && id_of("</dna>") >= 0 && id_of("<oov>") >= 0) {
            sequences(text, ids);
        } else {
            runs(text, ids);
        }
        return ids;
    }

    std::vector<int32_t> encode(const std::string &text, bool add_special, bool parse_special) const {
        std::vector<int32_t> ids;
        if (add_special && vocabulary_.bos >= 0) ids.push_back(vocabulary_.bos);
        for (const ggufbpe::Fragment &f : partition(vocabulary_.tokens, vocabulary_.special, parse_special, text)) {
            if (f.token >= 0) {
                ids.push_back(f.token);
            } else {
                const std::vector<int32_t> more = plain(text.substr(f.start, f.end - f.start));
                ids.insert(ids.end(), more.begin(), more.end());
            }
        }
        if (add_special && vocabulary_.eos >= 0) ids.push_back(vocabulary_.eos);
        return ids;
    }

private:
    int32_t id_of(const std::string &token) const {
        const auto found = std::find(vocabulary_.tokens.begin(), vocabulary_.tokens.end(), token);
        return found == vocabulary_.tokens.end() ? -1 : static_cast<int32_t>(found - vocabulary_.tokens.begin());
    }

    void sequences(std::string text, std::vector<int32_t> &ids) const {
        auto take = [&](size_t size) {
            const std::string taken = text.substr(0, size);
            text.erase(0, size);
            return taken;
        };
        while (!text.empty()) {
            runs(take(text.find("<dna>")), ids);
            if (take(5).empty()) return;
            ids.push_back(id_of("<dna>"));
            std::string letters;
            for (char letter : take(text.find("</dna>"))) {
                letters += letter == ' ' && vocabulary_.options.escape_spaces ? utf8(0x2581) : std::string(1, letter);
            }
            for (; !letters.empty(); letters.erase(0, 6)) {
                std::string k_mer = letters.substr(0, 6);
                for (char &letter : k_mer) letter = letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
                k_mer.resize(6, 'A');
                const int32_t id = id_of(k_mer + utf8(0xE000));
                ids.push_back(id < 0 ? id_of("<oov>") : id);
            }
            if (!take(6).empty()) ids.push_back(id_of("</dna>"));
        }
    }

    void runs(const std::string &text, std::vector<int32_t> &ids) const {
        using ggufbpe::Preprocessing;
        std::vector<Character> run;
        const bool drops = vocabulary_.own_step == Preprocessing::spaced_words || vocabulary_.own_step == Preprocessing::lowered_words;
        for (Character c : decoded(text, vocabulary_.strict_utf8)) {
            const bool is_escaped = vocabulary_.options.escape_spaces && c.code_point == ' ' && c.size == 1;
            if (drops && !is_escaped && ggufbpe::class_letter(c.code_point) == 'W') {
                words(run, ids);
                run.clear();
                continue;
            }
            if (vocabulary_.own_step == Preprocessing::lowered_words) {
                for (const auto &pair : ggufbpe::LOWER) {
                    if (pair[0] != c.code_point) continue;
                    c.code_point = pair[1];
                    break;
                }
            }
            run.push_back(c);
        }
        words(run, ids);
    }

    void words(const std::vector<Character> &run, std::vector<int32_t> &ids) const {
        std::vector<uint32_t> seen;  // what is split: an escaped space is one already
        std::vector<std::string> written;
        for (const Character &c : run) {
            const bool is_escaped = vocabulary_.options.escape_spaces && c.code_point == ' ' && c.size == 1;
            seen.push_back(is_escaped ? 0x2581 : c.code_point);
            written.push_back(utf8(seen.back()));
        }
        size_t start = 0;
        for (size_t end : split_.ends(seen)) {
            auto at = [&](size_t i) { return written.begin() + static_cast<std::ptrdiff_t>(i); };
            words_.encode({at(start), at(end)}, ids);
            start = end;
        }
    }

    const Vocabulary &vocabulary_;
    Split split_;
    Words words_;
};

// What encode_batch gives to its caller: the ids of each text.
inline std::vector<std::vector<int32_t>> batch_ids(const ggufbpe::Encoder &encoder, const std::vector<ggufbpe::Text> &texts,
                                                   const ggufbpe::EncodeOptions &options, size_t threads) {
    std::vector<std::vector<int32_t>> results(texts.size());
    std::vector<bool> is_there(texts.size(), false);
    const auto take = [&](std::vector<ggufbpe::Encoder::Encoded> &some) {
        for (const auto &[first, ids, ends] : some) {
            for (size_t i = 0; i < ends.size(); ++i) {
                CHECK(!is_there[first + i]);
                is_there[first + i] = true;
                results[first + i].assign(ids.data() + (i ? ends[i - 1] : 0), ids.data() + ends[i]);
            }
            CHECK(ids.size() == ends.back());
        }
    };
    encoder.encode_batch(texts, options, threads, {[] { return true; }, take}, [] {});
    for (bool each : is_there) CHECK(each);
    return results;
}

}  // namespace model
