"""Formats numbers and lists in sentences, for messages and findings. `errors.printable` formats a single text."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TypeVar

from .errors import printable

T = TypeVar("T")

_SHOWN = 5  # of a list
_BACKSLASHES_OR_BYTE = r"\\\\|\\udc(?=[89a-f][0-9a-f])"  # in what repr makes of a text


def quoted_piece(piece: bytes, limit: int = 40) -> str:
    r"""The bytes of a token quoted as `printable` quotes a text; those that are not UTF-8 are escaped.

    >>> quoted_piece(" 者".encode() + b"\xe8\x00")
    "' 者\\xe8\\x00'"
    """
    shown = printable(piece.decode("utf-8", "surrogateescape"), limit)
    return re.sub(_BACKSLASHES_OR_BYTE, lambda match: match[0] if match[0] == r"\\" else r"\x", shown)


def counted(number: int, one: str, many: str = "") -> str:
    """A number and what it counts; `many` where that is not `one` and an s.

    >>> counted(1, "text"), counted(2000, "text"), counted(2, "byte has", "bytes have")
    ('1 text', '2000 texts', '2 bytes have')
    """
    return f"{number} {one if number == 1 else many or one + 's'}"


def percent(share: float) -> str:
    """A share of 0 to 1 in percent; less than all is never 100%.

    >>> percent(127964 / 128000), percent(1)
    ('99.9%', '100.0%')
    """
    return f"{min(share, 0.999) if share < 1 else share:.1%}"


def in_bytes(number: int) -> str:
    """A number of bytes in the unit that programs show models' sizes in: thousands, not 1024s.

    >>> in_bytes(812), in_bytes(2019377376), in_bytes(404_600_000_000)
    ('812 B', '2.0 GB', '404.6 GB')
    """
    size, units = float(number), iter(("B", "kB", "MB", "GB"))
    unit = next(units)
    while size >= 999.95 and (larger := next(units, None)):
        size, unit = size / 1000, larger
    return f"{number} B" if unit == "B" else f"{size:.1f} {unit}"


def _quoted(item: object) -> str:
    return printable(item, 40) if isinstance(item, str) else str(item)


def listed(items: Iterable[T], number: int, more: str = " …", shown: Callable[[T], str] = _quoted) -> str:
    """The first five of `number` items, texts in quotes; `more` stands for the others, with their number in it.

    >>> listed("abcdefg", 7, " and {} more")
    "'a', 'b', 'c', 'd', 'e' and 2 more"
    """
    some = list(map(shown, islice(items, _SHOWN)))
    return ", ".join(some) + (more.format(number - len(some)) if number > len(some) else "")


def short_names(paths: Sequence[str]) -> list[str]:
    """A short name for each file, none twice: without ".gguf", and with as many folders as tell them apart.

    >>> short_names(["1/x/a.gguf", "2/x/a.gguf", "b.Q4_K_M.gguf", "llama.gguf", "llama.gguf"])
    ['1/x/a', '2/x/a', 'b.Q4_K_M', 'llama', 'llama (2)']
    """
    parts = [path.removesuffix(".gguf").replace(os.sep, "/").split("/") for path in paths]
    depths = [1] * len(paths)
    for _ in range(max(map(len, parts), default=0)):
        names = ["/".join(part[-depth:]) for part, depth in zip(parts, depths)]
        same = Counter(names)
        depths = [depth + (same[name] > 1) for depth, name in zip(depths, names)]
    names = ["/".join(part[-depth:]) for part, depth in zip(parts, depths)]
    times: Counter[str] = Counter()
    for index, name in enumerate(names):
        times[name] += 1
        if times[name] > 1:
            names[index] = f"{name} ({times[name]})"
    return names
