"""The form of `--json`: names that mean one thing in every command, a version, and errors.

Every object begins with `schema`, the version of the form. Where they apply, the next fields are `model` (the file or
name that was asked about), `path` (a file or folder that was read or written), `verdict`, `findings` and `fix`; what
only one command has follows. The JSON Schemas in `schemas/` define each command's output, and docs/json.md lists the
verdicts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..._util.errors import ChatError, GGUFError, ModelNameError
from ..._util.verdicts import ERROR, WARNING
from .flag_names import with_flags

if TYPE_CHECKING:
    from ...data.corpora.shard_check import Checked
    from ..diagnose.cause import Cause
    from ..diagnose.explanation import Diagnosis
    from ..doctor.drafts import DraftCheck
    from ..doctor.finding import Examination
    from ..doctor.fix import Fixed, KeyChange
    from ..verify.model_diff import Differences
    from ..verify.result import Verification

VERSION = 1  # of the form; a field that is renamed, removed or changes its meaning makes it another

_MOST_ELEMENTS = 16  # of an array whose value is shown
_MOST_IDS = 100  # of tokens that differ


def json_schema(command: str) -> dict[str, Any]:
    """Return the JSON Schema of what a command prints with `--json`, such as "doctor"; "error" is that of errors.

    References to definitions that commands share are resolved: the schema stands alone. `ValueError` for a command
    that has no `--json`.

    >>> json_schema("doctor")["$id"]
    'ggufbpe:1/doctor.json'
    """
    import json
    from pathlib import Path

    folder = Path(__file__).parent / "schemas" / str(VERSION)
    names = {each.stem for each in folder.glob("*.json")} - {"common"}
    if command not in names:
        raise ValueError(f"no JSON Schema is called {command!r}; there are {', '.join(sorted(names))}")

    def read(name: str) -> dict[str, Any]:
        text = (folder / f"{name}.json").read_text(encoding="utf-8")
        found: dict[str, Any] = json.loads(text.replace('"common.json#/$defs/', '"#/$defs/'))
        return found

    return {**read(command), "$defs": read("common")["$defs"]}


def answer(found: Mapping[str, Any] | None = None, **shared: Any) -> dict[str, Any]:
    """Return the object that `--json` prints: the version, the `shared` fields that are not None, and the others.

    >>> answer({"tokens": 3}, model="model.gguf")
    {'schema': 1, 'model': 'model.gguf', 'tokens': 3}
    """
    given = {name: value for name, value in shared.items() if value is not None}
    rest = {name: value for name, value in (found or {}).items() if name not in given}
    return {"schema": VERSION, **given, **rest}


def finding(id: str, what: str, fix: str = "", severity: str = ERROR, **more: Any) -> dict[str, Any]:
    """Return one of `findings`: what it is called, one sentence, what to do about it ("" if nothing), and how grave."""
    return {"severity": severity, "id": id, "what": what, "fix": fix, **more}


# ---- what looks at a tokenizer --------------------------------------------------------------------------


def examination(found: Examination) -> dict[str, Any]:
    """Return what `doctor --json` prints."""
    return answer(found.to_dict(), model=found.path, verdict=found.verdict)


def verification(found: Verification) -> dict[str, Any]:
    """Return what `verify --json` prints: a finding for each difference and each reason why there were no ids."""
    findings = [
        *(
            of_causes(each.causes, each.explains, step=each.step, places=each.places)
            for each in found.differences
        ),
        *(
            of_causes(each.causes, each.explains, step=each.kind, places=each.chats)
            for each in (found.chats.differences if found.chats else ())
        ),
        *(
            finding(group.kind, group.detail, texts=group.texts)
            for group in found.failures
            if group.kind != "refused"
        ),
    ]
    return answer(found.to_dict(), model=found.model, verdict=found.verdict, findings=findings, fix=found.fix)


def diagnosis(found: Diagnosis, model: str) -> dict[str, Any]:
    """Return what `diagnose --json` prints: a finding for each explanation, the best first."""
    findings = [of_causes(each.causes, each.explains) for each in found.explanations]
    return answer(found.to_dict(), model=model, verdict=found.verdict, findings=findings, fix=found.fix)


def of_causes(causes: Iterable[Cause], explains: float, **more: Any) -> dict[str, Any]:
    """Return the finding of causes that together give the ids; `explains` is the share of ids that they account for."""
    from .cause_lines import sentence

    listed = list(causes)
    id = "+".join(cause.id for cause in listed) or "unknown"
    what = " ".join(sentence(str(cause.detail.get("what", cause.id))) for cause in listed)
    fix = with_flags("; ".join(cause.fix for cause in listed if cause.fix))
    return finding(id, what or "No known cause explains these ids.", fix, explains=explains, **more)


def differences(found: Differences) -> dict[str, Any]:
    """Return what `diff --json` prints: a finding for each difference, with the section that it belongs to."""
    findings = [
        finding(each.id, each.what, severity=WARNING, section=section, number=each.number)
        for section, listed in found.sections.items()
        for each in listed
    ]
    model = None if found.suspect is None else found.models[found.suspect]
    return answer(found.to_dict(), model=model, verdict=found.verdict, findings=findings, fix=found.fix)


# ---- what writes files ----------------------------------------------------------------------------------


def shards(found: Checked, path: str, model: str | None) -> dict[str, Any]:
    """Return what `check --json` prints."""
    findings = [finding("shards", problem) for problem in found.problems]
    if found.is_right and not found.is_compared:
        findings.append(finding("not_compared", found.not_sampled, severity=WARNING))
    return answer(found.to_dict(), model=model, path=path, verdict=found.verdict, findings=findings)


def fixed(found: Fixed, model: str) -> dict[str, Any]:
    """Return what `fix --json` prints: each key that was changed, before and after."""
    facts = {
        "changes": list(map(_change, found.changes)),
        "written": found.written,
        "recovered": found.recovered,
        "bytes": found.size,
        "tensors": found.tensors,
    }
    return answer(facts, model=model, path=found.path)


def _change(change: KeyChange) -> dict[str, Any]:
    old, new = change.before, change.after
    found = {"key": change.key, "before": _value(old), "after": _value(new)}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new))
        found["elements"] = [{"index": i, "before": a, "after": b} for i, (a, b) in pairs if a != b]
    return found


def _value(value: Any) -> Any:
    """Return a value of the metadata; of a long array, only how many elements it has."""
    if isinstance(value, list) and len(value) > _MOST_ELEMENTS:
        return {"elements": len(value)}
    return value


# ---- errors ---------------------------------------------------------------------------------------------


def failure(error: Exception, message: str) -> dict[str, Any]:
    """Return what `--json` prints of an error: its `type`, its `message`, and what is known of place and remedy."""
    more: dict[str, Any] = {}
    if isinstance(error, GGUFError):
        more = {name: getattr(error, name) for name in ("problem", "path", "offset", "key", "remedy")}
    elif isinstance(error, ModelNameError):
        more = {"candidates": list(error.candidates) or None}
    elif isinstance(error, ChatError):
        more = {name: getattr(error, name, None) for name in ("line", "count", "limit")}
    elif isinstance(error, OSError) and isinstance(error.filename, (str, bytes)):
        more = {"path": os.fsdecode(error.filename)}
    known = {name: value for name, value in more.items() if value is not None}
    return answer({"error": {"type": type(error).__name__, "message": message, **known}})


def draft_check(found: DraftCheck) -> dict[str, Any]:
    """Return what `diff --draft --json` prints: a finding for each reason why llama.cpp refuses the draft."""
    findings = [
        finding(each.id, each.what, severity=WARNING, ids=list(each.ids[:_MOST_IDS]), number=len(each.ids))
        for each in found.differences
    ]
    facts = {"target": found.target, "draft": found.draft, "reason": found.reason}
    return answer(facts, model=found.draft, verdict=found.verdict, findings=findings, fix=found.fix)
