"""The protocol of the tokenizer that chats need. `Tokenizer` implements it, and imports this room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from ..models.vocabulary import Vocabulary

if TYPE_CHECKING:
    from .chats import Chats

Side = Literal["right", "left", "middle"]  # where text is taken away
SIDES: tuple[Side, ...] = get_args(Side)


class PromptTokenizer(Protocol):
    """The members of `Tokenizer` that chat templates and the tokens of prompts are made with."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary, which has the ids of BOS and EOS and whether they are added."""

    @property
    def chat_templates(self) -> Mapping[str, str]:
        """The file's chat templates by name; the default one is ""."""

    @property
    def chats(self) -> Chats:
        """What makes prompts of chats."""

    def count(self, text: str | bytes, /, *, add_special: bool = ...) -> int:
        """Return the number of ids of a text, with special tokens added, unless they are not wanted, and parsed."""

    def fits(self, text: str, limit: int, /) -> bool:
        """Return whether a text has at most `limit` ids of its own."""

    def truncate(self, text: str, limit: int, /, *, side: Side, marker: str) -> str:
        """Return the longest part of a text that has at most `limit` ids of its own."""

    def encode(self, text: bytes, /, *, add_special: bool = ...) -> list[int]:
        """Return the ids of a text, with special tokens added, unless they are not wanted, and parsed."""

    def encode_with_offsets(self, text: bytes, /) -> tuple[list[int], Sequence[tuple[int, int]]]:
        """Return the ids of a prompt and the span of each in its bytes."""

    def token_to_piece(self, token: int, /) -> bytes:
        """Return the bytes that a token decodes to; a control token's are its text."""
