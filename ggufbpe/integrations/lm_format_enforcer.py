"""For lm-format-enforcer: `TokenEnforcer(tokenizer_data(tok), parser)`."""

from __future__ import annotations

import codecs
from functools import partial
from typing import Any

from ..tokenizer import Tokenizer
from ._protocol import checked, joined_pieces, library, stop_ids, token_text


def tokenizer_data(tokenizer: Tokenizer, use_bitmask: bool = False, vocab_size: int | None = None) -> Any:
    """Return a `TokenEnforcerTokenizerData`. `vocab_size` is the number of logits if there are more than tokens.

    lm-format-enforcer works on characters: a token with only a part of one is U+FFFD to it. A character that no token
    has as a whole cannot be generated, and where the grammar leaves no other, no token is allowed.
    """
    enforcer = library("lmformatenforcer", "lm-format-enforcer", "lm_format_enforcer")
    checked(tokenizer)
    # No piece depends on what is before it, so that none counts as the start of a word.
    regular = [
        (token, token_text(tokenizer, token), False)
        for token, data in enumerate(tokenizer.token_bytes)
        if data and not tokenizer.is_special(token) and not tokenizer.is_eog(token)
    ]
    return enforcer.TokenEnforcerTokenizerData(
        regular, partial(_text, tokenizer), stop_ids(tokenizer), use_bitmask, vocab_size or len(tokenizer)
    )


def _text(tokenizer: Tokenizer, ids: list[int]) -> str:
    """Return the text of `ids` without an unfinished character at its end."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(joined_pieces(tokenizer, ids))
