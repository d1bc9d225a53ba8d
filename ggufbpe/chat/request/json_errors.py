"""Says why a text is not JSON, in the words of nlohmann::json, in which llama-server refuses the arguments of a call.

Source: sax_parse_internal and exception_message of nlohmann's parser, scan_string and scan_number of its lexer.
"""

from __future__ import annotations

import math
import re
from typing import Literal

_EMPTY = (
    "attempting to parse an empty input; check that your input string or stream contains the expected JSON"
)
_VALUE = "'[', '{', or a literal"
_STRING, _NUMBER, _END, _ERROR = "string literal", "number literal", "end of input", ""
_SPACE = re.compile(rb"[ \t\n\r]*")
_WORDS = {b"t": b"true", b"f": b"false", b"n": b"null"}
_SHORT = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}
_NAMES = (
    *("NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "HT", "LF", "VT", "FF", "CR", "SO", "SI"),
    *(
        "DLE",
        "DC1",
        "DC2",
        "DC3",
        "DC4",
        "NAK",
        "SYN",
        "ETB",
        "CAN",
        "EM",
        "SUB",
        "ESC",
        "FS",
        "GS",
        "RS",
        "US",
    ),
)
_INTEGER, _DIGITS = re.compile(rb"0|[1-9][0-9]*"), re.compile(rb"[0-9]+")
_CHARACTER = re.compile(
    rb"[\x20-\x21\x23-\x5b\x5d-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]"
    rb"|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}"
    rb"|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)


def reason(text: str) -> str | None:
    """What nlohmann::json says of a text; None if it has nothing against its syntax.

    >>> reason("{")
    '[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing object key - \
unexpected end of input; expected string literal'
    """
    reader = _Reader(text.encode("utf-8", "surrogatepass"))
    problem = reader.problem()
    if problem is None or problem.startswith("["):
        return problem
    line = reader.data.count(b"\n", 0, reader.at)
    column = reader.at - (reader.data.rfind(b"\n", 0, min(reader.at, len(reader.data))) + 1)
    if f"unexpected {_NUMBER}" in problem and reader.data[reader.at : reader.at + 1] == b"\n":
        column = 0  # the lexer has read the line break and put it back
    return f"[json.exception.parse_error.101] parse error at line {line + 1}, column {column}: {problem}"


class _Reader:
    """Where the lexer is: `at` counts the bytes it has read, the end of the text as one of them."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 3 if data.startswith(b"\xef\xbb\xbf") else 0
        self.start, self.error = (
            0,
            "",
        )  # of what is shown as read: the last string or number, and all behind it

    def problem(self) -> str | None:
        """The first thing that is wrong, as the parser meets it."""
        inside: list[Literal["array", "object"]] = []
        token = self.token()
        while True:
            if token in ("{", "["):
                kind: Literal["array", "object"] = "object" if token == "{" else "array"
                token = self.token()
                if token != ("}" if kind == "object" else "]"):
                    inside.append(kind)
                    if kind == "array":
                        continue
                    if wrong := self.key(token):
                        return wrong
                    token = self.token()
                    continue
            elif token == _ERROR:
                return self.wrong("value")
            elif token == _END and self.at == 1:
                return _EMPTY
            elif token == _NUMBER and math.isinf(float(self.data[self.start : self.at])):
                number = self.data[self.start : self.at].decode()
                return f"[json.exception.out_of_range.406] number overflow parsing '{number}'"
            elif token in (_END, "}", "]", ",", ":"):
                return self.wrong("value", token, _VALUE)
            while inside and (token := self.token()) == ("}" if inside[-1] == "object" else "]"):
                inside.pop()
            if not inside:
                break
            if token != ",":
                return self.wrong(inside[-1], token, "'}'" if inside[-1] == "object" else "']'")
            token = self.token()
            if inside[-1] == "object":
                if wrong := self.key(token):
                    return wrong
                token = self.token()
        token = self.token()
        return None if token == _END else self.wrong("value", token, _END)

    def key(self, token: str) -> str:
        """What is wrong with a key and its colon; "" if nothing is."""
        if token != _STRING:
            return self.wrong("object key", token, _STRING)
        token = self.token()
        return "" if token == ":" else self.wrong("object separator", token, "':'")

    def wrong(self, context: str, token: str = _ERROR, expected: str = "") -> str:
        """The parser's message."""
        if token == _ERROR:
            read = "".join(
                f"<U+{byte:04X}>" if byte < 32 else chr(byte) for byte in self.data[self.start : self.at]
            )
            shown = read.encode("latin-1").decode("utf-8", "replace")
            what = f"{self.error}; last read: '{shown}'"
        else:
            what = f"unexpected {token if token.isalpha() or ' ' in token else repr(token)}"
        return f"syntax error while parsing {context} - {what}" + (
            f"; expected {expected}" if expected else ""
        )

    def token(self) -> str:
        """The next token's name, "" for what is none: `error` then says why."""
        space = _SPACE.match(self.data, self.at)
        self.at = space.end() if space else self.at
        first = self.data[self.at : self.at + 1]
        if first in (b"", b"\0"):
            self.at += 1
            return _END
        if first in b"{}[],:":
            self.at += 1
            return first.decode()
        if first == b'"':
            return self.string()
        if first in b"-0123456789":
            return self.number()
        word = _WORDS.get(first, b"")
        read = self.data[self.at : self.at + len(word)]
        same = next((n for n, (a, b) in enumerate(zip(read, word)) if a != b), len(read))
        if word and same == len(word):
            self.at += same
            return f"{word.decode()} literal"
        return self.failed(self.at + same + 1, "invalid literal")

    def failed(self, at: int, error: str) -> str:
        """No token: `at` is behind the byte at which it failed."""
        self.at, self.error = at, error
        return _ERROR

    def number(self) -> str:
        """A number as a token."""
        self.start = at = self.at
        data = self.data
        if data[at : at + 1] == b"-":
            at += 1
        digits = _INTEGER.match(data, at)
        if not digits:
            return self.failed(at + 1, "invalid number; expected digit after '-'")
        at = digits.end()
        if data[at : at + 1] == b".":
            digits = _DIGITS.match(data, at + 1)
            if not digits:
                return self.failed(at + 2, "invalid number; expected digit after '.'")
            at = digits.end()
        if data[at : at + 1] in (b"e", b"E"):
            at += 1
            signed = data[at : at + 1] in (b"+", b"-")
            digits = _DIGITS.match(data, at + signed)
            if not digits:
                missing = "digit after exponent sign" if signed else "'+', '-', or digit after exponent"
                return self.failed(at + signed + 1, f"invalid number; expected {missing}")
            at = digits.end()
        self.at = at
        return _NUMBER

    def string(self) -> str:
        """A string as a token."""
        self.start, at, data = self.at, self.at + 1, self.data
        while True:
            byte = data[at : at + 1]
            if not byte:
                return self.failed(at + 1, "invalid string: missing closing quote")
            if byte == b'"':
                self.at = at + 1
                return _STRING
            if byte[0] < 32:
                code = byte[0]
                other = f" or {_SHORT[code]}" if code in _SHORT else ""
                return self.failed(
                    at + 1,
                    f"invalid string: control character U+{code:04X} ({_NAMES[code]}) must be escaped to "
                    f"\\u{code:04X}{other}",
                )
            if byte == b"\\":
                end, error = self.escape(at + 1)
                if error:
                    return self.failed(end, f"invalid string: {error}")
                at = end
                continue
            match = _CHARACTER.match(data, at)
            if not match:
                return self.failed(at + 1, "invalid string: ill-formed UTF-8 byte")
            at = match.end()

    def escape(self, at: int) -> tuple[int, str]:
        """Where an escape ends, or where it fails, and why."""
        if self.data[at : at + 1] != b"u":
            known = self.data[at : at + 1] in tuple(b'"\\/bfnrt'[n : n + 1] for n in range(8))
            return at + 1, "" if known else "forbidden character after backslash"
        code, end = self.hexadecimal(at + 1)
        if code is None:
            return end, _FOUR
        if 0xDC00 <= code <= 0xDFFF:
            return end, "surrogate U+DC00..U+DFFF must follow U+D800..U+DBFF"
        if not 0xD800 <= code <= 0xDBFF:
            return end, ""
        alone = "surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF"
        for expected in (b"\\", b"u"):
            if self.data[end : end + 1] != expected:
                return end + 1, alone
            end += 1
        low, end = self.hexadecimal(end)
        if low is None:
            return end, _FOUR
        return end, "" if 0xDC00 <= low <= 0xDFFF else alone

    def hexadecimal(self, at: int) -> tuple[int | None, int]:
        """Four hexadecimal digits and where they end; None, and the place behind what is no digit."""
        for place in range(at, at + 4):
            if not re.match(rb"[0-9a-fA-F]", self.data[place : place + 1]):
                return None, place + 1
        return int(self.data[at : at + 4], 16), at + 4


_FOUR = "'\\u' must be followed by 4 hex digits"
