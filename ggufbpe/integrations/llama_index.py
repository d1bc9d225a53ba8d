"""For LlamaIndex: `set_global_tokenizer(tokenizer(tok))`, or `SentenceSplitter(tokenizer=tokenizer(tok))`."""

from __future__ import annotations

from collections.abc import Callable

from ..tokenizer import Tokenizer
from ._protocol import checked


def tokenizer(tok: Tokenizer) -> Callable[[str], list[int]]:
    """Return a function from a text to its ids, without BOS and EOS, and control tokens as plain text."""
    return checked(tok).encode_ordinary
