"""The recorded chats belong to the table of kinds and to the vocabulary that they are counted over."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_kinds import CHATS
from chat_server import Refusal
from compare_chats import differ
from record_chats import VOCABULARY, read_chats, write_vocabulary
from recorded_chats import Chat, recorded_chats, template_names

from ggufbpe import ChatError, Tokenizer


def test_recorded_requests_are_those_of_the_table() -> None:
    assert read_chats("answers")["requests"] == CHATS, "run python tests/makers/record_chats.py"


def test_vocabulary_has_the_markers_of_the_templates(tmp_path: Path) -> None:
    written = write_vocabulary(tmp_path / "vocabulary.gguf", read_chats("templates"))
    assert written.read_bytes() == VOCABULARY.read_bytes(), "run python tests/makers/record_chats.py"


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.from_gguf(VOCABULARY)


@pytest.mark.parametrize("name", template_names())
def test_tokens_of_recorded_prompts(tok: Tokenizer, name: str) -> None:
    """The recorded number is that of `encode`: what is missing to a chat's ids is only its prompt."""
    prompts = {chat.prompt: chat for chat in recorded_chats(name) if chat.prompt is not None}
    assert [tok.count(prompt) for prompt in prompts] == [chat.tokens for chat in prompts.values()]


def test_a_default_prompt() -> None:
    [chat] = [chat for chat in recorded_chats("") if chat.kind == "system"]
    expected = "<|im_start|>system\nYou are terse.<|im_end|>\n<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n"
    assert chat == Chat(
        "", "", "system", CHATS["system"], chat.now, expected + "<|im_start|>assistant\n", chat.tokens
    )


WHILE = "Error\n------------\nWhile executing X at line 3, column 1\nError: no"
LINES: dict[
    str, tuple[str, int | None, bool]
] = {  # what the server says, our line, and whether that is a difference
    "the same": (WHILE, 3, False),
    "another": (WHILE, 4, True),
    "none of ours": (WHILE, None, True),
    "one of a JSON parser": ("parse error at line 1, column 2: syntax error", None, False),
    "none of theirs": ("'messages' is required", None, False),
}


@pytest.mark.parametrize("name", LINES)
def test_the_live_comparison_notices_lines(name: str) -> None:
    message, line, is_difference = LINES[name]
    assert differ(Refusal(400, message), ChatError("no", line)) is is_difference
