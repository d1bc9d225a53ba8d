"""How llama.cpp's `mtmd` resizes and cuts an image before it is encoded: the sizes of its parts.

Its arithmetic is that of 32-bit floats where the C++ has `float`, since sizes depend on how a quotient is rounded.

Source: the preprocessors in tools/mtmd/mtmd-image.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._util.errors import ChatError
from .image_header import ImageSize

_F = np.float32
_MOST_INT = (1 << 31) - 1
_MOST_SLICES = 1 << 16
_MOST_OF_GRID = 9  # slices, of MiniCPM-V's images


@dataclass(frozen=True)
class VisionSettings:
    """What a projector's file says of images, with llama.cpp's defaults. Sides are in pixels; 0 is none."""

    image_size: int
    patch_size: int
    merge: int  # patches per side that become one token
    min_pixels: int = 0
    max_pixels: int = 0
    longest_edge: int = 0
    resolutions: tuple[ImageSize, ...] = ()
    min_tiles: int = 0
    max_tiles: int = 0
    tile_size: int = 0
    queries: int = 0

    @property
    def unit(self) -> int:
        """The side of the square that one token stands for."""
        return self.patch_size * self.merge


class ImageParts(NamedTuple):
    """An image that is encoded as a whole (`overview` alone), or with slices in rows.

    `is_single` is an image without the marks of an overview.
    """

    overview: ImageSize
    slices: tuple[ImageSize, ...] = ()
    columns: int = 0
    is_single: bool = False


def _single(width: int, height: int) -> ImageParts:
    return ImageParts(ImageSize(width, height), is_single=True)


def _sliced(overview: ImageSize, part: ImageSize, columns: int, rows: int) -> ImageParts:
    """An overview and equal slices. `ChatError` if they are too many to be meant."""
    if columns * rows > _MOST_SLICES:
        raise ChatError(f"the projector cuts the image into {columns} x {rows} slices")
    return ImageParts(overview, (part,) * (columns * rows), columns)


def _rounded(value: float) -> int:
    """The nearest integer; halves away from zero, as std::round."""
    return math.floor(value + 0.5) if value >= 0 else -math.floor(0.5 - value)


def _nearest(value: np.float32) -> int:
    return _rounded(float(value))


def _keeping_ratio(settings: VisionSettings, size: ImageSize, unit: int) -> ImageSize:
    """A size in multiples of `unit` within the limits. Source: calc_size_preserved_ratio."""
    min_pixels, max_pixels, longest_edge = settings.min_pixels, settings.max_pixels, settings.longest_edge
    of_width, of_height, step = _F(size.width), _F(size.height), _F(unit)

    def ceiled(value: np.float32) -> int:
        return int(np.ceil(value / step)) * unit

    def floored(value: np.float32) -> int:
        return max(unit, int(np.floor(value / step)) * unit)

    if longest_edge > 0:
        scale = min(_F(longest_edge) / of_width, _F(longest_edge) / of_height)
        width, height = ceiled(of_width * scale), ceiled(of_height * scale)
    else:
        width, height = (max(unit, _nearest(side / step) * unit) for side in (of_width, of_height))
    if width * height > _MOST_INT:
        raise ChatError(f"an image of {size.width} x {size.height} pixels is too large for the projector")
    if 0 < max_pixels < width * height:
        beta = np.sqrt(of_height * of_width / _F(max_pixels))
        return ImageSize(floored(of_width / beta), floored(of_height / beta))
    if width * height < min_pixels:
        beta = np.sqrt(_F(min_pixels) / (of_height * of_width))
        return ImageSize(ceiled(of_width * beta), ceiled(of_height * beta))
    return ImageSize(width, height)


def _fixed(settings: VisionSettings, size: ImageSize) -> ImageParts:
    return _single(settings.image_size, settings.image_size)


def _dynamic(settings: VisionSettings, size: ImageSize) -> ImageParts:
    return _single(*_keeping_ratio(settings, size, settings.unit))


def _fixed_or_slices(settings: VisionSettings, size: ImageSize) -> ImageParts:
    return (_slices if settings.resolutions else _fixed)(settings, size)


def _slices(settings: VisionSettings, size: ImageSize) -> ImageParts:
    """An overview, and slices of a larger image. Source: mtmd_image_preprocessor_llava_uhd."""
    side = settings.image_size
    square = ImageSize(side, side)
    if max(size) <= side:
        return ImageParts(square)
    if settings.resolutions:
        width, height = _best_resolution(size, settings.resolutions)
        _sliced(square, square, width // side, height // side)  # not too many
        slices = tuple(
            ImageSize(min(side, width - x), min(side, height - y))
            for y in range(0, height, side)
            for x in range(0, width, side)
        )
        return ImageParts(square, slices, width // side)
    columns, rows = _best_grid(size, side)
    part = ImageSize(_multiple(size.width, columns) // columns, _multiple(size.height, rows) // rows)
    part = _filling(part, side, settings.unit, enlarges=True)
    overview = _filling(size, side, settings.unit, enlarges=False)
    return _sliced(overview, part, columns, rows)


def _slices_of_merged(settings: VisionSettings, size: ImageSize) -> ImageParts:
    """Source: mtmd_image_preprocessor_minicpmv."""
    side = settings.image_size
    if settings.merge == 2 and _F(size.width) * _F(size.height) / _F(side * side) <= 1:
        return ImageParts(_filling(size, side, settings.unit, enlarges=True))
    return _slices(settings, size)


def _filling(size: ImageSize, side: int, unit: int, enlarges: bool) -> ImageSize:
    """About as many pixels as a square of `side`, in multiples of `unit`. Source: get_best_resize."""
    width, height = size
    if width * height > side * side or enlarges:
        ratio = _F(width) / _F(height)
        height = int(_F(side) / np.sqrt(ratio))
        width = int(_F(height) * ratio)
    return ImageSize(_multiple(width, unit), _multiple(height, unit))


def _multiple(length: int, unit: int) -> int:
    """The nearest multiple of `unit`, at least one. Source: ensure_divide."""
    return max(int(_F(_nearest(_F(length) / _F(unit))) * _F(unit)), unit)


def _best_grid(size: ImageSize, side: int) -> tuple[int, int]:
    """Columns and rows of slices, nearest to the image's ratio. Source: get_best_grid."""
    ratio = np.log(_F(size.width) / _F(size.height))
    pixels = _F(size.width) * _F(size.height) / _F(side * side)
    wanted = min(math.ceil(pixels), _MOST_OF_GRID)
    best, least = (1, 1), _F(math.inf)
    for count in (wanted - 1, wanted, wanted + 1):
        if count == 1 or count > _MOST_OF_GRID:
            continue
        for columns in range(1, count + 1):
            if count % columns:
                continue
            error = _F(abs(float(ratio) - math.log(columns / (count // columns))))
            if error < least:
                best, least = (columns, count // columns), error
    return best


def _best_resolution(size: ImageSize, among: Sequence[ImageSize]) -> ImageSize:
    """The resolution that keeps most of the image and wastes least. Source: select_best_resolution."""
    best, most_kept, least_wasted = among[0], 0, _MOST_INT
    for each in among:
        scale = min(_F(each.width) / _F(size.width), _F(each.height) / _F(size.height))
        scaled = int(_F(size.width) * scale) * int(_F(size.height) * scale)
        kept = min(scaled, size.width * size.height)
        wasted = each.width * each.height - kept
        if kept > most_kept or (kept == most_kept and wasted < least_wasted):
            best, most_kept, least_wasted = each, kept, wasted
    return best


def _tiles(settings: VisionSettings, size: ImageSize) -> ImageParts:
    """An overview and square tiles, whatever the size. Source: mtmd_image_preprocessor_idefics3."""
    side = settings.image_size
    overview = ImageSize(side, side)
    if settings.longest_edge > 0 and settings.min_pixels <= 0 and settings.max_pixels <= 0:
        ratio = size.width / size.height
        if size.width >= size.height:
            width, height = settings.longest_edge, int(settings.longest_edge / ratio)
            height += height % 2
        else:
            width, height = int(settings.longest_edge * ratio), settings.longest_edge
            width += width % 2
        columns, rows = -(-width // side), -(-height // side)
    else:
        width, height = _keeping_ratio(settings, size, side)
        columns, rows = width // side, height // side
    return _sliced(overview, overview, columns, rows)


def _tiles_or_one(settings: VisionSettings, size: ImageSize) -> ImageParts:
    """Tiles of 512 pixels and an overview, or the image alone. Source: mtmd_image_preprocessor_lfm2."""
    overview = _keeping_ratio(settings, size, settings.unit)
    pixels = 1
    for side in size:
        pixels *= max(settings.patch_size, round(side / settings.unit) * settings.unit)
    if pixels <= settings.max_pixels * 2.0:
        return _single(*overview)
    columns, rows = _closest_ratio(size, 2, 10, 512)
    return _sliced(overview, ImageSize(512, 512), columns, rows)


def _closest_ratio(size: ImageSize, fewest: int, most: int, tile: int) -> tuple[int, int]:
    """Columns and rows of tiles, nearest to the image's ratio. Source: find_closest_aspect_ratio."""
    grids = [
        (columns, rows)
        for columns in range(1, most + 1)
        for rows in range(1, most + 1)
        if fewest <= columns * rows <= most
    ]
    ratio = _F(size.width) / _F(size.height)
    area = _F(size.width * size.height)
    best, least = (1, 1), _F(np.finfo(_F).max)
    for columns, rows in sorted(grids, key=math.prod):
        distance = abs(ratio - _F(columns) / _F(rows))
        is_larger = area > _F(0.5) * _F(tile * tile * columns * rows)
        if distance < least or (distance == least and is_larger):
            best, least = (columns, rows), distance
    return best


def _views(settings: VisionSettings, size: ImageSize) -> ImageParts:
    """One view of the whole, and tiles of a larger image. Source: mtmd_image_preprocessor_deepseekocr."""
    overview, tile = ImageSize(settings.image_size, settings.image_size), settings.tile_size
    if max(size) <= tile:
        return ImageParts(overview)
    columns, rows = _closest_ratio(size, settings.min_tiles, settings.max_tiles, tile)
    return _sliced(overview, ImageSize(tile, tile), columns, rows)


def _views_in_rows(settings: VisionSettings, size: ImageSize) -> ImageParts:
    """The views of `_views`, with the tiles of each row joined into one part, on top of each other."""
    parts = _views(settings, size)
    rows = len(parts.slices) // parts.columns if parts.slices else 0
    row = ImageSize(settings.tile_size, settings.tile_size * parts.columns)
    return ImageParts(parts.overview, (row,) * rows, min(parts.columns, 1))


def _canvas(settings: VisionSettings, size: ImageSize) -> ImageParts:
    """A canvas in whole units within the limits. Source: mtmd_image_preprocessor_glm5v."""
    unit, (width, height) = settings.unit, size

    def aligned(length: int) -> int:
        return -(-length // unit) * unit

    canvas = ImageSize(aligned(width), aligned(height))
    if canvas.width * canvas.height < settings.min_pixels:
        scale = math.sqrt(settings.min_pixels / (height * width))
        canvas = ImageSize(*(aligned(max(1, math.ceil(side * scale))) for side in size))
    if canvas.width * canvas.height > settings.max_pixels:
        canvas, low, high = ImageSize(unit, unit), 1, height
        while low <= high:
            middle = (low + high) // 2
            tried = ImageSize(aligned(max(1, width * middle // height)), aligned(middle))
            if tried.width * tried.height <= settings.max_pixels:
                canvas, low = tried, middle + 1
            else:
                high = middle - 1
    return _single(*canvas)


def _scaled(settings: VisionSettings, size: ImageSize) -> ImageParts:
    """The largest of scales in steps of 0.02 that fits. Source: mtmd_image_preprocessor_youtuvl."""
    patch, unit = settings.patch_size, settings.unit
    most = settings.max_pixels // (patch * patch)
    scale, width, height = _F(1), *size
    while scale > 0:
        width, height = (max(unit, math.ceil(_F(side) * scale / _F(unit)) * unit) for side in size)
        if (height // patch) * (width // patch) <= most:
            break
        scale = scale - _F(0.02)
    return _single(width, height)


def _grid(settings: VisionSettings, size: ImageSize) -> ImageParts:
    """The grid of units nearest to the image's ratio. Source: muse_glimmer_grid_size."""
    unit = settings.unit
    most = settings.max_pixels // (unit * unit)
    rows, columns = size.height / unit, size.width / unit
    ratio = columns / rows
    if rows * columns > most:
        rows = math.sqrt(most / ratio)
        columns = rows * ratio
    wanted = size.height / size.width
    best: tuple[float, int, int, int] | None = None
    for high in (math.floor(rows), math.ceil(rows)):
        for wide in (math.floor(columns), math.ceil(columns)):
            if min(high, wide) < 1 or high * wide > most:
                continue
            found = (abs(high / wide - wanted), -high * wide, wide, high)
            if best is None or found[:2] < best[:2]:
                best = found
    wide, high = best[2:] if best else (max(1, _rounded(columns)), max(1, _rounded(rows)))
    return _single(wide * unit, high * unit)


def _windows(settings: VisionSettings, size: ImageSize) -> ImageParts:
    """An overview, and windows of 504 pixels of a larger image. Source: mtmd_image_preprocessor_step3vl."""
    width, height = size
    ratio = _F(width) / _F(height)
    if min(size) < 32 and (ratio > 4 or ratio < _F(1) / _F(4)):
        width = height = max(size)
    if max(width, height) > settings.longest_edge:
        scale = _F(settings.longest_edge) / _F(max(width, height))
        width, height = (max(1, math.floor(_F(side) * scale)) for side in (width, height))
    overview = ImageSize(settings.image_size, settings.image_size)
    longer, shorter = max(width, height), min(width, height)
    stretched = _F(longer) / _F(shorter)
    if longer <= settings.image_size:
        window = shorter if stretched > _F(1.5) else 0
    else:
        window = min(shorter, 504) if stretched > 4 else 504
    if window == 0:
        return ImageParts(overview)
    columns, rows = _windows_along(width, window), _windows_along(height, window)
    return _sliced(overview, ImageSize(504, 504), columns, rows)


def _windows_along(length: int, window: int) -> int:
    """The number of windows along a side. Source: calc_crop_extent, calc_grid."""
    ratio = _F(length) / _F(window)
    if ratio < 1:
        return 1
    whole = int(ratio)
    return whole + int(ratio - _F(whole) > _F(0.2))


RESIZE: dict[str, Callable[[VisionSettings, ImageSize], ImageParts]] = {
    "fixed": _fixed,
    "dynamic": _dynamic,
    "longest_edge": _dynamic,
    "fixed_or_slices": _fixed_or_slices,
    "slices": _slices,
    "slices_of_merged": _slices_of_merged,
    "tiles": _tiles,
    "tiles_or_one": _tiles_or_one,
    "views": _views,
    "views_in_rows": _views_in_rows,
    "canvas": _canvas,
    "scaled": _scaled,
    "grid": _grid,
    "windows": _windows,
}
