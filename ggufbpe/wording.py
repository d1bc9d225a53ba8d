"""Numbers and lists in sentences, for messages and findings. `errors.printable` has how a single text is shown."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from .errors import printable

_SHOWN = 5  # of a list


def counted(number: int, one: str, many: str = "") -> str:
    """A number and what it counts; `many` where that is not `one` and an s.

    >>> counted(1, "text"), counted(2000, "text"), counted(2, "byte has", "bytes have")
    ('1 text', '2000 texts', '2 bytes have')
    """
    return f"{number} {one if number == 1 else many or one + 's'}"


def listed(items: Iterable[object], number: int, more: str = " …") -> str:
    """The first five of `number` items, texts in quotes; `more` stands for the others, with their number in it.

    >>> listed("abcdefg", 7, " and {} more")
    "'a', 'b', 'c', 'd', 'e' and 2 more"
    """
    shown = [printable(item, 40) if isinstance(item, str) else str(item) for item in islice(items, _SHOWN)]
    return ", ".join(shown) + (more.format(number - len(shown)) if number > len(shown) else "")
