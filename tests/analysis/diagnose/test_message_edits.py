"""Edits of messages, each on one chat."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ggufbpe.analysis.diagnose.message_edits import (
    Messages,
    adding_system,
    merging_system,
    removable_stretches,
    system_message,
    with_contents,
    without_field,
    without_stretch,
    without_system,
)

SYSTEM = system_message(" Be brief.")
USER = {"role": "user", "content": " Hi "}
PARTS = {"role": "user", "content": [{"type": "text", "text": " Hi "}, {"type": "image_url"}]}
ANSWER = {"role": "assistant", "content": None}


@pytest.mark.parametrize(
    ("edit", "before", "after"),
    [
        (without_system, [SYSTEM, USER, {**SYSTEM, "role": "developer"}], [USER]),
        (merging_system("|"), [SYSTEM, USER], [{"role": "user", "content": " Be brief.| Hi "}]),
        (merging_system("|"), [SYSTEM], [SYSTEM]),
        (merging_system("|"), [SYSTEM, PARTS], [SYSTEM, PARTS]),
        (merging_system("|"), [USER, SYSTEM], [USER, SYSTEM]),
        (adding_system(" Be brief."), [USER], [SYSTEM, USER]),
        (adding_system("other"), [SYSTEM, USER], [SYSTEM, USER]),
        (with_contents(str.strip), [USER, ANSWER], [{"role": "user", "content": "Hi"}, ANSWER]),
        (
            with_contents(str.strip),
            [PARTS],
            [{"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url"}]}],
        ),
        (without_stretch(1, 3), [SYSTEM, USER, ANSWER, PARTS], [SYSTEM, PARTS]),
    ],
)
def test_edits(edit: Callable[[Messages], Messages], before: Messages, after: Messages) -> None:
    assert edit(before) == after


def test_a_field_is_left_out_of_a_copy() -> None:
    assert without_field(USER, "content") == {"role": "user"}
    assert "content" in USER


@pytest.mark.parametrize(
    ("messages", "stretches"),
    [
        ([], []),
        ([USER], []),  # a chat without messages is none
        ([USER, ANSWER], [(0, 1), (1, 2)]),
        ([SYSTEM, USER, ANSWER], [(1, 2), (2, 3)]),  # the system message stays
        ([USER, ANSWER, USER], [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]),
    ],
)
def test_stretches_that_may_be_missing(messages: Messages, stretches: list[tuple[int, int]]) -> None:
    assert list(removable_stretches(messages)) == stretches
