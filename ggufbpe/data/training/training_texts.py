"""Reads the texts to learn from: files, directories, streams and strings.

A file is read in blocks, so memory does not grow with it. A block ends after a line if the next one begins with an
ASCII letter: there every pre-tokenizer begins a word anyway, except for the few that join words across lines. A
stretch of 64 MiB without such a line is cut after its last line, or else between characters.

Files come in the order of their paths, whatever order they were given in; strings and streams come before them, as
given.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any, NamedTuple

from ..._util.caller import frames_to_caller
from ..._util.errors import printable
from ...models.vocabulary import GGUFWarning
from ..corpora.corpus_files import File, absolute_path, files_of, open_file
from ..corpora.readers import has_records, records
from ..corpora.records import (
    CorpusError,
    LineRange,
    can_be_read_anywhere,
    decompressed,
    is_table,
    lines,
    raised,
    record_of,
)

_BLOCK = 1 << 20
_LONGEST_PATH = 256  # characters of a text that may be a path
_LONGEST = 1 << 26  # bytes searched for a place to cut
_LINE_END = re.compile(rb"[!-~]\n(?=[A-Za-z])")
_SURROGATES = re.compile("[\ud800-\udfff]")


class CorpusOptions(NamedTuple):
    """How files are read, and how that is reported."""

    field: str | None = None  # of JSON lines; None: "text", and only in files named .jsonl or .ndjson
    errors: str = "strict"  # or "replace": U+FFFD for bytes that are not UTF-8
    progress: Callable[[int, int], object] | None = None  # (bytes read, bytes in all) of files
    skipped: Counter[str] | None = None  # files left out of directories


def read_training_texts(corpus: Iterable[object], reading: CorpusOptions) -> Iterator[str]:
    """Yields the texts of strings, paths (`os.PathLike`; files, directories, URLs) and binary streams.

    Raises `CorpusError` for bytes that are not UTF-8, lines that are not JSON and broken compression; `OSError` for
    files that cannot be read.
    """
    if isinstance(corpus, (str, bytes, os.PathLike)):
        kind = type(corpus).__name__
        raise TypeError(f"the corpus must be a list, ['a text'] or [pathlib.Path('folder')], not {kind}")
    paths: list[str] = []
    for number, item in enumerate(corpus):
        if isinstance(item, str):
            if number == 0:
                _warn_of_a_path(item)
            yield _without_surrogates(item, f"text {number}", reading.errors)
        elif isinstance(item, os.PathLike):
            paths.append(os.fsdecode(item))
        elif hasattr(item, "read"):
            yield from _texts_in(item, str(getattr(item, "name", "stream")), reading, lambda: None)
        else:
            raise TypeError(f"a corpus has str, pathlib.Path and binary streams, not {type(item).__name__}")
    files = files_at(paths, reading)
    total = sum(file.size for file in files)
    before = 0
    for path, size, *_ in files:

        def report(raw: IO[bytes], before: int = before) -> None:
            if reading.progress is not None and raw.seekable():  # a pipe has no place to tell
                reading.progress(before + raw.tell(), total)

        yield from _texts_at(path, path, reading, report)
        before += size


def _warn_of_a_path(text: str) -> None:
    """Warn of a text that is the path of a file or folder, which was meant to be read."""
    if len(text) < _LONGEST_PATH and "\0" not in text and text and os.path.lexists(text):
        import warnings

        problem = f"the text {printable(text)} is learned from as it is, though there is a file or folder of that name"
        remedy = f"pathlib.Path({printable(text)}) reads that"
        warnings.warn(f"{problem}; {remedy}", GGUFWarning, stacklevel=frames_to_caller())


def files_at(paths: Sequence[str], reading: CorpusOptions) -> list[File]:
    """The files of paths, in the order in which they are read."""
    skipped = Counter() if reading.skipped is None else reading.skipped
    return sorted(files_of(paths, skipped, raised, tables=reading.field is not None))


def _texts_at(
    name: str, path: str, reading: CorpusOptions, report: Callable[[IO[bytes]], None]
) -> Iterator[str]:
    with open_file(path) as raw, decompressed(raw, path) as stream:
        yield from _texts_in(stream, name, reading, lambda: report(raw))


# ---- parts of files -------------------------------------------------------------------------------------


class FilePart(NamedTuple):
    """A file, or with `end` those of its lines that begin in a range of bytes."""

    name: str  # as it was given
    path: str  # the same from everywhere
    size: int
    begin: int = 0
    end: int | None = None


def file_parts(files: Iterable[File], reading: CorpusOptions, size: int) -> list[FilePart]:
    """Parts of about `size` bytes of JSON lines; each other file is one, since where it is cut may change words."""
    parts = []
    for file in files:
        name, path = file.path, absolute_path(file.path)
        if file.size <= size or not can_be_read_anywhere(name) or not has_records(name, reading.field):
            parts.append(FilePart(name, path, file.size))
            continue
        for begin in range(0, file.size, size):
            end = min(begin + size, file.size)
            parts.append(FilePart(name, path, end - begin, begin, end))
    return parts


def texts_of_part(part: FilePart, reading: CorpusOptions) -> Iterator[str]:
    """The texts of a part of a file, as `read_training_texts` reads them in the whole file."""
    if part.end is None:
        yield from _texts_at(part.name, part.path, reading, lambda raw: None)
        return
    try:
        with open_file(part.path) as raw:
            yield from _texts_in(LineRange(raw, part.begin, part.end), part.name, reading, lambda: None)
    except CorpusError:
        for _ in _texts_at(part.name, part.path, reading, lambda raw: None):
            pass  # up to the same error, which has the number of its line now
        raise


def _texts_in(stream: Any, name: str, reading: CorpusOptions, report: Callable[[], None]) -> Iterator[str]:
    if has_records(name, reading.field):
        texts = (_rows if is_table(name) else _records)(stream, name, reading)
    else:
        texts = _blocks(stream, name, reading)
    for text in texts:
        yield text
        report()


# ---- plain text -----------------------------------------------------------------------------------------


def _blocks(stream: Any, name: str, reading: CorpusOptions) -> Iterator[str]:
    offset = 0  # of `rest` in the decompressed bytes
    rest = b""
    searched = 0  # up to here `rest` has no place to cut
    while block := stream.read(_BLOCK):
        if isinstance(block, str):
            raise TypeError("the stream gives str; open it in binary mode")
        rest += block
        end = _last_line_end(rest, searched) or (_any_end(rest) if len(rest) >= _LONGEST else 0)
        searched = max(len(rest) - 2, 0)
        if end:
            yield _decoded(rest[:end], name, offset, reading.errors)
            offset, rest, searched = offset + end, rest[end:], 0
    if rest:
        yield _decoded(rest, name, offset, reading.errors)


def _last_line_end(data: bytes, start: int) -> int:
    """The last place after `start` where a text can be cut without changing its words, 0 if there is none."""
    end = len(data)
    while (end := data.rfind(b"\n", max(start, 1), end)) >= 0:
        if _LINE_END.match(data, end - 1):
            return end + 1
    return 0


def _any_end(data: bytes) -> int:
    """A place between two characters, after a line if there is one."""
    end = data.rfind(b"\n") + 1 or len(data)
    while end == len(data) or (data[end] & 0xC0 == 0x80 and end > len(data) - 5):
        end -= 1
    return end


def _decoded(data: bytes, name: str, offset: int, errors: str) -> str:
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        byte = data[error.start]
        raise CorpusError(
            f"{name}: byte {offset + error.start}: 0x{byte:02x} is not UTF-8 there ({error.reason}); convert the "
            "file, or give errors='replace' to read U+FFFD in its place"
        ) from None


# ---- JSON lines -----------------------------------------------------------------------------------------


def _records(stream: Any, name: str, reading: CorpusOptions) -> Iterator[str]:
    """The field of each line."""
    offset = 0
    for number, line in enumerate(lines(stream), 1):
        where = f"{name}: line {number}"
        text = _decoded(line, name, offset, reading.errors)
        offset += len(line)
        if not text.strip():
            continue
        try:
            text_of_record = record_of(text, reading.field).text
        except ValueError as error:
            raise CorpusError(f"{where}: {error}") from None
        yield _without_surrogates(text_of_record, where, reading.errors)


def _rows(stream: Any, name: str, reading: CorpusOptions) -> Iterator[str]:
    """The field of each row of a table."""
    for text, _ in records(stream, name, reading.field, raised):
        yield _decoded(text, name, 0, reading.errors)


def _without_surrogates(text: str, where: str, errors: str) -> str:
    if text.isascii() or (lone := _SURROGATES.search(text)) is None:
        return text
    if errors == "replace":
        return _SURROGATES.sub("\ufffd", text)
    raise CorpusError(
        f"{where}: a lone surrogate, U+{ord(lone[0]):04X}, at character {lone.start()}, which UTF-8 cannot write; "
        "give errors='replace' to read U+FFFD in its place"
    )
