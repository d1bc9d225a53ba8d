"""The page of symptoms: for a model with each defect, the command of its row prints what the row says to look for."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from commands import Run, run
from conftest import GPT2, ROOT, missing
from reference import CHATS, NotPreparedError, library
from tensors_by_hand import Tensor, model_with

import ggufbpe

PAGE = (ROOT / "docs" / "for" / "symptoms.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| what you see"))
]
__all__ = ["run"]  # a fixture
DOCTOR = "ggufbpe doctor model.gguf --verbose"

CHATML = {"<|im_start|>": "CONTROL", "<|im_end|>": "CONTROL"}
CHAT = '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}\n'

MESSAGES = (
    "missing pre-tokenizer type, using: 'default'",
    "GENERATION QUALITY WILL BE DEGRADED!",
    "unknown pre-tokenizer type",
    "control token: … is not marked as EOG",
    "control-looking token … was not control-type",
    "special_eos_id is not in special_eog_ids",
    "Added a BOS token to the prompt",
    "starts with 2 BOS tokens",
)


def template_with_end(end: str) -> str:
    """ChatML with another end of each turn."""
    return (
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + 'END\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
    ).replace("END", end)


# By the beginning of a row: what makes a model with that symptom of GPT-2's vocabulary, beside ChatML.
BROKEN: dict[str, dict[str, Any]] = {
    "`missing pre-tokenizer type": {"remove": ["tokenizer.ggml.pre"]},
    "`unknown pre-tokenizer type": {"set": {"tokenizer.ggml.pre": "gpt-99"}, "force": True},
    "Bad at numbers": {"set": {"tokenizer.ggml.pre": "qwen2"}},
    "`tensor 'token_embd": {"bytes": model_with([Tensor("token_embd.weight", (5, 9))])},
    "Answers of a fine": {"add_tokens": {**CHATML, "Section 5A": "CONTROL"}},
    "Nonsense, or": {"set": {"general.name": "Mine 7b chat"}, "chat_template": None},
    "`control token": {},
    "`'tokenizer.ggml.add_eos": {"set": {"gpt2.pooling_type": 3}},
    "The model repeats": {"add_tokens": {"<|im_start|>": "NORMAL", "<|im_end|>": "CONTROL"}},
    "Chats go wrong": {"add_tokens": {}},
    "Answers never stop": {
        "add_tokens": {**CHATML, "<|stop|>": "CONTROL"},
        "chat_template": template_with_end("<|stop|>"),
    },
    "`special_eos_id": {
        "add_tokens": {**CHATML, "<|done|>": "CONTROL"},
        "set": {"tokenizer.ggml.eos_token_id": 50259},
    },
    "`Added a BOS": {
        "set": {"tokenizer.ggml.add_bos_token": True},
        "chat_template": "{{ bos_token }}" + template_with_end("<|im_end|>"),
    },
    "A template error": {
        "chat_template": template_with_end("<|im_end|>") + "{% if tools %}{{ tools | fancy }}{% endif %}"
    },
    "The model never calls": {},
    "Ids or counts differ": {"set": {"tokenizer.ggml.pre": "qwen2"}},
    "Ids differ from those": {"set": {"tokenizer.ggml.pre": "qwen2"}},
    "Broken umlauts": {},
    "Thinking is missing": {"chat_template": "known:Qwen-QwQ-32B"},
    "A fine-tune": {"add_tokens": {}},
}
ELSEWHERE = "Answers differ from Ollama's"  # docs/chat.md runs the command of this row


def texts(cell: str) -> list[str]:
    """What a cell of the table has as code."""
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:24])
def test_command_of_a_row_shows_the_cause(
    row: list[str], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if row[0] == ELSEWHERE:
        assert texts(row[2])[0] in (ROOT / "docs" / "chat.md").read_text(encoding="utf-8").replace('"', "")
        return
    begun_so = [beginning for beginning in BROKEN if row[0].startswith(beginning)]
    assert len(begun_so) == 1, "a key of BROKEN is the beginning of one row, and each row has one"
    changes = BROKEN[begun_so[0]]
    monkeypatch.chdir(tmp_path)
    if "bytes" in changes:
        Path("model.gguf").write_bytes(changes["bytes"])
    else:
        ggufbpe.fix(GPT2, "model.gguf", **{"add_tokens": CHATML, "chat_template": "known:chatml", **changes})
    Path("chats.jsonl").write_text(CHAT)
    if "original" in row[2]:
        run("export", GPT2, "--to", "tokenizer.json", "-o", "original")
    command = texts(row[2])[0] if len(row) == 4 else DOCTOR
    result = run(*shlex.split(command)[1:])
    shown = result.out.decode(errors="replace") + result.err
    assert [text for text in texts(row[-1]) if text not in shown] == []


def test_each_made_model_is_of_a_row() -> None:
    assert len(ROWS) == len(BROKEN) + 1
    assert DOCTOR in PAGE


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_of_llama_cpp_are_as_it_writes_them(message: str) -> None:
    try:
        text = library(CHATS).read_bytes()
    except NotPreparedError as error:
        missing(str(error))
    for part in message.split(" … "):
        assert part in PAGE
        assert part.encode() in text
