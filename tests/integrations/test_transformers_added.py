"""transformers: `add_bos_token` and `add_eos_token` decide what is added around texts, as in fast tokenizers."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from conftest import GPT2, ROOT
from integration_cases import END, TOK, both, library, real

transformers = library("transformers")

from ggufbpe.integrations.transformers import GGUFTokenizer  # noqa: E402 - after its library

CALLS = [("Hello world",), ("Hello world", "How are you?"), ("",)]
FLAGS = [(False, False), (False, True), (True, False), (True, True)]


@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "llama-spm"])
def test_the_ids_are_those_of_a_fast_tokenizer(name: str, tmp_path: Path) -> None:
    path = ROOT / ".cache" / "vocabs" / f"ggml-vocab-{name}.gguf"
    made, _ = both(path, tmp_path)
    for add_bos, add_eos in FLAGS:
        flags = {"add_bos_token": add_bos, "add_eos_token": add_eos}
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, **flags)
        ours = GGUFTokenizer.from_gguf(path, **flags)
        made.add_bos_token, made.add_eos_token = add_bos, add_eos
        for each in (ours, made):
            assert (each.add_bos_token, each.add_eos_token) == (add_bos, add_eos)
            assert [each(*call)["input_ids"] for call in CALLS] == [
                theirs(*call)["input_ids"] for call in CALLS
            ]


def test_the_file_decides_unless_told_otherwise() -> None:
    made = GGUFTokenizer(TOK)
    assert (made.tok, made.add_bos_token, made.add_eos_token) == (TOK, False, False)
    made.add_eos_token = False
    assert made.tok is TOK
    made.add_eos_token = True
    assert made.tok == TOK.with_overrides({"tokenizer.ggml.add_eos_token": True})
    assert made("Hello world", return_special_tokens_mask=True)["special_tokens_mask"] == [0, 0, 1]


def test_saved_copied_and_pickled(tmp_path: Path) -> None:
    made = GGUFTokenizer.from_gguf(GPT2, add_bos_token=True)
    made.add_eos_token = True
    made.save_pretrained(tmp_path)
    for found in (
        GGUFTokenizer.from_pretrained(tmp_path),
        transformers.AutoTokenizer.from_pretrained(tmp_path),
        pickle.loads(pickle.dumps(made)),
        copy.deepcopy(made),
    ):
        assert (found.add_bos_token, found.add_eos_token) == (True, True)
        assert found("Hello world")["input_ids"] == [END, 15496, 995, END]
    found = GGUFTokenizer.from_pretrained(tmp_path, add_bos_token=False)
    assert found("Hello world")["input_ids"] == [15496, 995, END]


def test_what_llama_cpp_would_not_heed_is_refused() -> None:
    """BERT has CLS and SEP around every text."""
    made = GGUFTokenizer(real("bert-bge"), add_bos_token=True)
    assert (made.add_bos_token, made.add_eos_token) == (True, True)
    with pytest.raises(
        ValueError, match=r"add_bos_token = False has no effect: llama\.cpp always adds a token before a text"
    ):
        made.add_bos_token = False
    assert made("Hello")["input_ids"] == made.tok.encode("Hello")
