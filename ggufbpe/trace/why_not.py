"""Why a piece that is in the vocabulary was not produced: the first step that made it impossible.

    trace.py -> [this file] -> `ggufbpe explain --why-not`

The piece is looked for in the text as merging sees it. At each place where it stands, one step is the reason:
a special token or a word boundary cuts it, the word was taken whole, a merge took a part of it or it became a
part of a longer token, or the merges do not lead to it at all.

That a piece forms is decided within it: as long as no merge takes a part of it together with what is outside,
its own symbols merge as they would alone. So the merges of the piece alone are the ones to compare with.

A long text is looked through piece by piece, and only where the characters stand is it traced.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from .. import utf8
from ..models.bpe.merge import BYTE_CHARS, byte_level
from ..models.bpe.steps import merge
from ..models.bpe.text import byte_pair_text
from ..models.steps import Cut, Merge, Word
from ..pipeline.blocks import blocks
from ..spelling import SPACE, escape_spaces
from ..utf8 import Offsets, byte_length
from ..vocab import BYTE, CONTROL, UNKNOWN
from .survey import Counter
from .trace import Totals, Trace, trace_part

if TYPE_CHECKING:
    from ..tokenizer import Text, Tokenizer

PLACES = 100  # that are looked at; a reason comes again and again in a long text
_PIECE = 1 << 13  # bytes of the text that are looked through at a time
_QUOTED = 200  # bytes of a piece that a stage made


class Place(NamedTuple):
    """One place where the piece stands, in bytes of the text, and the step that is the reason there.

    `reason`, and what is given with it:
    - "special": a special token, `token`, takes a part of it
    - "boundary": the stage of `cuts` parts the text at `boundary`; the cuts are of the pieces before and after, as far
      as they are near, and `sides` is what these have there
    - "whole": the word, `word`, was taken as one token, by the flag `whole`
    - "part": `merge`, in `word`, took a part of it before `needed`, of its own merges, had its turn
    - "longer": the piece was made, and `merge` made it a part of a longer token
    - "merges": its own merges end elsewhere: see `WhyNot.alone`
    - "produced": it is a symbol there

    `text` is that of the word as it was split, or of the special token.
    """

    reason: str
    start: int
    end: int
    word: int | None = None
    token: int | None = None
    boundary: int | None = None
    cuts: tuple[Cut, ...] = ()
    merge: Merge | None = None
    needed: Merge | None = None
    text: str = ""
    whole: str | None = None
    sides: tuple[bytes, ...] = ()


class WhyNot(NamedTuple):
    """The answer. `reason` is that of the first place, or

    - "produced": the piece is among the tokens, so many `times` (`tokens` has the numbers, `spans` the bytes of
      the first ones)
    - "unknown": no such token is in the vocabulary
    - "not_parsed": it is a special token, and these are not parsed
    - "not_added": it is BOS or EOS, and not in the text
    - "byte": it stands for a byte of symbols that are no tokens, and no symbol here needs it
    - "absent": it does not stand in the text; `instead` has what does: the same with or without a leading space,
      or in other letters
    """

    piece: str  # as it was asked for
    reason: str
    token: int | None = None
    written: str = ""  # the text of the token as it stands in the vocabulary
    places: tuple[Place, ...] = ()
    tokens: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    times: int | None = None
    instead: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()  # the symbols that the piece becomes when merged by itself
    own: tuple[Merge, ...] = ()  # the merges that do that
    makers: tuple[Merge, ...] = ()  # the merges whose result would be the piece


def why_not(
    tokenizer: Tokenizer,
    text: Text | IO[bytes],
    piece: str | bytes,
    *,
    add_special: bool = True,
    parse_special: bool = True,
) -> WhyNot:
    """Why `piece` is not among the tokens of `text`, which may be a binary stream; where it is, that.

    `piece` is text (" world") or the token as the vocabulary has it ("Ġworld"). Of tokens and places the first 100 are
    given. `ValueError` for an empty piece.

    >>> tok = Tokenizer.from_gguf("model.gguf")                  # doctest: +SKIP
    >>> why_not(tok, "Hello world", "Hell").reason               # doctest: +SKIP
    'part'
    """
    name = piece if isinstance(piece, str) else piece.decode("utf-8", "surrogateescape")
    if not name:
        raise ValueError("the piece is empty: give the text of a token")
    written = _resolved(tokenizer, name)
    if written is None:
        near = [other for other in _variants(name) if _resolved(tokenizer, other)]
        return WhyNot(name, "unknown", instead=tuple(near))
    search = _Search(tokenizer, name, written, parse_special)
    answer = search.through(_stream(tokenizer, text), add_special)
    return answer if answer.times else _explained(tokenizer, answer, parse_special)


def _stream(tokenizer: Tokenizer, text: Text | IO[bytes]) -> Any:
    if hasattr(text, "read"):
        return text
    source = tokenizer.pipeline.source(text)
    return io.BytesIO(source if isinstance(source, bytes) else source.encode())


def to_json(answer: WhyNot) -> dict[str, Any]:
    """`answer` as dictionaries, lists, strings and numbers; without what does not apply."""

    def plain(value: Any) -> Any:
        if hasattr(value, "_asdict"):
            return {key: plain(item) for key, item in value._asdict().items() if item not in (None, (), "")}
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return [plain(item) for item in value] if isinstance(value, tuple) else value

    return {"piece": answer.piece, "reason": answer.reason, **plain(answer)}


def _resolved(tokenizer: Tokenizer, piece: str) -> str | None:
    """The token that `piece` means, as the vocabulary has it: text first, then the vocabulary's own form."""
    forms = [_written(tokenizer, piece), piece, piece + tokenizer.vocabulary.tokenizer_model.hidden_suffix]
    return next((form for form in forms if form in tokenizer.vocabulary.token_to_id), None)


