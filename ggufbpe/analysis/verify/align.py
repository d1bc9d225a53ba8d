"""Aligns two rows of tokens of one text by byte offset.

A row is a list of tokens in order, each with the bytes of the text that it covers. Ours come with offsets (`own_row`);
ids from elsewhere are matched to the text by their pieces (`place`). An id that does not match, since it is from
another text or another vocabulary, shares a stretch of the text with its neighbours.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..._util import utf8
from ..._util.utf8 import Offsets, char_ends
from ...tokenizer import Tokenizer

# How far ahead ids that no longer match the text are searched for a place where they do again.
_LOOK_AHEAD = 24  # tokens
_LOOK_ACROSS = 512  # bytes
_SURE = 3  # tokens in a row that must match


class Placed(NamedTuple):
    """A token's `id`, its bytes (`piece`) and its place, `text[start:end]`; empty if it covers no text, like BOS."""

    id: int
    piece: bytes
    start: int
    end: int

    def to_dict(self) -> dict[str, Any]:
        """The token as `ggufbpe compare --json` writes it; a piece that is not UTF-8 also has hexadecimal bytes."""
        piece = self.piece.decode("utf-8", "replace")
        row = {"id": self.id, "piece": piece, "start": self.start, "end": self.end}
        return row if piece.encode() == self.piece else {**row, "bytes": self.piece.hex()}


Row = list[Placed]


class Span(NamedTuple):
    """`text[start:end]` with the tokens of both rows: `left` and `right` are slices (a, b) of them."""

    start: int
    end: int
    left: tuple[int, int]
    right: tuple[int, int]
    same: bool


def align(left: Row, right: Row) -> list[Span]:
    """The spans of two rows, in order; together they cover all tokens of both.

    A differing span is as short as possible: from a place where both rows begin a token to the next such place.
    Neighbouring tokens that are the same are one span.

    >>> one = [Placed(1, b"ab", 0, 2), Placed(2, b"c", 2, 3)]
    >>> two = [Placed(3, b"a", 0, 1), Placed(4, b"b", 1, 2), Placed(2, b"c", 2, 3)]
    >>> [(span.start, span.end, span.same) for span in align(one, two)]
    [(0, 2, False), (2, 3, True)]
    """
    end = max((token.end for row in (left, right) for token in row[-1:]), default=0)
    cuts, others = _cuts(left, end), _cuts(right, end)
    ids, other_ids = ([token.id for token in row] for row in (left, right))
    spans: list[Span] = []

    def add(start: int, stop: int, a: tuple[int, int], b: tuple[int, int]) -> None:
        same = ids[a[0] : a[1]] == other_ids[b[0] : b[1]]
        last = spans[-1] if spans else None
        if last is not None and same and last.same:
            spans[-1] = Span(last.start, stop, (last.left[0], a[1]), (last.right[0], b[1]), True)
        elif a[0] < a[1] or b[0] < b[1]:
            spans.append(Span(start, stop, a, b, same))

    before = (0, 0, 0)
    for position in sorted(cuts.keys() & others.keys()):
        a, b = cuts[position], others[position]
        add(before[0], position, (before[1], a[0]), (before[2], b[0]))
        if a[0] < a[1] or b[0] < b[1]:
            add(position, position, a, b)
        before = (position, a[1], b[1])
    return spans


def _cuts(row: Row, end: int) -> dict[int, tuple[int, int]]:
    """The positions that cut no token: (how many tokens end there, how many including empty ones there)."""
    cuts: dict[int, tuple[int, int]] = {0: (0, 0)}
    reached = 0
    followings = [token.start for token in row[1:]] + [end]
    for index, (_, _, start, stop) in enumerate(row):
        if start > reached:  # behind bytes that no token covers
            cuts[start] = (index, index)
            reached = start
        is_further = stop > reached
        if is_further:
            reached = stop
        if followings[index] >= reached:
            first = index + 1 if is_further else cuts.get(reached, (index + 1, index + 1))[0]
            cuts[reached] = (first, index + 1)
    cuts.setdefault(end, (len(row), len(row)))
    return cuts


def own_row(tokenizer: Tokenizer, text: bytes, *, add_special: bool, parse_special: bool) -> Row:
    """The row of `Tokenizer.encode`."""
    ids, spans = tokenizer.encode_with_offsets(text, add_special=add_special, parse_special=parse_special)
    pieces = {token: piece_or_nothing(tokenizer, token) for token in set(ids)}
    return [Placed(token, pieces[token], start, end) for token, (start, end) in zip(ids, spans)]


