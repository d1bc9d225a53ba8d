"""The class of every code point, and what it becomes in lower case and when it is decomposed.

llama.cpp sorts code points into letters, marks, numbers, punctuation, symbols, white space and the rest, by
Unicode 15.1.0 (src/unicode-data.cpp, src/unicode.cpp: unicode_cpt_flags_from_cpt). Neither the running Python nor the
`regex` module follows that version, so the tables are our own: scripts/generate_unicode_classes.py writes them to
unicode_classes.txt. Decompositions and lower case are those of the running Python: decompositions never change
(Unicode's stability policy), and no code point's lower case differs between Unicode 14 and 15.1.
"""

import os
import unicodedata
from bisect import bisect_right
from operator import itemgetter

_NEW_IN_UNICODE_14 = {  # capital letters that Python 3.10 does not know
    0x2C2F: 0x2C5F,
    **{capital: capital + 1 for capital in (0xA7C0, 0xA7D0, 0xA7D6, 0xA7D8)},
    **{capital: capital + 39 for capital in range(0x10570, 0x10596)},  # three of which are not assigned
}


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


def read_tables(name: str) -> list[str]:
    """Return the version of Unicode and the tables in a file beside this module: words, with a blank line between."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="ascii") as file:
        return file.read().split("\n\n")


def rows_of(table: str) -> tuple[tuple[int, ...], ...]:
    """Return a table whose words are rows.

    >>> rows_of("0,1f 7f,9f")
    ((0, 31), (127, 159))
    """
    return tuple(tuple(int(number, 16) for number in row.split(",")) for row in table.split())


UNICODE_VERSION, _starts, _classes, _control = read_tables("unicode_classes.txt")
STARTS = tuple(int(start, 16) for start in _starts.split())  # where the class is another than before
CLASSES = "".join(_classes.split())  # those from each start on
CONTROL = rows_of(_control)  # the first and the last
