"""What is said of chats that were compared."""

from __future__ import annotations

import pytest

from ggufbpe.analysis.oracles.chat_answers import Prompt, Refused
from ggufbpe.analysis.verify.chat_comparison import (
    COUNT,
    PROMPT,
    REFUSED_BY_THEM,
    REFUSED_BY_US,
    ChatDifference,
    ChatExample,
    ChatResult,
    ComparedChat,
)
from ggufbpe.analysis.views.chat_words import both_sides, chat_verdict, difference_title, prompts_around

CHAT = ComparedChat("chats.json, chat 0", {"messages": []})


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (ChatResult(), "no chat was compared"),
        (ChatResult(chats=2, failed=2), "no chat was compared"),
        (ChatResult(chats=3, different=1), "1 of 3 chats differs"),
        (ChatResult(chats=4, different=2, failed=1), "2 of 3 chats differ"),
        (ChatResult(chats=2, refused=2), "both refuse the 2 chats"),
        (ChatResult(chats=1), "the prompt of 1 chat is the same"),
        (ChatResult(chats=3, refused=1), "the prompts of 2 chats are the same"),
        (ChatResult(chats=3, failed=1), "the prompts of 2 chats of 3 are the same"),
    ],
)
def test_verdicts(result: ChatResult, expected: str) -> None:
    assert chat_verdict(result) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (PROMPT, "prompt"),
        (COUNT, "number of tokens"),
        (REFUSED_BY_US, "refused by ggufbpe"),
        (REFUSED_BY_THEM, "refused by llama-server"),
    ],
)
def test_titles(kind: str, expected: str) -> None:
    difference = ChatDifference(kind, ChatExample(CHAT, Prompt(b""), Prompt(b"")))
    assert difference_title(difference, "llama-server") == expected


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (b"say red!", b"say blue!", ("at byte 4, of 8 and 9", ("say ", "red", "!"), ("say ", "blue", "!"))),
        (b"ab", b"abc", ("at byte 2, of 2 and 3", ("ab", "∅", ""), ("ab", "c", ""))),
        (b"abc", b"ac", ("at byte 1, of 3 and 2", ("a", "b", "c"), ("a", "", "c"))),
        ("aé".encode(), "aè".encode(), ("at byte 1, of 3 and 3", ("a", "é", ""), ("a", "è", ""))),
        (
            b"x" * 50 + b"a" + b"y" * 99,
            b"x" * 50 + b"b" + b"y" * 99,
            (
                "at byte 50, of 150 and 150",
                ("…" + "x" * 40, "a", "y" * 59 + "…"),
                ("…" + "x" * 40, "b", "y" * 59 + "…"),
            ),
        ),
        (b"\x1b\n", b"\x1b\r", ("at byte 1, of 2 and 2", ("\\x1b", "\\n", ""), ("\\x1b", "\\r", ""))),
    ],
)
def test_where_prompts_part(ours: bytes, theirs: bytes, expected: object) -> None:
    assert prompts_around(ours, theirs) == expected
    assert both_sides(ChatExample(CHAT, Prompt(ours), Prompt(theirs))) == expected


def test_other_answers_are_shown_whole() -> None:
    refused = both_sides(ChatExample(CHAT, Refused("not so", 3), Prompt(b"p" * 70)))
    assert refused == (
        "",
        ("refused: ", "line 3 of the chat template: not so", ""),
        ("a prompt: ", "p" * 60, "…"),
    )
    counted = both_sides(ChatExample(CHAT, Prompt(b"a", 1), Prompt(b"a", 2)))
    assert counted == ("", ("", "1 token", ""), ("", "2 tokens", ""))
