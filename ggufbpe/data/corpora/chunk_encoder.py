"""Encodes a chunk of a corpus, on any thread: the ids of its documents, in one array as they will be written.

A bad record (a line that is not JSON, a row without a text) is returned with its number and the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._util.extras import imported
from ...errors import ChatError, printable
from ...tokenizer import Tokenizer
from ...tokenizer.chunking import blocks
from .chunks import CHUNK, Chunk, ChunkReader, CorpusPlace
from .long_lines import LONG_LINE, text_of_long_line
from .records import fields_of, record_of, utf8
from .storage import Input

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MUCH = 1 << 24  # tokens; more are left in several arrays
_AT_ONCE = 1 << 12  # documents; even an empty one takes memory


class Document(NamedTuple):
    """What a document is."""

    text_column: str = "text"
    chat_column: str | None = None  # messages, in place of a text
    bos: bool = False
    eos: bool = True
    parse_special: bool = False
    now: str | None = None  # for the templates of chats, in ISO's form
    chat_template: str | None = None  # in place of the model's


class Options(NamedTuple):
    """What the ids depend on beside the inputs and the tokenizer."""

    document: Document
    by_line: bool
    pack: int | None
    shard_size: int


class Bad(NamedTuple):
    """A bad record: its number in the chunk, and the reason."""

    record: int
    reason: str


class Encoded(NamedTuple):
    """The documents of a chunk.

    `lengths` counts the tokens of those that end in it. The rest of `ids` belongs to one that does not.
    """

    ids: list[npt.NDArray[Any]]  # consecutive, in the type that is written
    lengths: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]  # bytes of text of each document
    records: npt.NDArray[np.int64]  # of the chunk, up to and including each document
    # where the next document begins: bytes or rows into the chunk; of files, the next input
    ends: npt.NDArray[np.int64]
    bad: list[Bad]
    open_size: int = 0  # bytes of the unfinished text


def chunk_reader(tokenizer: Tokenizer, inputs: list[Input], options: Options) -> ChunkReader:
    """What reads the inputs, and cuts long texts where the tokenizer lets it."""

    def cut(stream: Any) -> Iterator[bytes]:
        return blocks(stream, [tokenizer], options.document.parse_special, CHUNK, continues=True)

    column = options.document.chat_column or options.document.text_column
    return ChunkReader(inputs, [column], options.by_line, cut)


def json_loads() -> Callable[[Any], Any]:
    """orjson's parser if it is installed. Lines that it refuses are tried again by `record_of`."""
    try:
        loads: Callable[[Any], Any] = import_module("orjson").loads
    except ImportError:
        return lambda line: json.loads(bytes(line))
    return loads


