#include "wpm/wpm_model.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr size_t MOST_WITHOUT_POLL = 1 << 16;  // bytes
constexpr std::string_view BEGIN = "\xE2\x96\x81";  // U+2581, before each word in the texts of tokens

// Whether a byte is a character that is not dropped, and as many bytes where it is looked up.
bool is_plain(unsigned char byte) { return byte >= 0x20 && byte < 0x7F; }

bool is_plain(const unsigned char *word, size_t size) {
    return std::all_of(word, word + size, [](unsigned char byte) { return is_plain(byte); });
}

}  // namespace

struct WPMModel::Scratch : CachingModel::Scratch {
    Words words;
    struct {
        uint16_t word;  // its number
        bool is_alone;  // one character, which is not dropped
    } others[Words::MOST];  // words that are not plain
    size_t other_count;
    std::string written;  // a word as it is looked up

    size_t bytes() const override { return CachingModel::Scratch::bytes() + written.capacity(); }
};

// The tokens as a trie, and where words begin in it.
struct WPMModel::Matcher {
    Matcher(const Strings &texts, const Poll &poll) : tokens(texts, poll), beginning(tokens.place_behind(BEGIN)) {}

    TokenTrie tokens;
    TokenTrie::Place beginning;
};

WPMModel::WPMModel(std::shared_ptr<const Strings> tokens, int32_t unknown, bool lowercase, bool strip_accents,
                   size_t cache_bytes)
    : CachingModel(cache_bytes),
      normalizer_(lowercase, strip_accents),
      tokens_(std::move(tokens)),
      unknown_(unknown) {
    if (!tokens_->indexed()) throw std::invalid_argument("the tokens have no index");
}

WPMModel::~WPMModel() = default;

const WPMModel::Matcher &WPMModel::matcher(const Poll &poll) const {
    return matcher_.get([&] { return std::make_unique<Matcher>(*tokens_, poll); });
}

void WPMModel::prepare_for(size_t bytes, const Poll &poll) const {
    CachingModel::prepare_for(bytes, poll);
    matcher(poll);
}

std::unique_ptr<TextModel::Scratch> WPMModel::new_scratch() const { return std::make_unique<Scratch>(); }

// Where a word ends whatever comes before: the first white space at or after `from`, or a character that stands alone.
size_t WPMModel::cut(const unsigned char *text, size_t size, size_t from, const Poll &poll) const {
    Pace pace(poll);
    while (from < size && (text[from] & 0xC0) == 0x80) ++from;
    for (unsigned length; from < size; from += length) {
        if (normalizer_.kind(code_point_at(text + from, text + size, length)) != Normalizer::in_word) break;
        pace.count(4);
    }
    return from;
}

void WPMModel::divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const {
    const auto place = [&](size_t from) { return cut(part.data, part.size, from, poll); };
    for (size_t start = 0; start < part.size;) {
        const bool is_long = part.size - start > size + size / 2;
        const size_t end = is_long ? cut_between_utf8(part, start + size, poll, place) : part.size;
        parts.push_back({part.token, part.data + start, end - start, nullptr, part.is_utf8});
        start = end;
    }
}

void WPMModel::encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const {
    auto &own = static_cast<Scratch &>(scratch);
    Pace pace(poll);
    const auto match = [&](const unsigned char *word, size_t size) { match_longest(word, size, own, poll); };
    const auto append = [&](const unsigned char *word, size_t size, const int32_t *found, size_t count) {
        append_word_spans(word, size, found, count, *ids.spans(), pace);
    };
    for (size_t at = 0; at < part.size;) {
        const size_t start = at;
        at = find_words(part.data, part.size, at, own, pace);
        if (WordStarts *const starts = ids.word_starts()) add_starts(own, *starts, pace);
        encode_words(part.data + part.size, own.words, own, ids, match, append);
        pace.count(at - start);
    }
}

