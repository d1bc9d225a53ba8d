"""Bytes to code points: held to a transcription of llama.cpp's decoder, bit by bit."""

from __future__ import annotations

from itertools import accumulate, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import bounded, broken_bytes, texts

from ggufbpe._util import utf8


def transcribed(data: bytes, strict: bool) -> list[tuple[int, int]]:
    """(code point, bytes used) as src/unicode.cpp has it: unicode_cpts_from_utf8, unicode_cpt_from_utf8.

    `strict` as from b11739 on. One addition for the builds before: above U+10FFFF, where these stop with an exception,
    the byte counts as undecodable.
    """

    def continues(at: int) -> bool:
        return at < len(data) and (data[at] & 0xC0) == 0x80

    result: list[tuple[int, int]] = []
    offset = 0
    while offset < len(data):
        lead = data[offset]
        code_point, used = 0xFFFD, 1
        if not lead & 0x80:
            code_point = lead
        elif not lead & 0x40:
            pass
        elif not lead & 0x20:
            if continues(offset + 1):
                code_point, used = ((lead & 0x1F) << 6) | (data[offset + 1] & 0x3F), 2
        elif not lead & 0x10:
            if continues(offset + 1) and continues(offset + 2):
                code_point = (
                    ((lead & 0x0F) << 12) | ((data[offset + 1] & 0x3F) << 6) | (data[offset + 2] & 0x3F)
                )
                used = 3
        elif not lead & 0x08 and continues(offset + 1) and continues(offset + 2) and continues(offset + 3):
            code_point = ((lead & 0x07) << 18) | ((data[offset + 1] & 0x3F) << 12)
            code_point |= ((data[offset + 2] & 0x3F) << 6) | (data[offset + 3] & 0x3F)
            used = 4
        least = {1: 0, 2: 0x80, 3: 0x800, 4: 0x10000}[used] if strict else 0
        if code_point > 0x10FFFF or code_point < least:
            code_point, used = 0xFFFD, 1
        result.append((code_point, used))
        offset += used
    return result


def agrees(data: bytes) -> bool:
    for strict in (True, False):
        expected = transcribed(data, strict)
        if [ord(char) for char in utf8.decode(data, strict)] != [point for point, _ in expected]:
            return False
        if utf8.char_ends(data, strict) != list(accumulate(used for _, used in expected)):
            return False
    return True


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"caf\xc3\xa9", "café"),
        (b"\xff", "\ufffd"),
        (b"\xe2\x82", "\ufffd\ufffd"),  # each byte of a cut-off character, not one for the whole
        (b"\xe2\x82a", "\ufffd\ufffda"),
        (b"\xc1\x81", "\ufffd" * 2),  # overlong forms are not decoded
        (b"\xe0\x80\xa0", "\ufffd" * 3),
        (b"\xe0\x9f\xbf", "\ufffd" * 3),
        (b"\xe0\xa0\x80", "\u0800"),  # the first character that needs three bytes
        (b"\xf0\x80\x80\x80", "\ufffd" * 4),
        (b"\xf0\x8f\xbf\xbf", "\ufffd" * 4),
        (b"\xed\xa0\x80", "\ud800"),  # surrogates are, and stay apart
        (b"\xed\xa0\xbd\xed\xb8\x80", "\ud83d\ude00"),
        (b"\xf4\x8f\xbf\xbf", "\U0010ffff"),
        (b"\xf4\x90\x80\x80", "\ufffd" * 4),  # above the last code point
        (b"\xf8\x88\x80\x80\x80", "\ufffd" * 5),
    ],
)
def test_decode(data: bytes, text: str) -> None:
    assert utf8.decode(data) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xc1\x81", "A"),
        (b"\xe0\x80\xa0", " "),
        (b"\xe0\x9f\xbf", "\u07ff"),
        (b"\xf0\x80\x80\x80", "\0"),
        (b"\xed\xa0\x80", "\ud800"),
        (b"\xf4\x90\x80\x80", "\ufffd" * 4),
        (b"\xff", "\ufffd"),
    ],
)
def test_decode_as_builds_before_b11739(data: bytes, text: str) -> None:
    assert utf8.decode(data, strict=False) == text


def test_every_short_sequence_of_telling_bytes() -> None:
    """The bytes at each border between what a lead byte and a continuation byte may be."""
    telling = b"\x00A\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xed\xef\xf0\xf4\xf5\xf7\xf8\xff"
    for length in range(4):
        assert all(agrees(bytes(data)) for data in product(telling, repeat=length))
    leads = b"\xf0\xf1\xf4\xf5\xf7"
    continuations = b"\x7f\x80\x8f\x90\xbf\xc0"
    assert all(agrees(bytes(data)) for data in product(leads, *[continuations] * 3, b"A\x80"))


@bounded(300)
@given(st.one_of(broken_bytes, st.binary(max_size=30)))
def test_random_bytes(data: bytes) -> None:
    assert agrees(data)


@bounded(100)
@given(texts)
def test_sound_text_is_decoded_as_python_does(text: str) -> None:
    data = text.encode()
    assert utf8.decode(data) == text
    assert utf8.char_ends(data) == list(accumulate(len(char.encode()) for char in text))
