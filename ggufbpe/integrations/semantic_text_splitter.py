"""For semantic-text-splitter: its `TextSplitter` and `MarkdownSplitter`, with sizes in tokens."""

from __future__ import annotations

from typing import Any

from ..tokenizer import Tokenizer
from ._protocol import length_function, library


def text_splitter(tokenizer: Tokenizer, size: int | tuple[int, int], **options: Any) -> Any:
    """Return a `TextSplitter` of chunks of at most `size` tokens. `options` are those of `from_callback`."""
    splitters = library("semantic_text_splitter", "semantic-text-splitter")
    return splitters.TextSplitter.from_callback(length_function(tokenizer), size, **options)


def markdown_splitter(tokenizer: Tokenizer, size: int | tuple[int, int], **options: Any) -> Any:
    """Return a `MarkdownSplitter`; the arguments are those of `text_splitter`."""
    splitters = library("semantic_text_splitter", "semantic-text-splitter")
    return splitters.MarkdownSplitter.from_callback(length_function(tokenizer), size, **options)
