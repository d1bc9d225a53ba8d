"""Decompresses files and reads their lines and JSON records.

The name of a file says how it is compressed (.gz, .zst) and whether its lines are JSON (.jsonl, .ndjson), each with a
text of its own. Upper case makes no difference. Callers decide about bytes that are not UTF-8, and about files that
cannot be read.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from ..._util.errors import naming, printable
from ..._util.extras import NotInstalledError, imported
from ..._util.utf8 import is_utf8, original_bytes

_BLOCK = 1 << 20
_PART = 1 << 17  # bytes that are decompressed at a time, at most
_JSON_LINES = (".jsonl", ".ndjson")
_BINARY_TABLES = (".parquet", ".arrow", ".feather")
_ZSTD = (".zst", ".zstd")
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst")
_UNREAD = (".bz2", ".xz", ".zip", ".7z", ".lz4", ".br")
ARCHIVED, COMPRESSED = "archived", "compressed otherwise than by .gz or .zst"
_BYTE_ORDER_MARK = "\ufeff"
_UTF_16 = ("\udcff\udcfe", "\udcfe\udcff")  # its byte order marks, by the error handler surrogateescape
DEFAULT_FIELD = "text"  # of JSON lines
_ESCAPED_BYTE = re.compile(rb"\\u[dD][cC][89a-fA-F]")  # perhaps the second of a pair
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]|u([dD][cC][89a-fA-F][0-9a-fA-F])|.)", re.DOTALL)
_HEAD = 1 << 12  # bytes of a text that are looked at
_MOST_NAMED = 5  # fields, in a message

Report = Callable[[str, Exception], object]


class CorpusError(ValueError):
    """A corpus, or a record of it, that cannot be used; the message says which, where and what to do."""


class BadFileError(CorpusError):
    """A file of a corpus that cannot be used, or the rest of it; the message says why."""


def raised(name: str, error: Exception) -> None:
    """A `Report` that raises the error, with the name of the file."""
    if isinstance(error, OSError) or str(error).startswith(name):
        raise error
    raise type(error)(f"{name}: {error}")


def problem_with(name: str, error: Exception) -> str:
    """Return why a file could not be read, in a few words, without its name."""
    problem = (isinstance(error, OSError) and error.strerror) or str(error) or "out of memory"
    return problem.removeprefix(f"{name}: ")


@contextmanager
def decompressed(raw: IO[bytes], path: str) -> Iterator[IO[bytes]]:
    """The bytes of a file, by its name. `CorpusError` where they are broken or the package for it is not installed.

    An `OSError` while they are read, which has no file name of its own, gets this one.
    """
    try:
        with naming(path):
            yield _decompressed(raw, path)
    except (EOFError, zlib.error) as error:
        raise CorpusError(f"{path}: the compressed data is broken: {error}") from error
    except Exception as error:
        if type(error).__name__ in ("BadGzipFile", "ZstdError"):  # comparing names avoids the imports
            raise CorpusError(f"{path}: the compressed data is broken: {error}") from error
        raise


def _decompressed(raw: IO[bytes], path: str) -> IO[bytes]:
    require_known_compression(path)
    if path.lower().endswith(".gz"):
        import gzip

        return _UpToDamage(gzip.GzipFile(fileobj=raw))  # type: ignore[return-value]
    if is_zstd(path):
        try:
            zstandard = imported("zstandard", "zstd", "reading zstd")
        except NotInstalledError as error:
            raise CorpusError(f"{path}: {error}") from None
        frames = io.BufferedReader(_ZstdFrames(raw, zstandard.ZstdDecompressor()), _PART)
        return _UpToDamage(frames)  # type: ignore[return-value]
    return raw


class _UpToDamage:
    """What a file decompresses to: all bytes before the damage, if there is one; the next `read` raises the error.

    The readers of Python lose what they have decompressed in the same call.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._error: Exception | None = None

    def read(self, size: int = -1) -> bytes:
        """The next `size` bytes, fewer at the end or before the damage; all of them if `size` is negative."""
        if self._error is not None:
            raise self._error
        parts: list[bytes] = []
        try:
            while size and (part := self._stream.read1(min(size, _PART) if size > 0 else _PART)):
                parts.append(part)
                size -= len(part)
        except Exception as error:
            if size < 0 or not parts:
                raise
            self._error = error
        return b"".join(parts)


