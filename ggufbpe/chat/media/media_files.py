"""The size of an image, or the length of a recording, at the address that a message gives.

Source: handle_media in tools/server/server-common.cpp; mtmd_helper_bitmap_init_from_buf in tools/mtmd/mtmd-helper.cpp,
which tells images from audio by the file alone.
"""

from __future__ import annotations

import binascii
import os
import re
from collections.abc import Callable
from typing import NamedTuple

from ..._util.errors import ChatError
from ..._util.files import opened_regular
from .audio_header import AudioLength, audio_length, is_audio
from .image_header import ImageSize, image_size

_HEAD = 1 << 20  # bytes in which the header of most files is
_MOST_OF_FILE = 1 << 26
_BASE64 = re.compile(r"[A-Za-z0-9+/]*")
# What fs_validate_filename in common/common.cpp refuses in the path of a file.
_REFUSED_PATH = re.compile(
    '[\x00-\x1f\x7f-\x9f\uff0e\u2215\u2216\ud800-\udfff\ufffd\ufeff:*?"<>|]|\\.\\.|\\A |[ .]\\Z'
)


class _File(NamedTuple):
    """The beginning of a file; `more` gives a longer one, or None, and `size` the number of its bytes."""

    head: bytes
    more: Callable[[], bytes | None]
    size: Callable[[], int]


def media_at(url: str, media_path: str | os.PathLike[str] | None) -> ImageSize | AudioLength:
    """Return what is at an address: a data URL, base64 alone, or a file below `media_path`.

    `ChatError` where llama-server refuses it, and for addresses of the web.
    """
    if url.startswith("http"):
        raise ChatError("media are not downloaded: give them as data URLs")
    if url.startswith("file://"):
        return _in_file(url[7:], media_path)
    encoded = url
    if url.startswith("data:"):
        head, comma, encoded = url.partition(",")
        if not comma or "," in encoded:
            raise ChatError("Invalid uri-encoded base64 value")
        if not head.startswith(("data:image/", "data:video/", "data:audio/")):
            raise ChatError(f"Invalid uri format: {head[:80]}")
        if not head.endswith("base64"):
            raise ChatError("uri must be base64 encoded")
    elif not _decoded(url[:8]):
        raise ChatError("Invalid base64 value")
    return _media_of(
        _File(
            _decoded(encoded[:_HEAD]),
            lambda: _decoded(encoded) if len(encoded) > _HEAD else None,
            lambda: len(_digits(encoded)) * 3 // 4,
        )
    )


def _in_file(path: str, media_path: str | os.PathLike[str] | None) -> ImageSize | AudioLength:
    """What is in a file below `media_path`; only regular files are read."""
    if media_path is None:
        raise ChatError("file:// URLs are not allowed without media_path, the folder of such files")
    if not path or _REFUSED_PATH.search(path) or len(path.encode()) > 255:
        raise ChatError(f"file path is not allowed: {path[:255]}")
    missing = ChatError(f"file does not exist or cannot be opened: {path}")
    try:
        with opened_regular(os.fsencode(media_path) + b"/" + path.encode()) as file:
            head = file.read(_HEAD)
            return _media_of(
                _File(
                    head,
                    lambda: head + rest if (rest := file.read(_MOST_OF_FILE)) else None,
                    lambda: os.fstat(file.fileno()).st_size,
                )
            )
    except (OSError, UnicodeEncodeError):  # the latter of a folder that the locale does not have
        raise missing from None


def _media_of(file: _File) -> ImageSize | AudioLength:
    """What a file's header says."""
    if is_audio(file.head):
        length = audio_length(file.head, file.size)
        if length is None and (data := file.more()) is not None:
            length = audio_length(data, file.size)
        if length is None:
            raise ChatError("Failed to load image or audio file: the header is cut off or damaged")
        return length
    try:
        return image_size(file.head)
    except ChatError:
        if (data := file.more()) is None:
            raise
        return image_size(data)


def _digits(text: str) -> str:
    """The digits of base64 up to the first character that is none, without one that is left over."""
    matched = _BASE64.match(text)
    digits = matched[0] if matched else ""
    return digits[: len(digits) - (len(digits) % 4 == 1)]


def _decoded(text: str) -> bytes:
    """The bytes of base64 up to the first character that is none of its alphabet. Source: base64_decode."""
    digits = _digits(text)
    return binascii.a2b_base64(digits + "=" * (-len(digits) % 4))
