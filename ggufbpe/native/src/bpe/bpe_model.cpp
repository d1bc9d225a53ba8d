#include "bpe/bpe_model.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "bpe/bpe_scratch.h"

namespace ggufbpe {

namespace {

constexpr size_t FLUSH = 1 << 14;             // the most words that wait for missing ones to be encoded
constexpr size_t MISSING_AT_ONCE = 256;       // encoded together; more would be the same words again, which are known by then
constexpr size_t SPACED = 1 << 17;            // bytes of a text without its white space, encoded at a time
constexpr size_t TOGETHER = Splitter::BLOCK;  // bytes of parts that are split together
constexpr size_t K_MERS_A_POLL = 1 << 14;     // k-mers
constexpr size_t LONG_PIECE = 1 << 17;        // bytes of words that are worth a poll

}  // namespace

BPEModel::BPEModel(std::shared_ptr<const Strings> tokens, const Strings &merges, std::shared_ptr<const Splitter> splitter,
                   const MergeOptions &options, Preprocessing own_step, size_t cache_bytes, const Poll &poll,
                   std::shared_ptr<const TableFile> made)
    : CachingModel(cache_bytes), escape_spaces_(options.escape_spaces) {
    // encode_words() makes room for the ids of a word and no more.
    if (options.prepend_space && !options.escape_spaces) throw std::invalid_argument("only escaped spaces are put before words");
    auto merger = made ? std::make_unique<const Merger>(tokens, options, TableReader(std::move(made)))
                       : std::make_unique<const Merger>(tokens, merges, options, poll);
    if (own_step == Preprocessing::k_mers) k_mers_ = KMers::of(std::move(tokens));
    const bool lowers = own_step == Preprocessing::lowered_words;
    if (lowers || own_step == Preprocessing::spaced_words) {
        spaced_words_ = std::make_unique<SpacedWords>(lowers, escape_spaces_);
        splitter = splitter->parted_at_white_space();
    }
    tables_.get([&] { return std::make_unique<Tables>(std::move(merger), std::move(splitter)); });
}

BPEModel::BPEModel(MakeTables make_tables, const MergeOptions &options, size_t cache_bytes)
    : CachingModel(cache_bytes), make_tables_(std::move(make_tables)), escape_spaces_(options.escape_spaces) {}

BPEModel::Tables::Tables(std::unique_ptr<const Merger> made, std::shared_ptr<const Splitter> given)
    : merger(std::move(made)), splitter(std::move(given)), splitter_of_words(splitter) {
    if (!merger->parts_at_spaces()) return;
    splitter = splitter->parted_at_spaces(merger->joined_to_spaces());
    const AsciiGroups &groups = merger->ascii_groups();
    if (groups.tell_apart()) splitter = splitter->parted_between(groups.joined, groups.alone);
}

BPEModel::~BPEModel() = default;

std::unique_ptr<TextModel::Scratch> BPEModel::new_scratch() const { return std::make_unique<Scratch>(); }

void BPEModel::end(TextModel::Scratch &scratch) const {
    static_cast<Scratch &>(scratch).replaced.clear();
    CachingModel::end(scratch);
}

void BPEModel::cut_fragments(const unsigned char *text, std::vector<Fragment> &fragments, const Poll &poll) const {
    if (k_mers_) k_mers_->cut(text, fragments, poll);
}

void BPEModel::divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const {
    const bool is_sequence = part.token == KMers::SEQUENCE;
    const bool is_divisible = !is_sequence || !escape_spaces_;  // k-mers are counted from the escaped text's beginning
    const auto cut = [&](size_t from) {
        return spaced_words_ ? spaced_words_->cut(part.data, part.size, from, poll)
                             : splitter(poll).cut(part.data, part.size, from, poll);
    };
    for (size_t start = 0; start < part.size;) {
        size_t end = part.size;
        if (is_divisible && part.size - start > size + size / 2) {
            end = is_sequence ? start + size / KMers::LENGTH * KMers::LENGTH : cut_between_utf8(part, start + size, poll, cut);
        }
        parts.push_back({part.token, part.data + start, end - start, nullptr, part.is_utf8});
        start = end;
    }
}

void BPEModel::encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const {
    auto &own = static_cast<Scratch &>(scratch);
    if (part.token == KMers::SEQUENCE) {
        encode_k_mers(part, own, ids, poll);
    } else if (spaced_words_) {
        encode_spaced(part, own, ids, poll);
    } else {
        encode_text(part.data, part.size, own, ids, poll);
    }
}

// Short parts between special tokens are split together: the beginning and the end of a block take most of its time.
void BPEModel::encode_parts(const Part *parts, size_t count, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const {
    for (size_t first = 0, next; first < count; first = next) {
        size_t plain = parts[first].token == PLAIN;
        for (next = first + 1; !spaced_words_ && plain && next < count && parts[next].token >= PLAIN; ++next) {
            if (static_cast<size_t>(parts[next].data + parts[next].size - parts[first].data) > TOGETHER) break;
            plain += parts[next].token == PLAIN;
        }
        if (plain > 1) {
            encode_together(parts + first, next - first, static_cast<Scratch &>(scratch), ids, poll);
        } else {
            for (size_t i = first; i < next; ++i) encode_part(parts[i], scratch, ids, poll);
        }
    }
}

void BPEModel::encode_together(const Part *parts, size_t count, Scratch &scratch, Sink &ids, const Poll &poll) const {
    const unsigned char *const text = parts[0].data;
    const auto place = [=](const unsigned char *at) { return static_cast<uint32_t>(at - text); };
    const size_t size = place(parts[count - 1].data) + parts[count - 1].size;
    scratch.edges.clear();
    for (size_t i = 0; i < count; ++i) {
        scratch.edges.push_back(place(parts[i].data));
        scratch.edges.push_back(place(parts[i].data + parts[i].size));
    }
    const Splitter &splitter = this->splitter(poll);
    splitter.block_of_pieces(text, size, scratch.edges, scratch.split, poll);
    scratch.replaced.clear();
    if (scratch.is_outdated()) scratch.tables = cache_.tables();
    size_t word = 0, words = 0;  // of those that were split
    for (size_t i = 0; i < count; ++i) {
        const uint32_t begin = scratch.edges[2 * i], end = scratch.edges[2 * i + 1];
        if (parts[i].token >= 0) {
            encode_part(parts[i], scratch, ids, poll);
            continue;
        }
        while (word < words || splitter.words(scratch.split, poll)) {
            if (word == words) {
                word = 0;
                words = scratch.split.word_count;
            }
            const uint32_t *const starts = scratch.split.starts.data();
            while (word < words && starts[word] < begin) ++word;  // of special tokens
            const size_t first = word;
            while (word < words && starts[word] < end) ++word;
            if (first < word) encode_words(text, size, starts + first, word - first, scratch, ids, poll);
            if (word < words) break;
        }
    }
}

void BPEModel::encode_k_mers(const Part &part, Scratch &scratch, Sink &ids, const Poll &poll) const {
    const unsigned char *data = part.data;
    size_t size = part.size;
    if (ids.spans()) write_k_mer_spans(part, scratch, *ids.spans(), poll);
    if (escape_spaces_) {  // llama.cpp escapes first, and a k-mer is six bytes of the result
        scratch.changed.clear();
        Pace pace(poll);
        for (size_t i = 0; i < size; ++i) {
            pace.count(1);
            if (data[i] == ' ') {
                scratch.changed += "\xE2\x96\x81";
            } else {
                scratch.changed += static_cast<char>(data[i]);
            }
        }
        data = reinterpret_cast<const unsigned char *>(scratch.changed.data());
        size = scratch.changed.size();
    }
    if (ids.only_counts()) return ids.add((size + KMers::LENGTH - 1) / KMers::LENGTH);
    size_t done = 0;
    for (size_t at = 0; at < size; at += KMers::LENGTH) {
        if (done++ % K_MERS_A_POLL == 0) poll();
        ids.push(k_mers_->id(data + at, std::min(KMers::LENGTH, size - at)));
    }
}

// A k-mer of escaped text may begin and end within the same space.
void BPEModel::write_k_mer_spans(const Part &part, Scratch &, Spans &spans, const Poll &poll) const {
    Pace pace(poll);
    const auto size_of = [&](size_t at) -> size_t { return escape_spaces_ && part.data[at] == ' ' ? 3 : 1; };
    size_t written = 0, first = 0;  // of the k-mer: bytes so far, and where it begins
    for (size_t at = 0; at < part.size; ++at) {
        pace.count(1);
        for (size_t i = 0; i < size_of(at); ++i) {
            if (!written) first = at;
            if (++written < KMers::LENGTH) continue;
            spans.push(part.data + first, at + 1 - first);
            written = 0;
        }
    }
    if (written) spans.push(part.data + first, part.size - first);
}

// Text whose white space is dropped, so that it may be cut in the middle of a run of white space.
void BPEModel::encode_spaced(const Part &part, Scratch &scratch, Sink &ids, const Poll &poll) const {
    for (size_t at = 0; at < part.size;) {
        const size_t end = part.size - at > SPACED ? spaced_words_->cut(part.data, part.size, at + SPACED, poll) : part.size;
        const unsigned char *data = part.data + at;
        size_t size = end - at;
        Spans *const spans = spaced_words_->lowers() ? ids.spans() : nullptr;
        const unsigned char *const origin = spans ? spans->origin : nullptr;
        const size_t first = spans ? spans->size() : 0;
        if (spaced_words_->lowers()) {
            scratch.lowered.clear();
            spaced_words_->write_lower(data, size, scratch.changed, spans ? &scratch.lowered : nullptr, poll);
            data = reinterpret_cast<const unsigned char *>(scratch.changed.data());
            size = scratch.changed.size();
            if (spans) spans->origin = data;
        }
        encode_text(data, size, scratch, ids, poll);
        if (spans) {
            Pace pace(poll);
            scratch.lowered.lead_back(*spans, first, part.data + at - origin, pace);
            spans->origin = origin;
        }
        at = end;
        poll();
    }
}

void BPEModel::encode_text(const unsigned char *text, size_t size, Scratch &scratch, Sink &ids, const Poll &poll) const {
    const Splitter &splitter = this->splitter(poll);
    for (size_t start = 0; start < size;) {
        const size_t end = splitter.block(text, size, start, scratch.split, poll);
        scratch.replaced.clear();
        if (scratch.is_outdated()) scratch.tables = cache_.tables();
        while (splitter.words(scratch.split, poll)) {
            encode_words(text + start, size - start, scratch.split.starts.data(), scratch.split.word_count, scratch, ids, poll);
        }
        start = end;
        if (start < size) poll();
    }
}

bool BPEModel::words(const unsigned char *text, size_t size, TextModel::Scratch &scratch, const TakesWord &take,
                     const Poll &poll) const {
    auto &own = static_cast<Scratch &>(scratch);
    if (spaced_words_ && spaced_words_->lowers()) {
        spaced_words_->write_lower(text, size, own.changed, nullptr, poll);
        text = reinterpret_cast<const unsigned char *>(own.changed.data());
        size = own.changed.size();
    }
    split(*tables(poll).splitter_of_words, text, size, own, take, poll);
    return true;
}

void BPEModel::split(const Splitter &splitter, const unsigned char *text, size_t size, Scratch &scratch, const TakesWord &take,
                     const Poll &poll) const {
    constexpr unsigned char OVERLONG = 0xC0;  // begins the overlong form of a space, which is not escaped: see Encoder::rewrite
    const auto show = [&](const unsigned char *word, size_t bytes) {
        if (spaced_words_ && spaced_words_->is_white_space(word, bytes)) return;
        if (!escape_spaces_) return take(word, bytes);
        scratch.shown.clear();
        for (size_t i = 0; i < bytes; ++i) {
            if (word[i] == ' ') {
                scratch.shown += "\xE2\x96\x81";
            } else if (word[i] == OVERLONG) {
                scratch.shown += ' ';
                ++i;
            } else {
                scratch.shown += static_cast<char>(word[i]);
            }
        }
        take(reinterpret_cast<const unsigned char *>(scratch.shown.data()), scratch.shown.size());
    };
    for (size_t start = 0; start < size;) {
        const size_t end = splitter.block(text, size, start, scratch.split, poll);
        while (splitter.words(scratch.split, poll)) {
            const uint32_t *starts = scratch.split.starts.data();
            for (size_t i = 0; i < scratch.split.word_count; ++i) show(text + start + starts[i], starts[i + 1] - starts[i]);
            poll();
        }
        start = end;
    }
}

// Words of a text of which `readable` bytes may be read, from starts[i] to starts[i + 1].
void BPEModel::encode_words(const unsigned char *text, size_t readable, const uint32_t *starts, size_t words, Scratch &scratch,
                            Sink &ids, const Poll &poll) const {
    // A text has at most as many ids as bytes, except for a space written as U+2581, which may fall back to its three bytes; a
    // cached word is written four or eight ids at a time.
    const size_t bytes = starts[words] - starts[0];
    int32_t *const to = ids.room((escape_spaces_ ? 3 : 1) * bytes + 8);
    ids.advance(write_words(text, readable, starts, words, scratch, to, ids, poll));
    if (bytes >= LONG_PIECE) poll();  // a block without a cut may be as long as the text
}

// The same, with room for their ids from `to` on; returns where they end.
int32_t *BPEModel::write_words(const unsigned char *text, size_t readable, const uint32_t *starts, size_t words, Scratch &scratch,
                               int32_t *to, Sink &ids, const Poll &poll) const {
    const Merger &merger = this->merger(poll);
    Spans *const spans = ids.spans();
    // Ids of known words are written at once, and those of missing words put between them later. If ids are counted or have
    // spans, words wait in `found` instead, from the first missing one on.
    const bool at_once = !spans && !ids.only_counts();
    if (!at_once && scratch.found.size() < FLUSH + Words::GROUP) scratch.found.resize(FLUSH + Words::GROUP);
    WordTable::Found *found = scratch.found.data();
    if (spans && scratch.found_words.size() < scratch.found.size()) scratch.found_words.resize(scratch.found.size());
    scratch.missing.clear();
    int32_t *const begin = to;
    size_t kept = 0;  // words that wait
    const auto write_found = [&] {
        if (ids.only_counts()) {
            size_t count = 0;
            for (size_t i = 0; i < kept; ++i) count += found[i].count();
            ids.add(count);
        } else {
            for (size_t i = 0; i < kept; ++i) {
                const int32_t *const first = to;
                to = found[i].copy_ids(to);
                const auto count = static_cast<size_t>(to - first);
                merger.append_spans(scratch.found_words[i], first, count, scratch.merge, *spans, poll);
            }
        }
        kept = 0;
    };
    const auto flush = [&] {
        encode_missing(scratch, poll);
        if (at_once) {
            to = insert_missing(scratch, begin, to);
            kept = 0;
        } else {
            for (const Missing &missing : scratch.missing) found[missing.place] = scratch.new_founds[missing.same_as];
            write_found();
        }
        scratch.missing.clear();
        scratch.long_ids.clear();
    };
    for (size_t from = 0; from < words; from += Words::GROUP) {
        scratch.group.fetch(*scratch.tables.young_generation, text + readable, text, starts + from, std::min(Words::GROUP, words - from));
        const WordGroup &group = scratch.group;
        const auto word_at = [&](size_t i) -> Merger::Word {
            return {text + starts[from + i], starts[from + i + 1] - starts[from + i]};
        };
        for (size_t next = 0; next < group.size();) {
            if (at_once) {
                next = group.write_known(next, true, to);
                WordTable::Found further;
                if (next < group.size() && group.find_further(next, word_at(next).data, further)) {
                    to = further.copy_ids(to);
                    ++next;
                    continue;
                }
            } else {
                const size_t first = next;
                next = group.find_known(first, text, starts + from, found + kept);
                for (size_t i = first; spans && i < next; ++i) scratch.found_words[kept + i - first] = word_at(i);
                kept += next - first;
            }
            if (next == group.size()) break;
            const Merger::Word word = word_at(next);
            const WordKey &key = group.key(next++);
            if (spaced_words_ && spaced_words_->is_white_space(word.data, word.size)) continue;
            if (Merger::is_very_long(word.size)) {
                flush();
                to = encode_very_long(word.data, word.size, scratch, to, ids, poll);
                continue;
            }
            scratch.missing.push_back({word, key, at_once ? static_cast<size_t>(to - begin) : kept});
            if (spans) scratch.found_words[kept] = word;
            ++kept;
        }
        if (scratch.missing.empty()) {
            write_found();
        } else if (kept >= FLUSH || scratch.missing.size() >= MISSING_AT_ONCE || from + group.size() == words) {
            flush();
        }
    }
    return to;
}

// A word that is too long for the table, and for two copies of its ids.
int32_t *BPEModel::encode_very_long(const unsigned char *word, size_t size, Scratch &scratch, int32_t *to, Sink &ids,
                                    const Poll &poll) const {
    const Merger &merger = this->merger(poll);
    if (ids.only_counts()) {
        ids.add(merger.count(word, size, scratch.merge, poll));
    } else {
        scratch.merge.ids.clear();
        merger.encode(word, size, scratch.merge, poll);
        const int32_t *const made = scratch.merge.ids.data();
        const size_t count = scratch.merge.ids.size();
        in_pieces(count, poll, [&](size_t from, size_t end) { to = std::copy(made + from, made + end, to); });
        if (ids.spans()) merger.append_spans({word, size}, made, count, scratch.merge, *ids.spans(), poll);
    }
    scratch.merge.ids = Ids();
    return to;
}

}  // namespace ggufbpe
