"""Why a piece that is in the vocabulary was not produced: the first step that made it impossible.

    trace.py -> [this file] -> `ggufbpe explain --why-not`

The piece is looked for in the text as merging sees it. At each place where it stands, one step is the reason:
a special token or a word boundary cuts it, the word was taken whole, a merge took a part of it or it became a
part of a longer token, or the merges do not lead to it at all.

That a piece forms is decided within it: as long as no merge takes a part of it together with what is outside,
its own symbols merge as they would alone. So the merges of the piece alone are the ones to compare with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import utf8
from ..models.bpe.merge import BYTE_CHARS
from ..models.bpe.text import byte_pair_text
from ..utf8 import Offsets, byte_length
from ..vocab import BYTE, CONTROL, UNKNOWN
from .trace import Cut, Merge, Trace, Word, merge

if TYPE_CHECKING:
    from ..tokenizer import Text, Tokenizer

_PLACES = 100  # that are looked at; a reason comes again and again in a long text


class Place(NamedTuple):
    """One place where the piece stands, in bytes of the text, and the step that is the reason there.

    `reason`, and what is given with it:
    - "special": a special token, `token`, takes a part of it
    - "boundary": the stage of `cuts` parts the text at `boundary`; the cuts are of the pieces before and after
    - "whole": the word, `word`, was taken as one token
    - "part": `merge`, in `word`, took a part of it before `needed`, of its own merges, had its turn
    - "longer": the piece was made, and `merge` made it a part of a longer token
    - "merges": its own merges end elsewhere: see `WhyNot.alone`
    - "produced": it is a symbol there
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


class WhyNot(NamedTuple):
    """The answer. `reason` is that of the first place, or

    - "produced": the piece is among the tokens (`tokens` has their numbers)
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
    instead: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()  # the symbols that the piece becomes when merged by itself
    own: tuple[Merge, ...] = ()  # the merges that do that
    makers: tuple[Merge, ...] = ()  # the merges whose result would be the piece


def why_not(
    tokenizer: Tokenizer,
    text: Text,
    piece: str | bytes,
    *,
    add_special: bool = True,
    parse_special: bool = True,
    trace: Trace | None = None,
) -> WhyNot:
    """Why `piece` is not among the tokens of `text`; where it is, that.

    `piece` is text (" world") or the token as the vocabulary has it ("Ġworld"). `trace`, if it is at hand, is
    that of the text. `ValueError` for an empty piece.

    >>> tok = Tokenizer.from_gguf("model.gguf")                  # doctest: +SKIP
    >>> why_not(tok, "Hello world", "Hell").reason               # doctest: +SKIP
    'part'
    """
    name = piece if isinstance(piece, str) else piece.decode("utf-8", "surrogateescape")
    if not name:
        raise ValueError("the piece is empty: give the text of a token")
    found = trace or tokenizer.trace(text, add_special=add_special, parse_special=parse_special)
    written = _resolved(tokenizer, name)
    if written is None:
        near = [other for other in _variants(name) if _resolved(tokenizer, other)]
        return WhyNot(name, "unknown", instead=tuple(near))
    token = tokenizer.vocabulary.token_to_id[written]
    answer = WhyNot(name, "", token, written)
    numbers = tuple(number for number, each in enumerate(found.tokens) if each.id == token)
    if numbers:
        return answer._replace(reason="produced", tokens=numbers)
    return _explained(tokenizer, found, answer)


def to_json(answer: WhyNot) -> dict[str, Any]:
    """`answer` as dictionaries, lists, strings and numbers; without what does not apply."""

    def plain(value: Any) -> Any:
        if hasattr(value, "_asdict"):
            return {key: plain(item) for key, item in value._asdict().items() if item not in (None, ())}
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
        return text.replace(" ", "▁") if entry.escape_whitespaces else text
    return text.encode("utf-8", "surrogateescape").decode("latin-1").translate(BYTE_CHARS)


def _variants(piece: str) -> list[str]:
    """What may have been meant: with or without a leading space, or in other letters."""
    spaced = piece[1:] if piece[:1] in " Ġ▁" else " " + piece
    letters = [piece.lower(), piece.upper(), piece.capitalize()]
    return list(dict.fromkeys(each for each in (spaced, *letters) if each not in ("", piece)))


def _explained(tokenizer: Tokenizer, found: Trace, answer: WhyNot) -> WhyNot:
    """The reason of a piece that is not among the tokens."""
    assert answer.token is not None
    attributes = tokenizer.vocabulary.attributes[answer.token]
    own, alone = merge(byte_pair_text(tokenizer).word_ids.encoder, answer.written)
    places = tuple(_places(tokenizer, found, answer.written, own if len(alone) == 1 else None))
    ends = {tokenizer.bos_id, tokenizer.eos_id}
    if attributes & BYTE and not places:
        return answer._replace(reason="byte")
    if attributes & (CONTROL | UNKNOWN) and not found.parse_special and places:
        return answer._replace(reason="not_parsed", places=places)
    if not places and answer.token in ends:
        return answer._replace(reason="not_added")
    if not places:
        variants = [v for v in _variants(answer.piece) if _occurs(tokenizer, found, v)]
        return answer._replace(reason="absent", instead=tuple(variants))
    makers = tuple(_makers(tokenizer, answer.written))
    reason = places[0].reason
    return answer._replace(reason=reason, places=places, alone=tuple(alone), own=own, makers=makers)


def _makers(tokenizer: Tokenizer, written: str) -> Iterator[Merge]:
    """The merges whose result is `written`."""
    for cut in range(1, len(written)):
        left, right = written[:cut], written[cut:]
        rank = byte_pair_text(tokenizer).word_ids.encoder.rank(left, right)
        if rank is not None:
            yield Merge(rank, left, right, 0)


def _occurs(tokenizer: Tokenizer, found: Trace, piece: str) -> bool:
    written = _written(tokenizer, piece)
    return any(written in run.text for run in _runs(tokenizer, found))


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
    tokenizer: Tokenizer, found: Trace, written: str, own: tuple[Merge, ...] | None
) -> Iterator[Place]:
    """The first places where `written` stands, each with its reason; `own` are the merges that make it."""
    count = 0
    for run in _runs(tokenizer, found):
        at = run.text.find(written)
        unit = 0
        while at >= 0 and count < _PLACES:
            while run.units[unit][1] <= at:
                unit += 1
            last = unit
            while run.units[last][1] < at + len(written):
                last += 1
            yield _place(found, run, (unit, last), (at, at + len(written)), own)
            count += 1
            at = run.text.find(written, at + 1)


def _place(
    found: Trace, run: _Run, units: tuple[int, int], span: tuple[int, int], own: tuple[Merge, ...] | None
) -> Place:
    touched = run.units[units[0] : units[1] + 1]
    start = _byte_at(found, touched[0], span[0], False)
    end = _byte_at(found, touched[-1], span[1], True)
    for _, _, word, fragment in touched:
        if word is None:
            return Place("special", start, end, token=found.fragments[fragment].token)
    (first, _, word, _), *others = touched
    assert word is not None
    if others:
        return _cut_by(found, word, start, end)
    return _in_word(found.words[word], (span[0] - first, span[1] - first), own)._replace(
        start=start, end=end, word=word
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
            return Place("boundary", start, end, word, boundary=before.end, cuts=(left, right))
    raise AssertionError("two words that no stage parts")


def _in_word(word: Word, span: tuple[int, int], own: tuple[Merge, ...] | None) -> Place:
    """The reason of a piece at the characters `span` of the word as it is written."""
    if word.whole is not None:
        return Place("whole", 0, 0)
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
