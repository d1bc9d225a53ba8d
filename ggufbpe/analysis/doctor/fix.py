"""Writes a corrected copy of a model file, which is examined before it replaces anything.

Nothing is written if the tokenizer would be worse than before, or a key that was set is wrong.
"""

from __future__ import annotations

import builtins
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..._util.caller import frames_to_caller
from ..._util.errors import (
    GGUFError,
    InvalidUTF8Error,
    NotGGUFError,
    ShardError,
    StoreError,
    TensorError,
    UnsupportedTokenizerError,
    printable,
)
from ..._util.files import is_special
from ..._util.shell import shell_path
from ..._util.wording import counted
from ...gguf.constants import TokenizerKey, TokenType
from ...gguf.edit import Edit, write_edited
from ...gguf.edit_arguments import edit_from_value, parse_remove
from ...gguf.file_lock import FileLock, locked
from ...gguf.in_place import recover
from ...gguf.reader import GGUFFile
from ...gguf.schema import errors_in
from ...gguf.tensors import check_parts, check_tensors
from ...gguf.token_edits import USUAL_ADDED, Token, TokenChanges, Tokens, token_edits
from ...gguf.value_types import Field, Value
from ...hub.model_location import ModelName, is_blob, locate
from ...models.loading import load
from ...models.vocabulary import GGUFWarning
from .template_edits import ChatTemplates, template_edits, told_as_unwritten, try_template


class KeyChange(NamedTuple):
    """A `key` with its value `before` and `after`; None if it has none. Arrays are lists.

    A value that was a string, but not UTF-8, is None as well, and then `was_readable` is False.
    """

    key: str
    before: Any
    after: Any
    was_readable: bool = True


@dataclass(frozen=True, repr=False)
class Fixed:
    """What `fix` did. `path` is the file that was written, of `size` bytes, and `changes` are the changed keys.

    `written` is "in place" (only the metadata), "copied", or "shared" (a copy that shares the tensors' blocks on disk);
    "" if there was only an interrupted change to recover from. `recovered` says what happened to that: "undone" or
    "finished"; "" if there was none. `tensors` counts the tensors; 0 if nothing was written.
    """

    path: str
    written: str
    changes: tuple[KeyChange, ...] = ()
    tensors: int = 0
    size: int = 0
    recovered: str = ""

    def __repr__(self) -> str:
        done = self.written or f"an interrupted change was {self.recovered}"
        return f"<Fixed {printable(self.path)}: {counted(len(self.changes), 'key')} changed, {done}>"


