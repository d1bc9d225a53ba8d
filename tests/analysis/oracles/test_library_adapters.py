"""How other tokenizers' packages are asked, each with a tiny vocabulary of its own."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from types import SimpleNamespace
from typing import Any

import pytest

from ggufbpe.analysis.oracles.library_adapters import (
    open_sentencepiece,
    open_tiktoken,
    open_tiktoken_file,
    open_tokenizers,
)

RANKS = b"\n".join(b64encode(bytes([byte])) + b" %d" % rank for rank, byte in enumerate(b"abc <|end>"))
PATTERN, END = r"\s|\S+", {"<|end|>": 20}


def test_tiktoken_with_a_file_of_ranks() -> None:
    pytest.importorskip("tiktoken")
    adapter = open_tiktoken("mine", RANKS, PATTERN, END)
    assert (adapter.adds_special, adapter.parses_special) == (False, True)
    assert adapter.encode("ab c", True, True) == [0, 1, 3, 2]
    assert adapter.encode("a<|end|>", False, True) == [0, 20]
    assert adapter.encode("a<|end|>", False, False) == [0, 4, 5, 6, 7, 8, 5, 9]
    with pytest.raises(ValueError, match="the byte 0x7A has no token"):
        adapter.encode("abz", True, True)


def test_tiktoken_with_the_ids_of_a_model() -> None:
    """Special tokens that a model always finds, and ids in another order than the ranks."""
    pytest.importorskip("tiktoken")
    ids = list(range(100, 121))
    adapter = open_tiktoken("mine", RANKS, PATTERN, END, always=["<|end|>"], model_ids=ids)
    assert adapter.encode("a<|end|>", False, False) == [100, 120]


def test_a_name_that_tiktoken_knows_has_its_own_pattern_and_special_tokens() -> None:
    pytest.importorskip("tiktoken")
    ranks = b"\n".join(b64encode(bytes([byte])) + b" %d" % byte for byte in range(256))
    known = open_tiktoken_file("cl100k_base", ranks, PATTERN, {})
    assert known.encode("<|endoftext|>", False, True) == [100257]
    other = open_tiktoken_file("mine", ranks, PATTERN, {"<|x|>": 300, "<|y|>": 65})  # 65 is taken
    assert other.encode("<|x|>", False, True) == [300]
    assert other.encode("<|y|>", False, True) == list(b"<|y|>")


def hugging_face() -> bytes:
    """A tokenizer.json of words, which adds a token before each text, cuts to two tokens and pads to nine."""
    vocabulary = {"[UNK]": 0, "a": 1, "b": 2, "[CLS]": 3}
    special = {"id": 3, "content": "[CLS]", "single_word": False, "lstrip": False, "rstrip": False}
    added = {"id": "[CLS]", "ids": [3], "tokens": ["[CLS]"]}
    single = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    pad = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None}
    return json.dumps(
        {
            "version": "1.0",
            "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
            "padding": {**pad, "pad_id": 0, "pad_type_id": 0, "pad_token": "[UNK]"},
            "added_tokens": [{**special, "normalized": False, "special": True}],
            "normalizer": None,
            "pre_tokenizer": {"type": "Whitespace"},
            "post_processor": {
                "type": "TemplateProcessing",
                "single": single,
                "pair": single,
                "special_tokens": {"[CLS]": added},
            },
            "decoder": None,
            "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
        }
    ).encode()


def test_tokenizers() -> None:
    pytest.importorskip("tokenizers")
    adapter = open_tokenizers(hugging_face())
    assert adapter.encode("a b a b", True, True) == [3, 1, 2, 1, 2]  # neither cut off nor padded
    assert adapter.encode("a b", False, True) == [1, 2]
    assert adapter.encode("[CLS] a", False, True) == [3, 1]
    assert adapter.encode("[CLS] a", False, False) == [0, 0, 0, 1]
    with pytest.raises(Exception, match="Cannot instantiate"):
        open_tokenizers(b"nothing")


class _Version1:
    """The interface of tokenizers 1.0, as far as it is used."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.truncation: Any = "yes"
        self.padding: Any = "yes"

    @classmethod
    def from_file(cls, path: str) -> _Version1:
        with open(path, "rb") as file:
            return cls(file.read())

    def encode(self, text: str, **flags: bool) -> Any:
        bad = text == "a" and self.data == b"bad"
        if bad:
            raise ValueError("it cannot be run")
        flag = [int(flags.get(name, 9)) for name in ("add_special_tokens", "encode_special_tokens")]
        return SimpleNamespace(ids=[len(text), *flag, self.truncation is None, self.padding is None])


def test_version_1_of_tokenizers_is_tried_when_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    package = SimpleNamespace(__version__="1.0", Tokenizer=_Version1)
    monkeypatch.setitem(sys.modules, "tokenizers", package)  # type: ignore[arg-type]
    adapter = open_tokenizers(b"{}")
    assert adapter.version == "1.0"
    assert adapter.encode("four", True, False) == [4, 1, 1, True, True]
    assert adapter.encode("four", False, True) == [4, 0, 0, True, True]
    with pytest.raises(ValueError, match="cannot be run"):
        open_tokenizers(b"bad")


@pytest.mark.parametrize("model_adds", [(True, False), (False, True), (True, True)])
def test_sentencepiece_adds_what_the_model_does(
    model_adds: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Processor:
        def __init__(self, model_proto: bytes) -> None:
            assert model_proto == b"model"

        def encode(self, text: str, add_bos: bool, add_eos: bool) -> list[int]:
            return [len(text), add_bos, add_eos]

    pytest.importorskip("sentencepiece")  # whose version is asked for
    package = SimpleNamespace(SentencePieceProcessor=Processor)
    monkeypatch.setitem(sys.modules, "sentencepiece", package)  # type: ignore[arg-type]
    add_bos, add_eos = model_adds
    adapter = open_sentencepiece(b"model", add_bos=add_bos, add_eos=add_eos)
    assert not adapter.parses_special
    assert adapter.encode("abc", True, True) == [3, add_bos, add_eos]
    assert adapter.encode("abc", False, True) == [3, False, False]
