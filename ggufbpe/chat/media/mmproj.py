"""A multimodal projector's file (mmproj): how many tokens llama-server counts for an image or a recording.

Source: clip_model_loader::load_hparams in tools/mtmd/clip.cpp; mtmd_tokenizer::add_media in tools/mtmd/mtmd.cpp.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from ..._util.errors import ChatError, GGUFError
from ...gguf.reader import GGUFFile
from .audio_header import MOST_SAMPLES, AudioLength
from .audio_tokens import AUDIO_PROJECTORS, AudioProjector, AudioSettings
from .image_header import ImageSize
from .image_parts import RESIZE, ImageParts, VisionSettings
from .image_tokens import OUTPUT
from .projectors import MARKS_OF_GLM, MARKS_OF_OLDER_MINICPM, PROJECTORS, Marks, Projector

_MOST_TILES = 256  # of any projector


class MarkCounter(Protocol):
    """A vocabulary, as far as the texts around images need it."""

    def count(self, text: str, /) -> int:
        """Return the number of tokens of a text of its own, with special tokens parsed and none added."""

    def has_token(self, text: str, /) -> bool:
        """Return whether a token has this piece."""


class ImageTokens(NamedTuple):
    """The tokens of an image of `width` by `height` pixels.

    `image` counts those of the image itself, `marks` those of the texts that llama.cpp puts around it and its parts.
    """

    width: int
    height: int
    image: int
    marks: int

    @property
    def total(self) -> int:
        """All tokens that the image takes in a prompt."""
        return self.image + self.marks


class AudioTokens(NamedTuple):
    """The tokens of a recording of `samples` samples, at the rate of the projector.

    `audio` counts those of the recording itself, `marks` those of the texts that llama.cpp puts around it.
    """

    samples: int
    audio: int
    marks: int

    @property
    def total(self) -> int:
        """All tokens that the recording takes in a prompt."""
        return self.audio + self.marks


class _Vision(NamedTuple):
    name: str
    projector: Projector
    settings: VisionSettings


class _Audio(NamedTuple):
    name: str
    projector: AudioProjector
    settings: AudioSettings


@dataclass(frozen=True)
class Mmproj:
    """The projectors in a file, as `Mmproj.from_file` reads it: `vision` for images, `audio` for recordings, or both.

    A projector that the file does not have, or that llama.cpp does not read, is None.
    """

    vision: _Vision | None
    audio: _Audio | None = None

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Mmproj:
        """Read the metadata of a file. `GGUFError` if it has no projector, or one that is not counted."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise TypeError(f"mmproj must be the path of a projector's file, not {type(path).__name__}")
        with GGUFFile(path) as file:
            values = _Values(file)
            vision = _vision(values) if values.value("clip.has_vision_encoder", False) else None
            has_audio = values.value("clip.has_audio_encoder", False)
            if vision and vision.name == "gemma3nv":  # llama.cpp does not read Gemma 3n's audio
                has_audio = False
            if not vision and not has_audio:
                raise values.error(
                    "no projector: neither clip.has_vision_encoder nor clip.has_audio_encoder is true"
                )
            return cls(vision, _audio(values) if has_audio else None)

    def image_tokens(self, width: int, height: int, texts: MarkCounter) -> ImageTokens:
        """Return the tokens of an image of this size in pixels. `ChatError` for a size that is too large for it."""
        if self.vision is None:
            raise ChatError("Failed to tokenize prompt: the projector is not for images")
        name, projector, settings = self.vision
        parts = RESIZE[projector.resize](settings, ImageSize(width, height))
        output = OUTPUT[projector.output]
        image = sum(output(settings, each) for each in (parts.overview, *parts.slices))
        marks = projector.marks
        if name == "kimik25" and texts.has_token(MARKS_OF_GLM.begin):  # GLM 5.2 has Kimi's projector
            marks = MARKS_OF_GLM
        return ImageTokens(width, height, image, _marks(marks, parts, texts))

    def audio_tokens(self, length: AudioLength, texts: MarkCounter) -> AudioTokens:
        """Return the tokens of a recording of this length. `ChatError` if it is too short for the projector."""
        if self.audio is None:
            raise ChatError("Failed to load image or audio file: the projector is not for audio")
        _, projector, settings = self.audio
        samples = length.at(projector.rate)
        if samples >= MOST_SAMPLES:  # a file may say that a second has one sample
            raise ChatError(f"Failed to load image or audio file: {samples} samples are too many")
        marks = sum(texts.count(text) for text in (projector.begin, projector.end) if text)
        return AudioTokens(samples, projector.tokens_of(settings, samples), marks)


