"""Writes a corrected copy of a model file, which is examined before it replaces anything.

    model.gguf, keys and values -> gguf/arguments.py -> edits -> gguf/edit.py -> [this file: is it sound?] -> fixed.gguf

A fix that leaves a key that it set, or the tokenizer, worse than before writes nothing.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from ..by_name import ModelName, locate
from ..errors import GGUFError, InvalidUTF8Error, StoreError, UnsupportedTokenizerError, printable
from ..files import is_special
from ..gguf.arguments import Tokens, edit_of, parse_remove, set_token_types
from ..gguf.constants import TokenType
from ..gguf.edit import Edit, write_edited
from ..gguf.in_place import recover
from ..gguf.reader import GGUFFile
from ..gguf.schema import errors_in
from ..gguf.values import Field, Value
from ..vocab import GGUFWarning, load
from ..vocab.vocabulary import frames_to_caller
from ..wording import counted
from .given_template import ChatTemplates, template_edits

_NOTHING: Mapping[str, Value | Field] = MappingProxyType({})


class KeyChange(NamedTuple):
    """What became of a key: its value before and after, None where it has none. Arrays are lists."""

    key: str
    before: Any
    after: Any
    was_readable: bool = True  # else a string that is not UTF-8


@dataclass(frozen=True, repr=False)
class Fixed:
    """What `fix` did.

    `written` is "in place" (only the metadata), "copied" or "shared" (a copy that shares the tensors' blocks on the
    disk); "" where all there was to do was to end an interrupted change. What became of that is `recovered`: "undone"
    or "finished", "" where there was none.
    """

    path: str
    written: str
    changes: tuple[KeyChange, ...] = ()
    tensors: int = 0
    size: int = 0  # bytes of the file
    recovered: str = ""

    def __repr__(self) -> str:
        done = self.written or f"an interrupted change was {self.recovered}"
        return f"<Fixed {printable(self.path)}: {counted(len(self.changes), 'key')} changed, {done}>"


def fix(
    path: ModelName,
    output: str | os.PathLike[str] | None = None,
    *,
    in_place: bool = False,
    set: Mapping[str, Value | Field] = _NOTHING,
    remove: str | Iterable[str] = (),
    token_types: Mapping[Tokens, str | TokenType] | Iterable[tuple[Tokens, str | TokenType]] = (),
    chat_template: ChatTemplates | None = None,
    force: bool = False,
) -> Fixed:
    """Write a copy of a model with other metadata to `output`, or with `in_place` change the model itself.

    `set` has keys with their new values, Python's: a key of llama.cpp's has the type that it wants, others the one that
    they have in the file, else one that can hold the value; `gguf.values.Field` says the type. `remove` are keys to be
    taken out, or one. `token_types` gives tokens, by id, by text, or as a range of ids, a type such as "CONTROL".
    `chat_template` is a template, the `pathlib.Path` of a file with one, "known:NAME" for the one that llama.cpp has
    under that name, or a mapping of such by name ("tool_use"); one that no chat can be made with is a `ChatError`.

    The tensors stay byte for byte. The copy is opened as a tokenizer before it takes its place: one that has an error
    which the model has not, or one in a key that was changed, is not written, and the `GGUFError` raised. `force`
    writes it even so, and over an existing file. In place, only the metadata is written where it has room; whenever it
    is interrupted, the file is still the old one, and a change that was interrupted by a crash is ended first. Without
    changes, that is all that is done.

    >>> fix("model.gguf", "fixed.gguf", set={"tokenizer.ggml.pre": "llama-bpe"})     # doctest: +SKIP
    <Fixed 'fixed.gguf': 1 key changed, copied>

    A model that is given by a name is never changed in place: `StoreError`, with how its program gets to use a copy.

    `ValueError` and `TypeError` for changes that make no sense, `FileExistsError` where `output` already exists,
    `InterruptedChangeError` where another process is changing the file, `OSError`.
    """
    source, removed = whole_file(path, in_place), [remove] if isinstance(remove, str) else list(remove)
    if isinstance(token_types, str):
        raise TypeError(
            f'token_types has a type for each token, {{id: "CONTROL"}}, not {printable(token_types)}'
        )
    types = list(token_types.items() if isinstance(token_types, Mapping) else token_types)
    is_change = bool(set or removed or types or chat_template is not None)
    recovered = (recover(source) or "") if in_place or not is_change else ""
    if recovered and not is_change:
        return Fixed(source, "", recovered=recovered, size=os.path.getsize(source))
    target = _target(source, output, in_place, force)
    with GGUFFile(source) as file:
        edits = [edit_of(file, key, value) for key, value in set.items()]
        edits += [parse_remove(file, key) for key in removed]
        edits += [set_token_types(file, types)] if types else []
        edits += [] if chat_template is None else template_edits(file, chat_template, check=not force)
        if not edits:
            raise ValueError(
                "nothing to change: give set, remove, token_types or chat_template "
                "(--set, --override-kv, --remove, --set-token-type, --chat-template)"
            )
        keys = [edit.key for edit in edits]
        if twice := next((key for key in keys if keys.count(key) > 1), None):
            raise ValueError(f"{printable(twice)} is changed twice")
        changes = tuple(_change(file, edit) for edit in edits)
        tensors = file.tensor_count
    written = write_fixed(source, target, edits, check=not force)
    return Fixed(target, written, changes, tensors, os.path.getsize(target), recovered)


def whole_file(model: ModelName, in_place: bool = False) -> str:
    """The path of the file to copy, or with `in_place` to change. `StoreError` where that is not to be done.

    A name is of a model that another program has: its files are found by their digests, and others may use them, too.
    """
    found = locate(model)
    if found.remote is not None:
        raise StoreError(
            "this model is far away, and only its metadata is read; a copy takes its tensors",
            path=found.name,
            remedy="download it first, and give the path",
        )
    if in_place and found.store:
        from ..names.stores import how_to_use

        raise StoreError(
            f"this is a file of {found.store}, which is not changed in place",
            path=found.name,
            remedy=f"write a copy with -o fixed.gguf; {how_to_use(found.name, found.store, 'fixed.gguf')}",
        )
    if in_place:
        _check_no_blob(found.path, found.name)
    return found.path


_BLOB = re.compile(r"(sha256-)?([0-9a-f]{40}|[0-9a-f]{64})")


def _check_no_blob(path: str, name: str) -> None:
    """`StoreError` for a file whose name is the digest of what is in it, as Ollama and the hub's cache have them."""
    folder, file = os.path.split(os.path.realpath(path))
    if os.path.basename(folder) == "blobs" and _BLOB.fullmatch(file):
        raise StoreError(
            "this is a file in a store that finds it by the digest of its content, so it is not changed",
            path=name,
            remedy="write a copy to another place",
        )


