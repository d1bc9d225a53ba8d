"""Outlines: a regular expression compiled for the tokens of a GGUF allows what brute force allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from integration_cases import DOCUMENT, END, NUMBERS, TOK, allowed, library

outlines_core = library("outlines_core")
backend = library("outlines.backends.outlines_core").OutlinesCoreBackend

from ggufbpe.integrations.outlines import tokenizer, vocabulary  # noqa: E402 - after its library

MADE = tokenizer(TOK)


def of_the_protocol() -> Any:
    """The vocabulary that Outlines itself makes of the protocol's attributes."""
    return backend.create_outlines_core_vocabulary(
        MADE.vocabulary, MADE.eos_token_id, MADE.eos_token, MADE.convert_token_to_string
    )


@pytest.mark.parametrize("text", ["a42", "é07", "😀99"])
def test_masks_of_a_regular_expression(text: str) -> None:
    guide = outlines_core.Guide(outlines_core.Index(NUMBERS, vocabulary(TOK)))
    generated = b""
    for token in [*TOK.encode(text), END]:
        assert set(guide.get_tokens()) == allowed(generated)
        if token != END:
            guide.advance(token)
            generated += TOK.token_bytes[token]
    assert guide.is_finished()


def test_masks_by_the_protocol() -> None:
    guide = outlines_core.Guide(outlines_core.Index("a[0-9]{2}", of_the_protocol()))
    texts = [f"a{number:02}".encode() for number in range(100)]
    generated = b""
    for token in TOK.encode("a42"):
        assert set(guide.get_tokens()) == allowed(generated, texts)
        guide.advance(token)
        generated += TOK.token_bytes[token]


def test_a_special_token_is_no_text() -> None:
    guide = outlines_core.Guide(outlines_core.Index(".{5,20}", of_the_protocol()))
    assert END not in guide.get_tokens()


def test_the_protocol() -> None:
    ids, mask = MADE.encode(["Hello world", "Hello"])
    assert ids.tolist() == [[15496, 995], [END, 15496]]
    assert mask.tolist() == [[1, 1], [0, 1]]
    assert MADE.encode(DOCUMENT)[0].tolist() == [TOK.encode(DOCUMENT)]
    assert MADE.decode(np.array([[15496, 995], [15496, 0]])) == ["Hello world", "Hello!"]
    assert MADE.decode([[15496, 995], [15496]]) == ["Hello world", "Hello"]
    assert MADE.decode([np.array([15496, 995]), np.array([15496])]) == ["Hello world", "Hello"]
    for one in (15496, np.int64(15496), np.array(15496), [15496], [np.array(15496)]):
        assert MADE.decode(one) == ["Hello"]
    assert [MADE.decode(np.zeros((0, 3), int)), MADE.decode(np.zeros(0, int))] == [[], [""]]
    assert MADE.decode([15496, 995]) == MADE.decode(np.array([15496, 995])) == ["Hello world"]
    assert MADE.convert_token_to_string("Ġworld") == " world"
    assert (hash(MADE), MADE) == (hash(tokenizer(TOK)), tokenizer(TOK))
    assert MADE.special_tokens == {"<|endoftext|>"}
