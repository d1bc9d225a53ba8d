"""The number of tokens that a projector makes of one part of an image.

Source: clip_n_output_tokens in tools/mtmd/clip.cpp.
"""

from __future__ import annotations

from collections.abc import Callable

from .image_header import ImageSize
from .image_parts import VisionSettings


def _patches(settings: VisionSettings, size: ImageSize) -> int:
    return (size.width // settings.patch_size) * (size.height // settings.patch_size)


def _units(settings: VisionSettings, size: ImageSize) -> int:
    return (size.width // settings.unit) * (size.height // settings.unit)


def _halved(settings: VisionSettings, size: ImageSize) -> int:
    side = settings.patch_size * 2
    return (size.width // side) * (size.height // side)


def _covered(settings: VisionSettings, size: ImageSize) -> int:
    return -(-size.width // settings.unit) * -(-size.height // settings.unit)


def _rows(settings: VisionSettings, size: ImageSize) -> int:
    return _units(settings, size) + size.height // settings.unit - 1  # a break after each row but the last


def _lines_and_two(settings: VisionSettings, size: ImageSize) -> int:
    return _units(settings, size) + size.height // settings.unit + 2


def _view_rows(settings: VisionSettings, size: ImageSize) -> int:
    """Squares of 4 x 4 patches with one token more in each row; the whole view has one more at its end."""
    side = size.width // (settings.patch_size * 4)
    if size.width == settings.image_size:
        return side * (side + 1) + 1
    return (side * (size.height // size.width) + 1) * side


def _view_queries(settings: VisionSettings, size: ImageSize) -> int:
    return _patches(settings, size) // 16 + (size.width == settings.image_size)


OUTPUT: dict[str, Callable[[VisionSettings, ImageSize], int]] = {
    "patches": _patches,
    "patches_and_two": lambda settings, size: _patches(settings, size) + 2,
    "quarter": lambda settings, size: _patches(settings, size) // 4,
    "quarter_and_two": lambda settings, size: _patches(settings, size) // 4 + 2,
    "merged": lambda settings, size: _patches(settings, size) // settings.merge**2,
    "units": _units,
    "queries": lambda settings, size: settings.queries,
    "halved": _halved,
    "covered": _covered,
    "rows": _rows,
    "lines_and_two": _lines_and_two,
    "side": lambda settings, size: settings.image_size // settings.patch_size,
    "view_rows": _view_rows,
    "view_queries": _view_queries,
    "pooled": lambda settings, size: 64,
}
