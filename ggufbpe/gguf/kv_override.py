"""Parses llama.cpp's flag `--override-kv KEY=TYPE:VALUE,...` into overrides of metadata.

Source: common/arg.cpp (`--override-kv`, parse_csv_row), common/common.cpp (string_parse_kv_override), and
src/llama-model-loader.cpp (GGUFMeta: which override a key takes).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from .._util.errors import printable
from .constants import GGUFValueType
from .schema import KEY_TYPES
from .value_types import Value

_T = GGUFValueType
_LONGEST = 127  # bytes of a key, and of a text
_KINDS = {"int": _T.UINT32, "float": _T.FLOAT32, "bool": _T.BOOL, "str": _T.STRING}
_MOST = (1 << 63) - 1


class Override(NamedTuple):
    """`key` gets `value`, which is of the type `kind`: "int", "float", "bool" or "str"."""

    key: str
    kind: str
    value: Value


def parse_kv_overrides(given: str) -> list[Override]:
    r"""The overrides in one value of the flag: comma-separated values, quoted if they contain commas.

    >>> parse_kv_overrides("a=str:b,c=int:1")
    [Override(key='a', kind='str', value='b'), Override(key='c', kind='int', value=1)]

    `ValueError` if llama.cpp refuses one, in its words.
    """
    return [_parsed(item) for item in _csv_row(given)]


def applicable(overrides: Iterable[Override]) -> tuple[dict[str, Value], list[str]]:
    """The values that llama.cpp's tokenizer takes, by key, and why each of the others is left out.

    Of several for one key, the first counts, whatever its type. One of another type than the key's is left out, as in
    llama.cpp, and so is one of a key that no tokenizer reads.
    """
    firsts: dict[str, Override] = {}
    for override in overrides:
        firsts.setdefault(override.key, override)
    values: dict[str, Value] = {}
    left_out: list[str] = []
    for key, kind, value in firsts.values():
        wanted = KEY_TYPES.get(key)
        expected = next((name for name, each in _KINDS.items() if each is wanted), None)
        if wanted is None:
            left_out.append(f"{printable(key)} is not a tokenizer key")
        elif expected is None:
            left_out.append(f"{key} is an array, which llama.cpp does not override")
        elif kind != expected:
            left_out.append(f"bad metadata override type for key {key!r}, expected {expected} but got {kind}")
        else:
            values[key] = value % (1 << 32) if wanted is _T.UINT32 and isinstance(value, int) else value
    return values, left_out


def _parsed(item: str) -> Override:
    key, equals, typed = item.partition("=")
    if not equals or len(key.encode("utf-8", "surrogateescape")) > _LONGEST:
        raise ValueError(
            f"malformed KV override {printable(item)}: it is KEY=TYPE:VALUE, KEY of 127 bytes at most"
        )
    kind, colon, text = typed.partition(":")
    if not colon or kind not in _KINDS:
        form = "it is KEY=TYPE:VALUE, and TYPE is int, float, bool or str"
        raise ValueError(f"invalid type for KV override {printable(item)}: {form}")
    if kind == "bool" and text not in ("true", "false"):
        raise ValueError(f"invalid boolean value for KV override {printable(item)}: it is true or false")
    if kind == "str" and len(text.encode("utf-8", "surrogateescape")) > _LONGEST:
        raise ValueError(f"malformed KV override {printable(item)}, value cannot exceed 127 chars")
    return Override(key, kind, _READ[kind](text))


def _integer(text: str) -> int:
    """The number that a text begins with, as C's `atol` reads it: 0 if there is none.

    >>> _integer(" -12x"), _integer("x")
    (-12, 0)
    """
    match = re.match(r"[ \t-\r]*([+-]?[0-9]+)", text)
    return max(min(int(match[1]), _MOST), -_MOST - 1) if match else 0


def _number(text: str) -> float:
    """The number that a text begins with, as C's `atof` reads it, but without hexadecimal: 0 if there is none."""
    match = re.match(
        r"(?i)[ \t-\r]*([+-]?(?:inf(?:inity)?|nan|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?))", text
    )
    return float(match[1]) if match else 0.0


_READ: dict[str, Callable[[str], Value]] = {
    "int": _integer,
    "float": _number,
    "bool": lambda text: text == "true",
    "str": str,
}


def _csv_row(text: str) -> list[str]:
    """The fields of a line of CSV. A quote at the beginning of a field encloses it; two stand for one in it.

    >>> _csv_row('a,"b,""c",d"e')
    ['a', 'b,"c', 'd"e']
    """
    fields = [""]
    quoted = False
    at = 0
    while at < len(text):
        char = text[at]
        if quoted and char == '"':
            quoted = text[at + 1 : at + 2] == '"'
            fields[-1] += '"' * quoted
            at += quoted
        elif not quoted and char == '"' and not fields[-1]:
            quoted = True
        elif not quoted and char == ",":
            fields.append("")
        else:
            fields[-1] += char
        at += 1
    return fields
