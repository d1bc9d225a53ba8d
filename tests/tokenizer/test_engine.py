"""Both engines are what the protocol `Engine` asks for."""

from __future__ import annotations

import inspect

import pytest
from synthetic import byte_tokens, make_vocabulary

from ggufbpe import Tokenizer
from ggufbpe.native import native
from ggufbpe.tokenizer.engine import Engine, numpy
from ggufbpe.tokenizer.native_engine import NativeEngine
from ggufbpe.tokenizer.reference_engine import ReferenceEngine

MEMBERS = [name for name in vars(Engine) if not name.startswith("_")]
VOCABULARY = make_vocabulary([*byte_tokens(), "ab"], merges=["a b"])
ENGINES = ["reference", *(["native"] if native is not None else [])]


def parameters(function: object) -> list[tuple[str, object]]:
    """The parameters but for `self`, with their defaults."""
    assert callable(function)
    return [(each.name, each.default) for each in list(inspect.signature(function).parameters.values())[1:]]


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        (engine, name)
        for engine in (NativeEngine, ReferenceEngine)
        for name in MEMBERS
        if name in vars(engine)
    ],
)
def test_methods_take_the_same_arguments(engine: type, name: str) -> None:
    if name != "name":
        assert parameters(getattr(engine, name)) == parameters(getattr(Engine, name))


@pytest.mark.parametrize("name", ENGINES)
def test_answers(name: str) -> None:
    engine = Tokenizer(VOCABULARY, name)._engine  # type: ignore[arg-type]
    assert engine.name == name
    assert [each for each in MEMBERS if not hasattr(engine, each)] == []
    assert engine.encode("abc", False, False, False) == [256, ord("c")]
    assert engine.encode_to_numpy("abc", False, False, False, 1).dtype == numpy().int32
    ids, spans = engine.encode_with_offsets("abc", False, False, False)
    assert (ids, list(spans)) == ([256, ord("c")], [(0, 2), (2, 3)])
    assert engine.encode_batch(["ab", b"c"], False, False, 2) == [[256], [ord("c")]]
    assert list(engine.encode_plain("ab")) == [256]
    assert engine.count("abc", False, False, 1, False) == 2
    assert (engine.pre_tokenize("a b"), engine.count_pre_tokens("a b")) == (["a", " b"], 2)
    with pytest.raises(TypeError):
        engine.encode(1, False, False, False)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="surrogate"):
        engine.encode("\ud800", False, False, False)
