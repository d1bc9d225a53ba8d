#include "ugm/ugm_model.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "machine.h"
#include "ugm/composition.h"
#include "ugm/ugm_scratch.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr uint16_t UNUSED = 2, NORMAL = 4, USER_DEFINED = 16;  // ggufbpe/models/vocabulary.py
constexpr uint16_t MATCHED = NORMAL | USER_DEFINED | UNUSED;
constexpr char SPACE[] = "\xE2\x96\x81", REPLACEMENT[] = "\xEF\xBF\xBD";
constexpr float PENALTY = 10.0f;          // of the unknown token, below the lowest score
constexpr size_t STEPS_A_TOKEN = 8;       // the cost of one while opening, in bytes looked at
constexpr size_t LONGEST_LOOKED_UP = 64;  // bytes of a word: the time grows with their square
constexpr int32_t CONTINUED = -4;         // a part's token: it continues where another text ended

bool is_matched(uint16_t attribute) { return attribute & MATCHED; }

// The tokens of some kinds. std::invalid_argument if there are not as many kinds as tokens.
std::vector<uint32_t> ids_with(const std::vector<uint16_t> &attributes, uint16_t kinds, const Strings &tokens, const Poll &poll) {
    if (attributes.size() != tokens.size()) throw std::invalid_argument("as many attributes as tokens are needed");
    std::vector<uint32_t> ids;
    in_pieces(tokens.size(), poll, [&](size_t from, size_t end) {
        for (size_t id = from; id < end; ++id) {
            if (attributes[id] & kinds) ids.push_back(static_cast<uint32_t>(id));
        }
    });
    return ids;
}

// How many bits a finite score has after the binary point.
int fraction_bits(float score) {
    static_assert(sizeof(float) == 4 && std::numeric_limits<float>::is_iec559, "scores are 32 bits of IEEE 754");
    constexpr int FRACTION = 23, LEAST_EXPONENT = 149;
    uint32_t bits;
    std::memcpy(&bits, &score, sizeof bits);
    const auto exponent = static_cast<int>(bits >> FRACTION & 0xFF);
    const uint32_t fraction = bits & ((1u << FRACTION) - 1), mantissa = exponent ? fraction | 1u << FRACTION : fraction;
    if (!mantissa) return -1000;
    return LEAST_EXPONENT + !!exponent - exponent - static_cast<int>(lowest_bit(mantissa));
}

// Whether a token has a U+2581 that does not begin it. Where none has, counting all of them is faster than a
// search in each token.
bool may_have_spaces_within(const Strings &tokens, Pace &pace) {
    if (!tokens.size()) return false;
    size_t found = 0, first = 0;
    const char *const all = tokens[0].data();
    in_pieces(std::max<size_t>(tokens.byte_size(), 2) - 2, pace.poll(), [&](size_t from, size_t end) {
        for (size_t at = from; at < end; ++at) {
            found += (all[at] == SPACE[0]) & (all[at + 1] == SPACE[1]) & (all[at + 2] == SPACE[2]);
        }
    });
    for (size_t id = 0; id < tokens.size(); ++id) {
        pace.count(STEPS_A_TOKEN);
        first += tokens[id].substr(0, 3) == SPACE;
    }
    return found != first;
}

// The length of a character as llama.cpp reads it; 0 if it cannot (src/unicode.cpp: unicode_cpt_from_utf8).
size_t character_size(const unsigned char *p, const unsigned char *end, bool strict_utf8) {
    const unsigned char lead = *p;
    if (lead < 0x80) return 1;
    if (strict_utf8) {
        unsigned length;
        strict_code_point_at(p, end, length);
        return length > 1 ? length : 0;
    }
    if (lead < 0xC0 || lead >= 0xF8) return 0;
    const size_t size = code_units(lead);
    if (size_t(end - p) < size) return 0;
    for (size_t i = 1; i < size; ++i) {
        if ((p[i] & 0xC0) != 0x80) return 0;
    }
    return size;
}

}  // namespace

