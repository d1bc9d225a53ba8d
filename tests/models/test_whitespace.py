"""Words between white space."""

from __future__ import annotations

import pytest
from synthetic import make_vocabulary

from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.whitespace import WhitespaceModel, WhitespaceText

PIECES = [
    ("", True, []),
    ("Ab  cD\n", True, [("ab", 0), ("cd", 4)]),
    ("Ab cD", False, [("Ab", 0), ("cD", 3)]),
    ("ÉÀ\u3000x\u00a0y", True, [("éà", 0), ("x", 3), ("y", 5)]),  # any white space of Unicode
    (" \t\n", True, []),
]


@pytest.mark.parametrize(("text", "lowercase", "pieces"), PIECES)
def test_pieces(text: str, lowercase: bool, pieces: list[tuple[str, int]]) -> None:
    vocabulary = make_vocabulary(["a"], pre="whitespace", model="whitespace", lowercase=lowercase)
    assert list(WhitespaceText(vocabulary).pieces(text)) == pieces


def test_a_newline_is_white_space() -> None:
    assert not WhitespaceModel().has_line_break(PRE_TOKENIZERS["whitespace"], {"\n": 0})
