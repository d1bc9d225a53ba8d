"""Where a piece stands in a traced text, and the step that is the reason there (in words: test_explain.py)."""

from __future__ import annotations

import pytest
from small_models import small_tokenizer

from ggufbpe import Tokenizer
from ggufbpe.analysis.explain.piece_places import Sought, find_places, symbol_runs
from ggufbpe.analysis.explain.reasons import Place
from ggufbpe.models.vocabulary import RSTRIP
from ggufbpe.tokenizer.trace import tracer_of

# "hello" by "hell" + "o", " world" by " w" + "or" and then "ld"
TOKENIZER = small_tokenizer()


def places_of(piece: str, text: str, tokenizer: Tokenizer = TOKENIZER, parse: bool = True) -> list[Place]:
    tracer = tracer_of(tokenizer)
    token = tokenizer.vocabulary.token_to_id[piece]
    looked_up = tracer.looked_up(token)
    alone = tracer.alone(looked_up)
    own = alone.merges if alone is not None and len(alone.symbols) == 1 else None
    trace = tokenizer.trace(text, parse_special=parse)
    runs = list(symbol_runs(tracer, trace))
    return list(find_places(tokenizer, tracer, trace, runs, Sought(token, looked_up, own)))


@pytest.mark.parametrize(
    ("piece", "text", "expected"),
    [
        ("hello", "say hello", [("produced", 4, 9)]),
        ("hello", "hello, hello", [("produced", 0, 5), ("produced", 7, 12)]),
        ("hell", "hello", [("longer", 0, 4)]),
        ("or", "world", [("produced", 1, 3)]),
        ("Ġw", " world", [("longer", 0, 2)]),
        ("ld", "world", [("produced", 3, 5)]),
        ("he", "ah end", []),
        ("he", "ah,hen", [("produced", 3, 5)]),
        ("Ġwor", "é world", [("longer", 2, 6)]),  # in bytes
        ("ll", "l l", []),
        ("or", "o<|im_end|>r", []),  # the text of a special token is between
        ("e", "<|im_end|>", [("special", 5, 6)]),
    ],
)
def test_places(piece: str, text: str, expected: list[tuple[str, int, int]]) -> None:
    assert [(place.reason, place.start, place.end) for place in places_of(piece, text)] == expected


def test_the_merge_that_took_a_part() -> None:
    """The rank of "h e" is lower, so "el" never forms."""
    tokenizer = small_tokenizer(merges=["h e", "e l", "l o"])
    [place] = places_of("el", "helo", tokenizer)
    assert (place.reason, place.start, place.end) == ("part", 1, 3)
    assert place.merge is not None
    assert (place.merge.left, place.merge.right, place.merge.rank) == ("h", "e", 0)
    assert place.needed is not None
    assert (place.needed.left, place.needed.right) == ("e", "l")


def test_a_piece_that_no_merge_makes() -> None:
    tokenizer = Tokenizer(TOKENIZER.vocabulary._replace(merges=["h e"]))
    assert [place.reason for place in places_of("hell", "hello", tokenizer)] == ["merges"]


def test_a_boundary_between_words() -> None:
    tokenizer = small_tokenizer(merges=["Ċ Ċ"])
    [place] = places_of("ĊĊ", "a\n\nb", tokenizer)
    assert (place.reason, place.start, place.end, place.boundary) == ("boundary", 1, 3, 2)
    assert place.sides == (b"\n", b"\n")


def test_runs_are_the_text_as_it_is_looked_up() -> None:
    tracer = tracer_of(TOKENIZER)
    [run] = symbol_runs(tracer, TOKENIZER.trace("hello world<|im_end|>"))
    assert run.text == "helloĠworld<|im_end|>"
    assert [(start, end, word) for start, end, word, _ in run.units] == [
        (0, 5, 0),
        (5, 11, 1),
        (11, 21, None),
    ]


def test_text_that_a_special_token_takes_away_ends_a_run() -> None:
    end = TOKENIZER.vocabulary.token_to_id["<|im_end|>"]
    kinds = [kind | RSTRIP * (token == end) for token, kind in enumerate(TOKENIZER.vocabulary.attributes)]
    strips = Tokenizer(TOKENIZER.vocabulary._replace(attributes=kinds))
    runs = symbol_runs(tracer_of(strips), strips.trace("a<|im_end|>  b"))
    assert [run.text for run in runs] == ["a<|im_end|>", "b"]
