"""The token counts of what `/infill` and `/rerank` of llama-server take."""

from __future__ import annotations

import pytest
from conftest import GPT2, RAW_UTF8, ROOT

from ggufbpe import Tokenizer
from ggufbpe.server.failures import RequestError
from ggufbpe.server.model_inputs_api import count_infill, count_rerank
from ggufbpe.server.served_models import Models

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")


def test_counts_of_pairs() -> None:
    models, tok = Models({"raw": str(RAW_UTF8)}), Tokenizer.from_gguf(RAW_UTF8)
    counts = [len(tok.encode_pair("query", text)) for text in ("one", "one two")]
    expected = {"input_tokens": sum(counts), "object": "response.input_tokens", "documents": counts}
    for field in ("documents", "texts"):
        assert count_rerank(models, {"query": "query", field: ["one", "one two"]}) == expected
    for body in ({}, {"query": "a"}, {"query": 1, "documents": []}, {"query": "a", "documents": [1]}):
        with pytest.raises(RequestError):
            count_rerank(models, body)


PAIRED: list[tuple[str, list[str]]] = [
    ("a" * (1 << 20), ["b"] * 65),
    ("é" * (1 << 19), ["b"] * 65),
    ("{document}" * 1100, ["b" * (1 << 16), "b" * (1 << 10)]),  # a template would replace each
]


@pytest.mark.parametrize(("query", "documents"), PAIRED)
def test_a_query_may_not_be_encoded_too_often(query: str, documents: list[str]) -> None:
    with pytest.raises(RequestError, match="bytes; the limit here is 67108864") as refusal:
        count_rerank(Models({"gpt2": str(GPT2)}), {"query": query, "documents": documents})
    assert refusal.value.status == 413


def test_counts_of_filling_in() -> None:
    models = Models({"gpt2": str(GPT2)})
    body = {
        "input_prefix": "a",
        "input_suffix": "b",
        "input_extra": [{"text": "c", "filename": "d"}],
    }
    with pytest.raises(RequestError, match="Infill is not supported by this model") as refusal:
        count_infill(models, body)
    assert refusal.value.status == 501
    fills_in = ROOT / "fixtures" / "vocabs" / "fim-by-key.gguf"
    ids = Tokenizer.from_gguf(fills_in).encode_infill("a", "b", "", body["input_extra"])
    assert count_infill(Models({"fim": str(fills_in)}), body)["input_tokens"] == len(ids) > 3
    for wrong in ({}, {**body, "input_suffix": 1}, {**body, "input_extra": [{}]}, {**body, "prompt": 1}):
        with pytest.raises(RequestError) as refusal:
            count_infill(models, wrong)
        assert refusal.value.status == 400
