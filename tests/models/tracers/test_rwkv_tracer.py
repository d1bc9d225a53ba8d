"""The steps of RWKV: the longest match at each place."""

from __future__ import annotations

from synthetic import make_vocabulary

from ggufbpe.models.rwkv import RWKVText
from ggufbpe.models.tracers.rwkv import RWKVTracer
from ggufbpe.models.tracers.trace_types import EncodedWord, Fragment

VOCABULARY = make_vocabulary(["<u>", "a", "ab", "abcd", "\\xc3"], model="rwkv", special_ids={"unk": 0})
TRACER = RWKVTracer(RWKVText(VOCABULARY))


def test_steps() -> None:
    fragment, *words = TRACER.steps("abcé".encode(), 5)
    assert fragment == Fragment("text", 5, 10)
    assert all(isinstance(word, EncodedWord) for word in words)
    shown = [
        (
            word.tokens[0].id,
            word.word.start,
            word.word.end,
            [tried.token for tried in match.tried],
            match.reach,
        )
        for word in words
        if isinstance(word, EncodedWord)
        for match in word.word.matches
    ]
    assert shown == [
        (2, 5, 7, [1, 2], 3),  # `abcd` agrees for three bytes
        (0, 7, 8, [], 0),
        (4, 8, 9, [4], 1),
        (0, 9, 10, [], 0),
    ]
    assert [word.tokens[0].origin for word in words] == ["symbol", "unknown", "symbol", "unknown"]
    assert TRACER.count_words("abcé".encode()) == len(words)


def test_questions_about_pieces() -> None:
    assert TRACER.spellings("\udcc3") == ["\\xc3", "\udcc3"]
    assert TRACER.spellings("abc") == ["abc"]
    assert TRACER.looked_up(4) == "\udcc3"
