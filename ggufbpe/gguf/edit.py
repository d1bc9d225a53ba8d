"""Writes a corrected copy of a GGUF file: changed keys and values, with the tensors byte for byte as before.

Only the keys that change are packed again; every other byte is copied in blocks. The file does not go through the
`gguf` package's `GGUFWriter`, which takes tensors as arrays, in its own order and with its own padding: a 40 GB model
would pass through memory and come out with other bytes. Tensor offsets count from the beginning of the data section,
so the tensor infos stay as they are, and only the padding before that section is new (ggml/src/gguf.cpp,
gguf_init_from_reader).

A file is replaced in one step or not at all: the copy is written beside it under a temporary name, synced to
disk, examined, and renamed. If a file replaces itself and its new metadata has room before the tensors, only
the metadata is written (in_place.py); a padding key fills the gap. Either way such a file is locked
(file_lock.py), and nothing is written if it is not as it was. On file systems whose files can share
blocks the copy shares the tensors' with the source, and a padding key aligns them so that this works.

Files of version 1, which llama.cpp no longer reads, are refused. The arguments of --set and --remove are parsed in
edit_arguments.py; the rules for a tokenizer's values are in analysis/doctor/fix.py.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import IO, Any, Literal, NamedTuple

from .._util.files import remove_abandoned, replacing, sync, undo_record
from .constants import KEY_ALIGNMENT, GGUFValueType
from .file_lock import FileLock, locked
from .in_place import CannotRewriteError, rewrite
from .reader import GGUFFile
from .source import SHARED_BLOCK, ByteRange
from .tensors import is_alignment, tensor_alignment, tensor_infos
from .value_types import Field
from .writer import Packer

_T = GGUFValueType
PADDING = "ggufbpe.pad"  # the padding key: its value is spaces
_WORTH_SHARING = 1 << 20

CONVERT_VERSION_1 = "convert the model again: it is of GGUF version 1, which llama.cpp no longer reads"


class Edit(NamedTuple):
    """One change: `key` gets `value`, or is removed if `type` is None; `element` is the type of an array's elements."""

    key: str
    type: GGUFValueType | None = None
    value: Any = None
    element: GGUFValueType | None = None


Examine = Callable[[str, bytes | None], None]
_Part = bytes | ByteRange  # new bytes, or those of the source file


def write_edited(
    source: str,
    target: str,
    edits: list[Edit],
    examine: Examine | None = None,
    *,
    overwrite: bool = True,
    lock: FileLock | None = None,
) -> Literal["in place", "shared", "copied"]:
    """Write to `target` the file `source` with the `edits`; `target` may be `source`, and is replaced as a whole.

    `examine` is called with the path of the copy before it replaces the target, and prevents that by raising; or with
    the new metadata, if only that will be written. An `OSError`, such as a full disk, and an interruption leave
    `target` as it was and nothing beside it. Without `overwrite`, `FileExistsError` if there is another file at
    `target` when the copy is whole. Returns how the tensors got there.

    A source that is the target is locked, unless the caller did that, who has read it before: with `lock`.
    `InterruptedChangeError` if another process is changing it, or has changed it since it was locked.
    """
    if not os.path.basename(target):  # the copy would get the name before the last slash
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    for place in (os.path.realpath(target), undo_record(target)):
        remove_abandoned(place)
    if not (os.path.exists(target) and os.path.samefile(source, target)):
        return _copied(source, target, edits, examine, overwrite, None)
    with nullcontext(lock) if lock else locked(source) as held:
        if os.stat(source).st_nlink == 1 and _rewritten(held, edits, examine):
            return "in place"
        return _copied(source, target, edits, examine, True, held)


def _copied(
    source: str,
    target: str,
    edits: list[Edit],
    examine: Examine | None,
    overwrite: bool,
    lock: FileLock | None,
) -> Literal["shared", "copied"]:
    """Write a copy, and put it in the place of the target; `lock` is that of the target if it is the source."""
    with GGUFFile(source) as model:
        layout = _Layout(model, edits)
        with replacing(target, overwrite=overwrite) as (file, temporary):
            shares = _copy(model, layout, file)
            model.close()  # the target may be the source, and some systems replace no open file
            file.flush()
            if examine is not None and temporary != target:  # not a device or a pipe
                examine(temporary, None)
            if lock is not None:
                sync(file)  # slow, so done before the check, which must come just before the rename
                lock.require_unchanged()
    return "shared" if shares else "copied"


def _rewritten(lock: FileLock, edits: list[Edit], examine: Examine | None) -> bool:
    """Write only the metadata; False if it has no room, or the file can only be replaced.

    Of the padding, only what was metadata is written: the rest is padding already, and may be gigabytes.
    """
    with GGUFFile(lock.path) as model:
        layout = _Layout(model, edits)
        head = layout.head(layout.data.start)
        if head is None:
            return False
        after = b"".join(_bytes_of(model, head, max(0, layout.infos_end - (head.size - head.padding))))
        if examine is not None:
            examine(lock.path, after)
        before = b"".join(model.blocks(ByteRange(0, len(after))))
    try:
        rewrite(lock, 0, before, after)
    except CannotRewriteError:
        return False
    return True


