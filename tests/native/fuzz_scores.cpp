// Vocabularies with scores: SPM and unigram models beside the plainest way, on texts of any bytes; with charsmaps whose units lead
// anywhere, in circles too, and with charsmaps of any bytes.

#include <cfloat>
#include <cmath>
#include <map>
#include <stdexcept>

#include "charsmaps.h"
#include "harness.h"
#include "spm/spm_model.h"
#include "ugm/composition.h"
#include "ugm/ugm_model.h"
#include "utf8.h"

using namespace ggufbpe;

namespace {

constexpr uint16_t NORMAL = 4;  // ggufbpe/models/vocabulary.py
constexpr int32_t UNKNOWN = 0;
const std::string SPACE = "\xE2\x96\x81";

struct Vocabulary {
    std::vector<std::string> tokens;
    std::vector<float> scores;
    std::map<std::string, int32_t> ids;
    size_t longest = 0;  // bytes of a token

    void add(const std::string &token, float score) {
        if (token.empty() || ids.count(token)) return;
        ids[token] = static_cast<int32_t>(tokens.size());
        tokens.push_back(token);
        longest = std::max(longest, token.size());
        scores.push_back(score);
    }
    int32_t find(const std::string &text) const {
        const auto found = ids.find(text);
        return found == ids.end() ? -1 : found->second;
    }
    Strings strings() const {
        Strings strings;
        for (const std::string &token : tokens) strings.add(token);
        strings.index();
        return strings;
    }
};

std::string random_characters(Choices &choices, size_t most) {
    std::string text;
    const size_t kinds = choices.below(4);
    for (size_t left = choices.below(most); left > 0; --left) {
        if (kinds == 3 || choices.one_in(40)) {
            append_utf8(text, choices.of(characters()));
        } else {
            append_utf8(text, choices.one_in(5) ? ' ' : 'a' + static_cast<uint32_t>(choices.below(1 + kinds)));
        }
    }
    return text;
}

std::string escaped(const std::string &text) {
    std::string made;
    for (const char c : text) made += c == ' ' ? SPACE : std::string(1, c);
    return made;
}

std::vector<std::string> characters_of(const std::string &text) {
    std::vector<std::string> found;
    for (size_t at = 0, size; at < text.size(); at += size) {
        const auto lead = static_cast<unsigned char>(text[at]);
        size = std::min<size_t>(lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4, text.size() - at);
        found.push_back(text.substr(at, size));
    }
    return found;
}

std::string byte_token(char c) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned char>(c));
    return name;
}

// The pair with the best score is merged, the leftmost of equal ones, until there is none.
std::vector<int32_t> merged(const Vocabulary &vocabulary, const std::string &text) {
    std::vector<std::string> symbols = characters_of(text);
    for (;;) {
        size_t best = symbols.size();
        float best_score = 0;
        for (size_t i = 0; i + 1 < symbols.size(); ++i) {
            const int32_t id = vocabulary.find(symbols[i] + symbols[i + 1]);
            if (id < 0) continue;
            const float score = vocabulary.scores[static_cast<size_t>(id)];
            if (best < symbols.size() && score <= best_score) continue;
            best = i;
            best_score = score;
        }
        if (best == symbols.size()) break;
        symbols[best] += symbols[best + 1];
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    std::vector<int32_t> ids;
    for (const std::string &symbol : symbols) {
        if (vocabulary.find(symbol) >= 0) {
            ids.push_back(vocabulary.find(symbol));
        } else {
            for (const char c : symbol) ids.push_back(vocabulary.find(byte_token(c)));
        }
    }
    return ids;
}

// The path with the highest sum; of equal ones that whose last token begins first.
std::vector<int32_t> best_path(const Vocabulary &vocabulary, const std::string &text) {
    float lowest = FLT_MAX;
    for (const float score : vocabulary.scores) lowest = std::min(lowest, score);
    const double unknown = lowest - 10.0f;
    std::vector<double> sums(text.size() + 1, -DBL_MAX);
    std::vector<std::pair<size_t, int32_t>> steps(text.size() + 1, {0, UNKNOWN});
    sums[0] = 0;
    size_t at = 0;
    for (const std::string &character : characters_of(text)) {
        const size_t behind = at + character.size();
        bool is_found = false;
        for (size_t end = at + 1; end <= std::min(text.size(), at + vocabulary.longest); ++end) {
            const int32_t id = vocabulary.find(text.substr(at, end - at));
            if (id < 0) continue;
            is_found = is_found || end == behind;
            const double sum = sums[at] + double(vocabulary.scores[static_cast<size_t>(id)]);
            if (sum > sums[end]) sums[end] = sum, steps[end] = {at, id};
        }
        if (!is_found && sums[at] + unknown > sums[behind]) sums[behind] = sums[at] + unknown, steps[behind] = {at, UNKNOWN};
        at = behind;
    }
    std::vector<int32_t> ids;
    for (size_t end = text.size(); end; end = steps[end].first) {
        if (ids.empty() || ids.back() != UNKNOWN || steps[end].second != UNKNOWN) ids.push_back(steps[end].second);
    }
    return {ids.rbegin(), ids.rend()};
}

// A text leads out of a charsmap.
struct LeadsOut {};

// A charsmap as its units and its strings.
struct DrawnCharsmap {
    CharsmapUnits units;
    std::string strings;

    // What the longest key at a place of a text becomes, and the size of that key; 0 if there is none.
    std::pair<std::string, size_t> longest(const std::string &text, size_t start) const {
        const auto unit_at = [&](size_t index) { return index < units.units().size() ? units.units()[index] : throw LeadsOut(); };
        const auto base_of = [](uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); };
        uint32_t index = base_of(units.units()[0]), value = 0;
        size_t size = 0;
        for (size_t at = start; at < text.size() && text[at]; ++at) {
            const auto byte = static_cast<unsigned char>(text[at]);
            const uint32_t unit = unit_at(index ^ byte);
            if ((unit & 0x800000FF) != byte) break;
            index = index ^ byte ^ base_of(unit);
            if (!(unit & 0x100)) continue;
            value = unit_at(index) & 0x7FFFFFFF;
            size = at + 1 - start;
        }
        if (!size) return {"", 0};
        const size_t end = value < strings.size() ? strings.find('\0', value) : std::string::npos;
        if (end == std::string::npos) throw LeadsOut();
        return {strings.substr(value, end - value), size};
    }
};

