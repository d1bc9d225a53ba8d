"""What is said of known families of vocabularies."""

from __future__ import annotations

import pytest
from small_models import known_family

from ggufbpe.models.known_families import splits_like


@pytest.mark.parametrize(
    ("pre", "family", "expected"),
    [
        ("llama-bpe", "Llama 3", True),
        ("llama3", "Llama 3", True),  # a name of the same family
        ("gpt-2", "Llama 3", False),
        ("qwen35", "Qwen 2", True),  # the second of two
        ("no such name", "Qwen 2", False),
        (None, "Qwen 2", False),
    ],
)
def test_names_that_split_as_the_family_does(pre: str | None, family: str, expected: bool) -> None:
    assert splits_like(pre, known_family(family)) is expected
