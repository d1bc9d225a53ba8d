"""One text as several tokenizers cut it, side by side.

    text, tokenizers -> rows (align.py) -> [this file] -> stretches of the text -> cli/compare.py

By bytes of the text alone: an id means nothing in another vocabulary. So models of any kind can stand side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..inputs import Model, TextOrPath, text_of, tokenizers_of
from ..wording import counted
from .align import Placed, Row, own_row


class Stretch(NamedTuple):
    """`text[start:end]` with the tokens of each tokenizer. It is as short as it can be: all of them cut it there.

    `is_same` where all cut it into the same pieces; neighbouring stretches for which that is so are one.
    """

    start: int
    end: int
    is_same: bool
    tokens: list[Row]


@dataclass(frozen=True, repr=False)
class Compared:
    """What `compare` gives: the names of the models, the text, and its stretches in order."""

    names: tuple[str, ...]
    text: bytes
    stretches: tuple[Stretch, ...]

    @property
    def counts(self) -> list[int]:
        """How many tokens each model makes of the text."""
        return [sum(len(stretch.tokens[i]) for stretch in self.stretches) for i in range(len(self.names))]

    @property
    def is_same(self) -> bool:
        """Whether all models cut the text alike."""
        return all(stretch.is_same for stretch in self.stretches)

    def to_dict(self) -> dict[str, Any]:
        """All of it as `ggufbpe compare --json` writes it; a piece that is not UTF-8 has its bytes in hexadecimal."""
        return {
            "models": [{"name": name, "tokens": tokens} for name, tokens in zip(self.names, self.counts)],
            "bytes": len(self.text),
            "stretches": [
                {
                    "start": stretch.start,
                    "end": stretch.end,
                    "same": stretch.is_same,
                    "tokens": [list(map(_object, row)) for row in stretch.tokens],
                }
                for stretch in self.stretches
            ],
        }

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {counted(n, 'token')}" for name, n in zip(self.names, self.counts))
        return f"<Compared: {counted(len(self.text), 'byte')}; {counts}>"


def _object(token: Placed) -> dict[str, Any]:
    piece = token.piece.decode("utf-8", "replace")
    found = {"id": token.id, "piece": piece, "start": token.start, "end": token.end}
    return found if piece.encode() == token.piece else {**found, "bytes": token.piece.hex()}


def compare(
    models: Iterable[Model] | Mapping[str, Model], text: TextOrPath, *, parse_special: bool = True
) -> Compared:
    """A text as several models cut it: the stretches between the places where all of them cut, in order.

    `models` are of any kind, each a `Tokenizer` or the path of a file; a mapping gives them names. `text` is a `str`,
    bytes, or the `pathlib.Path` of a file. BOS and EOS are not added.

    >>> for stretch in compare(["a.gguf", "b.gguf"], "Hello 123").stretches:        # doctest: +SKIP
    ...     print(stretch.start, [[token.piece for token in row] for row in stretch.tokens])
    0 [[b'Hello'], [b'Hello']]
    5 [[b' ', b'123'], [b' ', b'1', b'2', b'3']]

    Each token has its id in its own vocabulary, its bytes, and its place in the bytes of `text`. Tokens that stand for
    no byte of it, such as a space that a model puts before it, are of the stretch that follows. `ValueError` where
    there is no model, `GGUFError` for one that cannot be used.
    """
    tokenizers, data = tokenizers_of(models), text_of(text)
    rows = [own_row(tok, data, add_special=False, parse_special=parse_special) for tok in tokenizers.values()]
    return Compared(tuple(tokenizers), data, tuple(_stretches(rows, data)))


def _stretches(rows: list[Row], data: bytes) -> list[Stretch]:
    cuts = set.intersection(*(_cuts(row, len(data)) for row in rows))
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
