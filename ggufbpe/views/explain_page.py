"""A trace as a page.

trace/ -> explain.py (words) -> [this file] -> page.py (HTML)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from ..models.steps import Change, Fragment, Word
from ..trace.parts import Parts
from ..trace.reasons import WhyNot
from ..trace.survey import Survey, survey_of
from ..trace.trace import Token, Totals, Trace
from .explain import (
    Quote,
    Sentence,
    answer_in_words,
    fate_of,
    kind_of,
    notes_on,
    steps_in_words,
    summary,
    taken_by,
    weight_of,
    why_changed,
)
from .page import COLORS, marked, page_around, safe
from .page import token as token_box

_ROW_LENGTH = 64  # symbols
_MERGES_SHOWN = 500  # of a word
_CHANGES_SHOWN = 500


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
        _changes(seen),
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


def _changes(seen: Survey | Parts) -> Iterator[str]:
    """What normalization changed, each change once."""
    known: dict[tuple[bytes, str], tuple[Change, int]] = {}
    count = 0
    for before, found in seen.parts:
        for change in found.changes:
            count += 1
            if len(known) < _CHANGES_SHOWN:
                known.setdefault((change.text, change.became), (change, before.bytes))
    if not known:
        return
    rows = (
        (
            f"{before + change.start:,}–{before + change.end:,}",
            token_box(_clipped(change.text, len(change.text))),
            token_box(change.became),
            safe(why_changed(change)),
        )
        for change, before in known.values()
    )
    title = "each once, of " if len(known) < count else ""
    yield f"<section><h2>Normalization <span class=muted>{title}{count:,}</span></h2>"
    yield from _table(("bytes", "text", "becomes", "why"), rows)
    yield "</section>\n"


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
    special = " special" if token.word is None else ""
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
    said = [taken_by(found, word), *steps_in_words(word, _MERGES_SHOWN)]
    steps = "".join(f"<p>{_sentence(sentence)}</p>" for sentence in said if sentence)
    return f"<details{opened}>{summary}{steps}{_merging(word)}</details>\n"


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
        rows.append((weight_of(merge), "" if wide else _symbols(symbols, merge.position), pair))
    if len(word.merges) > _MERGES_SHOWN:
        rows.append(("…", f"and {len(word.merges) - _MERGES_SHOWN:,} more merges", ""))
    result = "".join(
        f"{token_box(symbol.text, f't{at % COLORS}')}<span class=id>{' '.join(map(str, symbol.ids))}</span>"
        f"<span class=bad>{safe(fate_of(symbol))}</span> "
        for at, symbol in enumerate(word.symbols)
    )
    weight = "score#" if word.merges and word.merges[0].score is not None else "rank#"
    table = "".join(_table((weight, "symbols", "merge"), rows)) if word.merges else ""
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
