"""A long text looked through for a piece: what its tokens are, and where its characters stand.

    Tokenizer, stream -> [this file] -> reasons.py -> why_not.py

The text is looked through piece by piece, and only where the characters stand is it traced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import utf8
from ..models.bpe.merge import byte_level
from ..models.bpe.steps import merge
from ..models.bpe.text import byte_pair_text
from ..pipeline.blocks import blocks
from ..spelling import SPACE, escape_spaces
from .places import places_of, runs_of, written_form
from .reasons import Place, WhyNot
from .survey import Counter
from .trace import Totals, trace_part

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

PLACES = 100  # that are looked at; a reason comes again and again in a long text
_PIECE = 1 << 13  # bytes of the text that are looked through at a time


class PieceSearch:
    """Looks for one piece in a text: among its tokens, and where its characters stand."""

    def __init__(self, tokenizer: Tokenizer, name: str, written: str, parse_special: bool) -> None:
        self._tokenizer = tokenizer
        self._name = name
        self._written = written
        self._parse_special = parse_special
        own, alone = merge(byte_pair_text(tokenizer).word_ids.encoder, written)
        self._own = own if len(alone) == 1 else None
        self._variants = {each: written_form(tokenizer, each) for each in variants_of(name)}
        longest = max(map(len, (written, *self._variants.values())))
        self._reach = 4 * longest  # bytes, of which a character has no more
        self._token = tokenizer.vocabulary.token_to_id[written]
        self._tokens: list[int] = []
        self._spans: list[tuple[int, int]] = []
        self._count = 0
        self._places: list[Place] = []
        self._instead: set[str] = set()

    def through(self, stream: Any, add_special: bool) -> WhyNot:
        """What is found, without a reason where the piece is not among the tokens."""
        tok = self._tokenizer
        ends = [tok.bos_id if tok.add_bos else None, tok.eos_id if tok.add_eos else None]
        bos, eos = ends if add_special else (None, None)
        self._add(bos, 0, 0)
        tokens, size = int(bos is not None), 0
        for before, kept, piece in self._windows(stream):
            start = before.bytes + len(kept)
            tokens += self._add_produced(piece, tokens, start)
            size = start + len(piece)
            if not self._count:
                self._look_at(before, kept, piece)
        self._add(eos, tokens, size)
        found = WhyNot(self._name, "", self._token, self._written)
        if self._count:
            return found._replace(
                reason="produced", tokens=tuple(self._tokens), spans=tuple(self._spans), times=self._count
            )
        instead = tuple(each for each in self._variants if each in self._instead)
        return found._replace(places=tuple(self._places), instead=instead)

    def _windows(self, stream: Any) -> Iterator[tuple[Totals, bytes, bytes]]:
        """The text piece by piece, each with what comes before, and how much there is before that.

        As much of it as the searched text has, so that none stands across.
        """
        if not self._tokenizer.token_lengths.is_known:
            yield Totals(), b"", b"".join(blocks(stream, [self._tokenizer], self._parse_special))
            return
        counter = Counter(self._tokenizer, self._parse_special)
        kept: list[tuple[Totals, bytes]] = []
        for piece in blocks(stream, [self._tokenizer], self._parse_special, _PIECE):
            here = counter.totals
            yield (kept[0][0] if kept else here), b"".join(data for _, data in kept), piece
            counter.add(piece)
            kept.append((here, piece))
            while sum(len(data) for _, data in kept[1:]) >= self._reach:
                del kept[0]

    def _add_produced(self, piece: bytes, tokens: int, start: int) -> int:
        """The tokens of a part of the text, of which there are so many before; their number."""
        flags = {"add_special": False, "parse_special": self._parse_special}
        ids = self._tokenizer.encode(piece, **flags)
        if self._token in ids:
            more = len(self._tokens) < PLACES
            spans = self._tokenizer.encode_with_offsets(piece, **flags)[1] if more else [(0, 0)] * len(ids)
            for number, (token, span) in enumerate(zip(ids, spans)):
                if token == self._token:
                    self._add(token, tokens + number, start + span[0], start + span[1])
        return len(ids)

    def _add(self, token: int | None, number: int, start: int, end: int | None = None) -> None:
        if token != self._token:
            return
        self._count += 1
        if len(self._tokens) < PLACES:
            self._tokens.append(number)
            self._spans.append((start, start if end is None else end))

    def _look_at(self, before: Totals, kept: bytes, piece: bytes) -> None:
        """Trace a part of the text if what is looked for stands there."""
        data = kept + piece
        wanted = [] if self._places else [v for v in self._variants if v not in self._instead]
        if len(self._places) == PLACES or not self._may_stand_in(data, wanted):
            return
        found = trace_part(
            self._tokenizer, data, self._parse_special, bos=False, eos=False, add_special=False
        )
        runs = list(runs_of(self._tokenizer, found))
        for place in places_of(self._tokenizer, found, runs, self._written, self._own):
            if place.end > len(kept) and len(self._places) < PLACES:
                self._places.append(_counted_on(place, before))
        self._instead.update(v for v in wanted if any(self._variants[v] in run.text for run in runs))

    def _may_stand_in(self, data: bytes, variants: list[str]) -> bool:
        if not self._tokenizer.token_lengths.is_known:
            return True
        entry = self._tokenizer.vocabulary.pre_tokenizer
        text = utf8.decode(data)
        text = escape_spaces(text) if entry.escape_whitespaces else text
        text = byte_level(text) if entry.byte_encode else text
        return self._written in text or any(self._variants[each] in text for each in variants)


def _counted_on(place: Place, before: Totals) -> Place:
    """A place in a part of the text as one in the text."""
    at = before.bytes
    return place._replace(
        start=at + place.start,
        end=at + place.end,
        word=None if place.word is None else before.words + place.word,
        boundary=None if place.boundary is None else at + place.boundary,
        cuts=tuple(cut._replace(start=at + cut.start, end=at + cut.end) for cut in place.cuts),
    )


def variants_of(piece: str) -> list[str]:
    """What may have been meant: with or without a leading space, or in other letters."""
    spaced = piece[1:] if piece[:1] in (" ", "Ġ", SPACE, "") else " " + piece
    letters = [piece.lower(), piece.upper(), piece.capitalize()]
    return list(dict.fromkeys(each for each in (spaced, *letters) if each not in ("", piece)))
