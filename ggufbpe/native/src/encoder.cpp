#include "encoder.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include "fork.h"
#include "threads.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr size_t WORTH_SHARING = 2 * PART_BYTES;  // bytes; a shorter text is for one thread
constexpr size_t TEXTS = 1 << 15;                 // bytes of short texts that one thread takes at a time
constexpr size_t MOST_PARTS = 1024;               // that a model takes at a time
constexpr size_t STEPS_A_FRAGMENT = 64;           // the cost of a short one, in bytes looked at

}  // namespace

Encoder::Encoder(std::shared_ptr<const TextModel> model, std::shared_ptr<const Strings> texts,
                 const std::vector<SpecialToken> &special, std::vector<int32_t> before, std::vector<int32_t> behind,
                 bool strict_utf8)
    : model_(std::move(model)),
      texts_(std::move(texts)),
      special_(special),
      before_(std::move(before)),
      behind_(std::move(behind)),
      strict_utf8_(strict_utf8) {
    for (const SpecialToken &token : special_) {
        if (token.id < 0 || size_t(token.id) >= texts_->size()) throw std::invalid_argument("a special token out of range");
    }
}

const Partition &Encoder::partition(bool parse_special, const Poll &poll) const {
    return partitions_[parse_special].get([&] { return std::make_unique<Partition>(texts_, special_, parse_special, poll); });
}

// Rewrites bytes that are not UTF-8 as llama.cpp reads them: each undecodable byte becomes U+FFFD, surrogates are decoded. So
// are overlong forms unless UTF-8 is strict; that of a space stays if it does not count as a space.
std::vector<unsigned char> Encoder::rewrite(const unsigned char *text, size_t size, ChangedText *changes,
                                            const Poll &poll) const {
    Pace pace(poll);
    std::vector<unsigned char> result;
    result.reserve(size + size / 4 + 16);
    const bool keeps_overlong_spaces = model_->keeps_overlong_spaces();
    for (size_t i = 0; i < size;) {
        const size_t valid = utf8_length(text + i, std::min(size - i, Pace::STEPS));  // most of a text stays as it is
        result.insert(result.end(), text + i, text + i + valid);
        if (changes) changes->add(valid, valid);
        i += valid;
        pace.count(valid);
        if (i == size) break;
        unsigned length;
        const uint32_t code_point = code_point_at(text + i, text + size, length, strict_utf8_);
        unsigned char bytes[4];
        if (keeps_overlong_spaces && code_point == ' ' && length > 1) {
            result.push_back(0xC0);
            result.push_back(0xA0);
            if (changes) changes->add(2, length);
        } else {
            const unsigned written = write_utf8(code_point, bytes);
            result.insert(result.end(), bytes, bytes + written);
            if (changes) changes->add(written, length);
        }
        i += length;
        pace.count(length);
    }
    return result;
}

std::vector<std::pair<size_t, size_t>> Encoder::special_token_spans(const unsigned char *text, size_t size,
                                                                    bool parse_special, const Poll &poll) const {
    std::vector<std::pair<size_t, size_t>> spans;
    if (special_.empty()) return spans;
    const Partition &tokens = partition(parse_special, poll);
    std::vector<Partition::Match> matches;
    Pace pace(poll);
    tokens.find(text, size, 0, size, Partition::Places::all, matches, pace);
    for (const Partition::Match &match : matches) spans.emplace_back(match.at, match.at + tokens.length(match.rank));
    return spans;
}

// The ids of a text, on this thread.
void Encoder::encode_alone(const Text &text, const EncodeOptions &options, TextModel::Scratch &scratch, Sink &ids,
                           const Poll &poll) const {
    if (text.size >= LONG_TEXT) ids.reserve(text.size / BYTES_A_TOKEN, false);
    add(before_, options, 0, ids);
    std::vector<Fragment> &fragments = scratch.fragments;
    fragments.clear();
    const auto encode_these = [&] {
        model_->cut_fragments(text.data, fragments, poll);
        if (options.continues) continue_with(fragments);
        encode_fragments(text, fragments.data(), fragments.size(), scratch, ids, poll);
    };
    if (!special_.empty() && !options.is_plain) {
        partition(options.parse_special, poll).split(text.data, text.size, fragments, std::ref(encode_these), poll);
    } else if (text.size) {
        fragments.push_back({PLAIN, 0, text.size});
        encode_these();
    }
    add(behind_, options, text.size, ids);
}

