// Many threads on one encoder, whose tables are replaced all the time, give the ids that one gives; and so do those that share one
// text of a unigram model, whether its sums are exact or rounded. What a thread throws is thrown by the call.
//
//     program [--seconds S]

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "entries.h"
#include "threads.h"
#include "ugm/ugm_model.h"

using namespace ggufbpe;

namespace {

constexpr size_t THREADS = 6;

std::vector<int32_t> ids_of(const Ids &ids) { return {ids.data(), ids.data() + ids.size()}; }

// Words that are mostly new, and special tokens between.
std::string text_of(uint64_t seed, size_t size) {
    Random random(seed);
    std::string text;
    while (text.size() < size) {
        text += random.below(8) ? " " : "\n";
        const size_t length = random.below(30) ? 1 + random.below(12) : 100 + random.below(250);
        for (size_t i = 0; i < length; ++i) text += static_cast<char>('a' + random.below(6));
        if (!random.below(12)) text += utf8(0x4E2D);
        if (!random.below(40)) text += "<s>";
    }
    return text;
}

// Two letters cost what both of them cost, so that what is rounded decides between them; "f" costs so much that sums soon are
// rounded, and "h" takes back what "g" costs.
struct Unigram {
    static constexpr uint16_t NORMAL = 4;  // ggufbpe/models/vocabulary.py

    Unigram(int exponent, const UGMOptions &options) {
        Strings strings;
        std::vector<float> scores{0, -2};
        strings.add("<unk>");
        strings.add("\xE2\x96\x81");
        const auto letter = [&](char c) { return -std::ldexp(static_cast<float>(2 * c + 1), exponent); };
        for (char a = 'a'; a < 'f'; ++a) {
            strings.add(std::string(1, a));
            scores.push_back(letter(a));
            for (char b = 'a'; b < 'f'; ++b) {
                strings.add(std::string{a, b});
                scores.push_back(letter(a) + letter(b));
            }
        }
        for (const auto &[token, score] : {std::pair{"f", -100.0f}, {"g", -1000.0f}, {"h", 1000.0f}}) {
            strings.add(token);
            scores.push_back(score);
        }
        for (size_t size = 1; size < 100; ++size) {  // by the mean of all scores, sums should stay small
            strings.add(std::string(size, 'z'));
            scores.push_back(letter('z'));
        }
        strings.index();
        std::vector<uint16_t> attributes(scores.size(), NORMAL);
        attributes[0] = 1;
        tokens = std::make_shared<const Strings>(std::move(strings));
        model = std::make_shared<const UGMModel>(tokens, attributes, attributes, scores, "", options, BPEModel::CACHE_BYTES);
    }

    std::shared_ptr<const Strings> tokens;
    std::shared_ptr<const UGMModel> model;
};

std::string words_of(const std::string &letters, size_t size, Random &random) {
    std::string text;
    while (text.size() < size) {
        for (size_t left = 1 + random.below(12); left > 0; --left) text += letters[random.below(letters.size())];
        text += random.below(9) ? " " : "  ";
    }
    return text;
}

// The ids of a text in parts, which must be as many as that; nothing if sums of parts were not exact.
std::vector<int32_t> ids_in_parts(const UGMModel &model, const std::string &text, size_t part_size) {
    std::vector<Part> parts;
    model.divide({-1, reinterpret_cast<const unsigned char *>(text.data()), text.size()}, part_size, parts, [] {});
    CHECK(parts.size() > 2 && parts[0].sum_check);
    Ids ids;
    Sink sink(ids);
    TextModel::Lease scratch(model);
    try {
        for (const Part &part : parts) model.encode(part, *scratch, sink, [] {});
    } catch (const NotDivisible &) {
        return {};
    }
    return ids_of(ids);
}

void check_unigram(const UGMOptions &options) {
    Random random(5);
    const std::string exact = "  " + words_of("abcde", 900000, random), costly = "  " + words_of("abcdef", 900000, random);
    const std::string costly_word = exact + std::string(100000, 'c') + " " + exact;  // by its length alone, it could cost too much
    for (const std::string *text : {&exact, &costly, &costly_word}) {
        const Unigram unigram(-30, options);
        const Encoder encoder(unigram.model, unigram.tokens, {}, {}, {});
        const Text view{reinterpret_cast<const unsigned char *>(text->data()), text->size(), true};
        Ids alone, together;
        encoder.encode(view, {}, 1, alone, [] {});
        encoder.encode(view, {}, 3, together, [] {});
        CHECK(ids_of(alone) == ids_of(together));
        CHECK(encoder.count(view, {}, 3, [] {}) == alone.size());
        for (const size_t part_size : {size_t(1) << 10, size_t(1) << 17}) {  // the short ones would be exact by themselves
            const std::vector<int32_t> in_parts = ids_in_parts(*unigram.model, *text, part_size);
            CHECK(text == &costly ? in_parts.empty() : in_parts == ids_of(alone));
        }
    }
    // Three quarters of what is exact before the last part, and within that part half of it, there and back.
    const std::string late = words_of("f", 76000, random) + words_of("g", 6000, random) + words_of("h", 6000, random);
    CHECK(ids_in_parts(*Unigram(-30, options).model, late, 25000).empty());
}

// What a signal's handler throws on the calling thread is not lost because another thread has thrown before.
void check_exceptions() {
    struct Other {};
    struct Signal {};
    std::atomic<bool> has_thrown{false};
    bool is_lost = true;
    try {
        const auto poll = [&] {
            if (has_thrown) throw Signal();
        };
        on_threads(2, 2, poll, [&](WorkCounter &, const Poll &poll_here, bool is_caller) {
            if (is_caller) {
                for (;;) poll_here();
            }
            has_thrown = true;
            throw Other();
        });
    } catch (const Signal &) {
        is_lost = false;
    } catch (const Other &) {
    }
    CHECK(!is_lost);
}

}  // namespace

