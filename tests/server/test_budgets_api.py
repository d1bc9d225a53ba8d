"""The endpoints about budgets answer as the methods of `Tokenizer` do."""

from __future__ import annotations

import time
from typing import Any

import pytest
from conftest import GPT2, RAW_UTF8

from ggufbpe import Tokenizer
from ggufbpe.server.budgets_api import fit_answer, fits_answer, split_answer, truncate_answer
from ggufbpe.server.failures import RequestError, to_request_error
from ggufbpe.server.served_models import Models

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
TOK = Tokenizer.from_gguf(GPT2)
CHAT = {"messages": [{"role": "user", "content": "hello " * n} for n in (30, 1)]}


@pytest.fixture
def models() -> Models:
    return Models({"gpt2": str(GPT2)})


def test_answers(models: Models) -> None:
    assert fits_answer(models, {"text": "Hello world", "limit": 2}) == {"fits": True, "count": 2}
    assert fits_answer(models, {"text": "Hello world", "limit": 1}) == {"fits": False, "count": None}
    assert truncate_answer(models, {"text": "one two three", "limit": 2, "side": "left"}) == {
        "text": " two three",
        "count": 2,
        "truncated": True,
    }
    spans = split_answer(models, {"text": "one two three", "size": 2, "boundaries": "token"})
    assert spans == {"spans": [[0, 7], [7, 13]]}
    assert split_answer(models, {"text": "é é", "size": 1}) == {"spans": [[0, 1], [1, 3]]}  # in characters
    fitted = fit_answer(models, {**CHAT, "limit": 140, "answer": 100, "keep": {"note": ""}})
    assert (fitted["dropped"], fitted["limit"]) == ([0], 40)
    bare = fit_answer(
        models, {**CHAT, "limit": 140, "chat_template": "{{ messages[-1].content }}", "user": "u"}
    )
    assert bare["count"] == TOK.count(CHAT["messages"][1]["content"])
    assert fitted["count"] == len(TOK.apply_chat_template(CHAT["messages"][1:], chat_template="known:chatml"))


def test_parts_leave_room_for_a_bos_where_it_is_asked_to() -> None:
    """GPT-2 has no BOS, so this is of a model that adds one."""
    models, tokenizer = Models({"raw": str(RAW_UTF8)}), Tokenizer.from_gguf(RAW_UTF8)
    body = {"text": "one two three", "size": 3, "boundaries": "token"}
    parts = {adds: split_answer(models, {**body, "add_special": adds})["spans"] for adds in (False, True)}
    for adds, spans in parts.items():
        of_method = tokenizer.split("one two three", 3, 0, "token", add_special=adds)
        assert spans == [list(span) for span in of_method]
    assert split_answer(models, body)["spans"] == parts[False]
    assert len(parts[True]) > len(parts[False])


TOO_MANY_PARTS = [
    (1 << 24, 63, 0, "'size' must exceed 'overlap' by at least 64 for a text of 16777216 bytes: "),
    (
        1 << 19,
        1,
        0,
        "by at least 2 for a text of 524288 bytes: each part must add at least one token for every",
    ),
    (1 << 20, 1000, 997, "by at least 4 for a text of 1048576 bytes"),
    (200_000, 1000, 999, "with this 'overlap' the parts have about 200000000 bytes; the limit is 33554432"),
    (1 << 24, 1000, 501, "choose a smaller 'overlap'"),
]


@pytest.mark.parametrize(("length", "size", "overlap", "problem"), TOO_MANY_PARTS)
def test_a_text_is_refused_at_once_whose_parts_would_be_too_many_or_too_long(
    models: Models, length: int, size: int, overlap: int, problem: str
) -> None:
    """200 kB of one letter with all but one token repeated took the thread ten seconds, 16 MB some 800."""
    models.of({})
    start = time.thread_time()
    with pytest.raises(RequestError) as refusal:
        split_answer(models, {"text": "a" * length, "size": size, "overlap": overlap})
    assert time.thread_time() - start < 0.5
    assert refusal.value.status == 400
    assert problem in refusal.value.message


WITHIN_THE_BOUNDS = [
    (1 << 24, 1 << 20, 0),
    (1 << 18, 1, 0),
    (9, 99, 98),
    (1000, 1_000_000, 999_990),
    (300_000, 300_000, 299_999),  # one part
]


@pytest.mark.parametrize(("length", "size", "overlap"), WITHIN_THE_BOUNDS)
def test_parts_within_the_bounds(models: Models, length: int, size: int, overlap: int) -> None:
    text = ("word " * length)[:length]
    spans = split_answer(models, {"text": text, "size": size, "overlap": overlap})["spans"]
    assert (spans[0][0], spans[-1][1]) == (0, length)