// For a text that continues where another ended.
void Encoder::continue_with(std::vector<Fragment> &fragments) const {
    if (fragments.empty() || fragments[0].start > 0 || fragments[0].token >= 0) return;
    fragments[0].token = model_->continued(fragments[0].token);
}

void Encoder::encode_fragments(const Text &text, const Fragment *fragments, size_t count, TextModel::Scratch &scratch,
                               Sink &ids, const Poll &poll) const {
    const bool may_be_rewritten = !text.is_valid && !model_->reads_bytes();
    if (ids.spans()) ids.spans()->origin = text.data;
    Pace pace(poll);
    for (size_t next = 0; next < count;) {
        size_t bytes = 0;
        scratch.parts.clear();
        for (; next < count && scratch.parts.size() < MOST_PARTS && bytes < PART_BYTES; ++next) {
            const Fragment &fragment = fragments[next];
            const size_t size = fragment.end - fragment.start;
            const Part part{fragment.token, text.data + fragment.start, size, nullptr, text.is_valid};
            if (may_be_rewritten && part.token == PLAIN && size > PART_BYTES) {
                // Only the parts with bytes that are not UTF-8 will be rewritten.
                model_->divide(part, PART_BYTES, scratch.parts, poll);
            } else {
                scratch.parts.push_back(part);
            }
            bytes += size;
        }
        encode_parts(text, scratch.parts.data(), scratch.parts.size(), scratch, ids, poll);
        pace.count(bytes + scratch.parts.size() * STEPS_A_FRAGMENT);
    }
}

// Parts of a text, in order; those that are not UTF-8 are rewritten first.
void Encoder::encode_parts(const Text &text, const Part *parts, size_t count, TextModel::Scratch &scratch, Sink &ids,
                           const Poll &poll) const {
    const auto stays = [&](const Part &part) {
        return part.is_utf8 || part.token != PLAIN || model_->reads_bytes() || is_utf8(part.data, part.size, poll);
    };
    for (const Part *next = parts, *const end = parts + count; next < end;) {
        const Part *const first = next;
        next = std::find_if_not(first, end, stays);
        model_->encode_parts(first, static_cast<size_t>(next - first), scratch, ids, poll);
        if (next < end) encode_rewritten(text, *next++, scratch, ids, poll);
    }
}

void Encoder::encode_rewritten(const Text &text, const Part &part, TextModel::Scratch &scratch, Sink &ids,
                               const Poll &poll) const {
    Spans *const spans = ids.spans();
    const size_t first = spans ? spans->size() : 0;
    ChangedText changes;
    const std::vector<unsigned char> rewritten = rewrite(part.data, part.size, spans ? &changes : nullptr, poll);
    if (spans) spans->origin = rewritten.data();
    model_->encode({PLAIN, rewritten.data(), rewritten.size()}, scratch, ids, poll);
    if (!spans) return;
    Pace pace(poll);
    changes.lead_back(*spans, first, part.data - text.data, pace);
    spans->origin = text.data;
}

// Adds tokens that stand for no text, at a place of the text.
void Encoder::add(const std::vector<int32_t> &tokens, const EncodeOptions &options, size_t at, Sink &ids) {
    if (!options.add_special) return;
    for (const int32_t token : tokens) {
        ids.push(token);
        if (ids.spans()) ids.spans()->push(static_cast<int64_t>(at), static_cast<int64_t>(at));
    }
}

namespace {

// Where the first character at or after a place begins, if the bytes are UTF-8.
size_t character_at(const Text &text, size_t place) {
    for (int i = 0; i < 3 && place > 0 && place < text.size && (text.data[place] & 0xC0) == 0x80; ++i) ++place;
    return place;
}

}  // namespace

