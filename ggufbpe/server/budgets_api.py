"""This project's own endpoints about budgets: texts, parts of texts and chats that have at most so many tokens."""

from __future__ import annotations

from typing import Any

from ..chat.fitting import fit_chat
from ..errors import ChatError
from .failures import RequestError
from .llama_server import template_in_force
from .request_body import given_flag, require_object, required_text
from .served_models import Models

_OF_A_FIT = ("limit", "answer", "keep", "model")


def fits_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/fits`: whether `text` has at most `limit` tokens; their number, or null if there are more."""
    given = require_object(body)
    text, limit, flags = required_text(given, "text"), required_number(given, "limit"), _flags(given)
    count = models.of(body).count(text, limit=limit, **flags)
    return {"fits": count <= limit, "count": count if count <= limit else None}


def truncate_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/truncate`: the longest part of `text` that has at most `limit` tokens, and how many it has."""
    given = require_object(body)
    text, limit, flags = required_text(given, "text"), required_number(given, "limit"), _flags(given)
    marker = required_text(given, "marker") if "marker" in given else ""
    side = _choice(given, "side", ("right", "left", "middle"))
    at = _choice(given, "at", ("character", "word"))
    tokenizer = models.of(body)
    try:
        cut = tokenizer.truncate(text, limit, side=side, marker=marker, at=at, **flags)
    except ValueError as error:
        raise RequestError(400, str(error)) from None
    return {"text": cut, "count": tokenizer.count(cut, **flags), "truncated": cut != text}


def split_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/split`: the spans of the parts of `text` that have at most `size` tokens each, in characters."""
    given = require_object(body)
    text, size = required_text(given, "text"), required_number(given, "size")
    overlap = required_number(given, "overlap") if "overlap" in given else 0
    boundaries = required_text(given, "boundaries") if "boundaries" in given else "paragraph"
    keep = _choice(given, "keep_separator", ("end", "start", False))
    tokenizer = models.of(body)
    try:
        spans = tokenizer.split(
            text, size, overlap, boundaries, keep, parse_special=given_flag(given, "parse_special", True)
        )
    except ValueError as error:
        raise RequestError(400, str(error)) from None
    return {"spans": [list(span) for span in spans]}


def fit_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/fit`: the chat in `messages` with the fewest turns left out whose prompt has at most `limit` tokens.

    `answer` is room for the answer, and `keep` the fields of the policy; the others are those of a chat.
    """
    given = require_object(body)
    limit = required_number(given, "limit")
    answer = required_number(given, "answer") if "answer" in given else 0
    keep = given.get("keep")
    if keep is not None and not isinstance(keep, dict):
        raise RequestError(400, "'keep' must be an object")
    tokenizer = models.of(body)
    template_in_force(tokenizer)
    chat = {name: value for name, value in given.items() if name not in _OF_A_FIT}
    try:
        return fit_chat(tokenizer, chat, max(limit - answer, 0), keep).to_dict()
    except (ChatError, ValueError) as error:
        raise RequestError(400, str(error)) from None


def required_number(body: dict[str, Any], name: str) -> int:
    """A required integer of 0 or more."""
    given = body.get(name)
    if type(given) is not int or not 0 <= given < 1 << 31:
        raise RequestError(400, f"'{name}' is required and must be an integer of 0 or more")
    return given


def _choice(body: dict[str, Any], name: str, allowed: tuple[Any, ...]) -> Any:
    given = body.get(name, allowed[0])
    if not any(given is each or (isinstance(given, str) and given == each) for each in allowed):
        raise RequestError(400, f"'{name}' is one of {', '.join(map(repr, allowed))}")
    return given


def _flags(body: dict[str, Any]) -> dict[str, bool]:
    """`add_special`, by default false, and `parse_special`, by default true."""
    return {
        name: given_flag(body, name, name == "parse_special") for name in ("add_special", "parse_special")
    }
