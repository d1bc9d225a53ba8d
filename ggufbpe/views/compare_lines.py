"""A text as several tokenizers cut it: as lines for a terminal, and as JSON.

verification/side_by_side.py -> [this file] -> cli/compare.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from ..verification.align import Row
from ..verification.side_by_side import Stretch
from ..wording import counted
from . import terminal
from .drawing import beside, columns, drawn, piece, unbroken

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
    return drawn(_parts(compared, ids, everything, width), color, width)


def _parts(compared: Compared, ids: bool, everything: bool, width: int) -> Iterator[RenderableType]:
    parted = [stretch for stretch in compared.stretches if not stretch.is_same]
    size = counted(len(compared.text), "byte")
    verdict = f"cut differently in {counted(len(parted), 'place')}" if parted else "cut alike by all"
    yield f"{size}, {verdict}"
    names = [terminal.one_line(name) for name in compared.names]
    characters = len(compared.text.decode("utf-8", "replace"))
    rows = [["tokens", "chars/token", "model"]]
    for name, count in zip(names, compared.counts):
        rows.append([str(count), f"{characters / count:.2f}" if count else "-", name])
    yield columns(rows, 2)
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
        yield Text(head, "" if stretch.is_same else "bold")
        for name, row in zip(names, stretch.tokens):
            short = name if len(name) <= label else name[: label - 1] + "…"
            yield beside(f"  {short:{label}}  ", _row(row, ids))


def _row(row: Row, ids: bool) -> str:
    if not row:
        return "∅"
    pieces = (unbroken(piece(token.piece).plain + f" {token.id}" * ids) for token in row)
    return f"{counted(len(row), 'token')}: " + f" {_BAR} ".join(pieces)
