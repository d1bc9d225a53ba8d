"""For Outlines: a tokenizer of its protocol, and the vocabulary of outlines-core."""

from __future__ import annotations

from typing import Any

from .._util.utf8 import is_utf8
from ..tokenizer import Tokenizer
from ..tokenizer.engine import numpy
from ._protocol import checked, eos_id, library, token_text


def tokenizer(tok: Tokenizer) -> OutlinesTokenizer:
    """Return a tokenizer of Outlines' protocol. `ValueError` if no token ends a generation."""
    return OutlinesTokenizer(checked(tok))


def vocabulary(tok: Tokenizer) -> Any:
    """Return the `outlines_core.Vocabulary` of the tokens' bytes; `Index(regex, vocabulary(tok))` compiles a regex.

    Tokens that hold only a part of a character are included, because this vocabulary is made of bytes. Outlines'
    tokenizer protocol is made of texts and has to leave them out.
    """
    core = library("outlines_core", "outlines-core", "outlines")
    ids: dict[bytes, list[int]] = {}
    checked(tok)
    for token, data in enumerate(tok.token_bytes):
        if data and not tok.is_special(token) and not tok.is_eog(token):
            ids.setdefault(data, []).append(token)
    return core.Vocabulary(eos_id(tok), ids)


class OutlinesTokenizer:
    """A tokenizer in Outlines' protocol. Its `vocabulary` has no control tokens but EOS, and no parts of characters."""

    def __init__(self, tok: Tokenizer) -> None:
        self.tokenizer = tok
        self.eos_token_id = eos_id(tok)
        self.eos_token = tok.id_to_token(self.eos_token_id)
        self.pad_token_id = self.eos_token_id if tok.pad_id is None else tok.pad_id
        special = {token for token in range(len(tok)) if tok.is_special(token) or tok.is_eog(token)}
        self.special_tokens = {tok.id_to_token(token) for token in special}
        self.vocabulary = {
            tok.id_to_token(token): token
            for token, data in enumerate(tok.token_bytes)
            if token == self.eos_token_id or (token not in special and data and is_utf8(data))
        }

    def encode(self, prompt: str | list[str]) -> tuple[Any, Any]:
        """Return the ids of a prompt, or of several padded on the left, and the mask of what is not padding."""
        np = numpy()
        if isinstance(prompt, str):
            found = np.array(self.tokenizer.encode_to_numpy(prompt), np.int64, ndmin=2)
            attended = found.copy()
            attended.fill(1)  # np.ones_like takes twice as long
            return found, attended
        batch = self.tokenizer.encode_batch(prompt)
        width = max(map(len, batch), default=0)
        ids = np.full((len(batch), width), self.pad_token_id, np.int64)
        mask = np.zeros((len(batch), width), np.int64)
        for row, each in enumerate(batch):
            ids[row, width - len(each) :] = each
            mask[row, width - len(each) :] = 1
        return ids, mask

    def decode(self, token_ids: Any) -> list[str]:
        """Return the text of each row of ids, or of one row."""
        return self.tokenizer.decode_batch(_rows(token_ids))

    def convert_token_to_string(self, token: str) -> str:
        """Return the text that a token, as written in the file, stands for."""
        return token_text(self.tokenizer, self.tokenizer.vocabulary.token_to_id[token])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutlinesTokenizer) and self.tokenizer == other.tokenizer

    def __hash__(self) -> int:
        return hash(self.tokenizer)


def _rows(token_ids: Any) -> list[Any]:
    """Rows of ids, given as an array, a tensor, rows of unequal length, one row, or one id."""
    if hasattr(token_ids, "ndim"):
        ids: Any = token_ids.tolist()
        dimensions = token_ids.ndim
    elif isinstance(token_ids, int):
        ids, dimensions = token_ids, 0
    else:
        ids = list(token_ids)
        is_row = not ids or isinstance(ids[0], int) or getattr(ids[0], "ndim", 1) == 0
        dimensions = 1 if is_row else 2
    return [[ids]] if dimensions == 0 else [ids] if dimensions == 1 else ids
