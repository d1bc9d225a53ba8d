"""The width and height of an image, read from its header.

The formats are PNG, JPEG, GIF and BMP, which llama-server decodes itself, and WebP, which it gives to ffmpeg. Pixels
are not decoded, so a damaged image that llama-server refuses may have a size here.

Source: mtmd_helper_bitmap_init_from_buf in tools/mtmd/mtmd-helper.cpp, and the limits of stb_image.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import NamedTuple

from ..._util.errors import ChatError

_MOST_SIDE = 1 << 24  # STBI_MAX_DIMENSIONS
_MOST_BYTES = (1 << 31) - 1  # of three bytes a pixel
# Markers of JPEG that begin a frame; those of arithmetic coding are refused, as by stb_image.
_FRAMES = frozenset({0xC0, 0xC1, 0xC2})
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})


class ImageSize(NamedTuple):
    """A size in pixels."""

    width: int
    height: int


def image_size(data: bytes) -> ImageSize:
    """Return the size that the header says; `ChatError` if it is none that can be counted.

    `data` may be only the beginning of the file.

    >>> image_size(b"GIF89a" + bytes([2, 1, 3, 0]))
    ImageSize(width=258, height=3)
    """
    for start, size_of in _FORMATS:
        if start.match(data):
            size = size_of(data)
            break
    else:
        raise ChatError(
            "Failed to load image or audio file: it is in none of the formats that are read here: "
            "PNG, JPEG, GIF, BMP, WebP; WAV, FLAC, MP3"
        )
    if size is None:
        raise ChatError("Failed to load image or audio file: the header is cut off or damaged")
    width, height = size
    if min(size) < 1:
        raise ChatError(f"Failed to load image or audio file: its size is {width} x {height}")
    if max(size) > _MOST_SIDE or width * height * 3 > _MOST_BYTES:
        raise ChatError(f"Failed to load image or audio file: {width} x {height} pixels are too many")
    return size


def _png(data: bytes) -> ImageSize | None:
    if len(data) < 24 or data[12:16] != b"IHDR":
        return None
    return ImageSize(*struct.unpack_from(">II", data, 16))


def _gif(data: bytes) -> ImageSize | None:
    if len(data) < 10:
        return None
    return ImageSize(*struct.unpack_from("<HH", data, 6))


def _bmp(data: bytes) -> ImageSize | None:
    if len(data) < 26:
        return None
    if int.from_bytes(data[14:18], "little") == 12:  # the first version of the header
        return ImageSize(*struct.unpack_from("<HH", data, 18))
    width, height = struct.unpack_from("<ii", data, 18)
    return ImageSize(width, abs(height))  # a height below zero: from the top down


def _jpeg(data: bytes) -> ImageSize | None:
    at = 2
    while (at := data.find(b"\xff", at)) >= 0:
        while data[at : at + 1] == b"\xff":  # filling
            at += 1
        if at + 8 > len(data):
            return None
        marker, length = data[at], int.from_bytes(data[at + 1 : at + 3], "big")
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 4)
            return ImageSize(width, height)
        if marker == 0xDA or (marker not in _WITHOUT_LENGTH and length < 2):
            return None
        at += 1 if marker in _WITHOUT_LENGTH else 1 + length
    return None


def _webp(data: bytes) -> ImageSize | None:
    kind = data[12:16]
    if len(data) < 30 or kind not in (b"VP8X", b"VP8L", b"VP8 "):
        return None
    if kind == b"VP8X":
        return ImageSize(1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little"))
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return ImageSize(1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)) if data[20] == 0x2F else None
    if data[23:26] != b"\x9d\x01\x2a":
        return None
    width, height = struct.unpack_from("<HH", data, 26)
    return ImageSize(width & 0x3FFF, height & 0x3FFF)


_FORMATS: tuple[tuple[re.Pattern[bytes], Callable[[bytes], ImageSize | None]], ...] = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), _png),
    (re.compile(rb"\xff\xd8"), _jpeg),
    (re.compile(rb"GIF8[79]a"), _gif),
    (re.compile(rb"BM"), _bmp),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), _webp),
)
