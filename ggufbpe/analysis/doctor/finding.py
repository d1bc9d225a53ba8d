"""What doctor reports: one finding per defect, with its place and what to do about it.

An *error* makes llama.cpp refuse the file or abort, or is a value that cannot be intended; a *warning* most likely
changes ids from those in training, or makes answers or training worse; a *note* is good to know. Sound models have no
errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._util.errors import printable
from ..._util.verdicts import HEALTHY
from ..._util.wording import counted

if TYPE_CHECKING:
    from .proposal import Proposal

SEVERITIES = ("error", "warning", "note")


class Where(NamedTuple):
    """The place of a finding. What does not apply is None.

    `key` is a metadata key, `token` an id, and `offset` a byte of the file; `line` and `column` are those of the chat
    template, counted from 1.
    """

    key: str | None = None
    token: int | None = None
    offset: int | None = None
    line: int | None = None
    column: int | None = None


class Finding(NamedTuple):
    """One thing that is wrong or suspicious: `what` is one plain sentence, and `evidence` what shows it.

    `severity` is "error", "warning" or "note", and `id` names the kind of finding for programs. `why` says why it
    matters, `fix` what to do, often a command, and `where` the place. `detail` has numbers and examples for programs,
    if any.
    """

    severity: str
    id: str
    what: str
    why: str
    fix: str
    where: Where = Where()
    detail: dict[str, Any] | None = None
    evidence: str = ""

    def __repr__(self) -> str:
        return f"<Finding {self.severity} {self.id}: {self.what}>"


def listed_tokens(ids: Sequence[int], tokens: Sequence[str]) -> dict[str, Any]:
    """Return details of a finding: how many tokens it is about, and the ids and texts of the first 100."""
    return {"count": len(ids), "ids": ids[:100], "texts": [tokens[token] for token in ids[:100]]}


@dataclass(frozen=True, repr=False)
class Examination:
    """The result of `doctor`: the findings about one file, the most severe first.

    `path` is the path or name of the model. `proposal` is the change that mends the `findings`, as it was tried; None
    if none of them has a command. `family` is the known family of models that the tokens are from, "" if there is none,
    and `unlike_family` are the values that differ from that family's after the proposed change, in words.
    """

    path: str
    findings: tuple[Finding, ...]
    proposal: Proposal | None = None
    family: str = ""
    unlike_family: tuple[str, ...] = ()

    @property
    def fix(self) -> str:
        """The one command that makes all changes; "" if none is proposed."""
        return self.proposal.command if self.proposal else ""

    @property
    def counts(self) -> dict[str, int]:
        """How many findings there are of each severity."""
        found = Counter(finding.severity for finding in self.findings)
        return {severity: found[severity] for severity in SEVERITIES}

    @property
    def verdict(self) -> str:
        """The result in a word: "healthy"; otherwise "error" or "warning", after the gravest finding."""
        return HEALTHY if self.is_healthy else self.findings[0].severity

    @property
    def is_healthy(self) -> bool:
        """Whether there is nothing to fix: no error and no warning."""
        return all(finding.severity == "note" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """All of it as `ggufbpe doctor --json` writes it."""
        found = [
            {**finding._asdict(), "where": finding.where._asdict(), "detail": finding.detail or {}}
            for finding in self.findings
        ]
        return {"path": self.path, "counts": self.counts, "findings": found, "fix": self.fix}

    def __repr__(self) -> str:
        counts = [counted(number, severity) for severity, number in self.counts.items() if number]
        return f"<Examination of {printable(self.path)}: {', '.join(counts) or 'no findings'}>"
