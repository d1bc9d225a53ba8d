"""Shows the trace of a text as an HTML page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from ...chat.origins import Origin
from ...chat.token_origins import ChatTokens
from ...models.tracers.trace_types import Alone, Merge, RewrittenText, Word
from ...tokenizer.trace import Token, Totals, Trace
from ..explain.explain_words import (
    Sentence,
    fragment_kind,
    merge_order,
    notes_on,
    size_in_words,
    steps_in_words,
    symbol_fate,
    symbol_reader,
    taken_by,
    why_changed,
)
from ..explain.long_text_parts import Parts
from ..explain.reasons import WhyNot
from ..explain.survey import Survey, survey_whole
from ..explain.why_not_words import answer_in_words
from .chat_lines import colored_parts, row_name
from .html_page import rendered

_ROW_LENGTH = 64  # symbols
_MERGES_SHOWN = 500  # of a word
_CHANGES_SHOWN = 500

_Shown = list[tuple[bytes, bool]]  # symbols, and whether each is the new one


def html(
    given: Survey | Parts | Trace,
    words: int,
    answer: WhyNot | None = None,
    model: str = "",
    chat: ChatTokens | None = None,
    alone: Callable[[str], Alone | None] | None = None,
) -> Iterator[str]:
    """A text as one HTML file, in pieces, with its first `words` words and the tokens up to there.

    `model` is what the page calls the model: the path of its file. `alone` merges a word that was taken whole, to show
    what merges would make of it. `NotInstalledError` without jinja2.
    """
    seen = survey_whole(given) if isinstance(given, Trace) else given
    chat = given.chat if isinstance(given, Trace) else chat
    totals, trace = seen.totals, seen.model
    shown = min(words, totals.words)
    tokens, fragments = _numbers_shown(seen, words)
    changes, changed = _changes(seen)
    return rendered(
        "explain.html",
        title="How a text becomes tokens",
        model=model,
        trace=trace,
        totals=totals,
        chat=chat,
        colored_parts=colored_parts,
        newline=b"\n",
        share_name=row_name,
        color_of=_color_of,
        injected={each.token for each in chat.injected} if chat else (),
        answer=answer_in_words(trace, answer) if answer else (),
        tokens=lambda: islice(_tokens_of(seen), tokens),
        tokens_shown=tokens,
        fragments=islice(seen.fragments, fragments),
        fragments_shown=fragments,
        changes=changes,
        changed=changed,
        words=islice(_words_of(seen), shown),
        words_shown=shown,
        alone=alone or (lambda written: None),
        merges_of=_merges_of,
        merges_shown=_MERGES_SHOWN,
        clipped=_clipped,
        said_of=_said_of,
        fate_of=symbol_fate,
        kind_of=fragment_kind,
        notes_on=notes_on,
        reader_of=symbol_reader,
        size_in_words=size_in_words,
        why_changed=why_changed,
    )


def _color_of(origin: Origin) -> str:
    """The color of what comes from a message or a tool, as server/static/chat_prompt.js has it.

    "" for the template's own.
    """
    if origin.kind == "message" and origin.index is not None:
        return f"hsl({(origin.index * 67 + 210) % 360} 60% 50%)"
    return "var(--muted)" if origin.kind in ("message", "tool", "argument") else ""


def _numbers_shown(seen: Survey | Parts, words: int) -> tuple[int, int]:
    """How many tokens there are before word `words`, and fragments up to there."""
    tokens, fragment = 0, words - 1
    for _, before, token in _tokens_of(seen):
        if token.word is not None and before.words + token.word >= words:
            break
        tokens, fragment = tokens + 1, before.fragments + token.fragment
    kept = len(seen.fragments) if isinstance(seen, Survey) else seen.totals.fragments
    return tokens, min(fragment + 1, kept)


def _changes(seen: Survey | Parts) -> tuple[list[tuple[int, RewrittenText]], int]:
    """What normalization changed, each change once with the bytes before its part, and how many there are."""
    known: dict[tuple[bytes, str], tuple[int, RewrittenText]] = {}
    count = 0
    for before, trace in seen.parts:
        for change in trace.changes:
            count += 1
            if len(known) < _CHANGES_SHOWN:
                known.setdefault((change.text, change.became), (before.bytes, change))
    return list(known.values()), count


def _tokens_of(seen: Survey | Parts) -> Iterator[tuple[int, Totals, Token]]:
    """The number of each token, what comes before its part of the text, and the token itself."""
    for before, trace in seen.parts:
        for number, token in enumerate(trace.tokens):
            yield before.tokens + number, before, token


def _words_of(seen: Survey | Parts) -> Iterator[tuple[Totals, Trace, int]]:
    """The number of each word in its part of the text, with the part and what comes before it."""
    for before, trace in seen.parts:
        for number in range(len(trace.words)):
            yield before, trace, number


def _said_of(trace: Trace, word: Word) -> list[Sentence]:
    said = [taken_by(trace, word), *steps_in_words(word, _MERGES_SHOWN)]
    return [sentence for sentence in said if sentence]


def _merges_of(
    word: Word, merges: Sequence[Merge], read: Callable[[str], bytes]
) -> Iterator[tuple[str, _Shown, Merge | None]]:
    """The symbols of a word, and again after each merge, with its rank or score. Of a long word only the merges."""
    symbols = word.unmerged
    wide = len(symbols) > _ROW_LENGTH  # a row of all symbols for each merge would be a square
    yield "", [] if wide else [(read(text), False) for text in symbols], None
    for merge in merges[:_MERGES_SHOWN]:
        symbols[merge.position], symbols[merge.position + len(merge.left)] = merge.left + merge.right, ""
        shown = (
            [] if wide else [(read(text), at == merge.position) for at, text in enumerate(symbols) if text]
        )
        yield merge_order(merge), shown, merge


def _clipped(data: bytes, size: int, limit: int = 2000) -> bytes:
    """At most `limit` bytes of a text of `size`."""
    return data if size <= limit else data[:limit] + "…".encode()
