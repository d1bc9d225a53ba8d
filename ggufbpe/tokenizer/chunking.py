"""Divides a text that arrives piece by piece into chunks whose ids, joined, are those of the whole text.

split_points.py says where a text can be split. A text without such a place (a gigabyte of one letter) is one chunk.
Special tokens are the only places for the reference engine, for DNA models, whose k-mers are counted from the beginning
of a sequence, and for UGM, whose scores are summed from the beginning of the text: large sums are rounded, and that can
decide which path is best.

    stream -> chunks_of_stream -+
                                +-> stable_chunks -> chunks -> ids_of_chunks
             pieces of a text --+
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING, Any

from .split_points import Places, places_of

if TYPE_CHECKING:
    from . import Tokenizer

CHUNK_BYTES = 1 << 16  # of a stream
# bytes; a longer text in memory is encoded in chunks, since a str or its ids take more memory
LONG_TEXT = 1 << 20
_MOST_READ = 1 << 17  # bytes of a stream at once, unless a chunk has more


def stable_chunks(
    pieces: Iterable[bytes], places: Places, *, between_words: bool = False, most: float = inf
) -> Iterator[bytes]:
    """Yield the text of `pieces` in chunks, each as soon as no later piece can change its ids.

    Each piece is searched from its end backwards, and no part of the text twice. If more than `most` bytes have no
    place, they are the last chunk, and no further piece is read. `Places.last` describes `between_words`.
    """
    reach = places.reach
    before = bytearray()  # text since the last place that no search needs again
    rest = b""  # the text behind it
    searched = 0  # how much of `rest` has no place, or only such as are not used: one near the end was
    for piece in pieces:
        rest += piece
        end = len(rest) - reach
        if end <= searched:
            continue
        if place := places.last(rest, searched, end, between_words=between_words):
            chunk, rest, searched = rest[:place], rest[place:], end - place
            if before:
                chunk, before = b"".join((before, chunk)), bytearray()
            yield chunk
            del chunk  # it may be large
            continue
        kept = max(end - reach, 0)
        before += rest[:kept]
        rest, searched = rest[kept:], end - kept
        if len(before) + len(rest) > most:
            break
    if before:
        rest, before = b"".join((before, rest)), bytearray()
    if rest:
        yield rest


def chunks_of_stream(
    stream: Any,
    tokenizers: Iterable[Tokenizer],
    parse_special: bool = True,
    size: int = CHUNK_BYTES,
    *,
    continues: bool = False,
    between_words: bool = False,
    most: float = inf,
) -> Iterator[bytes]:
    """Yield the text of a binary stream in chunks of about `size` bytes; none for an empty one.

    No id of any of the `tokenizers` changes. With `between_words`, no word of `Tokenizer.pre_tokenize` is divided.
    Set `continues` if all chunks but the first are to be encoded with `continues=True`; otherwise, a text of models
    without patterns is divided only at special tokens. `stable_chunks` describes `most`. `TypeError` for a stream of
    str.

    >>> import io
    >>> text = b"Hello worlds, " * 100
    >>> chunks = list(chunks_of_stream(io.BytesIO(text), [tok], size=500))
    >>> [id for chunk in chunks for id in tok.encode(chunk)] == tok.encode(text)
    True
    """
    first = read(stream, size)
    if len(first) < size:  # the commonest case, in which no place is looked for
        yield from [first] if first else ()
        return
    places = places_of(tokenizers, parse_special, continues)
    wanted = size

    def pieces() -> Iterator[bytes]:
        nonlocal wanted
        yield first
        is_end = False
        while not is_end:
            # Each search takes a while, so more is read where there was no place.
            asked, wanted = wanted, max(min(2 * wanted, _MOST_READ), size)
            piece = read(stream, asked)
            is_end = len(piece) < asked
            yield piece

    for chunk in stable_chunks(pieces(), places, between_words=between_words, most=most):
        wanted = size
        yield chunk
        del chunk  # it may be large


def ids_of_chunks(tokenizer: Tokenizer, chunks: Iterable[bytes], parse_special: bool) -> Iterator[list[int]]:
    """Yield the ids of each chunk of one text; no BOS or EOS is added."""
    encode, continues = tokenizer._engine.encode, False
    for chunk in chunks:
        yield encode(chunk, False, parse_special, continues)
        continues = True


def read(stream: Any, size: int) -> bytes:
    """Return `size` bytes of a stream, fewer only at its end: pipes and decompressors may give less at a time."""
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(size)):
        if isinstance(part, str):
            raise TypeError("the stream gives str; open it in binary mode")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_all(stream: Any) -> bytes:
    """Return all bytes of a binary stream; `TypeError` for a stream of str."""
    return b"".join(iter(lambda: read(stream, LONG_TEXT), b""))


def added_ids(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The tokens that llama-tokenize adds before and after a text; if the model wants no BOS, no EOS either."""
    return tokenizer.vocabulary.added if tokenizer.add_bos else ([], [])