// The fragments of a text, and whether it is known to be UTF-8; found by several threads.
std::vector<Fragment> Encoder::fragments_of(const Text &text, bool parse_special, size_t threads, bool &is_valid,
                                            const Poll &poll) const {
    const Partition *special = special_.empty() ? nullptr : &partition(parse_special, poll);
    SharedWork<std::vector<std::vector<Partition::Match>>> found((text.size + STRETCH - 1) / STRETCH);
    std::atomic<bool> all_valid{true};
    const bool is_checked = !text.is_valid && !model_->reads_bytes();
    on_threads(found->size(), threads, poll, [&](WorkCounter &turns, const Poll &poll_here, bool) {
        Pace pace(poll_here);
        for (size_t turn; turns.take(turn);) {
            const size_t start = turn * STRETCH, end = std::min(start + STRETCH, text.size);
            if (special) special->find(text.data, text.size, start, end, Partition::Places::needed, (*found)[turn], pace);
            if (is_checked && all_valid.load(std::memory_order_relaxed)) {
                const size_t first = character_at(text, start), last = character_at(text, end);
                if (!is_utf8(text.data + first, last - first, poll_here)) all_valid.store(false, std::memory_order_relaxed);
            }
            poll_here();
        }
    });
    is_valid = text.is_valid || (is_checked && all_valid);
    std::vector<Fragment> fragments;
    if (special) {
        Pace pace(poll);
        Partition::Cutter cutter(*special, text.data, text.size);
        for (std::vector<Partition::Match> &some : *found) {
            cutter.add(some, fragments, pace);
            some = {};
        }
        cutter.finish(fragments, pace);
    } else if (text.size) {
        fragments.push_back({PLAIN, 0, text.size});
    }
    model_->cut_fragments(text.data, fragments, poll);
    return fragments;
}

// What threads take in turn: parts of a long fragment, one at a time, and neighbouring short ones together.
std::vector<Encoder::Share> Encoder::shares_of(const Text &text, const std::vector<Fragment> &fragments,
                                               std::vector<Part> &parts, const Poll &poll) const {
    std::vector<Share> shares;
    size_t first = 0, bytes = 0;
    const auto end_share = [&](size_t end) {
        if (first < end) shares.push_back({false, first, end});
        first = end;
        bytes = 0;
    };
    Pace pace(poll);
    for (size_t i = 0; i < fragments.size(); ++i) {
        pace.count(4);
        const Fragment &fragment = fragments[i];
        const size_t size = fragment.end - fragment.start;
        if (fragment.token >= 0 || size <= PART_BYTES) {
            bytes += size + 16;
            if (bytes >= PART_BYTES) end_share(i + 1);
            continue;
        }
        end_share(i);
        const size_t begun = parts.size();
        model_->divide({fragment.token, text.data + fragment.start, size, nullptr, text.is_valid}, PART_BYTES, parts, poll);
        for (size_t part = begun; part < parts.size(); ++part) shares.push_back({true, part, part + 1});
        first = i + 1;
    }
    end_share(fragments.size());
    return shares;
}

