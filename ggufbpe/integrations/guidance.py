"""For guidance: the tokenizer of an engine."""

from __future__ import annotations

from typing import Any

from ..tokenizer import Tokenizer
from ._protocol import library
from .llguidance import ll_tokenizer

_Base: Any = library("guidance.models._engine._tokenizer", "guidance").Tokenizer


def tokenizer(tok: Tokenizer, chat_template: Any = None) -> GuidanceTokenizer:
    """Return guidance's `Tokenizer`, with the chat template of the file unless `chat_template` is given."""
    return GuidanceTokenizer(tok, chat_template or tok.chat_template)


class GuidanceTokenizer(_Base):  # type: ignore[misc]
    """A `Tokenizer` of guidance with the ids of a `ggufbpe.Tokenizer`."""

    def __init__(self, tok: Tokenizer, chat_template: Any) -> None:
        super().__init__(ll_tokenizer(tok), chat_template, tok.bos_id)
        self.tok = tok

    def encode(self, byte_string: bytes, *, parse_special: bool = True) -> list[int]:
        """Return the ids of a text without BOS and EOS. Bytes that are not UTF-8 become tokens of single bytes.

        llguidance's own way there takes every text for plain text, also the `<|im_start|>` of a chat.
        """
        try:
            text = byte_string.decode()
        except UnicodeDecodeError:
            return list(super().encode(byte_string, parse_special=parse_special))
        return self.tok.encode(text, add_special=False, parse_special=parse_special)
