"""What the doctor says: one finding a defect, with its place and what to do about it.

An *error* makes llama.cpp refuse the file or abort, or is a value that cannot be intended; a *warning* most likely
gives other ids than the model was trained with; a *note* is good to know. Unharmed models have no errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

SEVERITIES = ("error", "warning", "note")


class Where(NamedTuple):
    """The place of a finding: metadata key, token id, byte offset in the file; None where it has none."""

    key: str | None = None
    token: int | None = None
    offset: int | None = None


class Finding(NamedTuple):
    """One thing that is wrong or suspicious."""

    severity: str  # "error", "warning" or "note"
    id: str
    what: str
    why: str
    fix: str
    where: Where = Where()
    detail: dict[str, Any] | None = None  # numbers and examples, for programs


def findings_to_json(path: str, findings: Iterable[Finding]) -> dict[str, Any]:
    """The findings as JSON objects, with their number by severity."""
    found = [
        {**finding._asdict(), "where": finding.where._asdict(), "detail": finding.detail or {}}
        for finding in findings
    ]
    counts = {severity: sum(f["severity"] == severity for f in found) for severity in SEVERITIES}
    return {"path": path, "counts": counts, "findings": found}
