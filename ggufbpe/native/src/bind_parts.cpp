// Dividing texts for Python: a text and levels of boundaries in, spans out.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bind_encoder.h"
#include "bind_text.h"
#include "bindings.h"
#include "split/splitter.h"
#include "tokenizer/boundaries.h"
#include "tokenizer/byte_set.h"
#include "tokenizer/text_parts.h"

namespace ggufbpe {

namespace {

// The name of a level, or "" and its boundaries; and whether they count within fenced blocks.
using LevelTuple = std::tuple<std::string, std::vector<size_t>, bool>;

std::vector<BoundaryLevel> levels_of(const std::vector<LevelTuple> &tuples) {
    std::vector<BoundaryLevel> levels;
    for (const auto &[name, places, in_fences] : tuples) {
        BoundaryLevel level;
        level.places = places;
        level.in_fences = in_fences;
        if (!name.empty() && !BoundaryLevel::of_name(name, level)) throw nb::value_error("an unknown level");
        levels.push_back(std::move(level));
    }
    return levels;
}

size_t count_characters(const Text &text, size_t start, size_t end) {
    static const ByteSet continuations{{0x80, 0xBF}};
    return end - start - continuations.count(text.data + start, end - start);
}

// Spans in bytes to spans in characters. A part begins near where the one before it ends.
void to_characters(const Text &text, std::vector<std::pair<size_t, size_t>> &spans, const Poll &poll) {
    size_t last = 0, counted = 0;
    Pace pace(poll);
    for (auto &[start, end] : spans) {
        pace.count(end - start);
        const size_t before = start < last ? counted - count_characters(text, start, last) : counted + count_characters(text, last, start);
        counted += count_characters(text, last, end);
        last = end;
        start = before;
        end = counted;
    }
}

std::vector<std::pair<size_t, size_t>> parts(const BoundEncoder &self, nb::handle text, size_t size, size_t overlap,
                                             const std::vector<LevelTuple> &levels, bool at_start, bool strips,
                                             bool parse_special, nb::bytes token_lengths, bool begins_words,
                                             bool ignores_first_space) {
    const Source source(text);
    const LengthArray lengths{static_cast<const int32_t *>(token_lengths.data()), token_lengths.size() / sizeof(int32_t),
                               begins_words};
    std::vector<BoundaryLevel> given = levels_of(levels);
    const SplitPoints &places = *self.places[parse_special];
    const SplitPointRules &rules = places.rules();
    const bool has_splitter = self.splitter != nullptr;
    const Text &bytes = source.text();
    const bool counts_bytes =
        !PyUnicode_Check(text.ptr()) || static_cast<size_t>(PyUnicode_GetLength(text.ptr())) == bytes.size;
    InterpreterLock lock(bytes.size);
    const Poll poll = [&] { lock.poll(); };
    Boundaries boundaries(bytes.data, bytes.size, std::move(given), at_start, poll);
    // An escaped space has three bytes, each of which may become a token; a small letter may have more than its capital.
    const auto space_is_token = [&] {
        const unsigned char space = ' ';
        try {
            return ignores_first_space && !begins_words && self.encoder.count({&space, 1, true}, {false, false, true}, 1, poll) == 1;
        } catch (const std::invalid_argument &) {  // the vocabulary has no token for it, and the text may have no space
            return false;
        }
    };
    const bool is_byte_level = has_splitter ? !rules.escapes_spaces && !rules.is_before_space : space_is_token();
    const std::string_view ignored = !ignores_first_space || rules.strips ? "" : begins_words ? " \t\n\v\f\r" : " ";
    const PartOptions options{size, overlap, strips, parse_special, has_splitter, is_byte_level, ignored};
    auto spans = TextParts(self.encoder, places, boundaries, bytes, lengths, options, poll).spans();
    if (counts_bytes) return spans;
    to_characters(bytes, spans, poll);
    return spans;
}

}  // namespace

void bind_parts(nb::class_<BoundEncoder> &encoder) {
    encoder.def("parts", &parts, nb::arg("text").none(), nb::arg("size"), nb::arg("overlap"), nb::arg("levels"),
                nb::arg("at_start"), nb::arg("strips"), nb::arg("parse_special"),
                nb::arg("token_lengths"), nb::arg("begins_words"), nb::arg("ignores_first_space"),
                nb::sig("def parts(self, text: object, size: int, overlap: int, levels: typing.Sequence[tuple[str, "
                        "typing.Sequence[int], bool]], at_start: bool, strips: bool, parse_special: bool, token_lengths: "
                        "bytes, begins_words: bool, ignores_first_space: bool) -> list[tuple[int, int]]"),
                "The spans of consecutive parts of at most `size` ids, in characters of a str, else in bytes.");
}

}  // namespace ggufbpe