// The same as encode_alone, on several threads.
void Encoder::encode_shared(const Text &text, const EncodeOptions &options, size_t threads, Sink &ids, const Poll &poll) const {
    bool is_valid;
    std::vector<Fragment> fragments = fragments_of(text, options.parse_special, threads, is_valid, poll);
    if (options.continues) continue_with(fragments);
    const Text checked{text.data, text.size, is_valid};
    std::vector<Part> parts;
    const std::vector<Share> shares = shares_of(checked, fragments, parts, poll);
    const auto encode_share = [&](const Share &share, TextModel::Scratch &scratch, Sink &here, const Poll &poll_here) {
        const auto [are_parts, first, end] = share;
        if (are_parts) {
            encode_parts(checked, &parts[first], end - first, scratch, here, poll_here);
        } else {
            encode_fragments(checked, &fragments[first], end - first, scratch, here, poll_here);
        }
    };
    ids.reserve(text.size / BYTES_A_TOKEN + 2, shares.size() > 1);
    add(before_, options, 0, ids);
    if (shares.size() == 1) {
        TextModel::Lease scratch(*model_);
        encode_share(shares[0], *scratch, ids, poll);
        return add(behind_, options, text.size, ids);
    }
    SharedWork<OrderedIds> ordered(ids, shares.size());
    std::atomic<size_t> total{0};
    on_threads(shares.size(), threads, poll, [&](WorkCounter &turns, const Poll &poll_here, bool) {
        TextModel::Lease scratch(*model_);
        Ids made;
        for (size_t turn; turns.take(turn);) {
            Sink here = ids.only_counts() ? Sink() : Sink(made);
            encode_share(shares[turn], *scratch, here, poll_here);
            if (ids.only_counts()) {
                total += here.count();
            } else {
                made = ordered->put(turn, std::move(made));
            }
            poll_here();
        }
    });
    ids.add(total);
    add(behind_, options, text.size, ids);
}

void Encoder::encode_any(const Text &text, const EncodeOptions &options, size_t threads, Sink &ids, const Poll &poll) const {
    if (threads > 1 && text.size >= WORTH_SHARING) {
        const size_t size = ids.size();
        const uint64_t forks = fork_count();
        try {
            return encode_shared(text, options, threads, ids, poll);
        } catch (const NotDivisible &) {
            if (fork_count() != forks) throw Forked();  // ids may be what another thread was writing
            ids.truncate(size);
        }
    }
    TextModel::Lease scratch(*model_);
    encode_alone(text, options, *scratch, ids, poll);
}

void Encoder::encode(const Text &text, const EncodeOptions &options, size_t threads, Ids &ids, const Poll &poll) const {
    if (text.size >= LONG_TEXT) model_->prepare_for(text.size, poll);
    Sink sink(ids);
    encode_any(text, options, threads, sink, poll);
}

size_t Encoder::count(const Text &text, const EncodeOptions &options, size_t threads, const Poll &poll) const {
    Sink sink;
    encode_any(text, options, threads, sink, poll);
    return sink.count();
}

size_t Encoder::count(const Text &text, const EncodeOptions &options, TextModel::Scratch &scratch, const Poll &poll) const {
    Sink sink;
    encode_alone(text, options, scratch, sink, poll);
    return sink.count();
}

void Encoder::encode_with_spans(const Text &text, const EncodeOptions &options, Ids &ids, Spans &spans,
                                const Poll &poll) const {
    if (text.size >= LONG_TEXT) model_->prepare_for(text.size, poll);
    if (text.size >= LONG_TEXT) spans.reserve(text.size / BYTES_A_TOKEN);
    Sink sink(ids, &spans);
    TextModel::Lease scratch(*model_);
    encode_alone(text, options, *scratch, sink, poll);
}

void Encoder::encode_with_words(const Text &text, const EncodeOptions &options, Ids &ids, WordStarts &words,
                                const Poll &poll) const {
    if (text.size >= LONG_TEXT) model_->prepare_for(text.size, poll);
    Sink sink(ids, words);
    TextModel::Lease scratch(*model_);
    encode_alone(text, options, *scratch, sink, poll);
}

bool Encoder::words(const Text &text, const TextModel::TakesWord &take, const Poll &poll) const {
    TextModel::Lease scratch(*model_);
    const bool stays = text.is_valid || model_->words_read_bytes() || is_utf8(text.data, text.size, poll);
    if (stays) return model_->words(text.data, text.size, *scratch, take, poll);
    const std::vector<unsigned char> rewritten = rewrite(text.data, text.size, nullptr, poll);
    return model_->words(rewritten.data(), rewritten.size(), *scratch, take, poll);
}

namespace {

// Texts that are encoded and wait to be taken, and reusable memory.
class Waiting {
public:
    using Encoded = Encoder::Encoded;

