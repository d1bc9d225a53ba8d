"""merges.txt and vocab.json: two files beside each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ggufbpe.convert.exporters.hf_config import HFConfig
from ggufbpe.convert.imported import NotImportableError
from ggufbpe.convert.importers.import_merges import import_merges, is_merges, merges_beside
from ggufbpe.models.bpe.merge import BYTE_CHARS

VOCAB = {text: index for index, text in enumerate([*BYTE_CHARS, "ab", "<|endoftext|>"])}


def written(folder: Path, merges: str = "#version: 0.2\na b\n", vocab: Any = VOCAB) -> str:
    """The path of a merges.txt, with a vocab.json beside it."""
    (folder / "vocab.json").write_text(json.dumps(vocab))
    path = folder / "merges.txt"
    path.write_text(merges, newline="")
    return str(path)


NAMES: list[tuple[dict[str, Any], str, str | None, str]] = [
    # the configuration, the first line, the given name: the pre-tokenizer
    ({}, "#version: 0.2", None, "gpt-2"),
    ({"tokenizer_class": "Qwen2TokenizerFast"}, "#version: 0.2", None, "qwen2"),
    ({}, "#version: 0.2 tokenizer.ggml.pre=llama-bpe", None, "llama-bpe"),
    ({"gguf": {"tokenizer.ggml.pre": "falcon"}}, "#version tokenizer.ggml.pre=llama-bpe", None, "falcon"),
    ({"tokenizer_class": "Qwen2Tokenizer"}, "#version: 0.2", "llama-bpe", "llama-bpe"),
]


@pytest.mark.parametrize(("config", "head", "pre", "name"), NAMES)
def test_the_pre_tokenizer(
    tmp_path: Path, config: dict[str, Any], head: str, pre: str | None, name: str
) -> None:
    read = import_merges(written(tmp_path, f"{head}\r\na b\r\n"), HFConfig(config), pre=pre)
    assert read.pre == name
    assert read.metadata["tokenizer.ggml.merges"] == ["a b"]
    assert read.metadata["tokenizer.ggml.tokens"] == list(VOCAB)


def test_without_settings_special_looks_count(tmp_path: Path) -> None:
    path = written(tmp_path)
    types = import_merges(path, HFConfig({})).metadata["tokenizer.ggml.token_type"]
    assert types[VOCAB["<|endoftext|>"]] == 3
    named = import_merges(path, HFConfig({"tokenizer_class": "GPT2Tokenizer"})).metadata
    assert named["tokenizer.ggml.eos_token_id"] == VOCAB["<|endoftext|>"]
    added = import_merges(path, HFConfig({"pad_token": "<pad>", "bos_token": "<|endoftext|>"})).metadata
    assert added["tokenizer.ggml.tokens"][-1] == "<pad>"  # a named token without an id gets the next
    assert added["tokenizer.ggml.padding_token_id"] == len(VOCAB)


def test_the_first_line_of_our_own_export_is_no_file_beside_it(tmp_path: Path) -> None:
    head = "#version: 0.2 - tokenizer.ggml.model=gpt2 tokenizer.ggml.pre=gpt-2"
    read = import_merges(written(tmp_path, f"{head}\na b\n"), HFConfig({}))
    assert read.metadata["tokenizer.ggml.token_type"][VOCAB["<|endoftext|>"]] == 3
    assert "special_tokens" not in {limit.name for limit in read.limits}


@pytest.mark.parametrize(
    ("pre", "written_flag", "lowercase"),
    [("gpt-2", "", True), ("gpt-2", "false", False), ("whitespace", "", False), ("whitespace", "true", True)],
)
def test_the_first_line_gives_lower_case(
    tmp_path: Path, pre: str, written_flag: str, lowercase: bool
) -> None:
    head = f"#version: 0.2 - tokenizer.ggml.model=whitespace tokenizer.ggml.pre={pre}"
    flag = f" tokenizer.ggml.normalizer.lowercase={written_flag}" if written_flag else ""
    metadata = import_merges(written(tmp_path, f"{head}{flag}\na b\n"), HFConfig({})).metadata
    assert metadata["tokenizer.ggml.model"] == "whitespace"
    assert metadata["tokenizer.ggml.normalizer.lowercase"] is lowercase


def test_the_first_line_gives_special_ids(tmp_path: Path) -> None:
    vocab = {**VOCAB, "</s>": len(VOCAB)}
    path = written(tmp_path, f"#version: 0.2 - tokenizer.ggml.eos_token_id={len(VOCAB)}\na b\n", vocab)
    metadata = import_merges(path, HFConfig({})).metadata
    assert metadata["tokenizer.ggml.eos_token_id"] == len(VOCAB)
    assert metadata["tokenizer.ggml.token_type"][len(VOCAB)] == 3
    named = import_merges(path, HFConfig({"eos_token": "<|endoftext|>"})).metadata
    assert named["tokenizer.ggml.eos_token_id"] == VOCAB["<|endoftext|>"]  # the file beside it comes first
    for damaged in ("x", "-1", "99999"):
        path = written(tmp_path, f"#version: 0.2 - tokenizer.ggml.eos_token_id={damaged}\na b\n", vocab)
        assert "tokenizer.ggml.eos_token_id" not in import_merges(path, HFConfig({})).metadata


def test_a_class_that_puts_ends_around_a_text(tmp_path: Path) -> None:
    vocab = {**VOCAB, "<s>": len(VOCAB), "</s>": len(VOCAB) + 1}
    config = HFConfig({"tokenizer_class": "RobertaTokenizer"})
    metadata = import_merges(written(tmp_path, vocab=vocab), config).metadata
    assert metadata["tokenizer.ggml.bos_token_id"] == vocab["<s>"]
    assert metadata["tokenizer.ggml.add_bos_token"] is True
    assert metadata["tokenizer.ggml.add_eos_token"] is True
    assert metadata["tokenizer.ggml.eos_token_id"] == vocab["</s>"]


def test_tokens_that_nothing_explains(tmp_path: Path) -> None:
    read = import_merges(written(tmp_path, vocab={**VOCAB, "cd": len(VOCAB)}), HFConfig({}))
    [limit] = [limit for limit in read.limits if limit.name == "special_tokens"]
    assert (limit.number, "no merge makes 'cd'" in limit.what) == (1, True)
    assert "it becomes a normal token, which llama.cpp does not find in texts unless" in limit.what


REFUSED: dict[str, tuple[str, Any]] = {
    "line 2, 'a b c', is not two tokens": ("#version\na b c\n", VOCAB),
    "line 1, 'ab', is not two tokens": ("ab\n", VOCAB),
    "its tokens mark the end of a word with '</w>'": ("a b\n", {f"{chr(97 + n)}</w>": n for n in range(8)}),
    "its tokens are not bytes in GPT-2's alphabet": (
        "a b\n▁ ab\n日 本\n",
        {"a": 0, "b": 1, "ab": 2, "▁": 3, "▁ab": 4},
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(tmp_path: Path, message: str) -> None:
    merges, vocab = REFUSED[message]
    with pytest.raises(NotImportableError) as refusal:
        import_merges(written(tmp_path, merges, vocab), HFConfig({}))
    assert message in str(refusal.value)


def test_the_other_file(tmp_path: Path) -> None:
    path = Path(written(tmp_path))
    assert merges_beside(str(tmp_path / "vocab.json")) == str(path)
    assert is_merges(str(path))
    renamed = path.rename(tmp_path / "other.txt")
    assert is_merges(str(renamed))  # by its first line
    assert not is_merges(str(tmp_path / "vocab.json"))
    with pytest.raises(NotImportableError, match=r"is half of a vocabulary: its merges are in a merges\.txt"):
        merges_beside(str(tmp_path / "vocab.json"))
