"""A trace in words, and as a page.

    trace.py, why_not.py -> [this file] -> cli/explain.py (a terminal), page.py (HTML)

Sentences are lists of plain strings and of quotes, whose text is the user's or the model's: whoever shows a
sentence makes the quotes safe for where they go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from ..models.steps import Fragment, Merge, Symbol, Word
from ..trace.parts import Parts
from ..trace.reasons import Place, WhyNot
from ..trace.search import PLACES
from ..trace.survey import Survey, survey_of
from ..trace.trace import Token, Totals, Trace, names_of
from .page import COLORS, marked, page_around, safe
from .page import token as token_box

PLACES_SHOWN = 5  # of the places of a piece
_ROW_LENGTH = 64  # symbols
_MERGES_SHOWN = 500  # of a word, on a page


class Quote(NamedTuple):
    """Text that is not ours. A pattern is shown between slashes."""

    text: str | bytes
    is_pattern: bool = False


Sentence = list[str | Quote]


# ---- words ----------------------------------------------------------------------------------------------


def taken_by(found: Trace, word: Word) -> Sentence:
    """What made a word a word: the first stage that took just it, or whose leftovers it is."""
    for cut in word.cuts:
        if cut.alternative is not None and (cut.start, cut.end) == (word.start, word.end):
            return ["taken by ", *_alternative(found, cut.stage, cut.alternative)]
    larger = [cut for cut in word.cuts if cut.alternative is not None]
    if not larger:
        return ["left over by all patterns"]
    around = larger[-1]
    assert around.alternative is not None
    parted = next(cut.stage for cut in word.cuts if (cut.start, cut.end) == (word.start, word.end))
    return [
        "left over, by ", *_stage(found, parted), ", of ", Quote(found.text[around.start : around.end]),
        ", taken by ", *_alternative(found, around.stage, around.alternative),
    ]  # fmt: skip


def _stage(found: Trace, number: int) -> Sentence:
    """ "stage 2 of 3", or the name of its step."""
    step = found.stages[number].step
    name = f"stage {number + 1} of {len(found.stages)}" if len(found.stages) > 1 else "the pattern"
    return [f"{name} (step {step})" if step else name]


def _alternative(found: Trace, stage: int, alternative: int) -> Sentence:
    texts, _, count = found.stages[stage]
    where = [] if len(found.stages) == 1 and not found.stages[stage].step else [*_stage(found, stage), ", "]
    name = f"alternative {alternative + 1} of {count}: " if count > 1 else "the pattern "
    if alternative >= count:
        name = "what llama.cpp's splitter adds to the pattern: "
    return [*where, name, Quote(texts[alternative], is_pattern=True)]


def kind_of(fragment: Fragment) -> str:
    """What a fragment is, in words."""
    words = {"special": "special token", "dna": "DNA", "bos": "BOS, added", "eos": "EOS, added"}
    if fragment.kind == "dropped":
        return "dropped" if fragment.dropped_by is None else f"stripped by {fragment.dropped_by}"
    return words.get(fragment.kind, fragment.kind)


def notes_on(token: Token) -> str:
    """What is special about a token, if anything."""
    notes = [name for name in names_of(token.attributes) if name != "NORMAL"]
    origin = {"byte": "fallback", "bos": "added", "eos": "added", "dna": "DNA"}.get(token.origin)
    return " ".join([*notes, *([origin] if origin else [])])


def fate_of(symbol: Symbol) -> str:
    """What became of a symbol that is no token; "" for one that is."""
    if symbol.is_token:
        return ""
    dropped = f"{len(symbol.dropped)} of its bytes dropped: {symbol.dropped.hex(' ')}"
    return "no token: " + ", ".join(
        [*(["as bytes"] if symbol.ids else []), *([dropped] if symbol.dropped else [])]
    )


def summary(found: Trace, totals: Totals) -> str:
    """The whole in a line."""
    counts = (totals.bytes, "byte"), (totals.words, "word"), (totals.tokens, "token")
    numbers = ", ".join(f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts)
    return f"{found.model}, pre-tokenizer {found.pre}: {numbers}"


# ---- why not --------------------------------------------------------------------------------------------


def answer_in_words(found: Trace, answer: WhyNot) -> Iterator[Sentence]:
    """Why a piece was not produced."""
    name: Sentence = [Quote(answer.piece)]
    if answer.token is None:
        yield [*name, " is no token of this vocabulary.", *_instead(" There is ", answer)]
        return
    name.append(f" (token {answer.token})")
    if answer.reason == "produced":
        yield [*name, " was produced: ", _spans(answer)]
    elif answer.reason == "not_parsed":
        yield [*name, " is a special token, and special tokens are not parsed here, so its text is split "
               f"and merged as any other. It stands at {_bytes(answer.places[0])}."]  # fmt: skip
    elif answer.reason == "not_added":
        why = "the model does not ask for it" if found.add_special else "that was not asked for"
        yield [*name, f" stands for the beginning or end of a text. It is not in this one, nor added: {why}."]
    elif answer.reason == "byte":
        yield [*name, " stands for a byte of symbols that are no tokens. No symbol of this text needs it."]
    elif answer.reason == "absent":
        yield [*name, " does not stand in the text.", *_instead(" But this does: ", answer)]
    else:
        yield from _by_place(found, answer, name)


def _by_place(found: Trace, answer: WhyNot, name: Sentence) -> Iterator[Sentence]:
    count = len(answer.places)
    places = "one place" if count == 1 else f"{count}{' or more' * (count == PLACES)} places"
    yield [*name, f" stands in the text at {places}, and was not produced."]
    for place in answer.places[:PLACES_SHOWN]:
        yield [f"{_bytes(place)}: ", *_reason(found, answer, place)]
    if count > PLACES_SHOWN:
        yield [f"… and {'at least ' * (count == PLACES)}{count - PLACES_SHOWN} more places"]


def _reason(found: Trace, answer: WhyNot, place: Place) -> Sentence:
    if place.reason == "special":
        return [
            "the special token ",
            Quote(place.text),
            f" ({place.token}) takes a part of it, before all else.",
        ]
    if place.reason == "boundary":
        return _boundary(found, place)
    word: Sentence = ["the word ", Quote(place.text), f" (word {place.word})"]
    if place.reason == "whole":
        return [*word, f" is a token itself, and taken whole, without merging ({place.whole})."]
    if place.reason == "merges":
        return [*word, " has it, but ", *_no_path(answer)]
    if place.reason == "produced":
        return [*word, " has it as a symbol, which is another token's text."]
    assert place.merge is not None
    taken: Sentence = ["in ", *word, ", the merge ", *merge_in_words(place.merge)]
    if place.reason == "longer":
        longer = Quote(place.merge.left + place.merge.right)
        return [*taken, " came after it was made, and made it a part of ", longer, "."]
    assert place.needed is not None
    own: Sentence = ["; its own merge ", *merge_in_words(place.needed)]
    if place.merge.rank == place.needed.rank:
        return [*taken, " took a part of it first, being further to the left", *own, " is the same."]
    return [*taken, " took a part of it first", *own, " has a higher rank, and so comes later."]


def _boundary(found: Trace, place: Place) -> Sentence:
    said: Sentence = [
        f"a word boundary at byte {place.boundary} cuts it, made by ",
        *_stage(found, place.cuts[0].stage),
    ]
    for between, cut, text in zip((": ", "; "), place.cuts, place.sides):
        said += [between, Quote(text)]
        if cut.alternative is None:
            said.append(" was left over")
        else:
            said += [" was taken by ", *_alternative(found, cut.stage, cut.alternative)]
    return said


def _no_path(answer: WhyNot) -> Sentence:
    alone: Sentence = ["no merge path leads to it: merged by itself, it ends as "]
    for number, symbol in enumerate(answer.alone):
        alone += [" " * (number > 0), Quote(symbol)]
    if not answer.makers:
        return [*alone, ", and no merge makes it of two parts."]
    alone.append(", so that the merge that would make it, ")
    return [*alone, *merge_in_words(answer.makers[0]), ", finds no such pair."]


def merge_in_words(merge: Merge) -> Sentence:
    """The two parts and the rank."""
    return [Quote(merge.left), " + ", Quote(merge.right), f" (rank {merge.rank})"]


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


# ---- the page -------------------------------------------------------------------------------------------


def html(given: Survey | Parts | Trace, words: int, answer: WhyNot | None = None) -> Iterator[str]:
    """A text as one HTML file, in pieces, with its first `words` words and the tokens up to there."""
    seen = survey_of(given) if isinstance(given, Trace) else given
    totals, model = seen.totals, seen.model
    shown = min(words, totals.words)
    tokens, fragments = _numbers_shown(seen, words)
    yield from page_around("The way of a text to its tokens", chain(
        [f"<p class=muted>{safe(summary(model, totals))}</p>\n"],
        (f"<p>{_sentence(said)}</p>" for said in (answer_in_words(model, answer) if answer else ())),
        ["<div class=row>"],
        (_token_box(number, token) for number, _, token in islice(_tokens_of(seen), tokens)),
        ["</div>\n"],
        _section("Fragments", fragments, totals.fragments, _fragment_table(islice(seen.fragments, fragments))),
        _section("Words", shown, totals.words, islice(_words_of(seen), shown)),
        _section("Tokens", tokens, totals.tokens, _token_table(islice(_tokens_of(seen), tokens))),
    ))  # fmt: skip


def _numbers_shown(seen: Survey | Parts, words: int) -> tuple[int, int]:
    """How many tokens there are before word `words`, and fragments up to there."""
    tokens, fragment = 0, words - 1
    for _, before, token in _tokens_of(seen):
        if token.word is not None and before.words + token.word >= words:
            break
        tokens, fragment = tokens + 1, before.fragments + token.fragment
    kept = len(seen.fragments) if isinstance(seen, Survey) else seen.totals.fragments
    return tokens, min(fragment + 1, kept)


def _tokens_of(seen: Survey | Parts) -> Iterator[tuple[int, Totals, Token]]:
    """The number of each token, what comes before its part of the text, and the token itself."""
    for before, found in seen.parts:
        for number, token in enumerate(found.tokens):
            yield before.tokens + number, before, token


def _words_of(seen: Survey | Parts) -> Iterator[str]:
    for before, found in seen.parts:
        for number in range(len(found.words)):
            yield _word(found, number, before)


def _section(title: str, shown: int, count: int, body: Iterable[str]) -> Iterator[str]:
    numbers = f"{count:,}" if shown == count else f"the first {shown:,} of {count:,}"
    yield f"<section><h2>{title} <span class=muted>{numbers}</span></h2>"
    yield from body
    yield "</section>\n"


def _sentence(said: Sentence) -> str:
    return "".join(safe(part) if isinstance(part, str) else _quote(part) for part in said)


def _quote(quote: Quote) -> str:
    if quote.is_pattern:
        return f"<code>/{marked(quote.text)}/</code>"
    return token_box(quote.text)


def _token_box(number: int, token: Token) -> str:
    special = " special" if token.origin in ("special", "bos", "eos", "dna") else ""
    return token_box(token.piece or token.text, f"t{number % COLORS}{special}")


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A table; a column whose name ends in "#" holds numbers, and one named "bytes" spans."""
    names = list(columns)
    classes = [
        " class=number" if name.endswith("#") else " class=span" if name == "bytes" else "" for name in names
    ]
    head = "".join(f"<th{kind}>{name.rstrip('#')}" for name, kind in zip(names, classes))
    yield f"<div class=scroll><table><tr>{head}"
    for row in rows:
        yield "\n<tr>" + "".join(f"<td{kind}>{cell}" for cell, kind in zip(row, classes))
    yield "</table></div>"