def fix(
    path: ModelName,
    output: str | os.PathLike[str] | None = None,
    *,
    in_place: bool = False,
    set: Mapping[str, Value | Field] | None = None,
    remove: str | Iterable[str] = (),
    token_types: Mapping[Tokens, str | TokenType] | Iterable[tuple[Tokens, str | TokenType]] = (),
    chat_template: ChatTemplates | None = None,
    add_tokens: Mapping[str, str | TokenType] | Iterable[str | tuple[str, str | TokenType]] = (),
    remove_tokens: Token | Iterable[Token] = (),
    rename_tokens: Mapping[Token, str] | Iterable[tuple[Token, str]] = (),
    force: bool = False,
) -> Fixed:
    """Write a copy of a model with changed metadata to `output`, or with `in_place` change the model itself.

    `set` maps keys to new values, which are Python's: a key of the tokenizer gets the type that llama.cpp expects,
    another key the type that it has in the file, and a new key a type that holds the value. A
    `ggufbpe.gguf.value_types.Field` gives another type; it is needed for a new key that is spelt nearly as one that
    llama.cpp reads. `remove` is a key, or several. `token_types` maps tokens (an id, a text, or a range of ids) to
    types such as "CONTROL". `chat_template` is a template, "known:NAME" for llama.cpp's of that name, the
    `pathlib.Path` of a template or of a model or folder of transformers that has one, the name of a model
    ("hf:OWNER/REPO"), or a mapping from names ("tool_use") to these. A template that fails on a chat of one message, or
    leaves the message out, raises `ChatError`.

    `rename_tokens` maps tokens (an id or a text) to new texts; a token that merges make or use cannot be renamed.
    `add_tokens` are the texts of new tokens, which get the ids after the last one, or maps them to types
    ("USER_DEFINED" by default). `remove_tokens` are ids or texts; all ids after them move, in other keys too. Every id
    is one of the model before the change. Tensors that have a row for each token forbid adding and removing: a
    `TensorError` names them. Warns (`GGUFWarning`) if the chat template still has the text of a token that is gone.

    The tensors stay byte for byte. The copy is opened as a tokenizer before it is put in place: if it has an error that
    the model does not have, or one in a key that was changed, nothing is written and the `GGUFError` is raised. A model
    whose tensors llama.cpp refuses, as after a download that was cut off, raises `TensorError`. `force` writes it
    anyway, and overwrites an existing file. In place, only the metadata is written if it fits, and the file stays as it
    was if that is interrupted. A change that a crash interrupted is undone or finished first; without changes, only
    that is done.

    >>> fix("model.gguf", "fixed.gguf", set={"tokenizer.ggml.pre": "llama-bpe"})
    <Fixed 'fixed.gguf': 1 key changed, copied>

    A model given by name is never changed in place: `StoreError`, which says how its program can use a copy.

    `ValueError` and `TypeError` for invalid changes, `FileExistsError` if `output` already exists,
    `InterruptedChangeError` if another process is changing the file, or has changed it since it was read (on
    Windows, on SMB shares and where files cannot be locked, let one change end before the next begins); `OSError`.
    """
    source, removed = whole_file(path, in_place), [remove] if isinstance(remove, str) else list(remove)
    tokens = _token_changes(rename_tokens, add_tokens, token_types, remove_tokens)
    if not (set or removed or tokens or chat_template is not None) and (recovered := recover(source)):
        return Fixed(source, "", recovered=recovered, size=os.path.getsize(source))

    def edits(file: GGUFFile) -> list[Edit]:
        return edits_for(file, set or {}, removed, tokens, chat_template, force)

    return write_changes(source, output, edits, in_place=in_place, force=force)


def write_changes(
    source: str,
    output: str | os.PathLike[str] | None,
    edits_of: Callable[[GGUFFile], list[Edit]],
    *,
    in_place: bool,
    force: bool,
) -> Fixed:
    """`fix` with the edits that `edits_of` returns for the open file: in place, nobody else changes that meanwhile."""
    recovered = (recover(source) or "") if in_place else ""
    target = _target(source, output, in_place, force)
    with locked(source) if in_place else nullcontext() as lock:
        with GGUFFile(source) as file:
            edits = edits_of(file)
            changes = tuple(_change(file, edit) for edit in edits)
            lost, tensors = _lost_markers(file, changes), file.tensor_count
            _check_tensors(file, force)
        written = write_fixed(source, target, edits, check=not force, overwrite=force, lock=lock)
    _warn_of_lost_markers(target, lost)
    _warn_of_parts(target, in_place)
    return Fixed(target, written, changes, tensors, os.path.getsize(target), recovered)


def edits_for(
    file: GGUFFile,
    changed: Mapping[str, Value | Field],
    removed: Iterable[str],
    tokens: TokenChanges,
    chat_template: ChatTemplates | None,
    force: bool,
) -> list[Edit]:
    """The edits that make these changes; `ValueError` if there are none, or two of one key."""
    edits = [edit_from_value(file, key, value) for key, value in changed.items()]
    edits += [parse_remove(file, key) for key in removed]
    edits += token_edits(file, tokens, [edit.key for edit in edits]) if tokens else []
    with told_as_unwritten():
        if not force:
            _try_templates(edits)
        edits += [] if chat_template is None else template_edits(file, chat_template, check=not force)
    if not edits:
        raise ValueError("nothing to change: give set, remove, token_types, chat_template or tokens")
    keys = [edit.key for edit in edits]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise ValueError(f"{printable(twice)} is changed twice")
    return edits


