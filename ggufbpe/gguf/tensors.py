"""Reads the tensor infos of a GGUF file and tells whether llama.cpp accepts them.

Only the infos are read, never the data: names, shapes, types and offsets, and from these how long the file must be.
The rules are those of ggml (ggml/src/gguf.cpp, gguf_init_from_reader) and of llama.cpp's loader
(src/llama-model-loader.cpp), which both run before a tokenizer is loaded. Bytes after the last tensor are no error.

Layout, after the keys and in the file's byte order, of each info:

    name string, number of dimensions u32, elements of each i64, type u32, offset in the data u64
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from .._util.errors import (
    CorruptMetadataError,
    GGUFError,
    RemoteError,
    ShardError,
    TensorError,
    TruncatedFileError,
    WrongTypeError,
)
from .._util.wording import counted, quoted_piece
from .constants import (
    DEFAULT_ALIGNMENT,
    KEY_ALIGNMENT,
    KEY_FILE_TYPE,
    KEY_SPLIT_COUNT,
    KEY_SPLIT_NO,
    KEY_SPLIT_TENSORS,
    TENSOR_TYPES,
    GGUFValueType,
)
from .reader import GGUFFile
from .section import DAMAGED
from .source import DOWNLOAD_AGAIN

_MOST_DIMENSIONS = 4  # GGML_MAX_DIMS
_MOST_NAME = 63  # bytes: GGML_MAX_NAME, less a NUL
LONGEST_NAME = 1 << 16  # bytes of a name that llama.cpp refuses, but that does not hide where the info ends
_MOST_INFOS = 1 << 26  # bytes of all infos; real models have less than 2**20
# the most bytes of a tensor info, unless its name is too long
LONGEST_INFO = 8 + _MOST_NAME + 4 + 8 * _MOST_DIMENSIONS + 4 + 8
_INT64, _SIZE = 2**63 - 1, 2**64 - 1  # the largest int64_t and size_t


class TensorInfo(NamedTuple):
    """What a file says about one of its tensors."""

    name: bytes
    shape: tuple[int, ...]  # elements of each dimension, that of adjacent elements first
    type: int
    offset: int  # of the data, from the beginning of the data section
    start: int  # of this info in the file
    end: int  # of this info in the file

    @property
    def called(self) -> str:
        """The tensor's name in a message."""
        return f"tensor {quoted_piece(self.name, 80)}"

    @property
    def dimensions(self) -> str:
        """The shape in a message."""
        return " x ".join(map(str, self.shape))


def is_alignment(value: object, kind: GGUFValueType) -> bool:
    """Whether ggml accepts a value of `general.alignment`; it may be silly, such as 2**31."""
    return kind is GGUFValueType.UINT32 and isinstance(value, int) and value > 0 and not value & (value - 1)


def tensor_alignment(file: GGUFFile) -> int:
    """The alignment of the tensors in bytes. `CorruptMetadataError` if it is not one that ggml accepts."""
    if KEY_ALIGNMENT not in file:
        return DEFAULT_ALIGNMENT
    value = file[KEY_ALIGNMENT]
    if not is_alignment(value, file.value_type(KEY_ALIGNMENT)):
        raise CorruptMetadataError(
            "the alignment of the tensors is not a power of two of type UINT32",
            path=file.path,
            offset=file.offset(KEY_ALIGNMENT),
            key=KEY_ALIGNMENT,
            remedy="convert the model again",
        )
    assert isinstance(value, int)
    return value


