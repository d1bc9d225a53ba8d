"""For Chonkie: the `tokenizer=` of its chunkers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..tokenizer import Tokenizer
from ._protocol import checked, joined_pieces, library

_Base: Any = library("chonkie.tokenizer", "chonkie").Tokenizer


def tokenizer(tok: Tokenizer) -> ChonkieTokenizer:
    """Return a `chonkie.tokenizer.Tokenizer`.

    `TokenChunker` decodes slices of ids, as do `RecursiveChunker` and `SlumberChunker` within a text that has no place
    to divide it, and overlaps that are numbers of tokens. With every tokenizer, a character that spans two slices
    becomes U+FFFD in both.
    """
    return ChonkieTokenizer(tok)


class ChonkieTokenizer(_Base):  # type: ignore[misc]
    """Plain ids, without BOS, EOS and the space before the first word, by the methods that Chonkie calls.

    Unigram and WordPiece models change texts, so that slices of their ids are not slices of the text. With SPM models,
    a U+2581 of the text is decoded as a space.

    It is a `chonkie.tokenizer.Tokenizer`, since Chonkie chooses by the name of the type for all other objects.
    """

    def __init__(self, tok: Tokenizer) -> None:
        self.tok = tok
        self.count_tokens = partial(
            checked(tok).count, add_special=False, parse_special=False, continues=True
        )

    def __repr__(self) -> str:
        return f"ChonkieTokenizer({self.tok!r})"

    def get_vocab(self) -> Sequence[str]:
        """Return the tokens as written in the file."""
        return list(self.tok.vocabulary.tokens)

    def get_token2id(self) -> dict[str, int]:
        """Return the id of each token."""
        return self.tok.get_vocab()

    def tokenize(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return self.encode(text)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return self.tok.encode_ordinary(text, continues=True)

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of ids, with all spaces. `ValueError` for an id out of range."""
        return joined_pieces(self.tok, tokens).decode("utf-8", "replace")

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return list(map(self.encode, texts))

    def decode_batch(self, token_sequences: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each list of ids."""
        return list(map(self.decode, token_sequences))

    def count_tokens_batch(self, texts: Sequence[str]) -> list[int]:
        """Return the number of ids of each text."""
        return list(map(self.count_tokens, texts))
