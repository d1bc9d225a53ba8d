"""Causes and proposals as lines."""

from __future__ import annotations

import pytest

from ggufbpe.analysis.diagnose.cause import Cause
from ggufbpe.analysis.doctor.proposal import Proposal
from ggufbpe.analysis.views.cause_lines import cause_lines, proposal_lines, sentence
from ggufbpe.analysis.views.drawing import drawn
from ggufbpe.gguf.change import Change

BOS = Change({"tokenizer.ggml.add_bos_token": "true"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the model adds BOS", "The model adds BOS."),
        ("Is it?", "Is it?"),
        ("and more…", "And more…"),
        ("a\nb\x1b[0m", "A\\nb\\x1b[0m."),
        ("", "."),
    ],
)
def test_sentences(text: str, expected: str) -> None:
    assert sentence(text) == expected


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (Cause("bos", {"what": "BOS is missing"}), ["  cause: BOS is missing."]),
        (Cause("bos", {}), ["  cause: Bos."]),
        (
            Cause("bos", {"what": "x", "evidence": ["one", "two\x07"]}, "add it"),
            ["  cause: X.", "    evidence: one; two\\x07", "    to do: add it"],
        ),
        (
            Cause("bos", {"what": "x", "evidence": []}, "add it", BOS),
            ["  cause: X.", "    if the file is right: add it"],
        ),
    ],
)
def test_causes(cause: Cause, expected: list[str]) -> None:
    assert list(drawn(cause_lines(cause, 2, "cause: "), False, None)) == expected


def test_long_sentences_stay_in_their_column() -> None:
    cause = Cause("bos", {"what": "six words that do not fit"}, "add it where it is missing")
    assert list(drawn(cause_lines(cause, 2, "why: "), False, 20)) == [
        "  why: Six words",
        "       that do not",
        "       fit.",
        "    to do: add it",
        "    where it is",
        "    missing",
    ]


@pytest.mark.parametrize(
    ("proposal", "of", "expected"),
    [
        (None, "", []),
        (Proposal(), "", []),
        (Proposal(BOS, objection="it breaks 2 texts"), "", ["no command is proposed: it breaks 2 texts"]),
        (
            Proposal(BOS, command="ggufbpe fix m.gguf --set a=b", explained=3, differing=3),
            "",
            [
                "fix: this one command makes all changes and explains all 3 texts:",
                "  ggufbpe fix m.gguf --set a=b",
            ],
        ),
        (
            Proposal(BOS, command="run", explained=1, differing=1, unmended=1),
            "",
            [
                "fix: this one command changes the file and explains the text; another cause remains, which it does not"
                " mend:",
                "  run",
            ],
        ),
        (Proposal(BOS, command="run"), "b.gguf", ["fix: this one command changes b.gguf:", "  run"]),
    ],
)
def test_proposals(proposal: Proposal | None, of: str, expected: list[str]) -> None:
    assert list(drawn(proposal_lines(proposal, of), False, None)) == expected


def test_a_command_is_never_broken() -> None:
    lines = list(drawn(proposal_lines(Proposal(BOS, command="ggufbpe fix " + "x" * 90)), False, 40))
    assert lines[-1] == "  ggufbpe fix " + "x" * 90
