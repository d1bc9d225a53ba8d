"""WordPiece in a tokenizer.json: the parts, and the library's normalizer on the characters that differ."""

from __future__ import annotations

import json
from typing import Any

import pytest
from synthetic import make_vocabulary
from tokenizers import Tokenizer

from ggufbpe.convert.exporters.hf_wordpiece import word_piece_normalizer, word_piece_parts
from ggufbpe.models.vocabulary import CONTROL, UNKNOWN
from ggufbpe.models.wordpiece import BertNormalizer

VOCABULARY = make_vocabulary(
    ["[UNK]", "[CLS]", "▁play", "ing"],
    attributes={"[UNK]": UNKNOWN, "[CLS]": CONTROL},
    model="bert",
    special_ids={"unk": 0, "bos": 1},
)


def test_parts() -> None:
    parts = word_piece_parts(VOCABULARY, False)
    assert parts.model["vocab"] == {"[UNK]": 0, "[CLS]": 1, "play": 2, "##ing": 3}
    assert (parts.model["unk_token"], parts.model["continuing_subword_prefix"]) == ("[UNK]", "##")
    assert parts.pre_tokenizer == {"type": "BertPreTokenizer"}
    assert parts.decoder == {"type": "WordPiece", "prefix": "##", "cleanup": False}
    assert parts.second_type == 1
    assert "older_punctuation" in {limit.name for limit in parts.limits}


def test_listed_code_points() -> None:
    parts = word_piece_parts(VOCABULARY, True)
    steps: list[dict[str, Any]] = (parts.pre_tokenizer or {})["pretokenizers"]
    assert [step["type"] for step in steps] == ["Split", "Split"]
    names = {limit.name for limit in parts.limits}
    assert "not_read_by_tokenizers_1" in names
    assert "older_punctuation" not in names


EMPTY = {"version": "1.0", "model": {"type": "WordLevel", "vocab": {"x": 0}, "unk_token": "x"}}
CHARACTERS = ["A", "À", "\u0301", "각", "İ", "\u00ad", "\u2003", "\u0903", "\0", "ǅ", "중", "\ufffd", "ẞ"]


@pytest.mark.parametrize("flag", [True, False])
def test_characters_are_changed_as_llama_cpp_changes_them(flag: bool) -> None:
    part = word_piece_normalizer(lowercase=flag, strip_accents=flag)
    library = Tokenizer.from_str(json.dumps({**EMPTY, "normalizer": part})).normalizer
    ours = BertNormalizer(lowercase=flag, strip_accents=flag)
    assert library is not None
    for char in CHARACTERS:
        assert library.normalize_str(char).strip() == ours[ord(char)].strip(), hex(ord(char))
