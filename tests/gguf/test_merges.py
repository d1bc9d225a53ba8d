"""The two sides of a merge."""

from __future__ import annotations

import pytest

from ggufbpe.gguf.merges import parts


@pytest.mark.parametrize(
    ("merge", "sides"),
    [
        ("a b", ("a", "b")),
        ("  b", (" ", "b")),  # the first space is the left side
        ("a  ", ("a", " ")),
        ("a b c", ("a", "b c")),
        ("ab", ("", "")),
        (" ab", ("", "")),
        ("", ("", "")),
    ],
)
def test_parts(merge: str, sides: tuple[str, str]) -> None:
    assert parts(merge) == sides
