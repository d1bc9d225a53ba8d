"""One text as several tokenizers cut it, side by side.

    text, tokenizers -> [this file] -> stretches of the text (stretches.py) -> cli/compare.py

By bytes of the text alone: an id means nothing in another vocabulary. So models of any kind can stand side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..tokenizer import Text, Tokenizer
from .stretches import Stretches


def compare(tokenizers: Sequence[Tokenizer], text: Text, *, parse_special: bool = True) -> Stretches:
    """The stretches of `text` between the places where all tokenizers cut it, in order; BOS and EOS are not added.

    >>> a, b = Tokenizer.from_gguf("a.gguf"), Tokenizer.from_gguf("b.gguf")          # doctest: +SKIP
    >>> for stretch in compare([a, b], "Hello 123"):                                # doctest: +SKIP
    ...     print(stretch.start, [[token.piece for token in row] for row in stretch.tokens])
    0 [[b'Hello'], [b'Hello']]
    5 [[b' ', b'123'], [b' ', b'1', b'2', b'3']]

    Each token has its id in its own vocabulary, its bytes, and its place in the bytes of `text`. Tokens that stand for
    no byte of it, such as a space that a model puts before it, are of the stretch that follows.
    """
    data = text.encode() if isinstance(text, str) else bytes(text)
    return Stretches(tokenizers, data, parse_special)
