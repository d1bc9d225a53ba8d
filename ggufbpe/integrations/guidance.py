"""For guidance: the tokenizer of an engine."""

from __future__ import annotations

from typing import Any

from ..tokenizer import Tokenizer
from ..tokenizer.special_tokens import SpecialTokens
from ._protocol import changes_text, checked, library
from .llguidance import TokensOfGrammars, ll_tokenizer

_Base: Any = library("guidance.models._engine._tokenizer", "guidance").Tokenizer


def tokenizer(tok: Tokenizer, chat_template: Any = None) -> GuidanceTokenizer:
    """Return guidance's `Tokenizer`, with the chat template of the file unless `chat_template` is given."""
    checked(tok)
    return GuidanceTokenizer(tok, chat_template or tok.chat_template)


class GuidanceTokenizer(_Base):  # type: ignore[misc]
    """A `Tokenizer` of guidance with the ids of a `ggufbpe.Tokenizer`."""

    def __init__(self, tok: Tokenizer, chat_template: Any) -> None:
        super().__init__(ll_tokenizer(tok), chat_template, tok.bos_id)
        self.tok = tok
        self._plain = TokensOfGrammars(tok)
        self._special_tokens = SpecialTokens(tok.vocabulary)
        self._adds_spaces = tok.vocabulary.add_space_prefix  # also behind a control token

    def encode(self, byte_string: bytes, *, parse_special: bool = True) -> list[int]:
        """Return the ids of a text without BOS and EOS. Bytes that are not UTF-8 become tokens of single bytes.

        The text between two control tokens is encoded as llguidance encodes what a grammar forces: `decode` gives it
        back, without a space before its first word. llguidance itself takes every text for plain text, also the
        `<|im_start|>` of a chat.
        """
        try:
            byte_string.decode()
        except UnicodeDecodeError:
            return list(super().encode(byte_string, parse_special=parse_special))
        if not parse_special:
            return self._plain(byte_string)
        if not self._adds_spaces and not changes_text(self.tok):
            return self.tok.encode(byte_string, add_special=False)
        ids: list[int] = []
        for token, start, end in self._special_tokens.partition(byte_string, True):
            ids += self._plain(byte_string[start:end]) if token is None else [token]
        return ids
