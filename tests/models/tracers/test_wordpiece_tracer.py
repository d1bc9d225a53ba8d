"""The steps of WordPiece for single words."""

from __future__ import annotations

import pytest
from synthetic import make_vocabulary

from ggufbpe.models.tracers.trace_types import EncodedWord, Fragment, RewrittenText
from ggufbpe.models.tracers.wordpiece import WordPieceTracer
from ggufbpe.models.wordpiece import WordPieceText

VOCABULARY = make_vocabulary(["[UNK]", "▁a", "▁ab", "c", "▁,"], model="bert", special_ids={"unk": 0})
TRACER = WordPieceTracer(WordPieceText(VOCABULARY))


def test_steps_of_a_text() -> None:
    fragment, case, first, comma, second = TRACER.steps(b"Abc,", 10)
    assert fragment == Fragment("text", 10, 14)
    assert case == RewrittenText(10, 11, b"A", "a", ("lower_case",))
    assert comma == RewrittenText(13, 14, b",", " , ", ("alone",))
    assert isinstance(first, EncodedWord)
    assert isinstance(second, EncodedWord)
    assert (first.word.written, second.word.written) == ("▁abc", "▁,")


WORDS = {  # a text: its tokens with their bytes, and at each position the tokens tried and how far one agrees
    "abc": ([(2, 0, 2), (3, 2, 3)], [(0, [1, 2], 2, 5), (5, [3], 3, 1)]),
    "abx": ([(0, 0, 3)], [(0, [1, 2], 2, 5), (5, [], None, 0)]),
    "x": ([(0, 0, 1)], [(0, [], None, 3)]),
}


@pytest.mark.parametrize("text", WORDS)
def test_matches_of_a_word(text: str) -> None:
    [word] = [step for step in TRACER.steps(text.encode(), 0) if isinstance(step, EncodedWord)]
    tokens, matches = WORDS[text]
    assert [(token.id, token.start, token.end) for token in word.tokens] == tokens
    assert [
        (match.position, [tried.token for tried in match.tried], match.taken, match.reach)
        for match in word.word.matches
    ] == matches
    assert [token.origin for token in word.tokens] == [
        "unknown" if token[0] == 0 else "symbol" for token in tokens
    ]


def test_questions_about_pieces() -> None:
    assert TRACER.count_words(b"Ab, c") == 3
    assert TRACER.spellings("##c") == ["##c", "c", "▁##c"]
    assert TRACER.looked_up(2) == "▁ab"
    assert TRACER.unknown == 0
