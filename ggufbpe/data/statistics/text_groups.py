"""Reads a corpus as texts in groups: files, directories, streams and strings, plain or as JSON lines.

As in training, compressed files and JSON lines are recognized by name, and hidden files, binary files and links in
directories are left out. Text is bytes here, and need not be UTF-8. A file that cannot be read is reported, and
reading continues with the next.
"""

from __future__ import annotations

import io
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

from ..._util.progress import OnProgress, Progress
from ..._util.utf8 import original_bytes
from ...tokenizer.chunking import CHUNK_BYTES, LONG_TEXT
from ..corpora.corpus_files import files_of, open_file
from ..corpora.readers import has_records, read_chat_records, records
from ..corpora.records import (
    CorpusError,
    Report,
    decompressed,
    has_json_lines,
    is_json,
    is_table,
    without_compression,
)

GROUPINGS = ("file", "folder", "extension", "total")

PromptsOf = Callable[[Mapping[str, Any]], list[bytes]]  # the fields of a record to the prompt of each model
Cut = Callable[[Any], Iterable[bytes]]  # cuts a binary stream into chunks that can be tokenized one by one


class Reading(NamedTuple):
    """How a corpus is read and grouped, and how that is reported."""

    by: str  # one of GROUPINGS
    by_field: str | None  # of JSON lines, in place of `by`
    field: str | None  # of JSON lines; None: "text", and only in files named .jsonl or .ndjson
    skipped: Counter[str]  # files left out of directories
    report: Report
    progress: OnProgress
    ignored_in: Callable[[str], frozenset[str]] | None = None  # see `files_of`
    prompts: PromptsOf | None = None  # if the corpus is chats


class Batch(NamedTuple):
    """Texts of one group, or a part of a long one."""

    group: str
    source: str  # the file, for messages
    texts: list[bytes]
    begun: int  # how many texts begin here: none in the later parts of a long one
    prompts: tuple[
        list[bytes], ...
    ] = ()  # of chats, in place of `texts`: for each model, the prompts of all chats


class _Source(NamedTuple):
    """Something to read."""

    name: str
    group: str
    open: Callable[[], Any]
    size: int = 0  # bytes of a file, for progress


def batches(corpus: object, reading: Reading, cut: Cut) -> Iterator[Batch]:
    """The texts of a corpus: a list of str (each is a text), `os.PathLike` (files and directories) and binary streams.

    A corpus may also be one of the last two. A mapping has a corpus, or a text, for each group. `TypeError` for
    anything else, such as a str, which may be meant as a path.
    """
    sources = list(_sources(corpus, reading))
    total = sum(source.size for source in sources)
    before = 0
    for source in sources:
        reading.progress(Progress("read", before, total, "bytes", source.name))
        try:
            with source.open() as raw:
                for batch in _read(source, raw, reading, cut):
                    yield batch
                    done = raw.tell() if source.size else 0
                    reading.progress(Progress("read", before + done, total, "bytes", source.name))
        except (OSError, CorpusError) as error:
            reading.report(source.name, error)
        before += source.size


# ---- what there is to read ------------------------------------------------------------------------------


def _sources(corpus: object, reading: Reading) -> Iterator[_Source]:
    if isinstance(corpus, Mapping):
        for group, part in corpus.items():
            items = [part] if _is_item(part) else part
            for source in _sources(items, reading):
                yield source._replace(group=str(group))
        return
    if isinstance(corpus, (str, bytes)):
        raise TypeError(
            f"the corpus must be a list, ['a text'] or [pathlib.Path('folder')], not {type(corpus).__name__}"
        )
    if _is_item(corpus):
        corpus = [corpus]
    if not isinstance(corpus, Iterable):
        raise TypeError(
            "the corpus must be a sequence: [text, …] or [pathlib.Path(…), …], or a mapping of such"
        )
    for number, item in enumerate(corpus, 1):
        if isinstance(item, str):
            name = f"text {number}"
            yield _Source(name, _group(name, None, reading), partial(io.BytesIO, original_bytes(item)))
        elif isinstance(item, os.PathLike):
            for path, size, root, _ in files_of(
                [os.fsdecode(item)],
                reading.skipped,
                reading.report,
                reading.ignored_in,
                reading.field is not None or reading.prompts is not None,
            ):
                if reading.prompts is not None and path != root and not _may_have_chats(path):
                    reading.skipped["neither JSON nor a table"] += 1
                    continue
                yield _Source(path, _group(path, root, reading), partial(open_file, path), size)
        elif hasattr(item, "read"):
            name = str(getattr(item, "name", "(stream)"))
            # read, but not closed: the stream is the caller's
            yield _Source(name, _group(name, None, reading), partial(nullcontext, item))
        else:
            raise TypeError(f"a corpus has str, pathlib.Path and binary streams, not {type(item).__name__}")


