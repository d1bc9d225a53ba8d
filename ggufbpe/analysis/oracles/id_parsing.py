"""Parses ids as people have them: JSON lists, rows of numbers, output of llama-server or llama-tokenize."""

from __future__ import annotations

import json
import re
from typing import Any

from ..._util.errors import escape_invisible, printable

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
    data = data.removeprefix(b"\xef\xbb\xbf").rstrip()
    begin = data.lstrip()
    if begin.startswith(b"{'"):  # as Python prints it
        data = data.replace(b"'", b'"')
    if begin[:1] in (b"[", b"{"):
        return _lists_in_json(data)  # with the empty lines before it, as errors tell numbers of lines
    if _LISTED.match(begin):
        return [[int(number) for number in _LISTED.findall(data)]]
    words = data.replace(b",", b" ").split()
    for word in words:
        if not word.lstrip(b"-").isdigit():
            raise ValueError(f"{printable(word.decode('utf-8', 'replace'), 40)} is not a token id")
    return [[int(word) for word in words]]


def _lists_in_json(data: bytes) -> list[list[int]]:
    """The lists in a JSON value, or in one such value per line."""
    try:
        value = json.loads(data)
    except ValueError as error:
        whole = error
    else:
        return _texts(value)
    found: list[list[int]] = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            if not found:
                raise ValueError(f"the ids are not JSON: {whole}") from None
            raise ValueError(f"line {number} is not JSON: {str(error).partition(': line ')[0]}") from None
        try:
            found += _texts(value)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return found


def _texts(value: Any) -> list[list[int]]:
    """The lists in a JSON value."""
    for key in _KEYS:
        if isinstance(value, dict) and key in value:
            return _texts(value[key])
    if not isinstance(value, list):
        raise ValueError(f"the JSON is neither a list of ids nor an object with {' or '.join(_KEYS)}")
    if value and all(isinstance(item, (list, dict)) and "id" not in item for item in value):
        return [ids for item in value for ids in _texts(item)]
    ids = [item["id"] if isinstance(item, dict) and "id" in item else item for item in value]
    for number, item in enumerate(ids, 1):
        if type(item) is not int:
            shown = escape_invisible(json.dumps(item, ensure_ascii=False)[:40])
            raise ValueError(f"{shown} is not a token id (item {number} of {len(ids)})")
    return [ids]
