r"""Byte pair encoding in a tokenizer.json: patterns, merges, and what the library does otherwise.

    vocabulary -> splitting.py, limits.py -> [this file] -> hugging_face.py

The pre-tokenizer is written as the models' own files have it where that splits as llama.cpp does, because those are
all that tokenizers 1.0 reads. Else, or if asked for, each stage is a `Split` by a regular expression that lists code
points, so that the words are llama.cpp's and not those of the library's Unicode version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..models.bpe.merge import CHAR_BYTES, WordEncoder
from ..pipeline.detokenize import quoted_token
from ..spelling import SPACE
from ..unicode_classes import LOWER
from ..vocab import Vocabulary
from . import limits
from .hf_parts import NOT_IN_1, HFParts, byte_pair_model, replace, sequence
from .limits import Limit
from .originals import BY_ITS_UNICODE, IGNORING_CASE, PORTABLE, split
from .splitting import NotExpressibleError, oniguruma


def byte_pair_parts(vocabulary: Vocabulary, code_points: bool) -> HFParts:
    """The parts of a byte pair encoding that has merges."""
    merges = limits.usable_merges(vocabulary)
    entry = vocabulary.pre_tokenizer
    byte_level = entry.byte_encode
    return HFParts(
        _normalizer(vocabulary),
        _pre_tokenizer(vocabulary, code_points),
        _byte_level() if byte_level else _decoder(vocabulary),
        byte_pair_model(
            vocabulary.token_to_id,
            merges.pairs,
            byte_fallback=not byte_level,
            ignore_merges=entry.ignore_merges,
        ),
        [
            *limits.dropped_merges(merges),
            *limits.missing_bytes(vocabulary, _MISSING[byte_level]),
            *_line_breaks(vocabulary),
            *_other_models(vocabulary),
            *_readers(vocabulary, code_points),
        ],
    )


_MISSING = {
    True: "what stood on both sides of them can merge here",
    False: "a character with one of them is left out as a whole here",
}


def _normalizer(vocabulary: Vocabulary) -> dict[str, Any] | None:
    steps = [replace(" ", SPACE)] if vocabulary.pre_tokenizer.escape_whitespaces else []
    if (
        vocabulary.pre_tokenizer.prepend_space
    ):  # a Replace of nothing by U+2581 makes the library panic on some texts
        raise NotExpressibleError(
            f"{vocabulary.pre_tokenizer.name} puts a space in front of each line, for which the library has no step"
        )
    if vocabulary.makes_lower_case:
        # llama.cpp has one code point for each; of İ, the library makes two
        steps += [replace(chr(a), chr(b)) for a, b in LOWER.items() if chr(a).lower() != chr(b)]
        steps.append({"type": "Lowercase"})
    return sequence("normalizers", steps)


def _pre_tokenizer(vocabulary: Vocabulary, code_points: bool) -> dict[str, Any] | None:
    entry = vocabulary.pre_tokenizer
    known = _known_to_1(vocabulary, code_points)
    splits = [split(pattern) for pattern in oniguruma(entry)] if known is None else [*known]
    if vocabulary.tokenizer_model.drops_white_space:
        splits.insert(0, {"type": "WhitespaceSplit"})
    if entry.byte_encode and splits[-1]["type"] != "ByteLevel":
        splits.append(_byte_level())
    return sequence("pretokenizers", splits)


def _known_to_1(vocabulary: Vocabulary, code_points: bool) -> tuple[dict[str, Any], ...] | None:
    """How tokenizers 1.0 is told to split a text, or what is left when white space is out; None if it cannot be."""
    family = vocabulary.pre_tokenizer.family
    if vocabulary.tokenizer_model.drops_white_space and vocabulary.pre == vocabulary.tokenizer_model.own_pre:
        return ()
    return None if code_points and family in BY_ITS_UNICODE else PORTABLE.get(family)


def _byte_level() -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}


def _decoder(vocabulary: Vocabulary) -> dict[str, Any] | None:
    steps = [{"type": "ByteFallback"}, {"type": "Fuse"}]
    if vocabulary.pre_tokenizer.escape_whitespaces:
        steps.insert(0, replace(SPACE, " "))
    return sequence("decoders", steps)


# ---- what only some models have -------------------------------------------------------------------------


def _line_breaks(vocabulary: Vocabulary) -> Iterator[Limit]:
    """Words of line breaks that are tokens, which llama.cpp takes without merges (Gemma 4)."""
    if not vocabulary.pre_tokenizer.newline_runs:
        return
    encoder = WordEncoder(vocabulary.pre_tokenizer, vocabulary.token_to_id, vocabulary.merges)
    words = [token for token in vocabulary.token_to_id if token and not token.strip("\n")]
    unmade = [word for word in words if len(encoder.merged(list(word))) > 1]
    if unmade:
        lengths = ", ".join(str(len(word)) for word in unmade[:5])
        yield Limit(
            "runs_of_line_breaks",
            f"{len(unmade)} runs of line breaks are tokens that no merges make, which only llama.cpp takes: those of "
            f"{lengths}{' …' if len(unmade) > 5 else ''}",
            len(unmade),
        )


def _other_models(vocabulary: Vocabulary) -> Iterator[Limit]:
    if vocabulary.tokenizer_model.has_sequences:
        yield Limit("dna", "sequences between <dna> and </dna> are encoded as any other text", 1)
    if vocabulary.makes_lower_case:
        yield Limit(
            "lower_case",
            "letters that got a lower case after Unicode 15.1 are made lower case by libraries that know it",
            1,
        )


# ---- what only some versions of the library have ----------------------------------------------------------


def _readers(vocabulary: Vocabulary, code_points: bool) -> Iterator[Limit]:
    """What depends on the version of the library that reads the file."""
    family = vocabulary.pre_tokenizer.family
    known = _known_to_1(vocabulary, code_points)
    if known is None:
        yield Limit(
            NOT_IN_1,
            "tokenizers 1.0 does not read the file, 0.x does: 1.0 knows the patterns of some models only, and those "
            f"of {vocabulary.pre} are not among them",
            1,
        )
    elif limits.bytes_without_tokens(vocabulary):
        yield Limit(
            NOT_IN_1, "tokenizers 1.0 does not read a vocabulary without a token for each byte; 0.x does", 1
        )
    elif found := _characters_of_their_own(vocabulary):
        yield Limit(
            "tokens_of_one_character",
            f"{len(found)} tokens of a character that merges do not make, such as "
            f"{quoted_token(vocabulary, found[0])}, are only found by tokenizers 1.0",
            len(found),
        )
    if known is not None and family in BY_ITS_UNICODE:
        yield Limit(
            "newer_unicode",
            "characters that came after Unicode 15.1 are no letters, digits or marks in llama.cpp; here they are what "
            "the library's Unicode version says (--code-points lists those of 15.1, for tokenizers 0.x)",
            1,
        )
    if known is not None and family in IGNORING_CASE:
        yield Limit(
            "long_s",
            "ſ (U+017F) after an apostrophe is a contraction in tokenizers 0.x, which ignores case there, and none "
            "in llama.cpp and 1.0",
            1,
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
    """Whether `text` is the bytes of one character, in the alphabet of bytes."""
    if not CHAR_BYTES.keys() >= set(text):
        return False
    try:
        return len(bytes(map(CHAR_BYTES.__getitem__, text)).decode()) == 1
    except UnicodeDecodeError:
        return False
