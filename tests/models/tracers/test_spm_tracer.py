"""The steps of SPM: the space before a text, spaces, and merges by score."""

from __future__ import annotations

import pytest
from synthetic import make_vocabulary

from ggufbpe.models.spm import SpmText
from ggufbpe.models.tracers.spm import SpmTracer
from ggufbpe.models.tracers.trace_types import EncodedWord, Fragment, RewrittenText

SCORES = {"<unk>": 0.0, "▁": -9.0, "a": -9.0, "b": -9.0, "▁a": -2.0, "ab": -1.0, "▁ab": -3.0}


def tracer(add_space_prefix: bool) -> SpmTracer:
    """A tracer of the vocabulary `SCORES`."""
    vocabulary = make_vocabulary(
        SCORES,
        model="llama",
        flags={"byte_encode": False, "escape_whitespaces": True},
        scores=list(SCORES.values()),
        special_ids={"unk": 0},
        add_space_prefix=add_space_prefix,
    )
    return SpmTracer(SpmText(vocabulary))


def test_steps_with_the_space_before_a_text() -> None:
    fragment, prefix, first, space, second = tracer(True).steps(b"a b", 4)
    assert fragment == Fragment("text", 4, 7)
    assert prefix == RewrittenText(4, 4, b"", "▁", ("space_prefix",))
    assert space == RewrittenText(5, 6, b" ", "▁", ("escaped_space",))
    assert isinstance(first, EncodedWord)
    assert isinstance(second, EncodedWord)
    assert (first.word.written, second.word.written) == ("▁a", "▁b")
    assert [(token.id, token.start, token.end) for token in (*first.tokens, *second.tokens)] == [
        (4, 4, 5),
        (1, 5, 6),
        (3, 6, 7),
    ]


MERGES = {  # a text: the merges with their scores, the first being the best at its time, and the tokens
    "ab": ([("a", "b", -1.0), ("▁", "ab", -3.0)], [6]),
    "aa": ([("▁", "a", -2.0)], [4, 2]),
    "bb": ([], [1, 3, 3]),
}


@pytest.mark.parametrize("text", MERGES)
def test_merges(text: str) -> None:
    [word] = [step for step in tracer(True).steps(text.encode(), 0) if isinstance(step, EncodedWord)]
    merges, tokens = MERGES[text]
    assert [(merge.left, merge.right, merge.score) for merge in word.word.merges] == merges
    assert [token.id for token in word.tokens] == tokens


def test_a_byte_without_a_token_is_refused() -> None:
    with pytest.raises(ValueError, match="the text needs the byte 0xFF"):
        list(tracer(False).steps(b"a\xff", 0))


def test_words_and_spellings() -> None:
    assert tracer(True).count_words(b"a b a") == 3
    assert tracer(False).spellings("a b") == ["a▁b"]
