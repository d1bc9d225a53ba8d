"""Which characters other programs' tokenizers treat otherwise than llama.cpp, by the name of the limit."""

from __future__ import annotations

from collections.abc import Callable

from .._util.unicode_classes import class_of


def _class_of(char: str) -> str:
    return class_of(ord(char)) if char > "\x7f" else ""


# Limits about characters (`Incompatibility.name`), and whether they concern a given one.
CHARACTERS: dict[str, Callable[[str], bool]] = {
    "newer_unicode": lambda char: _class_of(char) == "-",
    "long_s": lambda char: char == "\u017f",
    "older_punctuation": lambda char: _class_of(char) == "P" or char in "\u166d\U000111c9",
    "escaped_spaces": lambda char: char == "\u2581",
    "border_character": lambda char: char == "\ufdef",
}