// ---- loading ----

UGMModel::UGMModel(std::shared_ptr<const Strings> tokens, const std::vector<uint16_t> &matched_by,
                   const std::vector<uint16_t> &attributes, std::vector<float> scores, const std::string &charsmap,
                   const UGMOptions &options, size_t cache_bytes, const Poll &poll)
    : CachingModel(cache_bytes),
      options_(options),
      charsmap_(charsmap, poll),
      tokens_(std::move(tokens)),
      user_defined_(*tokens_, ids_with(matched_by, USER_DEFINED, *tokens_, poll), poll) {
    const size_t count = tokens_->size();
    if (attributes.size() != count || (!scores.empty() && scores.size() != count)) {
        throw std::invalid_argument("as many attributes and scores as tokens are needed");
    }
    scores.resize(count);
    lengths_.resize(count);
    Pace pace(poll);
    for (size_t id = 0; id < count; ++id) {
        pace.count(STEPS_A_TOKEN);
        if (!is_matched(matched_by[id])) continue;
        const size_t length = (*tokens_)[id].size();
        lengths_[id] = static_cast<uint32_t>(length);
        longest_ = std::max(longest_, length);
        has_user_defined_ = has_user_defined_ || matched_by[id] & USER_DEFINED;
    }
    while (ring_ <= longest_) ring_ *= 2;
    set_scores(*tokens_, matched_by, attributes, std::move(scores), pace);
    find_separators(*tokens_, matched_by, pace);
}

const TokenTrie &UGMModel::trie(const Poll &poll) const {
    return trie_.get([&] {
        std::vector<uint32_t> ids;
        in_pieces(lengths_.size(), poll, [&](size_t from, size_t end) {
            for (size_t id = from; id < end; ++id) {
                if (lengths_[id]) ids.push_back(static_cast<uint32_t>(id));
            }
        });
        return std::make_unique<TokenTrie>(*tokens_, ids, poll);
    });
}

// The trie for a word of so many bytes; null if it is looked up, part by part, among the tokens.
const TokenTrie *UGMModel::trie_for(size_t bytes, const Poll &poll) const {
    const bool may_be_looked_up = tokens_->indexed() && tokens_->are_different() && bytes <= LONGEST_LOOKED_UP;
    if (!trie_.is_made() && may_be_looked_up && build_budget_.take(bytes)) return nullptr;
    return &trie(poll);
}

void UGMModel::prepare_for(size_t bytes, const Poll &poll) const {
    CachingModel::prepare_for(bytes, poll);
    trie(poll);
}

void UGMModel::set_scores(const Strings &tokens, const std::vector<uint16_t> &matched_by,
                          const std::vector<uint16_t> &attributes, std::vector<float> scores, Pace &pace) {
    float lowest = FLT_MAX;
    for (size_t id = 0; id < tokens.size(); ++id) {
        pace.count(STEPS_A_TOKEN);
        if (matched_by[id] & NORMAL && scores[id] < lowest) lowest = scores[id];
        if (attributes[id] & USER_DEFINED) scores[id] = 0;
    }
    unknown_score_ = lowest - PENALTY;
    scores_ = std::move(scores);
    int bits = fraction_bits(std::isfinite(unknown_score_) ? unknown_score_ : 0);
    float largest = std::fabs(unknown_score_);
    double all = 0, bytes = 1;
    bool are_finite = std::isfinite(unknown_score_);
    for (size_t id = 0; id < tokens.size(); ++id) {
        pace.count(STEPS_A_TOKEN);
        if (!is_matched(matched_by[id])) continue;
        are_finite = are_finite && std::isfinite(scores_[id]);
        if (!are_finite) break;
        bits = std::max(bits, fraction_bits(scores_[id]));
        largest = std::max(largest, std::fabs(scores_[id]));
        all += double(std::fabs(scores_[id]));
        bytes += double(lengths_[id]);
    }
    if (!are_finite) return;
    largest_ = largest;
    mean_ = all / bytes;
    most_ = std::min(std::ldexp(1.0, 53 - bits), 1e300);
}

