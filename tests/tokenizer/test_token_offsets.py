"""Offsets and words of the compiled engine are those of the reference engine, for every model, whatever the text is."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from conftest import GPT2, ROOT
from split_cases import odd_text, opened, special_texts
from synthetic import tokenizer_as

from ggufbpe import Tokenizer
from ggufbpe.models.pretokenizers.random_texts import RandomTexts
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.native import native
from ggufbpe.tokenizer.reference_engine import ReferenceEngine
from ggufbpe.tokenizer.token_offsets import TokenOffsets, chunks_add_up, spans

pytestmark = [
    pytest.mark.skipif(native is None, reason="there is no compiled engine"),
    pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning"),  # of opening what is odd
]

MODELS = ("llama", "bert", "t5", "rwkv", "gpt2", "gemma4", "hybriddna", "whitespace", "plamo2", "plamo3")
ONE_OF_EACH = ("spm", "wpm", "nomic-bert-moe", "rwkv", "plamo2", "plamo3")
TEXTS = (
    b"",
    b" ",
    b"  a  b ",
    b"plain text, and more of it\n" * 20,
    "naïve ▁ 😁 ꙮ\n<0x41> \u212bngstr\u00f6m ﬁ é e\u0301 \u3000İ".encode(),
    b"<dna>ACGTACGTAC gt</dna> A<dna>ac",
    b"\xf4\x90\x80\x80 \xf7\xbf\xbf\xbf\xe2 \xff\xc0\xa0\xed\xa0\x80 \xe2\x96 \xf0\x9f\x98 a\x81\x82",
    "中文字 한국어 ひらがな\x00\x01\xad".encode(),
    "\ufeffa\ufeff \uee00b aaaa    <|plamo:x|> <|plamo: |>".encode(),
)

Answer = tuple[list[int], Sequence[tuple[int, int]]] | str


def answer(tokenizer: Tokenizer, text: bytes, flag: bool) -> Answer:
    """Ids and offsets, or that there are none: a byte has no token, or the charsmap is damaged."""
    try:
        return tokenizer.encode_with_offsets(text, add_special=flag, parse_special=flag)
    except ValueError:
        return "ValueError"


def check(tokenizer: Tokenizer, some_texts: list[bytes]) -> None:
    reference = Tokenizer(tokenizer.vocabulary, "reference")
    for text in some_texts:
        for flag in (True, False):
            assert answer(tokenizer, text, flag) == answer(reference, text, flag), text
    for text in some_texts:
        words = reference.pre_tokenize(text)
        assert tokenizer.pre_tokenize(text) == words, text
        assert tokenizer.count_words(text) == len(words), text


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_of_every_vocabulary_of_a_model(model: str) -> None:
    for name, tokenizer in opened().items():
        if tokenizer.model != model:
            continue
        source = RandomTexts(name, special=special_texts(tokenizer))
        check(tokenizer, [*TEXTS, *(source.text() for _ in range(30))])


@pytest.mark.slow
@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_of_every_pre_tokenizer(name: str) -> None:
    tokenizer = tokenizer_as(name)
    check(tokenizer, [*TEXTS, odd_text(name, special_texts(tokenizer))[:1500]])


@pytest.mark.slow
@pytest.mark.parametrize("size", [63, 64, 511, 1023, 1025, 1 << 14, 40_000])
@pytest.mark.parametrize("name", ["gpt-2", "gemma4"])
def test_of_long_words(name: str, size: int) -> None:
    check(tokenizer_as(name), [b"a" * size + b" \xff" + b"b" * size, ("é" * size).encode()])


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_of_texts_longer_than_a_block(name: str) -> None:
    tokenizer = Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / f"{name}.gguf")
    check(tokenizer, [b"hello the  world he wor " * 7000, ("hé wor\n" * 20_000).encode()])


def test_no_step_of_the_reference_engine_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("encode_with_offsets", "pre_tokenize"):
        monkeypatch.setattr(ReferenceEngine, name, None)
    text = "naïve café<|endoftext|> 中文, and so on\n".encode() * 99 + b"\xff"
    paths = [ROOT / "fixtures" / "vocabs" / f"{name}.gguf" for name in ONE_OF_EACH]
    for tokenizer in [tokenizer_as("gpt-2"), tokenizer_as("whitespace"), *map(Tokenizer.from_gguf, paths)]:
        ids, offsets = tokenizer.encode_with_offsets(text, add_special=False)
        assert ids == tokenizer.encode(text, add_special=False)
        assert len(offsets) == len(ids)
        assert len(tokenizer.pre_tokenize(text.decode("utf-8", "ignore"))) > 0


@pytest.mark.parametrize("text", ["", "Hello world", b"\xff a"])
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_arrays_have_what_lists_have(text: str | bytes, engine: str, gpt2_path: Path) -> None:
    tokenizer = Tokenizer.from_gguf(gpt2_path, engine=engine)  # type: ignore[arg-type]
    ids, offsets = tokenizer.encode_with_offsets(text)
    id_array, offset_array = tokenizer.encode_with_offsets_to_numpy(text)
    assert (id_array.dtype, offset_array.dtype) == (np.int32, np.int64)
    assert offset_array.shape == (len(ids), 2)
    assert (id_array.tolist(), list(map(tuple, offset_array.tolist()))) == (ids, offsets)


def test_what_is_no_text() -> None:
    for method in ("encode_with_offsets", "encode_with_offsets_to_numpy", "words", "count_words"):
        with pytest.raises(TypeError, match="text must be str or bytes, not int"):
            getattr(tokenizer_as("gpt-2"), method)(1)
        with pytest.raises(ValueError, match="lone surrogate"):
            getattr(tokenizer_as("gpt-2"), method)("a\ud800")


# ---- in characters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [text for text in TEXTS if text not in TEXTS[6:7]])
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_offsets_in_characters_count_those_of_a_str(name: str, text: bytes) -> None:
    """A token that has a part of a character has all of it; the same for `str` and bytes, lists and arrays."""
    tok = Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / f"{name}.gguf")
    string = text.decode()
    ids, in_bytes = tok.encode_with_offsets(text)
    found = tok.encode_with_offsets(string, unit="characters")
    assert found == tok.encode_with_offsets(text, unit="characters")
    ends = [len(string[: number + 1].encode()) for number in range(len(string))]
    begun = [0, *ends]
    expected = [
        (
            sum(e <= start for e in ends),
            sum(b < end for b in begun[:-1]) if start < end else sum(e <= start for e in ends),
        )
        for start, end in in_bytes
    ]
    assert found == (ids, expected)
    arrays = tok.encode_with_offsets_to_numpy(string, unit="characters")
    assert (arrays[0].tolist(), list(map(tuple, arrays[1].tolist()))) == found


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_byte_that_is_not_utf8_is_a_character(engine: str) -> None:
    tok = Tokenizer.from_gguf(GPT2, engine=engine)  # type: ignore[arg-type]
    _, offsets = tok.encode_with_offsets("é".encode() + b"\xffab", unit="characters")
    assert (offsets[0][0], offsets[-1][1]) == (0, 4)
    assert all(0 <= start <= end <= 4 for start, end in offsets)


def test_a_unit_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="unit is 'bytes' or 'characters', not 'words'"):
        Tokenizer.from_gguf(GPT2).encode_with_offsets("a", unit="words")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "a", "Hello wörld, and so on"])
def test_offsets_are_read_as_a_list_of_them_is(text: str) -> None:
    tokenizer = Tokenizer.from_gguf(GPT2, engine="native")
    _, offsets = tokenizer.encode_with_offsets(text)
    _, array = tokenizer.encode_with_offsets_to_numpy(text)
    expected = [(start, end) for start, end in array.tolist()]
    assert offsets == expected
    assert list(offsets) == expected
    assert list(reversed(offsets)) == expected[::-1]
    assert offsets != [*expected, (0, 0)]
    assert [offsets[at] for at in range(-len(expected), len(expected))] == expected * 2
    assert offsets[1:] == expected[1:]
    assert offsets[::-2] == expected[::-2]
    assert np.array_equal(np.asarray(offsets), array)
    assert pickle.loads(pickle.dumps(offsets)) == offsets
    assert repr(offsets) == repr(expected)
    with pytest.raises(IndexError):
        offsets[len(expected)]


# ---- the sequence of spans ---------------------------------------------------------------------------------


def test_token_offsets_are_a_sequence_of_spans() -> None:
    offsets = TokenOffsets(np.array([0, 2, 2, 5, 5, 5], np.int64))
    pairs = [(0, 2), (2, 5), (5, 5)]
    assert (len(offsets), list(offsets), repr(offsets)) == (3, pairs, repr(pairs))
    assert (offsets[1], offsets[-1], offsets[1:]) == ((2, 5), (5, 5), pairs[1:])
    assert (list(offsets.starts), list(offsets.ends)) == ([0, 2, 5], [2, 5, 5])
    assert offsets == pairs
    assert offsets == pickle.loads(pickle.dumps(offsets))
    assert offsets != TokenOffsets(np.array([0, 2], np.int64))
    assert offsets != tuple(pairs)
    assert np.asarray(offsets).tolist() == [list(pair) for pair in pairs]
    with pytest.raises(IndexError):
        offsets[3]


def test_spans_of_a_block() -> None:
    tokenizer = Tokenizer.from_gguf(GPT2)
    assert spans(tokenizer, b"Hello world", False) == ([15496, 995], [0, 5], [5, 11])
    assert spans(tokenizer, b" world", False, at=5) == ([995], [5], [11])
    spm = Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / "spm.gguf")
    assert len(spans(spm, b"llo", False).ids) == 2  # with the space before a text
    assert spans(spm, b"llo", False, at=2).starts == [2]


ADD_UP = {"spm": False, "wpm": False, "rwkv": True, "plamo2": True, "hybriddna": False, "gemma4": True}


@pytest.mark.parametrize("name", ADD_UP)
def test_chunks_add_up(name: str) -> None:
    tokenizer = Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / f"{name}.gguf")
    assert chunks_add_up(tokenizer) is ADD_UP[name]
    assert not chunks_add_up(Tokenizer(tokenizer.vocabulary, "reference"))