// The next words of a text, from `at` on; returns where they end. Dropped characters are still in them.
size_t WPMModel::find_words(const unsigned char *text, size_t size, size_t at, Scratch &scratch, Pace &pace) const {
    Words &words = scratch.words;
    words.count = scratch.other_count = 0;
    const auto add = [&](size_t start, size_t length, bool is_plain, bool is_alone) {
        if (!is_plain) scratch.others[scratch.other_count++] = {static_cast<uint16_t>(words.count), is_alone};
        words.add(text + start, length);
    };
    while (words.count < Words::GROUP && at < size) {
        const size_t begin = at;
        at = find_ascii_words(text, std::min(size, at + MOST_WITHOUT_POLL), at, words);
        pace.count(at - begin);
        if (words.count >= Words::GROUP) break;
        const size_t start = at;  // of text beyond ASCII, dropped, long, or at the end
        Normalizer::Kind kind = Normalizer::in_word;
        unsigned length = 0;
        bool is_plain_word = true;
        while (at < size) {
            length = 1;
            kind = normalizer_.kind(text[at] < 128 ? text[at] : code_point_at(text + at, text + size, length));
            if (kind != Normalizer::in_word) break;
            is_plain_word = is_plain_word && is_plain(text[at]);
            at += length;
            pace.count(length);
        }
        if (at > start) add(start, at - start, is_plain_word, false);
        if (at == size) break;
        if (kind == Normalizer::alone) add(at, length, length == 1, true);
        at += length;
    }
    return at;
}

// A word begins with its first character that is not dropped; one without any has no ids.
void WPMModel::add_starts(const Scratch &scratch, WordStarts &starts, Pace &pace) const {
    const Words &words = scratch.words;
    const size_t known = starts.places.size(), rewritten = starts.rewritten.size();
    starts.places.resize(known + words.count);
    starts.rewritten.resize(rewritten + scratch.other_count);
    size_t *const places = starts.places.data(), *to = places + known;
    WordStarts::Rewritten *next_rewritten = starts.rewritten.data() + rewritten;
    size_t word = 0;
    const auto add_until = [&](size_t end) {
        for (; word < end; ++word) *to++ = static_cast<size_t>(words.starts[word] - starts.text);
    };
    for (size_t i = 0; i < scratch.other_count; ++i) {
        add_until(scratch.others[i].word);
        const unsigned char *start = words.starts[word], *const end = start + words.sizes[word];
        for (unsigned length; start < end && !scratch.others[i].is_alone; start += length) {
            pace.count(1);
            if (normalizer_.written(code_point_at(start, end, length)) != Normalizer::DROPPED) break;
        }
        ++word;
        if (start == end) continue;
        *next_rewritten++ = {static_cast<size_t>(to - places), static_cast<size_t>(end - starts.text)};
        *to++ = static_cast<size_t>(start - starts.text);
    }
    add_until(words.count);
    starts.places.resize(static_cast<size_t>(to - places));
    starts.rewritten.resize(static_cast<size_t>(next_rewritten - starts.rewritten.data()));
}

