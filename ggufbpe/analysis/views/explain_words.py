"""Describes the trace of a text in words, for a terminal and for HTML.

Sentences are lists of plain strings and of quotes, whose text is the user's or the model's: whoever shows a sentence
makes the quotes safe for where they go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...models import tokenizer_model
from ...models.bpe.merge import CHAR_BYTES
from ...models.pretokenizers.registry import PRE_TOKENIZERS
from ...models.tracers.trace_types import (
    Edge,
    Fragment,
    Match,
    Merge,
    Path,
    RewrittenText,
    Symbol,
    Word,
    written_bytes,
)
from ...tokenizer.trace import Token, Totals, Trace, names_of
from ..explain.piece_search import PLACES
from ..explain.reasons import Place, WhyNot

PLACES_SHOWN = 5  # of the places of a piece
_TRIED_SHOWN = 12  # tokens at a place, the longest ones
_REST_SHOWN = 60  # bytes of what is left of a word
_LONG_PATH = 16  # edges; of a longer one only what differs is shown beside another
_EDGES_SHOWN = 24  # of that


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
    return written_bytes


def _symbol_reader(trace: Trace) -> Callable[[str], bytes]:
    """Return a function that turns the symbols of any word into bytes, by the model's pre-tokenizer."""
    kind = tokenizer_model(trace.model)
    entry = PRE_TOKENIZERS.get((kind.own_pre if kind.ignores_pre else trace.pre) or "default")
    if entry is None or not (entry.byte_encode and kind.has_pre_tokenizer):
        return written_bytes
    return lambda symbol: b"".join(
        bytes([CHAR_BYTES[char]]) if char in CHAR_BYTES else written_bytes(char) for char in symbol
    )


def taken_by(trace: Trace, word: Word) -> Sentence:
    """What made a word a word: the first stage that took just it, or whose leftovers it is; nothing without stages."""
    if not trace.stages:
        return []
    for cut in word.cuts:
        if cut.alternative is not None and (cut.start, cut.end) == (word.start, word.end):
            return ["matched by ", *_alternative(trace, cut.stage, cut.alternative)]
    larger = [cut for cut in word.cuts if cut.alternative is not None]
    if not larger:
        return ["matched by no pattern"]
    around = larger[-1]
    assert around.alternative is not None
    parted = next(cut.stage for cut in word.cuts if (cut.start, cut.end) == (word.start, word.end))
    return [
        "left over by ", *_stage(trace, parted), " from ", Quote(trace.text[around.start : around.end]),
        ", matched by ", *_alternative(trace, around.stage, around.alternative),
    ]  # fmt: skip


def _stage(trace: Trace, number: int) -> Sentence:
    """ "stage 2 of 3", or the name of its step."""
    step = trace.stages[number].step
    name = f"stage {number + 1} of {len(trace.stages)}" if len(trace.stages) > 1 else "the pattern"
    return [f"{name} (step {step})" if step else name]


def _alternative(trace: Trace, stage: int, alternative: int) -> Sentence:
    texts, _, count = trace.stages[stage]
    where = [] if len(trace.stages) == 1 and not trace.stages[stage].step else [*_stage(trace, stage), ", "]
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


def steps_in_words(word: Word, most: int) -> Iterator[Sentence]:
    """The tokens that were tried at each place of a word, or the best paths; at most so many places or edges."""
    data = written_bytes(word.written)
    for match in word.matches[:most]:
        yield _tried(match, data[match.position : match.position + _REST_SHOWN])
    if len(word.matches) > most:
        yield [f"… {most} of {len(word.matches):,} places"]
    if word.lattice is None:
        return
    best, following = word.lattice.best, word.lattice.next_best
    yield ["best path, ", *_path(best, (0, most))]
    if following is None:
        yield ["there is no other path"]
    else:
        yield ["next best, ", *_path(following, _difference(following, best, most))]


def _tried(match: Match, rest: bytes) -> Sentence:
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


def _path(path: Path, shown: tuple[int, int]) -> Sentence:
    """A path with its scores, of which only some edges are shown."""
    first, end = shown
    said: Sentence = [f"sum {rounded(path.score)}: ", "… + " * (first > 0)]
    for number, edge in enumerate(path.edges[first:end]):
        as_bytes = " as bytes" * (edge.token is None)
        said += [" + " * (number > 0), Quote(edge.text), f"{as_bytes} ({rounded(edge.score)})"]
    return [*said, " + …" * (end < len(path.edges))]


