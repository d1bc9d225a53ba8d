"""The endpoints behind the page, as functions of models and a body."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, RAW_UTF8

import ggufbpe
from ggufbpe.server.failures import RequestError, to_request_error
from ggufbpe.server.page_api import parting_answer, tokens_answer, vocabulary_answer, why_answer, word_answer
from ggufbpe.server.served_models import Models

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")


@pytest.fixture(scope="module")
def models() -> Models:
    """Two models."""
    return Models({"gpt2": str(GPT2), "raw": str(RAW_UTF8)})


def test_tokens_of_a_text(models: Models) -> None:
    answer = tokens_answer(models, {"text": "Hé<|endoftext|>"})
    assert answer["ids"].tolist() == [39, 2634, 50256]
    assert answer["spans"].tolist() == [0, 1, 1, 3, 3, 16]
    assert (answer["characters"], answer["bytes"]) == (15, 16)
    assert answer["tokens"]["2634"] == {
        "piece": "é",
        "bytes": "c3a9",
        "text": "Ã©",
        "types": ["NORMAL"],
        "special": False,
    }
    assert answer["tokens"]["50256"]["special"] is True


def test_a_token_that_is_not_utf8_has_no_piece(models: Models) -> None:
    answer = tokens_answer(models, {"text": "𐍈"})
    broken = [token for token in answer["tokens"].values() if token["piece"] is None]
    assert broken
    assert all(bytes.fromhex(token["bytes"]) in "𐍈".encode() for token in broken)


def test_tokens_of_a_chat(models: Models) -> None:
    answer = tokens_answer(models, {"messages": [{"role": "user", "content": "Hello"}]})
    assert "Hello" in answer["prompt"]
    assert 15496 in answer["ids"].tolist()
    assert any(part.get("field") == "content" for part in answer["parts"])


def test_what_a_template_lacks_is_noted(models: Models, tmp_path: Path) -> None:
    chat = {"messages": [{"role": "user", "content": "Hello"}]}
    [note] = tokens_answer(models, chat)["notes"]
    assert note.startswith("The model has no chat template. Like llama-server, this uses ChatML")
    own = tmp_path / "own.gguf"
    ggufbpe.fix(GPT2, own, chat_template="{% for m in messages %}{{ m.content }}{% endfor %}")
    with_template = Models({"own": str(own)})
    assert tokens_answer(with_template, chat)["notes"] == []
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    answer = tokens_answer(with_template, {**chat, "tools": [tool]})
    assert answer["notes"] == ["The template does not show the tools."]


def test_tokens_of_ids(models: Models) -> None:
    answer = tokens_answer(models, {"ids": [15496, 50256, 995]})
    assert answer["text"] == "Hello<|endoftext|> world"
    assert answer["spans"].tolist() == [0, 5, 5, 18, 18, 24]
    assert tokens_answer(models, {"ids": []})["spans"].tolist() == []


@pytest.mark.parametrize("token", [-1, 50257])
def test_ids_that_do_not_exist_are_refused(models: Models, token: int) -> None:
    words = f"token id {token} is out of range: the vocabulary has ids 0 to 50256"
    with pytest.raises(ValueError, match=words) as refusal:
        tokens_answer(models, {"ids": [0, token]})
    assert to_request_error(refusal.value).status == 400


def test_the_vocabulary_is_searched_by_text_and_by_id(models: Models) -> None:
    answer = vocabulary_answer(models, {"query": "ello"})
    found = [each["piece"] for each in answer["found"]]
    assert found[0] == "ello"  # the shortest
    assert {"Hello", " Hello"} < set(found)
    assert answer["count"] == len(answer["found"]) > 5
    by_id = vocabulary_answer(models, {"query": "995"})["found"]
    assert (by_id[0]["id"], by_id[0]["piece"]) == (995, " world")
    assert vocabulary_answer(models, {"query": "\x00\x00"}) == {"found": [], "count": 0}
    assert len(vocabulary_answer(models, {"query": "a"})["found"]) == 200


def test_a_word(models: Models) -> None:
    answer = word_answer(models, {"text": "a Hello", "token": 1})
    assert answer["in_word"]["shown"]["ĠH"] == {"piece": " H", "bytes": "2048"}
    assert [merge["left"] + merge["right"] for merge in answer["in_word"]["merges"]][-1] == "ĠHello"


def test_why(models: Models) -> None:
    [first, *_] = why_answer(models, {"text": "Hello", "piece": "ell"})["sentences"]
    assert {"text": "ell"} in first


@pytest.mark.parametrize(
    ("piece", "said"),
    [
        ("Hell", "byte offsets 0 to 3: in the word  (word 1), "),
        ("d", "byte offset 10: in the word  (word 2), "),
        (" world", " (token 995) was produced: token 2 (byte offsets 5 to 10)."),
    ],
)
def test_why_counts_as_the_page_does(piece: str, said: str, models: Models) -> None:
    """From 1, and with the last byte, as its words on a chosen token."""
    sentences = why_answer(models, {"text": "Hello world", "piece": piece})["sentences"]
    assert said in "".join(part for part in sentences[-1] if isinstance(part, str))


SMALLEST: dict[str, tuple[dict[str, Any], bool]] = {
    "equal ids": ({"text": "Hello world", "ids": [15496, 995]}, False),
    "a control token as text": (
        {"text": "Hello <|endoftext|>", "ids": [15496, 1279, 91, 437, 1659, 5239, 91, 29]},
        True,
    ),
}


@pytest.mark.parametrize("name", SMALLEST)
def test_the_smallest_text_that_shows_a_cause(models: Models, name: str) -> None:
    body, has_cause = SMALLEST[name]
    smallest = parting_answer(models, body)["smallest"]
    assert (smallest is not None) == has_cause
    if smallest is not None:
        assert smallest["text"] == "<|endoftext|>"
        assert smallest["ours"] == [50256]
        assert smallest["theirs"] == [27, 91, 437, 1659, 5239, 91, 29]


def test_no_smallest_text_is_sought_where_nothing_explains_the_ids(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search takes seconds for a long text, and has been made for the comparison."""
    monkeypatch.setattr("ggufbpe.server.page_api.search", pytest.fail)
    answer = parting_answer(models, {"text": "Hello world", "ids": [5000, 17, 5000, 900, 42]})
    assert answer["differences"]
    assert answer["smallest"] is None


