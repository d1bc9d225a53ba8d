"""Numbers and lists in sentences."""

from __future__ import annotations

import pytest

from ggufbpe._util.wording import counted, in_bytes, listed, percent, quoted_piece, short_names

PIECES = {
    b" a": "' a'",
    "é".encode(): "'é'",
    b"\xe8\x00": r"'\xe8\x00'",
    b"\\udce8": r"'\\udce8'",  # a backslash of the text is no escaped byte
    b"a\n": r"'a\n'",
}


@pytest.mark.parametrize("piece", PIECES)
def test_quoted_piece(piece: bytes) -> None:
    assert quoted_piece(piece) == PIECES[piece]


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0.0%"), (0.5, "50.0%"), (0.99999, "99.9%"), (1, "100.0%"), (1.5, "150.0%")]
)
def test_percent(share: float, text: str) -> None:
    assert percent(share) == text


SIZES = {0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 10**13: "10000.0 GB"}


@pytest.mark.parametrize("number", SIZES)
def test_in_bytes(number: int) -> None:
    assert in_bytes(number) == SIZES[number]


def test_counted() -> None:
    assert [counted(number, "text") for number in (0, 1, 2)] == ["0 texts", "1 text", "2 texts"]
    assert counted(2, "byte has", "bytes have") == "2 bytes have"


def test_listed() -> None:
    assert listed([1, "a"], 2) == "1, 'a'"
    assert listed("abcdef", 6) == "'a', 'b', 'c', 'd', 'e' …"
    assert listed(iter("abcdefgh"), 8, " and {} more", str.upper) == "A, B, C, D, E and 3 more"


NAMES = [
    ([], []),
    (["a.gguf", "b.gguf"], ["a", "b"]),
    (["x/a.gguf", "y/a.gguf", "z/b.gguf"], ["x/a", "y/a", "b"]),
    (["1/x/a.gguf", "2/x/a.gguf"], ["1/x/a", "2/x/a"]),
    (["a.gguf", "a.gguf"], ["a", "a (2)"]),
]


@pytest.mark.parametrize(("paths", "names"), NAMES)
def test_short_names(paths: list[str], names: list[str]) -> None:
    assert short_names(paths) == names
