"""A corrected copy of a model file whose tokenizer can be opened, and token types by id or text.

model.gguf + edits -> gguf/edit.py -> [this file: is it sound?] -> fixed.gguf
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from ..errors import GGUFError, UnsupportedTokenizerError, printable
from ..gguf.constants import GGUFValueType, TokenizerKey, TokenType
from ..gguf.edit import Edit, write_edited
from ..gguf.reader import GGUFFile
from ..gguf.schema import errors_in
from ..vocab import GGUFWarning, load_vocabulary

_T = GGUFValueType
_K = TokenizerKey


def write_fixed(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    edits: Iterable[Edit],
    *,
    check: bool = True,
) -> None:
    """Write to `target` the file `source` with the `edits`; `target` may be `source`, and is replaced whole.

    With `check`, a copy that has an error which `source` has not, or one in a key that was edited, is thrown away
    and the `GGUFError` raised: what keeps the tokenizer from being opened, and what schema.py calls an error.
    What else is wrong with the copy, and what opening it warns of, is a `GGUFWarning`. An `OSError`, such as a
    full disk, and an interruption leave `target` as it was and nothing beside it.
    """
    source, target = os.fspath(source), os.fspath(target)
    edits = list(edits)
    told: list[str] = []

    def examine(copy: str) -> None:
        told.extend(_problems(copy, target, source, {edit.key for edit in edits}))

    write_edited(source, target, edits, examine if check else None)
    for problem in told:  # only now: a caller may turn warnings into errors
        warnings.warn(problem, GGUFWarning, stacklevel=2)


def _problems(temporary: str, target: str, source: str, edited: set[str]) -> list[str]:
    """Raise what the edits broke or left broken, and return what is to be said of the rest of the copy.

    All in the name that the copy is to have.
    """
    found, told = _errors(temporary)
    before = {(type(error), error.key) for error in _errors(source)[0]} if found else set()
    for error in found:
        error.path = target
        if error.key in edited or (type(error), error.key) not in before:
            error.remedy = (
                f"{error.remedy or 'change something else'} (nothing was written; --force writes it)"
            )
            raise error
    return [*map(str, found), *(f"{target}: {problem}" for problem in told)]


def _errors(path: str) -> tuple[list[GGUFError], tuple[str, ...]]:
    """What is wrong with the tokenizer of a file, and what opening it warns of."""
    found: list[GGUFError] = []
    try:
        with GGUFFile(path) as file:
            found += errors_in(file)
        return found, load_vocabulary(path).warnings
    except UnsupportedTokenizerError:
        return found, ()
    except GGUFError as error:
        return [*(other for other in found if other.key != error.key), error], ()


def set_token_types(file: GGUFFile, arguments: Iterable[str]) -> Edit:
    """The edit of `tokenizer.ggml.token_type` that `ID=TYPE`, `ID..ID=TYPE` or `TEXT=TYPE` mean together.

    A number is an id, and two with dots between them are all ids from the first to the second. Where the file has
    no types, all other tokens are normal, as without the key.
    """
    tokens = _list(file, _K.LIST, _T.STRING)
    types = _list(file, _K.TOKEN_TYPE, _T.INT32) if _K.TOKEN_TYPE in file else []
    types = types + [int(TokenType.NORMAL)] * (len(tokens) - len(types))
    for argument in arguments:
        token, equals, name = argument.rpartition("=")
        if not equals or name not in TokenType.__members__:
            kinds = ", ".join(TokenType.__members__)
            raise ValueError(
                f"{printable(argument)} is not of the form ID=TYPE, ID..ID=TYPE or TEXT=TYPE, TYPE one of {kinds}"
            )
        if ids := re.fullmatch(r"([0-9]+)(?:\.\.([0-9]+))?", token):
            first, last = int(ids[1]), int(ids[2] or ids[1])
        elif token in tokens:
            first = last = tokens.index(token)
        else:
            raise ValueError(f"the file has no token {printable(token)}")
        if last < first:
            raise ValueError(f"{printable(token)} has no ids: the second is the smaller one")
        if last >= len(tokens):
            raise ValueError(
                f"token id {last} is out of range: the vocabulary has ids 0 to {len(tokens) - 1}"
            )
        types[first : last + 1] = [int(TokenType[name])] * (last + 1 - first)
    return Edit(_K.TOKEN_TYPE, _T.ARRAY, types, _T.INT32)


def _list(file: GGUFFile, key: str, element: GGUFValueType) -> list[Any]:
    if key not in file or file.element_type(key) is not element:
        raise ValueError(f"the file has no {key} that is an array of {element.name}")
    value = file[key]
    assert isinstance(value, list)
    return list(value)


def id_ranges(ids: Iterable[int]) -> Iterator[str]:
    """Ascending ids as `set_token_types` takes them: those in a row as the first and the last one.

    >>> list(id_ranges([3, 4, 5, 9]))
    ['3..5', '9']
    """
    for _, group in groupby(enumerate(ids), lambda pair: pair[1] - pair[0]):
        found = [index for _, index in group]
        yield f"{found[0]}..{found[-1]}" if len(found) > 1 else str(found[0])
