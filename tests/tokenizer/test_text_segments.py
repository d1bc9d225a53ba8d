"""Segments that are replaced, against a plain list of them; sums and places are always right."""

from __future__ import annotations

import random

import pytest

from ggufbpe.tokenizer import text_segments as module
from ggufbpe.tokenizer.text_segments import SegmentChunk, SegmentPlace, Segments, TextSegment


def made(count: int, number: int = 0) -> list[TextSegment]:
    return [
        TextSegment(bytes([97 + at % 26]) * (1 + at % 3), [number + at] * (at % 3)) for at in range(count)
    ]


def filled(plain: list[TextSegment]) -> Segments:
    found = Segments()
    found.replace(SegmentPlace(0, 0, 0, 0), SegmentPlace(0, 0, 0, 0), plain)
    return found


def check(found: Segments, plain: list[TextSegment]) -> None:
    assert list(found) == plain
    assert found.size == sum(len(data) for data, _ in plain) == sum(chunk.size for chunk in found.chunks)
    assert found.count == sum(len(ids) for _, ids in plain) == sum(chunk.count for chunk in found.chunks)
    assert all(0 < len(chunk.segments) <= module._MOST for chunk in found.chunks)


def test_without_segments() -> None:
    empty = Segments()
    assert empty.last_before(5) == SegmentPlace(0, 0, 0, 0)
    assert empty.through(SegmentPlace(0, 0, 0, 0), 5) == ([], SegmentPlace(0, 0, 0, 0))
    check(empty, [])


@pytest.mark.parametrize(
    ("limit", "place"),
    [
        (-1, SegmentPlace(0, 0, 0, 0)),
        (0, SegmentPlace(0, 0, 0, 0)),
        (1, SegmentPlace(0, 1, 1, 0)),
        (2, SegmentPlace(0, 1, 1, 0)),
        (3, SegmentPlace(0, 2, 3, 1)),
        (99, SegmentPlace(0, 3, 6, 3)),
    ],
)
def test_the_last_segment_before_a_limit(limit: int, place: SegmentPlace) -> None:
    assert filled(made(4)).last_before(limit) == place


def test_the_segment_before_a_place() -> None:
    found = filled(made(4))
    assert found.before(SegmentPlace(0, 0, 0, 0)) is None
    assert found.before(SegmentPlace(0, 2, 3, 1)) == made(4)[1]


def test_a_copy_of_the_list_keeps_the_state() -> None:
    plain = made(600)
    found = filled(plain)
    kept: list[SegmentChunk] = list(found.chunks)
    found.replace(found.last_before(9), found.last_before(100), [])
    assert [segment for chunk in kept for segment in chunk.segments] == plain


def test_random_replacements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 6)
    monkeypatch.setattr(module, "_FEW", 3)
    dice = random.Random(1)
    plain = made(40)
    found = filled(plain)
    for step in range(2000):
        start = found.last_before(dice.randint(0, found.size))
        old, end = found.through(start, start.position + dice.randint(1, 30))
        new = made(dice.randint(0, 20 if len(plain) < 60 else 4), step)
        first = next(
            at for at in range(len(plain) + 1) if sum(len(s.data) for s in plain[:at]) == start.position
        )
        assert plain[first : first + len(old)] == old
        plain[first : first + len(old)] = new
        found.replace(start, end, new)
        check(found, plain)
