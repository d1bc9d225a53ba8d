"""Reads the texts to compare from what a caller gives, one by one, so that a corpus may be of any size.

A file is one text; longer ones are split after a line about every 64 KiB. Compressed files and JSON lines are
recognized by their names.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple

from ..._util.arguments import iterable
from ..._util.escapes import process_escapes
from ...data.corpora.corpus_files import File, files_of, ignored_by_git, open_file
from ...data.corpora.readers import has_records, records
from ...data.corpora.records import CorpusError, Report, decompressed
from ...tokenizer.chunking import read, read_all
from ...tokenizer.inputs import TextOrPath, text_of
from .result import ComparedText

_LIMIT = 1 << 16  # bytes of a text that is cut from a file
_STDIN = "<stdin>"  # what Python calls it

Source = TextOrPath | IO[bytes] | File | ComparedText


class ReadingTexts(NamedTuple):
    """How texts are read: `read_texts` has the meaning of each."""

    report: Report
    field: str | None = None
    read_ignored: bool = True
    escape: bool = False


def read_texts(
    sources: Source | Iterable[Source], reading: ReadingTexts, *, whole: bool = False
) -> Iterator[ComparedText]:
    """The texts of `sources`: `str` and bytes, files and directories (`pathlib.Path`), binary streams, or one of them.

    A text begins at its `offset`. `field` is the text of JSON lines: with None it is "text", in files named .jsonl or
    .ndjson; otherwise every file is read as JSON lines. Without `read_ignored`, files that git ignores are left out.
    With `escape`, backslash escapes are processed. What cannot be read goes to `report`. `whole` splits no file.
    """
    single = isinstance(sources, (str, bytes, bytearray, memoryview, os.PathLike, File, ComparedText))
    given: Any = [sources] if single or hasattr(sources, "read") else sources
    number = 0
    for source in iterable("texts", given, "texts"):
        if isinstance(source, ComparedText):
            texts: Iterable[ComparedText] = [source]
        elif isinstance(source, (File, os.PathLike)):
            texts = _of_path(source, reading, whole)
        elif hasattr(source, "read"):
            name = str(getattr(source, "name", "stream"))
            texts = _of_stream("standard input" if name == _STDIN else name, source, whole)
        else:
            texts, number = [ComparedText(f"text {number}", 0, text_of(source))], number + 1
        for text in texts:
            yield text._replace(data=process_escapes(text.data)) if reading.escape else text


def _of_path(source: File | os.PathLike[str], reading: ReadingTexts, whole: bool) -> Iterator[ComparedText]:
    if isinstance(source, File):
        yield from _of_file(source, reading, whole)
        return
    ignored = None if reading.read_ignored else ignored_by_git
    for file in files_of([os.fspath(source)], Counter(), reading.report, ignored):
        yield from _of_file(file, reading, whole)


def _of_file(file: File, reading: ReadingTexts, whole: bool) -> Iterator[ComparedText]:
    try:
        with open_file(file.path) as raw, decompressed(raw, file.path) as stream:
            if not has_records(file.path, reading.field):
                yield from _of_stream(file.path, stream, whole)
                return
            for number, (text, _) in enumerate(records(stream, file.path, reading.field, reading.report)):
                yield ComparedText(f"{file.path}, text {number}", 0, text)
    except (OSError, MemoryError, CorpusError) as error:
        reading.report(file.path, error)


def _of_stream(name: str, stream: Any, whole: bool) -> Iterator[ComparedText]:
    offset = 0
    for data in [read_all(stream)] if whole else cut_into_texts(stream, _LIMIT):
        yield ComparedText(name, offset, data)
        offset += len(data)


def cut_into_texts(stream: IO[bytes], limit: int) -> Iterator[bytes]:
    """What a stream has, in texts of at most `limit` bytes, cut after a line or else between characters.

    One text if it fits; also an empty one.
    """
    rest = read(stream, limit + 1)
    while len(rest) > limit:
        end = rest.rfind(b"\n", 0, limit) + 1
        if not end:
            end = limit
            while end > limit - 3 and rest[end] & 0xC0 == 0x80:
                end -= 1
        yield rest[:end]
        rest = rest[end:]
        rest += read(stream, limit + 1 - len(rest))
    yield rest
