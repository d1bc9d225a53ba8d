"""Write ggufbpe/_util/unicode_classes.txt: the class of every code point in llama.cpp.

llama.cpp's tables (src/unicode-data.cpp) equal the general categories of Unicode 15.1.0, outside the surrogates;
`unicodedata2` of that version carries them, whatever Python runs this.

    pip install 'ggufbpe[generate]'
    python scripts/generate_unicode_classes.py            # writes the file
    python scripts/generate_unicode_classes.py --print    # prints it
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path

import unicodedata2
from generated_file import write_or_print

TARGET = Path(__file__).resolve().parent.parent / "ggufbpe" / "_util" / "unicode_classes.txt"

# The 25 code points of the White_Space property (PropList.txt).
WHITE_SPACE = [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)]
WHITE_SPACE += [0x2028, 0x2029, 0x202F, 0x205F, 0x3000]


def class_of(code_point: int) -> str:
    """The class letter of one code point."""
    if code_point in WHITE_SPACE:
        return "W"
    category: str = unicodedata2.category(chr(code_point))
    return category[0] if category[0] in "LMNPS" else "-"


def runs_of(value_of: Callable[[int], int | None]) -> list[tuple[int, int, int]]:
    """Neighbouring code points with the same value: the first, the last and the value; those with None are left out."""
    found: list[tuple[int, int, int]] = []
    for value, run in groupby(range(0x110000), key=value_of):
        if value is not None:
            code_points = list(run)
            found.append((code_points[0], code_points[-1], value))
    return found


def control(code_point: int) -> int | None:
    """1 for the categories Cc, Cf, Co and Cs."""
    return 1 if unicodedata2.category(chr(code_point)) in ("Cc", "Cf", "Co", "Cs") else None


def wrapped(items: list[str], indent: str = "    ", width: int = 110) -> list[str]:
    """`items` with commas, as many per line as fit."""
    lines, line = [], indent
    for item in items:
        piece = item + ","
        if len(line) + len(piece) + 1 > width and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += piece + " "
    return [*lines, line.rstrip()]


def tables(*of_words: Iterable[str]) -> str:
    """A file as `read_tables` of ggufbpe/_util/unicode_classes.py reads it."""
    filled = (textwrap.fill(" ".join(words), 110, break_on_hyphens=False) for words in of_words)
    return "\n\n".join([unicodedata2.unidata_version, *filled]) + "\n"


def row(*numbers: int) -> str:
    """A row of a table, as `rows_of` reads it."""
    return ",".join(f"{number:x}" for number in numbers)


def module_text() -> str:
    """The whole file, as in the repository."""
    runs = [(letter, next(run)) for letter, run in groupby(range(0x110000), key=class_of)]
    classes = "".join(letter for letter, _ in runs)
    lines_of_classes = [classes[start : start + 100] for start in range(0, len(classes), 100)]
    control_runs = [row(first, last) for first, last, _ in runs_of(control)]
    return tables([f"{start:x}" for _, start in runs], lines_of_classes, control_runs)


if __name__ == "__main__":
    write_or_print(__doc__, TARGET, module_text)
