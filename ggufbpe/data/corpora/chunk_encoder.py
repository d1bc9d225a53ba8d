"""Encodes a chunk of a corpus, on any thread: the ids of its documents, in one array as they will be written.

A bad record (a line that is not JSON, a row without a text) is returned with its number and the reason.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..._util.errors import ChatError, printable
from ..._util.utf8 import is_utf8, original_bytes
from ...models.tokenizer_model import NO_TOKEN
from ...tokenizer import Tokenizer
from .byte_formats import Layout
from .chat_encoder import ChatEncoder, EncodedChat
from .chunks import Chunk, CorpusPlace
from .document_notes import Note
from .documents import Options, may_lack_tokens
from .long_lines import LONG_LINE, text_of_long_line
from .marked_ids import ENDS, IS_WRITTEN, ended
from .records import CorpusError, as_text, begins_as_utf8, decoded_line, fields_of, record_of, text_bytes

_MUCH = 1 << 24  # tokens; more are left in several arrays
_AT_ONCE = 1 << 12  # documents; even an empty one takes memory


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
    notes: npt.NDArray[np.uint8] | None = None  # the bits of each document, if any has some
    padding: npt.NDArray[np.int64] | None = (
        None  # ids before each document that are not its own (whole_rows.py)
    )


def json_loads() -> Callable[[Any], Any]:
    """orjson's parser if it is installed. Lines that it refuses are tried again by `record_of`."""
    try:
        loads: Callable[[Any], Any] = import_module("orjson").loads
    except ImportError:
        return lambda line: json.loads(str(line, "utf-8"))  # it would guess UTF-16 from bytes
    return loads