class _Head(NamedTuple):
    """What comes before the tensors: new bytes and spans of the source, and then zeros."""

    parts: list[_Part]
    padding: int  # zeros; never as many as the alignment, which may be gigabytes

    @property
    def size(self) -> int:
        return sum(map(_size_of, self.parts)) + self.padding


class _Layout:
    """The layout of a changed file: its metadata, and where the source's tensors follow."""

    def __init__(self, file: GGUFFile, edits: list[Edit]) -> None:
        file.require_first_shard()
        self._pack = Packer(file.byteorder, file.version)
        self._tensor_count = file.tensor_count
        self._kept = _kept(file, edits, self._pack)
        self.alignment = tensor_alignment(file)
        self.infos_end = file.metadata_end
        for info in tensor_infos(file):
            self.infos_end = info.end
        self._tensor_infos = ByteRange(file.metadata_end, self.infos_end)
        data_start = self.infos_end + -self.infos_end % self.alignment
        # Padding is kept, even in a file of only metadata. A file that ends in its padding, or before it, has no data
        # that could be aligned: what is left of it is copied as it is, and an alignment of gigabytes costs nothing.
        self.has_data = self.infos_end < file.size and data_start <= file.size
        self.data = ByteRange(data_start if self.has_data else self.infos_end, file.size)

    def head(self, end: int | None = None, block: int = 0) -> _Head | None:
        """The part of the file before the tensors.

        It ends at `end`; None if it cannot. Or, given `block`, at the same offset in a block as the source's.
        """
        parts: list[_Part] = [*self._kept.values(), self._tensor_infos]
        header = self._pack.header(len(self._kept), self._tensor_count)
        size = len(header) + sum(map(_size_of, parts))
        if not self.has_data:
            return _Head([header, *parts], 0) if end in (None, size) else None
        if block:
            end = size + (self.data.start - size) % block
            while self._filled(end - size) is None:
                end += block
        filling = (None, -size % self.alignment) if end is None else self._filled(end - size)
        if filling is None:
            return None
        key, padding = filling
        if key is not None:
            header = self._pack.header(len(self._kept) + 1, self._tensor_count)
            parts.insert(-1, key)
        return _Head([header, *parts], padding)

    def _filled(self, gap: int) -> tuple[bytes | None, int] | None:
        """Fills `gap` bytes before the tensors: with the usual padding, after a padding key if that is too short."""
        if 0 <= gap < self.alignment:
            return None, gap
        empty = self._pack.key(PADDING, Field(_T.STRING, ""))
        if gap < len(empty):
            return None
        return self._pack.key(PADDING, Field(_T.STRING, " " * (gap - len(empty)))), 0


def _size_of(part: _Part) -> int:
    return len(part) if isinstance(part, bytes) else part.end - part.start


def _kept(file: GGUFFile, edits: list[Edit], pack: Packer) -> dict[str, _Part]:
    """Keys with their byte range in the source, or their new bytes."""
    kept: dict[str, _Part] = dict(file.spans())
    if file.tensor_count and any(edit.key == KEY_ALIGNMENT for edit in edits):
        raise ValueError(f"{KEY_ALIGNMENT} says where the tensors lie, so it cannot change")
    for edit in edits:
        if edit.key == KEY_ALIGNMENT and edit.type is not None and not is_alignment(edit.value, edit.type):
            raise ValueError(
                f"{KEY_ALIGNMENT} must be a power of two of type UINT32, or llama.cpp refuses the file"
            )
    kept.pop(PADDING, None)
    for edit in edits:
        if edit.type is None:
            kept.pop(edit.key, None)
        else:
            kept[edit.key] = pack.key(edit.key, Field(edit.type, edit.value, edit.element))
    return kept


def _bytes_of(source: GGUFFile, head: _Head, most_padding: int | None = None) -> Iterator[bytes]:
    for part in head.parts:
        yield from [part] if isinstance(part, bytes) else source.blocks(part)
    left = head.padding if most_padding is None else min(head.padding, most_padding)
    while left:
        block = bytes(min(left, source.COPIED_BLOCK))
        yield block
        left -= len(block)


def _copy(source: GGUFFile, layout: _Layout, target: IO[bytes]) -> bool:
    """Write the whole changed file. True if it shares blocks with the source."""
    block = max(SHARED_BLOCK, layout.alignment)
    shared = layout.head(block=block) if layout.data.end - layout.data.start >= _WORTH_SHARING else None
    if shared is not None and source.can_share(target):
        for part in _bytes_of(source, shared):
            target.write(part)
        source.share(layout.data, target)
        return True
    head = layout.head()
    assert head is not None
    for part in _bytes_of(source, head):
        target.write(part)
    for part in source.blocks(layout.data):
        target.write(part)
    return False
