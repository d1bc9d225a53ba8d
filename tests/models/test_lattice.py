"""The lattice of a unigram model: edges, the best path, and ties."""

from __future__ import annotations

import pytest

from ggufbpe.models.lattice import Lattice
from ggufbpe.models.trie import Trie

TOKENS = {"a": -1.0, "ab": -1.5, "b": -1.0, "bc": -3.0, "<u>": -99.0, "é": -2.0, "w": -50.0, "<unk>": 0.0}
IDS = {text: number for number, text in enumerate(TOKENS)}
UNKNOWN = IDS["<unk>"]
LATTICE = Lattice(
    Trie((text.encode(), token) for text, token in IDS.items() if token != UNKNOWN),
    list(TOKENS.values()),
    [text == "<u>" for text in TOKENS],
    UNKNOWN,
    -11.0,
)

PATHS = {
    "": [],
    "ab": ["ab"],  # -1.5 is better than -1 - 1
    "abc": ["a", "bc"],  # -4 is better than -1.5 - 11
    "aé": ["a", "é"],
    "a<u>": ["a", "<u>"],  # a user-defined token has the score 0, whatever the file says
    "xyb": ["<unk>:xy", "b"],  # unknown characters in a row are one token
    "w": ["w"],  # a character with a token of its own is never unknown, however bad its score
    "x": ["<unk>:x"],
    "日本": ["<unk>:日本"],
    "a日b": ["a", "<unk>:日", "b"],
}


@pytest.mark.parametrize("text", PATHS)
def test_best_path(text: str) -> None:
    data = text.encode()
    names = list(TOKENS)
    shown = [
        f"<unk>:{data[start:end].decode()}" if token == UNKNOWN else names[token]
        for token, start, end in LATTICE.best_path(data)
    ]
    assert shown == PATHS[text]
    assert b"".join(data[start:end] for _, start, end in LATTICE.best_path(data)) == data


def test_of_equal_sums_the_longer_last_token_wins() -> None:
    tokens = [(b"a", 0), (b"ab", 1), (b"bc", 2), (b"c", 3)]
    lattice = Lattice(Trie(tokens), [-1.0] * 4, [0] * 4, 9, -99.0)
    assert [token for token, _, _ in lattice.best_path(b"abc")] == [0, 2]


def test_ways() -> None:
    assert list(LATTICE.ways(b"abx")) == [
        (IDS["a"], 0, 1, -1.0),
        (IDS["ab"], 0, 2, -1.5),
        (IDS["b"], 1, 2, -1.0),
        (UNKNOWN, 2, 3, -11.0),
    ]
