"""The `tiktoken.Encoding` of a GGUF, beside a real one with the same vocabulary."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from integration_cases import DOCUMENT, END, TOK, library, real_tiktoken

from ggufbpe import Tokenizer

tiktoken = library("tiktoken")

from ggufbpe.integrations.tiktoken import encoding  # noqa: E402 - after its library

OURS = encoding(TOK, "gpt2")
THEIRS = real_tiktoken()
IDS = TOK.encode_ordinary(DOCUMENT)

CALLS: list[Callable[[Any], Any]] = [
    lambda it: it.name,
    lambda it: it.n_vocab,
    lambda it: it.max_token_value,
    lambda it: it.eot_token,
    lambda it: it.special_tokens_set,
    lambda it: repr(it),
    lambda it: it.encode_ordinary(DOCUMENT),
    lambda it: it.encode(DOCUMENT, disallowed_special=()),
    lambda it: it.encode(DOCUMENT, allowed_special="all"),
    lambda it: it.encode("a<|endoftext|>b", allowed_special={"<|endoftext|>"}),
    lambda it: it.encode("lone \ud800 surrogate"),
    lambda it: it.encode("pair \ud83d\ude00"),
    lambda it: it.encode_to_numpy("Hello world").tolist(),
    lambda it: it.encode_batch(["Hello", "", "world"]),
    lambda it: it.encode_ordinary_batch(["Hello", "<|endoftext|>"]),
    lambda it: it.encode_single_token("Hello"),
    lambda it: it.encode_single_token(b"\xff"),
    lambda it: it.encode_single_token("<|endoftext|>"),
    lambda it: it.decode(IDS),
    lambda it: it.decode(IDS[-9:-5]),
    lambda it: it.decode_bytes([*IDS, END]),
    lambda it: it.decode_single_token_bytes(995),
    lambda it: it.decode_tokens_bytes(IDS),
    lambda it: it.decode_with_offsets(IDS),
    lambda it: it.decode_batch([[15496], [995]]),
    lambda it: it.decode_bytes_batch([[15496], [995]]),
    lambda it: it.token_byte_values(),
    lambda it: [it.is_special_token(token) for token in (0, END)],
]


@pytest.mark.parametrize("call", range(len(CALLS)))
def test_each_call_gives_what_tiktoken_gives(call: int) -> None:
    assert CALLS[call](OURS) == CALLS[call](THEIRS)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda it: it.encode("a<|endoftext|>"), ValueError),
        (lambda it: it.encode("abc", disallowed_special={"b"}), ValueError),
        (lambda it: it.encode_single_token("no such token"), KeyError),
        (lambda it: it.decode_single_token_bytes(len(TOK)), KeyError),
        (lambda it: it.decode([len(TOK)]), KeyError),
        (lambda it: it.decode([0, -1]), (KeyError, OverflowError)),  # tiktoken has no negative ids at all
    ],
)
def test_errors_are_those_of_tiktoken(call: Callable[[Any], Any], error: Any) -> None:
    for it in (OURS, THEIRS):
        with pytest.raises(error):
            call(it)


def test_it_is_an_encoding_and_can_be_pickled() -> None:
    assert isinstance(OURS, tiktoken.Encoding)
    again = pickle.loads(pickle.dumps(OURS))
    assert again.encode_ordinary(DOCUMENT) == IDS
    assert np.array_equal(again.encode_to_numpy("a"), OURS.encode_to_numpy("a"))


def test_the_unknown_token_is_special() -> None:
    """As `parse_special` recognizes it in a text, also beside no control token."""
    tok = Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / "spm.gguf")
    made, text, unknown = encoding(tok), "a<unk>b", tok.token_to_id("<unk>")
    assert unknown in made.encode(text, allowed_special="all") == tok.encode(text, add_special=False)
    assert made.encode(text, disallowed_special=()) == tok.encode_ordinary(text)
    assert made.is_special_token(unknown)
    with pytest.raises(ValueError, match="special token '<unk>'"):
        made.encode(text)


def test_an_allowed_token_takes_the_space_before_it() -> None:
    """Where the vocabulary says so, also if other special tokens are not allowed but do not occur."""
    tok = Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / "modern-bert.gguf")
    expected = tok.encode("a [MASK]b", add_special=False)
    assert encoding(tok).encode("a [MASK]b", allowed_special={"[MASK]"}) == expected
