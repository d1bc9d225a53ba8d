"""The steps from plain text to ids as plain data: changes, splits, merges, matches, paths, symbols.

Code that inspects steps knows these kinds and no model. `start` and `end` are bytes of the text. Inside a word,
`position` counts, for a merge, the symbols that the word has before merging; for matches and edges, bytes of the UTF-8
of `Word.written`.

A word is cut into tokens in one of three ways: by merges, by the longest matches, or by the best path through a
lattice. A model that keeps a table of the best sum for each position reports it as a lattice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from math import fsum
from typing import NamedTuple, Protocol, runtime_checkable

from ..._util.errors import printable
from ..._util.spelling import escape_spaces
from ..tokenizer_model import TextModel
from ..vocabulary import Vocabulary


class TracedStage(NamedTuple):
    """One stage of the pre-tokenizer: the `alternatives` of its pattern, in the order in which they are tried.

    The alternatives are as llama.cpp writes them; a `step`, if any, is a function of splitter.py in the place of the
    pattern. Alternatives after the first `in_pattern` are not in the pattern that `list-pre` shows: llama.cpp's
    splitter adds them.
    """

    alternatives: tuple[str, ...]
    step: str | None
    in_pattern: int


class Fragment(NamedTuple):
    """A part of the text before it is split, from byte `start` to byte `end`.

    `kind` is "text", "special" (a special token), "dna" (a tag or k-mer of a DNA model), "dropped" (white space that
    has no token) or, at the ends, "bos", "eos" and "sep". `token` is the id of the kinds that have one, and
    `dropped_by` the special token that strips the white space; None if no token does.
    """

    kind: str
    start: int
    end: int
    token: int | None = None
    dropped_by: int | None = None


class RewrittenText(NamedTuple):
    """What `text`, the bytes of the text from `start` to `end`, `became` by normalization, and why.

    `reasons` are among these, in the order in which they applied:
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
    - "left_out": PLaMo ignores a byte order mark in front, and U+EE00
    """

    start: int
    end: int
    text: bytes
    became: str
    reasons: tuple[str, ...]


class Cut(NamedTuple):
    """The piece that a word was in after a stage, and the alternative that took it; None if none did.

    `stage` and `alternative` are numbers from 0, and `start` and `end` bytes of the text.
    """

    stage: int
    alternative: int | None
    start: int
    end: int


class Merge(NamedTuple):
    """`left` and `right` become one symbol; `position` is where `left` begins, in symbols before merging.

    The lowest `rank` comes first. If tokens have scores, `score` is that of the token made, and the highest is rank 0.
    """

    rank: int
    left: str
    right: str
    position: int
    score: float | None = None


class TriedToken(NamedTuple):
    """The id `token` of a token at a position of a word, its `text` as it is looked up, and its `length` in bytes."""

    token: int
    text: str
    length: int


class TokenMatch(NamedTuple):
    """All tokens that match at `position`, `tried`, the shortest first; the last one is `taken`, None if none matches.

    Some token agrees with the text for `reach` bytes from the position: no longer one was possible.
    """

    position: int
    tried: tuple[TriedToken, ...]
    taken: int | None
    reach: int


class LatticeEdge(NamedTuple):
    """One edge of a lattice: a token over `length` bytes from `position` on, with its `score`.

    `text` is the token's, or what the unknown token stands for; `token` is None where a character becomes the tokens of
    its bytes.
    """

    token: int | None
    text: str
    position: int
    length: int
    score: float


class LatticePath(NamedTuple):
    """A way through a lattice, along `edges`. `score` is the sum of their scores, `total` what the model compares.

    `total` is the total before the word and then each score, added one after the other in doubles.
    """

    edges: tuple[LatticeEdge, ...]
    score: float
    total: float


class WordLattice(NamedTuple):
    """All ways to cut a word into tokens: `edges` in the order in which they are tried.

    The path of the highest total wins; of equal ones at a position, the one whose last edge is tried first. If
    `is_from_end`, paths grow from the end of the word to its beginning, so that the first edge is the last one added.
    `best` and `next_best` are the best two paths; the second is None if there is one alone. `before` is the total of
    the words before this one.
    """

    before: float
    edges: tuple[LatticeEdge, ...]
    best: LatticePath
    next_best: LatticePath | None
    is_from_end: bool = False


class Symbol(NamedTuple):
    """A part of a word with its ids: one, or if it is not a token itself, those of its bytes that have one.

    `text` is the symbol as it is looked up, which stands for the bytes of the text from `start` to `end`. `ids` has one
    id if it `is_token`; `dropped` are the bytes that have no token either. If it `is_unknown`, the id is that of the
    unknown token; or there is none, if that token began in the previous word and continues here.
    """

    text: str
    start: int
    end: int
    ids: tuple[int, ...]
    is_token: bool
    dropped: bytes = b""
    is_unknown: bool = False


class Word(NamedTuple):
    """A piece that is encoded separately. For a model without words, a word is one match.

    It covers the bytes from `start` to `end` of the text and lies in fragment number `fragment`. `text` is the word as
    it was split: normalized, spaces escaped, undecodable bytes U+FFFD. `written` is the word as it is looked up, in the
    byte alphabet if the model has it; bytes that are not UTF-8 are U+DC80 and up. `cuts` has the piece that it was in
    after each stage. The model cuts words by `merges`, by `matches`, or by the best path of a `lattice` (None if scores
    are not finite), so that the others are empty or None; `symbols` are the parts that this leaves. `whole` is the flag
    by which the word was taken as one token, "ignore_merges" or "newline_runs"; None if it was not.
    """

    text: str
    start: int
    end: int
    fragment: int
    cuts: tuple[Cut, ...]
    written: str
    whole: str | None
    merges: tuple[Merge, ...]
    symbols: tuple[Symbol, ...]
    matches: tuple[TokenMatch, ...] = ()
    lattice: WordLattice | None = None

    @property
    def unmerged(self) -> list[str]:
        """The symbols before merging: characters of `written`, but for a longer end-of-word symbol of classic forms."""
        last = len(self.written if self.whole is not None else (*self.symbols, *self.merges)) - 1
        return [*self.written[:last], self.written[last:]]

    def __repr__(self) -> str:
        return f"<Word {printable(self.text, 40)} at {self.start} to {self.end}>"


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


Step = Fragment | RewrittenText | EncodedWord


class Alone(NamedTuple):
    """A piece merged by itself: its merges, the symbols that they leave, and all merges that result in it."""

    merges: tuple[Merge, ...]
    symbols: tuple[str, ...]
    makers: tuple[Merge, ...]


class Tracer:
    """Plain text to ids, step by step, and the role of each token. It may cache words."""

    splits = True  # into words, before anything is looked up
    unknown: int | None = None  # the token for text that no other token covers

    def __init__(self, text: Traceable) -> None:
        self._text = text

    @property
    def stages(self) -> tuple[TracedStage, ...]:
        """The stages of the pre-tokenizer, with their rules; none if there are no patterns."""
        return ()

    def steps(self, fragment: bytes, start: int) -> Iterator[Step]:
        """The steps of a fragment that begins at byte `start`, in the order of the text.

        A part of it that is dropped, is a token or is split comes as a `Fragment`, then come its words, each after the
        changes of its text.
        """
        raise NotImplementedError

    def count_words(self, fragment: bytes) -> int:
        """How many words `steps` would give."""
        return len(self._text.words(fragment))

    def spellings(self, piece: str) -> list[str]:
        """How the vocabulary may write the text that a user calls `piece`, the likeliest first."""
        return [self.written(piece)]

    def looked_up(self, token: int) -> str:
        """A token as in `Word.written`."""
        return self._text.vocabulary.tokens[token]

    def written(self, text: str) -> str:
        """Text as it would be in `Word.written`."""
        return escape_spaces(text) if self._text.vocabulary.pre_tokenizer.escape_whitespaces else text

    def by_position(self, written: str) -> str:
        """`Word.written` with one character for each position."""
        return written.encode("utf-8", "surrogateescape").decode("latin-1")

    def is_for_text(self, token: int) -> bool:
        """Whether plain text may become the token."""
        return True

    def alone(self, looked_up: str) -> Alone | None:
        """A piece merged by itself; None if the model does not merge."""
        return None


@runtime_checkable
class Traceable(TextModel, Protocol):
    """A `TextModel` whose steps can be traced."""

    vocabulary: Vocabulary

    def tracer(self) -> Tracer:
        """The tracer of this model."""
        ...


def joined(changes: Iterator[RewrittenText]) -> Iterator[RewrittenText]:
    """Joins adjacent changes of the same reasons, except characters that stand alone."""
    last: RewrittenText | None = None
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


def among_changes(words: Iterable[EncodedWord], changes: Iterator[RewrittenText]) -> Iterator[Step]:
    """Yield each word after the changes that begin before its end; the remaining changes come last."""
    change = next(changes, None)
    for step in words:
        while change is not None and change.start < step.word.end:
            yield change
            change = next(changes, None)
        yield step
    if change is not None:
        yield change
        yield from changes


_LEAST = -1.7976931348623157e308  # the total of an unreachable position


def word_lattice(
    edges: tuple[LatticeEdge, ...], size: int, before: float, is_from_end: bool = False
) -> WordLattice | None:
    """The best two paths over edges that come in the order in which they are tried.

    Their positions ascend, or descend from the end. None if no path reaches the other end, as with scores that are
    not finite.
    """
    begin, goal = (size, 0) if is_from_end else (0, size)
    # The best two of each position: the total, the last edge, and which of the two paths leads to its beginning.
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
            at = sum(total <= entry[0] for entry in there)  # after equal ones
            there.insert(at, (total, number, which))
            del there[2:]
    ends = nodes.get(goal, [])

    def path(which: int) -> LatticePath:
        position = goal
        edges_taken: list[LatticeEdge] = []
        while position != begin:
            _, number, which = nodes[position][which]
            edge = edges[number]
            edges_taken.append(edge)
            position = edge.position + edge.length if is_from_end else edge.position
        return path_over(tuple(edges_taken if is_from_end else reversed(edges_taken)), before)

    if not ends:
        return None
    return WordLattice(before, edges, path(0), path(1) if len(ends) > 1 else None, is_from_end)


def path_over(edges: tuple[LatticeEdge, ...], before: float) -> LatticePath:
    """A path over these edges, after words of this total."""
    scores = [edge.score for edge in edges]
    *_, total = accumulate(scores, initial=before)
    return LatticePath(edges, sum(scores) if isinstance(total, int) else fsum(scores), total)


def best_path_with(lattice: WordLattice, token: int, position: int, length: int) -> LatticePath | None:
    """The best of the paths that take a token at a position; None if there is none."""
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
    best = word_lattice(tuple(through), size, lattice.before, lattice.is_from_end)
    return None if best is None else best.best
