"""How a text becomes tokens, as `ggufbpe.explain` gives it.

    Tokenizer or path, text or path -> [this file] -> Trace

But: of a long text, the command traces only the part looked at (survey.py, parts.py), with the same steps.
"""

from __future__ import annotations

from ..inputs import Model, TextOrPath, text_of, tokenizer_of
from .trace import Trace


def explain(model: Model, text: TextOrPath, *, add_special: bool = True, parse_special: bool = True) -> Trace:
    """How a text becomes tokens: the fragments between special tokens, what normalization changed, words and merges.

    `model` is a `Tokenizer` or the path of a file, `text` a `str`, bytes, or the `pathlib.Path` of a file; the flags
    are those of `Tokenizer.encode`. All of it is kept, in memory about a thousand times the text. Offsets are in bytes
    of the text. `UnsupportedTokenizerError` for a model whose steps cannot be traced.

    >>> found = explain("model.gguf", " low")                        # doctest: +SKIP
    >>> [merge.rank for merge in found.words[0].merges]              # doctest: +SKIP
    [44, 66, 1621]
    """
    return tokenizer_of(model).trace(text_of(text), add_special=add_special, parse_special=parse_special)
