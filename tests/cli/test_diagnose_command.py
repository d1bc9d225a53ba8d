"""`ggufbpe diagnose` says whether ids or a prompt are the model's, and why not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run, call
from conftest import GPT2
from small_models import CHATML, K, small_keys, small_model

from ggufbpe import Tokenizer
from ggufbpe.cli import diagnose
from ggufbpe.cli._arguments import UsageError

__all__ = ["call", "small_model"]  # fixtures

EOS = small_keys()[K.EOS_ID]
HELLO = small_keys()[K.LIST].index("hello")


@pytest.mark.parametrize(
    "ids",
    [
        f"[{HELLO}, 33]",
        f"{HELLO} 33",
        f" {HELLO},33 ",
        f'{{"input_ids": [{HELLO}, 33], "attention_mask": [1, 1]}}',
        f" {HELLO} -> 'hello'\n    33 -> '!'\n",
    ],
)
def test_the_models_own_ids(ids: str, call: Run, small_model: Path) -> None:
    found = call(diagnose, "-m", small_model, "-p", "hello!", "--ids", ids)
    assert (found.code, found.out) == (0, b"match: the model gives these 2 ids\n")


def test_other_ids(call: Run, small_model: Path) -> None:
    found = call(diagnose, "-m", small_model, "-p", "hello!", "--ids", f"[{HELLO}, 33, {EOS}]")
    lines = found.text.splitlines()
    assert found.code == 1
    assert lines[0].startswith("no match: the model gives 2 ids, and you gave 3; ")
    assert lines[0].endswith("the first difference is at index 2")
    assert lines[1].split() == ["model", str(HELLO), "'hello'", "33", "'!'", "(end)"]
    assert lines[2].split() == [
        "given",
        str(HELLO),
        "'hello'",
        "33",
        "'!'",
        str(EOS),
        "'<|im_end|>'",
        "(end)",
    ]
    assert "1. eos: explains all ids" in lines
    # its chat template would then end prompts with the token that ends answers
    assert "ggufbpe fix" not in found.text
    assert "Prompts end with the token that ends answers" in " ".join(found.text.split())


def test_json(call: Run, small_model: Path) -> None:
    found = call(diagnose, "-m", small_model, "-p", "hello!", "--ids", f"[{HELLO}]", "--json")
    said = json.loads(found.out)
    assert (found.code, said["match"]) == (1, False)
    assert [cause["id"] for cause in said["explanations"][0]["causes"]] == ["truncated"]


def test_where_texts_and_ids_come_from(
    call: Run, small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, ids = tmp_path / "text.txt", tmp_path / "ids.json"
    text.write_bytes(b"hello!")
    ids.write_text(f"[{HELLO}, 33]")
    model = ("-m", small_model)
    assert call(diagnose, *model, "-f", text, "--ids", ids).code == 0
    assert call(diagnose, *model, "--stdin", "--ids", ids, stdin=b"hello!").code == 0
    monkeypatch.chdir(tmp_path)
    ids.rename("[draft].json")
    ids = tmp_path / "[draft].json"
    assert call(diagnose, *model, "-f", text, "--ids", ids.name).code == 0
    assert call(diagnose, *model, "-f", text, "--ids", "-", stdin=ids.read_bytes()).code == 0
    assert call(diagnose, *model, "-p", r"hello\x21", "--escape", "--ids", ids).code == 0
    assert call(diagnose, *model, "-p", r"hello\x21", "--ids", ids).code == 1


def test_chats(call: Run, small_model: Path, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "hello"}]
    chat, prompt = tmp_path / "chat.json", tmp_path / "prompt.txt"
    chat.write_text(json.dumps(messages))
    own = Tokenizer.from_gguf(small_model).chats.prompt({"messages": messages}, CHATML)
    prompt.write_bytes(own)
    given = ("-m", small_model, "--chat", chat)
    found = call(diagnose, *given, "--expected-prompt", prompt)
    assert (found.code, found.text) == (0, f"match: the model gives this prompt of {len(own)} bytes\n")
    ids = Tokenizer.from_gguf(small_model).encode(own)
    assert call(diagnose, *given, "--ids", str(ids)).code == 0
    prompt.write_bytes(own.removesuffix(b"<|im_start|>assistant\n"))
    found = call(diagnose, *given, "--expected-prompt", prompt)
    assert found.code == 1
    assert "1. generation_prompt: explains the whole prompt" in found.text


@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")  # of a wrong pre-tokenizer
def test_explanations_that_differ_in_names_alone_are_counted(call: Run) -> None:
    qwen = ["--override-kv", "tokenizer.ggml.pre=str:qwen2"]
    found = call(diagnose, "-m", GPT2, *qwen, "-p", "Count 12345", "--ids", "12332 17031 2231")
    assert "… 1 more explanation fits equally well; --json lists all" in found.text.splitlines()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (["-p", "a"], UsageError, "which ids"),
        ([str(Path(__file__).parent)], UsageError, "is a directory; diagnose takes one file: -f FILE"),
        (["--ids", "[1]"], UsageError, "give one text"),
        (["--stdin", "--ids", "-"], UsageError, "only one of text and ids can come from standard input"),
        (["-p", "a", "--ids", "[[1], [2]]"], ValueError, "has the ids of 2 texts"),
        (["-p", "a", "--ids", "[1.5]"], ValueError, "--ids: 1.5 is not a token id"),
        (["-p", "a", "--ids", __file__], ValueError, "command.py: .* is not a token id"),
        (["--expected-prompt", "x"], UsageError, "needs a chat"),
        (["--chat", "x"], UsageError, "--chat needs either --ids or --expected-prompt"),
        (["--chat", "x", "--ids", "[1]", "-p", "a"], UsageError, "give a text or --chat, not both"),
        (["--chat", "x", "--ids", "[1]", "--no-bos"], UsageError, "special tokens are always added"),
        (["--chat", "-", "--ids", "-"], UsageError, "only one of chat, ids and prompt"),
    ],
)
def test_arguments_that_make_no_sense(
    arguments: list[str], error: type[Exception], words: str, call: Run, small_model: Path
) -> None:
    with pytest.raises(error, match=words):
        call(diagnose, "-m", small_model, *arguments)
