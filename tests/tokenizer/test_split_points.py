"""Where special tokens certainly begin, a place near the end of a text, and places that several tokenizers have."""

from __future__ import annotations

from typing import Any

import pytest
from growing_texts import all_tokenizers, small_segments
from split_cases import odd_text, opened, special_texts
from synthetic import byte_tokens, make_vocabulary, tokenizer_as

from ggufbpe import Tokenizer
from ggufbpe.models.vocabulary import CONTROL, LSTRIP, RSTRIP, USER_DEFINED
from ggufbpe.native import native
from ggufbpe.tokenizer.split_points import CommonPlaces, Places, SplitPoints, places_of

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


@pytest.mark.skipif(native is None, reason="the reference engine knows no other places")
def test_a_special_token_is_not_always_between_words() -> None:
    found = places("native", {"<s>": CONTROL})
    text = b"o" * 500 + b"<s>" + b"x" * 500
    assert found.last(text, 0, 900) == found.last(text, 0, 900, between_words=True) == 500
    text = b"!" * 500 + b"<s>" + b"!" * 500
    assert found.last(text, 0, 900) == 500
    assert found.last(text, 0, 900, between_words=True) == 0  # a word has "!<"


def test_the_reference_engine_has_those_of_special_tokens() -> None:
    found = places("reference", {"<s>": CONTROL})
    assert found.last(b"one two<s>three", 0, 15) == 7
    assert found.last(b"one two three", 0, 13) == 0
    assert found.last(b"one two<s>three", 0, 15, between_words=True) == 0


def places_by_definition(found: Places, text: bytes) -> set[int]:
    """The places within `text`, each asked for by itself."""
    return {at for at in range(1, len(text)) if found.next(text, at) == at}


@pytest.mark.skipif(native is None, reason="the reference engine knows no other places")
def test_a_place_near_the_end_is_one_of_the_whole_text() -> None:
    """It is looked for in a part of the text."""
    count = 0
    with small_segments():
        for name, tokenizer in all_tokenizers("native"):
            found = SplitPoints.of(tokenizer, True, continues=True)
            text = odd_text(f"places of {name}", special_texts(tokenizer))[: 150 + 2 * found.reach]
            end = len(text) - found.reach
            expected = places_by_definition(found, text)
            for start in range(0, end, 17):
                for last in range(start, end, 7):
                    place = found.last(text, start, last, between_words=True)
                    between = {at for at in expected if start < at <= last}
                    assert (name, place in between) == (name, bool(between))
                    assert place or not between
                    count += place > 0
    assert count > 5000


# ---- of several tokenizers ------------------------------------------------------------------------------


SEVERAL = [
    ("gpt-2", "llama-bpe"),
    ("llama-bpe", "spm.gguf"),
    ("wpm.gguf", "gpt-2", "rwkv.gguf"),
    ("gpt-2",) * 2,
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("names", SEVERAL)
def test_several_tokenizers_have_the_places_that_all_have(engine: Any, names: tuple[str, ...]) -> None:
    several = [
        Tokenizer((opened()[name[:-5]] if name.endswith(".gguf") else tokenizer_as(name)).vocabulary, engine)
        for name in names
    ]
    each = [SplitPoints.of(tokenizer, True, continues=True) for tokenizer in several]
    found = places_of(several, True, continues=True)
    assert isinstance(found, CommonPlaces)
    assert (found.around, found.reach) == (max(p.around for p in each), max(p.reach for p in each))
    special = ["<|endoftext|>", *special_texts(several[0])[:3]]
    text = odd_text(f"several {names}", special)[: 600 + found.reach]
    common = set.intersection(*(places_by_definition(one, text) for one in each))
    assert len(common) > (5 if engine == "native" else -1)
    for start in range(len(text)):
        expected = min((at for at in common if at >= start), default=len(text))
        assert found.next(text, start) == expected
    begin = set.intersection(*(set(one.special_tokens(text, 0, len(text))) for one in each))
    assert found.special_tokens(text, 3, 500) == [at for at in sorted(begin) if 3 < at <= 500]
    for start in range(0, 600, 50):
        for end in range(start, 600, 29):
            place = found.last(text, start, end)
            between = {at for at in common | begin if start < at <= end}
            assert place in (between or {0})


def test_one_tokenizer_has_its_own_places() -> None:
    tokenizer = tokenizer_as("gpt-2")
    assert places_of([tokenizer], True, continues=True) is SplitPoints.of(tokenizer, True, continues=True)
