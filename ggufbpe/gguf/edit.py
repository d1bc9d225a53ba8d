"""A corrected copy of a GGUF file: other keys and values, the tensors byte for byte as they were.

    model.gguf + edits -> [this file] -> fixed.gguf

Only the keys that change are packed anew; every other byte is copied in blocks. The whole file does not go through
the `gguf` package's `GGUFWriter`: it takes tensors as arrays, in its own order and with its own padding, so a 40 GB
model would pass through memory and come out with other bytes. Tensor offsets count from the beginning of the data
section, so the tensor infos stay as they are, and only the padding before that section is new (ggml/src/gguf.cpp,
gguf_init_from_reader).

A file is replaced in one step or not at all: the copy is written beside it under a temporary name, brought to
the disk, examined, and renamed.

But: files of version 1, which llama.cpp no longer reads. What --set and --remove say is in arguments.py, what a
tokenizer may be in doctor/mend.py.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import IO, Any, NamedTuple

from ..errors import CorruptMetadataError, TruncatedFileError
from ..files import replacing
from .constants import GGUFValueType
from .reader import GGUFFile
from .source import ByteRange
from .values import Field
from .writer import Packer

_T = GGUFValueType
_ALIGNMENT = "general.alignment"
_DEFAULT_ALIGNMENT = 32  # GGUF_DEFAULT_ALIGNMENT
_MOST_DIMENSIONS = 4  # GGML_MAX_DIMS

CONVERT_VERSION_1 = "convert the model again: it is of GGUF version 1, which llama.cpp does not read any more"


class Edit(NamedTuple):
    """One change: `key` gets `value`, or goes where `type` is None."""

    key: str
    type: GGUFValueType | None = None
    value: Any = None
    element: GGUFValueType | None = None  # the element type of an array


_Part = bytes | ByteRange  # new bytes, or those of the source file


def is_of_version_1(path: str | os.PathLike[str]) -> bool:
    """Whether a file cannot be mended here, because it is of GGUF version 1. False for one that is not there."""
    try:
        with open(path, "rb") as file:
            head = file.read(8)
    except OSError:
        return False
    return head in (b"GGUF\1\0\0\0", b"GGUF\0\0\0\1")


def write_edited(
    source: str,
    target: str,
    edits: list[Edit],
    examine: Callable[[str], None] | None = None,
) -> None:
    """Write to `target` the file `source` with the `edits`; `target` may be `source`, and is replaced whole.

    `examine` is called with the path of the copy before it takes its place, and stops that by raising. An `OSError`,
    such as a full disk, and an interruption leave `target` as it was and nothing beside it.
    """
    with GGUFFile(source) as model:
        parts = _plan(model, edits)
        with replacing(target) as (file, temporary):
            _copy(model, parts, file)
            model.close()  # the target may be the source, and some systems do not replace an open file
            file.flush()
            if examine is not None and temporary != target:  # not a device or a pipe
                examine(temporary)


def _plan(file: GGUFFile, edits: list[Edit]) -> list[_Part]:
    """What the copy is made of, in order: new bytes, and spans of the source."""
    file.require_first_shard()
    kept: dict[str, _Part] = dict(file.spans())
    if file.tensor_count and any(edit.key == _ALIGNMENT for edit in edits):
        raise ValueError(f"{_ALIGNMENT} says where the tensors lie, so it cannot change")
    pack = Packer(file.byteorder, file.version)
    for edit in edits:
        if edit.type is None:
            kept.pop(edit.key, None)
        else:
            kept[edit.key] = pack.key(edit.key, Field(edit.type, edit.value, edit.element))
    header = pack.header(len(kept), file.tensor_count)
    alignment = _alignment(file)
    first = file.metadata_end
    last = _tensor_infos_end(file)
    parts: list[_Part] = [header, *kept.values(), ByteRange(first, last)]
    data = last + -last % alignment
    if file.size > last:  # padding is written where it was, also in a file of metadata alone
        end = sum(len(part) if isinstance(part, bytes) else part.end - part.start for part in parts)
        parts += [bytes(-end % alignment), ByteRange(min(data, file.size), file.size)]
    return parts


def _alignment(file: GGUFFile) -> int:
    if _ALIGNMENT not in file:
        return _DEFAULT_ALIGNMENT
    value = file[_ALIGNMENT]
    if (
        file.value_type(_ALIGNMENT) is not _T.UINT32
        or not isinstance(value, int)
        or not value
        or value & value - 1
    ):
        raise CorruptMetadataError(
            "the alignment of the tensors is no power of two of type UINT32",
            path=file.path,
            offset=file.offset(_ALIGNMENT),
            key=_ALIGNMENT,
            remedy="convert the model again",
        )
    return value


def _tensor_infos_end(file: GGUFFile) -> int:
    """Where the tensor infos end: for each tensor its name, its dimensions, its type and its offset."""
    order = "<" if file.byteorder == "little" else ">"
    length, dimensions = struct.Struct(order + "Q"), struct.Struct(order + "I")
    position = file.metadata_end
    unread = file.blocks(ByteRange(position, file.size))
    data, start = b"", position  # what was read, and where it begins

    def take(size: int) -> bytes:
        nonlocal data, start, position
        while start + len(data) < position + size:
            block = next(unread, None)
            if block is None:
                raise TruncatedFileError(
                    "the file ends inside the list of tensors",
                    path=file.path,
                    offset=position,
                    remedy="the download is unfinished: get the file again",
                )
            data, start = data[position - start :] + block, position
        at = position - start
        position += size
        return data[at : at + size]

    for _ in range(file.tensor_count):
        (size,) = length.unpack(take(8))
        if size > 1 << 16:
            raise CorruptMetadataError(
                f"the name of a tensor has {size} bytes", path=file.path, offset=position - 8
            )
        take(size)
        (rank,) = dimensions.unpack(take(4))
        if rank > _MOST_DIMENSIONS:
            raise CorruptMetadataError(f"a tensor has {rank} dimensions", path=file.path, offset=position - 4)
        take(8 * rank + 4 + 8)
    return position


def _copy(source: GGUFFile, parts: list[_Part], target: IO[bytes]) -> None:
    for part in parts:
        for block in [part] if isinstance(part, bytes) else source.blocks(part):
            target.write(block)