DrawnCharsmap drawn_charsmap(Choices &choices) {
    static const std::vector<std::string> replacements = {
        "", " ", "  ", "a", "b a", " a", "aa ", utf8(0xE9), SPACE, "\xC3", "\x80" "a", std::string(50, 'a'), std::string(20, ' '),
    };
    static const std::vector<uint8_t> bytes = {' ', ' ', 'a', 'a', 'b', '\n', '\t', 0xC3, 0xA9, 0xE2, 0x96, 0x81, 0x80, 0xFF};
    std::string strings(" \0", 2);  // at 0, which half of all places have for their value
    for (size_t left = 1 + choices.below(5); left > 0; --left) strings += choices.of(replacements) + '\0';
    if (choices.one_in(9)) strings.pop_back();
    const auto blocks = static_cast<uint32_t>(1 + choices.below(4));
    CharsmapUnits units(1 + blocks);
    std::vector<uint32_t> places;
    for (size_t i = 1 + choices.below(6); i > 0; --i) {
        const auto block = static_cast<uint32_t>(1 + choices.below(blocks));
        places.push_back(CharsmapUnits::BLOCK * block + choices.byte());
        const size_t value = choices.one_in(2) ? 0 : choices.below(strings.size() + choices.one_in(12));
        units.set_value(places.back(), static_cast<uint32_t>(value));
    }
    units.set_root(places[0]);
    if (choices.one_in(2)) units.add(places[0], ' ', choices.of(places), true);
    for (size_t left = choices.below(30); left > 0; --left) {
        const uint32_t outside = CharsmapUnits::BLOCK * (1 + blocks) + choices.byte();
        const uint32_t next = choices.one_in(60) ? outside : choices.one_in(4) ? places[0] : choices.of(places);
        const uint8_t byte = choices.one_in(6) ? choices.byte() : choices.of(bytes);
        if (byte) units.add(choices.of(places), byte, next, choices.one_in(2));
    }
    return {units, strings};
}

// What is left of a text of any bytes for the search of tokens. Without a charsmap only spaces change, in UTF-8.
std::string normalized(const std::string &text, const DrawnCharsmap *charsmap, const UGMOptions &options) {
    std::string made;
    bool is_in_word = false, is_due = options.add_space_prefix;
    const auto put = [&](char c) {
        if (c == ' ') {
            is_in_word = false;
            if (!options.remove_extra_whitespaces) made += SPACE;
            return;
        }
        if (!is_in_word && (options.remove_extra_whitespaces || is_due)) made += SPACE;
        if (!is_in_word) is_due = false;
        is_in_word = true;
        made += c;
    };
    for (size_t at = 0; at < text.size();) {
        auto [piece, size] = charsmap ? charsmap->longest(text, at) : std::pair<std::string, size_t>();
        if (!size) {
            const auto lead = static_cast<unsigned char>(text[at]);
            size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
            piece = text.substr(at, size);
            bool is_character = lead < 0x80 || (lead >= 0xC0 && lead < 0xF8 && piece.size() == size);
            uint32_t code_point = lead & (0xFF >> size);
            for (size_t i = 1; i < piece.size(); ++i) {
                is_character = is_character && (piece[i] & 0xC0) == 0x80;
                code_point = code_point << 6 | (piece[i] & 0x3F);
            }
            // Neither an overlong form nor above U+10FFFF, as the model reads them unless told otherwise.
            constexpr uint32_t LEAST[5] = {0, 0, 0x80, 0x800, 0x10000};
            is_character = is_character && (size == 1 || (code_point >= LEAST[size] && code_point <= 0x10FFFF));
            if (!is_character) piece = utf8(0xFFFD), size = 1;
        }
        for (const char c : piece) put(c);
        at += size;
    }
    return made;
}

