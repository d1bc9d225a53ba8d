"""Describes the trace of a text in words, for a terminal and for HTML.

Sentences are lists of plain strings and of quotes, whose text is the user's or the model's: whoever shows a sentence
makes the quotes safe for where they go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..._util.utf8 import original_bytes
from ...models import tokenizer_model
from ...models.bpe.merge import CHAR_BYTES
from ...models.pretokenizers.registry import PRE_TOKENIZERS
from ...models.tracers.trace_types import (
    Fragment,
    LatticeEdge,
    LatticePath,
    Merge,
    RewrittenText,
    Symbol,
    TokenMatch,
    Word,
)
from ...tokenizer.trace import Token, Totals, Trace, names_of

_TRIED_SHOWN = 12  # tokens at a place, the longest ones
REST_SHOWN = 60  # bytes of what is left of a word
_LONG_PATH = 16  # edges; of a longer one only what differs is shown beside another


class Quote(NamedTuple):
    """Text that is not ours. A pattern is shown between slashes."""

    text: str | bytes
    is_pattern: bool = False


Sentence = list[str | Quote]


# ---- words ----------------------------------------------------------------------------------------------


def symbol_reader(trace: Trace, word: Word) -> Callable[[str], bytes]:
    """Return a function that turns a symbol of the word into bytes: "Ġw", in the byte-level alphabet, into " w"."""
    data = trace.text[word.start : word.end]
    if len(word.written) == len(data) and all(
        CHAR_BYTES.get(char) == byte for char, byte in zip(word.written, data)
    ):
        return lambda symbol: bytes(CHAR_BYTES[char] for char in symbol)
    return original_bytes


def model_symbol_reader(trace: Trace) -> Callable[[str], bytes]:
    """Return a function that turns the symbols of any word into bytes, by the model's pre-tokenizer."""
    kind = tokenizer_model(trace.model)
    entry = PRE_TOKENIZERS.get((kind.own_pre if kind.ignores_pre else trace.pre) or "default")
    if entry is None or not (entry.byte_encode and kind.has_pre_tokenizer):
        return original_bytes
    return lambda symbol: b"".join(
        bytes([CHAR_BYTES[char]]) if char in CHAR_BYTES else original_bytes(char) for char in symbol
    )


def taken_by(trace: Trace, word: Word) -> Sentence:
    """What made a word a word: the first stage that took just it, or whose leftovers it is; nothing without stages."""
    if not trace.stages:
        return []
    for cut in word.cuts:
        if cut.alternative is not None and (cut.start, cut.end) == (word.start, word.end):
            return ["matched by ", *alternative_name(trace, cut.stage, cut.alternative)]
    larger = [cut for cut in word.cuts if cut.alternative is not None]
    if not larger:
        return ["matched by no pattern"]
    around = larger[-1]
    assert around.alternative is not None
    parted = next(cut.stage for cut in word.cuts if (cut.start, cut.end) == (word.start, word.end))
    return [
        "left over by ", *stage_name(trace, parted), " from ", Quote(trace.text[around.start : around.end]),
        ", matched by ", *alternative_name(trace, around.stage, around.alternative),
    ]  # fmt: skip


def stage_name(trace: Trace, number: int) -> Sentence:
    """ "stage 2 of 3", or the name of its step."""
    step = trace.stages[number].step
    name = f"stage {number + 1} of {len(trace.stages)}" if len(trace.stages) > 1 else "the pattern"
    return [f"{name} (step {step})" if step else name]


def alternative_name(trace: Trace, stage: int, alternative: int) -> Sentence:
    """ "alternative 2 of 5" with its pattern, after the name of its stage where there are several."""
    texts, _, count = trace.stages[stage]
    where = (
        [] if len(trace.stages) == 1 and not trace.stages[stage].step else [*stage_name(trace, stage), ", "]
    )
    name = f"alternative {alternative + 1} of {count}: " if count > 1 else "the pattern "
    if alternative >= count:
        name = "what llama.cpp's splitter adds to the pattern: "
    return [*where, name, Quote(texts[alternative], is_pattern=True)]


def fragment_kind(fragment: Fragment) -> str:
    """What a fragment is, in words."""
    words = {
        "special": "special token", "dna": "DNA", "bos": "BOS, added", "eos": "EOS, added", "sep": "SEP, added",
    }  # fmt: skip
    if fragment.kind == "dropped":
        return "dropped" if fragment.dropped_by is None else f"stripped by {fragment.dropped_by}"
    return words.get(fragment.kind, fragment.kind)


def notes_on(token: Token) -> str:
    """What is special about a token; "" for nothing."""
    notes = [name for name in names_of(token.attributes) if name != "NORMAL"]
    origin = {
        "byte": "fallback", "bos": "added", "eos": "added", "sep": "added", "dna": "DNA", "unknown": "unknown",
    }.get(token.origin)  # fmt: skip
    return " ".join([*notes, *([origin] if origin else [])])


