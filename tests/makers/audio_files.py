"""Makes silent recordings by hand: WAV, FLAC without frames, and MP3 with and without a tag of its length."""

from __future__ import annotations

import random
import struct

MP3_FRAME = bytes([0xFF, 0xFB, 0x90, 0xC0]) + bytes(413)  # MPEG-1 layer III, 128 kbit/s, 44100 Hz, mono


def wav(
    samples: int,
    rate: int = 16000,
    bits: int = 16,
    channels: int = 1,
    tag: int = 1,
    *,
    block: int | None = None,
    before: bytes = b"",
    extra: bytes = b"",
    size: int | None = None,
    missing: int = 0,
) -> bytes:
    """A WAV file: `before` are chunks before the format, `extra` is more of it, `missing` bytes are cut off."""
    block = max(bits * channels // 8, 1) if block is None else block
    data = bytes(samples * block)
    form = struct.pack("<HHIIHH", tag, channels, rate, rate * block, block, bits) + extra
    body = before + b"fmt " + struct.pack("<I", len(form)) + form
    body += b"data" + struct.pack("<I", len(data) if size is None else size) + data
    whole = b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body
    return whole[: len(whole) - missing]


def flac(samples: int, rate: int = 16000, channels: int = 1, *, first: int = 0x80) -> bytes:
    """The header of a FLAC file and its first frame, of 4096 samples; the others are missing."""
    numbers = rate << 44 | (channels - 1) << 41 | 15 << 36 | samples
    info = struct.pack(">HH", 4096, 4096) + bytes(6) + numbers.to_bytes(8, "big") + bytes(16)
    return b"fLaC" + bytes([first]) + len(info).to_bytes(3, "big") + info + _flac_frame(channels)


def _flac_frame(channels: int) -> bytes:
    """A frame of silence: rate and bits are those of the file's header, and each channel is a constant."""
    head = bytes([0xFF, 0xF8, 0xC0, (channels - 1) << 4, 0])
    frame = head + bytes([_crc(head, 8, 0x07)]) + bytes(3 * channels)
    return frame + _crc(frame, 16, 0x8005).to_bytes(2, "big")


def _crc(data: bytes, bits: int, polynomial: int) -> int:
    found, top = 0, 1 << (bits - 1)
    for byte in data:
        found ^= byte << (bits - 8)
        for _ in range(8):
            found = (found << 1 ^ (polynomial if found & top else 0)) & ((1 << bits) - 1)
    return found


def mp3(
    frames: int = 20,
    *,
    tag: bytes = b"Xing",
    flags: int = 15,
    said: int | None = None,
    delay: tuple[int, int] | None = (576, 1000),
    before: bytes = b"",
    header: bytes = MP3_FRAME[:4],
    size: int = 417,
) -> bytes:
    """An MP3 file: a frame with a tag that says how many `frames` follow, with LAME's `delay` and padding."""
    is_mpeg1, is_mono = bool(header[1] & 8), header[3] >> 6 == 3
    side = (17 if is_mono else 32) if is_mpeg1 else 9 if is_mono else 17
    first = header + bytes(side + 2 * (not header[1] & 1)) + tag
    if tag:
        first += struct.pack(">I", flags) + (
            struct.pack(">I", frames if said is None else said) if flags & 1 else b""
        )
        first += bytes(4 * (flags >> 1 & 1) + 100 * (flags >> 2 & 1) + 4 * (flags >> 3 & 1))
        if delay is not None:
            first += b"LAME3.100" + bytes(12) + (delay[0] << 12 | delay[1]).to_bytes(3, "big")
    frame = header + bytes(size - 4)
    return before + first + bytes(max(size - len(first), 0)) + frame * frames


def id3(size: int, flags: int = 0) -> bytes:
    """A tag of ID3v2 of so many bytes without its header."""
    lengths = bytes(size >> 7 * (3 - place) & 0x7F for place in range(4))
    return b"ID3\4\0" + bytes([flags]) + lengths + bytes(size + 10 * bool(flags & 0x10))


LIST = b"LIST" + struct.pack("<I", 5) + b"INFOx\0"
EXTENSIBLE = struct.pack("<HHI", 22, 16, 4) + struct.pack("<H", 1) + bytes(14)

FILES = {
    "WAV": wav(12345),
    "WAV, 44100 Hz, stereo": wav(44100, 44100, channels=2),
    "WAV, 8000 Hz, 8 bits": wav(8001, 8000, 8),
    "WAV, 48000 Hz, 24 bits, 3 channels": wav(999, 48000, 24, 3),
    "WAV, 11025 Hz, floats": wav(11025, 11025, 32, tag=3),
    "WAV, 22050 Hz, 64 bits": wav(5000, 22050, 64, tag=3),
    "WAV, 12 bits": wav(1000, bits=12, block=2),
    "WAV, A-law": wav(1000, 8000, 8, tag=6),
    "WAV, mu-law, stereo": wav(1000, 8000, 8, 2, tag=7),
    "WAV, mu-law of 16 bits": wav(1000, 8000, 16, tag=7),
    "WAV, extensible": wav(777, tag=0xFFFE, extra=EXTENSIBLE),
    "WAV, format of 18 bytes": wav(777, extra=b"\0\0"),
    "WAV, a list before": wav(777, before=LIST),
    "WAV, size too large": wav(500, size=1 << 31),
    "WAV, size not known": wav(500, size=0xFFFFFFFF),
    "WAV, half a sample too many": wav(500, size=999),
    "WAV, cut off": wav(500, missing=101),
    "WAV, without samples": wav(0),
    "WAV, without data": wav(0, missing=8),
    "WAV, no channels": wav(100, channels=0, block=2),
    "WAV, no rate": wav(100, 0),
    "FLAC": flac(100000),
    "FLAC, 96000 Hz": flac(1 << 20, 96000, 2),
    "FLAC, length not known": flac(0),
    "FLAC, another block first": flac(100000, first=0x84),
    "MP3, Xing": mp3(),
    "MP3, Info": mp3(tag=b"Info", flags=1),
    "MP3, no delay": mp3(delay=None),
    "MP3, large padding": mp3(delay=(1105, 4000)),
    "MP3, says more frames than it has": mp3(said=123456),
    "MP3, ID3": mp3(before=id3(1000)),
    "MP3, ID3 with a footer": mp3(before=id3(300, 0x10)),
    "MP3, 22050 Hz, stereo": mp3(header=bytes([0xFF, 0xF3, 0x90, 0]), size=261),
    "MP3, 8000 Hz, CRC": mp3(header=bytes([0xFF, 0xE2, 0x88, 0xC0]), size=576),
    "MP3, 48000 Hz, joint stereo": mp3(header=bytes([0xFF, 0xFB, 0x94, 0x40]), size=384),
    "MP3, one frame": mp3(1, delay=None),
}


def random_files(count: int, seed: int) -> dict[str, bytes]:
    """Files of random sizes and rates."""
    dice = random.Random(seed)
    found = {}
    for number in range(count):
        rate = dice.choice((8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000, dice.randint(1, 50000)))
        bits, channels = dice.choice((8, 16, 24, 32)), dice.randint(1, 6)
        found[f"random WAV {number}"] = wav(dice.randint(1, 3000), rate, bits, channels)
    return found