class _ZstdFrames(io.RawIOBase):
    """What a zstd file decompresses to; `EOFError` where it ends inside a frame, as gzip has it.

    The reader of the package `zstandard` takes it for the end of the text.
    """

    def __init__(self, raw: IO[bytes], decompressor: Any) -> None:
        self._raw, self._decompressor = raw, decompressor
        self._frame: Any = None
        self._input, self._output = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._output:
            # few bytes, since 4 may decompress to 128 KiB
            self._input = self._input or self._raw.read(1 << 10)
            if not self._input:
                if self._frame is not None:
                    raise EOFError("it ends inside a frame")
                return 0
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            self._output, self._input = memoryview(self._frame.decompress(self._input)), b""
            if self._frame.eof:
                self._input, self._frame = self._frame.unused_data, None
        size = min(len(buffer), len(self._output))
        buffer[:size], self._output = self._output[:size], self._output[size:]
        return size


def unread_kind(name: str) -> str:
    """The kind of a file that is never read, by its name: an archive, or an unknown compression; "" for others."""
    if name.lower().endswith(_ARCHIVES):
        return ARCHIVED
    return COMPRESSED if name.lower().endswith(_UNREAD) else ""


def require_known_compression(path: str) -> None:
    """`CorpusError` for a file that is named as compressed otherwise, or as an archive."""
    kind = unread_kind(path)
    if kind == ARCHIVED:
        raise CorpusError(f"{path}: an archive is not read; unpack it, and give the folder of its files")
    if kind == COMPRESSED:
        raise CorpusError(
            f"{path}: {path[path.rindex('.') :]} is not read; decompress the file, or compress it as .gz or .zst"
        )


def is_zstd(name: str) -> bool:
    """Whether a file is named as compressed by zstd."""
    return name.lower().endswith(_ZSTD)


def without_compression(name: str) -> str:
    """A file name without the suffix of its compression.

    >>> without_compression("a.txt.gz")
    'a.txt'
    """
    return name[: name.rindex(".")] if name.lower().endswith((".gz", *_ZSTD)) else name


def has_json_lines(name: str) -> bool:
    """Whether a file is named as one of JSON lines."""
    return without_compression(name).lower().endswith(_JSON_LINES)


def is_json(name: str) -> bool:
    """Whether a file is named as one of JSON, which may be an array of records."""
    return without_compression(name).lower().endswith(".json")


def is_array_of_records(path: str) -> bool:
    """Whether a file of this machine is named as JSON, and begins as an array of objects; False if it is not there."""
    if not is_json(path):
        return False
    try:
        with open(path, "rb") as raw, decompressed(raw, path) as stream:
            return re.match(rb"\s*\[\s*\{", stream.read(1 << 10)) is not None
    except (OSError, CorpusError):
        return False


def is_binary_table(name: str) -> bool:
    """Whether a file is named as a table of parquet or arrow."""
    return name.lower().endswith(_BINARY_TABLES)


def is_table(name: str) -> bool:
    """Whether a file is named as a table of parquet, arrow or comma-separated values."""
    return is_binary_table(name) or without_compression(name).lower().endswith(".csv")


def can_be_read_anywhere(name: str) -> bool:
    """Whether reading can begin in the middle of a file: it is neither compressed nor a table."""
    return without_compression(name) == name and not is_table(name)


def lines(stream: Any) -> Iterator[bytes]:
    """The lines of a binary stream, with their ends; only a line feed ends one."""
    parts: list[bytes] = []  # of a line longer than a block; joined once, since it may be a gigabyte
    while block := stream.read(_BLOCK):
        first, *others = block.split(b"\n")
        parts.append(first)
        for line in others:
            yield _taken([*parts, b"\n"], parts)
            parts.append(line)
    if rest := b"".join(parts):
        yield rest


def _taken(line: list[bytes], parts: list[bytes]) -> bytes:
    """A line in one; not kept by who gives it, nor are its `parts`."""
    parts.clear()
    return b"".join(line)