def symbol_fate(symbol: Symbol) -> str:
    """What became of a symbol that is not a token; "" for one that is."""
    if symbol.is_token:
        return ""
    if symbol.is_unknown:
        return "no token: unknown" if symbol.ids else "no token: part of the unknown token before it"
    dropped = f"{len(symbol.dropped)} of its bytes dropped: {symbol.dropped.hex(' ')}"
    return "no token: " + ", ".join(
        [*(["as bytes"] if symbol.ids else []), *([dropped] if symbol.dropped else [])]
    )


def summary(trace: Trace, totals: Totals) -> str:
    """The whole in a line."""
    pre = f", pre-tokenizer {trace.pre}" if trace.stages else ""
    return f"{trace.model}{pre}: {size_in_words(totals)}"


def size_in_words(totals: Totals) -> str:
    """How long a text is."""
    counts = (totals.bytes, "byte"), (totals.words, "word"), (totals.tokens, "token")
    return ", ".join(f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts)


_REASONS = {
    "space_prefix": "space prefix",
    "escaped_space": "space written as U+2581",
    "extra_white_space": "extra white space",
    "white_space": "white space",
    "accents": "accent",
    "lower_case": "lower case",
    "control": "control character",
    "alone": "a word of its own",
    "charsmap": "charsmap",
    "not_utf8": "not UTF-8",
    "left_out": "left out by the model",
}


def why_changed(change: RewrittenText) -> str:
    """The reasons of a change, in words."""
    return ", ".join(_REASONS[reason] for reason in change.reasons)


def rounded(score: float) -> str:
    """A score to six digits; a whole number as it is."""
    return str(score) if isinstance(score, int) else f"{score:.6g}"


def merge_order(merge: Merge) -> str:
    """What merges are ordered by: the score, or the rank where there is none."""
    return str(merge.rank) if merge.score is None else rounded(merge.score)


def merge_order_name(merge: Merge) -> str:
    """What the numbers of `merge_order` are called."""
    return "rank" if merge.score is None else "score"


def steps_in_words(word: Word, most: int) -> Iterator[Sentence]:
    """The tokens that were tried at each place of a word, or the best paths; at most so many places or edges."""
    data = original_bytes(word.written)
    for match in word.matches[:most]:
        yield _tried(match, data[match.position : match.position + REST_SHOWN])
    if len(word.matches) > most:
        yield [f"… {most} of {len(word.matches):,} places"]
    if word.lattice is None:
        return
    best, following = word.lattice.best, word.lattice.next_best
    yield ["best path, ", *path_in_words(best, (0, most))]
    if following is None:
        yield ["there is no other path"]
    else:
        yield ["next best, ", *path_in_words(following, path_difference(following, best, most))]


def _tried(match: TokenMatch, rest: bytes) -> Sentence:
    """`rest`: of the word, where the match begins."""
    where: Sentence = ["at ", Quote(rest), ": "] if match.position else []
    if not match.tried:
        reach: Sentence = [", though some begin with ", Quote(rest[: match.reach])] if match.reach else []
        return [*where, "no token matches here", *reach]
    shown = match.tried[-_TRIED_SHOWN:]
    said: Sentence = [*where, "tried ", *(["…, "] if len(shown) < len(match.tried) else [])]
    for number, tried in enumerate(shown):
        said += [", " * (number > 0), Quote(tried.text)]
    return [*said, "; took ", Quote(match.tried[-1].text), f" ({match.taken})"]


def path_in_words(path: LatticePath, shown: tuple[int, int]) -> Sentence:
    """A path with its scores, of which only some edges are shown."""
    first, end = shown
    said: Sentence = [f"sum {rounded(path.score)}: ", "… + " * (first > 0)]
    for number, edge in enumerate(path.edges[first:end]):
        as_bytes = " as bytes" * (edge.token is None)
        said += [" + " * (number > 0), Quote(edge.text), f"{as_bytes} ({rounded(edge.score)})"]
    return [*said, " + …" * (end < len(path.edges))]


def path_difference(path: LatticePath, other: LatticePath, most: int) -> tuple[int, int]:
    """Which edges of a path to show: all, or of a long one those that are not the other's, too."""
    if len(path.edges) <= _LONG_PATH:
        return 0, len(path.edges)
    before = _common(path.edges, other.edges)
    behind = _common(path.edges[before:][::-1], other.edges[before:][::-1])
    return before, min(len(path.edges) - behind, before + most)


def _common(edges: tuple[LatticeEdge, ...], others: tuple[LatticeEdge, ...]) -> int:
    """How many edges at the beginning are the same."""
    pairs = enumerate(zip(edges, others))
    return next((at for at, (one, other) in pairs if one != other), min(len(edges), len(others)))
