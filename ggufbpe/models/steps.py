"""The steps from plain text to ids as plain data, by their kinds: cuts, merges, symbols.

    a room of `models/` -> [this file] -> trace/, views/

What looks at steps knows these kinds and no model. Positions are bytes of the text (`start`, `end`), but for merges:
these count the symbols that a word has before merging.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable


class Stage(NamedTuple):
    """One stage of the pre-tokenizer: the alternatives of its pattern, in the order in which they are tried.

    As llama.cpp writes them, which with a `step`, a function of split.py, is not how the work is done. Those after the
    first `in_pattern` are not in the pattern that `list-pre` shows: llama.cpp's splitter adds them.
    """

    alternatives: tuple[str, ...]
    step: str | None
    in_pattern: int


class Fragment(NamedTuple):
    """A part of the text before it is split.

    `kind` is "text", "special" (a special token), "dna" (a tag or k-mer of a DNA model), "dropped" (white space
    that has no token) or, at the ends, "bos" and "eos". `token` is the id of the kinds that have one.
    """

    kind: str
    start: int
    end: int
    token: int | None = None
    dropped_by: int | None = None  # the special token that strips the white space; None: no token has any


class Cut(NamedTuple):
    """The piece in which a word was after a stage, and the alternative that took it; None if none did."""

    stage: int
    alternative: int | None
    start: int
    end: int


class Merge(NamedTuple):
    """`left` and `right` become one symbol; `position` is where `left` begins, in symbols before merging."""

    rank: int
    left: str
    right: str
    position: int


class Symbol(NamedTuple):
    """What merging left, with its ids: one, or where it is no token itself, those of its bytes that have one."""

    text: str
    start: int
    end: int
    ids: tuple[int, ...]
    is_token: bool
    dropped: bytes = b""  # the bytes that have no token either


class Word(NamedTuple):
    """A piece that the pre-tokenizer made."""

    text: str  # as it was split: spaces escaped, undecodable bytes U+FFFD
    start: int
    end: int
    fragment: int
    cuts: tuple[Cut, ...]  # one a stage
    written: str  # as it is merged: in the byte-level alphabet, if the model has it
    whole: str | None  # the flag by which the word was taken as one token: "ignore_merges" or "newline_runs"
    merges: tuple[Merge, ...]
    symbols: tuple[Symbol, ...]


class WordToken(NamedTuple):
    """One id of a word. `origin` is "symbol" or "byte" (a byte of a symbol)."""

    id: int
    start: int
    end: int
    origin: str


class EncodedWord(NamedTuple):
    """A word with its ids. The number of its fragment is not known yet: 0."""

    word: Word
    tokens: tuple[WordToken, ...]


Step = Fragment | EncodedWord


class Tracer(Protocol):
    """Plain text to ids, step by step. It may keep words that come again."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the pre-tokenizer, with what is matched in each; none where there are no patterns."""
        ...

    def steps(self, fragment: str | bytes, start: int) -> Iterator[Step]:
        """The steps of a fragment that begins at byte `start`, in the order of the text.

        A part of it that is dropped, is a token or is split comes as a `Fragment`, followed by its words.
        """
        ...


@runtime_checkable
class Traceable(Protocol):
    """A `TextModel` (model.py) that tells its steps."""

    def tracer(self) -> Tracer:
        """What tells them."""
        ...
