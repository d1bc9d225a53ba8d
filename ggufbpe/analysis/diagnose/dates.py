"""Finds dates in a text and leaves them out, in the formats in which templates write today's date."""

from __future__ import annotations

import re
from datetime import datetime

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_LONG_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATES = tuple(
    (re.compile(rf"\b{pattern}\b"), form)
    for pattern, form in (
        (r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}", "%Y-%m-%d %H:%M:%S"),
        (r"\d{4}-\d{2}-\d{2}", "%Y-%m-%d"),
        (rf"\d{{1,2}} {_MONTH} \d{{4}}", "%d %b %Y"),
        (rf"{_MONTH} \d{{1,2}},? \d{{4}}", "%b %d %Y"),
        (rf"\d{{1,2}} {_LONG_MONTH} \d{{4}}", "%d %B %Y"),
        (rf"{_LONG_MONTH} \d{{1,2}},? \d{{4}}", "%B %d %Y"),
        (r"\d{4}/\d{2}/\d{2}", "%Y/%m/%d"),
        (r"\d{2}/\d{2}/\d{4}", "%d/%m/%Y"),
        (r"\d{2}/\d{2}/\d{4}", "%m/%d/%Y"),
    )
)
_MOST_DATES = 4


def dates_in(text: str) -> list[datetime]:
    """The first few dates in a text, in order.

    >>> dates_in("Knowledge: December 2023. Today: 26 Jul 2024")
    [datetime.datetime(2024, 7, 26, 0, 0)]
    """
    found: dict[datetime, int] = {}
    for pattern, form in _DATES:
        for match in pattern.finditer(text):
            try:
                moment = datetime.strptime(match[0].replace(",", ""), form)
            except ValueError:  # the 31st of February
                continue
            found.setdefault(moment, match.start())
    return sorted(found, key=lambda moment: found[moment])[:_MOST_DATES]


def without_dates(text: bytes) -> bytes:
    """A text without its dates.

    >>> without_dates(b"Today: 26 Jul 2024.")
    b'Today: .'
    """
    written = text.decode("utf-8", "surrogateescape")
    for pattern, _ in _DATES:
        written = pattern.sub("", written)
    return written.encode("utf-8", "surrogateescape")
