"""A corpus to texts in groups: files, directories, streams and strings, plain or as JSON lines.

    strings, paths, streams -> [this file] -> batches of texts, each of one group -> measure.py

As in training, compressed files and JSON lines go by their names, and of directories hidden and binary files and
links are left out.

But: text is bytes here, and need not be UTF-8. A file that cannot be read is reported, and the others are read.
"""

from __future__ import annotations

import io
import json
import os
import stat
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from ..corpus_files import (
    CorpusError,
    decompressed,
    has_json_lines,
    is_binary,
    lines,
    without_compression,
)
from ..errors import printable
from .cuts import CHUNK, CanCut, chunks

GROUPINGS = ("file", "folder", "extension", "total")

Report = Callable[[str, Exception], object]
Progress = Callable[[int, int, str], object]  # bytes of files read, bytes of all files, the file in hand


class Reading(NamedTuple):
    """How a corpus is read and grouped, and who is told of it."""

    by: str  # one of GROUPINGS
    by_field: str | None  # of JSON lines, in place of `by`
    field: str | None  # of JSON lines; None: "text", and only in files named .jsonl or .ndjson
    skipped: Counter[str]  # what directories have that is not read
    report: Report
    progress: Progress


class Batch(NamedTuple):
    """Texts of one group, or a part of a long one."""

    group: str
    source: str  # the file, for messages
    texts: list[bytes]
    begun: int  # how many texts begin here: none in the later parts of a long one
    rough: bool = False  # the cut behind it may have changed ids


class _Source(NamedTuple):
    """Something to read."""

    name: str
    group: str
    open: Callable[[], Any]
    size: int = 0  # bytes of a file, for progress


def batches(
    corpus: Iterable[object] | Mapping[str, Any], reading: Reading, can_cut: CanCut
) -> Iterator[Batch]:
    """The texts of a corpus: of str (each is a text), `os.PathLike` (files and directories) and binary streams.

    A mapping has such a corpus for each group. `TypeError` for anything else.
    """
    sources = list(_sources(corpus, reading))
    total = sum(source.size for source in sources)
    before = 0
    for source in sources:
        reading.progress(before, total, source.name)
        try:
            with source.open() as raw:
                for batch in _read(source, raw, reading, can_cut):
                    yield batch
                    done = raw.tell() if source.size else 0
                    reading.progress(before + done, total, source.name)
        except OSError as error:
            reading.report(source.name, error)
        except CorpusError as error:  # which names the file, as the report does
            reading.report(source.name, CorpusError(str(error).removeprefix(f"{source.name}: ")))
        except (EOFError, zlib.error) as error:
            reading.report(source.name, CorpusError(f"the compressed data is broken: {error}"))
        except Exception as error:
            if type(error).__name__ != "ZstdError":  # not imported where it is not needed
                raise
            reading.report(source.name, CorpusError(f"the compressed data is broken: {error}"))
        before += source.size


# ---- what there is to read ------------------------------------------------------------------------------


def _sources(corpus: object, reading: Reading) -> Iterator[_Source]:
    if isinstance(corpus, Mapping):
        for group, part in corpus.items():
            items = [part] if _is_item(part) else part
            for source in _sources(items, reading):
                yield source._replace(group=str(group))
        return
    if _is_item(corpus) or not isinstance(corpus, Iterable):
        raise TypeError("the corpus is a sequence: [text, …] or [pathlib.Path(…), …], or a mapping of such")
    for number, item in enumerate(corpus, 1):
        if isinstance(item, str):
            name = f"text {number}"
            yield _Source(name, _group(name, None, reading), partial(io.BytesIO, _utf8(item)))
        elif isinstance(item, os.PathLike):
            yield from _files(os.fsdecode(item), reading)
        elif hasattr(item, "read"):
            name = str(getattr(item, "name", "(stream)"))
            yield _Source(name, _group(name, None, reading), _Lent(item))
        else:
            raise TypeError(f"a corpus has str, pathlib.Path and binary streams, not {type(item).__name__}")


def _is_item(found: object) -> bool:
    return isinstance(found, (str, bytes, os.PathLike)) or hasattr(found, "read")


