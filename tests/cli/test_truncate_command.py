"""`ggufbpe truncate` prints the longest part of a text that fits."""

from __future__ import annotations

import json

import pytest
from commands import Run, call
from conftest import GPT2, ROOT

from ggufbpe import Tokenizer
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


def test_tokens_that_are_added_count_if_asked_for(call: Run) -> None:
    wpm = ROOT / "fixtures/vocabs/wpm.gguf"
    given = ("-m", wpm, "-p", "one two three four five", "--limit", 5, "--add-special", "--json")
    found = json.loads(call(truncate, *given).text)
    tok = Tokenizer.from_gguf(wpm)
    assert found["text"] == tok.truncate("one two three four five", 5, add_special=True)
    assert found["tokens"] == len(tok.encode(found["text"])) <= 5