class LineRange:
    """The lines of a file that begin in a range of bytes, as a stream; the first one begins at `begin`."""

    def __init__(self, file: IO[bytes], begin: int, end: int) -> None:
        self._file, self._end = file, end
        self.begin = _line_start(file, begin, end) if begin else 0
        file.seek(self.begin)
        self._at = self.begin
        self._has_ended = self.begin >= end

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end."""
        data = b"" if self._has_ended else self._file.read(size)
        last = max(self._end - 1 - self._at, 0)  # the line that has this byte is the last
        self._at += len(data)
        if end := data.find(b"\n", last) + 1:
            self._has_ended = True
            return data[:end]
        return data


def _line_start(file: IO[bytes], begin: int, end: int) -> int:
    """Where the first line begins that begins in a range; its end where none does."""
    at = begin - 1
    file.seek(at)
    while at < end and (block := file.read(min(_BLOCK, end - at))):
        if (line_end := block.find(b"\n")) >= 0:
            return at + line_end + 1
        at += len(block)
    return end


class Record(NamedTuple):
    """A line of JSON: its text, and all of its fields."""

    text: str
    fields: dict[str, Any]


def decoded_line(line: bytes) -> str:
    r"""A line of JSON as a `str`, of which `original_bytes` gives the bytes that are not UTF-8 as they were.

    Escapes of lone surrogates that stand for such bytes are written as bytes, so that they keep their meaning.

    >>> import json
    >>> original_bytes(json.loads(decoded_line(b'"\xff \\udcff \\ud83d\\udcff"')))
    b'\xff \xed\xb3\xbf \xf0\x9f\x93\xbf'
    """
    if _ESCAPED_BYTE.search(line):
        line = _ESCAPE.sub(_lone_surrogate, line)
    return line.decode("utf-8", "surrogateescape")


def _lone_surrogate(escape: re.Match[bytes]) -> bytes:
    return chr(int(escape[1], 16)).encode("utf-8", "surrogatepass") if escape[1] else escape[0]


def fields_of(line: str) -> dict[str, Any]:
    """The fields of a line of JSON lines. `ValueError` says what is wrong with it."""
    import json  # here, so that commands that read no JSON start faster

    try:
        fields = json.loads(line.removeprefix(_BYTE_ORDER_MARK).rstrip(" \t\r\n"))
    except RecursionError:
        raise ValueError("not JSON: nested too deep") from None
    except ValueError as error:
        require_no_utf_16(line)
        if isinstance(error, json.JSONDecodeError):
            raise ValueError(f"not JSON: {error.msg.removesuffix(' at')} at column {error.colno}") from None
        # such as a number of too many digits; the rest is advice for Python programmers
        raise ValueError(f"not JSON: {str(error).partition(';')[0]}") from None
    if isinstance(fields, list):
        from .chat_records import as_record

        fields = as_record(fields)
    if not isinstance(fields, dict):
        raise ValueError("not an object")
    return fields


def require_no_utf_16(line: str) -> None:
    """`ValueError` for a line of a file in UTF-16 that was read as UTF-8, with the command that converts the file."""
    if remedy := _remedy_of_utf_16(line):
        raise ValueError(f"the file is in UTF-16, not UTF-8; convert it: {remedy}")


def _remedy_of_utf_16(line: str) -> str:
    """How to convert a file, of which this is a line that was read as UTF-8; "" if it does not look like UTF-16."""
    if line.startswith(_UTF_16):
        return "iconv -f UTF-16 -t UTF-8"
    if line[:2].count("\0") != 1:
        return ""
    if line[0] != "\0":
        return "iconv -f UTF-16LE -t UTF-8"
    # Every line of a big-endian file begins so, and all but the first of a little-endian one.
    return "iconv -f UTF-16BE -t UTF-8 if the first byte of the file is 0, otherwise iconv -f UTF-16 -t UTF-8"


def record_of(line: str, field: str | None, argument: str = "field") -> Record:
    """A line of JSON lines; its text is in `field` (None: "text"). `ValueError` says what is wrong with it.

    `argument` is the name that the caller has for `field`, for such messages.
    """
    fields = fields_of(line)
    text = fields.get(DEFAULT_FIELD if field is None else field)
    if not isinstance(text, str):
        raise ValueError(_why_no_text(fields, DEFAULT_FIELD if field is None else field, argument))
    return Record(text, fields)


def _why_no_text(fields: dict[str, Any], name: str, argument: str) -> str:
    """Say that a field is missing, or what it has instead of a text, and how another one is chosen."""
    if name in fields:
        kind = _kind_of(fields[name])
        return f"the field {printable(name)} is {kind}, not a text; {argument}=NAME names another"
    from .chat_records import is_chat_record

    if is_chat_record(fields):
        return f"there is no field {printable(name)}: this is a chat, which is read with chats=True"
    texts = [printable(each, 40) for each, value in fields.items() if isinstance(value, str)][:_MOST_NAMED]
    there = f"the fields with texts are {', '.join(texts)}" if texts else "no field of this record is a text"
    return f"there is no field {printable(name)}; {argument}=NAME names another ({there})"


def _kind_of(value: object) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return "null" if value is None else kinds.get(type(value), f"a {type(value).__name__}")


def text_bytes(value: object, column: str) -> bytes:
    """The bytes of the text in a column. `ValueError` if it is something else: `bytes` would make NULs of a number."""
    if isinstance(value, str):
        return original_bytes(value)
    if isinstance(value, (bytes, memoryview)):
        return bytes(value)
    raise ValueError(f"the column {printable(column)} has {_kind_of(value)}, not a text")


def as_text(value: object) -> object:
    """A value of a table, of which bytes are a text as `decoded_line` has it."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def begins_as_utf8(text: bytes) -> bool:
    """Whether the first bytes of a text are UTF-8; looking at all of them would slow encoding down by a tenth."""
    head = text[:_HEAD]
    return is_utf8(head) or (len(text) > _HEAD and any(is_utf8(head[:-cut]) for cut in (1, 2, 3)))