// Words are independent if no lookup and no replacement crosses the bytes between them.
void UGMModel::find_separators(const Strings &tokens, const std::vector<uint16_t> &matched_by, Pace &pace) {
    const Charsmap::Survey survey = charsmap_.survey(pace.poll());
    const bool has_spaces_within = may_have_spaces_within(tokens, pace);
    constexpr double COMPOSED = 3;  // bytes that one byte becomes at most when a text is composed
    growth_ = std::max(survey.growth, 3.0) * (options_.composes ? COMPOSED : 1);
    bool is_user_defined[256] = {}, has_beyond_ascii = false, joins_words = false, has_unknown = false, has_space = false;
    // Where runs of spaces become one, only a U+2581 that is in the text itself comes before another.
    const bool may_join_spaces = options_.remove_extra_whitespaces && !charsmap_.writes(SPACE);
    for (size_t id = 0; id < tokens.size(); ++id) {
        pace.count(STEPS_A_TOKEN + tokens[id].size());
        if (!is_matched(matched_by[id])) continue;
        has_unknown = has_unknown || static_cast<int32_t>(id) == options_.unknown;
        has_space = has_space || tokens[id] == SPACE;
        for (size_t at = has_spaces_within ? tokens[id].find(SPACE, 1) : std::string_view::npos; at != std::string_view::npos;
             at = tokens[id].find(SPACE, at + 1)) {
            const bool is_after_space = at >= 3 && tokens[id].compare(at - 3, 3, SPACE) == 0;
            joins_spaces_ = joins_spaces_ || (may_join_spaces && is_after_space);
            joins_words = joins_words || !may_join_spaces || !is_after_space;
            is_joined_[static_cast<unsigned char>(tokens[id][at - 1])] = true;
        }
        if (!(matched_by[id] & USER_DEFINED)) continue;
        for (const char c : tokens[id]) {
            is_user_defined[static_cast<unsigned char>(c)] = true;
            has_beyond_ascii = has_beyond_ascii || static_cast<unsigned char>(c) >= 0x80;
        }
    }
    for (unsigned c = 1; c < 128; ++c) {
        is_copied_[c] = survey.is_sound && !survey.has_alone[c] && !survey.begins_ascii[c] && !is_user_defined[c];
    }
    // A truncated character, or an unknown token at a word's beginning, would extend into the next word.
    if (largest_ == 0 || joins_words || !has_space || has_unknown || !survey.is_sound || !survey.is_utf8 || has_beyond_ascii) {
        return;
    }
    for (unsigned c = 1; c < 128; ++c) {
        if (survey.has_within[c] || survey.begins[c] || is_user_defined[c]) continue;
        if (options_.composes && begins_composition(c)) continue;
        const auto byte = static_cast<unsigned char>(c);
        const Charsmap::Match match = charsmap_.longest(&byte, &byte + 1, pace);
        const bool becomes_space = match.length && match.size && std::string_view(match.text, match.size).find_first_not_of(' ') ==
                                                                     std::string_view::npos;
        is_separator_[c] = match.length ? becomes_space && options_.remove_extra_whitespaces : c == ' ';
        has_words_ = has_words_ || is_separator_[c];
    }
}

// ---- text to words ----

std::unique_ptr<TextModel::Scratch> UGMModel::new_scratch() const { return std::make_unique<Scratch>(); }

// The first place at or after which a part may be cut: where no space is due any more that is put before the first character.
size_t UGMModel::first_cut(const Part &part, Pace &pace) const {
    if (options_.remove_extra_whitespaces || !options_.add_space_prefix || part.token == CONTINUED) return 0;
    if (options_.composes) return part.size;
    const unsigned char *p = part.data, *const end = part.data + part.size;
    Lease lease(*this);
    auto &scratch = static_cast<Scratch &>(*lease);
    scratch.is_prefix_due = true;
    scratch.sources.are_wanted = false;
    begin_word({part.data, part.size}, scratch);
    while (p < end && scratch.is_prefix_due) {
        scratch.normalized.clear();
        p = normalize(p, end, 1, scratch, pace);
    }
    return static_cast<size_t>(p - part.data);
}