def _target(source: str, output: str | os.PathLike[str] | None, in_place: bool, force: bool) -> str:
    """Where the copy goes; refused where that is not free."""
    if (output is None) is not in_place:
        raise ValueError("where should the copy go? Give output, or in_place=True to change the model itself")
    if output is None:
        return source
    target = os.fspath(output)
    _check_no_blob(target, target)
    if os.path.isdir(target):
        raise ValueError(f"{printable(target)} is a directory; the output is a file")
    if os.path.exists(target) and os.path.exists(source) and os.path.samefile(target, source):
        raise ValueError("the output is the model itself; to change that, say in_place (--in-place)")
    if os.path.lexists(target) and not force and not is_special(target):
        raise FileExistsError(f"{printable(target)} already exists; force=True overwrites it")
    return target


def _change(file: GGUFFile, edit: Edit) -> KeyChange:
    try:
        # no dict, has no get
        before, was_readable = file[edit.key] if edit.key in file else None, True  # noqa: SIM401
    except InvalidUTF8Error:
        before, was_readable = None, False
    return KeyChange(edit.key, before, edit.value, was_readable)


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
        warnings.warn(problem, GGUFWarning, stacklevel=frames_to_caller())
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
            remedy = "give another value" if error.key in edited else error.remedy or "change something else"
            error.remedy = f"{remedy} (nothing was written; --force writes it)"
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
