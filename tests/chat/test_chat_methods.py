"""The chat methods of `Tokenizer`, on a class that has nothing else."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from collections import UserList
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reference import write_metadata
from test_prompt_tokenizer import BytesTokenizer

from ggufbpe import ChatError, GGUFWarning
from ggufbpe.chat.chat_methods import ChatMethods
from ggufbpe.chat.chats import Chats
from ggufbpe.chat.template.lexer import MOST_SOURCE
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
    for name in ("truncation", "add_special_tokens"):  # no name is near
        with pytest.raises(TypeError, match="does not read that name; chat_template_kwargs="):
            chatting.apply_chat_template([USER], **{name: True})


def test_a_chat_without_images_is_counted_without_a_projector(chatting: Chatting) -> None:
    ids = chatting.apply_chat_template([USER], colour="red")
    found = chatting.count_chat([USER], colour="red")
    assert (found.count, found.prompt, found.images, found.audio) == (len(ids), b"hired", (), ())
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}
    with pytest.raises(ChatError, match=r"image input is not supported .* provide the mmproj"):
        chatting.count_chat([picture])
    with pytest.raises(ValueError, match="media_path is for images and audio: give mmproj"):
        chatting.count_chat([USER], media_path=".")


def test_tools_that_the_template_does_not_show(chatting: Chatting) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    with pytest.warns(GGUFWarning, match="the chat template does not show the tools") as caught:
        chatting.apply_chat_template([USER], tools=tools, chat_template="known:chatml")
    assert caught[0].filename == __file__


def test_a_template_is_a_text_a_name_or_a_file(chatting: Chatting, tmp_path: Path) -> None:
    path = tmp_path / "t.jinja"
    path.write_text("{{ messages[0].content }}!", encoding="utf-8")
    assert chatting.apply_chat_template([USER], chat_template=path, tokenize=False) == "hi!"
    assert (
        chatting.apply_chat_template([USER], chat_template="one\nline more", tokenize=False)
        == "one\nline more"
    )
    assert chatting.apply_chat_template([USER], chat_template="", tokenize=False) == "hi"  # the model's
    with pytest.raises(FileNotFoundError):
        chatting.apply_chat_template([USER], chat_template=tmp_path / "nope.jinja")
    (tmp_path / "empty.jinja").touch()
    with pytest.raises(ValueError, match="is empty, so it has no chat template"):
        chatting.apply_chat_template([USER], chat_template=tmp_path / "empty.jinja")
    for given, problem in [
        ("llama3", "'llama3' is neither the text of a template nor the name of one; near: known:"),
        ("  ", "'  ' is neither the text"),
        ("nope.jinja", "'nope.jinja' is neither the text"),
        (str(path), "is the path of a file, not a template; as a pathlib.Path, it is opened"),
    ]:
        with pytest.raises(ValueError, match=problem):
            chatting.apply_chat_template([USER], chat_template=given, tokenize=False)


def test_of_a_file_no_more_is_read_than_a_template_may_have(chatting: Chatting, tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text("é" * MOST_SOURCE, encoding="utf-8")
    for path in (tmp_path / "t.jinja", *filter(Path.exists, [Path("/dev/zero")])):
        with pytest.raises(ValueError, match="has more than 1,048,576 bytes, too many for a chat template"):
            chatting.apply_chat_template([USER], chat_template=path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe")
def test_a_template_that_can_be_read_once(chatting: Chatting, tmp_path: Path) -> None:
    """Warnings, names of arguments and the prompt are of one reading."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("{{ messages[0].content }}{{ a }}",))
    writer.start()
    assert chatting.apply_chat_template([USER], chat_template=pipe, tokenize=False, a="!") == "hi!"
    writer.join()


@pytest.mark.parametrize("message", [("user", "hi"), "hi", None])
def test_a_message_that_is_no_mapping(chatting: Chatting, message: Any) -> None:
    kind = type(message).__name__
    with pytest.raises(ChatError, match=rf"messages\[1\] is of type {kind}; a message is a mapping, such as"):
        chatting.apply_chat_template(UserList([USER, message]))


def test_repr_of_chats(chatting: Chatting) -> None:
    assert repr(chatting.chats) == "<Chats: 2 templates in the model>"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda chats: pickle.loads(pickle.dumps(chats))])
def test_chats_can_be_copied_and_pickled(copied: Callable[[Chats], Chats], chatting: Chatting) -> None:
    body = {"messages": [USER]}
    assert chatting.chats.prompt(body) == copied(chatting.chats).prompt(body) == b"hi"


@pytest.mark.parametrize("given", [None, ""])
def test_without_a_template_the_prompt_is_chatml(given: str | None) -> None:
    bare = Chatting(None)
    assert (bare.chat_templates, bare.chat_template) == ({}, None)
    with pytest.warns(GGUFWarning, match="the model has no chat template, so this prompt is ChatML"):
        prompt = bare.apply_chat_template([USER], chat_template=given, tokenize=False)
    assert prompt == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"chat_template": 5}, "chat_template must be a string, a path or None, not int"),
        ({"chat_template_kwargs": 5}, "chat_template_kwargs must be a mapping or None, not int"),
        ({"add_generation_prompt": "no"}, "add_generation_prompt must be True or False, not 'no'"),
        ({"add_generation_prompt": 1}, "add_generation_prompt must be True or False, not int"),
        ({"tokenize": "no"}, "tokenize must be True or False, not 'no'"),
        ({"tokenize": None}, "tokenize must be True or False, not None"),
        ({"now": "2026-07-01"}, "now must be a datetime or None, not str"),
        ({"now": 0, "return_assistant_mask": True}, "now must be a datetime or None, not int"),
        ({"return_assistant_mask": "content"}, "return_assistant_mask must be .* not 'content'"),
        ({"return_assistant_mask": [["content"]]}, r"return_assistant_mask must be .* not \[\['content'\]\]"),
        (
            {"return_assistant_mask": [1, "end", None]},
            r"return_assistant_mask must be .* not \[1, 'end', None\]",
        ),
    ],
)
def test_an_argument_of_another_type_is_named(given: dict[str, Any], words: str, chatting: Chatting) -> None:
    with pytest.raises(TypeError, match=f"^{words}$"):
        chatting.apply_chat_template([USER], **given)


def test_a_continuation_says_that_it_needs_no_generation_prompt(chatting: Chatting) -> None:
    chat = [USER, {"role": "assistant", "content": "so"}]
    with pytest.raises(ChatError, match=r"to true\. .* pass add_generation_prompt=False\.$"):
        chatting.apply_chat_template(chat, continue_final_message=True)
    chatting.apply_chat_template(chat, continue_final_message=True, add_generation_prompt=False)
