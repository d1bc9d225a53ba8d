"""This project's own endpoints as functions of models and a body."""

from __future__ import annotations

import os
from typing import Any

import pytest
from conftest import GPT2, RAW_UTF8

from ggufbpe import Tokenizer
from ggufbpe.server import native_api
from ggufbpe.server.budgets_api import fit_answer
from ggufbpe.server.failures import RequestError, to_request_error
from ggufbpe.server.other_servers import tokenize_either
from ggufbpe.server.served_models import Models

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")


@pytest.fixture(scope="module")
def models() -> Models:
    """Two models."""
    return Models({"gpt2": str(GPT2), "raw": str(RAW_UTF8)})


def test_count(models: Models) -> None:
    assert native_api.count_answer(models, {"texts": ["Hello world", ""]}) == {"counts": [2, 0], "total": 2}
    answer = native_api.count_answer(models, {"texts": "<|endoftext|>", "parse_special": False})
    assert answer["total"] == len(Tokenizer.from_gguf(GPT2).encode_ordinary("<|endoftext|>"))


def test_explain_and_why_not(models: Models) -> None:
    answer = native_api.explain_answer(models, {"text": "Hello"})
    assert answer["ids"] == [15496]
    assert "why_not" not in answer
    why = native_api.explain_answer(models, {"text": "Hello", "why_not": "ell"})
    assert why["piece"] == "ell"


CHAT = {"messages": [{"role": "user", "content": "Hello"}]}


def test_explain_obeys_the_template_of_a_request(models: Models) -> None:
    body = {**CHAT, "chat_template": "{{ messages[0].content }}"}
    assert native_api.explain_answer(models, body)["ids"] == [15496]
    known = native_api.explain_answer(models, {**CHAT, "chat_template": "known:chatml"})
    assert known["ids"] == native_api.explain_answer(models, CHAT)["ids"] != [15496]


