"""Finds the smallest text that still differs.

Delta debugging (Zeller and Hildebrandt 2002): stretches are left out, first half of the text, finally single
characters and then single bytes, as long as what remains still differs. Texts are tried in batches, since some oracles
answer several in the time of one.

Each try may be expensive, so shrinking stops after a number of texts or seconds, with the smallest so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Unit = TypeVar("Unit")

Differ = Callable[[Sequence[T]], Sequence[bool]]
"""Which of several texts, or chats, differ."""

ASKED, SECONDS, BATCH = 2000, 10.0, 8


class Shrinking(Generic[T]):
    """The remaining budget for shrinking a text, or several."""

    def __init__(
        self, differ: Differ[T], asked: int = ASKED, seconds: float = SECONDS, batch: int = BATCH
    ) -> None:
        self._differ = differ
        self._left = asked
        self._end = time.monotonic() + seconds
        self._batch = batch

    def first_that_differs(self, texts: Iterable[T]) -> int | None:
        """Which of `texts` is the first that differs; None if none does, or time is up."""
        rest = iter(texts)
        number = 0
        while self._left > 0 and time.monotonic() < self._end:
            some = list(islice(rest, min(self._batch, self._left)))
            self._left -= len(some)
            answers = self._differ(some) if some else []
            for index, differs in enumerate(answers, number):
                if differs:
                    return index
            if not some:
                return None
            number += len(some)
        return None


def shrink(text: bytes, shrinking: Shrinking[bytes], hints: Sequence[bytes] = ()) -> bytes:
    """The smallest text found that differs as `text` does. `hints` are parts of it that may.

    >>> shrink(b"many words and one 1", Shrinking(lambda texts: [b"1" in text for text in texts]))
    b'1'
    """
    likely = sorted({hint for hint in hints if len(hint) < len(text)}, key=len)
    smaller = shrinking.first_that_differs(likely)
    text = text if smaller is None else likely[smaller]
    characters = [char.encode("utf-8", "surrogateescape") for char in text.decode("utf-8", "surrogateescape")]
    text = _joined(_smallest(characters, shrinking, _joined))
    return _joined(_smallest([text[index : index + 1] for index in range(len(text))], shrinking, _joined))


def _joined(units: list[bytes]) -> bytes:
    return b"".join(units)


def shrunk_json(body: Mapping[str, Any], shrinking: Shrinking[Mapping[str, Any]]) -> dict[str, Any]:
    """The smallest object found that differs as `body` does: items, members and characters are left out.

    Messages are shrunk first. Roles and types are kept, since others would mean something else.

    >>> differs = Shrinking(lambda bodies: [any("1" in t for t in body.get("messages", [])) for body in bodies])
    >>> shrunk_json({"messages": ["some", "words and 1"], "tools": []}, differs)
    {'messages': ['1']}
    """
    smallest = dict(body)
    for name in sorted(smallest, key=lambda name: name != "messages"):
        smallest = _smaller_member(smallest, name, shrinking, lambda body: body)
    return _without_members(smallest, shrinking, lambda body: body)


Whole = Callable[[Any], Mapping[str, Any]]
"""Gives the whole object with a part of it replaced."""


def _smaller(value: Any, shrinking: Shrinking[Mapping[str, Any]], whole: Whole) -> Any:
    """The smallest form of a JSON value with which the whole still differs."""
    if isinstance(value, str):
        return "".join(_smallest(list(value), shrinking, lambda units: whole("".join(units))))
    if isinstance(value, list):
        items = _smallest(list(value), shrinking, whole)
        for at in range(len(items)):
            before, behind = items[:at], items[at + 1 :]
            items[at] = _smaller(
                items[at],
                shrinking,
                lambda item, a=before, b=behind: whole([*a, item, *b]),  # type: ignore[misc]
            )
        return items
    if isinstance(value, dict):
        value = _without_members(value, shrinking, whole)
        for name in value:
            value = _smaller_member(value, name, shrinking, whole)
    return value


def _without_members(
    value: dict[str, Any], shrinking: Shrinking[Mapping[str, Any]], whole: Whole
) -> dict[str, Any]:
    return dict(_smallest(list(value.items()), shrinking, lambda units: whole(dict(units))))


def _smaller_member(
    value: dict[str, Any], name: str, shrinking: Shrinking[Mapping[str, Any]], whole: Whole
) -> dict[str, Any]:
    if name in ("role", "type"):
        return value
    member_value = _smaller(value[name], shrinking, lambda member: whole({**value, name: member}))
    return {**value, name: member_value}


def _smallest(units: list[Unit], shrinking: Shrinking[T], joined: Callable[[list[Unit]], T]) -> list[Unit]:
    """The units that remain when no stretch of them can be left out."""
    size = (len(units) + 1) // 2
    while size and units:
        before = len(units)
        start = 0
        while start < len(units):
            starts = range(start, len(units), size)
            number = shrinking.first_that_differs(joined(units[:at] + units[at + size :]) for at in starts)
            if number is None:
                break
            start = starts[number]
            del units[start : start + size]
        if size > 1 or len(units) == before:  # single units are tried again until all of them are needed
            size //= 2
    return units
