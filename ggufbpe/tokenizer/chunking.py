"""Cuts a long text into blocks whose ids, joined, are those of the whole text.

A text may be cut between two characters if the pre-tokenizer ends a word there whatever else the text is
(`Engine.find_split_point`: no pattern matches or looks across), and if no special token extends across the
cut or strips white space at it. The nearby text decides that for the whole text: no id changes.

Models without patterns have their own cuts, after which all text is encoded with `continues`: SPM
before spaces, after a character that no token has before one; WPM at white space and characters that stand alone; RWKV
and PLaMo-2 between bytes that no token has side by side; PLaMo-3 before two spaces.

A text without a cut (a gigabyte of one letter) is one block. So is every text in the reference engine, which does
not know the cuts; of a DNA model, whose k-mers are counted from the beginning of a sequence; and of UGM, whose sums of
scores from the beginning decide once they are so large that they are rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING, Any

from ..models.vocabulary import LSTRIP, RSTRIP
from .special_tokens import SPACES

if TYPE_CHECKING:
    from . import Tokenizer

BLOCK = 1 << 16  # bytes
# bytes; a longer text in memory is encoded in blocks, since a str or its ids take more memory
LONG_TEXT = 1 << 20


def blocks(
    stream: Any,
    tokenizers: Iterable[Tokenizer],
    parse_special: bool = True,
    size: int = BLOCK,
    *,
    continues: bool = False,
    most: float = inf,
) -> Iterator[bytes]:
    """The text of a binary stream in blocks of at least `size` bytes, mostly little more; none for an empty one.

    No id and no word of any of the `tokenizers` changes. `continues` says that all blocks but the first will be
    encoded with it; otherwise, the text of a model without patterns is one block. Reading ends where more than `most`
    bytes have no cut; they are the last block then. `TypeError` for a stream of str.

    >>> import io
    >>> tok = Tokenizer.from_gguf("gpt2.gguf")                               # doctest: +SKIP
    >>> list(blocks(io.BytesIO(b"Hello worlds"), [tok], size=3))             # doctest: +SKIP
    [b'Hello', b' worlds']
    """
    rest = read(stream, size)
    if len(rest) < size:  # no cut is needed
        yield from [rest] if rest else ()
        return
    places = [SplitPlaces.of(tokenizer, parse_special, continues) for tokenizer in tokenizers]
    around = max((each.around for each in places), default=0)
    searched = size
    wanted = size + size // 4 + around
    while True:
        rest += read(stream, wanted - len(rest))
        is_end = len(rest) < wanted
        last = len(rest) - (0 if is_end else around)
        at = min(searched, last)
        while at < last and (found := max((each.next(rest, at) for each in places), default=at)) != at:
            at = found
        if at < last:
            yield rest[:at]
            rest, searched, wanted = rest[at:], size, size + size // 4 + around
        elif is_end:
            if rest:
                yield rest
            return
        elif len(rest) > most:
            yield rest
            return
        else:
            searched, wanted = last, 2 * wanted


def read(stream: Any, size: int) -> bytes:
    """`size` bytes, fewer only at the end: pipes and decompressors may give less at a time."""
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(size)):
        if isinstance(part, str):
            raise TypeError("the stream gives str; open it in binary mode")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def added_ids(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The tokens that llama-tokenize adds before and after a text; if the model wants no BOS, no EOS either."""
    return tokenizer.vocabulary.added if tokenizer.add_bos else ([], [])


class SplitPlaces:
    """Where one tokenizer allows cuts in a text. `around` is how many bytes on either side of a cut are looked at."""

    @classmethod
    def of(cls, tokenizer: Tokenizer, parse_special: bool, continues: bool) -> SplitPlaces:
        """Return the places of a tokenizer, which are made once: the special tokens are read for them."""
        known = tokenizer._split_places
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
        # After a special token a space is put before the text, which then continues nothing.
        self._kept_behind = self.strips or (not model.has_pre_tokenizer and vocabulary.add_space_prefix)
        # Text between white space is split separately there, so a cut must be before white space.
        spaces = SPACES[1:] if entry.escape_whitespaces else SPACES
        self._before = spaces.encode() if model.drops_white_space else None

    def next(self, text: bytes, start: int) -> int:
        """The first cut at or after `start`; the length of the text if there is none."""
        at = start
        while (at := self._engine.find_split_point(text, at, self._continues)) < len(text):
            if self._is_free(text, at):
                break
            at += 1
        return at

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