def tensor_infos(file: GGUFFile) -> Iterator[TensorInfo]:
    """The tensor infos of a file, in its order; whether llama.cpp accepts them is not checked.

    `TruncatedFileError` or `CorruptMetadataError` where the next info cannot be found; `RemoteError` if the file is
    remote and its infos were not read.
    """
    order = "<" if file.byteorder == "little" else ">"
    length, dimensions = struct.Struct(order + "Q"), struct.Struct(order + "I")
    rest = [struct.Struct(f"{order}{rank}qiQ") for rank in range(_MOST_DIMENSIONS + 1)]
    position = file.metadata_end
    for index in range(file.tensor_count):
        data = file.some(position, LONGEST_INFO)
        if len(data) < length.size:
            raise _missing_info(file, position, index)
        (name_size,) = length.unpack_from(data)
        if name_size > LONGEST_NAME or position - file.metadata_end > _MOST_INFOS:
            raise CorruptMetadataError(
                f"the name of tensor {index} has {name_size} bytes"
                if name_size > LONGEST_NAME
                else f"the tensor infos are longer than {_MOST_INFOS} bytes",
                path=file.path,
                offset=position,
                remedy=DAMAGED,
            )
        at = length.size + name_size
        if name_size > _MOST_NAME:
            data = file.some(position, LONGEST_INFO + name_size)
        if len(data) < at + dimensions.size:
            raise _missing_info(file, position, index)
        (rank,) = dimensions.unpack_from(data, at)
        if rank > _MOST_DIMENSIONS:
            raise CorruptMetadataError(
                f"tensor {quoted_piece(data[length.size : at])} has {rank} dimensions; the most are "
                f"{_MOST_DIMENSIONS}",
                path=file.path,
                offset=position + at,
                remedy=DAMAGED,
            )
        end = at + dimensions.size + rest[rank].size
        if len(data) < end:
            raise _missing_info(file, position, index)
        *shape, kind, offset = rest[rank].unpack_from(data, at + dimensions.size)
        yield TensorInfo(data[length.size : at], tuple(shape), kind, offset, position, position + end)
        position += end


def _missing_info(file: GGUFFile, position: int, index: int) -> GGUFError:
    if file.here < file.size:
        return RemoteError(
            "the tensor infos of this file were not read",
            path=file.path,
            offset=file.here,
            remedy="read it again with refresh=True",
        )
    return TruncatedFileError(
        f"the file ends inside the tensor infos: {index} of {file.tensor_count} are there",
        path=file.path,
        offset=position,
        remedy=DOWNLOAD_AGAIN,
    )


def check_tensors(file: GGUFFile) -> None:
    """Raise an error unless llama.cpp accepts the tensors of a file, as far as their infos and its length tell.

    A `TensorError` names the tensor, and how many bytes are missing if the file is too short. `TruncatedFileError` and
    `CorruptMetadataError` mean that the infos end too early, or that there is no telling where they end; `RemoteError`
    as in `tensor_infos`.
    """
    if file.version == 1:  # llama.cpp reads nothing of it, and its infos have another form
        return
    alignment = tensor_alignment(file)
    names: set[bytes] = set()
    expected = data_end = 0  # where the next tensor must begin, and where the last one ends
    infos_end = file.metadata_end
    for index, info in enumerate(tensor_infos(file)):
        problem = _problem_of_name(info.name, names, index) or _problem_of_shape(info)
        size = 0 if problem else _size_of(info)
        problem = problem or _problem_of_place(info, expected, size, alignment)
        if problem:
            raise _error(file, info, problem)
        names.add(_c_string(info.name))
        data_end, infos_end = info.offset + size, info.end
        expected = data_end + -data_end % alignment
    data_start = infos_end + -infos_end % alignment
    if file.tensor_count and data_start + data_end > file.size:
        raise _cut_off(file, data_start, data_start + data_end - file.size)


def _problem_of_name(name: bytes, names: set[bytes], index: int) -> str:
    if len(name) > _MOST_NAME:
        shown = quoted_piece(name)
        return f"the name of tensor {index}, {shown}, has {len(name)} bytes; the most are {_MOST_NAME}"
    if _c_string(name) in names:
        return f"two tensors are called {quoted_piece(name)}"
    return ""


def _c_string(name: bytes) -> bytes:
    """The part of a name that llama.cpp keeps."""
    return name.partition(b"\0")[0]


