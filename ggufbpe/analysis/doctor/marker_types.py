"""Gives the markers of a file the types that they have in sound files, where their own types are lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ...models.known_families import KNOWN_FAMILIES
from .facts import Facts

# Tags of reasoning and tool calls, which are part of the answer. llama.cpp's converter makes them user-defined, since
# tokenizer.json does not call them special; its source is conversion/base.py, get_vocab_base.
_TAGS = ("think", "tool_call", "tool_response")
_FEWEST_CODES = 64
_NUMBER = re.compile(r"\d+")
# Names that are reserved for markers, and timestamps.
_NO_CODE = re.compile(r"(?i)reserved|unused|special|control|extra|dummy|place.?holder|pad|mask|\d\.\d")
# The texts of markers that are user-defined in the files of some family.
_SHOWN = frozenset(
    (
        *(text for family in KNOWN_FAMILIES for text in family.shown),
        *(f"<{slash}{name}>" for name in _TAGS for slash in ("", "/")),
    )
)


def types_of_markers(model: Facts, markers: Iterable[int]) -> dict[str, list[int]]:
    """Return the markers, ascending, by the name of the type that each must have.

    Nearly all are control tokens. One that a known family shows, such as the quotation mark of Gemma 4's tool calls, is
    user-defined: as a control token it would vanish from what the model writes. So are audio codes.
    """
    found: dict[str, list[int]] = {"CONTROL": [], "USER_DEFINED": [], "UNKNOWN": []}
    markers = sorted(markers)
    shown = shown_markers([model.tokens[token] for token in markers], model.tokens)
    for token in markers:
        is_unknown = token == model.unknown_token and model.kind.has_scores
        kind = "USER_DEFINED" if model.tokens[token] in shown else "UNKNOWN" if is_unknown else "CONTROL"
        found[kind].append(token)
    return found


def shown_markers(markers: Iterable[str], tokens: Iterable[str]) -> set[str]:
    """Return the markers that are part of an answer: those that a known family shows, and audio codes."""
    markers = set(markers)
    return (markers & _SHOWN) | audio_codes(markers, tokens)


def audio_codes(markers: Iterable[str], tokens: Iterable[str]) -> set[str]:
    """Return the markers of which `tokens` has 64 or more that differ only in a number, as <|0|> to <|4099|>.

    Markers that are reserved, such as <|reserved_5|>, are no codes, nor are timestamps, such as <|0.02|>.
    """
    codes = [text for text in markers if _NUMBER.search(text) and not _NO_CODE.search(text)]
    if not codes:
        return set()
    begins = tuple({text[0] for text in codes})
    forms = Counter(_NUMBER.sub("0", text) for text in tokens if text.startswith(begins))
    return {text for text in codes if forms[_NUMBER.sub("0", text)] >= _FEWEST_CODES}


def set_marker_types(model: Facts, markers: Iterable[int]) -> str:
    """Return the command that gives markers their types."""
    return model.set_types(**types_of_markers(model, markers))


def listed_markers(model: Facts) -> list[int]:
    """Return the tokens that have the text of a marker of the model's family, where the family lists these."""
    texts = (*model.family.hidden, *model.family.shown) if model.family else ()
    return sorted(model.ids[text] for text in texts if text in model.ids)
