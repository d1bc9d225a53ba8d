"""The steps of a unigram model: changes of the text, and the lattice of each word."""

from __future__ import annotations

import pytest
from charsmaps import charsmap
from synthetic import make_vocabulary

from ggufbpe.models.tracers.trace_types import EncodedWord, Fragment, RewrittenText
from ggufbpe.models.tracers.unigram import UnigramTracer
from ggufbpe.models.unigram_text import UnigramText
from ggufbpe.models.vocabulary import UNKNOWN

SCORES = {"<unk>": 0.0, "▁": -4.0, "▁a": -2.0, "a": -3.0, "b": -3.0, "ab": -3.5}
VOCABULARY = make_vocabulary(
    SCORES,
    attributes={"<unk>": UNKNOWN},
    model="t5",
    special_ids={"unk": 0},
    scores=list(SCORES.values()),
    flags={"byte_encode": False},
    add_space_prefix=True,
    remove_extra_whitespaces=True,
    charsmap=charsmap({"ﬁ".encode(): b"ab"}),
)
TRACER = UnigramTracer(UnigramText(VOCABULARY))


def test_changes_of_a_text() -> None:
    steps = list(TRACER.steps("ﬁ  b ".encode(), 2))
    assert steps[0] == Fragment("text", 2, 9)
    assert [step for step in steps if isinstance(step, RewrittenText)] == [
        RewrittenText(2, 2, b"", "▁", ("space_prefix",)),
        RewrittenText(2, 5, "ﬁ".encode(), "ab", ("charsmap",)),
        RewrittenText(5, 7, b"  ", "▁", ("escaped_space", "extra_white_space")),
        RewrittenText(8, 9, b" ", "", ("extra_white_space",)),
    ]


LATTICES = {  # a text: the best path, the next best, and the tokens with their bytes
    "ab": (["▁a", "b"], ["▁", "ab"], [(2, 0, 1), (4, 1, 2)]),
    "x": (["▁", "x"], None, [(1, 0, 0), (0, 0, 1)]),
}


@pytest.mark.parametrize("text", LATTICES)
def test_lattices(text: str) -> None:
    [word] = [step for step in TRACER.steps(text.encode(), 0) if isinstance(step, EncodedWord)]
    best, next_best, tokens = LATTICES[text]
    lattice = word.word.lattice
    assert lattice is not None
    assert [edge.text for edge in lattice.best.edges] == best
    assert (lattice.next_best and [edge.text for edge in lattice.next_best.edges]) == next_best
    assert [(token.id, token.start, token.end) for token in word.tokens] == tokens


def test_an_unknown_token_may_continue_in_the_next_word() -> None:
    """A vocabulary without a space: the unknown token of `x`, the space and `y` is one."""
    plain = {"<unk>": 0.0, "a": -1.0}
    vocabulary = VOCABULARY._replace(
        tokens=list(plain),
        token_to_id={"<unk>": 0, "a": 1},
        scores=list(plain.values()),
        attributes=[UNKNOWN, 4],
    )
    words = [
        step
        for step in UnigramTracer(UnigramText(vocabulary)).steps(b"x y", 0)
        if isinstance(step, EncodedWord)
    ]
    assert [[(token.id, token.start, token.end) for token in word.tokens] for word in words] == [
        [(0, 0, 3)],
        [],
    ]


def test_questions_about_pieces() -> None:
    assert TRACER.count_words(b"a b  a") == 3
    assert TRACER.spellings(" a") == ["▁a"]
    assert TRACER.is_for_text(3)
    assert not TRACER.is_for_text(0)