class _Lent:
    """A stream of the caller's: read, and not closed."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __call__(self) -> _Lent:
        return self

    def __enter__(self) -> Any:
        return self._stream

    def __exit__(self, *_: object) -> None:
        pass


def _files(root: str, reading: Reading) -> Iterator[_Source]:
    """The file, or the files below the directory."""
    to_visit = [root]
    while to_visit:
        path = to_visit.pop()
        try:
            status = os.stat(path) if path == root else os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                names = sorted(os.listdir(path), reverse=True)
                shown = [name for name in names if not name.startswith(".")]
                reading.skipped["hidden"] += len(names) - len(shown)
                to_visit += [os.path.join(path, name) for name in shown]
            elif path != root and not stat.S_ISREG(status.st_mode):
                reading.skipped["link or special"] += 1
            elif path != root and is_binary(path):
                reading.skipped["binary"] += 1
            else:
                group = _group(path, root, reading)
                yield _Source(path, group, partial(open, path, "rb"), status.st_size)
        except OSError as error:
            reading.report(path, error)


def _group(name: str, root: str | None, reading: Reading) -> str:
    """The group of a file below `root`, or of something that is no file (None)."""
    if reading.by_field is not None:
        return _without(reading.by_field)
    if reading.by == "total":
        return "total"
    if root is None or reading.by == "file":
        return name
    if reading.by == "extension":
        return os.path.splitext(without_compression(name))[1].lower() or "(none)"
    if name == root:
        return os.path.basename(os.path.dirname(os.path.abspath(name))) or os.sep
    first, *deeper = os.path.relpath(name, root).split(os.sep)
    return first if deeper else os.path.basename(os.path.abspath(root)) or os.sep


def _without(field: str) -> str:
    return f"(no {field})"


# ---- what is in it --------------------------------------------------------------------------------------


def _read(source: _Source, raw: Any, reading: Reading, can_cut: CanCut) -> Iterator[Batch]:
    stream = decompressed(raw, source.name)
    if reading.field is not None or has_json_lines(source.name):
        yield from _records(source, stream, reading)
        return
    begun = 1
    for chunk in chunks(stream, can_cut):
        yield Batch(source.group, source.name, [chunk.data], begun, chunk.rough)
        begun = 0
    if begun:
        yield Batch(source.group, source.name, [], 1)


def _records(source: _Source, stream: Any, reading: Reading) -> Iterator[Batch]:
    """The texts of JSON lines, some at a time. Lines that have none are reported together, at the end."""
    waiting: defaultdict[str, list[bytes]] = defaultdict(list)
    size, bad, first = 0, 0, ""
    for number, line in enumerate(lines(stream), 1):
        if not line.strip():
            continue
        try:
            text, group = _record(line, source, reading)
        except ValueError as error:
            bad, first = bad + 1, first or f"line {number}: {error}"
            continue
        waiting[group].append(text)
        size += len(line)
        if size >= CHUNK:
            yield from (Batch(group, source.name, texts, len(texts)) for group, texts in waiting.items())
            waiting, size = defaultdict(list), 0
    yield from (Batch(group, source.name, texts, len(texts)) for group, texts in waiting.items())
    if bad:
        left_out = "" if bad == 1 else f" ({bad} such lines)"
        reading.report(source.name, CorpusError(f"left out: {first}{left_out}"))


def _record(line: bytes, source: _Source, reading: Reading) -> tuple[bytes, str]:
    """The text of a line, and its group."""
    try:
        record = json.loads(line.decode("utf-8", "surrogateescape"))
    except RecursionError:
        raise ValueError("not JSON: nested too deep") from None
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise ValueError("not an object")
    field = "text" if reading.field is None else reading.field
    text = record.get(field)
    if not isinstance(text, str):
        raise ValueError(f"the field {printable(field)} is no text; --field NAME says which one to read")
    group = source.group
    if reading.by_field is not None and record.get(reading.by_field) is not None:
        value = record[reading.by_field]
        group = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _utf8(text), group


def _utf8(text: str) -> bytes:
    """The bytes of a text with what JSON can write and UTF-8 cannot: lone surrogates, and bytes that were none."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
