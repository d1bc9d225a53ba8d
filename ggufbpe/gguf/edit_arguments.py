"""Turns the arguments of `--set`, `--remove` and `--set-token-type`, or Python values, into edits of a file.

Arguments have the forms KEY=VALUE, KEY=TYPE:VALUE and ID=TYPE. A `ValueError` says what is wrong with an argument.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from ..errors import GGUFError, printable
from .constants import GGUFValueType, TokenizerKey, TokenType
from .edit import Edit
from .metadata import USUAL_TYPES, Metadata, fits
from .reader import GGUFFile
from .schema import ID_KEYS, KEY_TYPES
from .value_types import Field, Value

_T = GGUFValueType
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_set(file: GGUFFile, argument: str) -> Edit:
    """The edit that `KEY=VALUE` or `KEY=TYPE:VALUE` means in this file; `ValueError` if it means none.

    Without a type, a key has the type that llama.cpp wants for it, else the one it has in the file. The value
    of an array is a JSON list, and TYPE is that of its elements.
    """
    key, equals, text = argument.partition("=")
    if not equals or not key:
        raise ValueError(f"{printable(argument)} is not of the form KEY=VALUE")
    name, colon, rest = text.partition(":")
    if colon and name in GGUFValueType.__members__ and name != "ARRAY":
        given = GGUFValueType[name]
        return (
            _array(key, given, rest) if rest.startswith("[") else Edit(key, given, _scalar(key, given, rest))
        )
    known = KEY_TYPES.get(key)
    if isinstance(known, tuple):
        return _array(key, known[0], text)
    if known is None and key not in file:
        raise ValueError(
            f"the file has no key {printable(key)}, so say its type: {key}=TYPE:VALUE, where TYPE is one of "
            + ", ".join(member.name for member in _T if member is not _T.ARRAY)
        )
    if known is None and (element := file.element_type(key)) is not None:
        return _array(key, element, text)
    value_type = known or file.value_type(key)
    return Edit(key, value_type, _scalar(key, value_type, text))


def edit_from_value(file: GGUFFile, key: str, value: Value | Field) -> Edit:
    """The edit that gives `key` a Python value; `TypeError` for one that the key cannot have.

    The type is the one that llama.cpp wants for the key, else the one that it has in the file, else one that can hold
    the value. A `Field` brings its own type.
    """
    if isinstance(value, Field):
        return Edit(key, *value)
    is_array = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    items: Sequence[Any] = value if is_array else [value]  # type: ignore[assignment]
    if is_array and not items:
        raise ValueError(f"{key} cannot be an empty array; remove it")
    known = KEY_TYPES.get(key)
    wants_array = isinstance(known, tuple)
    types = USUAL_TYPES if known is None else known if isinstance(known, tuple) else (known,)
    if known is None and key in file:
        element = file.element_type(key)
        wants_array, types = element is not None, (element or file.value_type(key),)
    is_new = known is None and key not in file
    fitting = next((kind for kind in types if all(fits(kind, item) for item in items)), None)
    if fitting is None or (wants_array is not is_array and not is_new):
        kinds = " or ".join(kind.name for kind in types)
        must = f"a list of {kinds}" if wants_array else f"of type {kinds}"
        raise TypeError(f"{key} cannot be {printable(repr(value))}: it is {must}")
    return Edit(key, _T.ARRAY, list(items), fitting) if is_array else Edit(key, fitting, value)


def parse_remove(file: GGUFFile, key: str) -> Edit:
    """The edit that removes `key`; `ValueError` if the file has no such key."""
    if key not in file:
        import difflib

        near = difflib.get_close_matches(key, file.keys(), n=2)
        raise ValueError(
            f"the file has no key {printable(key)}" + (f"; near: {', '.join(near)}" if near else "")
        )
    return Edit(key)


def argument_for(file: GGUFFile | Metadata, key: str) -> str | None:
    """The VALUE by which `--set` gives `key` its right type while keeping its meaning; None if there is none.

    >>> argument_for(file, "tokenizer.ggml.add_bos_token")  # of type FLOAT32, 1.0    # doctest: +SKIP
    'true'
    """
    wanted = KEY_TYPES[key]
    if wanted not in (_T.BOOL, _T.UINT32):
        return None
    try:
        value = file[key]
    except GGUFError:  # not UTF-8
        return None
    text = str(value).lower() if isinstance(value, (bool, int, str)) else ""
    if isinstance(value, float) and value.is_integer():
        text = str(int(value))
    try:
        argument = _scalar(key, wanted, text)
    except ValueError:
        return None
    size = file.array_length(TokenizerKey.LIST) if TokenizerKey.LIST in file else 0
    return None if key in ID_KEYS and argument >= size else str(argument).lower()


Tokens = int | str | range  # a token by its id or its text, or all ids of a range


def parse_token_type(argument: str) -> tuple[Tokens, str]:
    """Parses `ID=TYPE`, `ID..ID=TYPE` or `TEXT=TYPE`: a number is an id, two with dots between them a range.

    >>> parse_token_type("3..5=UNUSED")
    (range(3, 6), 'UNUSED')
    """
    token, equals, name = argument.rpartition("=")
    if not equals or name not in TokenType.__members__:
        kinds = ", ".join(TokenType.__members__)
        raise ValueError(
            f"{printable(argument)} is not of the form ID=TYPE, ID..ID=TYPE or TEXT=TYPE, TYPE one of {kinds}"
        )
    if ids := re.fullmatch(r"([0-9]+)(?:\.\.([0-9]+))?", token):
        return (range(int(ids[1]), int(ids[2]) + 1) if ids[2] else int(ids[1])), name
    return token, name


def set_token_types(file: GGUFFile, types: Iterable[tuple[Tokens, str | TokenType]]) -> Edit:
    """The edit of `tokenizer.ggml.token_type` that gives tokens these types, by name or number, in order.

    If the file has no types, all other tokens are normal, as without the key. `ValueError` for tokens and types
    that do not exist.
    """
    tokens = _list(file, TokenizerKey.LIST, _T.STRING)
    type_list = _list(file, TokenizerKey.TOKEN_TYPE, _T.INT32) if TokenizerKey.TOKEN_TYPE in file else []
    type_list = type_list + [int(TokenType.NORMAL)] * (len(tokens) - len(type_list))
    for token, kind in types:
        if isinstance(token, str):
            if token not in tokens:
                raise ValueError(f"the file has no token {printable(token)}")
            token = tokens.index(token)
        ids = token if isinstance(token, range) else range(token, token + 1)
        if not ids:
            raise ValueError(f"there are no ids from {ids.start} to {ids.stop - 1}")
        for index in (ids[0], ids[-1]):
            if not 0 <= index < len(tokens):
                raise ValueError(
                    f"token id {index} is out of range: the vocabulary has ids 0 to {len(tokens) - 1}"
                )
        for index in ids:
            type_list[index] = int(_token_type(kind))
    return Edit(TokenizerKey.TOKEN_TYPE, _T.ARRAY, type_list, _T.INT32)


def _token_type(kind: str | TokenType) -> TokenType:
    if isinstance(kind, str) and kind not in TokenType.__members__:
        raise ValueError(
            f"{printable(kind)} is not a token type; there are {', '.join(TokenType.__members__)}"
        )
    return TokenType[kind] if isinstance(kind, str) else TokenType(kind)


def _list(file: GGUFFile, key: str, element: GGUFValueType) -> list[Any]:
    if key not in file or file.element_type(key) is not element:
        raise ValueError(f"the file has no {key} that is an array of {element.name}")
    value = file[key]
    assert isinstance(value, list)
    return list(value)


def id_ranges(ids: Iterable[int]) -> Iterator[str]:
    """Ascending ids as `set_token_types` takes them, with runs of consecutive ids as ranges.

    >>> list(id_ranges([3, 4, 5, 9]))
    ['3..5', '9']
    """
    for _, group in groupby(enumerate(ids), lambda pair: pair[1] - pair[0]):
        run = [index for _, index in group]
        yield f"{run[0]}..{run[-1]}" if len(run) > 1 else str(run[0])


def _scalar(key: str, value_type: GGUFValueType, text: str) -> Any:
    """`text` as a value of `value_type`, in its range."""
    if value_type is _T.STRING:
        return text
    try:
        if value_type is _T.BOOL:
            return _TRUTH[text.lower()]
        if value_type in (_T.FLOAT32, _T.FLOAT64):
            number = float(text)
            # OverflowError if the number does not fit
            struct.pack("<f" if value_type is _T.FLOAT32 else "<d", number)
            return number
        return _in_range(value_type, int(text, 0))
    except (KeyError, ValueError, OverflowError):
        raise ValueError(
            f"{printable(text)} is not a value of type {value_type.name}, which {key} has"
        ) from None


def _array(key: str, element: GGUFValueType, text: str) -> Edit:
    import json

    wanted: type | tuple[type, ...] = str if element is _T.STRING else bool if element is _T.BOOL else int
    if element in (_T.FLOAT32, _T.FLOAT64):
        wanted = (int, float)
    try:
        value = json.loads(text)
        good = isinstance(value, list) and all(
            isinstance(item, wanted) and (wanted is bool or not isinstance(item, bool)) for item in value
        )
        if not good:
            raise ValueError
        if wanted is int:
            value = [_in_range(element, item) for item in value]
        elif element is _T.FLOAT32:
            struct.pack(f"<{len(value)}f", *value)  # OverflowError if one does not fit
    except (ValueError, OverflowError):
        raise ValueError(
            f"{printable(text)} is not a JSON list of {element.name}, which {key} is; write it like [1, 2]"
        ) from None
    if not value:
        raise ValueError(f"{key} cannot be an empty array; remove the key instead")
    return Edit(key, _T.ARRAY, value, element)


def _in_range(value_type: GGUFValueType, number: int) -> int:
    signed = value_type.name.startswith("INT")
    bits = int(value_type.name.lstrip("UINT"))
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    if not low <= number < high:
        raise ValueError
    return number
