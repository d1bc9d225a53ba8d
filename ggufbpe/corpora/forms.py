"""The forms that shards have: how ids and the index of documents are written, and read back.

    ids, lengths -> [this file] -> part-00000.bin and .idx, or as the form has it

Sources: Megatron-LM, megatron/core/datasets/indexed_dataset.py (_IndexWriter); datatrove, pipeline/tokens/tokenizer.py
(TokenizedFile), whose files nanotron reads; numpy.lib.format.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol

from ..extras import imported
from .places import Folder
from .records import CorpusError

if TYPE_CHECKING:
    import numpy.typing as npt

Array = "npt.NDArray[Any]"
Ends = Callable[[Folder, str], Any]

_MEGATRON = b"MMIDIDX\x00\x00"
_CODES = {"int32": 4, "uint16": 8}  # of Megatron's DType
_LONGEST = (1 << 31) - 1  # tokens of a sequence there
_NPY_HEADER = 128  # bytes
_GROUP_TOKENS, _GROUP_ROWS = 1 << 20, 1 << 16  # of a row group or record batch, about
_AT_ONCE = 1 << 20  # numbers of an index that are made at a time
COLUMN = "input_ids"


class FileFacts(NamedTuple):
    """A file that was written."""

    name: str
    size: int
    sha256: str


class Description(NamedTuple):
    """What a shard is written with."""

    dtype: str
    tokenizer: str  # a name, for people
    window: int | None  # tokens of each row, where all have the same


class ShardWriter(Protocol):
    """A shard that is being written."""

    def write(self, ids: npt.NDArray[Any]) -> None:
        """Some ids more, as they follow each other."""

    def end(self, lengths: npt.NDArray[Any]) -> None:
        """Rows that end, each with so many ids: those that were written and are not of an earlier one."""

    def finish(self) -> list[FileFacts]:
        """Put the files in their place."""

    def discard(self) -> None:
        """Remove what was written."""


class HashedFile:
    """A file that is written from its beginning to its end, and hashed on the way."""

    def __init__(self, folder: Folder, name: str) -> None:
        self.name = name
        self.size = 0
        self.closed = False
        self._unfinished = folder.create(name)
        self._hash = hashlib.sha256()

    def write(self, data: Any) -> int:
        """All of `data`, which has a buffer."""
        rest = memoryview(data).cast("B")
        self._hash.update(rest)
        size = len(rest)
        while rest:
            rest = rest[self._unfinished.file.write(rest) :]
        self.size += size
        return size

    def tell(self) -> int:
        """Where the next byte goes."""
        return self.size

    def flush(self) -> None:
        """Nothing: nothing is kept back."""

    def begin_with(self, head: bytes) -> None:
        """Write `head` over the beginning, once all else is written."""
        file = self._unfinished.file
        file.seek(0)
        file.write(head)
        file.seek(0)
        self._hash = hashlib.sha256()
        while block := file.read(_AT_ONCE):
            self._hash.update(block)

    def finish(self) -> FileFacts:
        """Put it in its place."""
        self._unfinished.finish()
        return FileFacts(self.name, self.size, self._hash.hexdigest())

    def discard(self) -> None:
        """Remove it."""
        self._unfinished.discard()


def _written(folder: Folder, name: str, parts: Iterator[Any]) -> HashedFile:
    file = HashedFile(folder, name)
    try:
        for part in parts:
            file.write(part)
    except BaseException:
        file.discard()
        raise
    return file


# ---- ids as bytes, with an index beside -----------------------------------------------------------------


class _Lengths:
    """Lengths of rows, and from them where rows begin and end; in parts, so that little more memory is needed."""

    def __init__(self, arrays: list[Any], numpy: Any) -> None:
        self.numpy = numpy
        self.all = numpy.concatenate([numpy.zeros(0, numpy.int64), *arrays])

    def parts(self, dtype: str) -> Iterator[Any]:
        for at in range(0, len(self.all), _AT_ONCE):
            yield self.all[at : at + _AT_ONCE].astype(dtype)

    def ends(self, dtype: str, factor: int = 1) -> Iterator[Any]:
        before = 0
        for part in self.parts("int64"):
            found = self.numpy.cumsum(part) + before
            before = int(found[-1])
            yield (found * factor).astype(dtype)

    def begins(self, dtype: str, factor: int) -> Iterator[Any]:
        lengths = self.parts("int64")
        for ends, part in zip(self.ends("int64"), lengths):
            yield ((ends - part) * factor).astype(dtype)


def _megatron_index(lengths: _Lengths, described: Description) -> Iterator[Any]:
    count = len(lengths.all)
    width = lengths.numpy.dtype(described.dtype).itemsize
    yield _MEGATRON + struct.pack("<QBQQ", 1, _CODES[described.dtype], count, count + 1)
    yield from lengths.parts("<i4")
    yield from lengths.begins("<i8", width)
    for at in range(0, count + 1, _AT_ONCE):  # each document is one sequence
        yield lengths.numpy.arange(at, min(at + _AT_ONCE, count + 1), dtype="<i8")


def _megatron_ends(folder: Folder, stem: str) -> Any:
    numpy = imported("numpy", "corpora", "shards")
    data = folder.read(f"{stem}.idx")
    head = len(_MEGATRON) + 8 + 1
    if data[: len(_MEGATRON)] != _MEGATRON or len(data) < head + 16:
        raise CorpusError(f"{stem}.idx: not an index of Megatron's")
    [count] = struct.unpack_from("<Q", data, head)
    return numpy.cumsum(numpy.frombuffer(data, "<i4", count, head + 16), dtype=numpy.int64)


def _nanotron_index(lengths: _Lengths, described: Description) -> Iterator[Any]:
    return lengths.ends("<u8")


def _nanotron_ends(folder: Folder, stem: str) -> Any:
    numpy = imported("numpy", "corpora", "shards")
    return numpy.frombuffer(folder.read(f"{stem}.ds.index"), "<u8").astype(numpy.int64)


def _nanotron_metadata(lengths: _Lengths, described: Description) -> Iterator[Any]:
    tokens = int(lengths.all.sum())
    width = lengths.numpy.dtype(described.dtype).itemsize
    yield f"{described.tokenizer}|{width}\n{tokens}\n{metric(tokens)}T".encode()


def metric(number: int) -> str:
    """A number with three digits and a prefix, as the package humanize writes it.

    >>> metric(0), metric(999), metric(1_234_567), metric(999_999)
    ('0.00 ', '999 ', '1.23 M', '1.00 M')
    """
    power = len(str(number)) - 1 if number else 0
    power += round(number, 2 - power) >= 10 ** (power + 1)
    prefix = ["", "k", "M", "G", "T", "P", "E"][power // 3]
    return f"{number / 1000 ** (power // 3):.{2 - power % 3}f} {prefix}"


def _npy_header(described: Description, tokens: int) -> bytes:
    shape = (
        f"({tokens},)" if described.window is None else f"({tokens // described.window}, {described.window})"
    )
    descr = {"uint16": "<u2", "uint32": "<u4", "int64": "<i8"}[described.dtype]
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    return (
        b"\x93NUMPY\x01\x00"
        + struct.pack("<H", _NPY_HEADER - 10)
        + head.ljust(_NPY_HEADER - 11).encode()
        + b"\n"
    )


def _npy_index(lengths: _Lengths, described: Description) -> Iterator[Any]:
    yield _npy_header(Description("int64", "", None), len(lengths.all))
    yield from lengths.ends("<i8")


def _npy_ends(folder: Folder, stem: str) -> Any:
    numpy = imported("numpy", "corpora", "shards")
    with folder.open(f"{stem}.index.npy") as file:
        return numpy.frombuffer(file.read()[_NPY_HEADER:], "<i8")


class _BytesWriter:
    """Ids one after the other, and an index in files of its own."""

    def __init__(self, form: Form, folder: Folder, stem: str, described: Description) -> None:
        self._form, self._folder, self._stem, self._described = form, folder, stem, described
        self._data = HashedFile(folder, stem + form.suffix)
        self._lengths: list[Any] = []
        self._tokens = 0
        if form.has_header:
            self._data.write(bytes(_NPY_HEADER))

    def write(self, ids: npt.NDArray[Any]) -> None:
        self._data.write(ids.astype(ids.dtype.newbyteorder("<"), copy=False))
        self._tokens += len(ids)

    def end(self, lengths: npt.NDArray[Any]) -> None:
        if len(lengths) and int(lengths.max()) > _LONGEST:
            raise CorpusError(
                f"a document has {int(lengths.max())} tokens; the forms have at most {_LONGEST}"
            )
        self._lengths.append(lengths.astype("int32"))

    def finish(self) -> list[FileFacts]:
        numpy = imported("numpy", "corpora", "shards")
        if self._form.has_header:
            self._data.begin_with(_npy_header(self._described, self._tokens))
        indexes: list[HashedFile] = []
        try:
            lengths = _Lengths(self._lengths, numpy)
            for suffix, make in self._form.indexes.items():
                if self._form.has_header and self._described.window is not None:
                    continue  # the shape says it
                indexes.append(_written(self._folder, self._stem + suffix, make(lengths, self._described)))
            return [file.finish() for file in (self._data, *indexes)]
        except BaseException:
            for file in indexes:
                file.discard()
            raise

    def discard(self) -> None:
        self._data.discard()


# ---- a row a document -----------------------------------------------------------------------------------


class _RowsWriter:
    """A column of lists, by pyarrow. A row group has whole rows, and ends where their sum says, not their chunks."""

    def __init__(self, form: Form, folder: Folder, stem: str, described: Description) -> None:
        self._pyarrow = imported("pyarrow", "corpora", "writing parquet and arrow")
        self._numpy = imported("numpy", "corpora", "shards")
        kind = self._pyarrow.large_list(getattr(self._pyarrow, described.dtype)())
        self._schema = self._pyarrow.schema([(COLUMN, kind)])
        self._data = HashedFile(folder, stem + form.suffix)
        if form.suffix == ".parquet":
            parquet = imported("pyarrow.parquet", "corpora", "writing parquet")
            self._writer = parquet.ParquetWriter(
                self._data, self._schema, compression="zstd", use_dictionary=False
            )
        else:
            self._writer = imported("pyarrow.ipc", "corpora", "writing arrow").new_file(
                self._data, self._schema
            )
        self._ids: list[Any] = []  # of rows that are not written
        self._lengths: list[int] = []
        self._tokens = 0  # of those of them that have ended

    def write(self, ids: npt.NDArray[Any]) -> None:
        self._ids.append(ids)

    def end(self, lengths: npt.NDArray[Any]) -> None:
        for length in lengths.tolist():
            self._lengths.append(length)
            self._tokens += length
            if self._tokens >= _GROUP_TOKENS or len(self._lengths) >= _GROUP_ROWS:
                self._flush()

    def _flush(self) -> None:
        numpy, pyarrow = self._numpy, self._pyarrow
        if not self._lengths:
            return
        ids = numpy.concatenate(self._ids) if len(self._ids) > 1 else self._ids[0]
        self._ids = [ids[self._tokens :]]
        offsets = numpy.concatenate([[0], numpy.cumsum(self._lengths)]).astype("int64")
        column = pyarrow.LargeListArray.from_arrays(offsets, pyarrow.array(ids[: self._tokens]))
        self._writer.write_batch(pyarrow.record_batch([column], schema=self._schema))
        self._lengths, self._tokens = [], 0

    def finish(self) -> list[FileFacts]:
        self._flush()
        self._writer.close()
        return [self._data.finish()]

    def discard(self) -> None:
        self._data.discard()


def _batches(folder: Folder, name: str) -> Iterator[Any]:
    """The lists of a file of rows, some at a time."""
    with folder.open(name) as file:
        if name.endswith(".parquet"):
            parquet = imported("pyarrow.parquet", "corpora", "reading parquet").ParquetFile(file)
            for group in range(parquet.num_row_groups):
                yield parquet.read_row_group(group).column(COLUMN).combine_chunks()
            return
        arrow = imported("pyarrow.ipc", "corpora", "reading arrow").open_file(file)
        for number in range(arrow.num_record_batches):
            yield arrow.get_batch(number).column(COLUMN)


# ---- the forms ------------------------------------------------------------------------------------------


class Form(NamedTuple):
    """A form of shards. `indexes` makes each file beside the ids; `ends` reads where rows end."""

    suffix: str
    writer: Callable[[Form, Folder, str, Description], ShardWriter]
    wide: str = "uint32"  # the type of ids that 16 bits do not hold
    indexes: dict[str, Callable[[_Lengths, Description], Iterator[Any]]] = {}  # noqa: RUF012 - a NamedTuple
    ends: Ends | None = None
    has_header: bool = False


FORMS: dict[str, Form] = {
    "megatron": Form(".bin", _BytesWriter, "int32", {".idx": _megatron_index}, _megatron_ends),
    "nanotron": Form(
        ".ds",
        _BytesWriter,
        "uint32",
        {".ds.index": _nanotron_index, ".ds.metadata": _nanotron_metadata},
        _nanotron_ends,
    ),
    "npy": Form(".npy", _BytesWriter, "uint32", {".index.npy": _npy_index}, _npy_ends, True),
    "parquet": Form(".parquet", _RowsWriter),
    "arrow": Form(".arrow", _RowsWriter),
}
SUFFIXES = tuple({suffix for form in FORMS.values() for suffix in (form.suffix, *form.indexes)})


def dtype_of(form: Form, vocab_size: int) -> str:
    """The type of the ids of a vocabulary."""
    return "uint16" if vocab_size <= 1 << 16 else form.wide


def rows_of(
    form: Form, folder: Folder, stem: str, described: Description, start: int = 0
) -> Iterator[npt.NDArray[Any]]:
    """The rows of a shard from number `start` on, each as an array of ids."""
    numpy = imported("numpy", "corpora", "shards")
    if form.ends is None:
        for lists in _batches(folder, stem + form.suffix):
            values, offsets = lists.values.to_numpy(zero_copy_only=False), lists.offsets.to_numpy()
            for number in range(start, len(lists)):
                yield values[offsets[number] : offsets[number + 1]]
            start = max(start - len(lists), 0)
        return
    dtype = numpy.dtype(described.dtype).newbyteorder("<")
    head = _NPY_HEADER if form.has_header else 0
    if form.has_header and described.window is not None:
        count = (folder.size(stem + form.suffix) - head) // dtype.itemsize // described.window
        ends = numpy.arange(1, count + 1) * described.window
    else:
        ends = form.ends(folder, stem)
    with folder.open(stem + form.suffix) as file:
        begin = int(ends[start - 1]) if 0 < start <= len(ends) else 0
        file.seek(head + begin * dtype.itemsize)
        for end in ends[start:].tolist():
            yield numpy.frombuffer(file.read((end - begin) * dtype.itemsize), dtype)
            begin = end


def count_rows(form: Form, folder: Folder, stem: str, described: Description) -> tuple[int, int]:
    """How many rows a shard has by its index, and how many ids by its data."""
    if form.ends is None:
        lengths = [len(lists) for lists in _batches(folder, stem + form.suffix)]
        return sum(lengths), sum(len(lists.flatten()) for lists in _batches(folder, stem + form.suffix))
    width = imported("numpy", "corpora", "shards").dtype(described.dtype).itemsize
    tokens = (folder.size(stem + form.suffix) - _NPY_HEADER * form.has_header) // width
    if form.has_header and described.window is not None:
        return tokens // described.window, tokens
    ends = form.ends(folder, stem)
    return len(ends), int(ends[-1]) if len(ends) else 0


def file_hash(file: IO[bytes]) -> str:
    """The SHA-256 of what a file has."""
    found = hashlib.sha256()
    while block := file.read(_AT_ONCE):
        found.update(block)
    return found.hexdigest()
