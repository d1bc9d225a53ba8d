r"""Byte pair encoding in a tokenizer.json: patterns, merges, and how the library differs from llama.cpp.

The pre-tokenizer is written as in the models' own files where that splits as llama.cpp does. Elsewhere normalizers
put boundary markers after words, since tokenizers 1.0 splits only by a few patterns that it knows. On request, each
stage is a `Split`, for 0.x. The last two list code points, so that words follow llama.cpp and not the library's
Unicode version.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from ..._util.spelling import SPACE
from ...models.bpe.merge import CHAR_BYTES, WordEncoder
from ...models.pieces import quoted_token
from ...models.vocabulary import Vocabulary
from .. import incompatibilities
from ..incompatibilities import Incompatibility
from ..portable_patterns import NotExpressibleError, oniguruma
from ..upstream_patterns import BY_ITS_UNICODE, IGNORING_CASE, PORTABLE, split
from .boundary_markers import AT_BORDERS, WHITE_SPACE_SPLIT, border_steps
from .hf_parts import NOT_IN_1, HFParts, Part, byte_pair_model, replace, sequence

ESCAPED_SPACES = replace(" ", SPACE)
# llama.cpp has one code point for each; of İ, the library makes two
LOWER_CASE = [replace("\u0130", "i"), {"type": "Lowercase"}]


def byte_pair_parts(vocabulary: Vocabulary, code_points: bool) -> HFParts:
    """The parts for byte pair encoding with merges."""
    merges = incompatibilities.usable_merges(vocabulary)
    entry = vocabulary.pre_tokenizer
    byte_level = entry.byte_encode
    normalizer, pre_tokenizer = _split(vocabulary, code_points)
    return HFParts(
        normalizer,
        pre_tokenizer,
        _byte_level() if byte_level else _decoder(vocabulary),
        byte_pair_model(
            vocabulary.token_to_id,
            merges.pairs,
            byte_fallback=not byte_level,
            ignore_merges=entry.ignore_merges,
        ),
        [
            *incompatibilities.dropped_merges(merges),
            *incompatibilities.missing_bytes(vocabulary, _MISSING[byte_level]),
            *_line_breaks(vocabulary),
            *_other_models(vocabulary),
            *_readers(vocabulary, code_points),
        ],
    )


_MISSING = {
    True: "their neighbours can merge here",
    False: "a whole character with one of them is left out here",
}


def _split(vocabulary: Vocabulary, code_points: bool) -> tuple[Part, Part]:
    """The normalizer and the pre-tokenizer."""
    entry, drops = vocabulary.pre_tokenizer, vocabulary.tokenizer_model.drops_white_space
    steps = [ESCAPED_SPACES] if entry.escape_whitespaces else []
    if entry.prepend_space and code_points:
        raise NotExpressibleError(
            f"{entry.name} puts a space in front of words, which no pre-tokenizer can do; without "
            "code_points=True a normalizer does it"
        )
    if vocabulary.makes_lower_case:
        steps += LOWER_CASE
    match _way(vocabulary, code_points):
        case _Way.BORDERS:
            steps += border_steps(entry, drops_white_space=drops)
            splits = [AT_BORDERS]
        case _Way.CODE_POINTS:
            splits = [split(pattern) for pattern in oniguruma(entry)]
        case _Way.ORIGINAL:
            splits = [] if _splits_at_white_space(vocabulary) else [*PORTABLE[entry.family]]
    if drops and splits != [AT_BORDERS]:
        splits.insert(0, WHITE_SPACE_SPLIT)
    if entry.byte_encode and splits[-1]["type"] != "ByteLevel":
        splits.append(_byte_level())
    return sequence("normalizers", steps), sequence("pretokenizers", splits)


class _Way(Enum):
    """How a text is split."""

    ORIGINAL = "as in the models' own files"
    BORDERS = "at borders that a normalizer makes"
    CODE_POINTS = "by lists of code points, only for 0.x"


def _way(vocabulary: Vocabulary, code_points: bool) -> _Way:
    family = vocabulary.pre_tokenizer.family
    if _splits_at_white_space(vocabulary):
        return _Way.ORIGINAL
    if code_points:
        return _Way.CODE_POINTS if family in BY_ITS_UNICODE or family not in PORTABLE else _Way.ORIGINAL
    return _Way.ORIGINAL if family in PORTABLE else _Way.BORDERS


def _splits_at_white_space(vocabulary: Vocabulary) -> bool:
    """Whether nothing is left to split once white space is split off."""
    model = vocabulary.tokenizer_model
    return model.drops_white_space and vocabulary.pre == model.own_pre


def _byte_level() -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}


def _decoder(vocabulary: Vocabulary) -> dict[str, Any] | None:
    steps = [{"type": "ByteFallback"}, {"type": "Fuse"}]
    if vocabulary.pre_tokenizer.escape_whitespaces:
        steps.insert(0, replace(SPACE, " "))
    return sequence("decoders", steps)


# ---- what only some models have -------------------------------------------------------------------------


def _line_breaks(vocabulary: Vocabulary) -> Iterator[Incompatibility]:
    """Words of line breaks that are tokens, which llama.cpp takes without merges (Gemma 4)."""
    if not vocabulary.pre_tokenizer.newline_runs:
        return
    encoder = WordEncoder(vocabulary.pre_tokenizer, vocabulary.token_to_id, vocabulary.merges)
    words = [token for token in vocabulary.token_to_id if token and not token.strip("\n")]
    unmade = [word for word in words if len(encoder.merged(list(word))) > 1]
    if unmade:
        lengths = ", ".join(str(len(word)) for word in unmade[:5])
        yield Incompatibility(
            "runs_of_line_breaks",
            f"{len(unmade)} runs of line breaks are tokens that no merges make, which only llama.cpp takes: those of "
            f"{lengths}{' …' if len(unmade) > 5 else ''}",
            len(unmade),
        )


def _other_models(vocabulary: Vocabulary) -> Iterator[Incompatibility]:
    if vocabulary.tokenizer_model.has_sequences:
        yield Incompatibility("dna", "sequences between <dna> and </dna> are encoded like any other text")
    if vocabulary.makes_lower_case:
        yield lower_case_limit()


def lower_case_limit(is_dotted_i_replaced: bool = True) -> Incompatibility:
    """Where the library makes other letters lower case than llama.cpp, or makes them otherwise."""
    dotted = (
        "" if is_dotted_i_replaced else ", and İ (U+0130) becomes two characters there and i in llama.cpp"
    )
    return Incompatibility(
        "lower_case",
        f"letters that got a lower case after Unicode 15.1 are lowercased by libraries that know it{dotted}",
    )


# ---- what only some versions of the library have ----------------------------------------------------------


def _readers(vocabulary: Vocabulary, code_points: bool) -> Iterator[Incompatibility]:
    """What depends on the version of the library that reads the file."""
    family = vocabulary.pre_tokenizer.family
    way = _way(vocabulary, code_points)
    if way is _Way.BORDERS:
        yield Incompatibility(
            "border_character",
            "the noncharacter U+FDEF, which should not be in texts, is left out here: a normalizer puts it after words",
        )
    if way is _Way.CODE_POINTS:
        yield Incompatibility(
            NOT_IN_1,
            "tokenizers 1.0 does not read lists of code points, 0.x does (without code_points=True, both read the "
            "file)",
        )
    elif incompatibilities.bytes_without_tokens(vocabulary):
        yield Incompatibility(
            NOT_IN_1, "tokenizers 1.0 does not read a vocabulary without a token for each byte; 0.x does"
        )
    elif characters := _characters_of_their_own(vocabulary):
        yield Incompatibility(
            "tokens_of_one_character",
            f"{len(characters)} tokens of one character that no merges make, such as "
            f"{quoted_token(vocabulary, characters[0])}, are only found by tokenizers 1.0",
            len(characters),
        )
    if way is _Way.ORIGINAL and family in BY_ITS_UNICODE:
        yield Incompatibility(
            "newer_unicode",
            "characters that came after Unicode 15.1 are not letters, digits or marks in llama.cpp; here they are what "
            "the library's Unicode version says (code_points=True lists those of 15.1, for tokenizers 0.x)",
        )
    if way is _Way.ORIGINAL and family in IGNORING_CASE:
        yield Incompatibility(
            "long_s",
            "ſ (U+017F) after an apostrophe is a contraction in tokenizers 0.x, which ignores case there, and not "
            "in llama.cpp and 1.0",
        )


def _characters_of_their_own(vocabulary: Vocabulary) -> list[int]:
    """Tokens of one character that its bytes do not merge to, written in bytes or as the character itself."""
    if not vocabulary.pre_tokenizer.byte_encode:
        return []
    special = set(vocabulary.special_token_ids)
    encoder = WordEncoder(vocabulary.pre_tokenizer, vocabulary.token_to_id, vocabulary.merges)
    return [
        token
        for text, token in vocabulary.token_to_id.items()
        if (
            len(text) <= 4
            and token not in special
            and _is_one_character(text)
            and len(encoder.merged(list(text))) > 1
        )
        or (len(text) == 1 and text not in CHAR_BYTES and token not in special)
    ]


def _is_one_character(text: str) -> bool:
    """Whether `text`, in the byte alphabet, is the bytes of one character."""
    if not CHAR_BYTES.keys() >= set(text):
        return False
    try:
        return len(bytes(map(CHAR_BYTES.__getitem__, text)).decode()) == 1
    except UnicodeDecodeError:
        return False
