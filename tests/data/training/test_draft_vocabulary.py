"""Vocabularies before learning."""

from __future__ import annotations

import pytest
from synthetic import byte_tokens, make_vocabulary

from ggufbpe.data.training.draft_vocabulary import Added, base, cutter, seeded
from ggufbpe.data.training.trained_vocabulary import Form
from ggufbpe.data.training.word_counts import Splitting
from ggufbpe.models.vocabulary import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED

ADDED = Added(["<s>"], ["<u>"], None)
COUNTS = {"aab": 2, "cb": 1}  # a and b occur four and three times, c once
CHARS, BYTES = Form(Splitting("words", "chars")), Form(Splitting("gpt-2", "bytes"))


def test_attributes_of_added_tokens() -> None:
    assert Added(["<s>"], ["<u>"], "<unk>").attributes() == {
        "<unk>": UNKNOWN,
        "<s>": CONTROL,
        "<u>": USER_DEFINED,
    }
    for added in (Added(["a", "a"], [], None), Added(["a"], ["a"], None), Added([""], [], None)):
        with pytest.raises(ValueError, match="is empty or named twice"):
            added.attributes()


def test_bytes() -> None:
    draft = base(BYTES, ADDED, {}, None, frozenset())
    assert draft.tokens == ["<s>", "<u>", *sorted(byte_tokens())]
    assert draft.attributes == [CONTROL, USER_DEFINED, *[NORMAL] * 256]
    assert draft.merges == []


ALPHABETS: list[tuple[int | None, frozenset[str], list[str]]] = [
    (None, frozenset(), ["a", "b", "c"]),
    (2, frozenset(), ["a", "b"]),  # the most frequent
    (2, frozenset("cz"), ["c", "z"]),  # those that are certain come first
    (3, frozenset("c"), ["a", "b", "c"]),
]


@pytest.mark.parametrize(("limit", "certain", "alphabet"), ALPHABETS)
def test_alphabet(limit: int | None, certain: frozenset[str], alphabet: list[str]) -> None:
    assert base(CHARS, Added([], [], None), COUNTS, limit, certain).tokens == alphabet


def test_the_end_of_a_word_is_a_unit() -> None:
    form = CHARS._replace(end_of_word="</w>")
    assert base(form, Added([], [], "<unk>"), COUNTS, None, frozenset()).tokens == [
        "<unk>",
        "</w>",
        "a",
        "b",
        "c",
    ]


def test_characters_with_bytes_to_fall_back_to() -> None:
    draft = base(Form(Splitting("gemma4", "chars")), Added([], [], None), {"a\0": 1}, None, frozenset())
    assert draft.tokens == [*(f"<0x{byte:02X}>" for byte in range(256)), "a"]  # NUL has a byte token
    assert draft.attributes == [*[BYTE] * 256, NORMAL]


def test_a_unit_cannot_be_special() -> None:
    with pytest.raises(ValueError, match="the token 'a' is a unit of the text"):
        base(CHARS, Added(["a"], [], None), COUNTS, None, frozenset())


def test_seeded() -> None:
    seed = make_vocabulary(["<s>", "a", "b", "ab"], attributes={"<s>": CONTROL}, merges=["a b", " "])
    draft = seeded(seed, Added(["<s>", "<t>"], [], None))
    assert draft.tokens == ["<s>", "a", "b", "ab", "<t>"]
    assert draft.attributes == [CONTROL, NORMAL, NORMAL, NORMAL, CONTROL]
    assert draft.merges == [("a", "b")]
    assert draft.seed is seed


def test_cutter() -> None:
    assert cutter(Added([], [], "<unk>"), None) is None
    cut = cutter(ADDED, make_vocabulary(["<t>", "a"], attributes={"<t>": CONTROL}))
    assert cut is not None
    assert list(cut("a<s>b<u><t>c")) == ["a", "b", "c"]
