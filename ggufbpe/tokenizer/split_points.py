"""Places where a text can be split without changing an id, whatever the rest of the text is.

A text may be split between two characters if the pre-tokenizer ends a word there whatever else the text is
(`Engine.find_split_point`: no pattern matches or looks across), and if no special token extends across the
place or strips white space at it. The nearby text decides that for the whole text: no id changes.

Models without patterns have their own places, after which all text is encoded with `continues`: SPM
before spaces, after a character that no token has before one; WPM at white space and characters that stand alone; RWKV
and PLaMo-2 between bytes that no token has side by side; PLaMo-3 before two spaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..models.vocabulary import LSTRIP, RSTRIP, SPACES

if TYPE_CHECKING:
    from . import Tokenizer


_FIRST_STEP = 48  # bytes; how far before the wanted end a place is looked for first


class Places:
    """Places where texts can be split: those of one tokenizer, or those that several have in common.

    `around` is how many bytes on either side of a place `next` looks at, and `reach` is the same of `last`.
    """

    around: int
    reach: int

    def next(self, text: bytes, start: int) -> int:
        """Return the first place at or after `start`; the length of the text if there is none."""
        raise NotImplementedError

    def special_tokens(self, text: bytes, start: int, end: int) -> list[int]:
        """Return the places after `start` and up to `end` where a special token certainly begins.

        `text` must have as many bytes before `start` and after `end` as `last` needs.
        """
        raise NotImplementedError

    def last(self, text: bytes, start: int, end: int, *, between_words: bool = False) -> int:
        """Return a place after `start` and up to `end`, near `end`; 0 if there is none.

        `text` must have `reach` bytes after `end`, and before `start` at least as many, or begin at a place itself.
        With `between_words`, it is one that `next` returns: no word of `Tokenizer.pre_tokenize` is divided there.
        """
        above, step = min(end + 1, len(text)), _FIRST_STEP
        while above > start + 1:
            first = max(above - step, start + 1)
            begin = max(first - self.reach, 0)
            window = text[begin : above + self.around]  # so that no byte is searched twice
            at = begin + self.next(window, first - begin)
            if at < above:
                return at
            above, step = first, 4 * step
        return 0 if between_words else max(self.special_tokens(text, start, end), default=0)


def places_of(tokenizers: Iterable[Tokenizer], parse_special: bool, continues: bool) -> Places:
    """Return the places that suit every one of `tokenizers`, of which there is at least one."""
    several = [SplitPoints.of(tokenizer, parse_special, continues) for tokenizer in tokenizers]
    return several[0] if len(several) == 1 else CommonPlaces(several)


class CommonPlaces(Places):
    """Places that several tokenizers have in common."""

    def __init__(self, several: Sequence[Places]) -> None:
        self._several = several
        self.around = max(each.around for each in several)
        self.reach = max(each.reach for each in several)

    def next(self, text: bytes, start: int) -> int:
        at, before = start, -1
        while at != before:
            before = at
            for each in self._several:
                at = each.next(text, at)
        return at

    def special_tokens(self, text: bytes, start: int, end: int) -> list[int]:
        first, *others = (set(each.special_tokens(text, start, end)) for each in self._several)
        return sorted(first.intersection(*others))


class SplitPoints(Places):
    """Where one tokenizer's texts can be split."""

    @classmethod
    def of(cls, tokenizer: Tokenizer, parse_special: bool, continues: bool) -> SplitPoints:
        """Return the places of a tokenizer. They are made once, since making them reads all special tokens."""
        known = tokenizer._split_points
        key = parse_special, continues
        if key not in known:
            known[key] = cls(tokenizer, parse_special, continues)
        return known[key]

    def __init__(self, tokenizer: Tokenizer, parse_special: bool, continues: bool) -> None:
        vocabulary = tokenizer.vocabulary
        entry = vocabulary.pre_tokenizer
        model = vocabulary.tokenizer_model
        self._engine = tokenizer._engine
        self._continues = continues
        self._parse_special = parse_special
        special = vocabulary.special_token_ids
        self.strips = any(vocabulary.attributes[token] & (LSTRIP | RSTRIP) for token in special)
        longest = max((len(vocabulary.tokens[token].encode()) for token in special), default=0)
        self.around = max(longest, 8)
        # The length of a special token that begins at a place, and of another that could overlap its end.
        self.reach = 2 * self.around
        # After a special token a space is put before the text, which then continues nothing.
        self._kept_behind = self.strips or (not model.has_pre_tokenizer and vocabulary.add_space_prefix)
        # Text between white space is split separately there, so a cut must be before white space.
        spaces = SPACES[1:] if entry.escape_whitespaces else SPACES
        self._before = spaces.encode() if model.drops_white_space else None

    def next(self, text: bytes, start: int) -> int:
        at = start
        while (at := self._engine.find_split_point(text, at, self._continues)) < len(text):
            if self._is_free(text, at):
                break
            at += 1
        return at

    def special_tokens(self, text: bytes, start: int, end: int) -> list[int]:
        """Return the places after `start` and up to `end` where a special token certainly begins.

        A token is certain if no other crosses its ends: those within it are shorter and come later in llama.cpp's
        order. Plain text always ends before it, so every model and engine has these places.
        """
        found: list[int] = []
        outer, is_certain = (0, 0), False
        furthest = 0  # where the tokens so far end
        for first, last in [
            *self._engine.special_token_spans(text, self._parse_special),
            (len(text), len(text)),
        ]:
            if first >= furthest:  # none of those before reaches here
                if (
                    is_certain
                    and start < outer[0] <= end
                    and self._keeps_spaces(text[outer[0] - 1 : outer[1]])
                ):
                    found.append(outer[0])
                outer, is_certain = (first, last), True
            elif last > outer[1]:
                is_certain = False
            furthest = max(furthest, last)
        return found

    def _keeps_spaces(self, text: bytes) -> bool:
        """Whether no token strips white space from `text`, which would take a token's own."""
        return not self.strips or not any(byte in text for byte in SPACES.encode())

    def _is_free(self, text: bytes, at: int) -> bool:
        """Whether only the pre-tokenizer decides at a place."""
        if not _is_between_characters(text, at):
            return False
        before, here = text[at - 1], text[at]
        if self._before is not None and here not in self._before:
            return False
        if (self.strips or self._before is not None) and before in SPACES.encode():
            return False
        first = max(at - self.around, 0)
        found = self._engine.special_token_spans(text[first : at + self.around], self._parse_special)
        return not any(start < at - first < end + self._kept_behind for start, end in found)


def _is_between_characters(text: bytes, at: int) -> bool:
    """Whether whole characters end and begin there; unknown for bytes that are not UTF-8."""
    begin = at - 1
    while begin > 0 and at - begin < 4 and text[begin] & 0xC0 == 0x80:
        begin -= 1
    lead = text[at]
    length = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    try:
        return len(text[begin:at].decode()) == len(text[at : at + length].decode()) == 1
    except UnicodeDecodeError:
        return False