bool UGMModel::are_words_independent(const Part &part, Pace &pace) const {
    if (!has_words_ || !joins_spaces_) return has_words_;
    const std::string_view text(reinterpret_cast<const char *>(part.data), part.size);
    for (size_t at = 0; at < text.size(); at += Pace::STEPS) {
        const std::string_view here = text.substr(at, Pace::STEPS + 2);
        if (here.find(SPACE) != here.npos) return false;
        pace.count(here.size());
    }
    return true;
}

void UGMModel::divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const {
    const size_t worth_dividing = size + size / 2;
    Pace pace(poll);
    // Where sums will hardly stay exact, encoding parts would be in vain.
    const bool is_divisible = part.size > worth_dividing && mean_ * double(part.size) < most_ && are_words_independent(part, pace);
    size_t start = 0, from = is_divisible ? first_cut(part, pace) : part.size;
    std::shared_ptr<ExactSumCheck> sum_check;
    while (part.size - start > worth_dividing && part.size - from > worth_dividing) {
        size_t end = std::max(start + size, from);
        while (end < part.size && !is_separator_[part.data[end]]) {
            ++end;
            pace.count(1);
        }
        if (end == part.size) break;
        if (!sum_check && !may_be_cached(0, part.size)) sum_check = std::make_shared<ExactSumCheck>();
        parts.push_back({start ? CONTINUED : part.token, part.data + start, end - start, sum_check});
        start = end;
    }
    if (start < part.size) parts.push_back({start ? CONTINUED : part.token, part.data + start, part.size - start, sum_check});
}

void UGMModel::encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const {
    auto &own = static_cast<Scratch &>(scratch);
    Pace pace(poll);
    if (!options_.composes || is_composed(part.data, part.size, pace)) {
        encode_composed(part, own, ids, poll);
        return;
    }
    Spans *const spans = ids.spans();
    compose(part.data, part.size, options_.strict_utf8, own.composed, spans ? &own.changes : nullptr, pace);
    const Part composed{part.token, own.composed.data(), own.composed.size(), part.sum_check};
    const unsigned char *const origin = spans ? spans->origin : nullptr;
    const size_t first = spans ? spans->size() : 0;
    if (spans) spans->origin = composed.data;
    encode_composed(composed, own, ids, poll);
    if (!spans) return;
    own.changes.lead_back(*spans, first, part.data - origin, pace);
    spans->origin = origin;
}

void UGMModel::encode_composed(const Part &part, Scratch &own, Sink &ids, const Poll &poll) const {
    own.is_prefix_due = options_.add_space_prefix && part.token != CONTINUED;
    own.sum = 0;
    own.max_abs_sum = 0;
    own.sources.are_wanted = ids.spans();
    own.sources.space_start = nullptr;
    own.sources.read = part.data;
    Pace pace(poll);
    if (are_words_independent(part, pace)) {
        encode_words(part, own, ids, poll);
        if (part.sum_check && !(part.sum_check->add(own.sum, own.max_abs_sum) < most_)) throw NotDivisible();
        return;
    }
    encode_word({part.data, part.size}, 0, own, ids, pace);
}

int32_t UGMModel::continued(int32_t) const { return CONTINUED; }

// The next word: without the spaces around it if these are dropped, else with those before it. Its size is 0 at the end.
UGMModel::Word UGMModel::next_word(const unsigned char *&p, const unsigned char *end, Pace &pace) const {
    const unsigned char *start = p;
    while (p < end && is_separator_[*p]) ++p;
    if (options_.remove_extra_whitespaces) {
        pace.count(static_cast<size_t>(p - start));
        start = p;
    }
    while (p < end && !is_separator_[*p]) ++p;
    pace.count(static_cast<size_t>(p - start));
    return {start, static_cast<size_t>(p - start)};
}

