"""SARIF 2.1.0 as `doctor` writes it, held to the rules of the specification that concern what is in it.

No package ships the official schema, so the required and allowed properties are written down here, by the sections
of https://docs.oasis-open.org/sarif/sarif/v2.1.0.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from ggufbpe.analysis.doctor.finding import Examination, Finding, Where
from ggufbpe.analysis.views.sarif import sarif_log

# The properties of each object: those that it must have, and those that it may have among all that are written.
OBJECTS: dict[str, tuple[set[str], set[str]]] = {
    "log": ({"version", "runs"}, {"$schema"}),  # 3.13
    "run": ({"tool"}, {"artifacts", "columnKind", "results"}),  # 3.14
    "tool": ({"driver"}, set()),  # 3.18
    "driver": ({"name"}, {"version", "rules"}),  # 3.19
    "rule": ({"id"}, {"shortDescription", "fullDescription", "defaultConfiguration"}),  # 3.49
    "artifact": (set(), {"location", "parentIndex"}),  # 3.24
    "result": ({"message"}, {"ruleId", "ruleIndex", "level", "locations"}),  # 3.27
    "location": (set(), {"physicalLocation", "logicalLocations"}),  # 3.28
    "physicalLocation": (set(), {"artifactLocation", "region"}),  # 3.29
    "artifactLocation": (set(), {"uri", "index"}),  # 3.4
    "region": (set(), {"startLine", "startColumn", "byteOffset", "byteLength"}),  # 3.30
    "logicalLocation": (set(), {"fullyQualifiedName", "kind"}),  # 3.33
}
LEVELS = {"none", "note", "warning", "error"}  # 3.27.10


def check(value: dict[str, Any], kind: str) -> None:
    required, allowed = OBJECTS[kind]
    assert required <= value.keys() <= required | allowed, (kind, value.keys())


def check_log(log: dict[str, Any]) -> None:
    check(log, "log")
    assert log["version"] == "2.1.0"
    for run in log["runs"]:
        check(run, "run")
        assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
        check(run["tool"], "tool")
        check(run["tool"]["driver"], "driver")
        rules, artifacts = run["tool"]["driver"]["rules"], run["artifacts"]
        for rule in rules:
            check(rule, "rule")
            assert rule["defaultConfiguration"]["level"] in LEVELS
            assert rule["shortDescription"]["text"]
            assert rule["fullDescription"]["text"]
        assert len({rule["id"] for rule in rules}) == len(rules)
        for number, artifact in enumerate(artifacts):
            check(artifact, "artifact")
            assert artifact.get("parentIndex", -1) < number
        for result in run["results"]:
            check_result(result, rules, artifacts)


def check_result(
    result: dict[str, Any], rules: list[dict[str, Any]], artifacts: list[dict[str, Any]]
) -> None:
    check(result, "result")
    assert result["level"] in LEVELS
    assert result["message"]["text"]
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    for location in result["locations"]:
        check(location, "location")
        physical = location["physicalLocation"]
        check(physical, "physicalLocation")
        where = physical["artifactLocation"]
        check(where, "artifactLocation")
        assert artifacts[where["index"]]["location"]["uri"] == where["uri"]
        assert urlsplit(where["uri"]).geturl() == where["uri"]
        assert not set(where["uri"]) & set(' <>"{}|\\^`')
        if "region" in physical:
            check(physical["region"], "region")
            has_line, has_byte = "startLine" in physical["region"], "byteOffset" in physical["region"]
            assert has_line or has_byte
            assert all(
                number >= (1 if name.startswith("start") else 0)
                for name, number in physical["region"].items()
            )
        for logical in location.get("logicalLocations", ()):
            check(logical, "logicalLocation")


KEY = "tokenizer.chat_template"
FINDINGS = (
    Finding(
        "error", "sandbox_escape", "What.", "Why.", "a fix", Where(KEY, line=3, column=7), None, "It has x."
    ),
    Finding("error", "sandbox_escape", "What.", "Why.", "a fix", Where(KEY, line=4, column=1)),
    Finding("warning", "text_lost", "What.", "Why.", "a fix", Where(f"{KEY}.tool_use", line=1, column=1)),
    Finding("note", "own_text", "What.", "Why.", "", Where("general.name", 5, 200)),
    Finding("note", "nowhere", "What.", "Why.", ""),
)


@pytest.mark.parametrize(
    "path", ["model.gguf", "/a b/ö.gguf", "hf:owner/repo:Q4_K_M", "C:\\x\\y.gguf", 'a"<b>.gguf']
)
@pytest.mark.parametrize("count", [0, len(FINDINGS)])
def test_the_form(path: str, count: int) -> None:
    log = sarif_log(Examination(path, FINDINGS[:count]))
    check_log(json.loads(json.dumps(log)))
    assert len(log["runs"][0]["results"]) == count


def test_places_within_templates() -> None:
    [run] = sarif_log(Examination("model.gguf", FINDINGS))["runs"]
    assert [artifact["location"]["uri"] for artifact in run["artifacts"]] == [
        "model.gguf",
        KEY,
        f"{KEY}.tool_use",
    ]
    first, _, third, fourth, last = (result["locations"][0]["physicalLocation"] for result in run["results"])
    assert first == {
        "artifactLocation": {"uri": KEY, "index": 1},
        "region": {"startLine": 3, "startColumn": 7},
    }
    assert third["artifactLocation"]["index"] == 2
    assert fourth == {
        "artifactLocation": {"uri": "model.gguf", "index": 0},
        "region": {"byteOffset": 200, "byteLength": 0},
    }
    assert "region" not in last


def test_the_check_notices_what_is_wrong() -> None:
    log = sarif_log(Examination("model.gguf", FINDINGS))
    log["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(AssertionError):
        check_log(log)
