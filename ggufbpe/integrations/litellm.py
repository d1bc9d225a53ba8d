"""For LiteLLM: `token_counter(model, text=text, custom_tokenizer=custom_tokenizer(tok))`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tokenizer import Tokenizer
from ._protocol import checked


def custom_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the dict that LiteLLM's `custom_tokenizer` arguments take; counts are without BOS and EOS."""
    return {"type": "huggingface_tokenizer", "tokenizer": PlainTokenizer(checked(tokenizer))}


class PlainTokenizer:
    """The methods of a `tokenizers.Tokenizer` that LiteLLM calls, on lists of ids."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`, where control tokens are recognized."""
        return self.tokenizer.encode(text, add_special=False)

    def encode_batch_fast(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return list(map(self.encode, texts))

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Return the text of `ids`."""
        return self.tokenizer.decode(ids, unparse_special=not skip_special_tokens)

    def id_to_token(self, token: int) -> str:
        """Return the text of a token as written in the file."""
        return self.tokenizer.id_to_token(token)

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token as written in the file."""
        return self.tokenizer.token_to_id(token)
