"""Tokenization in the forms of vLLM and Ollama."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import GPT2, RAW_UTF8

from ggufbpe import Tokenizer
from ggufbpe.server.failures import RequestError
from ggufbpe.server.other_servers import (
    detokenize_either,
    ollama_detokenize,
    ollama_tokenize,
    tokenize_either,
)
from ggufbpe.server.served_models import Models
from ggufbpe.server.streamed_answers import answer_json

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")


@pytest.fixture(scope="module")
def models() -> Models:
    """One model with a name of Ollama, and one that adds a BOS."""
    return Models({"ollama:small:latest": str(GPT2), "raw": str(RAW_UTF8)})


def as_json(answer: dict[str, Any]) -> bytes:
    """An answer as it is sent."""
    return answer_json(answer)


def test_tokenize_as_vllm(models: Models) -> None:
    answer = tokenize_either(models, {"prompt": "Hello", "model": "raw", "return_token_strs": True})
    raw = Tokenizer.from_gguf(RAW_UTF8)
    ids = raw.encode("Hello")
    assert answer["tokens"].tolist() == ids
    assert (answer["count"], ids[0]) == (len(ids), raw.bos_id)
    assert as_json({"t": answer["token_strs"]}) == as_json({"t": [raw.id_to_token(token) for token in ids]})
    plain = tokenize_either(models, {"prompt": "Hello", "model": "raw", "add_special_tokens": False})
    assert plain["tokens"].tolist() == ids[1:]
    assert plain["token_strs"] is None


def test_content_is_a_field_of_llama_server(models: Models) -> None:
    answer = tokenize_either(models, {"content": "Hello", "prompt": "not this"})
    assert as_json(answer) == b'{"tokens":[15496]}'


def test_a_chat_as_vllm(models: Models) -> None:
    body = {
        "messages": [{"role": "user", "content": "Hello"}],
        "chat_template": "{{ messages[0].content }}",
    }
    assert tokenize_either(models, body)["tokens"].tolist() == [15496]
    with pytest.raises(RequestError, match="'chat_template' must be a string"):
        tokenize_either(models, {**body, "chat_template": 1})


def test_detokenize(models: Models) -> None:
    for body in ({"tokens": [15496]}, {"tokens": [15496], "model": "ollama:small:latest"}):
        assert as_json(detokenize_either(models, body)) == b'{"content":"Hello","prompt":"Hello"}'


@pytest.mark.parametrize("name", ["small", "small:latest", "ollama:small", "ollama:small:latest"])
def test_names_of_ollama(models: Models, name: str) -> None:
    answer = ollama_tokenize(models, {"model": name, "content": "Hello"})
    assert (answer["model"], answer["tokens"].tolist()) == (name, [15496])
    assert answer["total_duration"] >= answer["load_duration"] > 0


def test_ollama_adds_no_bos(models: Models) -> None:
    raw = Tokenizer.from_gguf(RAW_UTF8)
    answer = ollama_tokenize(models, {"model": "raw", "content": "Hello"})
    assert answer["tokens"].tolist() == raw.encode("Hello", add_special=False)


def test_detokenize_as_ollama(models: Models) -> None:
    answer = ollama_detokenize(models, {"model": "small", "tokens": [15496, 995]})
    assert answer_json({"content": answer["content"]}) == b'{"content":"Hello world"}'


def test_an_unknown_model_of_several(models: Models) -> None:
    with pytest.raises(RequestError, match="model 'large' not found") as refusal:
        ollama_tokenize(models, {"model": "large", "content": ""})
    assert refusal.value.status == 404
    single = Models({"gpt2": str(GPT2)})  # answers whatever the name is
    assert ollama_tokenize(single, {"model": "large", "content": "Hello"})["tokens"].tolist() == [15496]
