"""The shared fields of `--json` (views/answers.py); tests/cli/test_json_form.py holds outputs to their schemas."""

from __future__ import annotations

import pytest

from ggufbpe._util.errors import ChatError, ChatTooLongError, GGUFError, ModelNameError
from ggufbpe.analysis.diagnose.cause import Cause
from ggufbpe.analysis.diagnose.explanation import Diagnosis, Explanation
from ggufbpe.analysis.doctor.fix import Fixed, KeyChange
from ggufbpe.analysis.views import answers


def test_shared_fields_come_first_and_once() -> None:
    found = answers.answer({"fix": "old", "bytes": 2}, model="m", verdict=None, fix="new")
    assert list(found.items()) == [("schema", 1), ("model", "m"), ("fix", "new"), ("bytes", 2)]


def test_causes_are_one_finding() -> None:
    one = Cause("bos", {"what": "the model adds BOS"}, "for one call, add_special=False")
    other = Cause("newlines", {"what": "line breaks differ"})
    found = answers.diagnosis(Diagnosis(False, (Explanation((one, other), 0.5), Explanation((), 0.1))), "m")
    assert (found["model"], found["verdict"]) == ("m", "different")
    assert found["findings"] == [
        {
            "severity": "error",
            "id": "bos+newlines",
            "what": "The model adds BOS. Line breaks differ.",
            "fix": "for one call, --no-bos",
            "explains": 0.5,
        },
        {
            "severity": "error",
            "id": "unknown",
            "what": "No known cause explains these ids.",
            "fix": "",
            "explains": 0.1,
        },
    ]


def test_values_of_changed_keys() -> None:
    long, other = [1] * 100, [1] * 99 + [3]
    changes = (KeyChange("a", None, True), KeyChange("types", long, other), KeyChange("b", "x", None))
    found = answers.fixed(Fixed("out", "copied", changes, 2, 9), "in")
    assert (found["model"], found["path"], found["tensors"], found["bytes"]) == ("in", "out", 2, 9)
    assert found["changes"] == [
        {"key": "a", "before": None, "after": True},
        {
            "key": "types",
            "before": {"elements": 100},
            "after": {"elements": 100},
            "elements": [{"index": 99, "before": 1, "after": 3}],
        },
        {"key": "b", "before": "x", "after": None},
    ]


@pytest.mark.parametrize(
    ("error", "more"),
    [
        (GGUFError("odd", path="m", key="k"), {"problem": "odd", "path": "m", "key": "k"}),
        (ModelNameError("two", ["a", "b"]), {"candidates": ["a", "b"]}),
        (ModelNameError("none"), {}),
        (ChatError("no", 3), {"line": 3}),
        (ChatTooLongError(9, 5), {"count": 9, "limit": 5}),
        (FileNotFoundError(2, "No such file", "f"), {"path": "f"}),
        (ValueError("x"), {}),
    ],
)
def test_what_is_known_of_errors(error: Exception, more: dict[str, object]) -> None:
    found = answers.failure(error, "said")
    assert found == {"schema": 1, "error": {"type": type(error).__name__, "message": "said", **more}}
