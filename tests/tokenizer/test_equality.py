"""Tokenizers are equal by their fingerprints, whichever engine runs and wherever their files lie."""

from __future__ import annotations

import copy
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import GPT2, RAW_UTF8
from synthetic import make_vocabulary

from ggufbpe import Tokenizer
from ggufbpe.models.loading import load_vocabulary

PRE = "tokenizer.ggml.pre"


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.from_gguf(GPT2)


EQUAL: dict[str, Callable[[Tokenizer], Tokenizer]] = {  # what is made of a tokenizer and equal to it
    "itself": lambda tok: tok,
    "empty overrides": lambda tok: tok.with_overrides({}),
    "an override by the file's own value": lambda tok: tok.with_overrides({PRE: tok.pre}),
    "opened again": lambda tok: Tokenizer.from_gguf(GPT2),
    "the other engine": lambda tok: Tokenizer.from_gguf(GPT2, engine="reference"),
    "another cache": lambda tok: Tokenizer.from_gguf(GPT2, cache_bytes=1 << 20),
    "a copy": copy.copy,
    "a deep copy": copy.deepcopy,
    "a pickle": lambda tok: pickle.loads(pickle.dumps(tok)),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_tokenizers(name: str, tok: Tokenizer) -> None:
    other = EQUAL[name](tok)
    assert tok == other
    assert hash(tok) == hash(other)
    assert len({tok, other}) == 1


@pytest.mark.parametrize("name", ["a copy", "a deep copy", "a pickle"])
def test_equal_tokenizers_of_a_vocabulary_that_was_made(name: str) -> None:
    tok = Tokenizer(make_vocabulary(["ab", "abc"], merges=["a b", "ab c"]))
    other = EQUAL[name](tok)
    assert (tok == other, hash(tok) == hash(other)) == (True, True)
    assert tok == Tokenizer(make_vocabulary(["ab", "abc"], merges=["a b", "ab c"]))
    assert tok != Tokenizer(make_vocabulary(["ab", "abc"], merges=["a b"]))


def test_equal_pickles_have_the_same_engine_and_cache(tok: Tokenizer, tmp_path: Path) -> None:
    other = Tokenizer.from_gguf(shutil.copy(GPT2, tmp_path / "other.gguf"))
    assert pickle.dumps(tok) == pickle.dumps(other)
    for another in (Tokenizer.from_gguf(GPT2, "reference"), Tokenizer.from_gguf(GPT2, cache_bytes=1 << 20)):
        assert (tok == another, pickle.dumps(tok) == pickle.dumps(another)) == (True, False)
    assert pickle.loads(pickle.dumps(tok)).name == ""


def test_a_file_elsewhere_is_equal(tok: Tokenizer, tmp_path: Path) -> None:
    assert tok == Tokenizer.from_gguf(shutil.copy(GPT2, tmp_path / "other.gguf"))


UNEQUAL: dict[str, Callable[[Tokenizer], object]] = {
    "another flag": lambda tok: tok.with_overrides({"tokenizer.ggml.add_bos_token": True}),
    "another end": lambda tok: tok.with_overrides({"tokenizer.ggml.eos_token_id": 5}),
    "a chat template": lambda tok: tok.with_overrides({"tokenizer.chat_template": "{{ messages }}"}),
    "another state of llama.cpp": lambda tok: tok.with_llama_cpp("b11549"),
    "another model": lambda tok: Tokenizer(load_vocabulary(RAW_UTF8)),
    "a text": lambda tok: "a text",
    "nothing": lambda tok: None,
}


@pytest.mark.parametrize("name", UNEQUAL)
def test_unequal_tokenizers(name: str, tok: Tokenizer) -> None:
    other = UNEQUAL[name](tok)
    assert (tok == other, tok != other) == (False, True)


def test_tokenizers_are_keys_of_a_dict(tok: Tokenizer) -> None:
    older = tok.with_llama_cpp("b11549")
    names = {tok: "newest", older: "older"}
    for copied in (copy.copy, copy.deepcopy, lambda found: pickle.loads(pickle.dumps(found))):
        assert (names[copied(tok)], names[copied(older)]) == ("newest", "older")
    assert Tokenizer.from_gguf(RAW_UTF8) not in names
