"""Shows how several tokenizers split a text, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from ..._util.wording import counted
from ..verify.align import Row
from ..verify.side_by_side import Comparison
from . import terminal
from .answers import answer
from .compare_page import rates, result_in_words
from .drawing import ROW, beside, columns, drawn, piece, unbroken

SHOWN = 20  # stretches that differ, unless all are asked for
_WIDTH_OF_TABLE = 40  # columns from which on the numbers leave room for the names
_BAR = "│"


def compared_as_json(compared: Comparison) -> Iterator[bytes]:
    """Yield `compared.to_dict()` as JSON, stretch by stretch, with the verdict."""
    stretches = (stretch.to_dict() for stretch in compared.stretches)
    return terminal.json_parts(answer(compared.summary(), verdict=compared.verdict), "stretches", stretches)


def shown_lines(
    compared: Comparison, *, ids: bool, everything: bool, color: bool, width: int | None
) -> Iterator[str]:
    """The verdict, a line a model, and the stretches that are cut differently; with `everything`, all of them."""
    return drawn(_parts(compared, ids, everything, width or ROW), color, width)


def _parts(compared: Comparison, ids: bool, everything: bool, width: int) -> Iterator[RenderableType]:
    yield result_in_words(compared)
    names = [terminal.one_line(name) for name in compared.names]
    if width < _WIDTH_OF_TABLE:
        yield from (
            f"{name}: {counted(count, 'token')}, {rate} chars/token"
            for name, count, rate in zip(names, compared.counts, rates(compared))
        )
    else:
        rows = zip(map(str, compared.counts), rates(compared), names)
        yield columns([("tokens", "chars/token", "model"), *rows], 2)
    label = min(max(map(len, names)), max(width // 3, 8))
    stretches = compared.stretches
    for shown, stretch in enumerate(stretches if everything else stretches.only_differing()):
        if shown == SHOWN and not everything:
            yield f"\nand {stretches.differing - SHOWN} more places; --all shows them"
            return
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
    pieces = (unbroken(piece(token.piece).plain + f" ({token.id})" * ids) for token in row)
    return f"{counted(len(row), 'token')}: " + f" {_BAR} ".join(pieces)
