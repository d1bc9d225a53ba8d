"""For semantic-text-splitter: its `TextSplitter` and `MarkdownSplitter`, with sizes in tokens."""

from __future__ import annotations

from typing import Any

from ..tokenizer import Tokenizer
from ._protocol import length_function, library


def text_splitter(tokenizer: Tokenizer, size: int | tuple[int, int], **options: Any) -> Any:
    """Return a `TextSplitter` of chunks of at most `size` tokens. `options` are those of `from_callback`.

    With a model that puts a space before each text (Llama 2, Phi-3), a chunk can have one token more; that is seldom
    unless `trim=False`. `Tokenizer.split` keeps to its size.
    """
    splitters = library("semantic_text_splitter", "semantic-text-splitter")
    return splitters.TextSplitter.from_callback(length_function(tokenizer), size, **options)


def markdown_splitter(tokenizer: Tokenizer, size: int | tuple[int, int], **options: Any) -> Any:
    """Return a `MarkdownSplitter`; the arguments and the sizes are those of `text_splitter`."""
    splitters = library("semantic_text_splitter", "semantic-text-splitter")
    return splitters.MarkdownSplitter.from_callback(length_function(tokenizer), size, **options)
