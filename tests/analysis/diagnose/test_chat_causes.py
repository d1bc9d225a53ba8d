"""Causes of another prompt that no change of the chat explains."""

from __future__ import annotations

import pytest

from ggufbpe.analysis.diagnose.cause import Cause
from ggufbpe.analysis.diagnose.chat_causes import (
    as_told_of_a_chat,
    end_token_causes,
    marker_texts,
    prompt_differs,
    refused,
    with_first_difference,
)

MESSAGES = [
    {"role": "user", "content": "Is it warm? "},
    {"role": "assistant", "content": "Quite."},
    {"role": "user", "content": "Is it warm?"},
]
PROMPT = b"<|user|>Is it warm?\n<|assistant|>Quite.\n<|user|>Is it warm?\n"


@pytest.mark.parametrize(
    ("name", "ours", "theirs", "adds", "words"),
    [
        ("bos", 0, 1, False, "the given prompt begins with BOS, '<s>'"),
        ("bos", 0, 1, True, "the given prompt begins with BOS, '<s>', which the tokenizer adds"),
        ("bos", 1, 0, False, "the prompt begins with BOS, '<s>', but the given one does not"),
        ("eos", 0, 2, False, "the given prompt ends with EOS, '<s>'"),
        ("eos", 1, 1, True, None),
    ],
)
def test_bos_and_eos_around_a_prompt(
    name: str, ours: int, theirs: int, adds: bool, words: str | None
) -> None:
    causes = list(end_token_causes(name, b"<s>", ours, theirs, adds))
    assert len(causes) == (words is not None)
    for cause in causes:
        assert (cause.id, cause.detail["ours"], cause.detail["theirs"]) == (name, ours, theirs)
        assert str(cause.detail["what"]).startswith(words or "")
        assert ("otherwise BOS is there twice" in cause.fix) is adds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<|im_start|>user [INST] a < b > c", {"<|im_start|>", "[INST]"}),
        ("<tool_call></tool_call><｜User｜>", {"<tool_call>", "</tool_call>", "<｜User｜>"}),
        ("[/TOOL_RESULTS] [A] [1] <1> {{x}}", {"[/TOOL_RESULTS]"}),
    ],
)
def test_markers(text: str, expected: set[str]) -> None:
    assert marker_texts(text) == expected


@pytest.mark.parametrize(
    ("expected", "offset", "message", "markers"),
    [
        (PROMPT.replace(b"Quite", b"Very"), PROMPT.index(b"Quite"), 1, []),
        (
            PROMPT[:-12] + b"Is it cold?\n",
            PROMPT.rindex(b"warm"),
            2,
            [],
        ),  # the same text is in the first message
        (PROMPT.replace(b"<|user|>", b"[INST]", 1), 0, None, ["[INST]"]),
        (PROMPT.replace(b"assistant|", b"model|"), PROMPT.index(b"assistant"), None, ["<|model|>"]),
    ],
)
def test_where_prompts_differ(expected: bytes, offset: int, message: int | None, markers: list[str]) -> None:
    cause = prompt_differs(PROMPT, expected, MESSAGES)
    assert cause.id == "prompt_differs"
    assert (cause.detail["offset"], cause.detail["message"]) == (offset, message)
    assert cause.detail["markers"] == markers
    what = str(cause.detail["what"])
    assert ("is it from another template?" in what) is bool(markers)
    assert (f"in message {message}, counted from 0" in what) is (message is not None)


def test_a_chat_without_messages_has_no_place() -> None:
    assert prompt_differs(b"ab", b"ac", None).detail["message"] is None
    assert prompt_differs(b"ab", b"ac", [None, {"content": [1]}, {"content": ""}]).detail["message"] is None


def test_a_cause_with_the_first_difference() -> None:
    cause = Cause("template", {"what": "the template differs"})
    found = with_first_difference(cause, b"abc", b"abd", "")
    assert found.detail["what"] == "the template differs: first 'd' instead of 'c' at byte 2"
    assert with_first_difference(cause, b"abc", b"abc", "") == cause
    refusal = with_first_difference(cause, None, b"abc", "not so")
    assert refusal.detail["what"] == "the template differs; llama-server refuses the chat: not so"


def test_a_refused_chat() -> None:
    cause = refused("no tools")
    assert (cause.id, cause.detail["reason"]) == ("refused", "no tools")
    assert cause.detail["what"] == "llama-server refuses this chat: no tools"


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (
            Cause("bos", {"what": "w", "problem": "twice"}, "f"),
            "the template writes it, and the tokenizer adds it",
        ),
        (Cause("bos", {"what": "w", "problem": "missing"}, "f"), "was not added to the prompt"),
        (Cause("parse_special", {"what": "w", "theirs": False}, "f"), "encoded as plain text"),
        (Cause("parse_special", {"what": "w", "theirs": True}, "f"), None),
        (Cause("eos", {"what": "w", "problem": "twice"}, "f"), None),
    ],
)
def test_causes_of_any_text_are_told_as_they_come_about_in_a_chat(cause: Cause, words: str | None) -> None:
    told = as_told_of_a_chat(cause)
    assert (told.id, told.change) == (cause.id, cause.change)
    if words is None:
        assert told == cause
    else:
        assert words in str(told.detail["what"])
        assert told.fix != "f"
