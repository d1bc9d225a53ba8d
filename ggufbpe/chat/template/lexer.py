"""Splits the source of a template into tokens as llama.cpp does.

The source has one character for each byte. A block takes away the line break after it and the white space before it
on its line. White space is that of ASCII.

Source: common/jinja/lexer.cpp, lexer.h. The names of types are those of jinja2's lexer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TypeAlias

from .values import WHITE_SPACE

Token: TypeAlias = tuple[int, str, str | int | float]

MOST_SOURCE = 1 << 20  # bytes of a template; the largest known has 51,000,
MOST_TOKENS = 20_000  # and 9,343 tokens, each of which takes up to 40 microseconds to compile
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", "'": "'", '"': '"'}
# A sequence and its type; the longer first. What opens a trimmed block has its minus taken off elsewhere.
_SYMBOLS = (
    ("-%}", "block_end"),
    ("-}}", "variable_end"),
    ("{%", "block_begin"),
    ("%}", "block_end"),
    ("{{", "variable_begin"),
    ("}}", "variable_end"),
    ("(", "lparen"),
    (")", "rparen"),
    ("{", "lbrace"),
    ("}", "rbrace"),
    ("[", "lbracket"),
    ("]", "rbracket"),
    (",", "comma"),
    (".", "dot"),
    (":", "colon"),
    ("|", "pipe"),
    ("<=", "lteq"),
    (">=", "gteq"),
    ("==", "eq"),
    ("!=", "ne"),
    ("<", "lt"),
    (">", "gt"),
    ("+", "add"),
    ("-", "sub"),
    ("~", "tilde"),
    ("*", "mul"),
    ("/", "div"),
    ("%", "mod"),
    ("=", "assign"),
)
SIGN = "sign"  # a plus or minus that does not follow an operand; words such as `else` count as operands
_BLOCK = re.compile(r"\{[%{#]")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_WORD = re.compile(r"[A-Za-z0-9_]+")
_SPACE = re.compile(r"[ \t\n\v\f\r]*")
_STRING_PARTS = {  # by the quote, up to it, or to where the string ends without one
    quote: re.compile(rf"(?:[^\\{quote}]+|\\[ntrbfv\\'\"])*") for quote in "'\""
}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_OPERANDS = frozenset(("name", "integer", "float", "string", "rparen", "rbracket"))
_ENDS = frozenset(("block_end", "variable_end", "comment", ""))


class LexerError(ValueError):
    """A source that cannot be tokenized; `position` is the place, in bytes."""

    def __init__(self, reason: str, position: int) -> None:
        self.position = position
        super().__init__(reason)


class TooLargeError(LexerError):
    """A source beyond a limit that llama.cpp does not have."""


class _Cursor:
    """Where the lexer is, and the last tokens."""

    def __init__(self, source: str, by_position: bool) -> None:
        self.source = source
        self.by_position = by_position
        self.position = 0
        self.last = ""
        self.braces = 0
        self._counted = (0, 1)

    def line(self, position: int) -> int:
        if self.by_position:
            return position
        at, line = self._counted
        line += self.source.count("\n", at, position)
        self._counted = position, line
        return line


def uniform_breaks(source: str) -> str:
    """A source whose lines all end in a line feed."""
    return source.replace("\r\n", "\n").replace("\r", "\n")


def tokens(source: str, by_position: bool = False) -> Iterator[Token]:
    """The tokens of a template, as `viewed` gives it. `LexerError` where llama.cpp's lexer raises its exception.

    With `by_position`, each token has its position in the source with `uniform_breaks` in the place of its line.
    """
    ends_in_break = source.endswith("\n")
    source = uniform_breaks(source)
    cursor = _Cursor(source[:-1] if ends_in_break else source, by_position)
    count = 0
    while cursor.position < len(cursor.source):
        count += 1
        if count > MOST_TOKENS:
            raise TooLargeError(f"a chat template of more than {MOST_TOKENS:,} tokens", cursor.position)
        if cursor.last in _ENDS:
            start = cursor.position
            data = _text(cursor)
            if data:
                cursor.last = "data"
                yield cursor.line(start), "data", data
                continue
        if cursor.source.startswith("{#", cursor.position):
            yield _comment(cursor)
            continue
        token = _in_block(cursor)
        if token is None:
            return
        cursor.last = token[1]
        yield token


def _text(cursor: _Cursor) -> str:
    """The text up to the next block, without the white space that blocks take away."""
    source, start = cursor.source, cursor.position
    before = source[start - 3 : start] if start > 3 else ""
    strips_right = before[:1] == "-" and before[1:2] in ("%", "}", "#") and before[2:] == "}"
    takes_break = before[1:2] in ("#", "%", "-") and before[2:] == "}"
    match = _BLOCK.search(source, start)
    end = cursor.position = match.start() if match else len(source)
    if match and match[0] != "{{":
        current = end
        while current > start:
            if current == 1:
                end = 0
                break
            if source[current - 1] == "\n":
                end = current
                break
            if source[current - 1] not in WHITE_SPACE:
                break
            current -= 1
    text = source[start:end] if end > start else ""
    if takes_break:
        text = text.removeprefix("\n")
    if strips_right:
        text = text.lstrip(" \t\r\n")
    if match and source.startswith("-", match.end()):
        text = text.rstrip(" \t\r\n")
    return text


def _comment(cursor: _Cursor) -> Token:
    start = cursor.position
    end = cursor.source.find("#}", cursor.position + 2)
    if end < 0:
        raise LexerError("missing end of comment tag", max(len(cursor.source) - 2, 0))
    cursor.position = end + 2
    cursor.last = "comment"
    return cursor.line(start), "comment", cursor.source[start + 2 : end]


def _in_block(cursor: _Cursor) -> Token | None:
    """One token of a statement or expression; None at the end of the source."""
    source = cursor.source
    if cursor.last in ("variable_begin", "block_begin") and source.startswith("-", cursor.position):
        cursor.position += 1
    space = _SPACE.match(source, cursor.position)
    assert space is not None
    position = cursor.position = space.end()
    if position >= len(source):
        return None
    character = source[position]
    if character in "+-" and not (character == "-" and source[position + 1 : position + 2] in ("%", "}")):
        if cursor.last in ("data", ""):
            raise LexerError(f"unexpected character: {character}", position)
        if cursor.last not in _OPERANDS:
            return _signed(cursor, character)
    for symbol, kind in _SYMBOLS:
        if source.startswith(symbol, position) and not (symbol == "}}" and cursor.braces):
            return _symbol(cursor, symbol, kind)
    if character in "'\"":
        return _string(cursor, character)
    number = _NUMBER.match(source, position)
    if number:
        return _number(cursor, number[0], number.end())
    word = _WORD.match(source, position)
    if not word:
        raise LexerError(f"unexpected character: {character}", position)
    cursor.position = word.end()
    return cursor.line(position), "name", word[0]


def _symbol(cursor: _Cursor, symbol: str, kind: str) -> Token:
    start = cursor.position
    cursor.position += len(symbol)
    if kind == "variable_begin":
        cursor.braces = 0
    elif kind == "lbrace":
        cursor.braces += 1
    elif kind == "rbrace":
        cursor.braces -= 1
    return cursor.line(start), kind, symbol


def _signed(cursor: _Cursor, sign: str) -> Token:
    """A sign, together with the number that follows, if any."""
    number = _NUMBER.match(cursor.source, cursor.position + 1)
    if number:
        return _number(cursor, sign + number[0], number.end())
    start = cursor.position
    cursor.position += 1
    return cursor.line(start), SIGN, sign


def _number(cursor: _Cursor, digits: str, end: int) -> Token:
    start, cursor.position = cursor.position, end
    if "." in digits:
        number = float(digits)
        if math.isinf(number):
            raise LexerError("stod", start)
        return cursor.line(start), "float", number
    if len(digits) > 20 or not -(1 << 63) <= int(digits) < 1 << 63:
        raise LexerError("stoll", start)
    return cursor.line(start), "integer", int(digits)


def _string(cursor: _Cursor, quote: str) -> Token:
    source, start = cursor.source, cursor.position
    text = _STRING_PARTS[quote].match(source, start + 1)
    assert text is not None
    end = text.end()
    if source.startswith("\\", end):
        if end + 1 == len(source):
            raise LexerError("unexpected end of input after escape character", end)
        raise LexerError(f"unknown escape character \\{source[end + 1]}", end + 2)
    if end == len(source):
        raise LexerError("unexpected end of input during consume_while", end)
    cursor.position = end + 1
    return cursor.line(start), "string", _ESCAPED.sub(lambda escape: _ESCAPES[escape[1]], text[0])