def _fragment_table(fragments: Iterable[tuple[Fragment, bytes]]) -> Iterator[str]:
    rows = (
        (
            f"{fragment.start:,}–{fragment.end:,}",
            safe(kind_of(fragment)),
            "" if fragment.token is None else f"<span class=id>{fragment.token}</span>",
            _quote(Quote(_clipped(data, fragment.end - fragment.start))) if data else "",
        )
        for fragment, data in fragments
    )
    return _table(("bytes", "what", "id#", "text"), rows)


def _clipped(data: bytes, size: int, limit: int = 2000) -> bytes:
    """At most `limit` bytes of a text of `size`."""
    return data if size <= limit else data[:limit] + "…".encode()


def _word(found: Trace, number: int, before: Totals) -> str:
    word = found.words[number]
    ids = " ".join(str(token) for symbol in word.symbols for token in symbol.ids)
    summary = (
        f"<summary>{_quote(Quote(_clipped(found.text[word.start : word.end], word.end - word.start, 200)))} "
        f"<span class=muted>word {before.words + number}, "
        f"bytes {before.bytes + word.start:,}–{before.bytes + word.end:,}</span> "
        f"<span class=id>{ids if len(ids) < 60 else ids[:60] + '…'}</span></summary>"
    )
    opened = " open" if before.words + number < 3 else ""
    return f"<details{opened}>{summary}<p>{_sentence(taken_by(found, word))}</p>{_merging(word)}</details>\n"


