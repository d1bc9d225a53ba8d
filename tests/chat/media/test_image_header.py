"""The sizes that headers of images say."""

import contextlib
import struct

import pytest

from ggufbpe import ChatError
from ggufbpe.chat.media.audio_header import is_audio
from ggufbpe.chat.media.image_header import image_size


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)


def bmp(width: int, height: int) -> bytes:
    return b"BM" + bytes(12) + struct.pack("<Iii", 40, width, height)


SEGMENT = b"\xff\xe1" + struct.pack(">H", 1002) + b"\xff\xc0" * 500
FRAME = b"\xff\xff\xc2" + struct.pack(">HBHH", 17, 8, 70, 90)
JPEG = b"\xff\xd8" + SEGMENT + FRAME
WEBP = b"RIFF\0\0\0\0WEBP"
SIZES = {
    "PNG": (png(640, 480), (640, 480)),
    "JPEG, after a segment with frames in it": (JPEG, (90, 70)),
    "GIF": (b"GIF89a" + struct.pack("<HH", 300, 2), (300, 2)),
    "BMP": (bmp(33, 44), (33, 44)),
    "BMP from the top down": (bmp(33, -44), (33, 44)),
    "BMP of OS/2": (b"BM" + bytes(12) + struct.pack("<IHH", 12, 5, 6) + bytes(4), (5, 6)),
    "WebP, lossy": (WEBP + b"VP8 " + bytes(7) + b"\x9d\x01\x2a" + struct.pack("<HH", 550, 368), (550, 368)),
    "WebP, lossless": (
        WEBP + b"VP8L" + bytes(4) + b"\x2f" + struct.pack("<I", 99 | 49 << 14) + bytes(5),
        (100, 50),
    ),
    "WebP, extended": (WEBP + b"VP8X" + bytes(8) + b"\x0f\0\0\x07\0\0", (16, 8)),
}


@pytest.mark.parametrize("name", SIZES)
def test_size(name: str) -> None:
    data, size = SIZES[name]
    assert image_size(data) == size
    assert not is_audio(data)


@pytest.mark.parametrize("name", SIZES)
def test_a_header_that_is_cut_off_has_no_other_size(name: str) -> None:
    data = SIZES[name][0]
    for length in range(len(data)):
        with contextlib.suppress(ChatError):
            assert image_size(data[:length]) == SIZES[name][1]


REFUSED = {
    "empty": b"",
    "text": b"<svg/>",
    "a width of 2^31": png(1 << 31, 1),
    "as many pixels as stb_image does not hold": png(30000, 30000),
    "no width": png(0, 5),
    "BMP with a width below zero": bmp(-5, 5),
    "JPEG with arithmetic coding": b"\xff\xd8" + FRAME.replace(b"\xc2", b"\xc9"),
    "JPEG with a segment of no length": b"\xff\xd8\xff\xe1\0\0" + FRAME,
    "JPEG of fill bytes": b"\xff\xd8" + b"\xff" * 100000,
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(ChatError, match="Failed to load image or audio file"):
        image_size(REFUSED[name])