def _difference(path: Path, other: Path, most: int) -> tuple[int, int]:
    """Which edges of a path to show: all, or of a long one those that are not the other's, too."""
    if len(path.edges) <= _LONG_PATH:
        return 0, len(path.edges)
    before = _common(path.edges, other.edges)
    behind = _common(path.edges[before:][::-1], other.edges[before:][::-1])
    return before, min(len(path.edges) - behind, before + most)


def _common(edges: tuple[Edge, ...], others: tuple[Edge, ...]) -> int:
    """How many edges at the beginning are the same."""
    pairs = enumerate(zip(edges, others))
    return next((at for at, (one, other) in pairs if one != other), min(len(edges), len(others)))


# ---- why not --------------------------------------------------------------------------------------------


def answer_in_words(trace: Trace, answer: WhyNot) -> Iterator[Sentence]:
    """Why a piece was not produced."""
    name: Sentence = [Quote(answer.piece)]
    if answer.token is None:
        yield [*name, " is not a token of this vocabulary.", *_instead(" There is ", answer)]
        return
    name.append(f" (token {answer.token})")
    if answer.reason == "produced":
        yield [*name, " was produced: ", _spans(answer)]
    elif answer.reason == "not_parsed":
        yield [*name, " is a special token, and special tokens are not parsed here, so its text is "
               f"encoded like any other. It is at {_bytes(answer.places[0])}."]  # fmt: skip
    elif answer.reason == "not_added":
        why = "the model does not ask for it" if trace.add_special else "that was not asked for"
        yield [
            *name,
            f" marks the beginning or end of a text. It is not in this one, and it is not added: {why}.",
        ]
    elif answer.reason == "byte":
        yield [*name, " is a byte of characters that are not tokens. No character of this text needs it."]
    elif answer.reason == "unneeded":
        yield [*name, " is the unknown token. This text has nothing that the other tokens cannot write."]
    elif answer.reason == "absent":
        yield [*name, " does not occur in the text.", *_instead(" But this does: ", answer)]
    else:
        yield from _by_place(trace, answer, name)


def _by_place(trace: Trace, answer: WhyNot, name: Sentence) -> Iterator[Sentence]:
    count = len(answer.places)
    times = "once" if count == 1 else f"{count}{' or more' * (count == PLACES)} times"
    yield [*name, f" occurs {times} in the text, but was not produced."]
    for place in answer.places[:PLACES_SHOWN]:
        yield [f"{_bytes(place)}: ", *_reason(trace, answer, place)]
    if count > PLACES_SHOWN:
        yield [f"… and {'at least ' * (count == PLACES)}{count - PLACES_SHOWN} more places"]


def _reason(trace: Trace, answer: WhyNot, place: Place) -> Sentence:
    if place.reason == "special":
        return [
            "the special token ",
            Quote(place.text),
            f" ({place.token}) is found first and takes part of it.",
        ]
    if place.reason == "boundary":
        return _boundary(trace, place)
    if place.reason == "normalized":
        return _normalized(place)
    word: Sentence = ["the word ", Quote(place.text), f" (word {place.word})"]
    if place.reason == "not_for_text":
        return [*word, " contains its text, but plain text never becomes a token of this type."]
    if place.match is not None:
        return _matched(place, word)
    if place.path is not None and place.best is not None:
        return _outweighed(place.path, place.best, word)
    if place.reason == "path":
        return ["in ", *word, ", no path with it is better than the one that was taken."]
    if place.reason == "not_tried":
        return [
            *word,
            " contains its text, but the model does not try it there: its score is one that is never taken, a token"
            " with score -1000 ends the search, or another token has the same text.",
        ]
    if place.reason == "whole":
        return [*word, f" is itself a token, and is taken whole without merging ({place.whole})."]
    if place.reason == "merges":
        return [*word, " contains it, but ", *_no_path(answer, _symbol_reader(trace))]
    if place.reason == "produced":
        return [*word, " contains it as a symbol, which is the text of another token."]
    assert place.merge is not None
    read = _symbol_reader(trace)
    taken: Sentence = ["in ", *word, ", the merge ", *merge_in_words(place.merge, read)]
    if place.reason == "longer":
        longer = Quote(read(place.merge.left + place.merge.right))
        return [*taken, " came after it was made, and joined it into ", longer, "."]
    assert place.needed is not None
    own: Sentence = ["; its own merge ", *merge_in_words(place.needed, read)]
    if place.merge.rank == place.needed.rank:
        return [*taken, " took part of it first, being further to the left", *own, " has the same."]
    less = "a higher rank" if place.merge.score is None else "a lower score"
    return [*taken, " took part of it first", *own, f" has {less}, so it comes later."]


