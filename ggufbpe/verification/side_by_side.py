"""One text as several tokenizers cut it, side by side.

    text, tokenizers -> rows (align.py) -> [this file] -> stretches of the text -> cli/compare.py

By bytes of the text alone: an id means nothing in another vocabulary. So models of any kind can stand side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..tokenizer import Text, Tokenizer
from .align import Placed, Row, own_row


class Stretch(NamedTuple):
    """`text[start:end]` with the tokens of each tokenizer. It is as short as it can be: all of them cut it there.

    `is_same` where all cut it into the same pieces; neighbouring stretches for which that is so are one.
    """

    start: int
    end: int
    is_same: bool
    tokens: list[Row]


def compare(tokenizers: Sequence[Tokenizer], text: Text, *, parse_special: bool = True) -> list[Stretch]:
    """The stretches of `text` between the places where all tokenizers cut it, in order; BOS and EOS are not added.

    >>> a, b = Tokenizer.from_gguf("a.gguf"), Tokenizer.from_gguf("b.gguf")          # doctest: +SKIP
    >>> for stretch in compare([a, b], "Hello 123"):                                # doctest: +SKIP
    ...     print(stretch.start, [[token.piece for token in row] for row in stretch.tokens])
    0 [[b'Hello'], [b'Hello']]
    5 [[b' ', b'123'], [b' ', b'1', b'2', b'3']]

    Each token has its id in its own vocabulary, its bytes, and its place in the bytes of `text`. Tokens that stand for
    no byte of it, such as a space that a model puts before it, are of the stretch that follows.
    """
    data = text.encode() if isinstance(text, str) else bytes(text)
    rows = [own_row(tok, data, add_special=False, parse_special=parse_special) for tok in tokenizers]
    cuts = set.intersection(*(_cuts(row, len(data)) for row in rows)) if rows else set()
    taken = [0] * len(rows)
    found: list[Stretch] = []
    start = 0
    for end in sorted(cuts - {0}):
        tokens: list[Row] = []
        for number, row in enumerate(rows):
            first = taken[number]
            while taken[number] < len(row) and (row[taken[number]].end <= end or end == len(data)):
                taken[number] += 1
            tokens.append(row[first : taken[number]])
        _add(found, Stretch(start, end, _are_same(tokens), tokens))
        start = end
    return found


def _cuts(row: Row, size: int) -> set[int]:
    """Where no token of the row is cut."""
    ends, reached = {0, size}, 0
    for index, token in enumerate(row):
        reached = max(reached, token.end)
        following = row[index + 1].start if index + 1 < len(row) else size
        if following >= reached:
            ends.add(reached)
    return ends


def _are_same(tokens: list[Row]) -> bool:
    return len({tuple(_place(token) for token in row if token.start < token.end) for row in tokens}) == 1


def _place(token: Placed) -> tuple[int, int]:
    return token.start, token.end


def _add(found: list[Stretch], stretch: Stretch) -> None:
    last = found[-1] if found else None
    if last is None or not (last.is_same and stretch.is_same):
        found.append(stretch)
        return
    joined = [one + other for one, other in zip(last.tokens, stretch.tokens)]
    found[-1] = Stretch(last.start, stretch.end, True, joined)
