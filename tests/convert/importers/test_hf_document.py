"""A tokenizer.json is checked part by part."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tokenizers
from tokenizer_json_cases import document

from ggufbpe.convert.exporters.boundary_markers import AT_BORDERS, border_steps
from ggufbpe.convert.exporters.hf_config import HFConfig
from ggufbpe.convert.imported import NotImportableError
from ggufbpe.convert.importers.hf_document import HFDocument
from ggufbpe.convert.importers.hf_limits import added_token_limits
from ggufbpe.gguf.constants import TokenType
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS


def test_tokens_and_types() -> None:
    added = [
        {"id": 4, "content": "<s>", "special": True},
        {"id": 0, "content": "a", "special": False},
    ]
    read = document(added_tokens=added)
    assert read.tokens == ["a", "b", "ab", "[PAD3]", "<s>"]
    kinds = (TokenType.USER_DEFINED, TokenType.NORMAL, TokenType.NORMAL, TokenType.UNUSED, TokenType.CONTROL)
    assert read.types == list(map(int, kinds))
    assert read.ids["<s>"] == 4


@pytest.mark.parametrize(
    ("vocab", "ids"),
    [
        ({"a": 0, "b": 1, "ab": 2}, {"<s>": 3, "</s>": 4}),
        ({"a": 0, "b": 1, "ab": 2, "<s>": 3}, {"<s>": 3, "</s>": 4}),
        ({"a": 0, "b": 1, "ab": 2}, {"<s>": 3, "</s>": 9}),
        ({"a": 0, "b": 1, "ab": 2}, {"</s>": 7, "<s>": 4}),
        ({"a": 0, "b": 5, "ab": 2}, {"<s>": 6, "</s>": 7}),
        ({"a": 0, "b": 5, "ab": 2}, {"b": 5, "</s>": 6}),
    ],
)
def test_added_tokens_that_the_library_numbers_otherwise(vocab: dict[str, int], ids: dict[str, int]) -> None:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    added = [{"id": token, "content": text} | flags for text, token in ids.items()]
    model = {"type": "BPE", "vocab": vocab, "merges": []}
    nothing = dict.fromkeys(
        ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder")
    )
    file = {"version": "1.0", **nothing, "added_tokens": added, "model": model}
    library = tokenizers.Tokenizer.from_str(json.dumps(file))
    read = HFDocument(file, HFConfig({}))
    assert read.renumbered() == [text for text in ids if library.token_to_id(text) != ids[text]]
    told = [limit.name for limit in added_token_limits(read, "gpt-2", "llama", "")]
    assert ("added_ids" in told) is bool(read.renumbered())


def test_tokens_that_only_the_files_beside_add() -> None:
    beside = {
        "4": {"content": "<s>", "special": True},
        "5": {"content": "<tool>", "special": False, "lstrip": True},
        "6": {"content": "<|im_start|>", "special": True},
    }
    added = [{"id": 3, "content": "</s>", "special": True}, {"id": 4, "content": "<s>", "special": True}]
    read = document(added_tokens=added, config={"added_tokens_decoder": beside}, normalizer={"type": "NFC"})
    assert read.tokens == ["a", "b", "ab", "</s>", "<s>", "<tool>", "<|im_start|>"]
    assert read.types[3:] == list(
        map(int, (TokenType.CONTROL, TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.CONTROL))
    )
    assert [(limit.name, limit.number) for limit in added_token_limits(read, "gpt-2", "llama", "")] == [
        ("lstrip", 1),
        ("added_beside", 2),
        ("normalized_tokens", 1),  # as transformers assumes of tokens that are not special
    ]


FLAGS = [  # in tokenizer.json, in added_tokens_decoder, in the settings; the flags that transformers 5 gives
    ({}, {"special": True}, {}, {"special"}),
    ({"special": True}, {}, {}, set()),
    ({}, {"lstrip": True}, {}, {"lstrip"}),
    ({"lstrip": True}, {}, {}, set()),
    ({"special": True}, {"special": True, "lstrip": True}, {}, {"special", "lstrip"}),
    ({"special": True}, None, {}, {"special"}),
    ({}, None, {"eos_token": "<x>"}, {"special"}),
    ({"lstrip": True}, {}, {"eos_token": "<x>"}, {"special"}),
    ({"special": True}, {"special": False}, {"pad_token": {"content": "<x>"}}, {"special"}),
    ({}, None, {"additional_special_tokens": ["<x>"]}, set()),
]


@pytest.mark.parametrize(("in_file", "beside", "settings", "flags"), FLAGS)
def test_flags_of_added_tokens_are_those_of_transformers(
    in_file: dict[str, bool], beside: dict[str, bool] | None, settings: dict[str, Any], flags: set[str]
) -> None:
    decoder = {} if beside is None else {"added_tokens_decoder": {"3": {"content": "<x>", **beside}}}
    read = document(
        added_tokens=[{"id": 3, "content": "<x>", "special": False, **in_file}],
        config={**settings, **decoder},
    )
    [token] = read.added
    assert {flag for flag in ("lstrip", "rstrip", "single_word", "special") if token.get(flag)} == flags
    assert read.types[3] == (TokenType.CONTROL if "special" in flags else TokenType.USER_DEFINED)
    differ = flags != {flag for flag, value in in_file.items() if value}
    told = [limit.name for limit in added_token_limits(read, "gpt-2", "llama", "")]
    assert ("flags_beside" in told) is differ


def test_pieces_of_a_unigram_model() -> None:
    read = document(
        model={"type": "Unigram", "vocab": [["a", -1], ["", 0], ["b", -2.5]]},
        added_tokens=[{"id": 3, "content": "<s>"}],
    )
    assert read.tokens == ["a", "[PAD1]", "b", "<s>"]
    assert read.scores == [-1.0, 0.0, -2.5, 0.0]


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ({"unk_id": 0, "vocab": [["a", -1]]}, "Unigram"),  # T5
        (
            {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {"a": 0}},
            "WordPiece",
        ),
        ({"vocab": {"a": 0}, "merges": []}, "BPE"),
        ({"type": "WordPiece", "vocab": {"a": 0}}, "WordPiece"),
        ({"type": "BPE", "vocab": {"a": 0}}, "BPE"),
    ],
)
def test_a_model_without_a_type_is_told_by_its_fields(model: dict[str, Any], kind: str) -> None:
    assert document(model=model).model["type"] == kind


def test_merges_of_both_forms() -> None:
    model = {"vocab": {"a": 0}, "merges": ["a b", ["c d", "e"]]}
    assert list(document(model=model).merge_pairs()) == [("a", "b"), ("c d", "e")]
    with pytest.raises(NotImportableError, match="a merge is 'a b c', not two tokens"):
        list(document(model={"vocab": {"a": 0}, "merges": ["a b c"]}).merge_pairs())


def template(*pieces: str) -> dict[str, Any]:
    """A post-processor that adds tokens around a text, which is called "text"."""
    single = [
        {"Sequence": {"id": "A"}} if each == "text" else {"SpecialToken": {"id": each}} for each in pieces
    ]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "special_tokens": {each: {"ids": [index]} for index, each in enumerate(("a", "b", "ab"))},
    }


ENDS: list[tuple[Any, dict[str, int], list[str]]] = [
    (None, {}, []),
    (template("a", "text", "ab"), {"bos": 0, "eos": 2}, []),
    (template("text", "b"), {"eos": 1}, []),
    (template("a", "b", "text"), {"bos": 0}, ["more_than_one_end"]),
    ({"type": "BertProcessing", "cls": ["b", 1], "sep": ["a", 0]}, {"bos": 1, "eos": 0}, []),
]


@pytest.mark.parametrize(("post_processor", "ids", "limits"), ENDS)
def test_ends(post_processor: Any, ids: dict[str, int], limits: list[str]) -> None:
    found, told = document(post_processor=post_processor).ends()
    assert (found, [limit.name for limit in told]) == (ids, limits)


def test_special_ids() -> None:
    read = document(config={"unk_token": "b", "pad_token": "none", "eos_token": "a"})
    assert read.special_ids({"eos": 2}) == {
        "tokenizer.ggml.eos_token_id": 2,  # what is added to a text counts before a name
        "tokenizer.ggml.unknown_token_id": 1,
    }


def test_an_empty_added_token_is_not_what_no_name_means() -> None:
    read = document(added_tokens=[{"id": 3, "content": "", "special": True}])
    assert read.special_ids({}) == {}


def test_borders_are_read_as_patterns() -> None:
    entry = PRE_TOKENIZERS["falcon"]
    normalizer = {"type": "Sequence", "normalizers": border_steps(entry, drops_white_space=False)}
    read = document(normalizer=normalizer, pre_tokenizer=AT_BORDERS)
    assert read.parts("normalizer") == []
    assert {part["type"] for part in read.parts("pre_tokenizer")} == {"Split"}


REFUSED: dict[str, dict[str, Any]] = {
    "the file has no model with a vocabulary": {"model": {"type": "BPE"}},
    "the model is 'WordLevel', which llama.cpp does not have": {"model": {"type": "WordLevel", "vocab": {}}},
    "this is not how the vocabulary of a Unigram model is written": {
        "model": {"type": "Unigram", "vocab": {"a": 0}}
    },
    "model is 'WordLevel', which llama.cpp does not have": {"model": {"vocab": {"a": 0}, "unk_token": "a"}},
    "the pieces are not as in a tokenizer.json": {"model": {"type": "Unigram", "vocab": [["a", None]]}},
    "the ids of the vocabulary are not all numbers from 0 up": {"model": {"type": "BPE", "vocab": {"a": -1}}},
    "the model has the end_of_word_suffix '</w>'": {
        "model": {"type": "BPE", "vocab": {"a": 0}, "end_of_word_suffix": "</w>"}
    },
    "the added tokens are not as in a tokenizer.json": {"added_tokens": [{"id": "x", "content": "a"}]},
    "two tokens have the id 0: 'a' and 'x'": {"added_tokens": [{"id": 0, "content": "x"}]},
    "two ids have the token 'a'": {"added_tokens": [{"id": 3, "content": "a"}]},
    "the file has no tokens": {"model": {"type": "BPE", "vocab": {}}},
    "the file has 1 tokens and ids up to 1000000": {"model": {"type": "BPE", "vocab": {"a": 1_000_000}}},
    "the charsmap has 3 bytes, too few for its size": {
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    },
    "has a NUL, which ends a string": {"model": {"type": "BPE", "vocab": {"a\0": 0}}},
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str) -> None:
    with pytest.raises(NotImportableError) as refusal:
        document(**REFUSED[message])
    assert message in str(refusal.value)


def test_ends_that_are_no_ids() -> None:
    read = document(post_processor={"type": "BertProcessing", "cls": ["b", 9], "sep": ["a", 0]})
    with pytest.raises(NotImportableError, match="the post-processor adds '9', which is not a token id"):
        read.ends()