// The text in NFC. That it is, tests/models/test_unigram.py sees; here, that it is encoded as any other text.
std::string composed(const std::string &text) {
    std::vector<unsigned char> made;
    Pace pace(NO_POLL);
    compose(reinterpret_cast<const unsigned char *>(text.data()), text.size(), true, made, nullptr, pace);
    return {made.begin(), made.end()};
}

// The ids of a text whole, in parts, counted and with spans, which are in the text and in its order; three times, for the
// second time words are known, and the third time they are not, but tables are made. `expected` is null if any are right.
void check(TextModel &model, const std::string &text, int32_t kind, Choices &choices, const std::vector<int32_t> *expected) {
    const Exact exact(text, choices.below(8));
    const size_t part_size = 1 + choices.below(300);
    const bool is_known_utf8 = choices.one_in(2) && is_utf8(exact.data(), exact.size());
    for (int time = 0; time < 3; ++time) {
        if (time == 2) {
            model.clear_cache();
            model.prepare_for(text.size(), NO_POLL);
        }
        std::vector<Part> parts;
        const Part whole{kind, exact.data(), exact.size(), nullptr, is_known_utf8};
        model.divide(whole, part_size, parts, NO_POLL);
        TextModel::Lease scratch(model);
        Ids ids, ids_of_parts, first_ids;
        Sink first(first_ids);
        model.encode(whole, *scratch, first, NO_POLL);  // before there is a table, if the model makes one later
        Spans spans;
        spans.origin = exact.data();
        Sink sink(ids, &spans), sink_of_parts(ids_of_parts), counted;
        model.encode(whole, *scratch, sink, NO_POLL);
        model.encode(whole, *scratch, counted, NO_POLL);
        try {
            for (const Part &part : parts) model.encode(part, *scratch, sink_of_parts, NO_POLL);
        } catch (const NotDivisible &) {
            CHECK(parts.size() > 1);
            ids_of_parts.clear();
            model.encode(whole, *scratch, sink_of_parts, NO_POLL);
        }
        const std::vector<int32_t> found(ids.data(), ids.data() + ids.size());
        CHECK(!expected || found == *expected);
        CHECK(std::vector<int32_t>(first_ids.data(), first_ids.data() + first_ids.size()) == found);
        CHECK(std::vector<int32_t>(ids_of_parts.data(), ids_of_parts.data() + ids_of_parts.size()) == found);
        CHECK(counted.count() == found.size());
        CHECK(spans.size() == found.size());
        Span before{0, 0};
        for (size_t i = 0; i < spans.size(); ++i) {
            const Span span = spans.data()[i];
            CHECK(before.start <= span.start && before.end <= span.end && span.start <= span.end);
            CHECK(span.end <= static_cast<int64_t>(exact.size()));
            before = span;
        }
    }
}

float random_score(Choices &choices) { return -static_cast<float>(choices.below(6)) * (choices.one_in(3) ? 0.3f : 0.5f); }

void check_spm(Choices &choices) {
    Vocabulary vocabulary;
    for (int byte = 0; byte < 256; ++byte) vocabulary.add(byte_token(static_cast<char>(byte)), 0);
    for (size_t left = choices.below(60); left > 0; --left) {
        vocabulary.add(escaped(random_characters(choices, choices.one_in(9) ? 30 : 6)), random_score(choices));
    }
    const bool has_prefix = choices.one_in(2);
    std::vector<Fragment> fragments{{-1, 0, 0}};
    SpmModel model(std::make_shared<Strings>(vocabulary.strings()), vocabulary.scores, has_prefix, size_t(1) << 20);
    model.cut_fragments(nullptr, fragments, NO_POLL);
    const std::string text = random_characters(choices, choices.one_in(9) ? 900 : 100);
    if (text.empty()) return;
    const std::vector<int32_t> expected = merged(vocabulary, (has_prefix ? SPACE : "") + escaped(text));
    check(model, text, fragments[0].token, choices, &expected);
    std::string bytes;
    for (size_t left = choices.below(200); left > 0; --left) bytes += static_cast<char>(choices.byte());
    if (!bytes.empty()) check(model, bytes, fragments[0].token, choices, nullptr);
}

