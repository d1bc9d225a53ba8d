"""All that turns a text into ids, and changes of it."""

from __future__ import annotations

import pytest
from small_models import small_tokenizer

from ggufbpe.analysis.diagnose.encoding_changes import (
    Encoding,
    with_exchanged,
    with_ignore_merges,
    with_parse_special,
)
from ggufbpe.analysis.diagnose.text_changes import TEXT_CHANGES

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
    assert encoding.variant(b"Ab", True).ids() == expected


def test_changes_of_an_encoding_name_their_causes_in_order() -> None:
    after = with_ignore_merges(with_parse_special(BASE))
    assert not after.parse_special
    assert after.vocabulary.pre_tokenizer.ignore_merges != TOKENIZER.vocabulary.pre_tokenizer.ignore_merges
    assert [cause.id for cause in after.causes] == ["parse_special", "ignore_merges"]
    assert BASE.causes == ()


def test_exchanged_tokens() -> None:
    encoding = with_exchanged(TOKENIZER.vocabulary, ((65, 98),))(BASE)
    assert encoding.variant(b"Ab", True).ids() == [BOS, 98, 65]
    assert [cause.detail["pairs"] for cause in encoding.causes] == [[[65, 98]]]


def test_what_is_around_a_text() -> None:
    assert BASE.around(add_special=True) == ((BOS,), ())
    assert BASE.around(add_special=False) == ((), ())
    assert BASE._replace(head=(), tail=(5,)).around(add_special=True) == ((), (5,))
