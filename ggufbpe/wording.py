"""Numbers and lists in sentences, for messages and findings. `errors.printable` has how a single text is shown."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
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


def short_names(paths: Sequence[str]) -> list[str]:
    """A short name for each file, none twice: without suffix, and with as many folders as tell them apart.

    >>> short_names(["1/x/a.gguf", "2/x/a.gguf", "b.Q4_K_M.gguf", "llama.gguf", "llama.gguf"])
    ['1/x/a', '2/x/a', 'b.Q4_K_M', 'llama', 'llama (2)']
    """
    parts = [os.path.splitext(path)[0].replace(os.sep, "/").split("/") for path in paths]
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
