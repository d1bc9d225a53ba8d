"""Cells of what `explain` draws: pieces of texts and of vocabularies, safe for a terminal."""

from __future__ import annotations

from rich.text import Text

from ..._util.utf8 import original_bytes
from . import terminal
from .drawing import styled


def pair_cell(left: bytes, right: bytes) -> Text:
    """A pair of symbols."""
    return styled("").append_text(symbol_cell(left)).append(" + ").append_text(symbol_cell(right))


def symbol_cell(data: bytes, style: str = "") -> Text:
    """A symbol among others, with spaces that can be seen."""
    return styled(terminal.visible(data).replace(" ", "␣"), style)


def text_cell(text: str | bytes, style: str = "") -> Text:
    """Text of a user or a model, escaped."""
    return styled(terminal.visible(text if isinstance(text, bytes) else original_bytes(text)), style)


def quoted(data: str | bytes) -> Text:
    """Text in quotes, escaped."""
    return styled(terminal.in_quotes(text_cell(data).plain))


def clipped(cell: Text, width: int) -> Text:
    """The cell, cut to at most `width` columns."""
    cell.truncate(max(width, 2), overflow="ellipsis")
    return cell
