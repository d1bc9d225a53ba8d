"""For guidance: the tokenizer of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tokenizer import Tokenizer
from ..tokenizer.special_tokens import SpecialTokens
from ._protocol import checked, joined_pieces, library
from .llguidance import ll_tokenizer

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
        vocabulary = tok.vocabulary
        self._special_tokens = SpecialTokens(vocabulary)
        self._special_ids = frozenset(vocabulary.special_token_ids)
        # also behind a special token
        self._adds_spaces = vocabulary.add_space_prefix and not vocabulary.tokenizer_model.changes_text

    def encode(self, byte_string: bytes, *, parse_special: bool = True) -> list[int]:
        """Return the ids of a text without BOS and EOS. Bytes that are not UTF-8 become tokens of single bytes.

        No space is put before the first word, nor behind a control token, so `decode` returns the same bytes. Two
        things are lost: white space that a control token strips (Phi-3), and what unigram and WordPiece models change.
        llguidance itself takes every text for plain text, also the `<|im_start|>` of a chat.
        """
        try:
            byte_string.decode()
        except UnicodeDecodeError:
            return list(super().encode(byte_string, parse_special=parse_special))
        encode = self.tok.encode
        ids = encode(byte_string, add_special=False, parse_special=parse_special, continues=True)
        if not self._adds_spaces or self._special_ids.isdisjoint(ids):
            return ids
        ids = []
        for token, start, end in self._special_tokens.partition(byte_string, parse_special):
            if token is None:
                ids += self.tok.encode_ordinary(byte_string[start:end], continues=True)
            else:
                ids.append(token)
        return ids

    def decode(self, tokens: Sequence[int]) -> bytes:
        """Return the bytes of ids. `ValueError` for an id out of range.

        llguidance itself takes the byte 0xFF for a mark of special tokens, and leaves it out.
        """
        return joined_pieces(self.tok, tokens)
