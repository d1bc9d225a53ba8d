"""Says in words why a piece was not produced, as sentences of `explain_words`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..._util.errors import escape_invisible, printable
from ...models.tracers.trace_types import LatticePath, Merge
from ...tokenizer.trace import Trace
from .explain_words import (
    REST_SHOWN,
    Quote,
    Sentence,
    alternative_name,
    merge_order,
    merge_order_name,
    model_symbol_reader,
    path_difference,
    path_in_words,
    stage_name,
    why_changed,
)
from .piece_search import PLACES
from .reasons import Place, WhyNot

PLACES_SHOWN = 5  # of the places of a piece
_EDGES_SHOWN = 24  # of a long path, those that differ


def answer_in_words(trace: Trace, answer: WhyNot, *, from_one: bool = False) -> Iterator[Sentence]:
    """Why a piece was not produced.

    `from_one` counts as the server's page does: words and tokens from 1, and the last byte belongs to a range.
    """
    name: Sentence = [Quote(answer.piece)]
    if answer.token is None:
        is_number = answer.piece.isascii() and answer.piece.isdigit()
        as_text = " It was looked up as text, not as an id." if is_number else ""
        near = _instead(" The vocabulary has ", answer)
        yield [*name, f" is not a token of this vocabulary.{as_text}", *near]
        return
    name.append(f" (token {answer.token})")
    if answer.reason == "produced":
        yield [*name, " was produced: ", _spans(answer, from_one)]
    elif answer.reason == "not_parsed":
        place = _bytes(answer.places[0].start, answer.places[0].end, from_one)
        yield [*name, " is a special token, and special tokens are not parsed here, so its text is "
               f"encoded like any other. It is at {place}."]  # fmt: skip
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
        yield from _by_place(trace, answer, name, from_one)


def answer_as_text(trace: Trace, answer: WhyNot) -> str:
    """`answer_in_words` as one string, in which quotes are safe to print."""
    said = ("".join(map(_plain, sentence)).rstrip(".") for sentence in answer_in_words(trace, answer))
    return " ".join(f"{each[:1].upper()}{each[1:]}." for each in said)


def _plain(part: str | Quote) -> str:
    if isinstance(part, str):
        return part
    text = part.text if isinstance(part.text, str) else part.text.decode("utf-8", "backslashreplace")
    return f"/{escape_invisible(text)}/" if part.is_pattern else printable(text)


def _by_place(trace: Trace, answer: WhyNot, name: Sentence, from_one: bool) -> Iterator[Sentence]:
    count = len(answer.places)
    times = "once" if count == 1 else f"{count}{' or more' * (count == PLACES)} times"
    yield [*name, f" occurs {times} in the text, but was not produced."]
    for place in answer.places[:PLACES_SHOWN]:
        yield [f"{_bytes(place.start, place.end, from_one)}: ", *_reason(trace, answer, place, from_one)]
    if count > PLACES_SHOWN:
        yield [f"… and {'at least ' * (count == PLACES)}{count - PLACES_SHOWN} more places"]


def _reason(trace: Trace, answer: WhyNot, place: Place, from_one: bool) -> Sentence:
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
    number = None if place.word is None else place.word + from_one
    word: Sentence = ["the word ", Quote(place.text), f" (word {number})"]
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
        return [*word, " contains it, but ", *_no_path(answer, model_symbol_reader(trace))]
    if place.reason == "produced":
        return [*word, " contains it as a symbol, which is the text of another token."]
    assert place.merge is not None
    read = model_symbol_reader(trace)
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
            Quote(place.rest[:REST_SHOWN]),
            ", so the whole word becomes the unknown token.",
        ]
    longest = match.tried[-1] if match.tried else None
    took: Sentence = (
        ["took ", Quote(longest.text), f" ({longest.token})"] if longest else ["took an unknown byte"]
    )
    if place.reason == "earlier_match":
        return ["in ", *word, ", the match before it ", *took, ", which overlaps this one."]
    return ["in ", *word, ", the longest match here ", *took, ", which is longer."]


def _outweighed(path: LatticePath, best: LatticePath, word: Sentence) -> Sentence:
    with_it = path_in_words(path, path_difference(path, best, _EDGES_SHOWN))
    taken = path_in_words(best, path_difference(best, path, _EDGES_SHOWN))
    more = "more" if path.total < best.total else "no less"
    return ["in ", *word, ", the best path with it has the ", *with_it, "; the path that was taken has the ", *taken,
            f", which is {more}."]  # fmt: skip


def _boundary(trace: Trace, place: Place) -> Sentence:
    if not place.cuts:
        return [f"a word boundary at byte {place.boundary} cuts it."]
    said: Sentence = [
        f"a word boundary at byte {place.boundary} cuts it, made by ",
        *stage_name(trace, place.cuts[0].stage),
    ]
    for between, cut, text in zip((": ", "; "), place.cuts, place.sides):
        said += [between, Quote(text)]
        if cut.alternative is None:
            said.append(" was left over")
        else:
            said += [" was matched by ", *alternative_name(trace, cut.stage, cut.alternative)]
    return said


def _no_path(answer: WhyNot, read: Callable[[str], bytes]) -> Sentence:
    alone: Sentence = ["no merge path leads to it: merged by itself, it ends as "]
    for number, symbol in enumerate(answer.alone):
        alone += [" " * (number > 0), Quote(read(symbol))]
    if not answer.makers:
        return [*alone, ", and no merge produces it."]
    alone.append(", so the merge that would produce it, ")
    return [*alone, *merge_in_words(answer.makers[0], read), ", finds no such pair."]


def merge_in_words(merge: Merge, read: Callable[[str], bytes]) -> Sentence:
    """The two parts as `read` reads symbols, and the rank or the score."""
    place = f" ({merge_order_name(merge)} {merge_order(merge)})"
    return [Quote(read(merge.left)), " + ", Quote(read(merge.right)), place]


def _instead(words: str, answer: WhyNot) -> Sentence:
    said: Sentence = []
    for piece in answer.instead:
        said += [", " if said else words, Quote(piece)]
    return [*said, "."] if said else []


def _bytes(start: int, end: int, from_one: bool) -> str:
    """A range of bytes; with `from_one` as `range` in the page's dom.js."""
    if not from_one:
        return f"bytes {start} to {end}"
    return f"byte offset {start:,}" if end - start == 1 else f"byte offsets {start:,} to {end - 1:,}"


def _spans(answer: WhyNot, from_one: bool) -> str:
    shown = [
        f"token {number + from_one} ({_bytes(start, end, from_one)})"
        for number, (start, end) in zip(answer.tokens[:PLACES_SHOWN], answer.spans)
    ]
    rest = (answer.times or 0) - len(shown)
    return ", ".join(shown) + (f", and {rest:,} more times." if rest else ".")