void UGMModel::encode_words(const Part &part, Scratch &scratch, Sink &ids, const Poll &poll) const {
    const unsigned char *p = part.data, *end = part.data + part.size;
    const bool tracks = part.sum_check || !may_be_cached(0, part.size);
    Pace pace(poll);
    while (p < end && !options_.remove_extra_whitespaces && scratch.is_prefix_due) {
        const Word word = next_word(p, end, pace);
        encode_word(word, scratch.sum, scratch, ids, pace);
        scratch.sum = scratch.sum_of_word;
    }
    Words words;
    while (p < end) {
        words.count = 0;
        while (p < end && words.count < Words::GROUP) {
            const Word word = next_word(p, end, pace);
            if (word.size) words.add(word.data, word.size);
        }
        encode_group(words, end, tracks, scratch, ids, pace);
        if (part.sum_check && !(scratch.max_abs_sum < most_)) throw NotDivisible();
    }
}

void UGMModel::encode_group(const Words &words, const unsigned char *end, bool tracks, Scratch &scratch, Sink &ids,
                            Pace &pace) const {
    WordGroup group;
    fetch(words, end, scratch, group);
    size_t bytes = words.count;  // for each word's U+2581
    for (size_t i = 0; i < words.count; ++i) bytes += words.sizes[i];
    // One bound for all words, and for each only where that one fails.
    const double most_of_all = tracks ? max_abs_sum(scratch.sum, bytes) : 0;
    const bool looks_at_each = tracks && !(most_of_all < most_);
    if (tracks && !looks_at_each) scratch.max_abs_sum = std::max(scratch.max_abs_sum, most_of_all);
    for (size_t i = 0; i < words.count; ++i) {
        const Word word{words.starts[i], words.sizes[i]};
        if (looks_at_each) {
            const double most = max_abs_sum(scratch.sum, word.size);
            if (!(most < most_)) {
                encode_word(word, scratch.sum, scratch, ids, pace);
                scratch.sum = scratch.sum_of_word;
                scratch.max_abs_sum = std::max(scratch.max_abs_sum, scratch.max_abs_sum_of_word);
                continue;
            }
            scratch.max_abs_sum = std::max(scratch.max_abs_sum, most);
        }
        const bool may_be_known = word.size <= WordTable::LONGEST;
        WordTable::Found found;
        const bool is_current = may_be_known && (group.find_quickly(i, found) || group.find_further(i, word.data, found));
        if (is_current || (may_be_known && find_in_former(group.key(i), word.data, scratch))) {
            int32_t few[4];
            const int32_t *known = is_current ? found.ids(few) : scratch.word_ids.data();
            size_t known_count = is_current ? found.count() : scratch.word_ids.size();
            const size_t kept_count = known_count;
            const size_t unknown = take_unknown(known, known_count);
            if (tracks) scratch.sum += sum_of(known, known_count, unknown);
            emit(known, known_count, ids);
            if (ids.spans()) append_spans(word, known, known_count, scratch, *ids.spans(), pace);
            if (!is_current) cache_or_rotate(words, i, end, known, kept_count, scratch, group);
            continue;
        }
        encode_word(word, 0, scratch, ids, pace);
        scratch.sum += scratch.sum_of_word;
        if (!may_be_known) continue;
        count_misses(1);
        if (scratch.unknown) scratch.found.push_back(-1 - static_cast<int32_t>(scratch.unknown));
        cache_or_rotate(words, i, end, scratch.found.data(), scratch.found.size(), scratch, group);
    }
    scratch.writer.count_kept();
}