def place(tokenizer: Tokenizer, text: bytes, ids: Sequence[int], like: Row) -> Row:
    """The row of ids from elsewhere, matched to `text` by the pieces that `tokenizer` has for them.

    `like` is the row to compare with: tokens that are the same in both get the same places. An id that is out of
    range has an empty piece. Where the pieces do not match the text, the ids up to where they match again share that
    stretch of the text.
    """
    pieces_by_id = {token: piece_or_nothing(tokenizer, token) for token in set(ids)}
    pieces = [pieces_by_id[token] for token in ids]
    ours, theirs = (_run_of(tokenizer.bos_id, row) for row in ([token.id for token in like], ids))
    row: Row = []
    skipped = 0
    if theirs > ours:  # one BOS more than we have, whatever the text begins with
        row = [Placed(ids[0], pieces[0], 0, 0)]
    elif theirs < ours and like[0].end == 0:
        skipped = 1
    return row + _Placing(text, like[skipped:]).places(ids[len(row) :], pieces[len(row) :])


def piece_or_nothing(tokenizer: Tokenizer, token: int) -> bytes:
    """The piece of a token; empty for an id out of range, such as the -1 of models without an unknown token."""
    return tokenizer.token_to_piece(token) if 0 <= token < tokenizer.vocab_size else b""


def _run_of(token: int | None, ids: Sequence[int]) -> int:
    """How many ids at the beginning are `token`."""
    return next((index for index, other in enumerate(ids) if other != token), len(ids))


class _Placing:
    """Walks along a text; `_at` is where the next token is expected, in bytes of the text as pieces have it.

    Those differ from the bytes of the text where it is not UTF-8.
    """

    def __init__(self, text: bytes, like: Row) -> None:
        decoded = utf8.decode(text)
        self._written = decoded.encode("utf-8", "surrogatepass")
        self._same = self._written == text
        if not self._same:
            self._bounds = [0, *utf8.char_ends(text)]
            self._written_bounds = [0, *char_ends(decoded)]
            self._offsets = Offsets(decoded, self._bounds)
        self._at = 0
        self._like = like
        self._next = 0  # the token of `like` that may come next
        self._follows = True  # whether the one before it came, so that it is certainly next

    def places(self, ids: Sequence[int], pieces: Sequence[bytes]) -> Row:
        row: Row = []
        while len(row) < len(ids):
            index = len(row)
            token = self._of_like(ids[index])
            fits = self._written.startswith(pieces[index], self._at)
            if token is not None:
                row.append(token)
                self._at = (
                    self._at + len(pieces[index]) if fits else max(self._at, self._to_written(token.end))
                )
                continue
            following, reached = index + 1, self._at + len(pieces[index])
            if not fits or not pieces[index]:
                following, reached = self._fits_again(pieces, index)
            start, end = self._from_written(self._at, reached)
            row += [Placed(ids[at], pieces[at], start, end) for at in range(index, following)]
            self._at = reached
        return row

    def _of_like(self, token: int) -> Placed | None:
        """The token of the other row at this place, if it is the same."""
        like, position = self._like, self._from_written(self._at, self._at)[0]
        if not self._follows:
            while self._next < len(like) and like[self._next].start < position:
                self._next += 1
            free = self._next == 0 or like[self._next - 1].end <= position
        if self._next < len(like) and like[self._next].id == token and (self._follows or free):
            self._next += 1
            self._follows = True
            return like[self._next - 1]
        self._follows = False
        return None

    def _fits_again(self, pieces: Sequence[bytes], index: int) -> tuple[int, int]:
        """The next piece that matches, and where; the end of both if none does."""
        best: tuple[int, int, int] | None = None
        skipped = 0
        for candidate in range(index, min(index + _LOOK_AHEAD, len(pieces))):
            some = b"".join(pieces[candidate : candidate + _SURE])
            limit = self._at + _LOOK_ACROSS + len(some)
            position = self._written.find(some, self._at, limit) if pieces[candidate] else -1
            if position >= 0 and (best is None or position - self._at + skipped < best[0]):
                best = (position - self._at + skipped, candidate, position)
            skipped += max(len(pieces[candidate]), 1)
        return (len(pieces), len(self._written)) if best is None else best[1:]

    def _to_written(self, position: int) -> int:
        if self._same:
            return position
        index = bisect_right(self._bounds, position) - 1
        return self._written_bounds[index] + position - self._bounds[index]

    def _from_written(self, start: int, end: int) -> tuple[int, int]:
        if self._same:
            return start, end
        first = self._offsets.start(start)
        return first, first if start == end else self._offsets.end(end)