def _problem_of_shape(info: TensorInfo) -> str:
    """What ggml refuses about the dimensions and the type of a tensor; "" if it accepts them."""
    if min(info.shape, default=0) < 0:
        return f"{info.called} has a negative dimension: {info.dimensions}"
    elements = info.shape[0] if info.shape else 1
    for dimension in info.shape[1:]:
        if dimension > 1 and _INT64 // dimension < elements:
            return f"{info.called} has more than 2^63 elements: {info.dimensions}"
        elements *= dimension
    if info.type not in TENSOR_TYPES:
        return f"{info.called} has type {info.type}, which llama.cpp does not read"
    name, block, width = TENSOR_TYPES[info.type]
    row = info.shape[0] if info.shape else 1
    if row % block:
        return f"{info.called} has rows of {row} elements, which is not a multiple of {block}, the block size of {name}"
    if elements // block > _SIZE // width:
        return f"{info.called} has more than 2^64 bytes: {info.dimensions} elements of type {name}"
    return ""


def _size_of(info: TensorInfo) -> int:
    """The bytes of a tensor's data (ggml_nbytes), whose shape and type are sound."""
    _, block, width = TENSOR_TYPES[info.type]
    return prod(info.shape) // block * width


def _problem_of_place(info: TensorInfo, expected: int, size: int, alignment: int) -> str:
    """What ggml refuses about the offset of a tensor of `size` bytes; "" if it accepts it."""
    if info.offset % alignment:
        return f"{info.called} is not aligned: its data begins at byte {info.offset}, not at a multiple of {alignment}"
    if info.offset != expected:
        begins = f"its data begins at byte {info.offset} of the tensor data"
        if info.offset > expected:
            return f"{info.called} leaves a gap: {begins}, not at {expected}"
        return f"{info.called} overlaps the tensors before it: {begins}, and theirs takes {expected} bytes"
    if size > _SIZE - (alignment - 1) or expected + size + -size % alignment > _SIZE:
        return f"{info.called} ends after more than 2^64 bytes"
    return ""


def _cut_off(file: GGUFFile, data_start: int, missing: int) -> TensorError:
    """The error for a file that ends `missing` bytes too early; names the first tensor that is not there."""
    infos = tensor_infos(file)
    info = next(each for each in infos if data_start + each.offset + _size_of(each) > file.size)
    size, after = _size_of(info), sum(1 for _ in infos)
    there = max(0, min(size, file.size - data_start - info.offset))
    lost = f"{info.called} has {there} of its {counted(size, 'byte')}"
    others = f", and {counted(after, 'tensor after it has', 'tensors after it have')} none" if after else ""
    return _error(file, info, f"the file ends {counted(missing, 'byte')} too early: {lost}{others}", missing)


def _error(file: GGUFFile, info: TensorInfo, problem: str, missing: int = 0) -> TensorError:
    error = TensorError(
        problem,
        path=file.path,
        offset=file.size if missing else info.start,
        remedy=DOWNLOAD_AGAIN if missing else DAMAGED,
    )
    error.tensor, error.missing = info.name.decode("utf-8", "backslashreplace"), missing
    return error


# ---- split models ---------------------------------------------------------------------------------------


# The types of the keys of a split model; llama.cpp refuses others, or aborts on them in a later part.
_SPLIT_TYPES = {
    KEY_SPLIT_COUNT: GGUFValueType.UINT16,
    KEY_SPLIT_NO: GGUFValueType.UINT16,
    KEY_SPLIT_TENSORS: GGUFValueType.INT32,
}
_NAMES_THEY_HAD = "give all parts the names that they had"


