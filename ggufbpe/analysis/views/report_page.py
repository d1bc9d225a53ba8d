"""Shows the result of a comparison as an HTML page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from ..._util.wording import counted, percent
from ..verify.result import DifferenceExample, ShownToken, Verification
from .chat_words import both_sides, chat_verdict, difference_title
from .html_page import rendered
from .terminal import visible_text

_TEXT_SHOWN = 2000  # bytes of a text that the page shows


def verdict(result: Verification) -> str:
    """The result in a few words.

    >>> verdict(Verification("nobody"))
    'nothing was compared'
    """
    if result.different:
        differ = "differs" if result.different == 1 else "differ"
        return f"{result.different} of {counted(result.compared, 'text')} {differ}"
    if not result.compared:
        return "nothing was compared"
    if result.compared < result.texts:
        return f"the ids of {counted(result.compared, 'text')} of {result.texts} are the same"
    of_prompts = result.chats is not None and result.chats.prompts == result.texts
    return f"the ids{' of the prompts' * of_prompts} are the same"


_TELLING = 100_000  # bytes; for fewer, the time says nothing


def rate(size: int, seconds: float) -> str:
    """Megabytes per second, for people; "" if there was too little to measure."""
    return f"{size / 1e6 / seconds:.3g} MB/s" if seconds and size >= _TELLING else ""


# ---- HTML -----------------------------------------------------------------------------------------------


def to_html(result: Verification, model: str, note: str = "") -> str:
    """The page: a summary, and each difference with both sides aligned. `NotInstalledError` without jinja2."""
    return "".join(
        rendered(
            "report.html",
            title="ggufbpe verify",
            model=model,
            note=note,
            result=result,
            verdict=verdict(result),
            chats=result.chats,
            chat_verdict=chat_verdict,
            title_of=difference_title,
            sides_of=both_sides,
            json_of=lambda body: json.dumps(body, ensure_ascii=False),
            proposal=result.proposal,
            counted=counted,
            percent=percent,
            shown_of=lambda data: visible_text(data, _TEXT_SHOWN),
            rate=rate,
            stretches_of=lambda example: list(_stretches(example)),
            goes_on=goes_on,
        )
    )


# Ours, theirs, how many of each are left out.
Sides = tuple[list[ShownToken], list[ShownToken], tuple[int, int]]


class _Stretch(NamedTuple):
    """A part of the text where both sides begin and end a token: all tokens in it differ, or none."""

    start: int  # byte
    differs: bool
    ours: list[ShownToken]
    theirs: list[ShownToken]
    left_out: tuple[int, int]  # tokens of each side


def _stretches(example: DifferenceExample) -> Iterator[_Stretch]:
    for differs, group in groupby(by_span(example), _differ):
        parts = list(group)
        for part in [[one] for one in parts] if differs else [parts]:
            ours = [token for sides in part for token in sides[0]]
            theirs = [token for sides in part for token in sides[1]]
            start = min(token.start for token in ours + theirs)
            yield _Stretch(start, differs, ours, theirs, part[0][2])


def goes_on(example: DifferenceExample) -> tuple[bool, int | None]:
    """Whether there is text before the tokens that are shown, and where the text behind them begins, if any."""
    shown = example.ours + example.theirs
    end = max((token.end for token in shown), default=0)
    before = min((token.start for token in shown), default=0) > 0
    return before, end if end < len(example.text.data) else None


def _differ(sides: Sides) -> bool:
    return any(token.differs for token in sides[0] + sides[1])


def by_span(example: DifferenceExample) -> Iterator[Sides]:
    """The tokens of both sides over the same bytes, and how many are left out; one by one where they agree."""
    for number in sorted({token.span for token in example.ours + example.theirs}):
        ours, theirs = example.in_span(number)
        if any(token.differs for token in ours + theirs):
            yield ours, theirs, example.left_out if number == example.span else (0, 0)
        else:
            yield from (([one], [other], (0, 0)) for one, other in zip(ours, theirs))
