"""The parts that images are cut into and their tokens; test_mmproj.py holds them to libmtmd."""

from __future__ import annotations

import pytest

from ggufbpe import ChatError
from ggufbpe.chat.media.image_header import ImageSize
from ggufbpe.chat.media.image_parts import RESIZE, ImageParts, VisionSettings
from ggufbpe.chat.media.image_tokens import OUTPUT

SETTINGS = VisionSettings(image_size=448, patch_size=14, merge=2, min_tiles=2, max_tiles=9, tile_size=640)


def test_a_unit_is_the_square_of_one_token() -> None:
    assert SETTINGS.unit == 28


@pytest.mark.parametrize("size", [ImageSize(1, 1), ImageSize(5000, 10)])
def test_the_size_is_fixed(size: ImageSize) -> None:
    assert RESIZE["fixed"](SETTINGS, size) == ImageParts(ImageSize(448, 448), is_single=True)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (ImageSize(280, 56), ImageSize(280, 56)),
        (ImageSize(275, 60), ImageSize(280, 56)),  # to the nearest unit
        (ImageSize(1, 1), ImageSize(28, 28)),  # one unit at least
    ],
)
def test_sizes_are_whole_units(size: ImageSize, expected: ImageSize) -> None:
    assert RESIZE["dynamic"](SETTINGS, size).overview == expected


def test_an_image_that_overflows_is_refused() -> None:
    with pytest.raises(ChatError, match="too large for the projector"):
        RESIZE["dynamic"](SETTINGS, ImageSize(1 << 20, 1 << 20))


def test_views_in_rows_are_views_with_their_tiles_joined() -> None:
    size = ImageSize(1300, 700)
    views, rows = RESIZE["views"](SETTINGS, size), RESIZE["views_in_rows"](SETTINGS, size)
    assert rows.overview == views.overview
    assert sum(part.height for part in rows.slices) == sum(part.height for part in views.slices)
    assert len(views.slices) == len(rows.slices) * views.columns > 0


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("patches", 32 * 16),
        ("patches_and_two", 32 * 16 + 2),
        ("quarter", 32 * 4),
        ("units", 16 * 8),
        ("merged", 16 * 8),
        ("rows", 16 * 8 + 7),  # a break after each row but the last
        ("lines_and_two", 16 * 8 + 8 + 2),
    ],
)
def test_tokens_of_a_part(name: str, count: int) -> None:
    assert OUTPUT[name](SETTINGS, ImageSize(448, 224)) == count
