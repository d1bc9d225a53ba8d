"""The compiled engine converts a long str to UTF-8 itself; Python keeps that of one that is encoded again and again."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import pytest
from growing_texts import all_tokenizers
from split_cases import odd_text, special_texts
from synthetic import tokenizer_as

from ggufbpe.native import native

pytestmark = pytest.mark.skipif(native is None, reason="there is no compiled engine")
LONG = 1 << 12  # characters: src/bind_text.cpp, Source::read
BLOCK = 1 << 14  # characters that are converted at a time: src/bind_text.cpp, append_utf8
PIECE = 1 << 16  # characters that are encoded at a time: src/bind_encoder.cpp
GROUP = 32  # characters that are looked at together: src/utf8.h, write_utf8
# Of each width that Python stores characters in: one, two and four bytes.
WIDEST = ["é", "я", "漢", "\uffff", "👿", "\U0010ffff"]


def long_text(widest: str, length: int) -> str:
    """`length` characters, many groups of them ASCII alone, with wide ones at the edges of groups and blocks."""
    text = list(("the quick brown fox jumps over the lazy dog; " * (length // 45 + 1))[:length])
    for at in (0, GROUP - 1, 5 * GROUP, LONG - 1, BLOCK - 1, BLOCK, length - 1):
        if at < length:
            text[at] = widest
    mixed = widest + ("ß" if ord(widest) < 256 else "ß漢") + "x"
    text[200:260] = (mixed * 60)[:60]
    return "".join(text)


@pytest.mark.parametrize("widest", WIDEST)
@pytest.mark.parametrize("length", [LONG - 1, LONG, LONG + 7, BLOCK + GROUP + 1, 700_000])
def test_a_long_str_is_read_as_its_utf8(widest: str, length: int) -> None:
    tokenizer = tokenizer_as("llama-bpe")
    text = long_text(widest, length)
    data = text.encode()
    assert tokenizer.encode(text) == tokenizer.encode(data)
    assert tokenizer.count("a" + text) == tokenizer.count(b"a" + data)
    assert tokenizer.encode_batch([text + "b", text + "c"]) == tokenizer.encode_batch(
        [data + b"b", data + b"c"]
    )
    assert tokenizer.encode_with_offsets(text + "d") == tokenizer.encode_with_offsets(data + b"d")
    assert tokenizer.pre_tokenize(text + "e") == tokenizer.pre_tokenize(data + b"e")


def answer(encode: Callable[..., Any], text: str | bytes, **flags: bool) -> Any:
    """What a call returns, or says: some vocabularies have no token for some bytes."""
    try:
        return encode(text, **flags)
    except ValueError as error:
        return str(error)


def test_a_str_in_pieces_has_the_ids_of_its_utf8() -> None:
    continued = {"add_special": False, "parse_special": False, "continues": True}
    for name, tokenizer in all_tokenizers("native"):
        choice = random.Random(name).choice
        kinds = [odd_text(f"{name} {i}", special_texts(tokenizer)).decode(errors="ignore") for i in range(5)]
        text = "ж"
        while len(text) < 2 * PIECE:
            text += choice(kinds) + choice((" ", "a", "7", "é")) * choice((1, 2, 40))
        assert answer(tokenizer.encode, text) == answer(tokenizer.encode, text.encode()), name
        assert answer(tokenizer.count, text, **continued) == answer(
            tokenizer.count, text.encode(), **continued
        ), name


def test_a_str_without_a_place_to_split_it_is_encoded_whole() -> None:
    tokenizer = tokenizer_as("llama-bpe")
    for text in ("漢" + 9 * PIECE * "a", "é<|endoftext|>" + 5 * PIECE * " " + "x"):
        assert tokenizer.encode(text) == tokenizer.encode(text.encode())


@pytest.mark.parametrize("widest", WIDEST)
@pytest.mark.parametrize("at", [0, 17, LONG, BLOCK + 3, 2 * BLOCK - 1, PIECE - 1, PIECE, 3 * PIECE])
def test_a_surrogate_in_a_long_str_is_named(widest: str, at: int) -> None:
    text = list(long_text(widest, max(2 * BLOCK, 2 * at)))
    text[at] = "\udc80"
    for call in (tokenizer_as("llama-bpe").encode, tokenizer_as("llama-bpe").count):
        with pytest.raises(ValueError, match=rf"U\+DC80, at character {at},"):
            call("".join(text))


@pytest.mark.skipif(
    native is not None and ".abi3." in str(native.__file__), reason="Python's stable ABI does not show a str"
)
def test_python_keeps_the_utf8_of_a_str_that_is_encoded_three_times() -> None:
    tokenizer = tokenizer_as("llama-bpe")
    text, other = long_text("я", 100_000), long_text("漢", 100_000)
    size = sys.getsizeof(text)
    ids = [tokenizer.encode(text), tokenizer.encode(text)]
    assert sys.getsizeof(text) == size
    tokenizer.encode(other)
    ids += [tokenizer.encode(text), tokenizer.encode(text)]
    assert sys.getsizeof(text) == size  # another came between
    ids.append(tokenizer.encode(text))
    assert sys.getsizeof(text) >= size + len(text)
    ids.append(tokenizer.encode(text))
    assert ids == ids[:1] * 6
