"""What every tokenizer model shares."""

from __future__ import annotations

import pytest
from synthetic import make_vocabulary

from ggufbpe.models import SUPPORTED, tokenizer_model
from ggufbpe.models.tokenizer_model import (
    NO_TOKEN,
    TextModel,
    TokenizerModel,
    first_attributes,
    unknown_id,
)


def test_unknown_id() -> None:
    assert unknown_id(make_vocabulary(["a", "u"], special_ids={"unk": 1})) == 1
    assert unknown_id(make_vocabulary(["a"], special_ids={"unk": None})) == NO_TOKEN


ADDED = [
    ("gpt2", True, True, ([0], [1])),
    ("gpt2", False, False, ([], [])),
    ("gpt2", False, True, ([], [1])),
    ("bert", False, False, ([0], [2])),  # CLS and SEP, whatever the flags say
]


@pytest.mark.parametrize(("model", "add_bos", "add_eos", "expected"), ADDED)
def test_added(model: str, add_bos: bool, add_eos: bool, expected: tuple[list[int], list[int]]) -> None:
    vocabulary = make_vocabulary(
        "abc", model=model, add_bos=add_bos, add_eos=add_eos, special_ids={"bos": 0, "eos": 1, "sep": 2}
    )
    assert tokenizer_model(model).added(vocabulary) == expected
    missing = vocabulary._replace(special_ids=dict.fromkeys(vocabulary.special_ids))
    assert tokenizer_model(model).added(missing) == ([], [])


def test_models_that_keep_every_byte_of_a_text() -> None:
    keep = [name for name in SUPPORTED if tokenizer_model(name).keeps_text]
    assert keep == ["gpt2", "gemma4", "rwkv", "plamo2", "plamo3"]


def test_first_attributes_go_before_those_after_special_tokens() -> None:
    vocabulary = make_vocabulary("ab")
    assert first_attributes(vocabulary) == vocabulary.attributes
    assert first_attributes(vocabulary._replace(first_attributes=[8, 8])) == [8, 8]


def test_defaults() -> None:
    model = TokenizerModel()
    assert model.line_break(make_vocabulary("a"), [7, 8]) == 7
    assert model.line_break(make_vocabulary("a"), []) is None
    assert model.plain_piece("▁a", make_vocabulary("a").pre_tokenizer) == b" a"
    with pytest.raises(NotImplementedError):
        model.text_model(make_vocabulary("a"))


def test_forget_words() -> None:
    text: TextModel = tokenizer_model("gpt2").text_model(make_vocabulary(["a", "b"]))
    assert list(map(list, text.runs(b"ab"))) == [[(0, 1)]]
    cache = vars(text)["word_ids"]
    assert len(cache) == 1
    text.forget_words()
    assert len(cache) == 0
    assert list(map(list, text.runs(b"ab"))) == [[(0, 1)]]
