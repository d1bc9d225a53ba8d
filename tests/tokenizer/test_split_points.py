"""Where special tokens certainly begin, and a place near the end of a text."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic import byte_tokens, make_vocabulary

from ggufbpe import Tokenizer
from ggufbpe.models.vocabulary import CONTROL, LSTRIP, RSTRIP, USER_DEFINED
from ggufbpe.native import native
from ggufbpe.tokenizer.split_points import SplitPoints

ENGINES = ["reference", *["native"] * (native is not None)]


def places(engine: Any, special: dict[str, int], **more: Any) -> SplitPoints:
    vocabulary = make_vocabulary([*byte_tokens(), *special], attributes=special, **more)
    return SplitPoints(Tokenizer(vocabulary, engine), parse_special=True, continues=True)


STRIPS_LEFT, STRIPS_RIGHT = CONTROL | LSTRIP, CONTROL | RSTRIP
SPECIAL: list[tuple[dict[str, int], bytes, list[int]]] = [
    ({"<s>": CONTROL}, b"a<s>b<s>", [1, 5]),
    ({"<s>": CONTROL}, b"<s><s>", [3]),  # the beginning is no place
    ({"<ab>": CONTROL, "ab": USER_DEFINED}, b"x<ab>y ab", [1, 7]),  # one within the other
    ({"ab": CONTROL, "bcd": CONTROL}, b"xab abcd", [1]),  # "bcd" is cut out first, and then there is no "ab"
    ({"ab": CONTROL, "bcd": CONTROL}, b"xbcd", [1]),
    ({"<a>": STRIPS_LEFT}, b"x<a>y <a>z", [1]),  # the space would stay in the text before
    ({"<a>": STRIPS_LEFT, "b ": CONTROL}, b"xb <a>", []),  # loses its space, and is none
    ({"<a>": STRIPS_RIGHT, " b": CONTROL}, b"x<a> b", [1]),
    ({"<a>": CONTROL, "b ": CONTROL}, b"xb <a>", [1, 3]),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("special", "text", "expected"), SPECIAL)
def test_where_special_tokens_certainly_begin(
    engine: Any, special: dict[str, int], text: bytes, expected: list[int]
) -> None:
    assert places(engine, special).special_tokens(text, 0, len(text)) == expected


def test_only_places_in_a_range_count() -> None:
    found = places("reference", {"<s>": CONTROL}).special_tokens(b"a<s>b<s>c<s>", 1, 8)
    assert found == [5]


def test_reach_is_that_of_two_special_tokens() -> None:
    made = places("reference", {"<long token>": CONTROL})
    assert (made.around, made.reach) == (12, 24)


@pytest.mark.skipif(native is None, reason="the reference engine knows no other places")
@pytest.mark.parametrize(
    ("text", "start", "end", "expected"),
    [
        (b"one two three", 0, 13, 3),  # near the end, not always the last
        (b"one two three", 0, 6, 3),
        (b"one two three", 3, 6, 0),
        (b"o" * 500 + b" two" + b"x" * 500, 0, 900, 500),
        (b"o" * 500, 0, 500, 0),
        (b"o" * 500 + b"<s>" + b"x" * 500, 0, 900, 500),
        (b"", 0, 0, 0),
    ],
)
def test_a_place_near_the_end(text: bytes, start: int, end: int, expected: int) -> None:
    assert places("native", {"<s>": CONTROL}).last(text, start, end) == expected


def test_the_reference_engine_has_those_of_special_tokens() -> None:
    found = places("reference", {"<s>": CONTROL})
    assert found.last(b"one two<s>three", 0, 15) == 7
    assert found.last(b"one two three", 0, 13) == 0