def _try_templates(edits: Iterable[Edit]) -> None:
    """Try the chat templates that are set as keys; `ChatError` for one that cannot be parsed or refuses a chat."""
    for edit in edits:
        key, _, name = edit.key.partition(TokenizerKey.CHAT_TEMPLATE)
        if not key and name[:1] in ("", ".") and isinstance(edit.value, str):
            try_template(edit.value, name[1:])


def _lost_markers(file: GGUFFile, changes: Iterable[KeyChange]) -> list[str]:
    """The tokens that are gone, and that the chat template of the changed file still writes."""
    changed = {change.key: change for change in changes}
    listed, template = changed.get(TokenizerKey.LIST), changed.get(TokenizerKey.CHAT_TEMPLATE)
    if listed is None or listed.before is None or listed.after is None:
        return []
    try:
        text = template.after if template else file[TokenizerKey.CHAT_TEMPLATE]
    except (KeyError, InvalidUTF8Error):
        return []
    gone = builtins.set(listed.before) - builtins.set(listed.after)
    return sorted(token for token in gone if len(token) > 2 and token in str(text))


def _warn_of_lost_markers(path: str, lost: list[str]) -> None:
    if lost:
        shown = ", ".join(map(printable, lost[:5]))
        message = f"{path}: the chat template still has {shown}, which is no token any more"
        warnings.warn(message, GGUFWarning, stacklevel=frames_to_caller())


def _warn_of_parts(path: str, in_place: bool) -> None:
    """Warn if `path` is a copy of the first part of a split model from which llama.cpp does not find the others."""
    if in_place or is_special(path):
        return
    with GGUFFile(path) as file:
        if file.part_count <= 1:
            return
        try:
            check_parts(file)
        except ShardError as error:
            needed = "a copy of the first part needs the others beside it, under the names that they had"
            warnings.warn(f"{path}: {error.problem}; {needed}", GGUFWarning, stacklevel=frames_to_caller())


def _token_changes(
    renamed: Mapping[Token, str] | Iterable[tuple[Token, str]],
    added: Mapping[str, str | TokenType] | Iterable[str | tuple[str, str | TokenType]],
    types: Mapping[Tokens, str | TokenType] | Iterable[tuple[Tokens, str | TokenType]],
    removed: Token | Iterable[Token],
) -> TokenChanges:
    """The changes of tokens, in lists; `TypeError` for a type without its token."""
    if isinstance(types, str):
        raise TypeError(f'token_types has a type for each token, {{id: "CONTROL"}}, not {printable(types)}')
    return TokenChanges(
        list(renamed.items() if isinstance(renamed, Mapping) else renamed),
        _added(added),
        list(types.items() if isinstance(types, Mapping) else types),
        [removed] if isinstance(removed, (int, str)) else list(removed),
    )


def _added(
    tokens: Mapping[str, str | TokenType] | Iterable[str | tuple[str, str | TokenType]],
) -> list[tuple[str, str | TokenType]]:
    """Texts of new tokens with their types."""
    if isinstance(tokens, Mapping):
        return list(tokens.items())
    given = [tokens] if isinstance(tokens, str) else tokens
    return [(each, USUAL_ADDED) if isinstance(each, str) else each for each in given]


def _check_tensors(file: GGUFFile, force: bool) -> None:
    """Raise the error of `check_tensors` unless `force` is given, and say what that does."""
    try:
        check_tensors(file)
    except TensorError as error:
        if force:
            return
        error.remedy = f"{error.remedy} (nothing was written; force=True writes it)"
        raise