def test_parting_of_two_models(models: Models) -> None:
    answer = parting_answer(models, {"text": "Hello", "models": ["gpt2", "raw"]})
    assert answer["same"] is False


REFUSED: list[tuple[Any, dict[str, Any], int, str]] = [
    (word_answer, {"text": "a", "token": -1}, 400, "'token' must be the index of a token, counted from 0"),
    (word_answer, {"text": "a", "token": True}, 400, "'token' must be the index of a token, counted from 0"),
    (word_answer, {"text": "a", "token": 1}, 400, "the text has 1 tokens"),
    (
        word_answer,
        {"text": "a" * 70_000, "token": 1},
        413,
        "70000 bytes would have to be traced together; the limit is 65536: give a shorter text",
    ),
    *[
        (
            answer,
            {"text": "a" * 5_000_000, "token": 1},
            413,
            "the text has 5000000 bytes; the limit here is 4194304",
        )
        for answer in (word_answer, tokens_answer)
    ],
    *[
        (answer, body, 400, "'ids' is required and must be an array of ids, which are integers")
        for answer, body in (
            (parting_answer, {"text": "a", "ids": None}),
            (tokens_answer, {"ids": [0, True]}),
        )
    ],
    (parting_answer, {"text": "a", "models": ["gpt2"]}, 400, "'models' must be an array of two names"),
    (
        why_answer,
        {"text": "a" * 16385, "piece": "a"},
        413,
        "the text has 16385 bytes; the limit here is 16384",
    ),
]


@pytest.mark.parametrize(("answer", "body", "status", "message"), REFUSED)
def test_refused(models: Models, answer: Any, body: dict[str, Any], status: int, message: str) -> None:
    with pytest.raises(RequestError) as refusal:
        answer(models, body)
    assert (refusal.value.status, refusal.value.message) == (status, message)
