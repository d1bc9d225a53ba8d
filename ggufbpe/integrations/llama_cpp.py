"""For llama-cpp-python: `Llama(model_path, tokenizer=Tokenizer(tok))`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tokenizer import Tokenizer as GGUFTokenizer
from ._protocol import checked, joined_pieces, library

_Base: Any = library("llama_cpp.llama_tokenizer", "llama-cpp-python").BaseLlamaTokenizer


class Tokenizer(_Base):  # type: ignore[misc]
    """A `BaseLlamaTokenizer` of llama-cpp-python with the ids of a `ggufbpe.Tokenizer`."""

    def __init__(self, tokenizer: GGUFTokenizer) -> None:
        self.tokenizer = checked(tokenizer)

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = True) -> list[int]:
        """Return the ids of `text`. `add_bos` also adds EOS where the model wants it, as llama-cpp-python does."""
        # llama-cpp-python takes any value for a flag.
        return self.tokenizer.encode(text, add_special=bool(add_bos), parse_special=bool(special))

    def detokenize(
        self, tokens: Sequence[int], prev_tokens: Sequence[int] | None = None, special: bool = False
    ) -> bytes:
        """Return the bytes of `tokens`, without the space that follows a BOS. `prev_tokens` change nothing.

        `ValueError` for an id out of range.
        """
        data = joined_pieces(self.tokenizer, tokens, special=bool(special))
        begins = len(tokens) > 0 and tokens[0] == self.tokenizer.bos_id
        return data.removeprefix(b" ") if begins else data

    def encode(self, text: str, add_bos: bool = True, special: bool = True) -> list[int]:
        """Return the ids of a `str`."""
        return self.tokenize(text.encode("utf-8", "ignore"), add_bos, special)

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of `tokens`; bytes that are not UTF-8 are left out."""
        return self.detokenize(tokens).decode("utf-8", "ignore")
