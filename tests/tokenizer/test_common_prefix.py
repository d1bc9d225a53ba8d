"""Where given ids and those of a text part, and what is said of the cause."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import GPT2
from split_cases import opened

from ggufbpe import Tokenizer
from ggufbpe.tokenizer.common_prefix import CommonPrefix

TOK = Tokenizer.from_gguf(GPT2)
HELLO, WORLD = 15496, 995
WOR, LD = 476, 335  # " wor", "ld"

CASES: list[tuple[list[int], str, CommonPrefix]] = [
    ([HELLO, WORLD], "Hello world", CommonPrefix(2, 11, "")),
    ([], "", CommonPrefix(0, 0, "")),
    ([HELLO], "Hello world", CommonPrefix(1, 5, "the text goes on for 1 more id")),
    ([HELLO, WORLD, 0, 0], "Hello world", CommonPrefix(2, 11, "the ids go on for 2 ids after the text")),
    (
        [HELLO, WOR, LD, 0],
        "Hello world!",
        CommonPrefix(1, 5, "the ids have ' wor' + 'ld', and the tokenizer gives ' world'"),
    ),
    (
        [HELLO, 0],
        "Hello world",
        CommonPrefix(1, 5, "the text is different: the ids have '!', and the tokenizer gives ' world'"),
    ),
    (
        [HELLO, WOR],
        "Hello world",
        CommonPrefix(1, 5, "the text is different: the ids have ' wor', and the tokenizer gives ' world'"),
    ),
    (
        TOK.encode_ordinary("<|endoftext|>"),
        "<|endoftext|>",
        CommonPrefix(
            0,
            0,
            "the ids have '<' + '|' + 'end' + 'of' + 'text' + '|' + …, and the tokenizer gives '<|endoftext|>'",
        ),
    ),
]


@pytest.mark.parametrize(("ids", "text", "expected"), CASES)
def test_where_ids_part(ids: list[int], text: str, expected: CommonPrefix) -> None:
    assert TOK.common_prefix(ids, text) == expected


@pytest.mark.parametrize(
    ("given", "flag", "cause"),
    [
        (False, True, "the tokenizer puts '<s>' before the text, and the ids do not have it"),
        (True, False, "the ids begin with '<s>', which is not put before the text (add_special is false)"),
    ],
)
def test_bos(given: bool, flag: bool, cause: str) -> None:
    tokenizer = opened()["spm"]
    ids = tokenizer.encode("hello", add_special=given)
    assert tokenizer.common_prefix(ids, "hello", add_special=flag) == CommonPrefix(0, 0, cause)


def test_long_differences_are_shown_by_how_they_begin() -> None:
    [one], [long] = TOK.encode("="), TOK.encode("=" * 64)
    found = TOK.common_prefix([one, *[long] * 400], "=" * (64 * 400 + 1))
    assert (found.ids, found.position) == (0, 0)
    assert found.cause.startswith("the ids have '=' + '====")
    assert found.cause.count(" + ") == 2 * 6
    assert found.cause.endswith(" + …")


@pytest.mark.parametrize("ids", [[-1], [50257], [0, -1, 1], [0, 50257, 1]])
def test_ids_that_there_are_none_of(ids: Any) -> None:
    with pytest.raises(ValueError, match="out of range"):
        TOK.common_prefix(ids, "a")


@pytest.mark.parametrize("ids", [["0"], [0, None], "0", b"0", 0])
def test_only_integers_are_ids(ids: Any) -> None:
    with pytest.raises(TypeError, match="ids must be "):
        TOK.common_prefix(ids, "a")
