"""transformers as an oracle of chats, with a made-up package in its place; tests/integrations has the real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_models import small_tokenizer

from ggufbpe import Tokenizer
from ggufbpe._util.errors import RemoteNotFoundError
from ggufbpe.analysis.oracles.chat_answers import Prompt, Refused
from ggufbpe.analysis.oracles.oracle import Failure, OracleError
from ggufbpe.analysis.oracles.transformers_oracle import (
    TransformersOracle,
    arguments_of,
    folder_of_repository,
)
from ggufbpe.hub.remote import huggingface

ASKED = {"role": "user", "content": "Hi"}
ANSWERED = {"role": "assistant", "content": "Oh"}


def a_call(arguments: Any) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}


def expected(**changed: Any) -> dict[str, Any]:
    return {
        "conversation": [ASKED],
        "tools": None,
        "add_generation_prompt": True,
        "continue_final_message": False,
        **changed,
    }


BODIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "messages": ({"messages": [ASKED]}, expected()),
    "no generation prompt": (
        {"messages": [ASKED], "add_generation_prompt": False},
        expected(add_generation_prompt=False),
    ),
    "a begun answer": (
        {"messages": [ASKED, ANSWERED]},
        expected(conversation=[ASKED, ANSWERED], add_generation_prompt=False, continue_final_message=True),
    ),
    "a field that is continued": (
        {"messages": [ASKED, ANSWERED], "continue_final_message": "reasoning_content"},
        expected(
            conversation=[ASKED, ANSWERED],
            add_generation_prompt=False,
            continue_final_message="reasoning_content",
        ),
    ),
    "tools": ({"messages": [ASKED], "tools": [{}]}, expected(tools=[{}])),
    "no tools": ({"messages": [ASKED], "tools": []}, expected()),
    "arguments": (
        {"messages": [ASKED], "chat_template_kwargs": {"a": 1, "tools": 2}, "reasoning_effort": "low"},
        expected(a=1, reasoning_effort="low"),
    ),
    "a call in JSON": (
        {"messages": [a_call('{"a": 1}'), ASKED]},
        expected(conversation=[a_call({"a": 1}), ASKED]),
    ),
    "a call that is no JSON": (
        {"messages": [a_call("{"), a_call("[1]"), ASKED]},
        expected(conversation=[a_call("{"), a_call("[1]"), ASKED]),
    ),
    "no chat": ({"messages": "Hi"}, expected(conversation="Hi")),
    "no messages": ({}, expected(conversation=None)),
}


@pytest.mark.parametrize("name", BODIES)
def test_arguments(name: str) -> None:
    body, wanted = BODIES[name]
    assert arguments_of(body) == wanted


PACKAGE = """
import time
from types import SimpleNamespace

__version__ = "5.99"