int main(int argc, char **argv) {
    for (const bool merges : {false, true}) check_unigram({true, merges, 0});
    for (int turn = 0; turn < 100; ++turn) check_exceptions();
    const double seconds = argc == 3 && std::string(argv[1]) == "--seconds" ? std::atof(argv[2]) : 5;
    model::Vocabulary v;
    v.tokens = model::byte_alphabet();
    for (char a = 'a'; a < 'g'; ++a) {
        for (char b = 'a'; b < 'f'; ++b) {
            v.merges.push_back(std::string(1, a) + " " + b);
            v.tokens.push_back(std::string(1, a) + b);
        }
    }
    v.special.push_back({static_cast<int32_t>(v.tokens.size()), true, false, true});
    v.tokens.push_back("<s>");
    v.bos = 3;

    const model::Made &made = model::made_entry("words", false);
    std::vector<std::string> texts;
    for (size_t i = 0; i < 48; ++i) texts.push_back(text_of(i, 100 + 250 * i));  // several groups of a batch
    texts.push_back(text_of(98, 80000));   // two blocks
    texts.push_back(text_of(99, 900000));  // long enough to be shared out among threads
    std::vector<Text> views;
    for (const std::string &text : texts) {
        views.push_back({reinterpret_cast<const unsigned char *>(text.data()), text.size(), false});
    }
    const EncodeOptions options;
    std::vector<std::vector<int32_t>> expected;
    {
        const auto alone = v.encoder(made.entry->splitter(), BPEModel::CACHE_BYTES);
        for (const Text &view : views) {
            Ids ids;
            alone->encode(view, options, 1, ids, [] {});
            expected.push_back(ids_of(ids));
        }
        const model::Encoder slow(v, *made.entry);
        CHECK(slow.encode(texts[1], true, true) == expected[1]);
    }

    const auto begun = std::chrono::steady_clock::now();
    auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count(); };
    std::atomic<uint64_t> calls{0};
    size_t rounds = 0;
    do {  // each round with an encoder in which nothing is made yet
        const auto encoder = v.encoder(made.entry->splitter(), rounds % 2 ? size_t(1) << 19 : 0);
        auto work = [&](size_t number) {
            Random random(1000 * rounds + number);
            for (size_t turn = 0; turn < 12; ++turn) {
                const size_t i = random.below(turn == number ? views.size() : views.size() - 1);  // the longest now and then
                ++calls;
                switch (random.below(12)) {
                    case 0:
                        CHECK(encoder->count(views[i], options, 1 + random.below(3), [] {}) == expected[i].size());
                        break;
                    case 1: {
                        CHECK(model::batch_ids(*encoder, views, options, 1 + random.below(3)) == expected);
                        break;
                    }
                    case 2:
                        encoder->model().clear_cache();
                        CHECK(encoder->model().cache_bytes() > 0);
                        break;
                    default: {
                        Ids ids;
                        encoder->encode(views[i], options, 1 + random.below(3), ids, [] {});
                        CHECK(ids_of(ids) == expected[i]);
                    }
                }
            }
        };
        std::vector<std::thread> threads;
        for (size_t i = 0; i < THREADS; ++i) threads.emplace_back(work, i);
        for (std::thread &thread : threads) thread.join();
        ++rounds;
    } while (passed() < seconds);
    std::printf("threads: %zu rounds, %llu calls in %.1f s\n", rounds, static_cast<unsigned long long>(calls), passed());
}
