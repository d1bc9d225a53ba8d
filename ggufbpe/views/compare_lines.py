"""A text as several tokenizers cut it: as lines for a terminal, and as JSON.

verification/side_by_side.py -> [this file] -> cli/compare.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..verification.align import Row
from ..verification.side_by_side import Stretch
from ..wording import counted
from . import terminal

SHOWN = 20  # stretches that differ, unless all are asked for
_BAR = "│"


class Compared(NamedTuple):
    """What there is to show: the names of the models, the text, and its stretches."""

    names: Sequence[str]
    text: bytes
    stretches: Sequence[Stretch]

    @property
    def counts(self) -> list[int]:
        """How many tokens each model makes of the text."""
        return [sum(len(stretch.tokens[i]) for stretch in self.stretches) for i in range(len(self.names))]


def to_json(compared: Compared) -> dict[str, Any]:
    """All of it; a piece that is not UTF-8 has its bytes in hexadecimal beside."""
    return {
        "models": [{"name": name, "tokens": tokens} for name, tokens in zip(compared.names, compared.counts)],
        "bytes": len(compared.text),
        "stretches": [
            {
                "start": stretch.start,
                "end": stretch.end,
                "same": stretch.is_same,
                "tokens": [list(map(_object, row)) for row in stretch.tokens],
            }
            for stretch in compared.stretches
        ],
    }


def _object(token: Any) -> dict[str, Any]:
    piece = token.piece.decode("utf-8", "replace")
    found = {"id": token.id, "piece": piece, "start": token.start, "end": token.end}
    return found if piece.encode() == token.piece else {**found, "bytes": token.piece.hex()}


def shown_lines(compared: Compared, *, ids: bool, everything: bool, color: bool, width: int) -> Iterator[str]:
    """The verdict, a line a model, and the stretches that are cut differently; with `everything`, all of them."""
    parted = [stretch for stretch in compared.stretches if not stretch.is_same]
    size = counted(len(compared.text), "byte")
    verdict = f"cut differently in {counted(len(parted), 'place')}" if parted else "cut alike by all"
    yield f"{size}, {verdict}"
    characters = len(compared.text.decode("utf-8", "replace"))
    digits = max(6, *(len(str(count)) for count in compared.counts))
    yield f"{'tokens':>{digits}}  chars/token  model"
    for name, count in zip(compared.names, compared.counts):
        ratio = f"{characters / count:.2f}" if count else "-"
        yield f"{count:>{digits}}  {ratio:>11}  {terminal.safe_line(name)}"
    names = [terminal.one_line(name) for name in compared.names]
    label = min(max(map(len, names)), max(width // 3, 8))
    shown = 0
    for stretch in compared.stretches:
        if stretch.is_same and not everything:
            continue
        if shown == SHOWN and not everything:
            yield f"\nand {len(parted) - SHOWN} more places; --all shows them"
            return
        shown += 1
        data = compared.text[stretch.start : stretch.end]
        head = f"byte {stretch.start}: {terminal.shown_text(data, max(width - 20, 20))}"
        yield ""
        yield f"{terminal.BOLD}{head}{terminal.RESET}" if color and not stretch.is_same else head
        for name, row in zip(names, stretch.tokens):
            start = f"  {name if len(name) <= label else name[: label - 1] + '…':{label}}  "
            yield start + terminal.wrapped(_row(row, ids), width, len(start), start=len(start))


def _row(row: Row, ids: bool) -> str:
    if not row:
        return "∅"
    pieces = (terminal.shown_piece(token.piece)[0] + f" {token.id}" * ids for token in row)
    return f"{counted(len(row), 'token')}: " + f" {_BAR} ".join(pieces)
