"""A repository of the hub as the other side: its GGUF, or else its tokenizer.json."""

from __future__ import annotations

from typing import Any

import pytest
from small_models import small_tokenizer

from ggufbpe._util.errors import RemoteNotFoundError
from ggufbpe.analysis.oracles import hub_oracle
from ggufbpe.analysis.oracles.hub_oracle import on_the_hub, tokenizer_json_on_hub
from ggufbpe.hub.name_grammar import HubName
from ggufbpe.hub.remote import huggingface

REFUSED = RemoteNotFoundError("the repository has no GGUF")
OTHER = small_tokenizer()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A hub on which only "a/with-json" has a tokenizer.json; what it was asked for."""
    asked: list[Any] = []

    def downloaded(name: HubName, file: str, *, offline: bool = False) -> str:
        asked.append((name.repository, file, offline))
        if name.repository != "a/with-json":
            raise RemoteNotFoundError("no such file")
        return "/cache/tokenizer.json"

    monkeypatch.setattr(huggingface, "downloaded", downloaded)
    return asked


@pytest.mark.parametrize("offline", [True, False])
def test_a_repository_with_a_tokenizer_json(asked: list[Any], offline: bool) -> None:
    path = tokenizer_json_on_hub("hf:a/with-json", REFUSED, offline=offline)
    assert (path, asked) == ("/cache/tokenizer.json", [("a/with-json", "tokenizer.json", offline)])


@pytest.mark.parametrize(
    ("name", "is_asked"),
    [
        ("hf:a/without", True),
        ("hf:a/with-json:Q4_K_M", False),  # a certain GGUF
        ("hf:a/with-json/model.gguf", False),
        ("ollama:llama3", False),
    ],
)
def test_the_refusal_of_the_gguf_is_what_is_told(name: str, is_asked: bool, asked: list[Any]) -> None:
    with pytest.raises(RemoteNotFoundError) as raised:
        tokenizer_json_on_hub(name, REFUSED)
    assert raised.value is REFUSED
    assert bool(asked) is is_asked


def test_the_gguf_of_a_repository_comes_first(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_oracle.Tokenizer, "from_gguf", lambda name: OTHER)
    oracle = on_the_hub("hf:a/with-json", "model.gguf", OTHER, 1)
    assert (oracle.tokenizer, asked) == (OTHER, [])
    assert oracle.encode([b"hello"], True, True) == [OTHER.encode("hello")]


def test_without_a_gguf_the_package_is_asked(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise REFUSED

    monkeypatch.setattr(hub_oracle.Tokenizer, "from_gguf", refuse)
    monkeypatch.setattr(hub_oracle, "tokenizers_library", lambda *given: given)
    given: Any = on_the_hub("hf:a/with-json", "model.gguf", OTHER, 5)
    assert given == ("/cache/tokenizer.json", "model.gguf", OTHER, 5)
    with pytest.raises(RemoteNotFoundError, match="no GGUF"):
        on_the_hub("hf:a/without", "model.gguf", OTHER, 5)
