"""The methods of `Tokenizer` for texts that grow: their names, defaults, and what they return."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from conftest import GPT2

from ggufbpe import Checkpoint, CommonPrefix, IdsChange, IncrementalEncoding, Tokenizer
from ggufbpe.tokenizer.incremental_methods import IncrementalMethods

TOK = Tokenizer.from_gguf(GPT2)
FLAGS = ", *, add_special=True, parse_special=True)"


@pytest.mark.parametrize(
    ("method", "signature"),
    [
        ("incremental", "(self, text=''" + FLAGS),
        ("encode_stream", "(self, pieces" + FLAGS),
        ("common_prefix", "(self, ids, text" + FLAGS),
    ],
)
def test_signature(method: str, signature: str) -> None:
    found = inspect.signature(getattr(IncrementalMethods, method))
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    assert str(inspect.Signature(bare)) == signature


def test_results() -> None:
    growing = TOK.incremental("Hello")
    assert isinstance(growing, IncrementalEncoding)
    assert isinstance(growing.append(" world"), IdsChange)
    assert isinstance(growing.checkpoint(), Checkpoint)
    assert isinstance(TOK.common_prefix([1], "Hello"), CommonPrefix)
    assert list(TOK.encode_stream(["Hello wor", b"ld"])) == [15496, 995]
    assert repr(growing) == "<IncrementalEncoding: 11 bytes, 2 ids>"


@pytest.mark.parametrize("flag", ["add_special", "parse_special"])
@pytest.mark.parametrize(
    ("method", "arguments"),
    [("incremental", ("Hello",)), ("encode_stream", (["Hello"],)), ("common_prefix", ([1], "Hello"))],
)
def test_flags_are_bools(method: str, arguments: tuple[Any, ...], flag: str) -> None:
    for value in (1, None, "no", []):
        with pytest.raises(TypeError, match=f"^{flag} must be True or False, not "):
            getattr(TOK, method)(*arguments, **{flag: value})


def test_the_pieces_of_a_stream_are_an_iterable() -> None:
    with pytest.raises(TypeError, match=r"^pieces must be an iterable of texts, not None$"):
        TOK.encode_stream(None)  # type: ignore[arg-type]
