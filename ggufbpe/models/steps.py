"""The steps from plain text to ids as plain data: changes, cuts, merges, matches, paths, symbols.

    a room of `models/` -> [this file] -> trace/, views/

Code that looks at steps knows these kinds and no model. `start` and `end` are bytes of the text. Inside a word there
is a `position`: for a merge it counts the symbols that the word has before merging, for matches and edges the bytes of
the UTF-8 of `Word.written`.

A word is made into tokens in one of three ways: by merges, by the longest matches, or by the best path through a
lattice. A model that keeps a table of the best sum for each position reports it as a lattice.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from math import fsum
from typing import NamedTuple, Protocol, runtime_checkable

from ..errors import printable


class TracedStage(NamedTuple):
    """One stage of the pre-tokenizer: the alternatives of its pattern, in the order in which they are tried.

    As llama.cpp writes them; where there is a `step`, a function of split.py, the work is done in another way. Those
    after the first `in_pattern` are not in the pattern that `list-pre` shows: llama.cpp's splitter adds them.
    """

    alternatives: tuple[str, ...]
    step: str | None
    in_pattern: int


class Fragment(NamedTuple):
    """A part of the text before it is split.

    `kind` is "text", "special" (a special token), "dna" (a tag or k-mer of a DNA model), "dropped" (white space
    that has no token) or, at the ends, "bos", "eos" and "sep". `token` is the id of the kinds that have one.
    """

    kind: str
    start: int
    end: int
    token: int | None = None
    dropped_by: int | None = None  # the special token that strips the white space; None: no token has any


class Change(NamedTuple):
    """What normalization turned a part of the text into, and why.

    `reasons` are of these, in the order in which they acted:
    - "space_prefix": a space goes before the fragment (`start` is `end`)
    - "escaped_space": a space is written as U+2581
    - "extra_white_space": runs of spaces become one, and none stay at the ends
    - "white_space": any white space becomes a space
    - "accents": a character becomes the first one of its decomposition (NFD); a mark is dropped
    - "lower_case": a letter becomes lower case
    - "control": a control character, U+0000 or U+FFFD is dropped
    - "alone": punctuation or a CJK character is a word of its own, with spaces around it
    - "charsmap": the model's precompiled map replaces it
    - "not_utf8": a byte that is not UTF-8 becomes U+FFFD; PLaMo also decodes overlong forms of characters
    - "left_out": PLaMo does not look at a byte order mark in front, or at U+EE00
    """

    start: int
    end: int
    text: bytes
    became: str
    reasons: tuple[str, ...]


class Cut(NamedTuple):
    """The piece in which a word was after a stage, and the alternative that took it; None if none did."""

    stage: int
    alternative: int | None
    start: int
    end: int


class Merge(NamedTuple):
    """`left` and `right` become one symbol; `position` is where `left` begins, in symbols before merging.

    The lowest rank comes first. Where tokens have scores, `score` is that of the token made, and the highest is rank 0.
    """

    rank: int
    left: str
    right: str
    position: int
    score: float | None = None


class TriedToken(NamedTuple):
    """A token at a position of a word, over `length` bytes."""

    token: int
    text: str
    length: int


class Match(NamedTuple):
    """All tokens at a position, the shortest first; the last one is `taken`, None where there is none.

    Some token agrees with the text for `reach` bytes from the position: no longer one was possible.
    """

    position: int
    tried: tuple[TriedToken, ...]
    taken: int | None
    reach: int


class Edge(NamedTuple):
    """One way on in a lattice: a token over `length` bytes. The unknown token's has the text that it stands for.

    None for the token: a character as the tokens of its bytes.
    """

    token: int | None
    text: str
    position: int
    length: int
    score: float


class Path(NamedTuple):
    """A way through a lattice. `score` is the sum of its edges' scores, `total` what the model compares.

    `total` is what comes before the word and then each score, added one after the other in doubles.
    """

    edges: tuple[Edge, ...]
    score: float
    total: float


class WordLattice(NamedTuple):
    """All ways to make a word of tokens: `edges` in the order in which they are tried.

    The path of the highest total counts; of equal ones at a position, the one whose last edge is tried first. Where it
    `is_from_end`, paths grow from the end of the word to its beginning, so that the edge in front is the last one.
    """

    before: float  # the total of the words before this one
    edges: tuple[Edge, ...]
    best: Path
    next_best: Path | None  # None where there is no other
    is_from_end: bool = False


class Symbol(NamedTuple):
    """A part of a word with its ids: one, or where it is no token itself, those of its bytes that have one.

    An unknown symbol has the unknown token; none, where that began in the word before and goes on here.
    """

    text: str
    start: int
    end: int
    ids: tuple[int, ...]
    is_token: bool
    dropped: bytes = b""  # the bytes that have no token either
    is_unknown: bool = False


class Word(NamedTuple):
    """A piece that is made into tokens by itself. Of a model that knows no words, a word is one match."""

    text: str  # as it was split: normalized, spaces escaped, undecodable bytes U+FFFD
    start: int
    end: int
    fragment: int
    cuts: tuple[Cut, ...]  # one a stage
    written: str  # as it is looked up, in the byte-level alphabet if the model has it; odd bytes as U+DC80 up
    whole: str | None  # the flag by which the word was taken as one token: "ignore_merges" or "newline_runs"
    merges: tuple[Merge, ...]
    symbols: tuple[Symbol, ...]
    matches: tuple[Match, ...] = ()
    lattice: WordLattice | None = None  # None, too, where the vocabulary has scores that are not finite

    def __repr__(self) -> str:
        return f"<Word {printable(self.text, 40)} at {self.start} to {self.end}>"


def written_bytes(written: str) -> bytes:
    """What stands in `Word.written`, in bytes: those that were no character as they were."""
    try:
        return written.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # the text has surrogates of its own
        return written.encode("utf-8", "surrogatepass")


class WordToken(NamedTuple):
    """One id of a word. `origin` is "symbol", "byte" (a byte of a symbol) or "unknown"."""

    id: int
    start: int
    end: int
    origin: str


class EncodedWord(NamedTuple):
    """A word with its ids. The number of its fragment is not known yet: 0."""

    word: Word
    tokens: tuple[WordToken, ...]


Step = Fragment | Change | EncodedWord


class Alone(NamedTuple):
    """A piece merged by itself: how, the symbols that it becomes, and all merges that would make it of two parts."""

    merges: tuple[Merge, ...]
    symbols: tuple[str, ...]
    makers: tuple[Merge, ...]


class Tracer:
    """Plain text to ids, step by step, and what a token is there. It may cache words."""

    splits = True  # into words, before anything is looked up
    unknown: int | None = None  # the token of what no token makes up

    @property
    def stages(self) -> tuple[TracedStage, ...]:
        """The stages of the pre-tokenizer, with what is matched in each; none where there are no patterns."""
        return ()

    def steps(self, fragment: str | bytes, start: int) -> Iterator[Step]:
        """The steps of a fragment that begins at byte `start`, in the order of the text.

        A part of it that is dropped, is a token or is split comes as a `Fragment`, followed by its words, each behind
        the changes of what it is made of.
        """
        raise NotImplementedError

    def count_words(self, fragment: str | bytes) -> int:
        """How many words `steps` would give."""
        raise NotImplementedError

    def spellings(self, piece: str) -> list[str]:
        """How the vocabulary may write what a user calls `piece`, the likeliest first."""
        raise NotImplementedError

    def looked_up(self, token: int) -> str:
        """A token as it stands in `Word.written`."""
        raise NotImplementedError

    def written(self, text: str) -> str:
        """Text as it would stand in `Word.written`."""
        return text

    def by_position(self, written: str) -> str:
        """What stands in `Word.written`, one character for each position."""
        return written.encode("utf-8", "surrogateescape").decode("latin-1")

    def is_for_text(self, token: int) -> bool:
        """Whether plain text may become it."""
        return True

    def alone(self, looked_up: str) -> Alone | None:
        """A piece merged by itself; None where nothing is merged."""
        return None


@runtime_checkable
class Traceable(Protocol):
    """A `TextModel` (model.py) that tells its steps."""

    def tracer(self) -> Tracer:
        """What tells them."""
        ...


def joined(changes: Iterator[Change]) -> Iterator[Change]:
    """Changes of the same reasons that follow each other as one, but for characters that stand alone."""
    last: Change | None = None
    for change in changes:
        if (
            last is None
            or last.end != change.start
            or last.reasons != change.reasons
            or "alone" in last.reasons
        ):
            if last is not None:
                yield last
            last = change
        else:
            last = last._replace(
                end=change.end, text=last.text + change.text, became=last.became + change.became
            )
    if last is not None:
        yield last


_LEAST = -1.7976931348623157e308  # the total of what cannot be reached


def word_lattice(
    edges: tuple[Edge, ...], size: int, before: float, is_from_end: bool = False
) -> WordLattice | None:
    """The best two paths over edges that come in the order in which they are tried.

    Their positions ascend, or from the end descend. None where no path reaches the other end, as with scores that are
    not finite.
    """
    begin, goal = (size, 0) if is_from_end else (0, size)
    # Of each position the best two: the total, the last edge, and which of the two paths to its beginning.
    nodes: dict[int, list[tuple[float, int, int]]] = {begin: [(before, -1, 0)]}
    for number, edge in enumerate(edges):
        come, go = edge.position, edge.position + edge.length
        if is_from_end:
            come, go = go, come
        there = nodes.setdefault(go, [])
        for which, (so_far, _, _) in enumerate(nodes.get(come, ())):
            total = so_far + edge.score
            if not total > _LEAST:
                continue
            at = sum(total <= entry[0] for entry in there)  # behind equal ones
            there.insert(at, (total, number, which))
            del there[2:]
    ends = nodes.get(goal, [])

    def path(which: int) -> Path:
        position = goal
        found: list[Edge] = []
        while position != begin:
            _, number, which = nodes[position][which]
            edge = edges[number]
            found.append(edge)
            position = edge.position + edge.length if is_from_end else edge.position
        return path_of(tuple(found if is_from_end else reversed(found)), before)

    if not ends:
        return None
    return WordLattice(before, edges, path(0), path(1) if len(ends) > 1 else None, is_from_end)


def path_of(edges: tuple[Edge, ...], before: float) -> Path:
    """A path over these edges, behind words of this total."""
    scores = [edge.score for edge in edges]
    *_, total = accumulate(scores, initial=before)
    return Path(edges, sum(scores) if isinstance(total, int) else fsum(scores), total)


def best_path_with(lattice: WordLattice, token: int, position: int, length: int) -> Path | None:
    """The best of the paths that take a token at a position; None where there is none."""
    end = position + length
    through = [
        edge
        for edge in lattice.edges
        if (edge.token, edge.position, edge.length) == (token, position, length)
        or edge.position + edge.length <= position
        or edge.position >= end
    ]
    last = lattice.best.edges[-1]
    size = last.position + last.length
    found = word_lattice(tuple(through), size, lattice.before, lattice.is_from_end)
    return None if found is None else found.best
