"""WordPiece from a tokenizer.json and from a vocab.txt."""

from __future__ import annotations

from typing import Any

import pytest

from ggufbpe.convert.exporters.hf_config import HFConfig
from ggufbpe.convert.exporters.hf_wordpiece import word_piece_normalizer
from ggufbpe.convert.imported import NotImportableError
from ggufbpe.convert.importers.hf_document import HFDocument
from ggufbpe.convert.importers.import_wordpiece import (
    import_word_pieces,
    lines_of_pieces,
    word_pieces_of_lines,
)
from ggufbpe.gguf.constants import TokenizerKey, TokenType

LINES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "##ing"]
ENDLESS = 1 << 30


def document(*, model: Any = None, **parts: Any) -> HFDocument:
    """A tokenizer.json of BERT's, with some parts replaced."""
    own = {
        "type": "WordPiece",
        "vocab": {text: index for index, text in enumerate(LINES)},
        "unk_token": "[UNK]",
        "max_input_chars_per_word": ENDLESS,
        **(model or {}),
    }
    added = [{"id": index, "content": text, "special": True} for index, text in enumerate(LINES[:4])]
    ends = {"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]}
    normalizer = word_piece_normalizer(lowercase=True, strip_accents=False)
    return HFDocument(
        {"added_tokens": added, "post_processor": ends, "normalizer": normalizer, **parts, "model": own},
        HFConfig({}),
    )


def test_tokenizer_json() -> None:
    keys, told = import_word_pieces(document())
    assert keys["tokenizer.ggml.tokens"] == [*LINES[:4], "▁play", "ing"]
    special = {name: keys[f"tokenizer.ggml.{name}_token_id"] for name in ("bos", "seperator", "unknown")}
    assert special == {"bos": 2, "seperator": 3, "unknown": 1}
    flags = keys[TokenizerKey.NORMALIZER_LOWERCASE], keys[TokenizerKey.NORMALIZER_STRIP_ACCENTS]
    assert flags == (True, False)
    assert [limit.name for limit in told] == ["older_punctuation", "newer_unicode", "escaped_spaces"]


BERT = {"type": "BertNormalizer", "lowercase": True, "strip_accents": None}
LIMITS: dict[str, tuple[dict[str, Any], str]] = {
    "BERT's own normalizer": ({"normalizer": BERT}, "normalization"),
    "short words": ({"model": {"max_input_chars_per_word": 100}}, "long_words"),
    "no ends": ({"post_processor": None}, "always_added"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str) -> None:
    parts, limit = LIMITS[name]
    keys, told = import_word_pieces(document(**parts))
    assert limit in {each.name for each in told}
    assert keys[TokenizerKey.NORMALIZER_STRIP_ACCENTS] is ("normalizer" in parts)  # by default as lower case


def test_another_prefix_is_refused() -> None:
    with pytest.raises(
        NotImportableError, match="continuing pieces begin with '@', and must begin with '##'"
    ):
        import_word_pieces(document(model={"continuing_subword_prefix": "@"}))


def test_vocab_txt() -> None:
    data = "\r\n".join(LINES).encode() + b"\r\n"
    lines = lines_of_pieces("vocab.txt", data, HFConfig({}))
    assert lines == LINES
    keys, _ = word_pieces_of_lines(lines, HFConfig({}))
    assert keys["tokenizer.ggml.tokens"] == [*LINES[:4], "▁play", "ing"]
    assert keys["tokenizer.ggml.token_type"] == [int(TokenType.CONTROL)] * 4 + [int(TokenType.NORMAL)] * 2
    assert keys["tokenizer.ggml.padding_token_id"] == 0


FLAGS: list[tuple[dict[str, Any], tuple[bool, bool]]] = [
    ({}, (True, True)),
    ({"do_lower_case": False}, (False, False)),
    ({"do_lower_case": False, "strip_accents": True}, (False, True)),
    ({"strip_accents": False}, (True, False)),
]


@pytest.mark.parametrize(("config", "flags"), FLAGS)
def test_flags_of_a_vocab_txt(config: dict[str, Any], flags: tuple[bool, bool]) -> None:
    keys, _ = word_pieces_of_lines(LINES, HFConfig(config))
    found = keys[TokenizerKey.NORMALIZER_LOWERCASE], keys[TokenizerKey.NORMALIZER_STRIP_ACCENTS]
    assert found == flags


def test_added_tokens_beside_a_vocab_txt() -> None:
    config = HFConfig({}, added={"<new>": 7})
    keys, _ = word_pieces_of_lines(LINES, config)
    assert keys["tokenizer.ggml.tokens"][6:] == ["[PAD6]", "<new>"]
    assert keys["tokenizer.ggml.token_type"][6:] == [int(TokenType.UNUSED), int(TokenType.USER_DEFINED)]


def test_an_added_token_that_a_vocab_txt_has_at_its_id_replaces_none() -> None:
    config = HFConfig({}, added={"a▁b": 6, "play": 4})
    keys, told = word_pieces_of_lines([*LINES, "a▁b"], config)
    assert keys["tokenizer.ggml.tokens"][4:] == ["play", "ing", "a▁b"]
    assert "replaced_tokens" not in [limit.name for limit in told]


REFUSED = {
    b"\xff": "byte 0 is not UTF-8",
    b"[CLS]\nplay\n": "no line is '[UNK]'",
    b"[UNK]\n[CLS]\n\nplay\n": "line 3 is '', which is not a word piece",
    b"[UNK]\n[CLS]\na b\n": "line 3, 'a b', has white space in it",
    b"[UNK]\n[CLS]\na\na\n": "line 3, 'a', is there twice",
}


@pytest.mark.parametrize("data", REFUSED)
def test_what_is_no_vocab_txt(data: bytes) -> None:
    with pytest.raises(NotImportableError) as refusal:
        lines_of_pieces("vocab.txt", data, HFConfig({}))
    assert REFUSED[data] in str(refusal.value)


def test_pieces_that_become_one_token() -> None:
    with pytest.raises(NotImportableError, match="two word pieces become the token '▁a'"):
        word_pieces_of_lines([*LINES, "a", "##▁a"], HFConfig({}))
