"""Reads off ids and texts, without encoding, what is worth trying: shifted ids, and where texts differ.

All findings are guesses, which a caller confirms by encoding before it reports them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from operator import eq
from typing import NamedTuple

from ..._util import utf8
from ..._util.spelling import BYTE_TOKENS
from ...models.bpe.merge import BYTE_CHARS
from ...models.vocabulary import LSTRIP, RSTRIP, Vocabulary
from .agreement import first_difference
from .cause import Cause

EXCERPT = 40  # bytes of a text that are shown
_COMPARED = 4000  # bytes by which texts are compared
_ALIKE = 0.3  # from this share of common trigrams on, two texts count as versions of one
_SHIFTED = 0.3  # from this share of the ids on, a shift is worth trying


class Target(NamedTuple):
    """The given ids in parts: `head` and `tail` are around a text whose ids are `core`."""

    head: tuple[int, ...]
    core: list[int]
    tail: tuple[int, ...]
    text: bytes | None  # what the core decodes to; None if that is uncertain
    shift: tuple[int, int] = (0, 0)
    causes: tuple[Cause, ...] = ()

    def fits(self, key: bytes) -> bool:
        """Whether the core can be the ids of a text with this `key`, or the first or last of them."""
        return self.text is None or key.startswith(self.text) or key.endswith(self.text)

    def ends(self, key: bytes) -> bool:
        """Whether the core can be the last ids of a text with this `key`, and not all of them."""
        return self.text is None or (self.text not in (b"", key) and key.endswith(self.text))


def is_lossless(vocabulary: Vocabulary) -> bool:
    """Whether the ids of any text decode to that text."""
    strips = LSTRIP | RSTRIP
    byte_encode = vocabulary.pre_tokenizer.byte_encode
    needed = BYTE_CHARS if byte_encode else BYTE_TOKENS
    return (
        vocabulary.tokenizer_model.keeps_text
        and all(token in vocabulary.token_to_id for token in needed)
        and not any(vocabulary.attributes[token] & strips for token in vocabulary.special_token_ids)
    )


def shifts(ours: list[int], theirs: list[int]) -> Iterator[tuple[int, int]]:
    """(from, by): ids from the first number on may be higher by the second in `theirs`."""
    moved = {(a, b - a) for a, b in zip(ours, theirs) if a != b}
    if len(ours) == len(theirs) and len(moved) >= 2 and len({by for _, by in moved}) == 1:
        start, by = min(moved)
        yield (start if any(map(eq, ours, theirs)) else 0), by
        return
    one, two = Counter(ours), Counter(theirs)

    def shared(by: int) -> int:
        return sum(min(count, two[token + by]) for token, count in one.items())

    frequent = [[token for token, _ in counts.most_common(8)] for counts in (one, two)]
    pairs = [*zip(ours[:8], theirs[:8]), *zip(ours[-8:], theirs[-8:]), *product(*frequent)]
    by = max({b - a for a, b in pairs}, key=lambda by: (shared(by), -abs(by)), default=0)
    distinct = sum(token + by in two for token in one)
    if (
        by
        and distinct >= 2
        and shared(by) >= _SHIFTED * max(len(ours), len(theirs))
        and shared(by) > 2 * shared(0)
    ):
        yield 0, by


def text_difference(text: bytes, ours: bytes, theirs: bytes) -> dict[str, object]:
    """Where and how the decoded text differs; `ours` is `text` encoded and decoded."""
    start = first_other_character(ours, theirs)
    end = first_difference(ours[start:][::-1], theirs[start:][::-1])
    removed, added = ours[start : len(ours) - end], theirs[start : len(theirs) - end]
    hows = (
        (not theirs, "nothing is left"),
        (bool(ours) and ours in theirs and theirs.startswith(ours), "more text at the end"),
        (bool(ours) and theirs.endswith(ours), "more text at the beginning"),
        (bool(ours) and ours in theirs, "more text around it"),
        (ours.startswith(theirs), "the end is missing"),
        (ours.endswith(theirs), "the beginning is missing"),
        (theirs in ours, "only a part of the text"),
        (not removed, "more text"),
        (not added, "missing text"),
        (True, "other text"),
    )
    how = next(name for holds, name in hows if holds)
    offset = start
    if text != ours:  # the place in the text as it was given
        before = len(ours[:start].decode("utf-8", "surrogatepass"))
        offset = ([0, *utf8.char_ends(text)])[before]
    context = slice(start, start + EXCERPT)
    return {
        "how": how,
        "offset": offset,
        "ours": shown(ours[context]),
        "theirs": shown(theirs[context]),
        "ours_bytes": len(removed),
        "theirs_bytes": len(added),
        "same_after": len(ours) - start - len(removed),
    }


def first_other_character(ours: bytes, theirs: bytes) -> int:
    """Where the first character that differs between two texts begins."""
    at = first_difference(ours, theirs)
    while at and any(len(text) > at and text[at] & 0xC0 == 0x80 for text in (ours, theirs)):
        at -= 1
    return at


def shown(data: bytes) -> str:
    """Bytes as readable text."""
    return data.decode("utf-8", "backslashreplace")


def are_alike(ours: bytes, theirs: bytes) -> bool:
    """Whether two texts have many trigrams in common; of texts that have none, whether they have a byte in common."""
    if ours in theirs or theirs in ours:
        return True
    if min(len(ours), len(theirs)) < 3:
        return not set(ours).isdisjoint(theirs)
    one, two = (Counter(zip(text, text[1:], text[2:])) for text in (ours[:_COMPARED], theirs[:_COMPARED]))
    return (one & two).total() >= _ALIKE * max(1, min(one.total(), two.total()))