// A text, some of which is not UTF-8, by a charsmap that leads anywhere.
void check_charsmap(const Vocabulary &vocabulary, const std::vector<uint16_t> &attributes, const std::vector<float> &scores,
                    const UGMOptions &options, Choices &choices) {
    const DrawnCharsmap charsmap = drawn_charsmap(choices);
    const std::string data = charsmap.units.data(charsmap.strings);
    UGMModel model(std::make_shared<const Strings>(vocabulary.strings()), attributes, attributes, scores, data, options, size_t(1) << 20);
    std::string text = random_characters(choices, choices.one_in(9) ? 900 : 100);
    if (choices.one_in(3)) text.insert(choices.below(text.size() + 1), 1, static_cast<char>(choices.byte()));
    std::vector<int32_t> expected;
    bool leads_out = false;
    try {
        const std::string changed = normalized(options.composes ? composed(text) : text, &charsmap, options);
        if (changed.size() > 4000) return;  // which would take the plainest way long
        expected = best_path(vocabulary, changed);
    } catch (const LeadsOut &) {
        leads_out = true;
    }
    bool is_refused = false;
    try {
        check(model, text, -1, choices, &expected);
    } catch (const std::invalid_argument &) {
        is_refused = true;
    }
    CHECK(is_refused == leads_out);
}

// Whether a token has a U+2581 after other characters than these, or after any unless it `may_have_runs` of them.
bool joins_words(const std::string &token, bool may_have_runs) {
    for (size_t at = token.find(SPACE, 1); at != token.npos; at = token.find(SPACE, at + 1)) {
        if (!may_have_runs || at < SPACE.size() || token.compare(at - SPACE.size(), SPACE.size(), SPACE) != 0) return true;
    }
    return false;
}

void check_ugm(Choices &choices) {
    Vocabulary vocabulary;
    vocabulary.add("<unk>", 0);
    const bool has_words = choices.one_in(2), has_runs = choices.one_in(3);
    const int rounding = choices.one_in(4) ? static_cast<int>(choices.below(32)) : 0;  // small scores leave less room for large sums
    for (size_t left = choices.below(60); left > 0; --left) {
        std::string token = escaped(random_characters(choices, choices.one_in(9) ? 30 : 6));
        if (has_words && joins_words(token, has_runs)) continue;
        vocabulary.add(token, std::ldexp(random_score(choices), choices.one_in(6) ? -rounding : 0));
    }
    if (has_words) vocabulary.add(SPACE, random_score(choices));
    std::string run = SPACE;
    for (size_t left = has_runs ? choices.below(5) : 0; left > 0; --left) vocabulary.add(run += SPACE, random_score(choices));
    std::vector<uint16_t> attributes(vocabulary.tokens.size(), NORMAL);
    attributes[UNKNOWN] = 1;
    vocabulary.ids.erase("<unk>");
    const UGMOptions options{choices.one_in(2), choices.one_in(2), UNKNOWN, choices.one_in(3)};
    std::vector<float> scores = vocabulary.scores;
    const auto tokens = std::make_shared<const Strings>(vocabulary.strings());
    UGMModel model(tokens, attributes, attributes, scores, "", options, size_t(1) << 20);
    vocabulary.scores[UNKNOWN] = FLT_MAX;  // it does not count for the lowest
    const std::string text = random_characters(choices, choices.one_in(rounding ? 4 : 9) ? 2000 : 200);
    const std::string source = options.composes ? composed(text) : text;
    const std::vector<int32_t> expected = best_path(vocabulary, normalized(source, nullptr, options));
    check(model, text, -1, choices, &expected);
    check_charsmap(vocabulary, attributes, scores, options, choices);
    // A charsmap of any bytes ends the call, or leads to ids.
    std::string charsmap(4, '\0');
    const size_t units = 1 + choices.below(64);
    charsmap[0] = static_cast<char>(4 * units);
    charsmap[1] = static_cast<char>(4 * units >> 8);
    for (size_t i = 0; i < 4 * units + 1 + choices.below(40); ++i) charsmap += static_cast<char>(choices.byte());
    std::string bytes;
    for (size_t left = choices.below(200); left > 0; --left) bytes += static_cast<char>(choices.byte());
    UGMModel damaged(tokens, attributes, attributes, scores, charsmap, options, size_t(1) << 20);
    try {
        check(damaged, bytes, -1, choices, nullptr);
    } catch (const std::invalid_argument &) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Choices choices(data, size);
    if (choices.one_in(2)) {
        check_spm(choices);
    } else {
        check_ugm(choices);
    }
    return 0;
}