def _vision(values: _Values) -> _Vision:
    """The projector of images. `GGUFError` if it is not counted."""
    name = values.projector("vision")
    if name == "qwen2.5o":
        name = "qwen2.5vl_merger"
    if name not in PROJECTORS:
        raise values.error(f"images of the projector {name!r} are not counted")
    projector = PROJECTORS[name]
    if name == "resampler" and values.value("clip.minicpmv_version", 0) in (0, 2):
        projector = projector._replace(marks=MARKS_OF_OLDER_MINICPM)
    return _Vision(name, projector, _settings(values, name, projector))


def _audio(values: _Values) -> _Audio:
    """The projector of audio. `GGUFError` if it is not counted."""
    name = values.projector("audio")
    if name not in AUDIO_PROJECTORS:
        raise values.error(f"audio of the projector {name!r} is not counted")
    projector = AUDIO_PROJECTORS[name]
    found = {}
    for field, key, is_required in projector.keys:
        found[field] = values.number(key, None if is_required else 1, "clip.audio.")
        if not 0 < found[field] < 1 << 16:
            raise values.error(f"{found[field]} is out of range", f"clip.audio.{key}")
    return _Audio(name, projector, AudioSettings(**found))


def _marks(marks: Marks, parts: ImageParts, texts: MarkCounter) -> int:
    """The tokens of the texts around an image and its slices."""
    total = sum(texts.count(text) for text in (marks.begin, marks.end) if text)
    tokens: list[tuple[str, ...]] = [] if parts.is_single else [*marks.overview]
    if parts.slices:
        rows = len(parts.slices) // parts.columns
        row_end = (marks.row_end,) if marks.row_end else ()
        tokens += [marks.slices, *[marks.each] * len(parts.slices), *[row_end] * (rows - 1)]
        if marks.before_slice:
            places = ((row, column) for row in range(rows) for column in range(parts.columns))
            total += sum(
                texts.count(marks.before_slice.format(row + 1, column + 1)) for row, column in places
            )
    for text in {text for several in tokens for text in several}:
        if not texts.has_token(text):
            raise ChatError(f"Invalid token: the vocabulary has no {text!r}, which goes around the image")
    return total + sum(map(len, tokens))


class _Values:
    """The values of a file by their keys, checked for their types."""

    def __init__(self, file: GGUFFile) -> None:
        self._file = file

    def error(self, reason: str, key: str | None = None) -> GGUFError:
        """The error of this file."""
        return GGUFError(reason, path=self._file.path, key=key)

    def value(self, key: str, default: Any) -> Any:
        """The value of a key, of the type of the default, or the default; None requires a number."""
        if key not in self._file:
            if default is None:
                raise self.error("the key is missing", key)
            return default
        found = self._file[key]
        if type(found) is not (int if default is None else type(default)):
            raise self.error("the value is of another type than llama.cpp reads", key)
        return found

    def projector(self, kind: str) -> str:
        """The name of the projector of this kind, "vision" or "audio"."""
        found: str = self.value("clip.projector_type", "") or self.value(f"clip.{kind}.projector_type", "")
        return found

    def number(self, name: str, default: int | None = None, below: str = "clip.vision.") -> int:
        """A number with a key below `below`, required without a default."""
        found: int = self.value(below + name, default)
        if not 0 <= found < 1 << 31:
            raise self.error(f"{found} is out of range", below + name)
        return found

    def pairs(self, name: str) -> tuple[ImageSize, ...]:
        """An array of sizes below `clip.vision.`, or none."""
        key = f"clip.vision.{name}"
        found: Any = self.value(key, [])
        are_pairs = isinstance(found, list) and len(found) % 2 == 0
        if not are_pairs or not all(type(each) is int and 0 < each <= 1 << 16 for each in found):
            raise self.error("not pairs of a width and a height", key)
        return tuple(ImageSize(*pair) for pair in zip(found[::2], found[1::2]))


