"""This project's own endpoints about budgets: texts, parts of texts and chats that have at most so many tokens."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from .._util.errors import printable
from .._util.utf8 import byte_length
from ..chat.fitting import fit_chat
from ..chat.prompt_tokenizer import SIDES
from ..tokenizer import Tokenizer
from ..tokenizer.boundaries import SEPARATORS
from ..tokenizer.budget_methods import check_overlap
from ..tokenizer.truncation import CUT_AT
from .failures import RequestError
from .llama_server import refused_chat, template_in_force
from .request_body import (
    MOST_OVERLAPPING,
    MOST_PARTS,
    given_choice,
    given_flags,
    given_number,
    given_template,
    require_object,
    required_number,
    required_text,
)
from .served_models import Models

_LONGEST_NAME = 20  # characters of a name that are compared
_MOST_FIELDS = 64  # of a body whose names are compared
_OPTIONAL = ("answer", "keep", "chat_template")
_LIKENESS = 0.85  # of a misspelt name; that of llama-server's n_keep and keep is 0.8
_OF_A_FIT = ("limit", "model", *_OPTIONAL)


def fits_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/fits`: whether `text` has at most `limit` tokens; their number, or null if there are more."""
    given = require_object(body)
    text, limit, flags = (
        required_text(given, "text"),
        required_number(given, "limit"),
        given_flags(given, False),
    )
    count = models.of(body).count(text, limit=limit, **flags)
    return {"fits": count <= limit, "count": count if count <= limit else None}


def truncate_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/truncate`: the longest part of `text` that has at most `limit` tokens, and how many it has."""
    given = require_object(body)
    text, limit, flags = (
        required_text(given, "text"),
        required_number(given, "limit"),
        given_flags(given, False),
    )
    marker = required_text(given, "marker") if "marker" in given else ""
    side = given_choice(given, "side", SIDES)
    at = given_choice(given, "at", CUT_AT)
    tokenizer = models.of(body)
    cut = tokenizer.truncate(text, limit, side=side, marker=marker, at=at, **flags)
    return {"text": cut, "count": tokenizer.count(cut, **flags), "truncated": cut != text}


def split_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/split`: the spans of the parts of `text` that have at most `size` tokens each, in characters."""
    given = require_object(body)
    text, size = required_text(given, "text"), required_number(given, "size", least=1)
    overlap, flags = given_number(given, "overlap"), given_flags(given, False)
    boundaries: Any = required_text(given, "boundaries") if "boundaries" in given else "paragraph"
    keep = given_choice(given, "keep_separator", SEPARATORS)
    tokenizer = models.of(body)
    _check_parts(tokenizer, text, size, overlap, flags)
    spans = tokenizer.split(text, size, overlap, boundaries, keep, **flags)
    return {"spans": [list(span) for span in spans]}


def _check_parts(tokenizer: Tokenizer, text: str, size: int, overlap: int, flags: dict[str, bool]) -> None:
    """Raise `RequestError` 400 if `text` may have too many parts, or too much in all of them.

    Few tokens have less than a byte, so there are at most about as many parts as bytes for each token that a part
    adds; more where parts end early, at boundaries.
    """
    length, special = byte_length(text), tokenizer.count("", **flags)
    added = check_overlap(size, overlap, special)[0] - overlap
    total = length * min(size, length) // added
    if length > MOST_PARTS * added:
        besides = f", besides the {special} of 'add_special'" if special else ""
        problem = (
            f"'size' must exceed 'overlap' by at least {-(-length // MOST_PARTS) + special} for a text of {length} "
            f"bytes: each part must add at least one token for every {MOST_PARTS} bytes{besides}"
        )
    elif overlap and total > MOST_OVERLAPPING:
        problem = (
            f"with this 'overlap' the parts have about {total} bytes; the limit is {MOST_OVERLAPPING}: "
            "choose a smaller 'overlap', or send less text"
        )
    else:
        return
    if length > size or not tokenizer.fits(text, size, **flags):
        raise RequestError(400, problem)


def fit_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/fit`: the chat in `messages` with the fewest turns left out whose prompt has at most `limit` tokens.

    `answer` is room for the answer, `keep` the fields of the policy, and `chat_template` a template in place of the
    model's; the others are those of a chat. `RequestError` 400 for one that is nearly spelt as one of these three.
    """
    given = require_object(body)
    _check_spelling(given)
    limit = required_number(given, "limit")
    answer = given_number(given, "answer")
    keep = given.get("keep")
    if keep is not None and not isinstance(keep, dict):
        raise RequestError(400, "'keep' must be an object")
    tokenizer = models.of(body)
    template = given_template(given, tokenizer.chat_templates)
    if not template:
        template_in_force(tokenizer)
    chat = {name: value for name, value in given.items() if name not in _OF_A_FIT}
    try:
        return fit_chat(tokenizer, chat, limit, keep, template, answer=answer).to_dict()
    except ValueError as error:
        raise refused_chat(models, error) from None


def _check_spelling(body: dict[str, Any]) -> None:
    """Raise `RequestError` 400 for an optional field that looks misspelt: other fields of chats may have any name."""
    if len(body) > _MOST_FIELDS:
        return
    for name in body.keys() - _OF_A_FIT:
        if near := get_close_matches(name[:_LONGEST_NAME], _OPTIONAL, n=1, cutoff=_LIKENESS):
            message = f"there is no field {printable(name)}; did you mean {near[0]!r}?"
            raise RequestError(400, message, reason="a field is misspelt")
