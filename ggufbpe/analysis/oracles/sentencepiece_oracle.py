"""Google's sentencepiece as an oracle, with a tokenizer.model: for SPM and UGM vocabularies.

sentencepiece adds BOS and EOS only if told to, and finds no control tokens in a text. So it is told to add what the
model wants, and texts are compared as plain text.
"""

from __future__ import annotations

import os

from ...tokenizer import Tokenizer
from .library_oracle import LibraryOracle
from .oracle import Oracle, check_file

_NAMES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")


class _SentencePiece(LibraryOracle):
    note = "compared with control tokens in texts as plain text, since sentencepiece finds none"

    def parse_special(self, wanted: bool) -> bool:
        return False


def sentencepiece_library(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
    """The package sentencepiece with the model at `rest`, a file or its folder."""
    inside = [os.path.join(rest, name) for name in _NAMES]
    path = next(filter(os.path.exists, inside), inside[0]) if os.path.isdir(rest) else rest
    check_file(path)
    before, after = tokenizer.vocabulary.added
    config = {"file": os.path.abspath(path), "add_bos": bool(before), "add_eos": bool(after)}
    return _SentencePiece("sentencepiece", config, "sentencepiece", seconds)
