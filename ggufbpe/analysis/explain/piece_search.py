"""Searches a long text for a piece: among its tokens, and where its characters stand.

The text is searched chunk by chunk, and traced only where the characters stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..._util import utf8
from ..._util.spelling import SPACE, escape_spaces
from ...models.bpe.merge import byte_level
from ...models.tracers.trace_types import Tracer
from ...tokenizer.chunking import chunks_of_stream, read_all
from ...tokenizer.token_offsets import chunks_add_up
from ...tokenizer.trace import Totals, Trace, trace_part, traced_parts
from .piece_places import Sought, find_places, symbol_runs
from .reasons import Place, WhyNot
from .survey import Counter

if TYPE_CHECKING:
    from ...tokenizer import Tokenizer

PLACES = 100  # looked at; in a long text, reasons repeat
_PIECE = 1 << 13  # bytes of the text searched at a time


class PieceSearch:
    """Looks for one piece in a text: among its tokens, and where its characters stand."""

    def __init__(
        self, tokenizer: Tokenizer, tracer: Tracer, name: str, token: int, parse_special: bool
    ) -> None:
        self._tokenizer = tokenizer
        self._tracer = tracer
        self._name = name
        self._parse_special = parse_special
        looked_up = tracer.looked_up(token)
        alone = tracer.alone(looked_up)
        own = alone.merges if alone is not None and len(alone.symbols) == 1 else None
        self._piece = Sought(token, looked_up, own)
        self._written = tracer.by_position(looked_up)
        self._variants = {each: _variant_written(tokenizer, tracer, each) for each in likely_pieces(name)}
        longest = max(map(len, (self._written, *self._variants.values())))
        self._reach = 4 * longest  # a character has at most 4 bytes
        self._token = token
        self._tokens: list[int] = []
        self._spans: list[tuple[int, int]] = []
        self._count = 0
        self._places: list[Place] = []
        self._instead: set[str] = set()

    def through(self, stream: Any, add_special: bool) -> WhyNot:
        """The findings, without a reason if the piece is not among the tokens."""
        if self._tracer.stages:
            self._through_text(stream, add_special)
        else:
            self._through_words(read_all(stream), add_special)
        answer = WhyNot(self._name, "", self._token, self._tokenizer.id_to_token(self._token))
        if self._count:
            return answer._replace(
                reason="produced", tokens=tuple(self._tokens), spans=tuple(self._spans), times=self._count
            )
        instead = tuple(each for each in self._variants if each in self._instead)
        return answer._replace(places=tuple(self._places), instead=instead)

    def _through_text(self, stream: Any, add_special: bool) -> None:
        """Search a text that is cut by patterns."""
        before_all, behind_all = self._tokenizer.vocabulary.added if add_special else ([], [])
        for number, token in enumerate(before_all):
            self._add(token, number, 0)
        tokens, size = len(before_all), 0
        for before, kept, piece in self._windows(stream):
            start = before.bytes + len(kept)
            tokens += self._add_produced(piece, tokens, start)
            size = start + len(piece)
            if not self._count:
                self._look_at(before, kept, piece)
        for number, token in enumerate(behind_all):
            self._add(token, tokens + number, size)

    def _through_words(self, text: bytes, add_special: bool) -> None:
        """Search a text that is traced word by word."""
        flags = {"add_special": add_special, "parse_special": self._parse_special}
        times = self._tokenizer.encode(text, **flags).count(self._token)
        end = 0  # of what was looked at, in bytes
        for before, trace in traced_parts(
            self._tokenizer,
            text,
            **flags,
            tracer=self._tracer,
            is_enough=lambda size: size.bytes >= _PIECE,
            kept=0 if times else self._reach,
        ):
            if times:
                for number, token in enumerate(trace.tokens):
                    if token.id == self._token:
                        self._add(token.id, before.tokens + number, token.start, token.end)
            else:
                self._look_in(before, trace, end)
                ends = [each.end for each in trace.fragments if each.kind != "text"]
                end = max([*ends, *(word.end for word in trace.words[-1:])], default=end)
            if len(self._tokens if times else self._places) == PLACES:
                break
        self._count = times

    def _windows(self, stream: Any) -> Iterator[tuple[Totals, bytes, bytes]]:
        """The text chunk by chunk, each with the text kept from before it and the totals before that.

        At least `_reach` bytes are kept, so that no piece is missed across chunks.
        """
        if not chunks_add_up(self._tokenizer):
            yield Totals(), b"", read_all(stream)
            return
        counter = Counter(self._tokenizer, self._parse_special)
        kept: list[tuple[Totals, bytes]] = []
        for piece in chunks_of_stream(stream, [self._tokenizer], self._parse_special, _PIECE):
            here = counter.totals
            yield (kept[0][0] if kept else here), b"".join(data for _, data in kept), piece
            counter.add(piece)
            kept.append((here, piece))
            while sum(len(data) for _, data in kept[1:]) >= self._reach:
                del kept[0]

    def _add_produced(self, piece: bytes, tokens: int, start: int) -> int:
        """Record the tokens of a part of the text that follows `tokens` others; returns how many it has."""
        special = self._parse_special
        ids = self._tokenizer.encode(piece, add_special=False, parse_special=special)
        if self._token in ids:
            more = len(self._tokens) < PLACES
            spans: Sequence[tuple[int, int]] = [(0, 0)] * len(ids)
            if more:
                _, spans = self._tokenizer.encode_with_offsets(
                    piece, add_special=False, parse_special=special
                )
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
        """Trace a part of the text if the piece may stand there."""
        data = kept + piece
        wanted = [] if self._places else [v for v in self._variants if v not in self._instead]
        if len(self._places) == PLACES or not self._may_stand_in(data, wanted):
            return
        trace = trace_part(self._tokenizer, data, self._parse_special, add_special=False, tracer=self._tracer)
        self._look_in(before, trace, len(kept))

    def _look_in(self, before: Totals, trace: Trace, seen: int) -> None:
        """Record the places in a part of the text, of which `seen` bytes were looked at before."""
        wanted = [] if self._places else [v for v in self._variants if v not in self._instead]
        runs = list(symbol_runs(self._tracer, trace))
        for place in find_places(self._tokenizer, self._tracer, trace, runs, self._piece):
            if place.end > seen:
                self._places.append(_counted_on(place, before))
            if len(self._places) == PLACES:
                break
        self._instead.update(v for v in wanted if any(self._variants[v] in run.text for run in runs))

    def _may_stand_in(self, data: bytes, variants: list[str]) -> bool:
        if not chunks_add_up(self._tokenizer):
            return True
        entry = self._tokenizer.vocabulary.pre_tokenizer
        text = utf8.decode(data, self._tokenizer.vocabulary.strict_utf8)
        text = escape_spaces(text) if entry.escape_whitespaces else text
        text = byte_level(text) if entry.byte_encode else text
        return self._written in text or any(self._variants[each] in text for each in variants)


def _counted_on(place: Place, before: Totals) -> Place:
    """A place in a part of the text, with positions in the whole text."""
    at = before.bytes
    return place._replace(
        start=at + place.start,
        end=at + place.end,
        word=None if place.word is None else before.words + place.word,
        boundary=None if place.boundary is None else at + place.boundary,
        cuts=tuple(cut._replace(start=at + cut.start, end=at + cut.end) for cut in place.cuts),
    )


def _variant_written(tokenizer: Tokenizer, tracer: Tracer, piece: str) -> str:
    """A likely piece as it is looked up: as the token that it is, if it is one."""
    token = token_meant(tokenizer, tracer, piece)
    return tracer.by_position(tracer.written(piece) if token is None else tracer.looked_up(token))


def token_meant(tokenizer: Tokenizer, tracer: Tracer, piece: str) -> int | None:
    """The token that `piece` means: text first, then the vocabulary's own form."""
    ids = map(tokenizer.vocabulary.token_to_id.get, tracer.spellings(piece))
    return next((token for token in ids if token is not None), None)


def likely_pieces(piece: str) -> list[str]:
    """Pieces that may have been meant: with or without a leading space, or in other case."""
    spaced = piece[1:] if piece[:1] in (" ", "Ġ", SPACE, "") else " " + piece
    letters = [piece.lower(), piece.upper(), piece.capitalize()]
    return list(dict.fromkeys(each for each in (spaced, *letters) if each not in ("", piece)))
