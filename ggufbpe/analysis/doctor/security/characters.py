"""Finds characters that deceive: invisible ones, those that change direction, terminal controls, mixed alphabets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")
_MARKS_OF_DIRECTION = "\u200e\u200f\u061c"
# Nothing, wherever they stand; tags carry hidden ASCII. A byte order mark may begin a file.
_NOTHING = re.compile(
    "[\u200b\u2060-\u2064\u206a-\u206f\u180e\ufff9-\ufffb\U000e0001-\U000e007f\U000e0100-\U000e01ef]|(?<!^)\ufeff"
)
# Normal in some scripts and in emoji.
_JOINERS = re.compile(
    f"[{_MARKS_OF_DIRECTION}\u200c\u200d\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u2800\u3164\ufe00-\ufe0e\uffa0]"
)
# Between two Latin letters they are not.
_JOINERS_IN_WORDS = re.compile(f"(?<=[A-Za-z]){_JOINERS.pattern}(?=[A-Za-z])")
_TERMINAL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\x80-\x84\x86-\x9f]|\r(?!\n|$)")
# The same written as escapes of a template or of a shell.
_ESCAPED_TERMINAL = re.compile(r"\\(?:x1b|x9b|033|e\[|u001b|u009b|x08|x07)", re.IGNORECASE)
_ESCAPED_UNSEEN = re.compile(r"\\(?:u20(?:0b|2[a-e]|6[0-46-9])|ufeff|U000e00[0-7][0-9a-f])", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]{3,}")
_ALPHABETS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")
# Small and capital letters of other alphabets that look like Latin ones.
_LOOKALIKES = dict(
    zip(
        "аеорсухіјѕԁһԛԝӏАВЕКМНОРСТХІЈЅορνιαΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aeopcyxijsdhqwlABEKMHOPCTXIJSopviaABEZHIKMNOPTYX"
    )
)


class Odd(NamedTuple):
    """A character of a text that deceives, by the id of its rule."""

    id: str
    at: int
    shown: str


def odd_characters(text: str, is_template: bool = True) -> Iterator[Odd]:
    """The first place of each kind."""
    searched = [
        ("unseen_character", _DIRECTION),
        ("unseen_character", _NOTHING),
        ("terminal_escape", _TERMINAL),
        ("unseen_character", _JOINERS_IN_WORDS),
        ("odd_character", _JOINERS),
    ]
    if is_template:
        searched += [("terminal_escape", _ESCAPED_TERMINAL), ("unseen_character", _ESCAPED_UNSEEN)]
    for id, pattern in searched:
        if match := pattern.search(text):
            shown = match[0] if len(match[0]) > 1 else f"U+{ord(match[0]):04X}"
            number = sum(1 for _ in pattern.finditer(text))
            yield Odd(id, match.start(), f"{shown}{f', {number} times' if number > 1 else ''}")
    if word := mixed_word(text):
        yield Odd("mixed_scripts", word.start(), word[0])


def mixed_word(text: str) -> re.Match[str] | None:
    """The first word with Latin letters and letters of another alphabet that look like Latin ones."""
    if text.isascii():
        return None
    for word in _LETTERS.finditer(text):
        if word[0].isascii() or not any(char in _LOOKALIKES for char in word[0]):
            continue
        alphabets = {_alphabet(char) for char in word[0]}
        if "LATIN" in alphabets and len(alphabets) > 1:
            return word
        if all(char in _LOOKALIKES for char in word[0]) and skeleton(word[0]).lower() in _ROLES:
            return word
    return None


_ROLES = frozenset(("system", "user", "assistant", "tool", "developer", "role", "content"))


def _alphabet(char: str) -> str:
    name = unicodedata.name(char, "").partition(" ")[0]
    return name if name in _ALPHABETS else ""


def skeleton(text: str) -> str:
    """A text as it looks: without what is invisible, and in Latin letters where others look like them.

    >>> skeleton("ѕystem\\u200b")
    'system'
    """
    for pattern in (_DIRECTION, _NOTHING, _JOINERS):
        text = pattern.sub("", text)
    return "".join(_LOOKALIKES.get(char, char) for char in text)
