"""Parses the arguments of `ggufbpe fix`, or turns Python values into edits of a file.

Arguments have forms such as KEY=VALUE, KEY=TYPE:VALUE and ID=TYPE. A `ValueError` says what is wrong with an argument.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from .._util.errors import GGUFError, printable
from .._util.utf8 import has_utf8
from .constants import GGUFValueType, TokenizerKey, TokenType
from .edit import Edit
from .metadata import USUAL_TYPES, Metadata, fits
from .reader import GGUFFile
from .schema import ID_KEYS, KEY_TYPES, has_right_type
from .token_edits import USUAL_ADDED, Token, Tokens, string_array
from .value_types import Field, Value

_T = GGUFValueType
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_set(file: GGUFFile, argument: str) -> Edit:
    """The edit that `KEY=VALUE` or `KEY=TYPE:VALUE` means in this file; `ValueError` if it means none.

    Without a type, a key has the type that llama.cpp wants for it, else the one it has in the file. The value
    of an array is a JSON list, and TYPE is that of its elements. A special id may be given as the text of a token that
    is not NORMAL.
    """
    if not has_utf8(argument):
        raise ValueError(f"{printable(argument)} is not UTF-8, as keys and values are")
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
        _require_whole_name(key)
        near = _nearest(key, [*KEY_TYPES, *file.keys()], 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise ValueError(
            f"the file has no key {printable(key)}{meant}, so say its type: {key}=TYPE:VALUE, where TYPE is one of "
            + ", ".join(member.name for member in _T if member is not _T.ARRAY)
        )
    if known is None and (element := file.element_type(key)) is not None:
        return _array(key, element, text)
    value_type = known or file.value_type(key)
    if key in ID_KEYS and not text.isdecimal():
        return Edit(key, value_type, _special_id(file, key, value_type, text))
    return Edit(key, value_type, _scalar(key, value_type, text))


def _special_id(file: GGUFFile, key: str, value_type: GGUFValueType, text: str) -> int:
    """The id of the token with this text unless it is NORMAL, as "none" usually is; otherwise the text's number."""
    if TokenizerKey.TOKEN_TYPE in file and has_right_type(file, TokenizerKey.TOKEN_TYPE):
        tokens = zip(string_array(file, TokenizerKey.LIST), file[TokenizerKey.TOKEN_TYPE])  # type: ignore[arg-type]
        found = (id_ for id_, token in enumerate(tokens) if token[0] == text and token[1] != TokenType.NORMAL)
        if (special := next(found, None)) is not None:
            return special
    try:
        return int(_scalar(key, value_type, text))
    except ValueError:
        raise ValueError(
            f"{printable(text)} is neither an id nor the text of a special token; "
            f"give {key} the id of a token, or remove the key"
        ) from None


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
    if is_new:
        _require_whole_name(key)
        _require_no_misspelling(key)
    fitting = next((kind for kind in types if all(fits(kind, item) for item in items)), None)
    if fitting is None or (wants_array is not is_array and not is_new):
        kinds = " or ".join(kind.name for kind in types)
        must = f"a list of {kinds}" if wants_array else f"of type {kinds}"
        raise TypeError(f"{key} cannot be {printable(repr(value))}: it is {must}")
    return Edit(key, _T.ARRAY, list(items), fitting) if is_array else Edit(key, fitting, value)


def _require_whole_name(key: str) -> None:
    """`ValueError` for the end of a tokenizer's key, such as "pre", in place of the whole."""
    whole = next((known for known in KEY_TYPES if known.endswith(f".{key}")), None)
    if whole is not None:
        raise ValueError(f"{key} is not a whole key; write {whole}")


def _require_no_misspelling(key: str) -> None:
    """`ValueError` for a new key of the tokenizer that is spelt nearly as one that llama.cpp reads."""
    if key.startswith("tokenizer.ggml.") and (near := _nearest(key, KEY_TYPES, 1, 0.85)):
        raise ValueError(
            f"the file has no key {printable(key)} (did you mean {near[0]}?); a Field, which says its type, sets it"
        )


def parse_remove(file: GGUFFile, key: str) -> Edit:
    """The edit that removes `key`; `ValueError` if the file has no such key."""
    if key not in file:
        near = _nearest(key, file.keys(), 2)
        raise ValueError(
            f"the file has no key {printable(key)}" + (f"; near: {', '.join(near)}" if near else "")
        )
    return Edit(key)


def _nearest(key: str, names: Iterable[str], number: int, cutoff: float = 0.7) -> list[str]:
    import difflib

    return difflib.get_close_matches(key, list(names), n=number, cutoff=cutoff)


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


def parse_token_type(argument: str) -> tuple[Tokens, str]:
    """Parses `ID=TYPE`, `ID..ID=TYPE` or `TEXT=TYPE`: a number is an id, two with dots between them a range.

    >>> parse_token_type("3..5=UNUSED")
    (range(3, 6), 'UNUSED')
    """
    token, equals, name = argument.rpartition("=")
    name = name.upper()
    if not equals or name not in TokenType.__members__:
        kinds = ", ".join(TokenType.__members__)
        raise ValueError(
            f"{printable(argument)} is not of the form ID=TYPE, ID..ID=TYPE or TEXT=TYPE, TYPE one of {kinds}"
        )
    if ids := re.fullmatch(r"([0-9]+)(?:\.\.([0-9]+))?", token):
        return (range(int(ids[1]), int(ids[2]) + 1) if ids[2] else int(ids[1])), name
    return token, name


def parse_added_token(argument: str) -> tuple[str, str]:
    """Parses `TEXT` or `TEXT=TYPE`; without a type, convert_hf_to_gguf.py's for an added token that is not special.

    >>> parse_added_token("<tool>=control"), parse_added_token("a=b")
    (('<tool>', 'CONTROL'), ('a=b', 'USER_DEFINED'))
    """
    text, equals, name = argument.rpartition("=")
    is_type = equals and name.upper() in TokenType.__members__
    return (text, name.upper()) if is_type else (argument, USUAL_ADDED)


def parse_token(argument: str) -> Token:
    """Parses an id or a text: digits are an id."""
    return int(argument) if re.fullmatch("[0-9]+", argument) else argument


def parse_renamed_token(file: GGUFFile, argument: str) -> tuple[Token, str]:
    """Parses `ID=TEXT` or `OLD=TEXT`; where a text has a `=` itself, OLD is the shortest token of the file."""
    if ids := re.match(r"([0-9]+)=", argument):
        return int(ids[1]), argument[ids.end() :]
    tokens = set(string_array(file, TokenizerKey.LIST))
    ends = (at for at, char in enumerate(argument) if char == "=" and at)
    at = next((at for at in ends if argument[:at] in tokens), argument.find("=", 1))
    if at < 0:
        raise ValueError(f"{printable(argument)} is not of the form ID=TEXT or OLD=TEXT")
    return argument[:at], argument[at + 1 :]


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
        if not good or (element is _T.STRING and not all(map(has_utf8, value))):
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
