"""What ids and texts show without encoding anything."""

from __future__ import annotations

import pytest
from small_models import small_tokenizer

from ggufbpe.analysis.diagnose.id_evidence import (
    Target,
    are_alike,
    is_lossless,
    shifts,
    shown,
    text_difference,
)
from ggufbpe.models.vocabulary import CONTROL, LSTRIP


@pytest.mark.parametrize(
    ("text", "key", "fits", "ends"),
    [
        (b"lo wo", b"lo world", True, False),
        (b"world", b"lo world", True, True),
        (b"lo world", b"lo world", True, False),  # all of it
        (b"o w", b"lo world", False, False),
        (b"", b"lo world", True, False),
        (None, b"lo world", True, True),  # what the ids decode to is uncertain
    ],
)
def test_targets(text: bytes | None, key: bytes, fits: bool, ends: bool) -> None:
    target = Target((), [1, 2], (), text)
    assert (target.fits(key), target.ends(key)) == (fits, ends)


def test_vocabularies_whose_ids_decode_to_the_text() -> None:
    vocabulary = small_tokenizer().vocabulary
    assert is_lossless(vocabulary)
    assert not is_lossless(vocabulary._replace(model="bert"))
    lacking = {token: index for token, index in vocabulary.token_to_id.items() if token != "a"}
    assert not is_lossless(vocabulary._replace(token_to_id=lacking))
    end = vocabulary.special_token_ids[-1]
    strips = [CONTROL | LSTRIP if index == end else kind for index, kind in enumerate(vocabulary.attributes)]
    assert not is_lossless(vocabulary._replace(attributes=strips))


OURS = [10, 11, 12, 13, 14, 15]


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (OURS, []),
        ([token + 5 for token in OURS], [(0, 5)]),
        ([token - 7 for token in OURS], [(0, -7)]),
        ([1, *(token + 5 for token in OURS)], [(0, 5)]),  # with BOS
        ([10, 11, 12, 13, 114, 115], [(14, 100)]),  # from some token on
        ([10, 18, 19, 20, 21, 22], [(11, 7)]),  # and of most ids
        ([70, 90, 33, 2, 48, 110], []),
        ([10, 11, 12, 13, 14, 99], []),  # one id is no shift
        ([], []),
    ],
)
def test_shifts(theirs: list[int], expected: list[tuple[int, int]]) -> None:
    assert list(shifts(OURS, theirs)) == expected


@pytest.mark.parametrize(
    ("ours", "theirs", "how", "offset"),
    [
        (b"the story", b"the story ends", "more text at the end", 9),
        (b"the story", b"see: the story", "more text at the beginning", 0),
        (b"the story", b"(the story)", "more text around it", 0),
        (b"the story", b"the st", "the end is missing", 6),
        (b"the story", b"story", "the beginning is missing", 0),
        (b"the story", b"e st", "only a part of the text", 0),
        (b"the story", b"the long story", "more text", 4),
        (b"the long story", b"the story", "missing text", 4),
        (b"the story", b"the glory", "other text", 4),
        (b"the story", b"", "nothing is left", 0),
        ("naïve".encode(), "naïf".encode(), "other text", 4),
        ("a é".encode(), "a è".encode(), "other text", 2),  # where the character begins, not its second byte
    ],
)
def test_differences(ours: bytes, theirs: bytes, how: str, offset: int) -> None:
    found = text_difference(ours, ours, theirs)
    assert (found["how"], found["offset"]) == (how, offset)


def test_the_offset_of_a_difference_is_that_in_the_given_text() -> None:
    """Each byte that is not UTF-8 is decoded to three."""
    found = text_difference(b"\xff\xffab", "\ufffd\ufffdab".encode(), "\ufffd\ufffdac".encode())
    assert (found["offset"], found["ours"], found["theirs"]) == (3, "b", "c")
    assert (found["ours_bytes"], found["theirs_bytes"], found["same_after"]) == (1, 1, 0)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (b"The quick brown fox jumps", b"The quick red fox jumps", True),
        (b"The quick brown fox jumps", b"0123456789 0123456789", False),
        (b"Hi", b'"#', False),
        (b"Hi", b"hi", True),  # too short for more than that
        (b"", b"yz", True),
        (b"xThe quick brown fox", b"The quick brown fox", True),
    ],
)
def test_texts_that_are_alike(ours: bytes, theirs: bytes, expected: bool) -> None:
    assert are_alike(ours, theirs) is expected


def test_bytes_are_shown_as_text() -> None:
    assert shown("é".encode() + b"\xff") == "é\\xff"
