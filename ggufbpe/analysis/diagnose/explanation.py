"""Defines the result of `diagnose`: explanations with their causes, and the one command proved to help."""

from __future__ import annotations

from typing import NamedTuple

from ..._util.verdicts import same_or_different
from ..._util.wording import percent
from ...gguf.change import Change, all_of
from ..doctor.proposal import Proposal
from .cause import Cause


class Explanation(NamedTuple):
    """Causes that together give the ids, or a part of them: with all `causes`, the share `explains` agrees, up to 1.

    `proposal` is the change of the model file that the causes call for, as it was tried; None if there is none, or if
    another explanation has the command.
    """

    causes: tuple[Cause, ...]
    explains: float
    proposal: Proposal | None = None

    @property
    def fix(self) -> str:
        """The one command that makes all changes to the model file; "" unless trying it has proved that it helps."""
        return self.proposal.command if self.proposal else ""

    @property
    def objection(self) -> str:
        """Why a change that the causes call for is not proposed; "" if it is, or if there is none."""
        return self.proposal.objection if self.proposal and self.proposal.change else ""

    @property
    def change(self) -> Change:
        """All changes to the model file that the causes call for, proposed or not."""
        return all_of(cause.change for cause in self.causes)

    def __repr__(self) -> str:
        return f"<Explanation {' + '.join(cause.id for cause in self.causes)}, explains {percent(self.explains)}>"


class Diagnosis(NamedTuple):
    """Whether the ids `match`, that is, are the model's own; if not, why: `explanations`, the best one first.

    At most one explanation has a command: the first whose change was proved to help. `added_as` is the meaning of "add
    special tokens" that was assumed, "llama-tokenize" or "llama_tokenize", if these differ; otherwise "".
    """

    match: bool
    explanations: tuple[Explanation, ...]
    added_as: str = ""

    @property
    def verdict(self) -> str:
        """The result in a word: "same" if the ids are the model's own, "different" if not."""
        return same_or_different(self.match)

    @property
    def fix(self) -> str:
        """The one command that makes all changes to the model file; "" if none is proposed."""
        return next((item.fix for item in self.explanations if item.fix), "")

    def to_dict(self) -> dict[str, object]:
        """All of it as `ggufbpe diagnose --json` writes it."""
        explanations = [
            {
                "causes": [cause.to_dict() for cause in item.causes],
                "explains": item.explains,
                "fix": item.fix,
                "objection": item.objection,
            }
            for item in self.explanations
        ]
        return {
            "match": self.match,
            "added_as": self.added_as or None,
            "explanations": explanations,
            "fix": self.fix,
        }

    def __repr__(self) -> str:
        best = f", {self.explanations[0]!r}" if self.explanations else ""
        return f"<Diagnosis: {'match' if self.match else 'no match'}{best}>"
