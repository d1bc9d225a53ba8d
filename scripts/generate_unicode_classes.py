"""Write ggufbpe/_util/unicode_classes.py: the class of every code point in llama.cpp.

llama.cpp's tables (src/unicode-data.cpp) equal the general categories of Unicode 15.1.0, outside the surrogates;
`unicodedata2` of that version carries them, whatever Python runs this.

    pip install 'ggufbpe[generate]'
    python scripts/generate_unicode_classes.py            # writes the file
    python scripts/generate_unicode_classes.py --print    # prints it
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import unicodedata2
from generated_file import write_or_print

TARGET = Path(__file__).resolve().parent.parent / "ggufbpe" / "_util" / "unicode_classes.py"

# The 25 code points of the White_Space property (PropList.txt).
WHITE_SPACE = [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)]
WHITE_SPACE += [0x2028, 0x2029, 0x202F, 0x205F, 0x3000]

HEAD = '''"""The class of every code point, and what it becomes in lower case and when it is decomposed.

llama.cpp sorts code points into letters, marks, numbers, punctuation, symbols, white space and the rest, by
Unicode {version} (src/unicode-data.cpp, src/unicode.cpp: unicode_cpt_flags_from_cpt). Neither the running
Python nor the `regex` module follows that version, so the table is our own. Decompositions and lower case are those of
the running Python: decompositions never change (Unicode's stability policy), and no code point's lower case differs
between Unicode 14 and 15.1.

Written by scripts/generate_unicode_classes.py; do not edit.
"""

import unicodedata
from bisect import bisect_right
from operator import itemgetter

UNICODE_VERSION = "{version}"
_NEW_IN_UNICODE_14 = {{  # capital letters that Python 3.10 does not know
    0x2C2F: 0x2C5F,
    **{{capital: capital + 1 for capital in (0xA7C0, 0xA7D0, 0xA7D6, 0xA7D8)}},
    **{{capital: capital + 39 for capital in range(0x10570, 0x10596)}},  # three of which are not assigned
}}


def class_of(code_point: int) -> str:
    """One of "L" letter, "M" mark, "N" number, "P" punctuation, "S" symbol, "W" white space, "-" the rest.

    >>> class_of(ord("é")), class_of(0x3000), class_of(0x1C)
    ('L', 'W', '-')
    """
    return CLASSES[bisect_right(STARTS, code_point) - 1]


def lower(code_point: int) -> int:
    """The lower case, or the code point itself (src/unicode.cpp: unicode_tolower).

    >>> lower(0x130)  # where Unicode has two code points, the first
    105
    """
    if class_of(code_point) == "-":
        return code_point
    return _NEW_IN_UNICODE_14.get(code_point) or ord(chr(code_point).lower()[0])


def decomposed(code_point: int) -> int:
    """The first code point of the canonical decomposition (src/unicode.cpp: unicode_cpts_normalize_nfd).

    >>> chr(decomposed(ord("é")))  # llama.cpp drops the accent here already
    'e'
    """
    if class_of(code_point) == "-":
        return code_point
    return ord(unicodedata.normalize("NFD", chr(code_point))[0])


def is_control(code_point: int) -> bool:
    """Whether the category is Cc, Cf, Co or Cs; code points that are not assigned have none of these.

    >>> is_control(0xAD), is_control(0x378)
    (True, False)
    """
    index = bisect_right(CONTROL, code_point, key=itemgetter(0)) - 1
    return index >= 0 and code_point <= CONTROL[index][1]

'''


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


def module_text() -> str:
    """The whole module, as in the repository."""
    runs = [(letter, next(run)) for letter, run in groupby(range(0x110000), key=class_of)]
    classes = "".join(letter for letter, _ in runs)
    lines = ["", "# fmt: off", "STARTS = (", *wrapped([hex(start) for _, start in runs]), ")"]
    lines += ["CLASSES = ("]
    lines += [f'    "{classes[i : i + 100]}"' for i in range(0, len(classes), 100)]
    lines += [")", "# The first and the last."]
    lines += ["CONTROL = (", *wrapped([f"({a:#x}, {b:#x})" for a, b, _ in runs_of(control)]), ")"]
    return HEAD.format(version=unicodedata2.unidata_version) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_or_print(__doc__, TARGET, module_text)
