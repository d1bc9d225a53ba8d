"""For XGrammar: `GrammarCompiler(tokenizer_info(tok))` compiles grammars for the tokens of a GGUF."""

from __future__ import annotations

from typing import Any

from ..tokenizer import Tokenizer
from ._protocol import checked, library, stop_ids


def tokenizer_info(tokenizer: Tokenizer, vocab_size: int | None = None) -> Any:
    """Return a `TokenizerInfo`. `vocab_size` is the number of logits if there are more than tokens.

    Control tokens have no bytes in it, so that no grammar takes them for text.
    """
    xgrammar = library("xgrammar", "xgrammar")
    checked(tokenizer)
    tokens = [
        b"" if tokenizer.is_special(token) or tokenizer.is_eog(token) else data
        for token, data in enumerate(tokenizer.token_bytes)
    ]
    return xgrammar.TokenizerInfo(
        tokens,
        vocab_type=xgrammar.VocabType.RAW,
        vocab_size=vocab_size or len(tokens),
        stop_token_ids=stop_ids(tokenizer),
    )
