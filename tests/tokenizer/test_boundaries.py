"""Levels of boundaries: what each one finds in a text."""

from __future__ import annotations

import pytest

from ggufbpe.tokenizer.boundaries import BOUNDARIES, BoundarySearch, levels_of

LEVELS = {level.name: level for levels in BOUNDARIES.values() for level in levels}
FOUND = [
    ("word", "a  b c", [3, 5]),
    ("line", "a\n\nb\nc", [3, 5]),
    ("paragraph", "a\nb\n \nc\r\n\r\nd", [6, 11]),
    ("sentence", 'A b. C d! "E?" F e.g. g', [5, 10, 15]),
    ("heading 2", "a\n## b\n# c\n", [2]),
    ("fenced block", "a\n```\nb\n\nc\n```\nd", [2, 15]),
    ("paragraph", "a\n```\nb\n\nc\n```\n\nd", [16]),
    ("rule", "a\n\n---\nb", [3]),
    ("definition", "a\n\ndef f():\n\n\n@x\nclass C:\n", [3, 14]),
    ("inner definition", "class C:\n\n    def f():\n", [10]),
]


@pytest.mark.parametrize(("name", "text", "expected"), FOUND)
def test_each_level(name: str, text: str, expected: list[int]) -> None:
    data = text.encode()
    search = BoundarySearch(data, BOUNDARIES["markdown"], "end")
    found = []
    place = len(data) - 1
    while (last := search.last(LEVELS[name], 0, place)) > 0:
        found.append(last)
        place = last - 1
    assert found[::-1] == expected
    forwards = [search.first(LEVELS[name], place, len(data)) for place in expected]
    assert forwards == expected


def test_names() -> None:
    assert levels_of("token") == ()
    assert [levels_of(levels) for levels in BOUNDARIES.values()] == list(BOUNDARIES.values())
