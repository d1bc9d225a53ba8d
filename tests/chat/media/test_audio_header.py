"""The lengths that headers of recordings say, held to those that libmtmd reads (fixtures/media.json)."""

import json
from pathlib import Path
from typing import Any

import pytest
from audio_files import FILES, MP3_FRAME, flac, id3, mp3, random_files, wav

from ggufbpe import ChatError
from ggufbpe.chat.media.audio_header import audio_length, is_audio

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[3] / "fixtures" / "media.json").read_text()
)["files"]
RANDOM = random_files(200, 36)


def samples(data: bytes, rate: int) -> list[int] | None:
    """How many samples a file has at a rate; None if it is refused."""
    assert is_audio(data)
    try:
        length = audio_length(data, lambda: len(data))
    except ChatError:
        return None
    return None if length is None else [length.at(rate)]


@pytest.mark.parametrize("name", FILES)
def test_lengths_are_those_of_libmtmd(name: str) -> None:
    assert [samples(FILES[name], rate) for rate in (16000, 24000)] == RECORDED[name]


def test_random_lengths_are_those_of_libmtmd() -> None:
    for name, data in RANDOM.items():
        assert [samples(data, rate) for rate in (16000, 24000)] == RECORDED[name], name


@pytest.mark.parametrize("name", FILES)
def test_the_beginning_of_a_file_is_enough_or_says_nothing(name: str) -> None:
    data = FILES[name]
    whole = samples(data, 16000)
    for size in range(12, min(len(data), 1500)):
        try:
            length = audio_length(data[:size], lambda: len(data))
        except ChatError:
            assert whole is None, size
            continue
        assert length is None or [length.at(16000)] == whole, size


REFUSED = {
    "an MP3 without its length": (MP3_FRAME * 20, "without a Xing or Info tag is not counted"),
    "an MP3 whose tag has no length": (mp3(flags=2), "without a Xing or Info tag is not counted"),
    "an MP3 with noise behind its tag": (mp3(0) + b"x" * 50, "a frame that no other follows"),
    "layer II": (bytes([0xFF, 0xFD, 0x90, 0xC0]) + bytes(500), "does not begin with a frame"),
    "text behind ID3": (id3(50) + b"x" * 50, "does not begin with a frame"),
    "WAV in ADPCM": (wav(100, tag=2), "WAV of format 2 is not counted"),
    "WAV with the samples first": (
        wav(100).replace(b"fmt ", b"data"),
        "the format of the WAV file is missing",
    ),
    "FLAC of too many samples": (flac((1 << 36) - 1), "68719476735 samples"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    data, reason = REFUSED[name]
    with pytest.raises(ChatError, match=reason):
        audio_length(data, lambda: len(data))


@pytest.mark.parametrize("head", [b"RIFF....WAVE", b"ID3\4", b"fLaC", b"\xff\xfb"])
def test_what_is_taken_for_audio(head: bytes) -> None:
    data = head + bytes(12 - len(head))
    assert is_audio(data)
    assert not is_audio(data[:11])
