"""Writes what `doctor` finds as SARIF 2.1.0, the form in which code hosts and editors take findings of checkers.

Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0, sections 3.13 to 3.52. A template is an artifact of its own
within the model file, so that lines and columns are those of the template.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from ... import __version__
from ..._util.utf8 import original_bytes, without_surrogates
from ..doctor.finding import Examination, Finding

VERSION = "2.1.0"
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif_log(found: Examination) -> dict[str, Any]:
    """Return a SARIF log with one run, in which each finding is a result.

    >>> sarif_log(Examination("model.gguf", ()))["runs"][0]["results"]
    []
    """
    rules: dict[str, dict[str, Any]] = {}
    for finding in found.findings:
        rules.setdefault(finding.id, _rule(finding))
    keys = dict.fromkeys(each.where.key for each in found.findings if each.where.line is not None)
    places = {key: number for number, key in enumerate(keys, 1) if key is not None}
    artifacts: list[dict[str, Any]] = [{"location": {"uri": _uri(found.path)}}]
    artifacts += [{"location": {"uri": quote(key, safe="")}, "parentIndex": 0} for key in places]
    run = {
        "tool": {"driver": {"name": "ggufbpe", "version": __version__, "rules": list(rules.values())}},
        "artifacts": artifacts,
        "columnKind": "unicodeCodePoints",
        "results": [_result(each, list(rules).index(each.id), artifacts, places) for each in found.findings],
    }
    return {"$schema": _SCHEMA, "version": VERSION, "runs": [run]}


def _uri(path: str) -> str:
    """A path as a relative or absolute reference; a name of a model, such as `hf:OWNER/REPO`, is one already."""
    of_windows = path[1:3] in (":\\", ":/")
    return "file:///" * of_windows + quote(original_bytes(path.replace("\\", "/")), safe="/:")


def _rule(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "shortDescription": {"text": finding.what},
        "fullDescription": {"text": finding.why},
        "defaultConfiguration": {"level": finding.severity},
    }


def _result(
    finding: Finding, rule: int, artifacts: list[dict[str, Any]], places: dict[str, int]
) -> dict[str, Any]:
    where = finding.where
    index = places.get(where.key or "", 0) if where.line is not None else 0
    physical: dict[str, Any] = {"artifactLocation": {**artifacts[index]["location"], "index": index}}
    if where.line is not None:
        physical["region"] = {"startLine": where.line, "startColumn": where.column or 1}
    elif where.offset is not None:
        physical["region"] = {"byteOffset": where.offset, "byteLength": 0}
    location: dict[str, Any] = {"physicalLocation": physical}
    if where.key is not None:
        token = "" if where.token is None else f"[{where.token}]"
        location["logicalLocations"] = [{"fullyQualifiedName": f"{where.key}{token}", "kind": "member"}]
    said = [text for text in (finding.what, finding.evidence, f"fix: {finding.fix}") if text]
    return {
        "ruleId": finding.id,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": without_surrogates(" ".join(said))},
        "locations": [location],
    }