def test_a_bos_is_no_token_that_a_part_adds() -> None:
    """With one, parts of two tokens were as many as the bytes: twice the bound."""
    models = Models({"raw": str(RAW_UTF8)})
    body = {"text": "a" * (1 << 19), "add_special": True}
    with pytest.raises(RequestError) as refusal:
        split_answer(models, {**body, "size": 2})
    assert refusal.value.message == (
        "'size' must exceed 'overlap' by at least 3 for a text of 524288 bytes: each part must add at least one token "
        "for every 262144 bytes, besides the 1 of 'add_special'"
    )
    assert len(split_answer(models, {**body, "size": 3})["spans"]) <= 1 << 18


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (fits_answer, {"text": "a"}, "'limit' is required and must be an integer of 0 or more"),
    (fits_answer, {"text": "a", "limit": -1}, "'limit' is required"),
    (fits_answer, {"text": "a", "limit": True}, "'limit' is required"),
    (truncate_answer, {"text": "a", "limit": 1, "side": "top"}, "'side' is one of 'right', 'left', 'middle'"),
    (truncate_answer, {"text": "a b", "limit": 1, "marker": "a b c"}, "the marker alone has"),
    (split_answer, {"text": "a", "size": 0}, "'size' is required and must be an integer of 1 or more"),
    (split_answer, {"text": "a", "size": 1, "overlap": 1}, "overlap must be 0 or more and less than size"),
    (
        split_answer,
        {"text": "a" * 300_000, "size": 5, "overlap": 5},
        "overlap must be 0 or more and less than size, not 5; size is 5",
    ),
    (
        split_answer,
        {"text": "a", "size": 1, "overlap": -1},
        "'overlap' must be an integer of 0 or more, below 2^31",
    ),
    (fits_answer, {"text": "a", "limit": 1 << 31}, "below 2^31"),
    (
        split_answer,
        {"text": "a", "size": 1, "keep_separator": 0},
        "'keep_separator' is one of 'end', 'start', false",
    ),
    (split_answer, {"text": "a", "size": 1, "boundaries": "page"}, "boundaries is one of"),
    (
        fit_answer,
        {**CHAT, "limit": 30, "answer": 100},
        "the answer alone exceeds the limit: 100 tokens of 30",
    ),
    (fit_answer, {**CHAT, "limit": 99, "anser": 3}, "there is no field 'anser'; did you mean 'answer'?"),
    (fit_answer, {**CHAT, "limit": 99, "keeps": {}}, "did you mean 'keep'?"),
    (fit_answer, {**CHAT, "limit": 99, "chat_templat": ""}, "did you mean 'chat_template'?"),
    (fit_answer, {**CHAT, "limit": 99, "chat_template": 3}, "'chat_template' must be a string"),
    (
        fit_answer,
        {**CHAT, "limit": 99, "chat_template": "/etc/passwd"},
        "'chat_template' is neither the text",
    ),
    (fit_answer, {"messages": "", "limit": 99}, "Expected 'messages' to be an array"),
    (fit_answer, {**CHAT, "limit": 1}, "the chat does not fit in 1 tokens"),
    (fit_answer, {**CHAT, "limit": 1, "keep": []}, "'keep' must be an object"),
    (fit_answer, {**CHAT, "limit": 1, "keep": {"x": 1}}, "keep has no field 'x'"),
]


OF_LLAMA_SERVER = ["mode", "models", "n_keep", "min_keep", "chat_template_kwargs", "stop", "seed", "samplers"]


def test_fields_of_llama_server_are_not_misspelt(models: Models) -> None:
    others = dict.fromkeys(OF_LLAMA_SERVER)
    assert fit_answer(models, {**CHAT, "limit": 140, **others})["dropped"] == []


def test_a_body_of_many_fields_is_not_searched_for_misspelt_ones(models: Models) -> None:
    """Each may be nearly spelt as a field; comparing 700,000 of them held the thread for minutes."""
    many = {f"answe{n}": 0 for n in range(100_000)}
    start = time.thread_time()
    assert fit_answer(models, {**CHAT, "limit": 140, **many})["dropped"] == []
    assert time.thread_time() - start < 2


@pytest.mark.parametrize(("answer", "body", "problem"), REFUSED)
def test_refusals(models: Models, answer: Any, body: dict[str, Any], problem: str) -> None:
    with pytest.raises((RequestError, ValueError)) as refusal:
        answer(models, body)
    error = to_request_error(refusal.value)
    assert error.status == 400
    assert problem in error.message
