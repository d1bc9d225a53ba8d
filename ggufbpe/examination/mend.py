"""Writes a corrected copy of a model file, which is examined before it replaces anything.

    model.gguf + edits -> gguf/edit.py -> [this file: is it sound?] -> fixed.gguf

A fix that leaves a key that it set, or the tokenizer, worse than before writes nothing.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable

from ..errors import GGUFError, UnsupportedTokenizerError
from ..gguf.edit import Edit, write_edited
from ..gguf.reader import GGUFFile
from ..gguf.schema import errors_in
from ..vocab import GGUFWarning, load


def write_fixed(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    edits: Iterable[Edit],
    *,
    check: bool = True,
) -> str:
    """Write to `target` the file `source` with the `edits`; `target` may be `source`, and is replaced whole.

    With `check`, a copy that has an error which `source` has not, or one in a key that was edited, is thrown away
    and the `GGUFError` raised: what keeps the tokenizer from being opened, and what schema.py calls an error.
    What else is wrong with the copy, and what opening it warns of, is a `GGUFWarning`. An `OSError`, such as a
    full disk, and an interruption leave `target` as it was and nothing beside it. Returns what became of the
    tensors: see `write_edited`.
    """
    source, target = os.fspath(source), os.fspath(target)
    edits = list(edits)
    told: list[str] = []

    def examine(copy: str, metadata: bytes | None) -> None:
        told.extend(_problems(copy, metadata, target, source, {edit.key for edit in edits}))

    done = write_edited(source, target, edits, examine if check else None)
    for problem in told:  # only now: a caller may turn warnings into errors
        warnings.warn(problem, GGUFWarning, stacklevel=2)
    return done


def _problems(copy: str, metadata: bytes | None, target: str, source: str, edited: set[str]) -> list[str]:
    """Raise what the edits broke or left broken, and return warnings about the rest of the copy.

    All of them name the path that the copy is to have.
    """
    found, told = _errors(copy, metadata)
    before = _errors(source)[0] if found else {}
    for at, error in found.items():
        error.path = target
        is_hidden = (
            not at and "" in before
        )  # opening ends at the first error, which may have been another one
        if error.key in edited or not (at in before or is_hidden):
            error.remedy = (
                f"{error.remedy or 'change something else'} (nothing was written; --force writes it)"
            )
            raise error
    return [*map(str, found.values()), *(f"{target}: {problem}" for problem in told)]


def _errors(path: str, data: bytes | None = None) -> tuple[dict[str | None, GGUFError], tuple[str, ...]]:
    """What is wrong with the tokenizer of a file, or of `data` in its place, by key, and what opening it warns of.

    The error that ends opening it is under "".
    """
    found: dict[str | None, GGUFError] = {}
    try:
        with GGUFFile(path, data) as file:
            found = {error.key: error for error in errors_in(file)}
        return found, load(path, data=data)[0].warnings
    except UnsupportedTokenizerError:
        return found, ()
    except GGUFError as error:
        found.pop(error.key, None)
        return {**found, "": error}, ()
