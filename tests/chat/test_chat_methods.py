"""The chat methods of `Tokenizer`, on a class that has nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from reference import write_metadata
from test_prompt_tokenizer import BytesTokenizer

from ggufbpe import GGUFWarning
from ggufbpe.chat.chat_methods import ChatMethods
from ggufbpe.gguf.metadata import Metadata
from ggufbpe.gguf.reader import GGUFFile

KEY = "tokenizer.chat_template"
USER = {"role": "user", "content": "hi"}


class Chatting(ChatMethods):
    """The chat methods over a vocabulary of bytes."""

    vocabulary = BytesTokenizer().vocabulary
    encode = BytesTokenizer.encode
    token_to_piece = BytesTokenizer.token_to_piece

    def __init__(self, metadata: Metadata | None) -> None:
        self._metadata = metadata


@pytest.fixture
def chatting(tmp_path: Path) -> Chatting:
    """One with a default template, and one for tools."""
    keys = {KEY: "{{ messages[0].content }}{{ colour }}", f"{KEY}.tool_use": "{{ tools[0].function.name }}"}
    with GGUFFile(write_metadata(tmp_path / "m.gguf", {**keys, f"{KEY}s": ["tool_use"]})) as file:
        metadata = Metadata(file)
        made = Chatting(metadata)
        assert set(made.chat_templates) == {"", "tool_use"}  # read while the file is open
    return made


def test_prompt_and_ids(chatting: Chatting) -> None:
    assert chatting.chat_template == "{{ messages[0].content }}{{ colour }}"
    assert chatting.apply_chat_template([USER], tokenize=False) == "hi"
    assert chatting.apply_chat_template([USER]) == [256, *b"hi"]
    assert chatting.apply_chat_template([USER], colour="red", tokenize=False) == "hired"
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert chatting.apply_chat_template([USER], tools=tools, tokenize=False) == "f"


def test_a_name_that_no_template_reads(chatting: Chatting) -> None:
    with pytest.raises(TypeError, match=r"no argument 'color', .*the nearest is 'colour'"):
        chatting.apply_chat_template([USER], color="red")
    with pytest.raises(TypeError, match="'colour' is given by name and in chat_template_kwargs"):
        chatting.apply_chat_template([USER], colour="red", chat_template_kwargs={"colour": "red"})


def test_without_a_template_the_prompt_is_chatml() -> None:
    bare = Chatting(None)
    assert (bare.chat_templates, bare.chat_template) == ({}, None)
    with pytest.warns(GGUFWarning, match="the model has no chat template, so this prompt is ChatML"):
        prompt = bare.apply_chat_template([USER], tokenize=False)
    assert prompt == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
