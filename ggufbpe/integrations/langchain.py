"""For LangChain: a splitter of texts into chunks of tokens, and the length function of its other splitters."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal

from ..tokenizer import Tokenizer
from ..tokenizer.boundaries import Boundaries
from ._protocol import length_function, library

__all__ = ["length_function", "text_splitter"]

_Base: Any = library("langchain_text_splitters", "langchain-text-splitters", "langchain").TextSplitter


def text_splitter(
    tokenizer: Tokenizer,
    chunk_size: int = 4000,
    chunk_overlap: int = 200,
    *,
    boundaries: Boundaries = "paragraph",
    keep_separator: bool | Literal["start", "end"] = "end",
    add_start_index: bool = False,
    strip_whitespace: bool = False,
    add_special: bool = False,
) -> Any:
    """Return a `TextSplitter` whose chunks are slices of the text of at most `chunk_size` tokens.

    The chunks are those of `Tokenizer.split` with `parse_special=False`, and end at its `boundaries`. `chunk_overlap`
    counts tokens, too; with 0, the chunks join to the text. `add_special` counts the BOS and EOS of each chunk, as a
    model that embeds the chunks needs it. The other arguments are LangChain's: `keep_separator` is
    "start" (or True), "end", or False; `strip_whitespace` leaves out white space at the ends of chunks, as does
    `keep_separator=False`; with `add_start_index`, documents say by "start_index" where in the text they begin.

    `TypeError` for anything but a `Tokenizer`; the other errors are those of `Tokenizer.split`.
    """
    keep = "start" if keep_separator is True else keep_separator
    arguments = chunk_size, chunk_overlap, boundaries, False if strip_whitespace else keep
    return _Splitter(tokenizer, arguments, add_start_index, add_special)


class _Splitter(_Base):  # type: ignore[misc]
    def __init__(
        self, tokenizer: Tokenizer, arguments: tuple[Any, ...], add_start_index: bool, add_special: bool
    ) -> None:
        super().__init__(
            *arguments[:2],
            length_function(tokenizer),
            add_start_index=add_start_index,
            strip_whitespace=False,
        )
        self._tokenizer, self._arguments, self._add_special = tokenizer, arguments, add_special
        self._spans("")  # which says what is wrong with an argument

    def split_text(self, text: str) -> list[str]:
        return [text[start:end] for start, end in self._spans(text)]

    def create_documents(
        self, texts: list[str], metadatas: Sequence[dict[Any, Any]] | None = None
    ) -> list[Any]:
        """Return a document for each chunk, with the metadata of its text. LangChain looks for chunks by their text."""
        if metadatas and len(metadatas) < len(texts):
            raise ValueError(f"there are {len(texts)} texts, but only {len(metadatas)} metadatas")
        documents = library("langchain_core.documents", "langchain-core", "langchain")
        found = []
        for text, metadata in zip(texts, metadatas or [{}] * len(texts)):
            for start, end in self._spans(text):
                more = {"start_index": start} if self._add_start_index else {}
                own = {**copy.deepcopy(metadata), **more}
                found.append(documents.Document(page_content=text[start:end], metadata=own))
        return found

    def _spans(self, text: str) -> list[tuple[int, int]]:
        return self._tokenizer.split(
            text, *self._arguments, add_special=self._add_special, parse_special=False
        )
