"""Streams answers that are many times as large as their requests, so that their JSON is never held as a whole."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

if TYPE_CHECKING:
    from numpy.typing import NDArray

_IDS_AT_ONCE = 1 << 10
_SENT_AT_ONCE = 1 << 18  # bytes


class Items:
    """An array with one item per id; `item` is called once for each distinct id."""

    def __init__(self, ids: NDArray[np.int32], item: Callable[[int], Any]) -> None:
        self._ids = ids
        self._items = {token: answer_json(item(token)) for token in _distinct(ids)}

    def parts(self) -> Iterator[bytes]:
        """The JSON, in order.

        >>> list(Items(np.array([1, 2, 1]), "?ab".__getitem__).parts())
        [b'[', b'"a","b","a"', b']']
        """
        yield b"["
        for number, items in enumerate(_values(self._ids, self._items)):
            yield b"," * (number > 0) + b",".join(items)
        yield b"]"


class JoinedPieces:
    """The pieces of ids as one string, with U+FFFD for what is not UTF-8."""

    def __init__(self, ids: NDArray[np.int32], piece: Callable[[int], bytes]) -> None:
        self._ids = ids
        self._pieces = {token: piece(token) for token in _distinct(ids)}

    def parts(self) -> Iterator[bytes]:
        r"""The JSON, in order.

        >>> b"".join(JoinedPieces(np.array([1, 2, 1]), [b"", b"\xc3", b'\xa4"'].__getitem__).parts()).decode()
        '"ä\\"\ufffd"'
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        yield b'"'
        for pieces in _values(self._ids, self._pieces):
            yield _inside(decoder.decode(b"".join(pieces)))
        yield _inside(decoder.decode(b"", final=True)) + b'"'


def _distinct(ids: NDArray[np.int32]) -> Iterable[int]:
    """The distinct ids in the order in which they first occur, so that an error names the first bad one.

    >>> list(_distinct(np.array([3, 1, 3])))
    [3, 1]
    """
    found: dict[int, None] = {}
    for at in range(0, len(ids), _IDS_AT_ONCE):
        found.update(dict.fromkeys(ids[at : at + _IDS_AT_ONCE].tolist()))
    return found


def _values(ids: NDArray[np.int32], values: Mapping[int, bytes]) -> Iterator[Iterator[bytes]]:
    """The values of ids, a thousand at a time."""
    for at in range(0, len(ids), _IDS_AT_ONCE):
        yield map(values.__getitem__, ids[at : at + _IDS_AT_ONCE].tolist())


def _inside(text: str) -> bytes:
    return orjson.dumps(text)[1:-1]


class StreamedAnswer:
    """An object with such values; `size` is the length of its JSON in bytes."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self._answer = answer
        self.size = sum(map(len, self.parts()))

    def parts(self) -> Iterator[bytes]:
        """The JSON, in order."""
        between = b"{"
        for name, value in self._answer.items():
            yield between + orjson.dumps(name) + b":"
            yield from (
                value.parts() if isinstance(value, Items | JoinedPieces) else sent_parts(answer_json(value))
            )
            between = b","
        yield b"}"


def sent_parts(content: bytes | StreamedAnswer) -> Iterator[bytes]:
    """The parts to send: each waits until the client has taken most of the one before."""
    if isinstance(content, StreamedAnswer):
        yield from content.parts()
        return
    for at in range(0, len(content), _SENT_AT_ONCE):
        yield content[at : at + _SENT_AT_ONCE]


def answer_json(answer: Any) -> bytes:
    """The JSON of an answer as a whole.

    In the symbols of a traced word, bytes that are not UTF-8 are lone surrogates, which orjson refuses. They are
    escaped then, so that the page can tell the symbols apart.
    """
    try:
        return orjson.dumps(answer, default=_whole, option=orjson.OPT_SERIALIZE_NUMPY)
    except orjson.JSONEncodeError:
        return json.dumps(answer, default=np.ndarray.tolist, separators=(",", ":")).encode()


def json_or_stream(answer: Any) -> bytes | StreamedAnswer:
    """The JSON of an answer; for an answer with streamed values, a `StreamedAnswer` that yields its parts."""
    if isinstance(answer, dict) and any(isinstance(value, Items | JoinedPieces) for value in answer.values()):
        return StreamedAnswer(answer)
    return answer_json(answer)


def _whole(value: Any) -> orjson.Fragment:
    if isinstance(value, Items | JoinedPieces):
        return orjson.Fragment(b"".join(value.parts()))
    raise TypeError