def _written(tokenizer: Tokenizer, text: str) -> str:
    """`text` as merging sees it."""
    entry = tokenizer.vocabulary.pre_tokenizer
    if not entry.byte_encode:
        return escape_spaces(text) if entry.escape_whitespaces else text
    return text.encode("utf-8", "surrogateescape").decode("latin-1").translate(BYTE_CHARS)


def _variants(piece: str) -> list[str]:
    """What may have been meant: with or without a leading space, or in other letters."""
    spaced = piece[1:] if piece[:1] in (" ", "Ġ", SPACE, "") else " " + piece
    letters = [piece.lower(), piece.upper(), piece.capitalize()]
    return list(dict.fromkeys(each for each in (spaced, *letters) if each not in ("", piece)))


def _explained(tokenizer: Tokenizer, answer: WhyNot, parse_special: bool) -> WhyNot:
    """The reason of a piece that is not among the tokens."""
    assert answer.token is not None
    attributes = tokenizer.vocabulary.attributes[answer.token]
    places = answer.places
    ends = {tokenizer.bos_id, tokenizer.eos_id}
    if attributes & BYTE and not places:
        return answer._replace(reason="byte", instead=())
    if attributes & (CONTROL | UNKNOWN) and not parse_special and places:
        return answer._replace(reason="not_parsed")
    if not places and answer.token in ends:
        return answer._replace(reason="not_added", instead=())
    if not places:
        return answer._replace(reason="absent")
    own, alone = merge(byte_pair_text(tokenizer).word_ids.encoder, answer.written)
    makers = tuple(_makers(tokenizer, answer.written))
    return answer._replace(reason=places[0].reason, instead=(), alone=tuple(alone), own=own, makers=makers)


def _makers(tokenizer: Tokenizer, written: str) -> Iterator[Merge]:
    """The merges whose result is `written`."""
    for cut in range(1, len(written)):
        left, right = written[:cut], written[cut:]
        rank = byte_pair_text(tokenizer).word_ids.encoder.rank(left, right)
        if rank is not None:
            yield Merge(rank, left, right, 0)


# ---- through the text -----------------------------------------------------------------------------------


class _Search:
    """Looks for one piece in a text: among its tokens, and where its characters stand."""

    def __init__(self, tokenizer: Tokenizer, name: str, written: str, parse_special: bool) -> None:
        self._tokenizer = tokenizer
        self._name = name
        self._written = written
        self._parse_special = parse_special
        own, alone = merge(byte_pair_text(tokenizer).word_ids.encoder, written)
        self._own = own if len(alone) == 1 else None
        self._variants = {each: _written(tokenizer, each) for each in _variants(name)}
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
        runs = list(_runs(self._tokenizer, found))
        for place in _places(self._tokenizer, found, runs, self._written, self._own):
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


# ---- where the piece stands -----------------------------------------------------------------------------


class _Run(NamedTuple):
    """Text as merging sees it, without a gap. A unit of it is a word, or a fragment that is one token."""

    text: str
    units: list[tuple[int, int, int | None, int]]  # (start, end, word or None, fragment)


