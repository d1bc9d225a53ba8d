// Words of every length, at every alignment, at the very end of memory: what the cache and the merger read at once.
//
//     program: nothing to choose; ends with an error where something is wrong

#include "entries.h"

using namespace ggufbpe;

namespace {

constexpr size_t LONGEST = 300;  // bytes of words of every length; what has more than 62 is merged by itself

// Bytes, and merges that make 2, 3, 4, ... of some letters: words of few and of many ids.
model::Vocabulary vocabulary(bool ignore_merges) {
    model::Vocabulary v;
    v.options.ignore_merges = ignore_merges;
    v.tokens = model::byte_alphabet();
    std::string run = "a";
    for (int i = 0; i < 70; ++i) {
        v.merges.push_back(run + " a");
        run += "a";
        v.tokens.push_back(run);
    }
    for (const char *merge : {"b c", "bc bc", "\xC4\xA0 a", "d \xC3\xA9"}) {
        v.merges.push_back(merge);
        const std::string text = merge;
        v.tokens.push_back(text.substr(0, text.find(' ')) + text.substr(text.find(' ') + 1));
    }
    return v;
}

std::string word_of(size_t kind, size_t size) {
    static const std::string KINDS[] = {"a", "bc", "bcbd", "xyz", "abcdefghijklmnopqrstuvw", "d\xC3\xA9"};
    std::string word;
    while (word.size() < size) word += KINDS[kind][word.size() % KINDS[kind].size()];
    return word;
}

void compare(const Encoder &encoder, const model::Encoder &slow, const std::string &text, size_t offset) {
    const std::vector<int32_t> expected = slow.plain(text);
    const Exact exact(text, offset);
    for (int turn = 0; turn < 2; ++turn) {
        Ids ids;
        encoder.encode({exact.data(), exact.size(), false}, {}, 1, ids, [] {});
        CHECK(ids.size() == expected.size() && std::equal(expected.begin(), expected.end(), ids.data()));
    }
}

// A writer keeps memory of the table that it wrote to last, and another table may come to lie where that one was.
void check_tables_at_one_address() {
    alignas(WordTable) unsigned char place[sizeof(WordTable)];
    WordTable::Writer writer;
    const std::vector<int32_t> ids(10, 7);
    for (int turn = 0; turn < 3; ++turn) {
        auto *table = new (place) WordTable(64, 1 << 20);
        const std::string word = "a word too long to be its own key " + std::to_string(turn);
        const auto *data = reinterpret_cast<const unsigned char *>(word.data());
        const WordKey key = WordKey::of(data, word.size(), word.size());
        const size_t bucket = table->bucket(key.hash());
        WordTable::Found found{};
        writer.write_to(*table);
        CHECK(writer.insert(key, bucket, data, word.size(), ids.data(), ids.size(), found));
        writer.count_kept();
        CHECK(table->find(key, bucket, data, found));
        CHECK(WordTable::record_of(found).count == ids.size());
        table->~WordTable();
    }
}

}  // namespace

int main() {
    check_tables_at_one_address();
    const model::Made &whole = model::made_entry("whole", false), &words = model::made_entry("words", false);
    for (const model::Made *made : {&whole, &words}) {
        for (bool ignore_merges : {false, true}) {
            const model::Vocabulary v = vocabulary(ignore_merges);
            const auto encoder = v.encoder(made->splitter, BPEModel::CACHE_BYTES);
            const model::Encoder slow(v, *made->entry);
            for (size_t size = 1; size <= LONGEST; ++size) {
                for (size_t kind = 0; kind < 6; ++kind) {
                    const size_t offset = (size + 3 * kind) % 16;
                    compare(*encoder, slow, word_of(kind, size), offset);
                    // The same word again behind others of every length up to 16, to come upon it in the cache.
                    if (made == &words) compare(*encoder, slow, word_of(3, 1 + (size + kind) % 16) + " " + word_of(kind, size), offset);
                }
            }
            for (size_t size = 1; size <= 40; ++size) {  // every alignment
                for (size_t offset = 0; offset < 16; ++offset) compare(*encoder, slow, word_of(4, size), offset);
            }
        }
    }
    // Words that differ in their last byte only, and in their length only, are told apart.
    const model::Vocabulary v = vocabulary(false);
    const auto encoder = v.encoder(whole.splitter, BPEModel::CACHE_BYTES);
    const model::Encoder slow(v, *whole.entry);
    for (size_t size = 1; size <= LONGEST; ++size) {
        std::string word(size, 'x');
        compare(*encoder, slow, word, size % 16);
        word.back() = 'y';
        compare(*encoder, slow, word, size % 16);
        word.back() = '\0';
        compare(*encoder, slow, word, size % 16);
    }
    // The longest words that the cache keeps, and those that are too long for it.
    for (size_t size = WordTable::LONGEST - 1; size <= WordTable::LONGEST + 1; ++size) {
        for (size_t kind = 0; kind < 6; ++kind) compare(*encoder, slow, word_of(kind, size), kind);
    }
    // More words than tables take, so that they are replaced on the way; then all of them once more.
    const auto small = v.encoder(words.splitter, 0);
    const model::Encoder slow_words(v, *words.entry);
    std::string text;
    for (size_t i = 0; i < 6000; ++i) {
        text += " ";
        for (size_t rest = i * 2654435761u % 100000 + 1; rest; rest /= 7) text += static_cast<char>('a' + rest % 7);
        if (i % 3 == 0) text += word_of(4, i % 200);
    }
    compare(*small, slow_words, text, 1);
    compare(*v.encoder(words.splitter, 1 << 18), slow_words, text, 3);
    compare(*v.encoder(words.splitter, BPEModel::CACHE_BYTES), slow_words, text, 5);
    std::puts("words: all lengths, alignments and tables");
}