// Each token from its first character to its last; characters dropped between two tokens are in neither.
void WPMModel::append_word_spans(const unsigned char *word, size_t size, const int32_t *ids, size_t count, Spans &spans,
                                 Pace &pace) const {
    if (count == 1 && is_plain(word[0]) && is_plain(word[size - 1])) return spans.push(word, size);
    const bool is_whole = count == 1 && ids[0] == unknown_;
    constexpr int64_t BEFORE = BEGIN.size();  // in the text of the first token
    if (is_plain(word, size)) {
        pace.count(size);
        const int64_t start = word - spans.origin;
        int64_t at = -BEFORE;
        Span *to = spans.room(count);
        for (size_t i = 0; i < count; ++i) {
            const int64_t begun = std::max<int64_t>(at, 0);
            at += static_cast<int64_t>((*tokens_)[static_cast<size_t>(ids[i])].size());
            *to++ = {start + begun, start + std::max<int64_t>(at, 0)};
        }
        return spans.advance(to);
    }
    const unsigned char *const end = word + size, *at = word, *last = word;  // of the text read: the end of the last character
    int64_t written = 0;
    unsigned length = 0, kept = 0;  // of the next character: its bytes here, and in the lookup
    const auto skip_dropped = [&] {
        for (kept = 0; at < end; at += length) {
            length = 1;
            const uint32_t code_point = normalizer_.written(*at < 0x80 ? *at : code_point_at(at, end, length));
            pace.count(length);
            unsigned char bytes[4];
            if (code_point != Normalizer::DROPPED) return void(kept = code_point < 0x80 ? 1 : write_utf8(code_point, bytes));
        }
    };
    int64_t token_end = -BEFORE;
    for (size_t i = 0; i < count; ++i) {
        token_end = is_whole ? INT64_MAX : token_end + static_cast<int64_t>((*tokens_)[static_cast<size_t>(ids[i])].size());
        skip_dropped();
        const unsigned char *const start = kept ? at : last;
        while (written < token_end && kept) {
            written += kept;
            last = at += length;
            if (written < token_end) skip_dropped();
        }
        spans.push(start, static_cast<size_t>(std::max(last, start) - start));
    }
}

bool WPMModel::words(const unsigned char *text, size_t size, TextModel::Scratch &scratch, const TakesWord &take,
                     const Poll &poll) const {
    auto &own = static_cast<Scratch &>(scratch);
    Pace pace(poll);
    for (size_t at = 0; at < size;) {
        at = find_words(text, size, at, own, pace);
        for (size_t i = 0; i < own.words.count; ++i) {
            normalizer_.write(own.words.starts[i], own.words.sizes[i], own.written, poll);
            if (!own.written.empty()) take(reinterpret_cast<const unsigned char *>(own.written.data()), own.written.size());
        }
    }
    return true;
}

void WPMModel::match_longest(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const {
    normalizer_.write(word, size, scratch.written, poll);
    Ids &ids = scratch.word_ids;
    ids.clear();
    const auto *at = reinterpret_cast<const unsigned char *>(scratch.written.data()), *end = at + scratch.written.size();
    if (at == end) return;  // all of it was dropped
    if (!matcher_.is_made() && match_first(scratch)) return;
    const Matcher &matcher = this->matcher(poll);
    const TokenTrie &tokens = matcher.tokens;
    Pace pace(poll);
    bool is_known = matcher.beginning.is_somewhere();
    if (is_known) {
        const TokenTrie::Match match = tokens.find(at, end, matcher.beginning);
        is_known = match.token != TokenTrie::NONE;
        ids.push(match.token);
        at += match.size;
    }
    while (is_known && at < end) {
        const TokenTrie::Match match = tokens.find(at, end);
        is_known = match.token != TokenTrie::NONE;
        ids.push(match.token);
        at += match.size;
        pace.count(match.read);
    }
    if (is_known) return;
    ids.clear();
    ids.push(unknown_);
}

// The same for one of the first words, by looking up what it begins with, the longest first; false for others.
bool WPMModel::match_first(Scratch &scratch) const {
    constexpr size_t LONGEST = 64;  // bytes: the time grows with their square
    const std::string &written = scratch.written;
    if (written.size() > LONGEST || !tokens_->are_different() || !build_budget_.take(written.size())) return false;
    char word[BEGIN.size() + LONGEST];
    const char *const end = std::copy(written.begin(), written.end(), std::copy(BEGIN.begin(), BEGIN.end(), word));
    Ids &ids = scratch.word_ids;
    for (const char *at = word; at < end;) {
        const size_t least = at == word ? BEGIN.size() : 1;
        size_t size = static_cast<size_t>(end - at) + 1;
        int64_t token = Strings::NOT_FOUND;
        while (token == Strings::NOT_FOUND && size > least) token = tokens_->find({at, --size});
        if (token == Strings::NOT_FOUND) {
            ids.clear();
            ids.push(unknown_);
            break;
        }
        ids.push(static_cast<int32_t>(token));
        at += size;
    }
    return true;
}

}  // namespace ggufbpe
