"""What is worth knowing of an encoded document, such as that a template dropped its tools: a bit for each note.

The bits of documents go where their lengths go, so each shard, and the manifest, counts the documents of each note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import IntFlag, auto
from typing import Any, NamedTuple

import numpy as np

from ..._util.wording import counted


class Note(IntFlag):
    """A note; its name in small letters is that in the manifest."""

    NOT_UTF8 = auto()  # lone surrogates in JSON, invalid bytes near the beginning of a text
    SPECIAL_TOKENS_IN_MESSAGES = auto()  # text of a message that became control tokens
    TOOLS_NOT_SHOWN = auto()
    TOOL_CALLS_NOT_SHOWN = auto()
    REASONING_NOT_SHOWN = auto()
    NOTHING_MARKED = auto()
    NO_END_MARKED = auto()


_NOT_UTF8 = ("document is not UTF-8 throughout", "documents are not UTF-8 throughout")
_OF_CHATS = {  # what a chat has
    "special_tokens_in_messages": "special tokens written out in a message, which are encoded as these tokens",
    "tools_not_shown": "tools, which the template does not show",
    "tool_calls_not_shown": "tool calls, which the template does not show",
    "reasoning_not_shown": "reasoning that the template does not show",
    "nothing_marked": "nothing that is marked as the assistant's",
    "no_end_marked": "no end of a turn that is marked, so that a model does not learn to stop",
}


def counts_of(notes: Any) -> dict[str, int]:
    """Return how many documents have each note, of those that any has; `notes` is an array of bits of documents.

    >>> import numpy
    >>> counts_of(numpy.array([0, 1, 3], "uint8"))
    {'not_utf8': 2, 'special_tokens_in_messages': 1}
    """
    counts = {str(note.name).lower(): int(((notes & note.value) > 0).sum()) for note in Note}
    return {name: count for name, count in counts.items() if count}


class Tally:
    """Counts the documents of a shard by their lengths and notes."""

    def __init__(self) -> None:
        self._by_bits = np.zeros(64, np.int64)
        self._longest = 0
        self._notes: dict[str, int] = {}

    def add(self, lengths: Any, notes: Any) -> None:
        """Add documents of these lengths in tokens, with the bits of their notes; None where they have none."""
        if not len(lengths):
            return
        # 2 ** bits is the smallest power of two that is not less than a length
        bits = np.frexp(np.maximum(lengths - 1, 0))[1]
        self._by_bits += np.bincount(bits, minlength=64)
        self._longest = max(self._longest, int(lengths.max()))
        if notes is not None:
            self._notes = sum_of([self._notes, counts_of(notes)])

    def facts(self) -> DocumentFacts:
        """Return what was counted."""
        lengths = {str(1 << bits): count for bits, count in enumerate(self._by_bits.tolist()) if count}
        return DocumentFacts(lengths, self._longest, self._notes or None)


class DocumentFacts(NamedTuple):
    """How long documents are, and how many documents each note is about; None where that is not known.

    `lengths` counts documents by length, `{"128": 40}` for 40 of 65 to 128 tokens, and `longest` is the largest number
    of tokens. `notes` counts documents by the name of the note, such as "not_utf8"; None, too, if there are no notes.
    """

    lengths: dict[str, int] | None = None
    longest: int | None = None
    notes: dict[str, int] | None = None


def all_facts(every: Iterable[DocumentFacts]) -> DocumentFacts:
    """Return the sum of several.

    >>> all_facts([DocumentFacts({"4": 2}, 3), DocumentFacts({"2": 1, "4": 1}, 4, {"not_utf8": 1})])
    DocumentFacts(lengths={'2': 1, '4': 3}, longest=4, notes={'not_utf8': 1})
    """
    some = list(every)
    lengths: Counter[int] = Counter()
    for facts in some:
        lengths.update({int(most): count for most, count in (facts.lengths or {}).items()})
    return DocumentFacts(
        {str(most): lengths[most] for most in sorted(lengths)} or None,
        max((facts.longest for facts in some if facts.longest is not None), default=None),
        sum_of(facts.notes for facts in some) or None,
    )


def sum_of(every: Iterable[Mapping[str, int] | None]) -> dict[str, int]:
    """Return the sums of several counts, in the order of notes.

    >>> sum_of([{"nothing_marked": 1}, None, {"not_utf8": 1, "nothing_marked": 2}])
    {'not_utf8': 1, 'nothing_marked': 3}
    """
    some = [each for each in every if each]
    names = ("not_utf8", *_OF_CHATS)
    return {name: count for name in names if (count := sum(each.get(name, 0) for each in some))}


def in_words(notes: Mapping[str, int]) -> list[str]:
    """Return a sentence for each note.

    >>> in_words({"tools_not_shown": 1})
    ['1 chat has tools, which the template does not show']
    """
    return [
        f"{counted(count, 'chat has', 'chats have')} {_OF_CHATS[name]}"
        if name in _OF_CHATS
        else counted(count, *_NOT_UTF8)
        for name, count in notes.items()
    ]