def whole_file(model: ModelName, in_place: bool = False) -> str:
    """The path of the file to copy, or with `in_place` to change; `StoreError` if it must not be.

    The file of a model given by name belongs to another program: it is found by its digest, and may be in use.
    """
    found = locate(model)
    if found.is_imported:
        raise NotGGUFError(
            "this is a tokenizer of another program, and only a GGUF can be changed",
            path=found.name,
            remedy=f"`ggufbpe import {shell_path(found.name)}` writes vocab.gguf, to give instead",
        )
    if found.remote is not None:
        from ...hub.stores.all_stores import how_to_download

        how = how_to_download(found.remote)
        raise StoreError(
            "this model is remote, and only its metadata can be read; a copy needs its tensors",
            path=found.name,
            remedy=f"download it first{f' ({how[0]})' if how else ''}, then give {how[1] if how else 'its path'}",
        )
    if in_place and found.store:
        from ...hub.stores.all_stores import how_to_use

        raise StoreError(
            f"this file belongs to {found.store}, so it is not changed in place",
            path=found.name,
            remedy=f"write a copy to fixed.gguf; {how_to_use(found.name, found.store, 'fixed.gguf')}",
        )
    if in_place:
        _check_no_blob(found.path, found.name)
    return found.path


def _check_no_blob(path: str, name: str) -> None:
    """`StoreError` for a file that is named by the digest of its content."""
    if is_blob(path):
        raise StoreError(
            "this file is named by the digest of its content, so it is not changed",
            path=name,
            remedy="write a copy to another place",
        )


def _target(source: str, output: str | os.PathLike[str] | None, in_place: bool, force: bool) -> str:
    """The path of the copy; an error if it is not free."""
    if (output is None) is not in_place:
        raise ValueError("where should the copy go? Give output, or in_place=True to change the model itself")
    if output is None:
        return source
    target = os.fspath(output)
    _check_no_blob(target, target)
    if os.path.isdir(target):
        raise ValueError(f"{printable(target)} is a directory; the output is a file")
    if os.path.exists(target) and os.path.exists(source) and os.path.samefile(target, source):
        raise ValueError("the output is the model itself; in_place=True changes that")
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
    overwrite: bool = True,
    lock: FileLock | None = None,
) -> str:
    """Write `source` with the `edits` to `target`, which may be `source` and is replaced whole.

    With `check`, a copy that has an error which `source` does not have, or one in a key that was edited, is discarded
    and the `GGUFError` raised; errors are what prevents opening the tokenizer, and what schema.py calls an error.
    Other problems of the copy, and the warnings of opening it, are `GGUFWarning`s. After an `OSError`, such as a
    full disk, or an interruption `target` is as before, with nothing beside it. `overwrite`, `lock` and what is
    returned, how the tensors were written: see `write_edited`.
    """
    source, target = os.fspath(source), os.fspath(target)
    edits = list(edits)
    told: list[str] = []

    def examine(copy: str, metadata: bytes | None) -> None:
        told.extend(_problems(copy, metadata, target, source, {edit.key for edit in edits}))

    done = write_edited(source, target, edits, examine if check else None, overwrite=overwrite, lock=lock)
    for problem in told:  # not earlier, since a caller may turn warnings into errors
        warnings.warn(problem, GGUFWarning, stacklevel=frames_to_caller())
    return done


def _problems(copy: str, metadata: bytes | None, target: str, source: str, edited: set[str]) -> list[str]:
    """Raise the first error that the edits caused or left, and return warnings about other problems of the copy.

    All of them name the path that the copy will have.
    """
    found, told = _errors(copy, metadata)
    before = _errors(source)[0] if found else {}
    for at, error in found.items():
        error.path = target
        # opening stops at the first error, which may have been another one
        is_hidden = not at and "" in before
        if error.key in edited or not (at in before or is_hidden):
            error.offset = None  # the bytes of the copy are gone
            if error.key in edited:  # the given value is wrong, not a file
                error.path = None
            remedy = error.remedy or "change something else" if error.path else "give another value"
            error.remedy = f"{remedy} (nothing was written; force=True writes it)"
            raise error
    return [*map(str, found.values()), *(f"{target}: {problem}" for problem in told)]


def _errors(path: str, data: bytes | None = None) -> tuple[dict[str | None, GGUFError], tuple[str, ...]]:
    """The errors in the tokenizer of a file, or of `data` in its place, by key, and the warnings of opening it.

    The error that prevents opening it is under "".
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
