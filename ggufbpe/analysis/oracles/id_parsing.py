"""Parses ids as people have them: JSON lists, rows of numbers, output of llama-server or llama-tokenize."""

from __future__ import annotations

import re
from typing import Any

_KEYS = ("ids", "tokens", "input_ids", "token_ids")
_LISTED = re.compile(rb"^ *(\d+) -> '", re.MULTILINE)


def parse_ids(data: bytes) -> list[list[int]]:
    """The ids in `data`, a list for each text.

    JSON: `[1, 2]` for one text, `[[1, 2], [3]]` for several, objects with the ids under "ids", "tokens" or
    "input_ids" (of llama-server and tokenizers, also as Python prints a dict), or one object per token with its "id"
    (of `ggufbpe tokenize --json`); also one such value per line. Otherwise the output of llama-tokenize, or numbers
    separated by white space or commas. `ValueError` for anything else.

    >>> parse_ids(b"[9906, 1917]"), parse_ids(b"9906 1917"), parse_ids(b'{"tokens": [9906, 1917]}')
    ([[9906, 1917]], [[9906, 1917]], [[9906, 1917]])
    """
    import json

    data = data.removeprefix(b"\xef\xbb\xbf").strip()
    if data.startswith(b"{'"):  # as Python prints it
        data = data.replace(b"'", b'"')
    if data[:1] in (b"[", b"{"):
        try:
            return _texts(json.loads(data))
        except ValueError:
            lines = [line for line in data.splitlines() if line.strip()]
            if len(lines) == 1:
                raise ValueError(
                    "the ids are neither JSON nor numbers separated by white space or commas"
                ) from None
        try:
            return [ids for line in lines for ids in _texts(json.loads(line))]
        except ValueError as error:
            raise ValueError(f"the ids are not JSON: {error}") from None
    if _LISTED.match(data):
        return [[int(number) for number in _LISTED.findall(data)]]
    words = data.replace(b",", b" ").split()
    for word in words:
        if not word.lstrip(b"-").isdigit():
            raise ValueError(f"{word[:40].decode('utf-8', 'replace')!r} is not an id")
    return [[int(word) for word in words]]


def _texts(value: Any) -> list[list[int]]:
    """The lists in a JSON value."""
    for key in _KEYS:
        if isinstance(value, dict) and key in value:
            return _texts(value[key])
    if not isinstance(value, list):
        raise ValueError(f"neither a list of ids nor an object with {' or '.join(_KEYS)}")
    if value and all(isinstance(item, (list, dict)) and "id" not in item for item in value):
        return [ids for item in value for ids in _texts(item)]
    return [[_id(item["id"] if isinstance(item, dict) and "id" in item else item) for item in value]]


def _id(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{str(value)[:40]!r} is not an id")
    return value
