"""Texts to learn from: files, directories, streams and strings.

    strings, paths, streams -> [this file] -> texts -> words.py

A file is read in blocks, so memory does not grow with it. A block ends after a line if the next one begins with an
ASCII letter: there every pre-tokenizer begins a word anyway, except for the few that join words across lines. A
stretch of 64 MiB without such a line is cut after its last line, or else between characters.

Files come in the order of their paths, whatever order they were given in; strings and streams come before them, as
given.

But: no words and no counting.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, NamedTuple, NoReturn

from ..corpus import CorpusError, decompressed, files_of, has_json_lines, lines, record_of

_BLOCK = 1 << 20
_LONGEST = 1 << 26  # bytes searched for a place to cut
_LINE_END = re.compile(rb"[!-~]\n(?=[A-Za-z])")
_SURROGATES = re.compile("[\ud800-\udfff]")


class CorpusOptions(NamedTuple):
    """How files are read, and how that is reported."""

    field: str | None = None  # of JSON lines; None: "text", and only in files named .jsonl or .ndjson
    errors: str = "strict"  # or "replace": U+FFFD for bytes that are not UTF-8
    progress: Callable[[int, int], object] | None = None  # (bytes read, bytes in all) of files
    skipped: Counter[str] | None = None  # files left out of directories


def texts_of(corpus: Iterable[object], reading: CorpusOptions) -> Iterator[str]:
    """Yields the texts of strings, paths (`os.PathLike`; files and directories) and binary streams.

    Raises `CorpusError` for bytes that are not UTF-8, lines that are not JSON and broken compression; `OSError` for
    files that cannot be read.
    """
    if isinstance(corpus, (str, bytes, os.PathLike)):
        raise TypeError("the corpus must be a sequence: [text, …] or [pathlib.Path(…), …]")
    paths: list[str] = []
    for number, item in enumerate(corpus):
        if isinstance(item, str):
            yield _without_surrogates(item, f"text {number}", reading.errors)
        elif isinstance(item, os.PathLike):
            paths.append(os.fsdecode(item))
        elif hasattr(item, "read"):
            yield from _texts_in(item, str(getattr(item, "name", "stream")), reading, lambda: None)
        else:
            raise TypeError(f"a corpus has str, pathlib.Path and binary streams, not {type(item).__name__}")
    skipped = Counter() if reading.skipped is None else reading.skipped
    files = sorted(files_of(paths, skipped, _raise))
    total = sum(file.size for file in files)
    before = 0
    for path, size, _ in files:
        with open(path, "rb") as raw, decompressed(raw, path) as stream:

            def report(raw: IO[bytes] = raw, before: int = before) -> None:
                if reading.progress is not None:
                    reading.progress(before + raw.tell(), total)

            yield from _texts_in(stream, path, reading, report)
        before += size


def _raise(path: str, error: Exception) -> NoReturn:
    raise error


def _texts_in(stream: Any, name: str, reading: CorpusOptions, report: Callable[[], None]) -> Iterator[str]:
    as_json = reading.field is not None or has_json_lines(name)
    texts = _records(stream, name, reading) if as_json else _blocks(stream, name, reading)
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
            "file, or give --errors replace (errors='replace') to read U+FFFD in its place"
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
            found = record_of(text, reading.field).text
        except ValueError as error:
            raise CorpusError(f"{where}: {error}") from None
        yield _without_surrogates(found, where, reading.errors)


def _without_surrogates(text: str, where: str, errors: str) -> str:
    if text.isascii() or (lone := _SURROGATES.search(text)) is None:
        return text
    if errors == "replace":
        return _SURROGATES.sub("\ufffd", text)
    raise CorpusError(
        f"{where}: a lone surrogate, U+{ord(lone[0]):04X}, at character {lone.start()}, which UTF-8 cannot write; "
        "give errors='replace' (--errors replace) to read U+FFFD in its place"
    )
