"""Tokens by their attributes."""

from __future__ import annotations

import pytest

from ggufbpe.models.token_table import tokens_with
from ggufbpe.models.vocabulary import BYTE, CONTROL, NORMAL, UNUSED


@pytest.mark.parametrize(
    ("attributes", "flags", "tokens"),
    [
        ([], CONTROL, []),
        ([NORMAL, CONTROL, CONTROL | UNUSED, 0], CONTROL, [1, 2]),
        ([NORMAL, BYTE, CONTROL], BYTE | CONTROL, [1, 2]),
    ],
)
def test_tokens_with(attributes: list[int], flags: int, tokens: list[int]) -> None:
    assert tokens_with(attributes, flags) == tokens
