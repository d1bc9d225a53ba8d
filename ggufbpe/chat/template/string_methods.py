"""Filters and methods of strings, as llama.cpp has them: on bytes, with letters beyond ASCII left alone.

Source: value_string_t::get_builtins in common/jinja/value.cpp.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from .call_arguments import Arguments, as_float, as_int, is_a, truth
from .values import WHITE_SPACE, TemplateError, Undefined, Value

if TYPE_CHECKING:
    from .runtime import Runtime

_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_WORD = re.compile(r"[^ \t\n\v\f\r]+")


def _in_case(
    run: Runtime, arguments: Arguments, change: Callable[[bytes], bytes], table: Mapping[int, int]
) -> Value:
    """The text with its ASCII letters in one case, by way of bytes: `str.translate` is slow with all others."""
    arguments.need_kinds(str)
    text = arguments[0]
    run.scan(len(text))
    if text.isascii() or type(text) is not str:
        return text.translate(table)
    return change(text.encode("latin-1")).decode("latin-1")


upper_case = partial(_in_case, change=bytes.upper, table=_UPPER)
lower_case = partial(_in_case, change=bytes.lower, table=_LOWER)


def capitalize(run: Runtime, arguments: Arguments) -> Value:
    """The first letter in upper case, the rest in lower case, in each part of the text."""
    arguments.need_kinds(str)
    run.step(2 * len(arguments[0]))
    return run.by_parts(_capitalized, arguments[0])


def _capitalized(text: str) -> str:
    return text[:1].translate(_UPPER) + text[1:].translate(_LOWER)


def title(run: Runtime, arguments: Arguments) -> Value:
    """Each letter after white space in upper case, the rest in lower case, in each part of the text."""
    arguments.need_kinds(str)
    run.step(4 * len(arguments[0]))
    return run.by_parts(lambda part: _WORD.sub(lambda word: _capitalized(word[0]), part), arguments[0])


def _characters(run: Runtime, arguments: Arguments) -> str:
    characters = arguments.get("chars", 1)
    if isinstance(characters, Undefined):
        return WHITE_SPACE
    text = run.string(characters)
    run.scan(len(text))
    return "".join(set(text))


def _stripped(run: Runtime, arguments: Arguments, how: str) -> Value:
    """The text without white space, or without the given bytes, at one end or at both."""
    arguments.need_kinds(str)
    text = arguments[0]
    run.scan(len(text))
    return getattr(text, how)(_characters(run, arguments))


def strip(run: Runtime, arguments: Arguments) -> Value:
    """The text without white space, or without the given bytes, at both ends."""
    if not isinstance(arguments.at(0), str):
        raise TemplateError("strip() first argument must be a string")
    return _stripped(run, arguments, "strip")


rstrip = partial(_stripped, how="rstrip")
lstrip = partial(_stripped, how="lstrip")


def startswith(run: Runtime, arguments: Arguments) -> Value:
    """Whether the text begins with another."""
    arguments.need_kinds(str, str)
    return arguments[0].startswith(arguments[1])


def endswith(run: Runtime, arguments: Arguments) -> Value:
    """Whether the text ends with another."""
    arguments.need_kinds(str, str)
    return arguments[0].endswith(arguments[1])


def _split_arguments(run: Runtime, name: str, arguments: Arguments) -> tuple[str, str, int]:
    arguments.need(1, 3)
    if not isinstance(arguments[0], str):
        raise TemplateError(f"{name}() first argument must be a string")
    delimiter = run.string(arguments[1]) if len(arguments) > 1 else " "
    if not delimiter:
        raise TemplateError("empty separator")
    most = as_int(arguments[2]) if len(arguments) > 2 else -1
    run.search(arguments[0], delimiter)
    run.parts(arguments[0].count(delimiter), len(arguments[0]))
    return str(arguments[0]), delimiter, most


def split_at(run: Runtime, arguments: Arguments) -> Value:
    """The parts of a string between delimiters; between single spaces where none is given, unlike Python."""
    text, delimiter, most = _split_arguments(run, "split", arguments)
    return text.split(delimiter, most)


def split_at_from_end(run: Runtime, arguments: Arguments) -> Value:
    """The parts of a string between delimiters, which are counted from its end."""
    text, delimiter, most = _split_arguments(run, "rsplit", arguments)
    run.scan(len(delimiter))
    # Python's search from the end can take time in the product of both lengths
    return [part[::-1] for part in reversed(text[::-1].split(delimiter[::-1], most))]


def replaced(run: Runtime, arguments: Arguments) -> Value:
    """The text with each occurrence of one string replaced by another."""
    arguments.need_kinds(str, str, str)
    text, old, new = str(arguments[0]), str(arguments[1]), str(arguments[2])
    if len(arguments) > 3 and as_int(arguments[3]) > 0:
        raise TemplateError("NotImplemented: String replace with count argument not implemented")
    if old == new:
        return text[:]
    run.search(text, old)
    count = text.count(old)
    run.replacements(count)
    run.spend(len(text) + count * max(len(new) - len(old), 0))
    return text.replace(old, new)


def formatted(run: Runtime, arguments: Arguments) -> Value:
    """The text with each `{}` replaced by the next argument."""
    if not isinstance(arguments.at(0), str):
        raise TemplateError("format() first argument must be a string")
    out, following = [], 1
    run.parts(arguments[0].count("{"))
    pieces = arguments[0].split("{")
    out.append(pieces[0])
    for piece in pieces[1:]:
        if not piece.startswith("}"):
            raise TemplateError("NotImplemented: format() only supports simple '{}' placeholders")
        out.append(run.string(arguments.at(following)))
        out.append(piece[1:])
        following += 1
        run.step(_PLACEHOLDER)
        run.spend(len(out[-2]))
    return run.appended(out)


_PLACEHOLDER = 10  # steps for each of format()
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def leading_int_or_default(run: Runtime, arguments: Arguments) -> Value:
    """The number at the start of the text, or a default, as the C function strtol reads it."""
    base = arguments.get("base", 2)
    base = 10 if isinstance(base, Undefined) else as_int(base)
    if base != 0 and not 2 <= base <= 36:
        raise TemplateError("int() base must be 0 or between 2 and 36")
    if not isinstance(arguments.at(0), str):
        raise TemplateError("int() first argument must be a string")
    run.step(len(arguments[0]))
    number = _leading_int(arguments[0], base)
    if number is not None and -(1 << 31) <= number < 1 << 31:
        return number
    otherwise = arguments.get("default", 1)
    return 0 if isinstance(otherwise, Undefined) else as_int(otherwise)


def _leading_int(text: str, base: int) -> int | None:
    match = re.match(r"[ \t\n\v\f\r]*([+-]?)(.*)", text, re.DOTALL)
    assert match is not None
    sign, rest = match[1], match[2].translate(_LOWER)
    if base in (0, 16) and re.match(r"0x[0-9a-f]", rest):
        base, rest = 16, rest[2:]
    elif base == 0:
        base = 8 if rest.startswith("0") else 10
    digits = re.match(f"[{_DIGITS[:base]}]*", rest)
    assert digits is not None
    if not digits[0]:
        return None
    return int(sign + digits[0][:64], base)


_FLOAT = re.compile(
    r"[ \t\n\v\f\r]*([+-]?(?:0x(?:[\da-f]+\.?[\da-f]*|\.[\da-f]+)(?:p[+-]?\d+)?|"
    r"inf(?:inity)?|nan|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?))",
    re.I | re.A,
)


def _as_double(text: str) -> float | None:
    """The number that strtod reads; None if it is not a normal double, which strtod calls out of range."""
    is_hexadecimal = "x" in text.lower()
    try:
        number = float.fromhex(text) if is_hexadecimal else float(text)
    except OverflowError:
        return None
    if math.isinf(number):
        return None if any(map(str.isdigit, text)) else number
    mantissa = re.split("[pP]" if is_hexadecimal else "[eE]", text.lower().replace("0x", ""))[0]
    is_zero = not number and not mantissa.strip("+-0.")
    return number if abs(number) >= sys.float_info.min or number != number or is_zero else None


def leading_float_or_default(run: Runtime, arguments: Arguments) -> Value:
    """The number at the start of the text, or a default, as the C function strtod reads it."""
    arguments.need_kinds(str)
    run.step(len(arguments[0]))
    match = _FLOAT.match(arguments[0])
    number = _as_double(match[1]) if match else None
    if number is not None:
        return number
    otherwise = arguments.get("default", 1)
    return 0.0 if isinstance(otherwise, Undefined) else as_float(otherwise)


def unchanged(run: Runtime, arguments: Arguments) -> Value:
    """The text itself."""
    arguments.need_kinds(str)
    return arguments[0]


def copied(run: Runtime, arguments: Arguments) -> Value:
    """A string equal to the given one, as another object."""
    arguments.need_kinds(str)
    return run.appended((arguments[0],))


def indent(run: Runtime, arguments: Arguments) -> Value:
    """The text with all lines but the first indented."""
    arguments.need(1, 4)
    width = arguments.get("width", 1)
    first, blank = truth(arguments.get("first", 2)), truth(arguments.get("blank", 3))
    if not isinstance(arguments[0], str):
        raise TemplateError("indent() first argument must be a string")
    given = arguments[0]
    run.scan(len(given))
    run.parts(4 * given.count("\n"))
    lines = given.split("\n")
    if is_a(width, int):
        if width < 0:
            raise TemplateError("basic_string::_M_replace_aux")
        run.spend(width * len(lines))
        margin = " " * width
    else:
        margin = width if isinstance(width, str) else "    "
    run.spend(len(given) + len(margin) * len(lines))
    ends_in_break = given.endswith("\n")
    if not given or ends_in_break:
        lines.pop()
    parts: list[str] = []
    begun = False  # a line counts as the first until something is written
    for line in lines:
        if begun:
            parts.append("\n")
        if (line or blank) if begun else first:
            parts.append(margin)
        parts.append(line)
        begun = begun or bool(line) or (first and bool(margin))
    if ends_in_break:
        parts += ["\n", margin if blank else ""]
    return run.joined("", parts)


def not_implemented(what: str) -> Callable[[Runtime, Arguments], Value]:
    """A function that exists only to say that it is not implemented."""

    def call(run: Runtime, arguments: Arguments) -> Value:
        raise TemplateError(f"NotImplemented: {what} not implemented")

    return call
