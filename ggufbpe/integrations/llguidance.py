"""For llguidance: `LLMatcher(ll_tokenizer(tok), grammar)` gives masks over the tokens of a GGUF."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ..models.vocabulary import USER_DEFINED
from ..tokenizer import Tokenizer
from ._protocol import checked, eos_id, library, stop_ids

SPECIAL = b"\xff"  # before the text of a token that no grammar takes for text


def ll_tokenizer(tokenizer: Tokenizer, n_vocab: int | None = None, slices: list[str] | None = None) -> Any:
    """Return an `LLTokenizer`. `n_vocab` is the number of logits if it is larger than the vocabulary.

    `ValueError` if the vocabulary has no token that ends a generation.
    """
    llguidance = library("llguidance", "llguidance")
    checked(tokenizer)
    wrapper = llguidance.TokenizerWrapper(TokensOfGrammars(tokenizer))
    stop = stop_ids(tokenizer)
    takes_several = hasattr(llguidance.LLTokenizer, "eos_tokens")  # llguidance 1.5 takes one
    return llguidance.LLTokenizer(wrapper, n_vocab, stop if takes_several else stop[0], slices)


class TokensOfGrammars:
    """The attributes that llguidance and guidance read from a tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.eos_token_id = eos_id(tokenizer)
        self.bos_token_id = tokenizer.bos_id
        self.special_token_ids = [token for token in range(len(tokenizer)) if _is_marked(tokenizer, token)]
        tokens = list(tokenizer.token_bytes)
        for token in self.special_token_ids:
            tokens[token] = SPECIAL + tokens[token]
        self.tokens: Sequence[bytes] = tokens
        self._keeps_bytes = _keeps_bytes(tokenizer) and not any(
            tokenizer.vocabulary.attributes[token] & USER_DEFINED for token in self.special_token_ids
        )

    def __call__(self, text: str | bytes) -> list[int]:
        """Return ids whose tokens have exactly the bytes of `text`, which a grammar forces.

        They are those of `text` as plain text behind another text, without the space that llama.cpp puts before the
        first word. Where these have other bytes (a unigram or WordPiece model changed the text, or a user-defined token
        was found, which no grammar takes for text), or where a byte has no token, they are the longest tokens from the
        beginning on, until none fits.
        """
        data = text.encode() if isinstance(text, str) else text
        try:
            ids = self.tokenizer.encode_ordinary(text, continues=True)
        except ValueError:  # from llguidance, this would come as a panic
            return self._longest_tokens(data)
        if self._keeps_bytes:
            return ids
        return ids if b"".join(map(self.tokens.__getitem__, ids)) == data else self._longest_tokens(data)

    def _longest_tokens(self, data: bytes) -> list[int]:
        ids = []
        start = 0
        while start < len(data):
            for end in range(min(len(data), start + self._longest), start, -1):
                if (token := self._ids.get(data[start:end])) is not None:
                    break
            else:
                break
            ids.append(token)
            start = end
        return ids

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        """The first id of each token's bytes."""
        return {data: token for token, data in reversed([*enumerate(self.tokens)])}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self.tokens))


def _keeps_bytes(tokenizer: Tokenizer) -> bool:
    """Whether plain tokens always have the bytes of a text: in byte-level BPE, which changes nothing."""
    model, entry = tokenizer.vocabulary.tokenizer_model, tokenizer.vocabulary.pre_tokenizer
    return model.has_pre_tokenizer and not model.changes_text and entry.byte_encode


def _is_marked(tokenizer: Tokenizer, token: int) -> bool:
    """Whether a token is no text to llguidance: special tokens, and user-defined ones like `<think>`."""
    if tokenizer.is_special(token):
        return True
    if not tokenizer.vocabulary.attributes[token] & USER_DEFINED:
        return False
    data = tokenizer.token_bytes[token]
    return data.startswith(b"<") and data.endswith(b">")