def _merging(word: Word) -> str:
    """How a word was merged: a row for each merge, with all symbols after it."""
    if word.whole is not None:
        return f"<p>{token_box(word.written, 't0')} is a token, and taken whole ({word.whole}).</p>"
    symbols = list(word.written)
    wide = len(symbols) > _ROW_LENGTH  # a row of all symbols for each merge would be a square
    rows = [("", "" if wide else _symbols(symbols, None), "")]
    for merge in word.merges[:_MERGES_SHOWN]:
        symbols[merge.position], symbols[merge.position + len(merge.left)] = merge.left + merge.right, ""
        pair = f"{token_box(merge.left)} + {token_box(merge.right)}"
        rows.append((str(merge.rank), "" if wide else _symbols(symbols, merge.position), pair))
    if len(word.merges) > _MERGES_SHOWN:
        rows.append(("…", f"and {len(word.merges) - _MERGES_SHOWN:,} more merges", ""))
    result = "".join(
        f"{token_box(symbol.text, f't{at % COLORS}')}<span class=id>{' '.join(map(str, symbol.ids))}</span>"
        f"<span class=bad>{safe(fate_of(symbol))}</span> "
        for at, symbol in enumerate(word.symbols)
    )
    table = "".join(_table(("rank#", "symbols", "merge"), rows)) if word.merges else ""
    return f"{table}<div class=row>{result}</div>"


def _symbols(symbols: list[str], new: int | None) -> str:
    """All symbols in a row; the one at `new` marked."""
    boxes = (token_box(text, "t2" if at == new else "") for at, text in enumerate(symbols) if text)
    return f"<div class=row>{''.join(boxes)}</div>"


def _token_table(tokens: Iterable[tuple[int, Totals, Token]]) -> Iterator[str]:
    rows = (
        (
            f"{number}",
            f"{token.id}",
            f"{before.bytes + token.start:,}–{before.bytes + token.end:,}",
            token_box(token.piece, f"t{number % COLORS}"),
            f"<code>{marked(token.text)}</code>",
            "" if token.word is None else f"{before.words + token.word}",
            safe(notes_on(token)),
        )
        for number, before, token in tokens
    )
    return _table(("token#", "id#", "bytes", "piece", "in the vocabulary", "word#", ""), rows)
