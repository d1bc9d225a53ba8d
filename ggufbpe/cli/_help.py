"""Formats the help texts of all commands, which are in help/: a description, and below the flags the examples."""

from __future__ import annotations

import argparse
import os
import re
from typing import Any

from . import _output

_LABEL = r" +\S.*?  +"  # the first column of a list


def help_texts(command: str) -> tuple[str, str]:
    """Return the text above the flags of a command, and the one below them, which begins with examples."""
    path = os.path.join(os.path.dirname(__file__), "help", f"{command}.txt")
    with open(path, encoding="utf-8") as file:
        description, heading, examples = file.read().partition("\n\nexamples:\n")
    return description, (heading + examples).strip()


class HelpFormatter(argparse.HelpFormatter):
    """Help as wide as the terminal; paragraphs and the second columns of lists are filled, examples never broken."""

    def __init__(self, prog: str, **others: Any) -> None:
        # argparse would import shutil, and with it four compression modules, to learn the width
        width = min(_output.terminal_width() or 80, 100) - 2
        super().__init__(prog, max_help_position=min(24, max(width // 3, 8)), width=width, **others)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        import textwrap

        def filled(paragraph: str) -> str:
            if paragraph.startswith("examples:"):
                return paragraph
            if "\n " in paragraph:
                return "\n".join(map(entry, paragraph.split("\n")))
            return textwrap.fill(paragraph, width, break_on_hyphens=False)

        def entry(line: str) -> str:
            """A line of a list: its second column is filled there, lines of one column are never broken."""
            label = re.match(_LABEL, line)
            if label is None or len(line) <= width:
                return line
            rest, column = line[label.end() :], " " * label.end()
            return textwrap.fill(
                rest, width, initial_indent=label[0], subsequent_indent=column, break_on_hyphens=False
            )

        return "\n\n".join(map(filled, text.split("\n\n")))