def _normalized(place: Place) -> Sentence:
    said: Sentence = ["normalization changes it before tokens are looked for: "]
    for number, change in enumerate(place.changes):
        said += [", " * (number > 0), Quote(change.text), " becomes "]
        said += [Quote(change.became) if change.became else "nothing", f" ({why_changed(change)})"]
    return [*said, "."]


def _matched(place: Place, word: Sentence) -> Sentence:
    match = place.match
    assert match is not None
    if place.reason == "unknown_word":
        return [
            "in ",
            *word,
            " no token matches at ",
            Quote(place.rest[:_REST_SHOWN]),
            ", so the whole word becomes the unknown token.",
        ]
    longest = match.tried[-1] if match.tried else None
    took: Sentence = (
        ["took ", Quote(longest.text), f" ({longest.token})"] if longest else ["took an unknown byte"]
    )
    if place.reason == "earlier_match":
        return ["in ", *word, ", the match before it ", *took, ", and with it a part of this one."]
    return ["in ", *word, ", the longest match here ", *took, ", which is longer."]


def _outweighed(path: Path, best: Path, word: Sentence) -> Sentence:
    with_it = _path(path, _difference(path, best, _EDGES_SHOWN))
    taken = _path(best, _difference(best, path, _EDGES_SHOWN))
    more = "more" if path.total < best.total else "no less"
    return ["in ", *word, ", the best path with it has the ", *with_it, "; the path that was taken has the ", *taken,
            f", which is {more}."]  # fmt: skip


def _boundary(trace: Trace, place: Place) -> Sentence:
    if not place.cuts:
        return [f"a word boundary at byte {place.boundary} cuts it."]
    said: Sentence = [
        f"a word boundary at byte {place.boundary} cuts it, made by ",
        *_stage(trace, place.cuts[0].stage),
    ]
    for between, cut, text in zip((": ", "; "), place.cuts, place.sides):
        said += [between, Quote(text)]
        if cut.alternative is None:
            said.append(" was left over")
        else:
            said += [" was matched by ", *_alternative(trace, cut.stage, cut.alternative)]
    return said


def _no_path(answer: WhyNot, read: Callable[[str], bytes]) -> Sentence:
    alone: Sentence = ["no merge path leads to it: merged by itself, it ends as "]
    for number, symbol in enumerate(answer.alone):
        alone += [" " * (number > 0), Quote(read(symbol))]
    if not answer.makers:
        return [*alone, ", and no merge produces it."]
    alone.append(", so the merge that would produce it, ")
    return [*alone, *merge_in_words(answer.makers[0], read), ", finds no such pair."]


def merge_order_name(merge: Merge) -> str:
    """What the numbers of `merge_order` are called."""
    return "rank" if merge.score is None else "score"


def merge_in_words(merge: Merge, read: Callable[[str], bytes]) -> Sentence:
    """The two parts as `read` reads symbols, and the rank or the score."""
    place = f" ({merge_order_name(merge)} {merge_order(merge)})"
    return [Quote(read(merge.left)), " + ", Quote(read(merge.right)), place]


def _instead(words: str, answer: WhyNot) -> Sentence:
    said: Sentence = []
    for piece in answer.instead:
        said += [", " if said else words, Quote(piece)]
    return [*said, "."] if said else []


def _bytes(place: Place) -> str:
    return f"bytes {place.start} to {place.end}"


def _spans(answer: WhyNot) -> str:
    shown = [
        f"token {number} (bytes {start} to {end})"
        for number, (start, end) in zip(answer.tokens[:PLACES_SHOWN], answer.spans)
    ]
    rest = (answer.times or 0) - len(shown)
    return ", ".join(shown) + (f", and {rest:,} more times." if rest else ".")
