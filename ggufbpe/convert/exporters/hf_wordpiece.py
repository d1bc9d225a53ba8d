r"""WordPiece in a tokenizer.json: BERT's normalizer with llama.cpp's classes of characters before it (BERT, bge).

White space and dropped characters are given by lists of code points, since the library's own Unicode version differs:
with accents, llama.cpp drops all marks, and all but the first letter of a Hangul syllable. Characters that stand alone
are the library's punctuation; with `code_points` they are listed, too, which only tokenizers 0.x reads.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from functools import cache

from ..._util.unicode_classes import CONTROL, decomposed
from ...models.vocabulary import Vocabulary
from ...models.wordpiece import CJK, BertNormalizer
from ..code_points import bracket, ranges_where
from ..incompatibilities import Incompatibility
from ..upstream_patterns import split
from ..word_pieces import GOES_ON, word_pieces
from .hf_parts import HFParts, Part, replace, sequence

_LONGEST_WORD = 1 << 30  # characters; the library maps longer ones to the unknown token, llama.cpp does not
_HANGUL, _SYLLABLES, _FIRST_LETTERS = 0xAC00, 588, range(0x1100, 0x1113)


def word_piece_parts(vocabulary: Vocabulary, code_points: bool) -> HFParts:
    """The parts of a WordPiece model."""
    pieces = word_pieces(vocabulary)
    known: dict[str, int] = {}
    for token in (*vocabulary.special_token_ids, *range(len(pieces.texts))):
        known.setdefault(pieces.texts[token], token)
    unknown = vocabulary.special_ids["unk"]
    model = {
        "type": "WordPiece",
        "unk_token": "" if unknown is None else pieces.texts[unknown],
        "continuing_subword_prefix": GOES_ON,
        "max_input_chars_per_word": _LONGEST_WORD,
        "vocab": known,
    }
    return HFParts(
        word_piece_normalizer(vocabulary.lowercase, vocabulary.strip_accents),
        _pre_tokenizer(vocabulary, code_points),
        {"type": "WordPiece", "prefix": GOES_ON, "cleanup": False},
        model,
        [*pieces.limits, *_readers(code_points)],
        second_type=1,
    )


@cache
def word_piece_normalizer(lowercase: bool, strip_accents: bool) -> Part:
    """The normalizer that changes characters as llama.cpp does."""
    written = BertNormalizer(lowercase=lowercase, strip_accents=strip_accents)
    steps = [
        replace(_set_of(lambda point: written[point] == " " and point != 0x20), " ", "Regex"),
        replace(_set_of(lambda point: not written[point]), "", "Regex"),
    ]
    if strip_accents:
        for number, letter in enumerate(_FIRST_LETTERS):
            first = _HANGUL + number * _SYLLABLES
            steps.append(replace(bracket(((first, first + _SYLLABLES - 1),)), chr(letter), "Regex"))
        steps += [replace(old, new) for old, new in _cut_letters()]
    if lowercase:
        # llama.cpp has one code point for each; of İ, the library makes two
        steps.append(replace("\u0130", "i"))
    bert = {
        "type": "BertNormalizer",
        "clean_text": False,
        "handle_chinese_chars": True,
        "strip_accents": strip_accents,
        "lowercase": lowercase,
    }
    return sequence("normalizers", [*steps, bert])


def _pre_tokenizer(vocabulary: Vocabulary, code_points: bool) -> Part:
    if not code_points:
        return {"type": "BertPreTokenizer"}
    written = BertNormalizer(lowercase=vocabulary.lowercase, strip_accents=vocabulary.strip_accents)
    alone = _set_of(lambda point: len(written[point]) == 3)
    return sequence("pretokenizers", [split(" ", "Removed", "String"), split(alone)])


def _cut_letters() -> Iterator[tuple[str, str]]:
    """Characters whose decomposition has more than marks that the library drops, and what llama.cpp leaves of them."""
    for point in _decomposing():
        after = unicodedata.normalize("NFD", chr(point))[1:]
        if any(unicodedata.category(each) != "Mn" for each in after):
            yield chr(point), chr(decomposed(point))


@cache
def _decomposing() -> list[int]:
    """The code points that canonical decomposition changes, without the syllables of Hangul."""
    points = (point for point in range(0x110000) if unicodedata.decomposition(chr(point)))
    return [point for point in points if decomposed(point) != point]


def _set_of(belongs: Callable[[int], bool]) -> str:
    """The code points of a set as a regular expression."""
    ranges = ((0, 0), (0xFFFD, 0xFFFD), *CONTROL, *CJK, *((point, point) for point in _decomposing()))
    return bracket(ranges_where(belongs, {border for low, high in ranges for border in (low, high + 1)}))


def _readers(code_points: bool) -> Iterator[Incompatibility]:
    yield Incompatibility("escaped_spaces", "after U+2581 in a text, llama.cpp begins a word without a space")
    yield Incompatibility(
        "newer_unicode",
        "characters that came after Unicode 15.1 have no class, case or accents in llama.cpp; here they have what the "
        "library's Unicode version says",
    )
    if code_points:
        yield Incompatibility(
            "not_read_by_tokenizers_1", "tokenizers 1.0 does not read lists of punctuation, 0.x does"
        )
    else:
        yield Incompatibility(
            "older_punctuation",
            "some hundred characters, such as U+2E4A or U+11660, are punctuation in Unicode 15.1 and not in the "
            "library's own older tables (code_points=True lists them, for tokenizers 0.x)",
        )
