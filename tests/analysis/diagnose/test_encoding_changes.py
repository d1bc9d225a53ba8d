"""All that turns a text into ids, and changes of it."""

from __future__ import annotations

import pytest
from small_models import small_tokenizer

from ggufbpe.analysis.diagnose.encoding_changes import Encoding
from ggufbpe.analysis.diagnose.search_steps import Steps
from ggufbpe.analysis.diagnose.several import shortest
from ggufbpe.analysis.diagnose.text_changes import TEXT_CHANGES
from ggufbpe.analysis.doctor.texts_with_ids import TextWithIds

TOKENIZER = small_tokenizer(add_bos=True)
BOS = TOKENIZER.bos_id or 0
BASE = Encoding(TOKENIZER.vocabulary, True)
[LOWER] = [change for change in TEXT_CHANGES if change.cause.detail["change"] == "lower case"]
[LINE] = [change for change in TEXT_CHANGES if change.cause.detail["change"] == "a line break is added"]


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        (BASE, [BOS, 65, 98]),
        (BASE._replace(head=()), [65, 98]),
        (BASE._replace(head=(7,), tail=(8, 9)), [7, 65, 98, 8, 9]),
        (BASE._replace(texts=(LOWER, LINE)), [BOS, 97, 98, 10]),
        (BASE._replace(shift=(98, 2)), [BOS + 2, 65, 100]),
        (BASE._replace(exchanged=((65, 98),)), [BOS, 98, 65]),
    ],
)
def test_the_ids_of_a_text(encoding: Encoding, expected: list[int]) -> None:
    assert Steps(TOKENIZER, []).ids(encoding, TextWithIds(b"Ab", [])) == expected
    assert encoding.variant(b"Ab", True).ids() == expected


def test_parts_of_a_text_lack_what_is_around_it() -> None:
    steps, encoding = Steps(TOKENIZER, []), BASE._replace(tail=(9,))
    assert steps.ids(encoding, TextWithIds(b"a", [], has_begin=False)) == [97, 9]
    assert steps.ids(encoding, TextWithIds(b"a", [], has_end=False)) == [BOS, 97]


def test_what_is_around_a_text() -> None:
    assert BASE.around(add_special=True) == ((BOS,), ())
    assert BASE.around(add_special=False) == ((), ())
    assert BASE._replace(head=(), tail=(5,)).around(add_special=True) == ((), (5,))


@pytest.mark.parametrize(
    ("sizes", "most", "expected"),
    [([3, 1, 2], 3, [1, 2]), ([3, 1, 2], 100, [1, 2, 3]), ([9], 3, [9]), ([], 3, []), ([2, 2, 1], 3, [1, 2])],
)
def test_the_shortest_texts_are_tried_and_at_least_one(
    sizes: list[int], most: int, expected: list[int]
) -> None:
    compared = [TextWithIds(b"x" * size, []) for size in sizes]
    assert [len(each.text) for each in shortest(compared, most)] == expected
