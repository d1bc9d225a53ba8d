"""Word pieces in BERT's spelling and in llama.cpp's."""

from __future__ import annotations

import pytest
from synthetic import make_vocabulary

from ggufbpe.convert.word_pieces import as_token, as_written, word_pieces
from ggufbpe.models.vocabulary import CONTROL

SPELLINGS = {"▁play": "play", "ing": "##ing", "▁": "##▁", "▁##x": "##x"}


@pytest.mark.parametrize("token", SPELLINGS)
def test_spellings(token: str) -> None:
    assert as_written(token) == SPELLINGS[token]
    if token != "▁##x":  # written like a piece that continues a word
        assert as_token(SPELLINGS[token]) == token


def test_of_tokens_that_are_written_alike_a_special_one_counts() -> None:
    pieces = word_pieces(
        make_vocabulary(
            ["x", "▁##x", "▁[S]", "[S]"], attributes={"[S]": CONTROL}, model="bert", special_ids={"unk": None}
        )
    )
    assert pieces.texts == ["##x", "##x", "[S]", "[S]"]
    assert pieces.alike == ["##x", "[S]"]
    assert [limit.name for limit in pieces.limits] == ["tokens_written_alike", "unknown_missing"]


def test_limits() -> None:
    pieces = word_pieces(
        make_vocabulary(["▁", "special", "u"], attributes={"special": CONTROL}, special_ids={"unk": 2})
    )
    assert [limit.name for limit in pieces.limits] == ["beginning_alone", "special_tokens_in_words"]
