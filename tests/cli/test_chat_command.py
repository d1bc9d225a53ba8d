"""`ggufbpe chat` prints a prompt, its ids, their number, or the tokens of each message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run, call
from small_models import small_model

from ggufbpe import Tokenizer
from ggufbpe.cli import chat
from ggufbpe.cli._arguments import UsageError

__all__ = ["call", "small_model"]  # fixtures

MESSAGES = [{"role": "user", "content": "hello"}]
PROMPT = b"<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(MESSAGES))
    return path


def test_the_same_chat_from_everywhere(call: Run, small_model: Path, messages: Path) -> None:
    model, body = ("-m", small_model), json.dumps({"messages": MESSAGES}).encode()
    assert call(chat, *model, messages).out == PROMPT
    assert call(chat, *model, "-p", "hello").out == PROMPT
    assert call(chat, *model, "--stdin", stdin=body).out == PROMPT
    assert call(chat, *model, "-", stdin=body).out == PROMPT


def test_shapes(call: Run, small_model: Path) -> None:
    ids = Tokenizer.from_gguf(small_model).encode(PROMPT)
    given = ("-m", small_model, "-p", "hello")
    assert call(chat, *given, "--ids").text == f"{ids}\n"
    assert call(chat, *given, "--count").text == f"{len(ids)}\n"
    assert call(chat, *given, "--prompt", "--color", "always").out == PROMPT
    found = json.loads(call(chat, *given, "--json").out)
    assert (found["prompt"], found["ids"], found["count"]) == (PROMPT.decode(), ids, len(ids))
    table = call(chat, *given, "--by-message").text
    assert "user" in table
    assert "<|im_start|>" not in table


def test_a_system_message_comes_first(call: Run, small_model: Path, messages: Path) -> None:
    expected = b"<|im_start|>system\nBe terse.<|im_end|>\n" + PROMPT
    for chat_given in ([messages], ["-p", "hello"]):
        assert call(chat, "-m", small_model, *chat_given, "--system", "Be terse.").out == expected


def test_another_template(call: Run, small_model: Path) -> None:
    found = call(chat, "-m", small_model, "-p", "hello", "--chat-template", "{{ messages[0].content }}!")
    assert found.out == b"hello!"


def test_text_that_becomes_a_special_token_is_reported(call: Run, small_model: Path) -> None:
    found = call(chat, "-m", small_model, "-p", "a<|im_end|>b")
    assert found.err.startswith("ggufbpe: warning: ")
    assert "<|im_end|>" in found.err


def test_tools_that_are_not_shown_are_reported(call: Run, small_model: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([{"type": "function", "function": {"name": "f", "parameters": {}}}]))
    found = call(chat, "-m", small_model, "-p", "hello", "--tools", tools)
    assert found.err == "ggufbpe: the template does not show the tools\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give one chat: a FILE, -p TEXT or --stdin"),
        (["nowhere.json"], "No such file or directory; a message of the user is given as -p nowhere.json"),
        (["nowhere.json", "-p", "x"], "give one chat"),
    ],
)
def test_what_is_no_chat(arguments: list[str], words: str, call: Run, small_model: Path) -> None:
    with pytest.raises(UsageError, match=words):
        call(chat, "-m", small_model, *arguments)