class ChunkEncoder:
    """Encodes chunks, from any number of threads."""

    def __init__(self, tokenizer: Tokenizer, document: Document, dtype: str) -> None:
        """`ValueError` where the model has no token that is to be added, or no template for chats."""
        self._numpy: Any = imported("numpy", "corpora", "shards")
        self._tokenizer = tokenizer
        self._document = document
        self._dtype = self._numpy.dtype(dtype)
        self._loads = json_loads()
        self._prefix_ids = self._added(document.bos, tokenizer.bos_id, "BOS", "leave out bos=True")
        self._suffix_ids = self._added(document.eos, tokenizer.eos_id, "EOS", "give eos=False")
        if document.chat_column is not None:
            tokenizer.chats.require_template(document.chat_template)
        self._now = None if document.now is None else datetime.fromisoformat(document.now)

    def _added(self, is_wanted: bool, token: int | None, name: str, remedy: str) -> list[Any]:
        if not is_wanted:
            return []
        if token is None:
            raise ValueError(f"the model has no {name} token to put at each document; {remedy}")
        return [self._numpy.array([token], self._dtype)]

    def encode(self, chunk: Chunk) -> Encoded:
        """Encode the documents of a chunk, and release its data."""
        data = chunk.data[:]
        chunk.data.clear()
        if chunk.kind == "piece":
            return self._piece(data.pop(), chunk)
        if chunk.kind == "broken":
            return self._encoded([], [], [Bad(0, data[0])], [])
        ends, found_records = self._records_of(chunk.kind, data)
        del data
        texts: list[Any] = []
        records: list[int] = []
        bad: list[Bad] = []
        for number, record in enumerate(found_records):
            if isinstance(record, ValueError):
                bad.append(Bad(number, str(record)))
            elif record is not None:
                texts.append(record)
                records.append(number + 1)
        return self._encoded(texts, records, bad, ends)

    def _records_of(self, kind: str, data: list[Any]) -> tuple[Any, Iterable[Any]]:
        """Where each record ends, and what it is: a text, None for a blank line, an error for a bad record."""
        numpy = self._numpy
        if kind == "rows":
            return numpy.arange(1, len(data) + 1), self._rows(data)
        if kind == "files":
            return [index + 1 for index, _ in data], [text for _, text in data]
        if kind == "json":
            ends: list[int] = []
            return ends, self._json(data.pop(), ends)
        lines = _split(data.pop())
        ends = numpy.cumsum(numpy.fromiter(map(len, lines), numpy.int64, len(lines)) + 1)
        return ends, (line.removesuffix(b"\r") for line in lines)

    # ---- texts --------------------------------------------------------------------------------------

    def _json(self, data: bytes, ends: list[int]) -> Iterable[Any]:
        """The texts of lines; where a line ends is added to `ends`."""
        column, loads = self._document.text_column, self._loads
        is_chat = self._document.chat_column is not None
        lines = _lines_of(data, ends)
        del data  # which may be a gigabyte
        for line in lines:
            if (
                len(line) >= LONG_LINE
                and not is_chat
                and (text_field := text_of_long_line(line, column)) is not None
            ):
                del line
                yield text_field
                continue
            try:
                text = None if is_chat else loads(line)[column].encode()
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                text = None
            yield self._slowly(bytes(line)) if text is None else text

    def _slowly(self, line: bytes) -> Any:
        if not line.strip():
            return None
        text = line.decode("utf-8", "surrogateescape")
        try:
            if self._document.chat_column is None:
                return utf8(record_of(text, self._document.text_column).text)
            return _chat(fields_of(text).get(self._document.chat_column), self._document.chat_column)
        except ValueError as error:
            return error

    def _rows(self, data: list[Any]) -> Iterable[Any]:
        column = self._document.chat_column
        for (value,) in data:
            try:
                if column is not None:
                    yield _chat(value, column)
                else:
                    yield value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)
            except ValueError as error:
                yield error
            except TypeError:
                name = printable(self._document.text_column)
                yield ValueError(f"the column {name} has no text but {type(value).__name__}")

    # ---- ids ----------------------------------------------------------------------------------------

    def _encoded(self, texts: list[Any], records: list[int], bad: list[Bad], ends: Any) -> Encoded:
        numpy = self._numpy
        sizes: list[int] = []
        done: list[int] = []
        ids: list[Any] = []
        lengths: list[int] = []
        encode = self._chats if self._document.chat_column else self._plain
        for begin in range(0, len(texts), _AT_ONCE):
            some, their = texts[begin : begin + _AT_ONCE], records[begin : begin + _AT_ONCE]
            texts[begin : begin + _AT_ONCE] = [None] * len(some)  # released when it is done
            arrays, their_lengths = encode(some, their, bad)
            sizes += map(len, some)
            done += their
            del some[:]
            lengths += their_lengths
            if len(arrays) > 1 and sum(their_lengths) < _MUCH:
                arrays = [numpy.concatenate(arrays, dtype=self._dtype, casting="unsafe")]
            ids += map(self._typed, arrays)
        counted = [numpy.array(numbers, numpy.int64) for numbers in (lengths, sizes, done)]
        ends = numpy.array(ends, numpy.int64)[counted[2] - 1]
        return Encoded(ids, counted[0], counted[1], counted[2], ends, bad)

    def _typed(self, ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Ids in the type that is written; not copied if only the sign is another, which no id has."""
        if ids.dtype.itemsize == self._dtype.itemsize:
            return ids.view(self._dtype)
        return ids.astype(self._dtype)

    def _plain(self, texts: list[Any], records: list[int], bad: list[Bad]) -> tuple[list[Any], list[int]]:
        """Arrays of ids one after the other, and the tokens of each document."""
        rows = self._tokenizer.encode_batch_to_numpy(
            texts, add_special=False, parse_special=self._document.parse_special, threads=1
        )
        prefix_ids, suffix_ids = self._prefix_ids, self._suffix_ids
        added = len(prefix_ids) + len(suffix_ids)
        lengths = [len(ids) + added for ids in rows]
        return [part for ids in rows for part in (*prefix_ids, ids, *suffix_ids)], lengths

    def _chats(self, texts: list[Any], records: list[int], bad: list[Bad]) -> tuple[list[Any], list[int]]:
        """The ids of chats as llama-server encodes their prompts; BOS and EOS are added where wanted and missing."""
        arrays: list[Any] = []
        lengths, kept = [], []
        for record, messages in zip(records, texts):
            try:
                prompt = self._tokenizer.chats.prompt(
                    {"messages": messages}, self._document.chat_template, self._now, whole=True
                )
            except ChatError as error:
                bad.append(Bad(record - 1, str(error)))
                continue
            ids = self._tokenizer.encode_to_numpy(prompt)
            prefix_ids = [] if len(ids) and ids[0] == self._tokenizer.bos_id else self._prefix_ids
            suffix_ids = [] if len(ids) and ids[-1] == self._tokenizer.eos_id else self._suffix_ids
            arrays += [*prefix_ids, ids, *suffix_ids]
            lengths.append(len(prefix_ids) + len(ids) + len(suffix_ids))
            kept.append((prompt, record))
        bad.sort()
        texts[:] = [prompt for prompt, _ in kept]
        records[:] = [record for _, record in kept]
        return arrays, lengths

    def _piece(self, text: bytes, chunk: Chunk) -> Encoded:
        numpy = self._numpy
        ids = self._tokenizer.encode_to_numpy(
            text, add_special=False, parse_special=self._document.parse_special, continues=not chunk.is_first
        )
        is_last = chunk.after is not None
        parts = [*(self._prefix_ids if chunk.is_first else []), ids, *(self._suffix_ids if is_last else [])]
        parts = list(map(self._typed, parts))
        ends = numpy.array([1] if is_last else [], numpy.int64)
        lengths, sizes = ends * sum(map(len, parts)), ends * len(text)
        return Encoded(parts, lengths, sizes, ends, ends, [], 0 if is_last else len(text))


def place_after(chunk: Chunk, encoded: Encoded, document: int) -> CorpusPlace:
    """The place after a document of a chunk. It does not depend on where reading began."""
    if chunk.after is not None:
        return chunk.after
    record, end = int(encoded.records[document]), int(encoded.ends[document])
    if chunk.kind == "files":
        return CorpusPlace(end)
    return CorpusPlace(chunk.place.input, chunk.place.offset + end, chunk.place.record + record)


def _lines_of(data: bytes, ends: list[int]) -> Iterator[Any]:
    """The lines of a chunk, not copied; a very long one as bytes, after which no other copy of it is there."""
    if len(data) < LONG_LINE:
        view, at = memoryview(data), 0
        while (end := data.find(b"\n", at)) >= 0:
            ends.append(end + 1)
            yield view[at:end]
            at = end + 1
        if at < len(data):
            ends.append(len(data) + 1)
            yield view[at:]
        return
    lines = _split(data)
    del data
    lines.reverse()
    at = 0
    while lines:
        at += len(lines[-1]) + 1
        ends.append(at)
        yield lines.pop()


def _split(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _chat(value: Any, column: str) -> list[Any]:
    """The messages of a chat, as a list or as JSON; `ValueError` if there are none."""
    if isinstance(value, (str, bytes)):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ValueError(f"the column {printable(column)}: not JSON: {error}") from None
    if not isinstance(value, list):
        raise ValueError(f"the column {printable(column)} has no chat, which is a list of messages")
    # a table gives each message all keys
    return [
        {key: part for key, part in message.items() if part is not None}
        if isinstance(message, dict)
        else message
        for message in value
    ]
