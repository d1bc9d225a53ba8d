"""The length of a recording, read from the header of its file: WAV, FLAC and MP3.

Sound is not decoded, so a damaged recording that llama-server refuses may have a length here. An MP3 file has no length
of its own: its first frame must be a Xing or Info tag with the number of frames, as encoders write it.

Source: audio_helpers in tools/mtmd/mtmd-helper.cpp; ma_decoder_get_length_in_pcm_frames, ma_dr_wav_init__internal and
ma_dr_mp3_init_internal in vendor/miniaudio/miniaudio.h.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import NamedTuple

from ..._util.errors import ChatError

_AUDIO = re.compile(rb"(?:RIFF....WAVE|ID3|fLaC|\xff[\xe0-\xff])", re.DOTALL)
_LEAST_BYTES = 12  # of a file that is taken for audio
MOST_SAMPLES = (1 << 31) - (1 << 20)  # llama.cpp counts them, with its padding, in 32 bits
_PCM, _FLOAT, _A_LAW, _MU_LAW, _EXTENSIBLE = 1, 3, 6, 7, 0xFFFE  # formats of WAV
_MOST_RATE, _MOST_CHANNELS, _MOST_BITS = 384000, 254, 64


class AudioLength(NamedTuple):
    """The number of samples of each channel, and how many of them a second has."""

    samples: int
    rate: int

    def at(self, rate: int) -> int:
        """The number of samples at another rate. Source: ma_calculate_frame_count_after_resampling.

        >>> AudioLength(44100, 44100).at(16000), AudioLength(8001, 8000).at(16000)
        (16000, 16002)
        """
        if self.rate == rate:
            return self.samples
        resampled = self.samples * rate // self.rate
        needed = resampled * (self.rate % rate) + resampled * (self.rate // rate) // rate
        return resampled + (needed <= self.samples)


def is_audio(data: bytes) -> bool:
    """Whether llama-server takes a file for audio: WAV, MP3 or FLAC.

    >>> is_audio(b"ID3" + bytes(9)), is_audio(b"GIF89a" + bytes(6))
    (True, False)
    """
    return len(data) >= _LEAST_BYTES and _AUDIO.match(data) is not None


def audio_length(data: bytes, size: Callable[[], int]) -> AudioLength | None:
    """Return the length that the header says; None if more than `data`, the beginning of a file, is needed.

    `size` gives the size of the whole file. `ChatError` if the file has no length that can be read.
    """
    read = _wav if data.startswith(b"RIFF") else _flac if data.startswith(b"fLaC") else _mp3
    length = read(data, size)
    if length is None:
        return None
    if not 0 < length.samples < MOST_SAMPLES or not 0 < length.rate <= _MOST_RATE:
        raise _unreadable(f"{length.samples} samples, {length.rate} a second")
    return length


def _unreadable(reason: str) -> ChatError:
    return ChatError(f"Failed to load image or audio file: {reason}")


def _wav(data: bytes, size: Callable[[], int]) -> AudioLength | None:
    at, form = 12, b""
    while at + 8 <= len(data):
        name, length = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8
        if name == b"fmt ":
            form = data[at : at + min(length, 40)]
        elif name == b"data":
            return _wav_length(form, min(length, size() - at))
        at += length + length % 2
    if at + 8 > size():
        raise _unreadable("the WAV file has no samples")
    return None


def _wav_length(form: bytes, size: int) -> AudioLength:
    """The length of so many bytes of samples of this format."""
    if len(form) < 16:
        raise _unreadable("the format of the WAV file is missing or damaged")
    tag, channels, rate, _, block, bits = struct.unpack_from("<HHIIHH", form)
    if tag == _EXTENSIBLE:
        if len(form) != 40 or form[16:18] != b"\x16\0":
            raise _unreadable("the format of the WAV file is damaged")
        tag = int.from_bytes(form[24:26], "little")
    if tag not in (_PCM, _FLOAT, _A_LAW, _MU_LAW):
        raise _unreadable(f"WAV of format {tag} is not counted")
    if not 0 < channels <= _MOST_CHANNELS or not 0 < bits <= _MOST_BITS or not block or not rate:
        raise _unreadable(f"WAV of {channels} channels and {bits} bits")
    frame = block if bits % 8 else bits * channels // 8
    if tag in (_A_LAW, _MU_LAW) and frame != channels:
        raise _unreadable(f"WAV of format {tag} and {bits} bits")
    return AudioLength(size // frame, rate)


def _flac(data: bytes, size: Callable[[], int]) -> AudioLength | None:
    if len(data) < 26:
        return None
    if data[4] & 0x7F or int.from_bytes(data[5:8], "big") != 34:
        raise _unreadable("the FLAC file does not begin with its length")
    numbers = int.from_bytes(data[18:26], "big")  # rate, channels, bits, samples: 20, 3, 5 and 36 bits
    return AudioLength(numbers & ((1 << 36) - 1), numbers >> 44)


def _mp3(data: bytes, size: Callable[[], int]) -> AudioLength | None:
    at = 0
    if data.startswith(b"ID3"):
        at = 10 + sum((data[6 + place] & 0x7F) << 7 * (3 - place) for place in range(4))
        at += 10 * bool(data[5] & 0x10)
    frame = _Mp3Frame.at(data, at)
    if frame is None:
        if at + 4 > len(data):
            return None
        raise _unreadable("the MP3 file does not begin with a frame")
    if at + frame.size > len(data):
        return None
    following = _Mp3Frame.at(data, at + frame.size)
    if following is None and at + frame.size + 4 <= len(data):
        raise _unreadable("the MP3 file has a frame that no other follows")
    return _mp3_length(frame, data[at : at + frame.size])


class _Mp3Frame(NamedTuple):
    """The header of a frame of layer III."""

    size: int  # bytes
    samples: int
    rate: int
    side: int  # bytes of the header and the side information

    @classmethod
    def at(cls, data: bytes, start: int) -> _Mp3Frame | None:
        """The frame that begins there, if one of a fixed size does."""
        head = data[start : start + 4]
        if len(head) < 4 or head[0] != 0xFF or not (head[1] & 0xF0 == 0xF0 or head[1] & 0xFE == 0xE2):
            return None
        is_layer_3, bitrate, rate = head[1] & 6 == 2, head[2] >> 4, head[2] >> 2 & 3
        if not is_layer_3 or not 0 < bitrate < 15 or rate == 3:
            return None
        is_mpeg1, is_mono = bool(head[1] & 8), head[3] >> 6 == 3
        hertz = (44100, 48000, 32000)[rate] >> (not is_mpeg1) >> (not head[1] & 0x10)
        samples = 1152 if is_mpeg1 else 576
        size = samples * _KBPS[is_mpeg1][bitrate - 1] * 125 // hertz + (head[2] >> 1 & 1)
        side = (17 if is_mono else 32) if is_mpeg1 else 9 if is_mono else 17
        return cls(size, samples, hertz, 4 + (0 if head[1] & 1 else 2) + side)


_KBPS = (
    (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
)  # of MPEG-2 and 2.5, and of MPEG-1
_DECODER_DELAY = 529  # samples


def _mp3_length(frame: _Mp3Frame, data: bytes) -> AudioLength:
    """The length that the tag in the first frame says, without the samples that encoder and decoder add."""
    tag = data[frame.side :]
    if tag[:4] not in (b"Xing", b"Info") or len(tag) < 12 or not tag[7] & 1:
        raise _unreadable(
            "an MP3 file without a Xing or Info tag is not counted: its length is not in its header"
        )
    flags = tag[7]
    total = int.from_bytes(tag[8:12], "big") * frame.samples & 0xFFFFFFFF
    at = frame.side + 12 + 4 * (flags >> 1 & 1) + 100 * (flags >> 2 & 1) + 4 * (flags >> 3 & 1)
    delay = padding = 0
    if at < len(data) and data[at] and at + 35 < len(data):
        lame = data[at + 21 : at + 24]
        delay = (lame[0] << 4 | lame[1] >> 4) + _DECODER_DELAY
        padding = max(((lame[1] & 15) << 8 | lame[2]) - _DECODER_DELAY, 0)
    for trimmed in (delay, padding):
        total -= trimmed if total >= trimmed else 0
    return AudioLength(total, frame.rate)
