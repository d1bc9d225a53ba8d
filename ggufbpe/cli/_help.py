"""The form of help texts.

_arguments.Parser -> [this file] -> `ggufbpe help COMMAND`
"""

from __future__ import annotations

import argparse
import re
from typing import Any

from . import _output

# A line of a list: a name and, at least two columns behind it, what it is.
_ITEM = re.compile(r"( +\S+(?: \S+)* {2,})\S")


class HelpFormatter(argparse.HelpFormatter):
    """Help as wide as the terminal: paragraphs and the lines of lists are filled, commands stay as they are."""

    def __init__(
        self,
        prog: str,
        indent_increment: int = 2,
        max_help_position: int = 24,
        width: int | None = None,
        **others: Any,
    ) -> None:
        # argparse would import shutil, and with it four compression modules, to learn the width
        width = min(_output.terminal_width() or 80, 100) - 2 if width is None else width
        position = min(max_help_position, max(width // 3, 8))
        super().__init__(prog, indent_increment, position, width, **others)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        import textwrap

        def filled(line: str) -> str:
            item = _ITEM.match(line)
            return textwrap.fill(line, width, subsequent_indent=" " * item.end(1) if item else "")

        def arranged(paragraph: str) -> str:
            if "\n " not in paragraph:
                return textwrap.fill(paragraph, width)
            if paragraph.startswith("examples:"):
                return paragraph
            return "\n".join(map(filled, paragraph.split("\n")))

        return "\n\n".join(map(arranged, text.split("\n\n")))
