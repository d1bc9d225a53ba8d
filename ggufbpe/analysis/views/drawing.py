"""Turns rich's output into lines for a terminal or a pipe.

Text has been made safe by terminal.py. Right-to-left text is isolated in this module, line by line, so that it does
not reorder its neighbours. Importing rich takes 50 ms: a command imports this module only when it draws.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from . import terminal

ROW = 100  # columns that a row of tokens fills in anything but a terminal
_UNBROKEN = 1 << 20  # columns of sentences and tables there: its readers want whole lines
_PIECE_WIDTH = 28  # columns of a token in a row
_QUOTED_SPACE = re.compile(r"""(?<![^\s(\[])['"] +(?=\S)""")
_NO_BREAK = "\ue000"  # stands for a space where no line may break; it is not printable, so not in safe text


def drawn(parts: Iterable[RenderableType], color: bool, width: int | None) -> Iterator[str]:
    """The lines of each part, in `width` columns; None for no limit. A `Text` that may not wrap is never cut."""
    console = Console(
        file=io.StringIO(),
        width=width or _UNBROKEN,
        height=25,
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    for part in parts:
        if isinstance(part, Text) and part.no_wrap:
            yield terminal.isolated(_whole(part, console, color).replace(_NO_BREAK, " "))
            continue
        with console.capture() as capture:
            console.print(part, crop=False)
        text = capture.get().replace(_NO_BREAK, " ")
        for line in text[:-1].split("\n"):
            # rich pads the cells of a table; a line of text keeps its end
            yield terminal.isolated(line if isinstance(part, Text) else line.rstrip(" "))


def _whole(line: Text, console: Console, color: bool) -> str:
    """A line that is never broken, several times faster than `Console.print`: views of long texts have many."""
    if not color:
        return line.plain
    return "".join(
        style.render(text, color_system=ColorSystem.STANDARD) if style else text
        for text, style, _ in line.render(console)
    )


def styled(text: str, style: str = "") -> Text:
    """Text on one line, whose style does not extend to appended text or to the blanks beside it."""
    return Text(no_wrap=True).append(text, style)


def uncut(text: str) -> Text:
    """A line that is never broken, so that it can be copied, or found in a pipe."""
    return Text(text, no_wrap=True, overflow="ignore")


def paragraph(text: str, columns: int, style: str = "") -> RenderableType:
    """A text of several lines, indented by `columns`."""
    return indented(Text(_unbroken_quotes(text), style), columns)


def _unbroken_quotes(text: str) -> str:
    """`text` in which no line breaks before " world" within its quotes, as that would hide the space."""
    return _QUOTED_SPACE.sub(lambda match: match[0].replace(" ", _NO_BREAK), text)


def indented(part: RenderableType, columns: int) -> RenderableType:
    """A paragraph or a table whose lines all begin in one column."""
    return Padding(part, (0, 0, 0, columns), expand=False)


def beside(label: str | Text, text: str | Text, column: int | None = None) -> Table:
    """A paragraph beside its label: all lines begin in `column`, if given, or after the label."""
    grid = Table.grid()
    grid.add_column(no_wrap=True, width=column)
    grid.add_column(overflow="fold")
    grid.add_row(
        label if isinstance(label, Text) else Text(label),
        Text(_unbroken_quotes(text)) if isinstance(text, str) else text,
    )
    return grid


def columns(rows: Iterable[Iterable[str | Text]], numbers: int = 0) -> Table:
    """A table without rules: `numbers` columns aligned right, then others, which wrap if they must."""
    cells = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    grid = Table.grid(padding=(0, 2, 0, 0))
    count = len(cells[0])
    for at in range(count):
        grid.add_column(justify="right" if at < numbers else "left", no_wrap=at < numbers, overflow="fold")
    for row in cells:
        grid.add_row(*row)
    return grid


def unbroken(text: str) -> str:
    """`text` as one word: it is not broken unless it is wider than a line."""
    return text.replace(" ", _NO_BREAK)


def pattern_lines(pattern: str, width: int | None) -> str:
    r"""A pattern in lines of `width` columns that end after a "|" if possible; all its spaces are kept.

    >>> pattern_lines(r"abcd|efgh|ijkl", 12)
    'abcd|efgh|\nijkl'
    """
    if width is None:
        return pattern
    width = max(width, 10)
    lines = [""]
    for part in re.findall(r"[^|]*\||[^|]+", pattern):
        if lines[-1] and cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
        while cell_len(lines[-1]) > width:
            cut = lines[-1].rfind("\\", 1, width)  # so that \u4e00 stays whole
            cut = cut if cut > width // 3 else width
            lines[-1:] = [lines[-1][:cut], lines[-1][cut:]]
    return "\n".join(lines)


def piece(data: bytes, style: str = "") -> Text:
    """A token for a row: safe, spaces visible, not too long."""
    shown = styled(terminal.visible(data).replace(" ", "␣") or "∅", style)
    shown.truncate(_PIECE_WIDTH, overflow="ellipsis")
    return shown