def _runs(tokenizer: Tokenizer, found: Trace) -> Iterator[_Run]:
    """The runs of the text; what is dropped ends one."""
    words: dict[int, list[int]] = {}
    for number, word in enumerate(found.words):
        words.setdefault(word.fragment, []).append(number)
    parts: list[str] = []
    units: list[tuple[int, int, int | None, int]] = []
    end = 0
    for index, fragment in enumerate(found.fragments):
        if fragment.kind == "dropped":
            yield _Run("".join(parts), units)
            parts, units, end = [], [], 0
        elif fragment.kind == "text":
            for number in words[index]:
                written = found.words[number].written
                units.append((end, end + len(written), number, index))
                parts.append(written)
                end += len(written)
        elif fragment.start < fragment.end:
            data = found.text[fragment.start : fragment.end]
            written = _written(tokenizer, data.decode("utf-8", "replace"))
            units.append((end, end + len(written), None, index))
            parts.append(written)
            end += len(written)
    yield _Run("".join(parts), units)


def _places(
    tokenizer: Tokenizer, found: Trace, runs: list[_Run], written: str, own: tuple[Merge, ...] | None
) -> Iterator[Place]:
    """The places where `written` stands, each with its reason; `own` are the merges that make it."""
    for run in runs:
        at = run.text.find(written)
        unit = 0
        while at >= 0:
            while run.units[unit][1] <= at:
                unit += 1
            last = unit
            while run.units[last][1] < at + len(written):
                last += 1
            yield _place(tokenizer, found, run, (unit, last), (at, at + len(written)), own)
            at = run.text.find(written, at + 1)


def _place(
    tokenizer: Tokenizer,
    found: Trace,
    run: _Run,
    units: tuple[int, int],
    span: tuple[int, int],
    own: tuple[Merge, ...] | None,
) -> Place:
    touched = run.units[units[0] : units[1] + 1]
    start = _byte_at(found, touched[0], span[0], False)
    end = _byte_at(found, touched[-1], span[1], True)
    for _, _, word, fragment in touched:
        if word is None:
            token = found.fragments[fragment].token
            text = "" if token is None else tokenizer.id_to_token(token)
            return Place("special", start, end, token=token, text=text)
    (first, _, word, _), *others = touched
    assert word is not None
    if others:
        return _cut_by(found, word, start, end)
    return _in_word(found.words[word], (span[0] - first, span[1] - first), own)._replace(
        start=start, end=end, word=word, text=found.words[word].text
    )


def _byte_at(found: Trace, unit: tuple[int, int, int | None, int], at: int, is_end: bool) -> int:
    """The byte of the text at the position `at` of a run, which lies in `unit`."""
    first, _, number, index = unit
    if number is None:
        return min(found.fragments[index].start + at - first, found.fragments[index].end)
    word = found.words[number]
    ends = utf8.char_ends(found.text[word.start : word.end])
    offsets = Offsets(word.text, [word.start, *(word.start + end for end in ends)])
    inside = at - first  # characters, which are bytes where the word is written in the byte-level alphabet
    if word.written == word.text:
        inside = byte_length(word.text[:inside])
    return offsets.end(inside) if is_end else offsets.start(inside)


def _cut_by(found: Trace, word: int, start: int, end: int) -> Place:
    """The boundary between `word` and the next: the first stage that made it."""
    before, after = found.words[word], found.words[word + 1]
    for left, right in zip(before.cuts, after.cuts):
        if left.end <= right.start:
            sides = (
                _end_of(found.text[left.start : left.end]),
                _beginning_of(found.text[right.start : right.end]),
            )
            return Place("boundary", start, end, word, boundary=before.end, cuts=(left, right), sides=sides)
    raise AssertionError("two words that no stage parts")


def _end_of(data: bytes) -> bytes:
    """The end of a long piece, and all of another."""
    at = len(data) - _QUOTED
    while at > 0 and data[at] & 0xC0 == 0x80:  # within a character
        at += 1
    return data if at <= 0 else "…".encode() + data[at:]


def _beginning_of(data: bytes) -> bytes:
    at = _QUOTED
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return data[:at] + "…".encode() * (at < len(data))


def _in_word(word: Word, span: tuple[int, int], own: tuple[Merge, ...] | None) -> Place:
    """The reason of a piece at the characters `span` of the word as it is written."""
    if word.whole is not None:
        return Place("whole", 0, 0, whole=word.whole)
    if own is None:
        return Place("merges", 0, 0)
    start, end = span
    done = 0  # of the piece's own merges
    for step in word.merges:
        first, last = step.position, step.position + len(step.left) + len(step.right)
        if last <= start or first >= end:
            continue
        if start <= first and last <= end:
            done += 1
        elif done < len(own):
            return Place("part", 0, 0, merge=step, needed=own[done])
        else:
            return Place("longer", 0, 0, merge=step)
    return Place("produced", 0, 0)
