"""`ggufbpe detokenize` prints the bytes of ids."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Run, call
from small_models import K, small_keys, small_model

from ggufbpe.cli import detokenize
from ggufbpe.cli._arguments import UsageError

__all__ = ["call", "small_model"]  # fixtures

HELLO, END = (small_keys()[K.LIST].index(token) for token in ("hello", "<|im_end|>"))


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([HELLO, 33], b"hello!"),
        ([f"[{HELLO}, 33]"], b"hello!"),
        ([f"{HELLO},33", "255"], b"hello!\xff"),
        (["[]"], b""),
        ([97, END], b"a"),
    ],
)
def test_forms_of_ids(
    ids: list[object], expected: bytes, call: Run, small_model: Path, tmp_path: Path
) -> None:
    assert call(detokenize, "-m", small_model, *ids).out == expected
    text = " ".join(map(str, ids)).encode()
    assert call(detokenize, "-m", small_model, "--stdin", stdin=text + b"\n").out == expected
    path = tmp_path / "ids.txt"
    path.write_bytes(b"\xef\xbb\xbf" + text)
    assert call(detokenize, "-m", small_model, "-f", path).out == expected


def test_special_tokens(call: Run, small_model: Path) -> None:
    model = ("-m", small_model, "97", END)
    assert call(detokenize, *model, "--unparse-special").out == b"a<|im_end|>"
    assert call(detokenize, *model).out == b"a"


@pytest.mark.parametrize(
    ("ids", "error", "words"),
    [
        ([], UsageError, "give ids, or -f PATH, or --stdin"),
        (["1", "-f", "x"], UsageError, "one of them"),
        (["[1, 2"], ValueError, r"begins with \[ does not end with \]"),
        (["1", "two"], ValueError, r"'two' is not a token id \(item 2 of 2\)"),
        (["9" * 21], ValueError, "is not a token id"),
        (["999999"], ValueError, "999999"),
    ],
)
def test_what_is_no_id(
    ids: list[str], error: type[Exception], words: str, call: Run, small_model: Path
) -> None:
    with pytest.raises(error, match=words):
        call(detokenize, "-m", small_model, *ids)
