"""What tools do to a text before they encode it."""

from __future__ import annotations

import pytest

from ggufbpe.analysis.diagnose.cause import CAUSES
from ggufbpe.analysis.diagnose.text_changes import (
    CHARSMAP_MISSING,
    OF_FLAGS,
    SPACE_PREFIX_FIX,
    TEXT_CHANGES,
    space_prefix,
)

CHANGES = {(each.cause.id, each.cause.detail["change"]): each for each in TEXT_CHANGES}

EFFECTS: dict[tuple[str, str], tuple[bytes, bytes]] = {
    ("invalid_utf8", "U+FFFD a sequence"): (b"a\xe2\x82b\xff", "a\ufffdb\ufffd".encode()),
    ("invalid_utf8", "dropped"): (b"a\xe2\x82b\xff", b"ab"),
    ("invalid_utf8", "latin-1"): (b"caf\xe9", "café".encode()),
    ("invalid_utf8", "cp1252"): (b"\x80 5", "€ 5".encode()),
    ("invalid_utf8", "question mark"): (b"a\xffb", b"a?b"),
    ("bom", "removed"): (b"\xef\xbb\xbfa", b"a"),
    ("bom", "added"): (b"a", b"\xef\xbb\xbfa"),
    ("newlines", "CRLF to LF"): (b"a\r\nb\rc\n", b"a\nb\rc\n"),
    ("newlines", "CRLF and CR to LF"): (b"a\r\nb\rc\n", b"a\nb\nc\n"),
    ("newlines", "CR to LF"): (b"a\r\nb\rc\n", b"a\r\nb\nc\n"),
    ("newlines", "LF to CRLF"): (b"a\nb", b"a\r\nb"),
    ("newlines", "all to CRLF"): (b"a\r\nb\rc\n", b"a\r\nb\r\nc\r\n"),
    ("newlines", "LF to CR"): (b"a\nb", b"a\rb"),
    ("newlines", "CRLF to CR"): (b"a\r\nb\n", b"a\rb\n"),
    ("trailing_newline", "a line break is removed"): (b"a\r\n\r\n", b"a\r\n"),
    ("trailing_newline", "all line breaks are removed"): (b"a \r\n\n", b"a "),
    ("trailing_newline", "all white space is removed"): (b" a \r\n\t", b" a"),
    ("trailing_newline", "a line break is added"): (b"a", b"a\n"),
    ("trailing_newline", "CRLF is added"): (b"a", b"a\r\n"),
    ("escapes", "processed"): (rb"a\tb\x41\n", b"a\tbA\n"),
    ("escapes", "\\n processed"): (rb"a\tb\n", b"a\\tb\n"),
    ("escapes", "\\n typed"): (b"a\tb\n", b"a\tb\\n"),
    ("escapes", "typed"): (b'a\tb\r\n"\\', b'a\\tb\\r\\n"\\'),
    ("escapes", "all typed"): (b'a\tb\n"\\', rb"a\tb\n\"" + b"\\\\"),
    ("normalization", "NFC"): ("e\u0301\ufb01".encode(), "é\ufb01".encode()),
    ("normalization", "NFD"): ("é\ufb01".encode(), "e\u0301\ufb01".encode()),
    ("normalization", "NFKC"): ("e\u0301\ufb01".encode(), "éfi".encode()),
    ("normalization", "NFKD"): ("é\ufb01".encode(), "e\u0301fi".encode()),
    ("normalization", "lower case"): ("ÀB".encode(), "àb".encode()),
    ("normalization", "accents stripped"): ("Àb한".encode(), "Ab\u1112\u1161\u11ab".encode()),
    ("normalization", "accents stripped, lower case"): ("ÀB".encode(), b"ab"),
    ("normalization", "accents stripped, NFC"): ("Àb한".encode(), "Ab한".encode()),
    ("normalization", "NFKC, case folded"): ("ﬁẞ".encode(), b"fiss"),
    ("escape_whitespaces", "written"): (b"a b", "a▁b".encode()),
    ("escape_whitespaces", "read"): ("a▁b".encode(), b"a b"),
    ("leading_space", "a space is removed"): (b"  a", b" a"),
    ("leading_space", "all white space is removed"): (b" \n\ta ", b"a "),
    ("leading_space", "a space is added"): (b"a", b" a"),
}


def test_every_change_is_in_the_table() -> None:
    assert CHANGES.keys() == EFFECTS.keys()
    assert {cause for cause, _ in CHANGES} <= set(CAUSES)
    assert set(OF_FLAGS) < {change for cause, change in CHANGES if cause == "normalization"}


@pytest.mark.parametrize("change", EFFECTS)
def test_what_a_change_does(change: tuple[str, str]) -> None:
    text, expected = EFFECTS[change]
    assert CHANGES[change].apply(text) == expected


@pytest.mark.parametrize("change", [change for change in EFFECTS if change[0] == "invalid_utf8"])
def test_text_that_is_utf_8_is_not_taken_for_broken(change: tuple[str, str]) -> None:
    assert CHANGES[change].apply("naïve \ufffd 🙂".encode()) == "naïve \ufffd 🙂".encode()


def test_bytes_that_are_not_utf_8_do_not_stop_a_normalizer() -> None:
    assert CHANGES["normalization", "lower case"].apply(b"A\xffB") == "a\ufffdb".encode()


def test_changes_with_text_of_their_own() -> None:
    assert CHARSMAP_MISSING.apply("a\t\x07ﬁ\u2028".encode()) == b"a fi "
    change = space_prefix("at the beginning", lambda data: b" " + data)
    assert (change.apply(b"a"), change.cause.id, change.cause.fix) == (
        b" a",
        "space_prefix",
        SPACE_PREFIX_FIX,
    )
    assert change.cause.detail["what"] == "a space is added at the beginning"
