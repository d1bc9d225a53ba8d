"""What byte pair encoding reads of a file: merges, the pre-tokenizer, and doubts about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from reference import write_metadata
from synthetic import byte_tokens, make_vocabulary

from ggufbpe import Tokenizer
from ggufbpe._util.errors import UnknownPreTokenizerError
from ggufbpe.gguf.metadata import Metadata
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models.bpe.bpe_model import BytePairModel, merging_alone
from ggufbpe.models.format_detection import Looks
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS

MODEL = BytePairModel()
KEYS = {"tokenizer.ggml.pre": "gpt-22", "tokenizer.ggml.merges": ["a b", "a c\0d"]}


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Metadata]:
    """Metadata with two merges, one of them with a NUL, at which llama.cpp ends it."""
    with GGUFFile(write_metadata(tmp_path / "m.gguf", KEYS)) as opened:
        yield Metadata(opened)


def test_merges(file: Metadata) -> None:
    assert list(MODEL.merges(file, "gpt-2")) == ["a b", "a c"]


NAMES = [
    ("llama-bpe", "llama-bpe", ""),
    ("", "default", "missing, so the 'default' pre-tokenizer is used"),
    ("default", "default", "is 'default'"),
]


@pytest.mark.parametrize(("named", "name", "warning"), NAMES)
def test_pre_tokenizer(file: Metadata, named: str, name: str, warning: str) -> None:
    warned: list[str] = []
    assert MODEL.pre_tokenizer(file, named, warned.append) is PRE_TOKENIZERS[name]
    assert len(warned) == bool(warning)
    assert warning in "".join(warned)


def test_an_unknown_pre_tokenizer_is_refused(file: Metadata) -> None:
    with pytest.raises(UnknownPreTokenizerError, match=r"unknown pre-tokenizer .*gpt-22.*near: gpt-2"):
        MODEL.pre_tokenizer(file, "gpt-22", lambda _: None)


def test_doubt() -> None:
    tokens = dict.fromkeys(map(str, range(1990, 2021)), 0)
    warned: list[str] = []
    MODEL.doubt("llama-bpe", PRE_TOKENIZERS["llama-bpe"], tokens, warned.append)  # digits by threes
    MODEL.doubt("gpt-2", PRE_TOKENIZERS["gpt-2"], tokens, warned.append)  # digits in any number
    assert len(warned) == 1
    assert "tokenizer.ggml.pre is 'llama-bpe', which cuts tokens such as" in warned[0]


@pytest.mark.parametrize(
    ("pre", "token", "expected"),
    [
        ("gpt-2", "Ċ", True),  # the newline in GPT-2's alphabet
        ("gpt-2", "\n", False),
        ("gemma4", "\n", True),
        ("gemma4", "<0x0A>", True),
        ("gemma4", "Ċ", False),
    ],
)
def test_has_line_break(pre: str, token: str, expected: bool) -> None:
    assert MODEL.has_line_break(PRE_TOKENIZERS[pre], {token: 0}) is expected


@pytest.mark.parametrize(
    ("pre", "text", "piece"),
    [
        ("gpt-2", "Ġa", b" a"),
        ("gpt-2", "Ã©", "é".encode()),
        ("gpt-2", "a日", b"a[UNK_BYTE_0xe697a5a\xe6\x97\xa5]"),  # no character of the alphabet
        ("gemma4", "▁a", b" a"),
    ],
)
def test_plain_piece(pre: str, text: str, piece: bytes) -> None:
    assert MODEL.plain_piece(text, PRE_TOKENIZERS[pre]) == piece


LOOKS = [
    (Looks(is_byte_level=True, has_merges=True), True),
    (Looks(has_merges=True), None),
    (Looks(begins_words=True), False),
]


@pytest.mark.parametrize(("looks", "expected"), LOOKS)
def test_recognizes(looks: Looks, expected: bool | None) -> None:
    assert MODEL.recognizes(looks) is expected


def test_merging_alone_does_not_split() -> None:
    vocabulary = make_vocabulary([*byte_tokens(), "1 ", "1 2"], merges=["1  ", "1  2"])
    merging = Tokenizer(merging_alone(vocabulary), "reference")
    assert merging.pre_tokenize("1 2 a\nb") == ["1 2 a", "\n", "b"]
