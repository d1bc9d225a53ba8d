"""Pairs and infill: the ids that llama-server forms; the real one is asked about infill."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from conftest import GPT2, ROOT, missing
from make_tiny_model import make_tiny_model
from reference import NotPreparedError

from ggufbpe import Tokenizer
from ggufbpe.tokenizer.model_inputs import encode_pair

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
FIXTURES = ROOT / "fixtures" / "vocabs"
FIM = {"fim_pre": 1, "fim_suf": 2, "fim_mid": 3}


def with_ids(**changes: Any) -> Tokenizer:
    keys = {f"tokenizer.ggml.{name}": value for name, value in changes.items()}
    return Tokenizer.from_gguf(GPT2, overrides=keys)


PAIRS = [
    ({"add_bos_token": True, "add_eos_token": True, "eos_token_id": 7, "bos_token_id": 5}, [5, "a", 7, "b", 7]),
    ({"add_bos_token": False, "add_eos_token": False}, ["a", "b"]),
    ({"add_eos_token": True, "add_sep_token": True, "eos_token_id": 7, "seperator_token_id": 8}, ["a", 7, 8, "b", 7]),
    ({"add_sep_token": True, "seperator_token_id": 8, "add_eos_token": False}, ["a", 8, "b"]),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "expected"), PAIRS)
def test_pairs(keys: dict[str, Any], expected: list[int | str]) -> None:
    tok = with_ids(**keys)
    texts = {"a": "a query<|endoftext|>", "b": "a document"}
    ids = [tok.encode_ordinary(texts[each]) if isinstance(each, str) else [each] for each in expected]
    pair = list(chain.from_iterable(ids))
    assert tok.encode_pair(texts["a"], texts["b"]) == pair
    assert encode_pair(tok, texts["a"], texts["b"], limit=len(pair)) == pair


def test_pairs_by_the_template_of_the_file() -> None:
    tok = Tokenizer.from_gguf(
        GPT2, overrides={"tokenizer.chat_template.rerank": "Q: {query} D: {document}<|endoftext|>"}
    )
    assert tok.encode_pair("x", "y") == tok.encode("Q: x D: y<|endoftext|>", add_special=False)
    assert len(tok.encode_pair("x " * 50, "y " * 90, limit=40)) <= 40


@pytest.mark.parametrize(
    ("a", "b", "limit", "expected"),
    [(3, 30, 20, (3, 17)), (30, 3, 20, (17, 3)), (30, 30, 21, (11, 10)), (5, 5, 20, (5, 5))],
)
def test_the_longer_text_is_cut_first(a: int, b: int, limit: int, expected: tuple[int, int]) -> None:
    tok = Tokenizer.from_gguf(GPT2)
    ids = tok.encode_pair(" a" * a, " b" * b, limit=limit)
    assert ids == tok.encode(" a" * expected[0] + " b" * expected[1])
    with pytest.raises(ValueError, match="a pair of empty texts has more than 0 tokens"):
        with_ids(add_bos_token=True).encode_pair("a", "b", limit=0)


INFILLS: list[dict[str, Any]] = [
    {"prefix": "def f(", "suffix": "):\n    pass"},
    {"prefix": "", "suffix": ""},
    {"prefix": "a<|endoftext|>", "suffix": "b", "prompt": "c"},
    {"prefix": "x = " * 30, "suffix": " + y" * 30, "prompt": "z<|endoftext|>"},
]


@pytest.mark.slow
def test_infill_as_the_server_forms_it(tmp_path: Path) -> None:
    keys = {f"tokenizer.ggml.{name}_token_id": token for name, token in FIM.items()}
    path = make_tiny_model(tmp_path / "tiny.gguf", GPT2, keys)  # type: ignore[arg-type]
    tok = Tokenizer.from_gguf(path)
    try:
        server = ChatServer(path)
        server.open(None)
    except NotPreparedError as error:
        missing(str(error))
    with server:
        for case in INFILLS:
            ids = tok.encode_infill(**case, n_ctx=512)
            body = {f"input_{name}" if name != "prompt" else name: text for name, text in case.items()}
            status, answer = server.request("POST", "/infill", json.dumps({**body, "n_predict": 0}).encode())
            assert (status, answer["tokens_evaluated"]) == (200, len(ids))
            assert answer["prompt"] == b"".join(map(tok.token_to_piece, ids)).decode()


def test_infill_of_a_repository() -> None:
    tok = Tokenizer.from_gguf(FIXTURES / "fim-by-key.gguf")
    special, encode = tok.special_ids, tok.encode_ordinary
    files = [{"text": "x", "filename": "a"}, {"text": "y"}]
    before = [special["fim_rep"], *encode("myproject\n")] if "fim_rep" in special else []
    for name, text in (("a\n", "x"), ("tmp\n", "y"), ("filename\n", "")):
        if "fim_sep" in special:
            before += [special["fim_sep"], *encode(name), *encode(text)]
    middle = [special["fim_pre"], *encode("p"), special["fim_suf"], *encode("s"), special["fim_mid"]]
    assert tok.encode_infill("p", "s", extra=files) == before + middle
    assert tok.encode_infill("p", "s", extra=files, n_batch=100, n_ctx=101) == before[-3:] + middle
    swapped = [special["fim_suf"], *encode("s"), special["fim_pre"], *encode("p"), special["fim_mid"]]
    assert tok.encode_infill("p", "s", spm_infill=True, n_ctx=0) == swapped


@pytest.mark.parametrize("extra", [[{}], [5], "abc", {"text": "a"}, [{"text": "a", "filename": 5}]])
def test_other_files_are_objects(extra: Any) -> None:
    tok = with_ids(**{f"{name}_token_id": token for name, token in FIM.items()})
    with pytest.raises(TypeError, match='extra is a list of mappings with a "text"'):
        tok.encode_infill("a", "b", extra=extra)
    with pytest.raises(TypeError, match="n_batch must be an integer, not str"):
        tok.encode_infill("a", "b", n_batch="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="spm_infill must be True or False, not 'no'"):
        tok.encode_infill("a", "b", spm_infill="no")  # type: ignore[arg-type]


def test_a_pair_is_of_texts() -> None:
    for pair, name in ((b"a", "b"), "a"), (("a", 5), "b"):
        with pytest.raises(TypeError, match=f"{name} must be a str, not"):
            Tokenizer.from_gguf(GPT2).encode_pair(*pair)  # type: ignore[arg-type]


def test_infill_without_its_tokens() -> None:
    with pytest.raises(ValueError, match="Infill is not supported by this model: prefix token is missing"):
        Tokenizer.from_gguf(GPT2).encode_infill("a", "b")


def test_a_long_text_is_cut_to_a_batch() -> None:
    tok = with_ids(**{f"{name}_token_id": token for name, token in FIM.items()})
    ids = tok.encode_infill(" a" * 100, " b" * 100, n_batch=40)
    [a], [b] = tok.encode(" a"), tok.encode(" b")
    assert ids == [1, *[a] * 30, 2, *[b] * 8, 3]