def _is_item(value: object) -> bool:
    return isinstance(value, (str, bytes, os.PathLike)) or hasattr(value, "read")


def _group(name: str, root: str | None, reading: Reading) -> str:
    """The group of a file below `root`, or of something that is not a file (None)."""
    if reading.by_field is not None:
        return f"(no {reading.by_field})"
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


# ---- what is in it --------------------------------------------------------------------------------------


def _read(source: _Source, raw: Any, reading: Reading, cut: Cut) -> Iterator[Batch]:
    with decompressed(raw, source.name) as stream:
        if reading.prompts is not None:
            yield from _chats(source, stream, reading, reading.prompts)
        elif has_records(source.name, reading.field):
            yield from _records(source, stream, reading, cut)
        else:
            yield from _in_chunks(source.group, source, stream, cut)


def _in_chunks(group: str, source: _Source, stream: Any, cut: Cut) -> Iterator[Batch]:
    """A text, a chunk at a time."""
    begun = 1
    for chunk in cut(stream):
        yield Batch(group, source.name, [chunk], begun)
        begun = 0
    if begun:
        yield Batch(group, source.name, [], 1)


def _records(source: _Source, stream: Any, reading: Reading, cut: Cut) -> Iterator[Batch]:
    """The texts of JSON lines, several at a time."""
    waiting: defaultdict[str, list[bytes]] = defaultdict(list)
    size = 0
    for text, fields in records(stream, source.name, reading.field, reading.report, reading.by_field):
        group = _group_of(fields, source, reading)
        is_long = len(text) >= LONG_TEXT
        if not is_long:
            waiting[group].append(text)
            size += len(text)
        if is_long or size >= CHUNK_BYTES:
            yield from (Batch(group, source.name, texts, len(texts)) for group, texts in waiting.items())
            waiting, size = defaultdict(list), 0
        if is_long:
            yield from _in_chunks(group, source, io.BytesIO(text), cut)
    yield from (Batch(group, source.name, texts, len(texts)) for group, texts in waiting.items())


def _group_of(fields: Mapping[str, Any], source: _Source, reading: Reading) -> str:
    """The group of a record: the value of a field, or the group of its file."""
    if reading.by_field is None or fields.get(reading.by_field) is None:
        return source.group
    value = fields[reading.by_field]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _chats(source: _Source, stream: Any, reading: Reading, prompts_of: PromptsOf) -> Iterator[Batch]:
    """The prompts of the chats in a file, several at a time."""

    def read(record: dict[str, Any]) -> tuple[str, list[bytes]]:
        return _group_of(record, source, reading), prompts_of(record)

    waiting: defaultdict[str, list[list[bytes]]] = defaultdict(list)
    size = 0

    def batches_of() -> Iterator[Batch]:
        for group, chats in waiting.items():
            yield Batch(group, source.name, [], len(chats), tuple(map(list, zip(*chats))))

    for group, prompts in read_chat_records(stream, source.name, reading.report, read, reading.by_field):
        waiting[group].append(prompts)
        size += max(map(len, prompts))
        if size >= CHUNK_BYTES:
            yield from batches_of()
            waiting.clear()
            size = 0
    yield from batches_of()


def _may_have_chats(path: str) -> bool:
    return has_json_lines(path) or is_json(path) or is_table(path)
