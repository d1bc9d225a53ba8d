"""Characters that other programs treat otherwise than llama.cpp."""

from __future__ import annotations

import pytest

from ggufbpe.convert.character_limits import CHARACTERS


@pytest.mark.parametrize(
    ("name", "concerned", "others"),
    [
        ("newer_unicode", "\U00010d6f\ua7cb", "aé天\x00"),  # letters of Unicode 16
        ("long_s", "\u017f", "sß"),
        ("older_punctuation", "\u2026\u166d", "a!"),
        ("escaped_spaces", "\u2581", " _"),
        ("border_character", "\ufdef", "\ufdee"),
    ],
)
def test_characters(name: str, concerned: str, others: str) -> None:
    assert [char for char in concerned + others if CHARACTERS[name](char)] == list(concerned)


def test_each_limit_has_a_case() -> None:
    assert len(CHARACTERS) == 5
