"""Imports unigram models from a tokenizer.json: pieces with scores, the charsmap, and rules for spaces (T5, XLM-R).

convert_hf_to_gguf.py takes the rules for spaces from other settings; this module takes them from the file's own
steps.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterator
from typing import Any

from ..._util.spelling import SPACE
from ...gguf.constants import TokenizerKey, TokenType
from ..imported import NotImportableError
from ..incompatibilities import Incompatibility
from .hf_document import HFDocument, charsmap_of
from .hf_limits import metaspace_limits, tokens_across_words

_K = TokenizerKey
_ONE_SPACE = (" {2,}", " +", r"\s+")  # patterns whose matches become one space
_ENDS = r"\A +| +\z"
_WITHOUT_STEP = (
    "llama.cpp has nothing but composition (NFC) and a charsmap",
    "llama.cpp composes texts before the charsmap, not behind it",
)


def import_unigram(read: HFDocument) -> tuple[dict[str, Any], list[Incompatibility]]:
    """The keys of UGM, and what llama.cpp does differently."""
    unknown = read.model.get("unk_id")
    size = len(read.tokens)
    if unknown is not None and (type(unknown) is not int or not 0 <= unknown < size):
        raise NotImportableError(f"the unknown token is {unknown!r}, which is not a token id")
    types, scores = read.types[:], [float(score) for score in read.scores]
    if unknown is not None and not read.config.section:
        types[unknown] = int(TokenType.UNKNOWN)
    read.config.set_types(types)
    for index, score in read.config.written_scores(size).items():
        scores[index] = score
    single = array("f", scores).tolist()
    told: list[Incompatibility] = []
    rounded = sum(map(operator.ne, single, scores))
    if rounded:
        told.append(
            Incompatibility(
                "rounded_scores", "a GGUF has scores in single precision; these have more digits", rounded
            )
        )
    if not {TokenType.UNUSED, TokenType.BYTE}.isdisjoint(types) and not read.config.section:
        told.append(
            Incompatibility("unused_tokens", "llama.cpp finds unused tokens in texts by their scores")
        )
    charsmap, removes, puts, composes = _normalization(read, told)
    keys: dict[str, Any] = {
        _K.TOKEN_TYPE: types,
        _K.SCORES: single,
        _K.ADD_PREFIX: puts,
        _K.REMOVE_EXTRA_WS: removes,
    }
    if composes or read.config.flag(_K.NORMALIZER_NFC) is not None:
        keys[_K.NORMALIZER_NFC] = composes  # the file's own steps count, whatever is written beside it
    if charsmap:
        keys[_K.PRECOMPILED_CHARSMAP] = array("b", charsmap)
    if unknown is not None:
        keys[_K.UNK_ID] = unknown
    return keys, [*told, *_limits(read, removes)]


def _normalization(read: HFDocument, told: list[Incompatibility]) -> tuple[bytes, bool, bool, bool]:
    """Return the charsmap, and whether spaces are merged, a space is put before a text, and texts are composed."""
    charsmap, removes, puts, composes = b"", False, False, False
    for part in (*read.parts("normalizer"), *read.parts("pre_tokenizer")):
        kind = part.get("type")
        pattern = part.get("pattern") or {}
        if kind == "Precompiled" and not charsmap:
            charsmap = charsmap_of(part)
        elif kind == "NFC" and not charsmap:
            # Composition and the rules for spaces do not depend on each other.
            composes = True
        elif kind == "WhitespaceSplit" or (kind == "Replace" and pattern.get("Regex") in _ONE_SPACE):
            removes = True
        elif kind == "Prepend" and part.get("prepend") == SPACE:
            puts = True
        elif kind == "Metaspace":
            puts = puts or part.get("prepend_scheme", "always") != "never"
        elif kind not in ("Strip", "Replace") or not _is_about_spaces(part):
            told.append(
                Incompatibility(
                    "normalizer", f"the step {kind} changes texts, and {_WITHOUT_STEP[kind == 'NFC']}"
                )
            )
    if removes and not any(
        map(_takes_last_spaces, (*read.parts("normalizer"), *read.parts("pre_tokenizer")))
    ):
        told.append(
            Incompatibility("spaces_at_the_end", "spaces at the end of a text stay, and llama.cpp drops them")
        )
    if removes and not puts:
        told.append(
            Incompatibility(
                "space_before_texts",
                "no space is put before a text; llama.cpp always puts one where it removes spaces",
            )
        )
    if composes:
        told.append(
            Incompatibility(
                "composition",
                "texts are composed (NFC), which llama.cpp does from build b11739 on; older builds do not",
            )
        )
    written = read.config.section
    flags = [written.get(key) for key in (_K.REMOVE_EXTRA_WS, _K.ADD_PREFIX)]
    if flags[0] is removes and isinstance(flags[1], bool) and (removes or flags[1] is puts):
        puts = flags[1]  # with spaces removed, one is put before every text
    return charsmap, removes, puts, composes


def _takes_last_spaces(part: dict[str, Any]) -> bool:
    kind = part.get("type")
    if kind == "Strip":
        return part.get("strip_right") is True
    return kind == "WhitespaceSplit" or (part.get("pattern") or {}).get("Regex") == _ENDS


def _is_about_spaces(part: dict[str, Any]) -> bool:
    pattern = part.get("pattern") or {}
    return part.get("type") == "Strip" or pattern.get("String") == " " or pattern.get("Regex") == _ENDS


def _limits(read: HFDocument, removes: bool) -> Iterator[Incompatibility]:
    if read.model.get("byte_fallback"):
        yield Incompatibility("byte_fallback", "the file has byte fallback, and llama.cpp's Unigram has none")
    steps = read.parts("pre_tokenizer")
    splits_at_white_space = any(part.get("type") == "WhitespaceSplit" for part in steps)
    if splits_at_white_space or any(
        part.get("type") == "Metaspace" and part.get("split", True) for part in steps
    ):
        yield from tokens_across_words(read, removes)
    yield from metaspace_limits(read, removes)
    if splits_at_white_space:
        yield Incompatibility(
            "white_space",
            "the file splits at all white space of Unicode; llama.cpp only at what the charsmap maps to a space",
        )
    if any(part.get("type") == "Precompiled" for part in read.parts("normalizer")):
        yield Incompatibility(
            "charsmap_by_graphemes",
            "the library replaces a character together with the marks on it, llama.cpp the longest sequence in the map",
        )
    yield Incompatibility(
        "control_tokens_in_text",
        "the library finds control tokens in plain text, too, and llama.cpp does not",
    )
