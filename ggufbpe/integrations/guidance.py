"""For guidance: the tokenizer of an engine."""

from __future__ import annotations

from typing import Any

from ..tokenizer import Tokenizer
from ._protocol import library
from .llguidance import ll_tokenizer


def tokenizer(tok: Tokenizer, chat_template: Any = None) -> Any:
    """Return guidance's `Tokenizer`, with the chat template of the file unless `chat_template` is given."""
    module = library("guidance.models._engine._tokenizer", "guidance")
    return module.Tokenizer(ll_tokenizer(tok), chat_template or tok.chat_template, tok.bos_id)
