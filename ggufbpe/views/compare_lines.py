"""A text as several tokenizers cut it, as lines for a terminal.

verification/side_by_side.py -> [this file] -> cli/compare.py
"""

from __future__ import annotations

from collections.abc import Iterator

from ..verification.align import Row
from ..verification.side_by_side import Compared
from ..wording import counted
from . import terminal

SHOWN = 20  # stretches that differ, unless all are asked for
_BAR = "│"


def compared_as_json(compared: Compared) -> Iterator[bytes]:
    """`compared.to_dict()` as JSON, stretch by stretch."""
    stretches = (stretch.to_dict() for stretch in compared.stretches)
    return terminal.json_parts(compared.summary(), "stretches", stretches)


def shown_lines(compared: Compared, *, ids: bool, everything: bool, color: bool, width: int) -> Iterator[str]:
    """The verdict, a line a model, and the stretches that are cut differently; with `everything`, all of them."""
    parted = compared.stretches.differing
    size = counted(len(compared.text), "byte")
    verdict = f"cut differently in {counted(parted, 'place')}" if parted else "cut alike by all"
    yield f"{size}, {verdict}"
    characters = len(compared.text.decode("utf-8", "replace"))
    digits = max(6, *(len(str(count)) for count in compared.stretches.counts))
    yield f"{'tokens':>{digits}}  chars/token  model"
    for name, count in zip(compared.names, compared.stretches.counts):
        ratio = f"{characters / count:.2f}" if count else "-"
        yield f"{count:>{digits}}  {ratio:>11}  {terminal.safe_line(name)}"
    names = [terminal.one_line(name) for name in compared.names]
    label = min(max(map(len, names)), max(width // 3, 8))
    stretches = compared.stretches
    for shown, stretch in enumerate(stretches if everything else stretches.only_differing()):
        if shown == SHOWN and not everything:
            yield f"\nand {parted - SHOWN} more places; --all shows them"
            return
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
