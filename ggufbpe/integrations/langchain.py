"""For LangChain: a splitter of texts into chunks of tokens, and the length function of its other splitters."""

from __future__ import annotations

from typing import Any

from ..tokenizer import Tokenizer
from ._protocol import length_function, library

__all__ = ["length_function", "text_splitter"]

_Base: Any = library("langchain_text_splitters", "langchain-text-splitters").TextSplitter


def text_splitter(tokenizer: Tokenizer, chunk_size: int = 4000, chunk_overlap: int = 200) -> Any:
    """Return a `TextSplitter` whose chunks are slices of the text of at most `chunk_size` tokens.

    `chunk_overlap` counts tokens, too; with 0, the chunks join to the text. They end between tokens, wherever that is:
    `Tokenizer.split` ends them at paragraphs, sentences, or headings.
    """
    return _Splitter(tokenizer, chunk_size, chunk_overlap)


class _Splitter(_Base):  # type: ignore[misc]
    def __init__(self, tokenizer: Tokenizer, chunk_size: int, chunk_overlap: int) -> None:
        super().__init__(chunk_size, chunk_overlap, length_function(tokenizer))
        self._tokenizer = tokenizer

    def split_text(self, text: str) -> list[str]:
        size, overlap = self._chunk_size, self._chunk_overlap
        spans = self._tokenizer.split(text, size, overlap, "token", parse_special=False)
        return [text[start:end] for start, end in spans]
