"""`ggufbpe truncate` prints the longest part of a text that fits."""

from __future__ import annotations

import pytest
from commands import Run, call
from conftest import GPT2

from ggufbpe.cli import truncate
from ggufbpe.cli._arguments import UsageError

__all__ = ["call"]  # a fixture

CASES = [
    ((), "one two three"),
    (("--side", "left"), " two three four"),
    (("--side", "middle", "--marker", "|"), None),
    (("--at", "word"), "one two three"),
]


@pytest.mark.parametrize(("flags", "expected"), CASES)
def test_parts(call: Run, flags: tuple[str, ...], expected: str | None) -> None:
    found = call(truncate, "-m", GPT2, "-p", "one two three four", "--limit", 3, *flags).text
    if expected is None:
        assert found.count("|") == 1
        assert found.startswith("o")
        assert found.endswith("r")
    else:
        assert found == expected


def test_bytes_and_whole_texts(call: Run) -> None:
    assert call(truncate, "-m", GPT2, "--stdin", "--limit", 99, stdin=b"a\xff b").out == b"a\xff b"


def test_refusals(call: Run) -> None:
    with pytest.raises(UsageError, match="limit must be 0 or more"):
        call(truncate, "-m", GPT2, "-p", "a", "--limit", -1)
    with pytest.raises(UsageError, match="the marker alone has"):
        call(truncate, "-m", GPT2, "-p", "a b c", "--limit", 1, "--marker", "one two three")