    // Returns an empty one, in memory that was used before if there is any.
    Encoded put(Encoded &&encoded) {
        std::lock_guard<std::mutex> lock(mutex_);
        waiting_.push_back(std::move(encoded));
        if (spare_.empty()) return {};
        Encoded found = std::move(spare_.back());
        spare_.pop_back();
        return found;
    }
    void get_all(std::vector<Encoded> &to) {
        std::lock_guard<std::mutex> lock(mutex_);
        to.swap(waiting_);
    }
    void give_back(std::vector<Encoded> &taken) {
        std::lock_guard<std::mutex> lock(mutex_);
        for (Encoded &one : taken) {
            one.ids.clear();
            one.ends.clear();
            spare_.push_back(std::move(one));
        }
        taken.clear();
    }

private:
    std::mutex mutex_;
    std::vector<Encoded> waiting_, spare_;
};

// Groups short texts; long ones are alone: the first text of each group, and the one after its last.
std::vector<std::pair<size_t, size_t>> groups_of(const std::vector<Text> &texts, const Poll &poll) {
    std::vector<std::pair<size_t, size_t>> groups;
    size_t first = 0, bytes = 0;
    Pace pace(poll);
    for (size_t i = 0; i < texts.size(); ++i) {
        pace.count(4);
        bytes += texts[i].size + 64;
        if (bytes >= TEXTS || i + 1 == texts.size() || texts[i + 1].size >= TEXTS) {
            groups.emplace_back(first, i + 1);
            first = i + 1;
            bytes = 0;
        }
    }
    return groups;
}

}  // namespace

void Encoder::encode_batch(const std::vector<Text> &texts, const EncodeOptions &options, size_t threads,
                           const Collector &collector, const Poll &poll) const {
    const std::vector<std::pair<size_t, size_t>> groups = groups_of(texts, poll);
    size_t all_bytes = 0, longest = 0;
    for (const Text &text : texts) {
        all_bytes += text.size;
        longest = std::max(longest, text.size);
    }
    if (all_bytes >= LONG_TEXT) model_->prepare_for(all_bytes, poll);
    // A few long texts are each divided among the threads.
    const bool few = groups.size() < 2 * threads && longest >= WORTH_SHARING;
    const uint64_t forks = fork_count();
    SharedWork<Waiting> waiting;
    std::vector<Encoded> taken;
    const auto take_all = [&] {
        waiting->get_all(taken);
        if (taken.empty()) return;
        collector.take(taken);
        if (!few && threads > 1 && fork_count() != forks) throw Forked();  // code run by Python's collector may have forked
        waiting->give_back(taken);
    };
    on_threads(groups.size(), few ? 1 : threads, poll, [&](WorkCounter &turns, const Poll &poll_here, bool is_caller) {
        std::optional<TextModel::Lease> scratch;
        if (!few) scratch.emplace(*model_);
        Encoded encoded;
        for (size_t turn; turns.take(turn);) {
            encoded.first = groups[turn].first;
            for (size_t i = encoded.first; i < groups[turn].second; ++i) {
                if (few) {
                    SharedWork<Ids> ids(std::move(encoded.ids));  // several threads write to it
                    encode(texts[i], options, threads, *ids, poll_here);
                    encoded.ids = std::move(*ids);
                } else {
                    Sink sink(encoded.ids);
                    encode_alone(texts[i], options, **scratch, sink, poll_here);
                }
                encoded.ends.push_back(encoded.ids.size());
            }
            encoded = waiting->put(std::move(encoded));
            if (is_caller && collector.is_due()) take_all();
            poll_here();
        }
    });
    take_all();
}

void Encoder::encode_plain(const Text &text, Ids &ids, const Poll &poll) const {
    TextModel::Lease scratch(*model_);
    std::vector<Fragment> fragments;
    if (text.size) fragments.push_back({PLAIN, 0, text.size});
    model_->cut_fragments(text.data, fragments, poll);
    Sink sink(ids);
    encode_fragments(text, fragments.data(), fragments.size(), *scratch, sink, poll);
}

}  // namespace ggufbpe