class ChunkEncoder:
    """Encodes chunks, from any number of threads."""

    def __init__(self, tokenizer: Tokenizer, options: Options, layout: Layout) -> None:
        """`ValueError` where the model has no token that is to be added, or no template for chats."""
        self._tokenizer = tokenizer
        self._options = options
        self._dtype = np.dtype(layout.held)
        self._is_marked = layout.is_marked
        self._loads = json_loads()
        self._may_lack_tokens = may_lack_tokens(tokenizer)
        self._prefix_ids = self._added(options.bos, tokenizer.bos_id, "BOS", "leave out bos=True")
        self._suffix_ids = self._added(options.eos, tokenizer.eos_id, "EOS", "give eos=False")
        if options.is_chat:
            self._chat_encoder = ChatEncoder(tokenizer, options, self._checked)

    def _added(self, is_wanted: bool, token: int | None, name: str, remedy: str) -> list[Any]:
        if not is_wanted:
            return []
        if token is None:
            raise ValueError(f"the model has no {name} token to put at each document; {remedy}")
        return [np.array([token], self._dtype)]

    def encode(self, chunk: Chunk) -> Encoded:
        """Encode the documents of a chunk, and release its data."""
        data = chunk.data[:]
        chunk.data.clear()
        if chunk.kind == "piece":
            return self._piece(data.pop(), chunk)
        if chunk.kind == "broken":
            return self._encoded([], [], [Bad(0, data[0])], [], set())
        flawed: set[int] = set()
        ends, found_records = self._records_of(chunk.kind, data, flawed)
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
        return self._encoded(texts, records, bad, ends, flawed)

    def _records_of(self, kind: str, data: list[Any], flawed: set[int]) -> tuple[Any, Iterable[Any]]:
        """Where each record ends, and what it is: a text, None for a blank line, an error for a bad record.

        The numbers of those that are not UTF-8 are added to `flawed`.
        """
        if kind == "rows":
            return np.arange(1, len(data) + 1), self._rows(data)
        if kind == "files":
            flawed.update(number for number, (_, text) in enumerate(data) if not begins_as_utf8(text))
            return [index + 1 for index, _ in data], [text for _, text in data]
        if kind == "json":
            ends: list[int] = []
            return ends, self._json(data.pop(), ends, flawed)
        is_all_utf8 = len(data[0]) < LONG_LINE and is_utf8(data[0])  # quicker than line by line
        lines = _split(data.pop())
        if not is_all_utf8:
            flawed.update(number for number, line in enumerate(lines) if not begins_as_utf8(line))
        sizes = np.fromiter(map(len, lines), np.int64, len(lines)) + 1
        return np.cumsum(sizes), (line.removesuffix(b"\r") for line in lines)

    # ---- texts --------------------------------------------------------------------------------------

    def _json(self, data: bytes, ends: list[int], flawed: set[int]) -> Iterable[Any]:
        """The texts of lines; where a line ends is added to `ends`, and the number of one not in UTF-8 to `flawed`."""
        column, loads = self._options.text_column, self._loads
        is_chat = self._options.is_chat
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
            if text is None:  # also of each text that is not UTF-8
                text = self._slowly(bytes(line))
                if isinstance(text, bytes) and not is_utf8(text):
                    flawed.add(len(ends) - 1)
            yield text

    def _slowly(self, line: bytes) -> Any:
        if not line.removeprefix(BOM_UTF8).strip():
            return None
        text = decoded_line(line)
        try:
            if not self._options.is_chat:
                return original_bytes(record_of(text, self._options.text_column, "text_column").text)
            return self._options.chat(fields_of(text))
        except ValueError as error:
            return error

    def _rows(self, data: list[Any]) -> Iterable[Any]:
        columns = self._options.columns
        for row in data:
            try:
                if self._options.is_chat:
                    yield self._options.chat(dict(zip(columns, map(as_text, row))))
                else:
                    yield text_bytes(row[0], self._options.text_column)
            except ValueError as error:
                yield error

    # ---- ids ----------------------------------------------------------------------------------------

    def _encoded(
        self, texts: list[Any], records: list[int], bad: list[Bad], ends: Any, flawed: set[int]
    ) -> Encoded:
        notes: list[int] = []
        sizes: list[int] = []
        done: list[int] = []
        ids: list[Any] = []
        lengths: list[int] = []
        for begin in range(0, len(texts), _AT_ONCE):
            some, their = texts[begin : begin + _AT_ONCE], records[begin : begin + _AT_ONCE]
            texts[begin : begin + _AT_ONCE] = [None] * len(some)  # released when it is done
            if self._options.is_chat:
                arrays, their_lengths, their_notes = self._chats(some, their, bad)
                notes += their_notes
            else:
                arrays, their_lengths = self._plain(some, their, bad)
            sizes += map(len, some)
            done += their
            del some[:]
            lengths += their_lengths
            if len(arrays) > 1 and (self._is_marked or sum(their_lengths) < _MUCH):
                arrays = [np.concatenate(arrays, dtype=self._dtype, casting="unsafe")]
            ids += self._ended(list(map(self._typed, arrays)), their_lengths)
        counted = [np.array(numbers, np.int64) for numbers in (lengths, sizes, done)]
        ends = np.array(ends, np.int64)[counted[2] - 1]
        if flawed:
            notes = [Note.NOT_UTF8 if record - 1 in flawed else 0 for record in done]
        bits = np.array(notes, np.uint8) if any(notes) else None
        return Encoded(ids, counted[0], counted[1], counted[2], ends, bad, notes=bits)

    def _typed(self, ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Ids in the type that is written; not copied if only the sign is another, which none of them has."""
        if ids.dtype.itemsize == self._dtype.itemsize:
            return ids.view(self._dtype)
        return ids.astype(self._dtype)

    def _ended(self, arrays: list[Any], lengths: list[int]) -> list[Any]:
        """The ids of documents; the last ones are marked, if there are marks."""
        if not self._is_marked or not arrays:
            return arrays
        return [ended(arrays[0], np.array(lengths, np.int64))]

    def _plain(self, texts: list[Any], records: list[int], bad: list[Bad]) -> tuple[list[Any], list[int]]:
        """Arrays of ids one after the other, and the tokens of each document."""
        flags = {"add_special": False, "parse_special": self._options.parse_special}
        rows = self._tokenizer.encode_batch_to_numpy(texts, **flags, threads=1)
        added = len(self._prefix_ids) + len(self._suffix_ids)
        if self._may_lack_tokens or self._options.max_length is not None:
            kept: list[tuple[Any, Any, int]] = []
            for ids, text, record in zip(rows, texts, records):
                try:
                    self._require_fitting(len(ids) + added)
                    kept.append((self._checked(ids, text, **flags), text, record))
                except CorpusError as error:
                    bad.append(Bad(record - 1, str(error)))
            bad.sort()
            rows = [ids for ids, _, _ in kept]
            texts[:] = [text for _, text, _ in kept]
            records[:] = [record for _, _, record in kept]
        prefix_ids, suffix_ids = self._prefix_ids, self._suffix_ids
        lengths = [len(ids) + added for ids in rows]
        return [part for ids in rows for part in (*prefix_ids, ids, *suffix_ids)], lengths

    def _chats(
        self, texts: list[Any], records: list[int], bad: list[Bad]
    ) -> tuple[list[Any], list[int], list[int]]:
        """The ids of chats as llama-server encodes their prompts; BOS and EOS are added where wanted and missing."""
        arrays: list[Any] = []
        lengths, kept = [], []
        for record, chat in zip(records, texts):
            try:
                encoded = self._chat_encoder.encode(chat)
                parts = self._framed(encoded)
                length = sum(map(len, parts))
                self._require_fitting(length)
            except (ChatError, CorpusError) as error:
                bad.append(Bad(record - 1, str(error)))
                continue
            arrays += parts
            lengths.append(length)
            kept.append((encoded.prompt, record, encoded.notes))
        bad.sort()
        texts[:] = [prompt for prompt, _, _ in kept]
        records[:] = [record for _, record, _ in kept]
        return arrays, lengths, [notes for _, _, notes in kept]

    def _framed(self, encoded: EncodedChat) -> list[Any]:
        """The ids of a chat, with BOS and EOS where they are wanted and missing."""
        ids = encoded.ids
        plain = ids & (ENDS - 1) if self._is_marked else ids
        prefix_ids = [] if len(ids) and plain[0] == self._tokenizer.bos_id else self._prefix_ids
        suffix_ids = [] if len(ids) and plain[-1] == self._tokenizer.eos_id else self._suffix_ids
        if encoded.is_last_written:
            suffix_ids = [token | IS_WRITTEN for token in suffix_ids]
        return [*prefix_ids, ids, *suffix_ids]

    def _require_fitting(self, length: int) -> None:
        """`CorpusError` for a document of more tokens than it may have."""
        most = self._options.max_length
        if most is not None and length > most:
            raise CorpusError(f"it has {length} tokens, more than the {most} allowed")

    def _checked(self, ids: npt.NDArray[Any], text: bytes, **flags: Any) -> npt.NDArray[Any]:
        """The ids that `text` has with these flags. `CorpusError` if a part of it has no token.

        Without an unknown token, llama.cpp gives -1 for it, which is no id to be trained on.
        """
        if self._may_lack_tokens and (ids < 0).any():
            found, places = self._tokenizer.encode_with_offsets(text, **flags)
            start, end = places[found.index(NO_TOKEN)]
            part = printable(text[start:end].decode("utf-8", "replace"), 40)
            raise CorpusError(f"no token for {part}, and the model has no unknown token")
        return ids

    def _piece(self, text: bytes, chunk: Chunk) -> Encoded:
        """The ids of a part of a text. `CorpusError` if it lacks a token: what is before it is already written."""
        flags = {
            "add_special": False,
            "parse_special": self._options.parse_special,
            "continues": not chunk.is_first,
        }
        ids = self._checked(self._tokenizer.encode_to_numpy(text, **flags), text, **flags)
        is_last = chunk.after is not None
        parts = [*(self._prefix_ids if chunk.is_first else []), ids, *(self._suffix_ids if is_last else [])]
        parts = list(map(self._typed, parts))
        ends = np.array([1] if is_last else [], np.int64)
        if is_last:
            parts = self._ended([np.concatenate(parts)] if self._is_marked else parts, [sum(map(len, parts))])
        lengths, sizes = ends * sum(map(len, parts)), ends * len(text)
        bits = None
        if chunk.is_flawed:
            bits = np.array([Note.NOT_UTF8], np.uint8)
        return Encoded(parts, lengths, sizes, ends, ends, [], 0 if is_last else len(text), bits)


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
