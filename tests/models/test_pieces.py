"""The bytes of each token, one by one and all at once, and a token quoted for a reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import GPT2, PLAMO, RAW_UTF8, UNIGRAM

from ggufbpe.models.loading import load_vocabulary
from ggufbpe.models.pieces import Pieces, all_pieces, piece_lengths, quoted_token


@pytest.mark.parametrize("path", [GPT2, RAW_UTF8, UNIGRAM, PLAMO], ids=lambda path: Path(path).stem)
def test_all_pieces_are_those_of_each_token(path: Path) -> None:
    vocabulary = load_vocabulary(path)
    pieces = Pieces(vocabulary, special=True)
    expected = [pieces[token] for token in range(len(vocabulary.tokens))]
    assert all_pieces(vocabulary) == expected
    assert piece_lengths(vocabulary).tolist() == list(map(len, expected))


def test_control_tokens_are_hidden_unless_they_are_wanted() -> None:
    vocabulary = load_vocabulary(GPT2)
    assert [Pieces(vocabulary, special)[50256] for special in (True, False)] == [b"<|endoftext|>", b""]
    with pytest.raises(ValueError, match="token id 50257 is out of range"):
        Pieces(vocabulary, special=True)[50257]


def test_quoted_tokens() -> None:
    vocabulary = load_vocabulary(GPT2)
    assert [quoted_token(vocabulary, token) for token in (995, 220, 50256)] == [
        "' world'",
        "' '",
        "'<|endoftext|>'",
    ]
