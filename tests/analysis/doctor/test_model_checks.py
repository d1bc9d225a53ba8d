"""What models without a pre-tokenizer need."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from charsmaps import charsmap as make_charsmap
from conftest import ROOT
from small_models import NORMAL, FactsOf, K, Keys, facts_of, family_keys, found, scored_keys, small_keys

from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.analysis.doctor.model_checks import (
    charsmap,
    missing_unknown,
    scores,
    tokens_with_spaces,
    unconverted_pieces,
    unconverted_spaces,
    unwritable_bytes,
    wrong_model,
)
from ggufbpe.analysis.doctor.round_trip_checks import UTF8_BYTES, byte_types, line_break
from ggufbpe.analysis.doctor.value_checks import lengths
from ggufbpe.gguf.constants import GGUFValueType
from ggufbpe.gguf.reader import GGUFFile

__all__ = ["facts_of"]  # the fixture

VOCABS = ROOT / "fixtures" / "vocabs"
NAN = float("nan")


def spm_keys(**keys: Any) -> Keys:
    """A small model of SentencePiece with all bytes."""
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "▁a", "ab"]
    own = {
        "general.architecture": "llama",
        K.MODEL: "llama",
        K.LIST: tokens,
        K.SCORES: [0.0] * 257 + [-1.0, -2.0, -3.0, -4.0, -5.0],
        K.TOKEN_TYPE: [2] + [6] * 256 + [1] * 5,
        K.UNK_ID: 0,
        **{f"tokenizer.ggml.{name}": value for name, value in keys.items()},
    }
    return {key: value for key, value in own.items() if value is not None}


def test_spaces_instead_of_their_marks(facts_of: FactsOf) -> None:
    words = [f"▁word{number}" for number in range(500)]
    keys = spm_keys()
    keys[K.LIST] += words
    keys[K.SCORES] += [-6.0] * len(words)
    keys[K.TOKEN_TYPE] += [NORMAL] * len(words)
    assert not list(unconverted_spaces(facts_of(keys)))
    raw = [token.replace("▁", " ") for token in keys[K.LIST]]
    [finding] = unconverted_spaces(facts_of({**keys, K.LIST: raw}))
    assert (finding.id, finding.severity) == ("spaces_unconverted", "error")
    assert finding.evidence == "502 tokens have a space in them, and hardly any U+2581."
    assert not list(unconverted_spaces(facts_of({**keys, K.LIST: raw, K.MODEL: "plamo2"})))  # has them so


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([*"abc"] * 100, 0),
        ([" a"] * 100, 100),
        ([" a"] * 2 + ["a"] * 400, 0),  # added text
        ([" a"] * 90 + ["▁b"] * 10, 0),
        ([" a"] * 100 + ["▁"] * 8, 100),  # runs of them are left
    ],
)
def test_tokens_with_spaces(tokens: list[str], expected: int) -> None:
    assert len(tokens_with_spaces(tokens)) == expected


def test_bytes_that_only_lack_their_types(facts_of: FactsOf) -> None:
    """SPM finds them by their texts, so that nothing is missing in a text; a generated one is shown as "<0x41>"."""
    model = facts_of(spm_keys(token_type=None))
    assert not list(unwritable_bytes(model))
    [finding] = byte_types(model)
    assert finding.fix == model.set_types(BYTE=range(1, 257))
    [types] = lengths(model)
    assert types.fix == model.set_types(UNKNOWN=[0], BYTE=list(model.byte_tokens.values()))


def test_bytes_of_another_spelling_are_not_found(facts_of: FactsOf) -> None:
    keys = spm_keys()
    keys[K.LIST] = [token.lower() for token in keys[K.LIST]]
    model = facts_of(keys)
    [finding] = unwritable_bytes(model)
    assert finding.detail == {"bytes": [byte for byte in UTF8_BYTES if f"{byte:02X}" != f"{byte:02x}"]}
    assert not list(line_break(model))  # which would say less
    assert model.tokenizer is not None
    with pytest.raises(ValueError, match="0x0A"):
        model.tokenizer.encode("\n")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (None, ("scores_missing", "warning")),
        ([-1.0] * 262, ("scores_flat", "warning")),
        ([NAN, *[-1.0] * 261], ("scores_not_numbers", "error")),
        ([-1.0, *[-2.0] * 261], None),
    ],
    ids=["missing", "flat", "NaN", "sound"],
)
def test_scores(changed: list[float] | None, expected: tuple[str, str] | None, facts_of: FactsOf) -> None:
    findings = list(scores(facts_of(spm_keys(scores=changed))))
    assert found(findings) == ([expected] if expected else [])
    if expected == ("scores_not_numbers", "error"):
        assert findings[0].evidence == "1 token has NaN: 0."


@pytest.mark.parametrize(
    ("is_shuffled", "expected"), [(True, [("scores_in_no_order", "warning")]), (False, [])]
)
def test_scores_of_many_tokens_fall(
    is_shuffled: bool, expected: list[tuple[str, str]], facts_of: FactsOf
) -> None:
    keys = spm_keys()
    fallen = [-float(index) for index in range(2000)]
    keys[K.LIST] += [f"word{index}" for index in range(len(fallen))]
    keys[K.TOKEN_TYPE] += [1] * len(fallen)
    keys[K.SCORES] += Random(1).sample(fallen, len(fallen)) if is_shuffled else fallen
    assert found(scores(facts_of(keys))) == expected


@pytest.mark.parametrize(
    ("family", "lost", "expected"),
    [
        ("", range(0), []),
        ("", range(300, 1300), [("scores_tied", "warning")]),
        ("", range(1500, 2262), []),  # tokens that were added to the vocabulary of another model
        ("Llama 2", range(20000, 32000), [("scores_tied", "warning")]),
        ("Llama 2", range(31000, 32000), []),
        ("Llama 2", range(32000, 50000), []),  # as in Chinese-LLaMA
    ],
)
def test_many_scores_of_zero_are_lost_ones(
    family: str, lost: range, expected: list[tuple[str, str]], facts_of: FactsOf
) -> None:
    keys = family_keys(family) if family else spm_keys()
    more = max(2262, lost.stop) - len(keys[K.LIST])
    keys[K.LIST] += [f"word{index}" for index in range(more)]
    keys[K.TOKEN_TYPE] += [NORMAL] * more
    keys[K.SCORES] = [0.0 if index in lost else -float(index) for index in range(len(keys[K.LIST]))]
    assert found(scores(facts_of(keys))) == expected


def test_scores_of_zero_are_usual_of_bytes_where_types_are_missing(facts_of: FactsOf) -> None:
    keys = scored_keys([f"word{index}" for index in range(1500)])
    del keys[K.TOKEN_TYPE]
    keys[K.SCORES][:259] = [0.0] * 259  # as sentencepiece writes those of special tokens and bytes
    assert not list(scores(facts_of(keys)))


def test_models_with_merges_need_no_scores(facts_of: FactsOf) -> None:
    assert not list(scores(facts_of(small_keys())))


def test_bytes_without_a_token(facts_of: FactsOf) -> None:
    assert not list(unwritable_bytes(facts_of(spm_keys())))
    tokens = [{"<0x41>": "<one>", "<0xC0>": "<other>"}.get(token, token) for token in spm_keys()[K.LIST]]
    [finding] = unwritable_bytes(facts_of(spm_keys(tokens=tokens)))
    assert finding.detail == {"bytes": [0x41]}  # 0xC0 is in no text
    assert finding.evidence == "1 byte has no token: 0x41."


def test_an_unknown_token_is_needed_where_there_is_no_other_fallback() -> None:
    for name, expected in (
        ("wpm-unknown-missing", [("unknown_missing", "warning")]),
        ("wpm", []),
        ("spm", []),
    ):
        with GGUFFile(VOCABS / f"{name}.gguf") as file:
            assert found(missing_unknown(Facts(file, None))) == expected


def test_pieces_of_bert_that_were_not_converted(facts_of: FactsOf) -> None:
    words = [f"word{number}" for number in range(300)]
    raw = ["[UNK]", "[CLS]", "[SEP]", *words, *(f"##{word}" for word in words)]
    converted = ["[UNK]", "[CLS]", "[SEP]", *(f"▁{word}" for word in words), *words]
    keys = {"general.architecture": "bert", K.MODEL: "bert", K.TOKEN_TYPE: [3] * 3 + [1] * 600}
    [finding] = unconverted_pieces(facts_of({**keys, K.LIST: raw}))
    assert (finding.id, finding.severity) == ("pieces_unconverted", "error")
    assert finding.detail == {"count": 300, "ids": list(range(303, 403))}
    assert not list(unconverted_pieces(facts_of({**keys, K.LIST: converted})))


def test_tokens_of_another_model_than_the_file_names(facts_of: FactsOf) -> None:
    keys, more = spm_keys(), [f"▁word{number}" for number in range(600)]
    keys[K.LIST] += more
    keys[K.TOKEN_TYPE] += [1] * len(more)
    keys[K.SCORES] += [float(-6 - number) for number in range(len(more))]
    assert not list(wrong_model(facts_of(keys)))
    model = facts_of({**keys, K.MODEL: "t5"})
    [finding] = wrong_model(model)
    assert finding.detail is not None
    assert finding.detail["likely"] == ["llama"]
    assert finding.fix == model.set(K.MODEL, "llama")
    assert finding.severity == "warning"  # the file can be opened as the wrong model


def unigram_keys(table: bytes | None) -> Keys:
    """A small Unigram model with a charsmap."""
    keys = {
        "general.architecture": "t5",
        K.MODEL: "t5",
        K.LIST: ["<unk>", "▁", "b"],
        K.SCORES: [0.0, -1.0, -2.0],
    }
    if table is not None:
        keys[K.PRECOMPILED_CHARSMAP] = (list(table), GGUFValueType.ARRAY, GGUFValueType.UINT8)
    return keys


def test_charsmaps(facts_of: FactsOf) -> None:
    sound = make_charsmap({b"A": b"b", b"AA": b"bb"})
    assert not list(charsmap(facts_of(unigram_keys(sound))))
    assert found(charsmap(facts_of(unigram_keys(None)))) == [("charsmap_missing", "note")]
    assert not list(charsmap(facts_of(small_keys())))  # a model that has none
    for family, severity in (("T5", "warning"), ("XLM-RoBERTa", "warning"), ("umT5", "note")):
        assert found(charsmap(facts_of(family_keys(family)))) == [("charsmap_missing", severity)]
    cut_off = sound[: -len("bb\0")]  # the second replacement
    [finding] = charsmap(facts_of(unigram_keys(cut_off)))
    assert (finding.id, finding.severity) == ("charsmap_damaged", "error")
    assert finding.evidence == "1 offset points beyond the end of the charsmap, after 'AA'."
    assert finding.fix == "convert the model again"  # without the charsmap, other text would get other ids
