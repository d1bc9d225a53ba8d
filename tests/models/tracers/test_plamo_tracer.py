"""The steps of PLaMo: text that is left out, and the lattice from the end."""

from __future__ import annotations

import pytest
from synthetic import make_vocabulary

from ggufbpe.models.plamo import PlamoText
from ggufbpe.models.tracers.plamo import PlamoTracer
from ggufbpe.models.tracers.trace_types import EncodedWord, Fragment, RewrittenText
from ggufbpe.models.vocabulary import BYTE

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SCORES = {**dict.fromkeys(BYTES, 0.0), "a": -1.0, "ab": -2.5, "b": -1.0, "abc": -1.5}
KINDS = [BYTE] * 256 + [4] * 4
VOCABULARY = make_vocabulary(
    SCORES, model="plamo2", scores=list(SCORES.values()), flags={"byte_encode": False}
)._replace(attributes=KINDS)
TRACER = PlamoTracer(PlamoText(VOCABULARY, cuts_segments=False))


def test_a_byte_order_mark_is_left_out() -> None:
    fragment, change, word = TRACER.steps("\ufeffab".encode(), 1)
    assert fragment == Fragment("text", 1, 6)
    assert change == RewrittenText(1, 4, "\ufeff".encode(), "", ("left_out",))
    assert isinstance(word, EncodedWord)
    assert [(token.id, token.start, token.end) for token in word.tokens] == [(256, 4, 5), (258, 5, 6)]


LATTICES = {  # a text: the best path and its total in ten-thousandths, and the tokens
    "ab": (["a", "b"], -20_000, ["a", "b"]),
    "abc": (["abc"], -15_000, ["abc"]),
    "é": (["é"], -10_000_000, ["<0xC3>", "<0xA9>"]),
}


@pytest.mark.parametrize("text", LATTICES)
def test_lattices(text: str) -> None:
    [word] = [step for step in TRACER.steps(text.encode(), 0) if isinstance(step, EncodedWord)]
    path, total, tokens = LATTICES[text]
    lattice = word.word.lattice
    assert lattice is not None
    assert ([edge.text for edge in lattice.best.edges], lattice.best.total) == (path, total)
    assert [VOCABULARY.tokens[token.id] for token in word.tokens] == tokens


def test_questions_about_pieces() -> None:
    assert TRACER.count_words(b"a b") == 1
    assert TRACER.is_for_text(256)
    assert not TRACER.is_for_text(0)
    assert TRACER.looked_up(257) == "ab"
