"""The projectors of audio in llama.cpp's `mtmd`: the frames that each makes of a recording, and their tokens.

Every entry is held to libmtmd's own answers (fixtures/media.json, recorded by tests/makers/record_media.py). Projectors
that are not listed are refused.

Source: the preprocessors in tools/mtmd/mtmd-audio.cpp; clip_n_output_tokens and clip_model_loader::load_hparams in
tools/mtmd/clip.cpp; mtmd_context::init_audio in tools/mtmd/mtmd.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ..._util.errors import ChatError

_RATE = 16000
_HOP = 160  # samples from one frame of a spectrogram to the next


@dataclass(frozen=True)
class AudioSettings:
    """What a projector's file says of audio. Keys are those below `clip.audio.`."""

    stack: int = 1  # frames that become one
    window: int = 0
    downsampling: int = 1
    group: int = 1


class AudioProjector(NamedTuple):
    """One projector of audio: the frames of each chunk of a recording, and the tokens of so many frames.

    `begin` and `end` are the texts around a recording. `keys` has the fields of `AudioSettings` that the file gives,
    with their keys, and whether the file must have them.
    """

    frames: Callable[[AudioSettings, int], list[int]]
    tokens: Callable[[AudioSettings, int], int]
    begin: str = ""
    end: str = ""
    keys: tuple[tuple[str, str, bool], ...] = ()
    rate: int = _RATE

    def tokens_of(self, settings: AudioSettings, samples: int) -> int:
        """Return the tokens of so many samples at `rate`. `ChatError` where llama.cpp refuses them or ends."""
        return sum(self.tokens(settings, frames) for frames in self.frames(settings, samples))


def _refused(samples: int) -> ChatError:
    return ChatError(f"Failed to tokenize prompt: {samples} samples of audio are too few for the projector")


# ---- frames of each chunk -------------------------------------------------------------------------


def _whisper(settings: AudioSettings, samples: int) -> list[int]:
    """Chunks of 30 seconds, the last one filled with silence."""
    return [3000] * ((samples // _HOP + 3001) // 3000)


def _windows_of_8_seconds(settings: AudioSettings, samples: int) -> list[int]:
    """Windows of 800 frames, each filled up to whole hundreds."""
    frames = samples // _HOP + 1
    return [-(-min(800, frames - start) // 100) * 100 for start in range(0, frames, 800)]


def _minutes(settings: AudioSettings, samples: int) -> list[int]:
    """Chunks of 60 seconds; a rest of less than a frame is left out."""
    most = 60 * _RATE
    found = [min(most, samples - start) // _HOP for start in range(0, samples, most)]
    if not any(found):
        raise _refused(samples)
    return [frames for frames in found if frames]


def _centered(settings: AudioSettings, samples: int) -> list[int]:
    """One chunk, whose scale needs two frames: with fewer, llama.cpp ends."""
    if samples // _HOP < 2:
        raise _refused(samples)
    return [samples // _HOP + 1]


def _stacked(settings: AudioSettings, samples: int) -> list[int]:
    """One chunk, of pairs of frames."""
    return [(samples // _HOP + 1) // 2]


def _half_minutes(settings: AudioSettings, samples: int) -> list[int]:
    """Chunks of 30 seconds, each with half a window of silence before it. One sample alone has no frame."""
    most = 30 * _RATE
    chunks = [min(most, samples - start) for start in range(0, samples, most)]
    if chunks[-1] == 1:
        raise _refused(samples)
    return [max(size - 161, 0) // _HOP + 1 for size in chunks]


def _raw(settings: AudioSettings, samples: int) -> list[int]:
    return [-(-samples // 640)]


def _whole(settings: AudioSettings, samples: int) -> list[int]:
    return [samples // _HOP + 1]


def _at_24_kilohertz(settings: AudioSettings, samples: int) -> list[int]:
    return [samples // 240 + 1]


# ---- tokens of a chunk ------------------------------------------------------------------------------


def _halved(settings: AudioSettings, frames: int) -> int:
    return -(-frames // settings.stack) // 2


def _quartered(settings: AudioSettings, frames: int) -> int:
    return -(-frames // settings.stack) // 4


def _merged_and_two(settings: AudioSettings, frames: int) -> int:
    return frames // 2 // settings.stack + 2


def _rounded_up(factor: int) -> Callable[[AudioSettings, int], int]:
    return lambda settings, frames: -(-frames // factor)


def _in_windows(settings: AudioSettings, frames: int) -> int:
    return -(-frames // settings.window) * (settings.window // settings.downsampling)


def _grouped(settings: AudioSettings, frames: int) -> int:
    halved = (frames + 1) // 2
    return -(-max(halved // 2, 1) // settings.group)


_STACK = (("stack", "projector.stack_factor", True),)
_WINDOW = (("window", "projector.window_size", True), ("downsampling", "projector.downsample_rate", True))
_QWEN2 = AudioProjector(_whisper, _quartered, "<|audio_bos|>", "<|audio_eos|>")

AUDIO_PROJECTORS: dict[str, AudioProjector] = {
    "ultravox": AudioProjector(_whisper, _halved, keys=_STACK),
    "meralion": AudioProjector(_whisper, _halved, keys=_STACK),
    "voxtral": AudioProjector(_whisper, _quartered, "[BEGIN_AUDIO]", keys=_STACK),
    "glma": AudioProjector(_whisper, _merged_and_two, keys=_STACK),
    "musicflamingo": AudioProjector(_whisper, _quartered, "<sound>"),
    "qwen2a": _QWEN2,
    "qwen2.5o": _QWEN2,
    "qwen3a": AudioProjector(
        _windows_of_8_seconds, lambda settings, frames: frames // 100 * 13, "<|audio_start|>", "<|audio_end|>"
    ),
    "lfm2a": AudioProjector(_centered, _rounded_up(8)),
    "granite_speech": AudioProjector(_stacked, _in_windows, keys=_WINDOW),
    "gemma4a": AudioProjector(_half_minutes, _rounded_up(4), "<|audio>", "<audio|>"),
    "gemma4ua": AudioProjector(_raw, lambda settings, frames: frames, "<|audio>", "<audio|>"),
    "parakeet": AudioProjector(_whole, _rounded_up(8)),
    "dots3note_a": AudioProjector(_minutes, _rounded_up(8), "<|audio_comp_start|>", "<|audio_comp_end|>"),
    "mimo_audio": AudioProjector(
        _at_24_kilohertz,
        _grouped,
        "<|mimo_audio_start|>",
        "<|mimo_audio_end|>",
        (("group", "local_group_size", True),),
        24000,
    ),
}
