"""The chats of `verify`, line by line."""

from __future__ import annotations

from typing import Any

import pytest

from ggufbpe.analysis.diagnose.cause import Cause
from ggufbpe.analysis.oracles.chat_answers import Prompt, Refused
from ggufbpe.analysis.oracles.oracle import Failure
from ggufbpe.analysis.verify.chat_comparison import (
    PROMPT,
    ChatDifference,
    ChatExample,
    ChatResult,
    ComparedChat,
)
from ggufbpe.analysis.views.chat_report_lines import chat_parts
from ggufbpe.analysis.views.drawing import drawn


def lines(result: ChatResult, **options: Any) -> list[str]:
    return list(
        drawn(chat_parts(result, ("ours", "theirs"), "llama\x1b-server"), False, options.get("width"))
    )


def example(ours: bytes, theirs: bytes, body: Any = None) -> ChatExample:
    return ChatExample(ComparedChat("c.json", body or {}), Prompt(ours), Prompt(theirs))


TRIMMED = Cause("trimmed", {"what": "the contents are trimmed"})


def test_a_difference_with_its_cause_and_the_smallest_chat() -> None:
    difference = ChatDifference(
        PROMPT, example(b"say a", b"say b"), (TRIMMED,), 0.5, 2, example(b"a", b"b", {"messages": ["\x07"]})
    )
    result = ChatResult(chats=3, different=2, refused=1, differences=[difference])
    assert lines(result) == [
        "2 of 3 chats differ",
        "  1 chat refused by both",
        "",
        "1. prompt: 2 chats",
        "   cause: trimmed: The contents are trimmed.",
        "   this explains 50.0% of the prompt",
        "   first in c.json",
        "     at byte 4, of 5 and 5",
        "     ours    say a",
        "     theirs  say b",
        '   smallest chat: {"messages": ["\\u0007"]}',
        "     at byte 0, of 1 and 1",
        "     ours    a",
        "     theirs  b",
    ]


def test_a_long_smallest_chat_is_left_to_json() -> None:
    long = example(b"a", b"b", {"messages": "x" * 1000})
    result = ChatResult(chats=1, different=1, differences=[ChatDifference(PROMPT, long, smallest=long)])
    assert lines(result)[-1] == "   the smallest chat that differs is long: --json has it"


def test_refusals_and_failures() -> None:
    both = ChatExample(ComparedChat("c.json", {}), Refused("one"), Refused("two", 3))
    result = ChatResult(chats=5, refused=4, reasons=4, failed=1, other_reasons=[both] * 4)
    result.failures.append((Failure("timeout", "no answer\n"), "d.json"))
    found = lines(result)
    assert found[:4] == [
        "both refuse the 4 chats of 5",
        "  4 chats refused by both",
        "",
        "refused by both, for different reasons: 4 chats",
    ]
    assert sum("refused: one" in line for line in found) == 3  # examples
    assert found[-2:] == ["timeout: no answer\\n", "   first in d.json"]


@pytest.mark.parametrize(("count", "more"), [(10, []), (12, ["", "and 2 more: --json and --html show all"])])
def test_only_the_first_differences_are_shown(count: int, more: list[str]) -> None:
    differences = [ChatDifference(PROMPT, example(b"a", b"b"))] * count
    found = lines(ChatResult(chats=count, different=count, differences=differences))
    assert sum(line.endswith("prompt: 1 chat") for line in found) == 10
    assert found[len(found) - len(more) :] == more
