"""Cuts a long text into blocks whose ids, joined, are those of the whole text.

split_points.py says where a text can be cut. A text without a cut (a gigabyte of one letter) is one block. So is every
text in the reference engine, which does not know the cuts; of a DNA model, whose k-mers are counted from the beginning
of a sequence; and of UGM, whose sums of scores from the beginning decide once they are so large that they are rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING, Any

from .split_points import SplitPoints

if TYPE_CHECKING:
    from . import Tokenizer

BLOCK = 1 << 16  # bytes
# bytes; a longer text in memory is encoded in blocks, since a str or its ids take more memory
LONG_TEXT = 1 << 20


def blocks(
    stream: Any,
    tokenizers: Iterable[Tokenizer],
    parse_special: bool = True,
    size: int = BLOCK,
    *,
    continues: bool = False,
    most: float = inf,
) -> Iterator[bytes]:
    """The text of a binary stream in blocks of at least `size` bytes, mostly little more; none for an empty one.

    No id and no word of any of the `tokenizers` changes. `continues` says that all blocks but the first will be
    encoded with it; otherwise, the text of a model without patterns is one block. Reading ends where more than `most`
    bytes have no cut; they are the last block then. `TypeError` for a stream of str.

    >>> import io
    >>> list(blocks(io.BytesIO(b"Hello worlds"), [tok], size=3))
    [b'Hello', b' worlds']
    """
    rest = read(stream, size)
    if len(rest) < size:  # no cut is needed
        yield from [rest] if rest else ()
        return
    places = [SplitPoints.of(tokenizer, parse_special, continues) for tokenizer in tokenizers]
    around = max((each.around for each in places), default=0)
    searched = size
    wanted = size + size // 4 + around
    while True:
        rest += read(stream, wanted - len(rest))
        is_end = len(rest) < wanted
        last = len(rest) - (0 if is_end else around)
        at = min(searched, last)
        while at < last and (found := max((each.next(rest, at) for each in places), default=at)) != at:
            at = found
        if at < last:
            yield rest[:at]
            rest, searched, wanted = rest[at:], size, size + size // 4 + around
        elif is_end:
            if rest:
                yield rest
            return
        elif len(rest) > most:
            yield rest
            return
        else:
            searched, wanted = last, 2 * wanted


def read(stream: Any, size: int) -> bytes:
    """`size` bytes, fewer only at the end: pipes and decompressors may give less at a time."""
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(size)):
        if isinstance(part, str):
            raise TypeError("the stream gives str; open it in binary mode")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def added_ids(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The tokens that llama-tokenize adds before and after a text; if the model wants no BOS, no EOS either."""
    return tokenizer.vocabulary.added if tokenizer.add_bos else ([], [])