// How many unknown characters a word from the cache has. If it has any, that is kept behind its ids, as a number below -1: an
// unknown token stands for several, and each counts in a sum.
size_t UGMModel::take_unknown(const int32_t *kept, size_t &count) {
    if (!count || kept[count - 1] >= -1) return 0;
    --count;
    return static_cast<size_t>(-1 - kept[count]);
}

// The sum of a word's scores, while sums are exact.
double UGMModel::sum_of(const int32_t *found, size_t count, size_t unknown) const {
    double sum = double(unknown) * double(unknown_score_);
    for (size_t i = 0; i < count; ++i) {
        if (!unknown || found[i] != options_.unknown) sum += double(scores_[static_cast<size_t>(found[i])]);
    }
    return sum;
}

void UGMModel::emit(const int32_t *found, size_t count, Sink &ids) const {
    int32_t *to = ids.room(count);
    if (!to) return ids.add(count);
    if (count) std::memcpy(to, found, count * sizeof(int32_t));
    ids.advance(to + count);
}

// ---- a word normalized ----

void UGMModel::begin_word(const Word &word, Scratch &scratch) const {
    Scratch::Sources &sources = scratch.sources;
    scratch.normalized.clear();
    scratch.is_in_word = false;
    if (!sources.are_wanted) return;
    sources.starts.clear();
    sources.ends.clear();
    sources.skip_to(word.data);
    sources.read = word.data + word.size;
}

// Reads from `p` on until so many bytes are normalized; returns where it got.
const unsigned char *UGMModel::normalize(const unsigned char *p, const unsigned char *end, size_t stop, Scratch &scratch,
                                         Pace &pace) const {
    return scratch.sources.are_wanted ? normalize<true>(p, end, stop, scratch, pace)
                                      : normalize<false>(p, end, stop, scratch, pace);
}

template <bool KEEPS_SOURCES>
const unsigned char *UGMModel::normalize(const unsigned char *p, const unsigned char *end, size_t stop, Scratch &scratch,
                                         Pace &pace) const {
    std::string &made = scratch.normalized;
    Scratch::Sources &sources = scratch.sources;
    const bool merges = options_.remove_extra_whitespaces;
    bool is_in_word = scratch.is_in_word;
    const auto note = [&](size_t bytes, const unsigned char *from, const unsigned char *to) {
        if (!KEEPS_SOURCES) return;
        sources.starts.insert(sources.starts.end(), bytes, from);
        sources.ends.insert(sources.ends.end(), bytes, to);
    };
    const auto put_space = [&](const unsigned char *from, const unsigned char *to) {
        made += SPACE;
        note(3, from, to);
    };
    // A byte that the bytes from `from` to `to` become.
    const auto put = [&](char c, const unsigned char *from, const unsigned char *to) {
        if (c == ' ') {
            is_in_word = false;
            if (!merges) put_space(from, to);
            if (KEEPS_SOURCES) {
                sources.space_start = sources.space_start ? sources.space_start : from;
                sources.space_end = to;
            }
            return;
        }
        if (!is_in_word) {
            is_in_word = true;
            if (KEEPS_SOURCES && merges && sources.space_start) {
                put_space(sources.space_start, sources.space_end);
            } else if (merges || scratch.is_prefix_due) {
                const bool is_within = KEEPS_SOURCES && !sources.ends.empty() && sources.ends.back() > from;  // a replacement
                put_space(from, is_within ? to : from);
            }
            scratch.is_prefix_due = false;
            sources.space_start = nullptr;
        }
        made += c;
        note(1, from, to);
    };
    while (p < end && made.size() < stop) {
        if (is_copied_[*p] && (p + 1 == end || p[1] < 0x80)) {
            put(static_cast<char>(*p), p, p + 1);
            ++p;
            pace.count(1);
            continue;
        }
        if (has_user_defined_) {
            const unsigned char *at = p;  // the beginning of a user-defined token is enough
            for (TokenTrie::Walk walk(user_defined_); at < end && walk.step(*at);) ++at;
            if (at > p) {
                pace.count(static_cast<size_t>(at - p));
                for (const unsigned char *c = p; c < at; ++c) put(static_cast<char>(*c), p, at);
                p = at;
                continue;
            }
        }
        const Charsmap::Match match = charsmap_.longest(p, end, pace);
        pace.count(match.size + 1);
        if (match.length) {
            for (size_t i = 0; i < match.size; ++i) put(match.text[i], p, p + match.length);
            p += match.length;
            continue;
        }
        const size_t size = character_size(p, end, options_.strict_utf8), read = size ? size : 1;
        for (size_t i = 0; i < (size ? size : 3); ++i) put(size ? static_cast<char>(p[i]) : REPLACEMENT[i], p, p + read);
        p += read;
    }
    scratch.is_in_word = is_in_word;
    return p;
}