class AutoTokenizer:
    @classmethod
    def from_pretrained(cls, folder, trust_remote_code, local_files_only):
        assert (trust_remote_code, local_files_only) == (False, True)
        if "broken" in folder:
            raise ValueError("no such tokenizer")
        return cls()

    chat_template = {"default": "own", "tool_use": "for tools"}
    special_tokens_map = {"bos_token": "<s>"}
    added_tokens_decoder = {7: SimpleNamespace(content="<s>", special=True)}

    def __call__(self, text, add_special_tokens, split_special_tokens):
        return {"input_ids": [len(text), int(add_special_tokens), int(split_special_tokens)]}

    def apply_chat_template(self, conversation, tokenize, chat_template="own", **arguments):
        text = conversation[0]["content"]
        if text == "refuse":
            raise ValueError("not this one")
        if text == "hang":
            time.sleep(30)
        if text == "memory":
            return str(len(bytearray(1 << 40)))
        if text == "long":
            return "x" * ((1 << 26) + 1)
        return f"{text} by {chat_template}"
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the made-up package."""
    for module in ("", "utils/", "utils/chat_template_utils.py"):
        path = tmp_path / "transformers" / module
        file = path if path.suffix else path / "__init__.py"
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text("" if module else PACKAGE)
    (tmp_path / "transformers/utils/chat_template_utils.py").write_text("from datetime import datetime\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "folder").mkdir()
    return tmp_path


def opened(package: Path, tokenizer: Tokenizer, seconds: float = 20) -> TransformersOracle:
    return TransformersOracle(str(package / "folder"), tokenizer, seconds)


def chat(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def test_what_it_has_and_answers(package: Path) -> None:
    with opened(package, small_tokenizer()) as oracle:
        assert isinstance(oracle, TransformersOracle)
        assert oracle.name == "transformers 5.99 with folder"
        assert oracle.chat_templates() == {"": "own", "tool_use": "for tools"}
        assert (oracle.special_tokens, oracle.added_tokens) == ({"bos_token": "<s>"}, {7: ("<s>", True)})
        assert oracle.chat(chat("Hi")) == Prompt(b"Hi by own")
        assert oracle.chat(chat("Hi"), "another") == Prompt(b"Hi by another")
        assert oracle.chat(chat("refuse")) == Refused("ValueError: not this one")
        long = oracle.chat(chat("long"))
        assert isinstance(long, Refused)
        assert "67108865 characters" in long.reason
        assert oracle.encode([b"Hi by own", b"x"], True, True) == [[9, 0, 0], [1, 0, 0]]


def test_limits(package: Path) -> None:
    with opened(package, small_tokenizer(), 2) as oracle:
        assert oracle.chat(chat("hang")) == Failure("timeout", "no answer within 2 s")
        assert oracle.chat(chat("memory")) == Refused("MemoryError: ")
        assert oracle.chat(chat("Hi")) == Prompt(b"Hi by own")  # it goes on


def test_bos_that_the_template_writes(package: Path) -> None:
    """Prompts have no BOS that our tokenizer adds, and texts are encoded with the one of the template."""
    tokenizer = small_tokenizer()
    bos = tokenizer.chats.ends.bos.decode()
    with opened(package, tokenizer) as oracle:
        found = oracle.chat(chat(f"{bos}Hi"))
        is_added = tokenizer.chats.ends.adds_bos
        assert found == Prompt(f"{'' if is_added else bos}Hi by own".encode())
        assert oracle.encode([b"x"], True, True) == [[1 + len(bos) * is_added, 0, 0]]


def test_folders_that_cannot_be_opened(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OracleError, match=r"transformers cannot open this: .*no such tokenizer"):
        TransformersOracle(str(package / "broken"), small_tokenizer(), 20)
    (package / "transformers" / "__init__.py").write_text("import nowhere_at_all")
    with pytest.raises(OracleError, match=r"transformers is not installed .*ggufbpe\[transformers\]"):
        opened(package, small_tokenizer())


@pytest.mark.parametrize(
    ("there", "asked_last"),
    [
        (("tokenizer_config.json", "tokenizer.json"), "additional_chat_templates/tool_use.jinja"),
        (("tokenizer_config.json", "tokenizer.model"), "tokenizer.model"),
        (("tokenizer_config.json",), "vocab.json"),
    ],
)
def test_files_of_a_repository(
    there: tuple[str, ...], asked_last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def downloaded(name: Any, file: str, *, offline: bool = False) -> str:
        asked.append(file)
        if file not in there:
            raise RemoteNotFoundError("no such file")
        return f"/cache/{name.repository}/{file}"

    monkeypatch.setattr(huggingface, "downloaded", downloaded)
    assert folder_of_repository("hf:org/model") == "/cache/org/model"
    assert (asked[0], asked[-1]) == ("tokenizer_config.json", asked_last)


@pytest.mark.parametrize(
    "name", ["ollama:llama3", "no/such/folder", "/nowhere", "hf:org/model:Q4_0", "hf:", "x"]
)
def test_names_that_are_no_repository(name: str) -> None:
    with pytest.raises(OracleError, match="neither a folder nor a repository"):
        folder_of_repository(name)
