"""What adapters share: the error without a library, and the tokens that end a generation."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from conftest import ROOT
from integration_cases import TOK, library

from ggufbpe import NotInstalledError, Tokenizer
from ggufbpe.integrations._protocol import eos_id, stop_ids

ADAPTERS: dict[str, tuple[str, str, tuple[Any, ...]]] = {  # the library's module, and what is called of ours
    "chonkie": ("chonkie.tokenizer", "tokenizer", (TOK,)),
    "guidance": ("guidance.models._engine._tokenizer", "tokenizer", (TOK,)),
    "langchain": ("langchain_text_splitters", "text_splitter", (TOK,)),
    "llama_cpp": ("llama_cpp.llama_tokenizer", "Tokenizer", (TOK,)),
    "llguidance": ("llguidance", "ll_tokenizer", (TOK,)),
    "lm_format_enforcer": ("lmformatenforcer", "tokenizer_data", (TOK,)),
    "mistral_common": ("mistral_common.tokens.tokenizers.base", "tokenizer", (TOK,)),
    "outlines": ("outlines_core", "vocabulary", (TOK,)),
    "semantic_text_splitter": ("semantic_text_splitter", "text_splitter", (TOK, 64)),
    "tiktoken": ("tiktoken", "encoding", (TOK,)),
    "transformers": ("transformers", "GGUFTokenizer", (TOK,)),
    "vllm": ("vllm", "register", ()),
    "xgrammar": ("xgrammar", "tokenizer_info", (TOK,)),
}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_error_without_a_library_names_the_adapter(adapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, arguments = ADAPTERS[adapter]
    if adapter == "vllm":
        library("transformers")
    name = f"ggufbpe.integrations.{adapter}"
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(NotInstalledError, match=rf"^{re.escape(name)} needs the package .*pip install"):
        getattr(import_module(name), function)(*arguments)


@pytest.mark.parametrize(
    ("adapter", "function"),
    [
        *(
            (name, function)
            for name, (_, function, given) in ADAPTERS.items()
            if given and name != "transformers"
        ),
        *(("litellm", "custom_tokenizer"), ("llama_index", "tokenizer"), ("outlines", "tokenizer")),
    ],
)
def test_a_path_is_no_tokenizer(adapter: str, function: str) -> None:
    library(
        ADAPTERS[adapter][0] if adapter in ADAPTERS else adapter.replace("llama_index", "llama_index.core")
    )
    made = getattr(import_module(f"ggufbpe.integrations.{adapter}"), function)
    arguments = ADAPTERS.get(adapter, ("", "", (TOK,)))[2]
    with pytest.raises(TypeError, match=r"must be a Tokenizer, not str; Tokenizer.from_gguf\(path\)"):
        made("model.gguf", *arguments[1:])


@pytest.mark.parametrize(
    ("eos", "eog", "expected"),
    [(7, {3, 7, 5}, [7, 3, 5]), (None, {5, 3}, [3, 5]), (7, {3}, [3]), (7, set(), [])],
    ids=["EOS comes first", "without EOS", "an EOS that does not end a generation", "none"],
)
def test_stop_ids(eos: int | None, eog: set[int], expected: list[int]) -> None:
    """llama.cpp ends a generation by the end-of-generation tokens alone: see llama_vocab_is_eog."""
    ids = {**TOK.vocabulary.special_ids, "eos": eos}
    assert stop_ids(Tokenizer(TOK.vocabulary._replace(special_ids=ids, eog_ids=frozenset(eog)))) == expected


DECODERS: dict[
    str, tuple[str, Callable[[Any], Callable[[list[int]], Any]]]
] = {  # the library's module as above
    "chonkie": ("chonkie", lambda module: module.tokenizer(TOK).decode),
    "guidance": ("guidance", lambda module: module.tokenizer(TOK).decode),
    "llama_cpp": ("llama_cpp", lambda module: module.Tokenizer(TOK).detokenize),
    "lm_format_enforcer": ("lmformatenforcer", lambda module: module.tokenizer_data(TOK).decoder),
}


@pytest.mark.parametrize("adapter", DECODERS)
@pytest.mark.parametrize("token", [-2, 60_000])
def test_ids_out_of_range_are_refused(adapter: str, token: int) -> None:
    """A negative index would be another token."""
    module, decoder = DECODERS[adapter]
    pytest.importorskip(module) if adapter == "llama_cpp" else library(module)
    decode = decoder(import_module(f"ggufbpe.integrations.{adapter}"))
    with pytest.raises(ValueError, match=rf"token id {token} is out of range"):
        decode([15496, token])


def test_a_vocabulary_that_ends_no_generation() -> None:
    tok = Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / "eos-that-is-s-beside-rfl-parameter.gguf")
    with pytest.raises(ValueError, match="No token of this vocabulary ends a generation"):
        eos_id(tok)
