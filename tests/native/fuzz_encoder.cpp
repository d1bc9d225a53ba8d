// The encoder against the slow model: any bytes, and vocabularies and merges of every absurdity.

#include "entries.h"

using namespace ggufbpe;

namespace {

// What a vocabulary is made of: characters as they are written for merging.
std::vector<std::string> letters(Choices &choices, const MergeOptions &options) {
    std::vector<std::string> all;
    for (size_t i = 2 + choices.below(8); i > 0; --i) {
        const uint32_t c = choices.of(characters());
        if (options.byte_encode) {
            for (char byte : utf8(c)) all.push_back(model::byte_alphabet()[static_cast<unsigned char>(byte)]);
        } else {
            all.push_back(utf8(options.escape_spaces && c == ' ' ? 0x2581 : c));
        }
    }
    return all;
}

std::string byte_token(uint8_t byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    return name;
}

std::string random_token(Choices &choices, const std::vector<std::string> &letters, const std::vector<std::string> &tokens) {
    std::string text;
    switch (choices.below(24)) {
        case 16:
            return byte_token(choices.byte());
        case 17:
            for (size_t i = choices.below(6); i > 0; --i) text += static_cast<char>(choices.byte());
            return text;
        case 18:
            return utf8(choices.of(characters()));
        case 19:
            return choices.one_in(8) ? std::string() : std::string(1 + choices.below(6), '\n');
        case 20:
            if (!choices.one_in(8)) return byte_token(0xE2);
            for (size_t i = 0; i < 10000; ++i) text += letters[i % letters.size()];
            return text;
        case 21:
        case 22:
            return tokens.empty() ? text : choices.of(tokens) + choices.of(tokens);
        default:
            for (size_t i = 1 + choices.below(4); i > 0; --i) text += choices.of(letters);
            return text;
    }
}

std::string random_merge(Choices &choices, const std::vector<std::string> &letters, const std::vector<std::string> &tokens) {
    const std::string space = " ";
    switch (choices.below(16)) {
        case 8:
            return choices.of(letters) + choices.of(letters);  // no space
        case 9: {
            std::string text;
            for (size_t i = choices.below(8); i > 0; --i) text += choices.one_in(3) ? ' ' : static_cast<char>(choices.byte());
            return text;
        }
        case 10:
            return space + choices.of(letters) + space + choices.of(letters);
        case 11:
            return choices.of(letters) + space;
        case 12:
        case 13:
            if (!tokens.empty()) return choices.of(tokens) + space + choices.of(letters);
            return space;
        default: {
            if (tokens.empty() || choices.one_in(3)) return choices.of(letters) + space + choices.of(letters);
            // A token in two, where a character begins.
            const std::string &token = choices.of(tokens);
            size_t cut = choices.below(token.size() + 1);
            while (cut < token.size() && (static_cast<unsigned char>(token[cut]) & 0xC0) == 0x80) ++cut;
            return token.substr(0, cut) + space + token.substr(cut);
        }
    }
}

// Texts that overlap wherever they stand: those that one begins with, runs, and parts of one.
std::vector<std::string> overlapping_texts(Choices &choices, const std::vector<std::string> &letters) {
    const std::string a = choices.one_in(3) ? choices.of(std::vector<std::string>{" ", "\n", " \t"}) : choices.of(letters);
    const std::string b = choices.of(letters);
    std::string whole;
    for (size_t i = 2 + choices.below(12); i > 0; --i) whole += choices.one_in(3) ? b : a;
    std::vector<std::string> texts;
    const size_t kind = choices.below(5);
    for (size_t i = 1 + choices.below(choices.one_in(8) ? 200 : 30); i > 0; --i) {
        std::string run;
        for (size_t k = kind == 4 ? choices.below(40) : i; k > 0; --k) run += a;
        if (kind == 0) texts.push_back(run);
        if (kind == 1) texts.push_back(run + b);
        if (kind == 2) texts.push_back(b + run);
        if (kind == 3) texts.push_back(whole.substr(choices.below(whole.size()), 1 + choices.below(whole.size())));
        if (kind == 4) texts.push_back(run + b + std::string(choices.below(5), ' '));
    }
    return texts;
}

model::Vocabulary random_vocabulary(Choices &choices, bool escape_spaces, const std::string &entry) {
    model::Vocabulary v;
    v.options.byte_encode = !escape_spaces && choices.one_in(2);
    v.options.ignore_merges = choices.one_in(4);
    v.options.escape_spaces = escape_spaces;
    // As with Gemma 4, whose lines are words and whose bytes are not written otherwise: elsewhere a run of line breaks can
    // be a part of a word, whose cut at spaces would make it one.
    const bool has_lines = entry == "lines" || entry == "gemma4" || entry == "mmbert";
    v.options.newline_runs = !v.options.byte_encode && has_lines && choices.one_in(2);
    v.options.prepend_space = escape_spaces && has_lines && choices.one_in(2);
    const std::vector<std::string> used = letters(choices, v.options);
    if (!choices.one_in(4)) v.tokens = used;
    const int bytes = choices.one_in(6) ? 256 : 0;
    for (int byte = 0; byte < bytes; ++byte) v.tokens.push_back(byte_token(static_cast<uint8_t>(byte)));
    for (size_t i = choices.below(choices.one_in(4) ? 200 : 30); i > 0; --i) v.tokens.push_back(random_token(choices, used, v.tokens));
    for (size_t i = choices.below(choices.one_in(4) ? 300 : 40); i > 0; --i) {
        v.merges.push_back(random_merge(choices, used, v.tokens));
        const std::string &merge = v.merges.back();
        const size_t space = merge.find(' ', 1);
        if (space != std::string::npos && choices.one_in(2)) v.tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
    }
    std::vector<size_t> special;
    for (size_t i = choices.one_in(2) ? choices.below(40) : 0; i > 0 && !v.tokens.empty(); --i) {
        special.push_back(choices.below(v.tokens.size()));
    }
    if (choices.one_in(4)) {
        for (const std::string &text : overlapping_texts(choices, used)) {
            special.push_back(v.tokens.size());
            v.tokens.push_back(text);
        }
    }
    const size_t strips = choices.one_in(2) ? 5 : 1000;
    for (size_t id : special) {
        // No file has tokens that are not UTF-8; one in the middle of a character would leave parts that are none.
        if (!model::is_utf8(v.tokens[id])) continue;
        auto is_there = [&](const SpecialToken &token) { return size_t(token.id) == id; };
        if (std::any_of(v.special.begin(), v.special.end(), is_there)) continue;
        v.special.push_back(
            {static_cast<int32_t>(id), choices.one_in(2), choices.one_in(strips), choices.one_in(strips)});
    }
    std::sort(v.special.begin(), v.special.end(), [](const auto &a, const auto &b) { return a.id < b.id; });
    if (choices.one_in(6)) {
        v.own_step = choices.of(std::vector<Preprocessing>{Preprocessing::k_mers, Preprocessing::spaced_words, Preprocessing::lowered_words});
        if (v.own_step == Preprocessing::k_mers) {
            for (const char *token : {"<dna>", "</dna>", "<oov>"}) {
                if (!choices.one_in(10)) v.tokens.push_back(token);
            }
            v.tokens.push_back("ACGTAA" + utf8(0xE000));
        }
    }
    if (choices.one_in(3)) v.bos = 0;
    if (choices.one_in(3)) v.eos = 1;
    return v;
}

// The text that a token is written for.
std::string read(const std::string &token, const MergeOptions &options) {
    std::string text;
    for (const model::Character &c : model::decoded(token)) {
        const std::string part = token.substr(c.start, c.size);
        const auto &alphabet = model::byte_alphabet();
        const auto byte = std::find(alphabet.begin(), alphabet.end(), part);
        if (options.byte_encode && byte != alphabet.end()) {
            text += static_cast<char>(byte - alphabet.begin());
        } else {
            text += options.escape_spaces && c.code_point == 0x2581 ? " " : part;
        }
    }
    return text;
}

std::string random_text(Choices &choices, const model::Vocabulary &v) {
    std::string text;
    for (size_t i = choices.below(choices.one_in(5) ? 300 : 60); i > 0 && text.size() < 1500; --i) {
        std::string part;
        switch (v.tokens.empty() ? choices.below(4) : choices.below(16)) {
            case 0:
                part = utf8(choices.of(characters()));
                break;
            case 1:
                part = choices.one_in(4) ? "\xC0\xA0" : " ";  // the second form of a space is overlong
                break;
            case 2:
                part = choices.one_in(4) ? std::string(1, static_cast<char>(choices.byte())) : "\n";
                break;
            case 3:
                part = choices.one_in(10) ? utf8(0xD800 + static_cast<uint32_t>(choices.byte())) : "a";
                break;
            case 4:
                part = choices.of(std::vector<std::string>{"<dna>", "</dna>", "acgTA", "ACGTAAC", "<oov>", "\xE3\x80\x80", "I\xCC\x87\xC4\xB0"});
                break;
            case 5:
            case 6:
                if (v.special.empty()) break;
                part = v.tokens[size_t(choices.of(v.special).id)];
                if (choices.one_in(2)) part = part.substr(choices.below(part.size() + 1), 1 + choices.below(part.size()));
                break;
            default:
                part = read(choices.of(v.tokens), v.options);
        }
        if (part.size() > 200 && !choices.one_in(20)) part.resize(choices.below(200));
        for (size_t run = choices.one_in(12) ? choices.below(40) : 1; run > 0; --run) text += part;
        if (choices.empty()) break;
    }
    if (text.size() > 12000) text.resize(12000);
    return text;
}

void print(const char *what, const std::string &text) {
    std::fprintf(stderr, "%s \"", what);
    for (char c : text) {
        if (c >= ' ' && c < 0x7F) {
            std::fputc(c, stderr);
        } else {
            std::fprintf(stderr, "\\x%02x", static_cast<unsigned char>(c));
        }
    }
    std::fprintf(stderr, "\"\n");
}

[[noreturn]] void fail(const char *what, const model::Vocabulary &v, const std::string &entry, const std::string &text,
                       const std::vector<int32_t> &expected, const Ids &found) {
    std::fprintf(stderr, "%s; entry %s, byte_encode %d, ignore_merges %d, newline_runs %d, prepend_space %d, escape_spaces %d, own step %d\n",
                 what, entry.c_str(), v.options.byte_encode, v.options.ignore_merges, v.options.newline_runs,
                 v.options.prepend_space, v.options.escape_spaces, static_cast<int>(v.own_step));
    print("text", text);
    for (int32_t id : expected) std::fprintf(stderr, "%d ", id);
    std::fprintf(stderr, "expected\n");
    for (size_t i = 0; i < found.size(); ++i) std::fprintf(stderr, "%d ", found.data()[i]);
    std::fprintf(stderr, "found\n");
    for (size_t i = 0; i < v.tokens.size(); ++i) print(("token " + std::to_string(i)).c_str(), v.tokens[i].substr(0, 80));
    for (const auto &merge : v.merges) print("merge", merge.substr(0, 80));
    for (const auto &s : v.special) std::fprintf(stderr, "special %d hidden %d left %d right %d\n", s.id, s.hidden, s.strips_left, s.strips_right);
    std::abort();
}

bool equal(const Ids &ids, const std::vector<int32_t> &expected) {
    return ids.size() == expected.size() && std::equal(expected.begin(), expected.end(), ids.data());
}

// What may be done at most, in basic blocks: some times what the worst of thousands of cases took. Half of all cases take
// less than 45 a byte to encode. It is the blocks of the kernel that count, not the bytes that memcpy and its kind go through.
constexpr uint64_t OPENING = 25'000'000;  // jais-2's windows are 20 million
constexpr uint64_t OPENING_A_BYTE = 1000;
constexpr uint64_t ENCODING_A_BYTE = 5'000;
constexpr uint64_t SEARCHING_A_BYTE = 600, SEARCHING_A_STEP = 12;  // a step: a byte of text and one of the longest token

// What grows faster than a text shows when the text is long.
void check_work(const model::Vocabulary &v, const Encoder &encoder, const EncodeOptions &options, const std::string &text,
                const std::string &entry) {
    std::string grown;
    while (grown.size() < (1 << 17)) grown += text;
    const Exact exact(grown);
    auto strings = std::make_shared<Strings>();
    for (const std::string &token : v.tokens) strings->add(token);
    size_t longest = 0;
    for (const SpecialToken &token : v.special) longest = std::max(longest, v.tokens[size_t(token.id)].size());
    const Poll poll = [] {};
    auto check = [&](const char *what, uint64_t most, auto work) {
        const uint64_t before = work_done();
        work();
        const uint64_t done = work_done() - before;
        if (done <= most) return;
        std::fprintf(stderr, "%s takes %llu basic blocks, more than %llu\n", what, static_cast<unsigned long long>(done),
                     static_cast<unsigned long long>(most));
        fail(what, v, entry, text, {}, Ids());
    };
    check("searching", grown.size() * (SEARCHING_A_BYTE + SEARCHING_A_STEP * longest), [&] {
        std::vector<Fragment> fragments;
        Partition(strings, v.special, options.parse_special, poll).split(exact.data(), exact.size(), fragments, [] {}, poll);
    });
    for (const char *what : {"encoding", "encoding again"}) {
        check(what, grown.size() * (ENCODING_A_BYTE + SEARCHING_A_STEP * longest), [&] {
            Ids ids;
            encoder.encode({exact.data(), exact.size(), false}, options, 1, ids, poll);
        });
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Choices choices(data, size);
    const auto &all = model::made_entries();
    // The plain splittings leave longer words.
    const model::Made &made = all[choices.below(choices.one_in(2) ? all.size() : model::plain_entries().size())];
    model::Vocabulary v = random_vocabulary(choices, made.entry->escape_spaces, made.entry->name);
    v.strict_utf8 = choices.one_in(2);
    const uint64_t begun = work_done();
    v.has_tables_of_file = choices.one_in(8);
    const auto encoder = v.encoder(made.splitter, choices.one_in(2) ? 0 : BPEModel::CACHE_BYTES);
    uint64_t bytes = 0;
    for (const auto *strings : {&v.tokens, &v.merges}) {
        for (const std::string &each : *strings) bytes += each.size();
    }
    const uint64_t models = v.has_tables_of_file ? 2 : 1;
    const uint64_t opening = work_done() - begun, most = models * (OPENING + OPENING_A_BYTE * bytes);
    if (opening > most) {
        std::fprintf(stderr, "opening takes %llu basic blocks, more than %llu\n", static_cast<unsigned long long>(opening),
                     static_cast<unsigned long long>(most));
        fail("opening", v, made.entry->name, "", {}, Ids());
    }
    const model::Encoder slow(v, *made.entry);
    std::vector<std::string> texts;
    for (size_t i = 1 + choices.below(5); i > 0; --i) texts.push_back(random_text(choices, v));
    const EncodeOptions options{choices.one_in(2), choices.one_in(2)};
    std::vector<std::vector<int32_t>> expected;
    std::vector<Exact> exact;
    std::vector<Text> views;
    for (const std::string &text : texts) {
        try {
            expected.push_back(slow.encode(text, options.add_special, options.parse_special));
        } catch (const model::Matcher::GivesUp &) {
            return 0;
        }
        exact.emplace_back(text, choices.below(16));
        views.push_back({exact.back().data(), exact.back().size(), model::is_utf8(text) && choices.one_in(2)});
    }
    const Poll poll = [] {};
    for (int turn = 0; turn < 2; ++turn) {  // the second time words are in the cache
        for (size_t i = 0; i < texts.size(); ++i) {
            Ids ids;
            encoder->encode(views[i], options, 1, ids, poll);
            if (!equal(ids, expected[i])) fail("encode", v, made.entry->name, texts[i], expected[i], ids);
            CHECK(encoder->count(views[i], options, 1, poll) == expected[i].size());
        }
    }
    encoder->model().clear_cache();
    const std::vector<std::vector<int32_t>> results = model::batch_ids(*encoder, views, options, 1 + choices.below(3));
    for (size_t i = 0; i < texts.size(); ++i) {
        if (results[i] == expected[i]) continue;
        Ids found;
        found.append(results[i].data(), results[i].size());
        fail("encode_batch", v, made.entry->name, texts[i], expected[i], found);
    }
    encoder->model().clear_cache();
    for (size_t i = 0; i < texts.size(); ++i) {
        Ids ids;
        encoder->encode(views[i], options, 2 + choices.below(2), ids, poll);
        if (!equal(ids, expected[i])) fail("encode on several threads", v, made.entry->name, texts[i], expected[i], ids);
        CHECK(encoder->count(views[i], options, 2, poll) == expected[i].size());
        Ids with_spans;
        Spans spans;
        encoder->encode_with_spans(views[i], options, with_spans, spans, poll);
        if (!equal(with_spans, expected[i])) fail("encode_with_spans", v, made.entry->name, texts[i], expected[i], with_spans);
        CHECK(spans.size() == expected[i].size());
        for (size_t k = 0; k < spans.size(); ++k) {
            const Span span = spans.data()[k];
            CHECK((k == 0 || spans.data()[k - 1].start <= span.start) && span.start <= span.end);
            CHECK(span.start >= 0 && span.end <= static_cast<int64_t>(texts[i].size()));
        }
    }
    if (size % 4 == 0 && !texts[0].empty()) check_work(v, *encoder, options, texts[0], made.entry->name);
    Ids plain;
    encoder->encode_plain(views[0], plain, poll);
    const std::vector<int32_t> expected_plain = slow.plain(texts[0]);
    if (!equal(plain, expected_plain)) fail("encode_plain", v, made.entry->name, texts[0], expected_plain, plain);
    return 0;
}