@pytest.mark.parametrize("answer", [fit_answer, native_api.explain_answer, tokenize_either])
def test_the_template_of_a_request_is_no_path(
    models: Models, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client must not be able to find out which files there are."""
    asked, exists = [], os.path.exists
    monkeypatch.setattr("os.path.exists", lambda path: asked.append(path) or exists(path))
    with pytest.raises(RequestError, match="is neither the text of a template nor the name of one"):
        answer(models, {**CHAT, "limit": 99, "chat_template": __file__})
    assert __file__ not in asked


def test_diff(models: Models) -> None:
    same = native_api.diff_answer(models, {"models": ["gpt2", "gpt2"], "texts": ["Hello"]})
    assert (same["tokens"], same["texts"]["same"]) == ([], True)
    other = native_api.diff_answer(models, {"models": ["gpt2", "raw"], "texts": ["Hello"]})
    assert other["tokens"]
    assert other["texts"]["same"] is False


def test_diagnose(models: Models) -> None:
    own = native_api.diagnose_answer(models, {"text": "Hello world", "ids": [15496, 995]})
    assert (own["match"], own["explanations"]) == (True, [])
    other = native_api.diagnose_answer(models, {"text": "Hello world", "ids": [15496, 220, 995]})
    [cause] = other["explanations"][0]["causes"]
    assert (other["match"], cause["id"]) == (False, "text_differs")


def test_common_prefix(models: Models) -> None:
    body = {"tokens": [15496, 266, 1764], "content": "Hello world"}
    cause = "the ids have ' w' + 'orld', and the tokenizer gives ' world'"
    assert native_api.common_prefix_answer(models, body) == {"ids": 1, "position": 5, "cause": cause}
    assert native_api.common_prefix_answer(models, {"tokens": [15496, 995], "content": "Hello world"}) == {
        "ids": 2,
        "position": 11,
        "cause": "",
    }


@pytest.mark.parametrize("flags", [{}, {"add_special": False}, {"parse_special": False}])
def test_common_prefix_goes_by_the_flags_and_the_model(flags: dict[str, bool]) -> None:
    vocabulary = GPT2.parents[2] / "fixtures" / "vocabs" / "add-bos.gguf"
    models, tokenizer = (
        Models({"gpt2": str(GPT2), "bos": str(vocabulary)}),
        Tokenizer.from_gguf(vocabulary),
    )
    text = f"a{tokenizer.bos_token}"
    ids = tokenizer.encode(text)
    found = native_api.common_prefix_answer(models, {"model": "bos", "tokens": ids, "content": text, **flags})
    assert found == tokenizer.common_prefix(ids, text, **flags)._asdict()
    assert (found["ids"] == len(ids)) == (not flags)


REFUSED: list[tuple[Any, Any, int, str]] = [
    (native_api.count_answer, [], 400, "the body must be an object, but is array"),
    (native_api.count_answer, {"texts": [1]}, 400, "'texts' must be a string or an array of strings"),
    (native_api.count_answer, {"texts": [""] * 4097}, 413, "'texts' has 4097 texts; the limit is 4096"),
    (native_api.count_answer, {"texts": "a", "add_special": 1}, 400, "'add_special' must be true or false"),
    (native_api.common_prefix_answer, {"tokens": []}, 400, "'content' is required and must be a string"),
    (
        native_api.common_prefix_answer,
        {"content": "a", "tokens": "a"},
        400,
        "'tokens' is required and must be an array of ids, which are integers",
    ),
    (
        native_api.common_prefix_answer,
        {"content": "a", "tokens": [50257]},
        400,
        "token id 50257 is out of range: the vocabulary has ids 0 to 50256",
    ),
    (
        native_api.common_prefix_answer,
        {"content": "a", "tokens": [0] * ((4 << 20) + 1)},
        413,
        "'tokens' has 4194305 ids; the limit is 4194304",
    ),
    (
        native_api.common_prefix_answer,
        {"content": "a" * 5_000_000, "tokens": []},
        413,
        "the text has 5000000 bytes; the limit here is 4194304",
    ),
    (
        native_api.common_prefix_answer,
        {"content": "a", "tokens": [], "parse_special": None},
        400,
        "'parse_special' must be true or false",
    ),
    (native_api.explain_answer, {}, 400, "'text' is required and must be a string"),
    (
        native_api.explain_answer,
        {"text": "é" * 8192 + "a"},
        413,
        "the text has 16385 bytes; the limit here is 16384",
    ),
    (native_api.explain_answer, {"messages": 5}, 400, "Expected 'messages' to be an array"),
    (
        native_api.explain_answer,
        {"text": "a", "why_not": ""},
        400,
        "the piece is empty: give the text of a token",
    ),
    (native_api.diff_answer, {"models": ["gpt2"]}, 400, "'models' must be an array of two names"),
    (native_api.diff_answer, {"models": ["gpt2", "x"]}, 400, "model 'x' not found"),
    *[
        (
            native_api.diagnose_answer,
            body,
            400,
            "'ids' is required and must be an array of ids, which are integers",
        )
        for body in ({"text": "a"}, {"messages": []})
    ],
    (
        native_api.diagnose_answer,
        {"text": "a", "ids": [0] * 65537},
        413,
        "'ids' has 65537 ids; the limit is 65536",
    ),
    (
        native_api.diagnose_answer,
        {"text": "a" * 300_000, "ids": []},
        413,
        "the text has 300000 bytes; the limit here is 65536",
    ),
    (
        native_api.diagnose_answer,
        {"messages": ["a" * 70_000], "ids": [1]},
        413,
        "the chat has 70017 bytes; the limit here is 65536",
    ),
    (
        native_api.diagnose_answer,
        {"messages": [], "ids": [], "expected_prompt": ""},
        400,
        "a chat has either 'ids' or 'expected_prompt'",
    ),
]


@pytest.mark.parametrize(("answer", "body", "status", "message"), REFUSED)
def test_refused(models: Models, answer: Any, body: Any, status: int, message: str) -> None:
    with pytest.raises((RequestError, ValueError)) as refusal:
        answer(models, body)
    error = to_request_error(refusal.value)
    assert (error.status, error.message) == (status, message)