def _settings(values: _Values, name: str, projector: Projector) -> VisionSettings:
    """What the file says, with llama.cpp's defaults for this projector."""
    image, patch = values.number("image_size"), values.number("patch_size")
    least = int(
        projector.resize not in ("dynamic", "canvas", "scaled", "grid")
    )  # those need no size of images
    if not least <= image <= 8192 or not 0 < patch < 65536:  # as llama.cpp refuses
        raise values.error(f"images of {image} with patches of {patch} pixels are out of range")
    merge = values.number(projector.merge_key, projector.merge) if projector.merge_key else projector.merge
    if not 0 < merge < 65536:
        raise values.error(f"merging {merge} patches is out of range")
    if name == "gemma4uv":  # merges in its convolution
        patch, merge = patch * merge, 1
    fewest, most = (each * (patch * merge) ** 2 for each in projector.limits or (0, 0))
    if projector.has_pixel_keys is not False:
        required = projector.has_pixel_keys
        fewest = values.number("image_min_pixels", None if required else fewest)
        most = values.number("image_max_pixels", None if required else most)
    if most < fewest:
        raise values.error(f"at least {fewest} and at most {most} pixels")
    resolutions = values.pairs("image_grid_pinpoints")
    for width, height in resolutions if "slices" in projector.resize else ():
        if min(width, height) < image:
            raise values.error(
                f"{width} x {height} pixels, smaller than a slice of {image}",
                "clip.vision.image_grid_pinpoints",
            )
    settings = VisionSettings(image, patch, merge, fewest, most, resolutions=resolutions)
    return _OWN[name](values, settings) if name in _OWN else settings


def _resampler(values: _Values, settings: VisionSettings) -> VisionSettings:
    version = values.value("clip.minicpmv_version", 0)
    queries = values.value("clip.minicpmv_query_num", 0)
    known = 64 if version in (3, 4, 5, 6, 100045) else 96
    if version not in (0, 2, 3, 4, 5, 6, 100045):
        raise values.error(f"llama.cpp knows no version {version} of MiniCPM-V", "clip.minicpmv_version")
    return replace(settings, queries=queries or known)


def _longest(default: int | None) -> Callable[[_Values, VisionSettings], VisionSettings]:
    """Settings with the longest edge of the file, by default this one, or the image's side."""

    def settings_of(values: _Values, settings: VisionSettings) -> VisionSettings:
        edge = values.number("preproc_image_size", settings.image_size if default is None else default)
        return replace(settings, longest_edge=edge or default or 0)

    return settings_of


def _internvl(values: _Values, settings: VisionSettings) -> VisionSettings:
    """Grids of a least and most number of tiles. Source: set_internvl_dhr_res_candidates."""
    fewest, most = values.number("preproc_min_tiles", 1), values.number("preproc_max_tiles", 12)
    if not 1 <= fewest <= most <= _MOST_TILES:
        raise values.error(f"from {fewest} to {most} tiles")
    side = settings.image_size
    grids = [
        ImageSize(columns * side, rows * side)
        for columns in range(fewest, most + 1)
        for rows in range(max(-(-fewest // columns), fewest), min(most // columns, most) + 1)
    ]
    return replace(settings, resolutions=(*settings.resolutions, *grids))


def _kimik25(values: _Values, settings: VisionSettings) -> VisionSettings:
    fewest, most = values.number("image_min_pixels", 0), values.number("image_max_pixels", 0)
    return replace(settings, min_pixels=fewest, max_pixels=most) if fewest and most else settings


def _llama4(values: _Values, settings: VisionSettings) -> VisionSettings:
    side = settings.image_size
    sides = [(x, y) for x in range(1, 4) for y in range(1, 4)][1:]
    grids = tuple(ImageSize(x * side, y * side) for x, y in sides)
    return replace(settings, resolutions=settings.resolutions + grids)


def _views(most: int, tile: int) -> Callable[[_Values, VisionSettings], VisionSettings]:
    def settings_of(values: _Values, settings: VisionSettings) -> VisionSettings:
        tiles = values.number("preproc_min_tiles", 2), values.number("preproc_max_tiles", most)
        if not tiles[0] <= tiles[1] <= _MOST_TILES:
            raise values.error(f"from {tiles[0]} to {tiles[1]} tiles")
        return replace(
            settings, image_size=1024, patch_size=16, min_tiles=tiles[0], max_tiles=tiles[1], tile_size=tile
        )

    return settings_of


# What only one projector reads.
_OWN: dict[str, Callable[[_Values, VisionSettings], VisionSettings]] = {
    "resampler": _resampler,
    "idefics3": _longest(0),
    "lightonocr": _longest(None),
    "step3vl": _longest(3024),
    "internvl": _internvl,
    "kimik25": _kimik25,
    "llama4": _llama4,
    "deepseekocr": _views(9, 640),
    "deepseekocr2": _views(6, 768),
}
