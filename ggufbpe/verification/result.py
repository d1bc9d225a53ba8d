"""What a comparison gives: differences by kind, each with an example, and texts that the oracle could not take.

examine.py -> [this file] -> views/, cli/verify.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..oracles.oracle import Failure

if TYPE_CHECKING:
    from ..diagnosis.causes import Cause


class Text(NamedTuple):
    """A text to compare; `offset` is where it begins in its source, in bytes."""

    source: str
    offset: int
    data: bytes


class Shown(NamedTuple):
    """A token of a row; `span` numbers the spans, by which both rows are aligned."""

    id: int
    piece: bytes
    start: int
    end: int
    span: int
    differs: bool


class Example(NamedTuple):
    """A text that differs, with the tokens of both sides around a differing span, `text[start:end]`.

    `left_out` says how many more tokens of the span itself both sides have.
    """

    text: Text
    start: int
    end: int
    span: int
    ours: tuple[Shown, ...]
    theirs: tuple[Shown, ...]
    left_out: tuple[int, int]


class Difference:
    """Places where the two part in the same step for the same cause, as far as is known."""

    def __init__(self, kind: str, first: Example, number: int) -> None:
        self.kinds = [kind]
        self.first = first
        self.number = number  # of the text, from 0
        self.places = 0
        self.smallest: Example | None = None
        self.step = self.seen_step = ""  # the second is what the ids alone look like
        self.causes: tuple[Cause, ...] = ()
        self.explains = 0.0  # the share of ids that the causes turn into the oracle's


class FailureGroup:
    """Texts for which the oracle gave no ids, for one reason."""

    def __init__(self, failure: Failure, first: Text) -> None:
        self.kind, self.detail = failure
        self.first = first
        self.texts = 0


class Result:
    """What a comparison found."""

    def __init__(self, oracle: str) -> None:
        self.oracle = oracle
        self.texts = self.bytes = self.tokens = self.oracle_tokens = 0
        self.different = 0  # texts
        self.seconds = self.oracle_seconds = 0.0
        self.differences: list[Difference] = []
        self.failures: list[FailureGroup] = []
        self.other_places = 0  # beyond MOST_KINDS

    @property
    def refused(self) -> int:
        """Texts that the oracle cannot take; nothing is known about them."""
        return sum(group.texts for group in self.failures if group.kind == "refused")

    @property
    def failed(self) -> int:
        """Texts on which the oracle crashed, hung or gave garbage."""
        return sum(group.texts for group in self.failures) - self.refused

    @property
    def compared(self) -> int:
        return self.texts - self.refused - self.failed

    @property
    def fix(self) -> str:
        """The one command that makes all changes to the model file that the causes call for; "" for none."""
        from ..diagnosis.causes import together

        return together(cause for difference in self.differences for cause in difference.causes)

    @property
    def same(self) -> bool:
        return not self.different and not self.failed


Progress = Callable[[str, int, int], None]
"""Told what is being done, and the texts and bytes that are done."""
