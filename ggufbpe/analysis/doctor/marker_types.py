"""Gives the markers of a file the types that they have in sound files, where their own types are lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ...models.known_families import KNOWN_FAMILIES
from .facts import Facts

# Tags of reasoning and tool calls, which are part of the answer. llama.cpp's converter makes them user-defined, since
# tokenizer.json does not call them special; its source is conversion/base.py, get_vocab_base.
_TAGS = ("think", "tool_call", "tool_response")
_FEWEST_CODES = 64
_NUMBER = re.compile(r"\d+")
_RESERVED = re.compile(r"(?i)reserved|unused|special|control|extra|dummy|placeholder|pad|mask")
# The texts of markers that are user-defined in the files of some family.
SHOWN = frozenset(
    (
        *(text for family in KNOWN_FAMILIES for text in family.shown),
        *(f"<{slash}{name}>" for name in _TAGS for slash in ("", "/")),
    )
)


def types_of_markers(model: Facts, markers: Iterable[int]) -> dict[str, list[int]]:
    """Return the markers, ascending, by the name of the type that each must have.

    Nearly all are control tokens. One that a known family shows, such as the quotation mark of Gemma 4's tool calls, is
    user-defined: as a control token it would vanish from what the model writes. So are codes of speech.
    """
    found: dict[str, list[int]] = {"CONTROL": [], "USER_DEFINED": [], "UNKNOWN": []}
    markers = sorted(markers)
    codes = speech_codes([model.tokens[token] for token in markers])
    for token in markers:
        is_unknown = token == model.unknown_token and model.kind.has_scores
        is_shown = model.tokens[token] in SHOWN or model.tokens[token] in codes
        found["USER_DEFINED" if is_shown else "UNKNOWN" if is_unknown else "CONTROL"].append(token)
    return found


def speech_codes(texts: Sequence[str]) -> set[str]:
    """Return the texts that are many but for a number, as <|0|> to <|4099|>, unless they are reserved for markers."""
    forms = [_NUMBER.sub("0", text) for text in texts]
    many = {form for form, count in Counter(forms).items() if count >= _FEWEST_CODES}
    return {text for text, form in zip(texts, forms) if form in many and not _RESERVED.search(text)}


def set_marker_types(model: Facts, markers: Iterable[int]) -> str:
    """Return the command that gives markers their types."""
    return model.set_types(**types_of_markers(model, markers))


def listed_markers(model: Facts) -> list[int]:
    """Return the tokens that have the text of a marker of the model's family, where the family lists these."""
    texts = (*model.family.hidden, *model.family.shown) if model.family else ()
    return sorted(model.ids[text] for text in texts if text in model.ids)
