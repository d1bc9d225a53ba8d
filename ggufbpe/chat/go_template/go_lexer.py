"""Splits the source of a Go template, which is `viewed`, into tokens. Source: text/template/parse/lex.go of Go 1.19."""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from ..._util.errors import ChatError
from ..template.lexer import MOST_TOKENS
from ..template.values import plain

SPACE = " \t\r\n"
_KEYWORDS = ("block", "break", "continue", "define", "else", "end", "if", "nil", "range", "template", "with")
_WORD = r"[A-Za-z0-9_\x80-\xff]"
_TOKEN = re.compile(
    rf"""(?P<space>[ \t\r\n]+) | (?P<declare>:=) | (?P<assign>=) | (?P<pipe>\|) | (?P<open>\() | (?P<close>\))
    | (?P<string>"(?:[^"\\\n]|\\[^\n])*" | `[^`]*`) | (?P<comma>,)
    | (?P<number>[+-]?\.?[0-9](?:[eE][+-](?=[0-9])|[0-9A-Za-z_.])*) | (?P<variable>\${_WORD}*)
    | (?P<field>\.{_WORD}+) | (?P<dot>\.) | (?P<word>{_WORD}+)""",
    re.VERBOSE,
)
_AFTER_NAME = re.compile(r"[ \t\r\n.,|:()]|\}\}|\Z")


class GoToken(NamedTuple):
    """A token, and where it begins."""

    kind: str  # "text", "{{", "}}", "the end", a keyword, or the name of a group of `_TOKEN`
    text: str
    position: int


def fail(source: str, position: int, reason: str) -> NoReturn:
    """Raise a `ChatError` with the line and column of a place in the source."""
    before = source[:position]
    column = len(plain(before[before.rfind("\n") + 1 :])) + 1
    raise ChatError(f"column {column}: {plain(reason)}", before.count("\n") + 1)


def go_tokens(source: str) -> list[GoToken]:
    """The tokens of a template, the last of which is "the end". `ChatError` for what is none."""
    found: list[GoToken] = []
    start = 0
    while (at := source.find("{{", start)) >= 0:
        trims = re.match(r"-[ \t\r\n]", source[at + 2 : at + 4]) is not None
        text = source[start:at].rstrip(SPACE) if trims else source[start:at]
        if text:
            found.append(GoToken("text", text, start))
        inside = at + 4 if trims else at + 2
        if source.startswith("/*", inside):
            end = source.find("*/", inside + 2)
            start = _after_action(source, end + 2) if end > 0 else 0
            if not start:
                fail(source, at, "a comment that is not closed before the action ends")
        else:
            found.append(GoToken("{{", "", at))
            start = _action(source, inside, found)
    if start < len(source):
        found.append(GoToken("text", source[start:], start))
    return [*found, GoToken("the end", "", len(source))]


def _after_action(source: str, at: int) -> int:
    """The place after a closing delimiter at `at` and after the white space that it trims; 0 if there is none."""
    match = re.compile(r"\}\}|[ \t\r\n]-\}\}[ \t\r\n]*").match(source, at)
    return match.end() if match else 0


def _action(source: str, at: int, found: list[GoToken]) -> int:
    """Add the tokens of an action, whose inside begins at `at`; return the place after it."""
    while not (after := _after_action(source, at)):
        match = _TOKEN.match(source, at)
        if source[at : at + 1] == "'":
            fail(source, at, "a constant of one character is not supported")
        if match is None:
            fail(source, at, f"unexpected {source[at]}" if at < len(source) else "unclosed action")
        kind, text, end = match.lastgroup or "", match[0], match.end()
        if kind == "space" and source.startswith("-}}", end):
            text, end = text[1:], end - 1  # the last one belongs to the closing delimiter
        if kind in ("variable", "field", "dot", "word"):
            letters = plain(text.lstrip("$.").replace("_", ""))
            if not _AFTER_NAME.match(source, end) or not all(c.isalpha() or c.isdecimal() for c in letters):
                fail(source, end, f"bad character after {text}")
        if len(found) > MOST_TOKENS:
            fail(source, at, f"a template of more than {MOST_TOKENS:,} tokens")
        found.append(GoToken(text if text in _KEYWORDS else kind, text, at))
        at = end
    found.append(GoToken("}}", "", at))
    return after
