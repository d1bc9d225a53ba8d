"""The smallest text that still differs.

    a text, a question -> [this file] -> a part of the text

Delta debugging (Zeller and Hildebrandt 2002): stretches are left out, half of the text at first and single
characters in the end, then single bytes, as long as what remains still differs. Texts are asked about in
batches, for some oracles answer several in the time of one.

But: each asking may be expensive, so it ends after a number of texts or seconds, with the smallest until then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

Differ = Callable[[Sequence[bytes]], Sequence[bool]]
"""Which of several texts differ."""

ASKED, SECONDS, BATCH = 2000, 10.0, 8


class Shrinking:
    """What is left to spend on shrinking a text, or several."""

    def __init__(
        self, differ: Differ, asked: int = ASKED, seconds: float = SECONDS, batch: int = BATCH
    ) -> None:
        self._differ = differ
        self._left = asked
        self._end = time.monotonic() + seconds
        self._batch = batch

    def first_that_differs(self, texts: Iterable[bytes]) -> int | None:
        """Which of `texts` is the first that differs; None if none does, or time is up."""
        rest = iter(texts)
        number = 0
        while self._left > 0 and time.monotonic() < self._end:
            some = list(islice(rest, min(self._batch, self._left)))
            self._left -= len(some)
            answers = self._differ(some) if some else []
            for index, differs in enumerate(answers, number):
                if differs:
                    return index
            if not some:
                return None
            number += len(some)
        return None


def shrink(text: bytes, shrinking: Shrinking, hints: Sequence[bytes] = ()) -> bytes:
    """The smallest text found that differs as `text` does. `hints` are parts of it that may.

    >>> shrink(b"many words and one 1", Shrinking(lambda texts: [b"1" in text for text in texts]))
    b'1'
    """
    likely = sorted({hint for hint in hints if len(hint) < len(text)}, key=len)
    found = shrinking.first_that_differs(likely)
    text = text if found is None else likely[found]
    characters = [char.encode("utf-8", "surrogateescape") for char in text.decode("utf-8", "surrogateescape")]
    text = b"".join(_smallest(characters, shrinking))
    return b"".join(_smallest([text[index : index + 1] for index in range(len(text))], shrinking))


def _smallest(units: list[bytes], shrinking: Shrinking) -> list[bytes]:
    """The units that remain when no stretch of them can be left out."""
    size = (len(units) + 1) // 2
    while size and units:
        before = len(units)
        start = 0
        while start < len(units):
            starts = range(start, len(units), size)
            found = shrinking.first_that_differs(b"".join(units[:at] + units[at + size :]) for at in starts)
            if found is None:
                break
            start = starts[found]
            del units[start : start + size]
        if size > 1 or len(units) == before:  # single units are gone through until all of them are needed
            size //= 2
    return units