// ---- spans, and words as they are shown ----

// The spans of a word whose ids were known.
void UGMModel::append_spans(const Word &word, const int32_t *found, size_t count, Scratch &scratch, Spans &spans, Pace &pace) const {
    if (append_by_lengths(word, found, count, scratch, spans)) return;
    begin_word(word, scratch);
    normalize(word.data, word.data + word.size, SIZE_MAX, scratch, pace);
    find_path(0, scratch, pace);
    append_path(scratch.normalized.size(), false, scratch, spans, pace);
}

// The spans of a word that stays unchanged, after one U+2581.
bool UGMModel::append_by_lengths(const Word &word, const int32_t *found, size_t count, Scratch &scratch, Spans &spans) const {
    if (!options_.remove_extra_whitespaces) return false;
    const auto is_kept = [&](unsigned char c) { return is_copied_[c] && c != ' '; };
    if (!std::all_of(word.data, word.data + word.size, is_kept)) return false;
    size_t length = 0;
    for (size_t i = 0; i < count; ++i) {
        if (found[i] == options_.unknown) return false;
        length += lengths_[static_cast<size_t>(found[i])];
    }
    constexpr size_t BEGIN = 3;
    if (length != BEGIN + word.size) return false;
    Scratch::Sources &sources = scratch.sources;
    sources.skip_to(word.data);
    const unsigned char *const space_start = sources.space_start ? sources.space_start : word.data;
    const unsigned char *const space_end = sources.space_start ? sources.space_end : word.data;
    sources.space_start = nullptr;
    sources.read = word.data + word.size;
    size_t at = 0;
    for (size_t i = 0; i < count; ++i) {
        const unsigned char *const start = at < BEGIN ? space_start : word.data + (at - BEGIN);
        at += lengths_[static_cast<size_t>(found[i])];
        const unsigned char *const end = at <= BEGIN ? space_end : word.data + (at - BEGIN);
        spans.push(start - spans.origin, end - spans.origin);
    }
    return true;
}

// The normalized text, cut before each U+2581 that no token joins to the text before it.
bool UGMModel::words(const unsigned char *text, size_t size, TextModel::Scratch &scratch, const TakesWord &take,
                     const Poll &poll) const {
    auto &own = static_cast<Scratch &>(scratch);
    Pace pace(poll);
    if (options_.composes && !is_composed(text, size, pace)) {
        compose(text, size, options_.strict_utf8, own.composed, nullptr, pace);
        text = own.composed.data();
        size = own.composed.size();
    }
    own.is_prefix_due = options_.add_space_prefix;
    own.sources.are_wanted = false;
    begin_word({text, size}, own);
    normalize(text, text + size, SIZE_MAX, own, pace);
    const std::string &made = own.normalized;
    const auto *data = reinterpret_cast<const unsigned char *>(made.data());
    for (size_t start = 0, next; start < made.size(); start = next) {
        next = made.find(SPACE, start + 1);
        while (next != made.npos && is_joined_[data[next - 1]]) next = made.find(SPACE, next + 1);
        next = std::min(next, made.size());
        take(data + start, next - start);
        pace.count(next - start);
    }
    return true;
}

}  // namespace ggufbpe
