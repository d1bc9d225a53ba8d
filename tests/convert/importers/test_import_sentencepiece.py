"""tokenizer.model: pieces, special ids, and what llama.cpp does differently."""

from __future__ import annotations

from typing import Any

import pytest

from ggufbpe.convert.exporters.hf_config import HFConfig
from ggufbpe.convert.exporters.sentencepiece_model import BPE, UNIGRAM, protocol
from ggufbpe.convert.imported import NotImportableError
from ggufbpe.convert.importers.import_sentencepiece import import_sentencepiece, read_model
from ggufbpe.convert.incompatibilities import NOT_ABOUT_IDS
from ggufbpe.gguf.constants import TokenType

PIECES = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), ("▁a", -1.0, 1), ("b", -2.0, 1)]


def model(kind: int = UNIGRAM, pieces: list[tuple[Any, float, int]] = PIECES, **normalizer: Any) -> bytes:
    """A tokenizer.model of these pieces."""
    made = protocol().ModelProto()
    made.trainer_spec.model_type = kind
    made.trainer_spec.byte_fallback = kind == BPE
    for text, score, type_ in pieces:
        made.pieces.add(piece=text, score=score, type=type_)
    made.normalizer_spec.remove_extra_whitespaces = False
    for name, value in normalizer.items():
        setattr(made.normalizer_spec, name, value)
    data: bytes = made.SerializeToString()
    return data


def test_pieces_and_special_ids() -> None:
    algorithm, keys, told = import_sentencepiece(model(remove_extra_whitespaces=True), HFConfig({}))
    assert algorithm == "unigram"
    assert keys["tokenizer.ggml.tokens"] == [text for text, _, _ in PIECES]
    assert keys["tokenizer.ggml.scores"] == [score for _, score, _ in PIECES]
    assert keys["tokenizer.ggml.token_type"] == [kind for _, _, kind in PIECES]
    assert keys["tokenizer.ggml.remove_extra_whitespaces"] is True
    assert keys["tokenizer.ggml.add_space_prefix"] is True
    names = {
        name: keys.get(f"tokenizer.ggml.{name}_token_id") for name in ("unknown", "bos", "eos", "padding")
    }
    assert names == {"unknown": 0, "bos": 1, "eos": 2, "padding": None}
    assert [limit.name for limit in told] == ["rounded_sums"]


def test_names_and_added_tokens_beside_it() -> None:
    config = HFConfig({"bos_token": "</s>"}, added={"<new>": 6})
    algorithm, keys, told = import_sentencepiece(model(BPE), config)
    assert algorithm == "scores"
    assert keys["tokenizer.ggml.tokens"][5:] == ["[PAD5]", "<new>"]
    assert keys["tokenizer.ggml.token_type"][5:] == [int(TokenType.UNUSED), int(TokenType.USER_DEFINED)]
    assert keys["tokenizer.ggml.scores"][5:] == [-10000.0, -1000.0]
    assert keys["tokenizer.ggml.bos_token_id"] == 2
    assert "tokenizer.ggml.remove_extra_whitespaces" not in keys
    assert [limit.name for limit in told] == ["spaces_beside_user_defined_tokens", "unused_tokens"]


def test_an_empty_added_token_is_not_what_no_name_means() -> None:
    _, keys, _ = import_sentencepiece(model(), HFConfig({}, added={"": 5}))
    named = [key for key in keys if key.endswith("_token_id")]
    assert [keys[key] for key in named] == [1, 2, 0]  # BOS, EOS and unknown, which the model has


def test_a_token_that_an_added_one_replaces_is_told() -> None:
    _, keys, told = import_sentencepiece(model(), HFConfig({}, added={"<pad>": 4, "<s>": 1, "<x>": 9}))
    assert keys["tokenizer.ggml.tokens"][4] == "<pad>"
    [lost] = [limit for limit in told if limit.name == "replaced_tokens"]
    assert (lost.number, "'<pad>' takes the place of 'b'" in lost.what) == (1, True)
    assert lost.name not in NOT_ABOUT_IDS  # a text with the lost token has other ids than in sentencepiece


def test_a_token_written_with_spaces_is_the_piece_with_escaped_ones() -> None:
    """Gemma's runs of spaces are pieces, and tokens in added_tokens_decoder as well."""
    pieces = [*PIECES, ("▁▁", 0.0, 4), ("▁▁▁", 0.0, 4), ("<｜a▁b｜>", 0.0, 3)]
    beside = {"5": {"content": "  "}, "6": {"content": "▁▁▁"}, "7": {"content": "<｜a▁b｜>"}}
    _, keys, told = import_sentencepiece(model(pieces=pieces), HFConfig({"added_tokens_decoder": beside}))
    assert keys["tokenizer.ggml.tokens"][5:] == ["  ", "   ", "<｜a▁b｜>"]
    assert "replaced_tokens" not in [limit.name for limit in told]


def test_ids_of_xlm_roberta() -> None:
    _, keys, _ = import_sentencepiece(model(), HFConfig({}), fairseq=True)
    assert keys["tokenizer.ggml.tokens"] == ["<s>", "<pad>", "</s>", "<unk>", "▁a", "b", "<mask>"]


LIMITS: dict[str, tuple[int, dict[str, Any]]] = {
    "normalizer": (BPE, {"precompiled_charsmap": b"\0\0\0\0"}),
    "extra_white_space": (BPE, {"remove_extra_whitespaces": True}),
    "white_space": (BPE, {"escape_whitespaces": False}),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str) -> None:
    kind, flags = LIMITS[name]
    _, _, told = import_sentencepiece(model(kind, **flags), HFConfig({}))
    assert [limit.name for limit in told] == [name]


REFUSED: dict[str, bytes] = {
    "this is not a sentencepiece model: it has no pieces": model(pieces=[]),
    "this is not a sentencepiece model: ": b"\xff\xff",
    "the model splits into words or characters": model(3),
    "two pieces are 'a'": model(pieces=[("a", 0.0, 1), ("a", 0.0, 1)]),
    "piece 0 is '': none can be empty": model(pieces=[("", 0.0, 1)]),
    "the score of piece 0, 'a', is not a number": model(pieces=[("a", float("nan"), 1)]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str) -> None:
    with pytest.raises(NotImportableError) as refusal:
        read_model(REFUSED[message])
    assert message in str(refusal.value)