def check_parts(file: GGUFFile, path: str = "") -> None:
    """Raise an error unless the other parts of a split model are there, and llama.cpp accepts them with this one.

    `file` is the first part, whose own tensors `check_tensors` checks; for anything else, this does nothing. `path` is
    its path where that of `file` is another, such as the blob behind a link: the others are found by their names
    (llama_get_list_splits). `ShardError` names the part, or the key of a type that llama.cpp does not read; of remote
    files only the keys are checked.
    """
    if KEY_SPLIT_COUNT not in file or file.version == 1:
        return
    count = _split_number(file, KEY_SPLIT_COUNT)
    if count <= 1:
        return
    _split_number(file, KEY_SPLIT_NO)
    total = _split_number(file, KEY_SPLIT_TENSORS)
    if not file.is_on_disk:
        return
    first = os.path.abspath(path or file.path)
    named = re.fullmatch(rf"(.*)-00001(-of-{count:05d}\.gguf)", first, re.DOTALL)
    if named is None:
        raise ShardError(
            f"the name of the first of {count} parts does not end in -00001-of-{count:05d}.gguf, so llama.cpp "
            "cannot find the others",
            path=file.path,
            key=KEY_SPLIT_COUNT,
            remedy=_NAMES_THEY_HAD,
        )
    names = {_c_string(info.name) for info in tensor_infos(file)}
    for number in range(2, count + 1):
        names |= _names_of_part(file, f"{named[1]}-{number:05d}{named[2]}", number, count, names)
    if total != len(names):
        raise ShardError(
            f"the parts have {len(names)} tensors together, and the first says {total}",
            path=file.path,
            key=KEY_SPLIT_TENSORS,
            remedy=DOWNLOAD_AGAIN,
        )


def _split_number(file: GGUFFile, key: str) -> int:
    """The value of a key of a split model; `ShardError` if it is missing or has a type that llama.cpp does not read."""
    most = 0 if key == KEY_SPLIT_NO else 0xFFFF  # `fix` changes first parts alone
    return _number(file, key, _SPLIT_TYPES[key], most, ShardError)


def check_file_type(file: GGUFFile) -> None:
    """Raise a `WrongTypeError` if the key for the quantization has a type that llama.cpp does not read."""
    if KEY_FILE_TYPE in file and file.version > 1:
        _number(file, KEY_FILE_TYPE, GGUFValueType.UINT32, 0xFFFF, WrongTypeError)


def _number(file: GGUFFile, key: str, wanted: GGUFValueType, most: int, error: type[GGUFError]) -> int:
    """The value of a key; an `error` if it is missing or not of the type `wanted`. `fix` mends values up to `most`."""
    found = file.value_type(key) if key in file else None
    value = None if found in (None, GGUFValueType.ARRAY, GGUFValueType.STRING) else file[key]
    if found is wanted:
        assert isinstance(value, int)
        return value
    problem = f"{key} is missing" if found is None else f"{key} is of type {found.name}"
    remedy = "convert the model again"
    if isinstance(value, int) and 0 <= value <= most:
        remedy = f"give the key this type with `ggufbpe fix` ({key}={wanted.name}:{value:d}), or {remedy}"
    raise error(
        f"{problem}; llama.cpp reads only {wanted.name} there",
        path=file.path,
        offset=file.offset(key) if key in file else None,
        key=key,
        remedy=remedy,
    )


def _names_of_part(first: GGUFFile, path: str, number: int, count: int, taken: set[bytes]) -> set[bytes]:
    """The names of the tensors of another part; `ShardError` for what is wrong with it."""
    problem, remedy = "", DOWNLOAD_AGAIN
    names: set[bytes] = set()
    try:
        with GGUFFile(path) as part:
            is_number = _split_number(part, KEY_SPLIT_NO) + 1
            check_tensors(part)
            names = {_c_string(info.name) for info in tensor_infos(part)}
        if is_number != number:
            problem = f"is part {is_number} by its metadata"
            remedy = f"{_NAMES_THEY_HAD}, or download this one again"
    except GGUFError as error:
        problem, remedy = f"is broken: {error.problem}", error.remedy or remedy
    except FileNotFoundError:
        problem, remedy = "is missing: there is no such file", "download this part, too, into the same folder"
    except OSError as error:
        problem, remedy = f"cannot be read: {error.strerror or error}", "make the file readable"
    if not problem and (twice := names & taken):
        problem = f"is broken: tensor {quoted_piece(min(twice), 80)} is in an earlier part, too"
    if problem:
        name = quoted_piece(os.fsencode(os.path.basename(path)), 300)
        raise ShardError(f"part {number} of {count}, {name}, {problem}", path=first.path, remedy=remedy)
    return names
