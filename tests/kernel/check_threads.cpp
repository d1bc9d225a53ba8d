// Many threads on one encoder, whose tables are replaced all the time, give the ids that one gives; and so do those that share one
// text of a unigram model, whether its sums are exact or rounded.
//
//     program [--seconds S]

#include <atomic>
#include <chrono>
#include <thread>

#include <cmath>

#include "entries.h"
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

// Two letters cost what both of them cost, so that what is rounded decides between them; "f" costs so much that sums soon are.
void check_unigram(bool is_rounded, const UGMOptions &options) {
    constexpr uint16_t NORMAL = 4;  // ggufbpe/vocab/vocabulary.py
    Strings tokens;
    std::vector<float> scores{0, -2};
    tokens.add("<unk>");
    tokens.add("\xE2\x96\x81");
    for (char a = 'a'; a < 'g'; ++a) {
        tokens.add(std::string(1, a));
        scores.push_back(a == 'f' ? -100 : -std::ldexp(static_cast<float>(a), -14) - std::ldexp(1.0f, -30));
    }
    for (char a = 'a'; a < 'f'; ++a) {
        for (char b = 'a'; b < 'f'; ++b) {
            tokens.add(std::string{a, b});
            scores.push_back(scores[size_t(2 + a - 'a')] + scores[size_t(2 + b - 'a')]);
        }
    }
    tokens.index();
    std::vector<uint16_t> attributes(scores.size(), NORMAL);
    attributes[0] = 1;
    const auto shared = std::make_shared<const Strings>(std::move(tokens));
    const auto model = std::make_shared<const UGMModel>(shared, attributes, attributes, scores, "", options, BPEModel::CACHE_BYTES);
    Random random(5);
    std::string text = "  ";
    while (text.size() < 900000) {
        for (size_t left = 1 + random.below(12); left > 0; --left) text += static_cast<char>('a' + random.below(is_rounded ? 6 : 5));
        text += random.below(9) ? " " : "  ";
    }
    const Part whole{-1, reinterpret_cast<const unsigned char *>(text.data()), text.size()};
    std::vector<Part> parts;
    model->divide(whole, size_t(1) << 17, parts, [] {});
    CHECK(parts.size() > 2 && parts[0].premise);
    const Encoder encoder(model, shared, {}, {}, {});
    Ids alone, together;
    encoder.encode({whole.data, whole.size, true}, {}, 1, alone, [] {});
    encoder.encode({whole.data, whole.size, true}, {}, 3, together, [] {});
    CHECK(ids_of(alone) == ids_of(together));
    CHECK(encoder.count({whole.data, whole.size, true}, {}, 3, [] {}) == alone.size());
    Ids in_parts;
    Sink sink(in_parts);
    bool is_divisible = true;
    try {
        TextModel::Lease scratch(*model);
        for (const Part &part : parts) model->encode(part, *scratch, sink, [] {});
    } catch (const NotDivisible &) {
        is_divisible = false;
    }
    CHECK(is_divisible != is_rounded);
}

}  // namespace

int main(int argc, char **argv) {
    for (const bool merges : {false, true}) {
        for (const bool is_rounded : {false, true}) check_unigram(is_rounded, {true, merges, 0});
    }
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
