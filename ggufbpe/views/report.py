"""The result of a comparison as JSON and as an HTML page.

verify.py: Result -> [this file], templates/report.html -> cli/verify.py
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from ..verification.result import Difference, Example, Result, Shown, Text
from ..wording import counted
from .page import rendered
from .terminal import visible_text

_TEXT_SHOWN = 2000  # bytes of a text that the page shows


def verdict(result: Result) -> str:
    """The result in a few words.

    >>> verdict(Result("nobody"))
    'nothing was compared'
    """
    if result.different:
        differ = "differs" if result.different == 1 else "differ"
        return f"{result.different} of {counted(result.compared, 'text')} {differ}"
    if not result.compared:
        return "nothing was compared"
    if result.compared < result.texts:
        return f"the ids of {counted(result.compared, 'text')} of {result.texts} are the same"
    return "the ids are the same"


def all_fixes(result: Result) -> str:
    """The one command that makes all changes to the model file, where the causes have several; else ""."""
    fixes = {cause.fix for difference in result.differences for cause in difference.causes}
    return result.fix if sum("ggufbpe fix " in fix for fix in fixes) > 1 else ""


# ---- JSON -----------------------------------------------------------------------------------------------


def to_json(result: Result, model: str, note: str = "") -> dict[str, Any]:
    """`result` as dictionaries and lists. Bytes are text, with `…_bytes` in hexadecimal beside what is not UTF-8."""
    return {
        "model": model,
        "oracle": result.oracle,
        "note": note or None,
        "same": result.same,
        "texts": result.texts,
        "bytes": result.bytes,
        "different_texts": result.different,
        "failed_texts": result.failed,
        "refused_texts": result.refused,
        "tokens": {"ggufbpe": result.tokens, "oracle": result.oracle_tokens},
        "seconds": {"ggufbpe": round(result.seconds, 6), "oracle": round(result.oracle_seconds, 6)},
        "mb_per_second": {
            "ggufbpe": _rate(result.bytes, result.seconds),
            "oracle": _rate(result.bytes, result.oracle_seconds),
        },
        "differences": [_difference(difference) for difference in result.differences],
        "fix": result.fix,
        "other_places": result.other_places,
        "failures": [
            {"kind": group.kind, "detail": group.detail, "texts": group.texts, "first": _text(group.first)}
            for group in result.failures
        ],
    }


def _rate(size: int, seconds: float) -> float | None:
    return round(size / 1e6 / seconds, 6) if seconds else None


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "step": difference.step,
        "places": difference.places,
        "kinds": difference.kinds,
        "causes": [cause._asdict() for cause in difference.causes],
        "explains": difference.explains,
        "first": _example(difference.first),
        "smallest": None if difference.smallest is None else _example(difference.smallest),
    }


def _example(example: Example) -> dict[str, Any]:
    return {
        **_text(example.text),
        "start": example.start,
        "end": example.end,
        "left_out": {"ours": example.left_out[0], "theirs": example.left_out[1]},
        "ours": [_token(shown) for shown in example.ours],
        "theirs": [_token(shown) for shown in example.theirs],
    }


def _text(text: Text) -> dict[str, Any]:
    place = {"source": text.source, "offset": text.offset} if text.source else {}
    return {**place, **_bytes("text", text.data)}


def _token(shown: Shown) -> dict[str, Any]:
    found = shown._asdict()
    del found["piece"], found["span"]
    return {"id": found.pop("id"), **_bytes("piece", shown.piece), **found}


def _bytes(name: str, data: bytes) -> dict[str, str]:
    text = data.decode("utf-8", "replace")
    return {name: text} if text.encode() == data else {name: text, f"{name}_bytes": data.hex()}


# ---- HTML -----------------------------------------------------------------------------------------------


def to_html(result: Result, model: str, note: str = "") -> str:
    """The page: a summary, and what differs with both sides, token over token. `NotInstalledError` without jinja2."""
    return "".join(
        rendered(
            "report.html",
            title="ggufbpe verify",
            model=model,
            note=note,
            result=result,
            verdict=verdict(result),
            fix=all_fixes(result),
            counted=counted,
            shown_of=lambda data: visible_text(data, _TEXT_SHOWN),
            speed_of=lambda seconds: f"{result.bytes / 1e6 / seconds:.3g} MB/s" if seconds else "-",
            stretches_of=lambda example: list(_stretches(example)),
        )
    )


Sides = tuple[list[Shown], list[Shown], tuple[int, int]]  # ours, theirs, how many of each are left out


class _Stretch(NamedTuple):
    """A part of the text where both sides begin and end a token: all tokens in it differ, or none."""

    start: int  # byte
    differs: bool
    ours: list[Shown]
    theirs: list[Shown]
    left_out: tuple[int, int]  # tokens of each side


def _stretches(example: Example) -> Iterator[_Stretch]:
    for differs, group in groupby(by_span(example), _differ):
        parts = list(group)
        for part in [[one] for one in parts] if differs else [parts]:
            ours = [token for sides in part for token in sides[0]]
            theirs = [token for sides in part for token in sides[1]]
            start = min(token.start for token in ours + theirs)
            yield _Stretch(start, differs, ours, theirs, part[0][2])


def _differ(sides: Sides) -> bool:
    return any(token.differs for token in sides[0] + sides[1])


def by_span(example: Example) -> Iterator[Sides]:
    """The tokens of both sides that stand over each other, and how many are left out; one by one where they agree."""
    for number in sorted({token.span for token in example.ours + example.theirs}):
        ours, theirs = (
            [token for token in row if token.span == number] for row in (example.ours, example.theirs)
        )
        if any(token.differs for token in ours + theirs):
            yield ours, theirs, example.left_out if number == example.span else (0, 0)
        else:
            yield from (([one], [other], (0, 0)) for one, other in zip(ours, theirs))
