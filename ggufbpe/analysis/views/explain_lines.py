"""Shows the trace of a text as lines for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ..._util.wording import counted
from ...chat.token_origins import ChatTokens
from ...models.tracers.trace_types import Alone, Word
from ...tokenizer.trace import Token, Totals, Trace
from ..explain.explain_words import (
    Sentence,
    fragment_kind,
    merge_order,
    merge_order_name,
    notes_on,
    steps_in_words,
    summary,
    symbol_fate,
    symbol_reader,
    taken_by,
    why_changed,
)
from ..explain.long_text_parts import Parts
from ..explain.reasons import WhyNot
from ..explain.survey import Survey, survey_whole
from ..explain.why_not_words import answer_in_words
from . import terminal
from .chat_lines import INJECTED, prompt_lines, table
from .drawing import ROW, drawn, indented, styled, unbroken
from .explain_cells import clipped, pair_cell, quoted, symbol_cell, text_cell

WORDS, _MERGES, TOKENS, FRAGMENTS, CHANGES = 20, 24, 60, 20, 20  # shown if not all is
_CLIPPED = 200  # bytes of a fragment that are shown, and of the text in colours ten times as many

_PATTERN, _REPEATED = 120, 50  # characters of a pattern, the first time and again
_COLORS = ("black on cyan", "black on yellow", "black on green", "black on magenta")  # in turn
_NEW = "black on green"  # what a merge made
_SPECIAL = "bold reverse"
_BATCH = 100  # rows of a table that are drawn at once
_WIDEST = 4096  # columns of a table or a word in anything but a terminal

_Row = Sequence[str | Text]
_Reader = Callable[[str], bytes]  # a symbol to what it stands for


class ExplainLines:
    """Draws for a terminal of `width` columns; None for anything else, where no sentence is broken."""

    def __init__(
        self,
        width: int | None,
        color: bool,
        everything: bool,
        chat: ChatTokens | None = None,
        alone: Callable[[str], Alone | None] | None = None,
    ) -> None:
        """`alone` merges a word that was taken whole, to show what merges would make of it."""
        self._terminal = width
        self._width = width or _WIDEST
        self._row = width or ROW
        self._color = color
        self._all = everything
        self._chat = chat
        self._alone = alone
        self._injected = {each.token: each.origin.name for each in chat.injected} if chat else {}
        self._shown: dict[str, int] = {}  # words whose merges were shown
        self._patterns: set[str] = set()  # which were shown
        self._before = Totals()  # the part that is traced

    def lines(
        self, given: Survey | Parts | Trace, word: int | None, token: int | None, answer: WhyNot | None
    ) -> Iterator[str]:
        """The whole, the word or the token that is asked for, or the answer; line by line."""
        seen = survey_whole(given) if isinstance(given, Trace) else given
        return drawn(self._parts(seen, word, token, answer), self._color, self._terminal)

    def _parts(
        self, seen: Survey | Parts, word: int | None, token: int | None, answer: WhyNot | None
    ) -> Iterator[RenderableType]:
        yield terminal.one_line(summary(seen.model, seen.totals))
        if answer is not None:
            for said in answer_in_words(seen.model, answer):
                yield ""
                yield self._said(said)
        elif isinstance(seen, Parts) or word is token is None:
            yield from self._everything(seen)
        else:
            yield from self._one(seen, word, token)

    def _one(self, seen: Survey, word: int | None, token: int | None) -> Iterator[RenderableType]:
        """One word, or one token with its word."""
        self._all = True
        self._before, trace = seen.before, seen.trace
        if word is not None:
            yield from self._word(trace, word)
            yield from self._tokens(seen, [n for n, each in enumerate(trace.tokens) if each.word == word])
        elif token is not None:
            number = trace.tokens[token].word
            yield from self._tokens(seen, [token])
            yield from () if number is None else self._word(trace, number)

    def _everything(self, seen: Survey | Parts) -> Iterator[RenderableType]:
        if self._chat is not None:
            yield from self._origins(self._chat)
        totals = seen.totals
        words, tokens = totals.words, totals.tokens
        if not self._all:
            words, tokens = min(words, WORDS), min(tokens, TOKENS)
        if tokens:
            yield ""
            yield from self._text(
                islice((token for part in seen.parts for token in part.trace.tokens), tokens)
            )
        yield from self._fragments(seen)
        yield from self._changes(seen)
        for self._before, trace in seen.parts:
            for number in range(min(len(trace.words), words - self._before.words)):
                yield from self._word(trace, number)
        if words < totals.words:
            yield ""
            yield f"… words 0 to {words - 1} of {totals.words:,}: --word N shows one, --all shows all"
        yield from self._tokens(seen, range(tokens))
        if tokens < totals.tokens:
            yield f"… tokens 0 to {tokens - 1} of {totals.tokens:,}: --token N shows one, --all shows all"

    # ---- parts ----

    def _origins(self, chat: ChatTokens) -> Iterator[RenderableType]:
        """What of a prompt is whose: in colours, or else in a table."""
        for injected in chat.injected:
            yield Text(terminal.one_line(injected.in_words()), INJECTED)
        if self._color:
            yield ""
            yield from prompt_lines(chat)
        else:
            prompt = chat.rendered.prompt

            def rows() -> Iterator[_Row]:
                for part in chat.rendered.parts:
                    text = quoted(prompt[part.start : part.end])
                    yield _span(part.start, part.end), terminal.one_line(part.origin.name), text

            yield from self._table("prompt", ("bytes", "of", "text"), rows)
        yield ""
        yield table(chat)

    def _text(self, tokens: Iterable[Token]) -> Iterator[Text]:
        """The text in its tokens: coloured, or with bars between them."""
        line = styled("")
        for number, token in enumerate(tokens):
            style = _SPECIAL if token.word is None else _COLORS[number % len(_COLORS)]
            style = INJECTED if number in self._injected else style
            cell = text_cell(token.piece or token.text, style)
            for part in [cell] if self._color else [cell, styled("|")]:
                if line and line.cell_len + part.cell_len > self._row:
                    yield line
                    line = styled("")
                line.append_text(part)
        yield line

    def _fragments(self, seen: Survey | Parts) -> Iterator[RenderableType]:
        def rows() -> Iterator[_Row]:
            for fragment, data in seen.fragments if self._all else islice(seen.fragments, FRAGMENTS):
                size = fragment.end - fragment.start
                most = len(data) if self._all else _CLIPPED
                text = quoted(data if size <= most else data[:most] + "…".encode())
                token = "" if fragment.token is None else str(fragment.token)
                place = _span(fragment.start, fragment.end)
                yield place, fragment_kind(fragment), token, text if data else ""

        yield from self._table("fragments", ("bytes", "what", "id", "text"), rows)
        count = seen.totals.fragments
        if not self._all and count > FRAGMENTS:
            yield f"… {FRAGMENTS} of {count:,} fragments: --all shows all"

    def _changes(self, seen: Survey | Parts) -> Iterator[RenderableType]:
        """What normalization changed: all of it, or each change once."""
        left_out = False

        def rows() -> Iterator[_Row]:
            nonlocal left_out
            known: set[tuple[bytes, str]] = set()
            for before, trace in seen.parts:
                for change in trace.changes:
                    what = change.text, change.became
                    if not self._all and (what in known or len(known) == CHANGES):
                        left_out = True
                        continue
                    known.add(what)
                    place = _span(change.start + before.bytes, change.end + before.bytes)
                    yield place, quoted(change.text), quoted(change.became), why_changed(change)

        yield from self._table("normalization", ("bytes", "text", "becomes", "why"), rows, wraps=True)
        if left_out:
            yield "  … each change once: --all shows all"

    def _word(self, trace: Trace, number: int) -> Iterator[RenderableType]:
        word = trace.words[number]
        yield ""
        title = f"word {number + self._before.words}  "
        place = f"  bytes {self._span(word.start, word.end)}"
        text = quoted(trace.text[word.start : word.end])
        text = clipped(text, self._width - len(title) - len(place))
        yield Text.assemble((title, "bold"), text, (place, "dim"), no_wrap=True)
        if taken := taken_by(trace, word):
            yield self._said(taken, indent=2)
        read = symbol_reader(trace, word)
        yield from self._steps(word, number, read)
        yield from self._result(word, read)

    def _steps(self, word: Word, number: int, read: _Reader) -> Iterator[RenderableType]:
        """How a word became symbols."""
        if word.whole is not None:
            yield indented(f"a token, taken whole without merging ({word.whole})", 2)
            yield from self._would_be_merged(word, read)
        elif word.merges and not self._all and word.text in self._shown:
            yield styled(f"  merged as word {self._shown[word.text]}", "dim")
        else:
            if not self._all:
                self._shown.setdefault(word.text, number)
            yield from self._merges(word, read)
        for said in steps_in_words(word, 1 << 60 if self._all else _MERGES):
            yield self._said(said, indent=2)

    def _would_be_merged(self, word: Word, read: _Reader) -> Iterator[RenderableType]:
        """What merges would make of a word that is taken whole, if that is asked for."""
        alone = None if self._alone is None else self._alone(word.written)
        if alone is None:
            return
        yield styled("  by its merges, it would be:")
        yield from self._merges(word._replace(merges=alone.merges), read)
        symbols = Text(" + ").join(symbol_cell(read(symbol)) for symbol in alone.symbols)
        end = "the same token" if len(alone.symbols) == 1 else counted(len(alone.symbols), "symbol")
        yield Text.assemble(f"  they end in {end}: ", symbols, no_wrap=True)

    def _merges(self, word: Word, read: _Reader) -> Iterator[Text]:
        """A line for each merge below a head: its rank or score, all symbols after it where they were, and the pair."""
        ranks = max((len(merge_order(merge)) for merge in word.merges), default=0)
        indent = max(ranks, 4) + 4
        widths = (
            [symbol_cell(read(symbol)).cell_len + 1 for symbol in word.unmerged]
            if len(word.written) <= self._row
            else []
        )
        pairs = max(
            (pair_cell(read(merge.left), read(merge.right)).cell_len for merge in word.merges), default=0
        )
        room = self._row - indent
        fits = widths and sum(widths) <= room
        beside = sum(widths) + 2 + pairs <= room
        if word.merges:
            head = styled(f"{merge_order_name(word.merges[0]):>{indent - 2}}  ", "dim")
            yield head + _symbols(widths, list(enumerate(word.unmerged)), None, read) if fits else head
        symbols = dict(enumerate(word.unmerged))
        shown = word.merges if self._all else word.merges[:_MERGES]
        for merge in shown:
            symbols[merge.position] += symbols.pop(merge.position + len(merge.left))
            line = styled(f"{merge_order(merge):>{indent - 2}}  ", "dim")
            pair = pair_cell(read(merge.left), read(merge.right))
            if not fits:
                yield line + clipped(pair, self._width - indent)
                continue
            line = line + _symbols(widths, sorted(symbols.items()), merge.position, read)
            if beside:
                pair.stylize("dim")
                line = line.append("  ").append_text(pair)
            yield line
        if len(shown) < len(word.merges):
            yield styled(f"  … {len(shown)} of {len(word.merges):,} merges: --word N shows all", "dim")

    def _result(self, word: Word, read: _Reader) -> Iterator[Text]:
        """The symbols that became tokens, and the others."""
        for number, symbol in enumerate(word.symbols if self._all else word.symbols[:_MERGES]):
            ids = " ".join(map(str, symbol.ids))
            cell = clipped(
                symbol_cell(read(symbol.text), _COLORS[number % len(_COLORS)]), self._width - 5 - len(ids)
            )
            fate = symbol_fate(symbol)
            yield Text.assemble("  → ", cell, " ", (ids, "bold"), "  " * bool(fate) + fate, no_wrap=True)
        if not self._all and len(word.symbols) > _MERGES:
            yield styled(f"  … {_MERGES} of {len(word.symbols):,} symbols: --word N shows all", "dim")

    def _tokens(self, seen: Survey | Parts, numbers: Sequence[int]) -> Iterator[RenderableType]:
        """Those of a part that is the only one by their numbers, and of several the first ones."""

        def rows() -> Iterator[_Row]:
            for self._before, trace in seen.parts:
                last = range(len(trace.tokens)) if isinstance(seen, Parts) else numbers
                for number in last:
                    token = trace.tokens[number]
                    injected = self._injected.get(number + self._before.tokens)
                    yield (
                        str(number + self._before.tokens),
                        str(token.id),
                        self._span(token.start, token.end),
                        quoted(token.piece),
                        text_cell(token.text) if token.text.encode() != token.piece else "",
                        styled(f"injected by {injected}", INJECTED) if injected else notes_on(token),
                    )

        yield from self._table("tokens", ("#", "id", "bytes", "piece", "vocabulary", ""), rows, wraps=True)

    def _span(self, start: int, end: int) -> str:
        """A place in the traced part, as one in the text."""
        return _span(start + self._before.bytes, end + self._before.bytes)

    # ---- how it is drawn ----

    def _table(
        self, title: str, head: tuple[str, ...], rows: Callable[[], Iterable[_Row]], wraps: bool = False
    ) -> Iterator[RenderableType]:
        """Columns as wide as they need to be; numbers to the right; long text is cut at the terminal's edge.

        If it `wraps`, the last column is broken at spaces, and the others leave room for its longest word. The rows
        are asked for twice, for there may be more of them than memory should hold: first it is only seen how wide
        they are.
        """
        most = max(self._width // 3, 12)
        used, word = [0] * len(head), 0
        for row in rows():
            used = [max(width, _text_of(cell).cell_len) for width, cell in zip(used, row)]
            word = max(word, *map(cell_len, _text_of(row[-1]).plain.split())) if wraps and row[-1] else word
        if not any(used):
            return
        yield ""
        yield styled(title, "bold")
        widths, room = {}, self._width - 2
        last = max(at for at in range(len(head)) if used[at])
        needed = [max(width, len(name)) + 2 for width, name in zip(used[:last], head) if width]
        while wraps and most > 6 and sum(min(width, most + 2) for width in needed) + word + 2 > room:
            most -= 1
        for at, (width, name) in enumerate(zip(used, head)):
            if width and room >= 4:
                widths[at] = min(max(width, len(name)), room - 2 if at == last else most, room)
                room -= widths[at] + 2
        everything = rows()
        lines: list[_Row] = [[styled(name, "dim") for name in head]]
        while lines:
            table = Table.grid(padding=(0, 2, 0, 0))
            for at, width in widths.items():
                right = head[at] in ("#", "id")
                table.add_column(
                    width=width,
                    no_wrap=not (wraps and at == last),
                    overflow="ellipsis",
                    justify="right" if right else "left",
                )
            for row in chain(lines, islice(everything, _BATCH)):
                table.add_row(*(_text_of(row[at]) for at in widths))
            yield indented(table, 2)
            lines = list(islice(everything, 1))

    def _said(self, said: Sentence, indent: int = 0) -> RenderableType:
        """A sentence, broken at spaces of our own, and in patterns that fit no line."""
        room = max(self._width - indent, 20)
        line = ""
        for part in said:
            if isinstance(part, str):
                line += part
            elif part.is_pattern:
                text = str(part.text)
                most = _REPEATED if text in self._patterns else len(text) if self._all else _PATTERN
                self._patterns.add(text)
                shown = text if len(text) <= most else text[: most - 1] + "…"
                line += unbroken(f"/{terminal.one_line(shown)}/")
            else:
                line += unbroken(clipped(quoted(part.text), room).plain)
        return styled(" " * indent + line) if cell_len(line) <= room else indented(line, indent)


def _symbols(
    widths: Sequence[int], symbols: Sequence[tuple[int, str]], new: int | None, read: _Reader
) -> Text:
    """The symbols, each in the columns of its first characters; the rest of its columns are blank."""
    line = styled("")
    for at, symbol in symbols:
        cell = symbol_cell(read(symbol), _NEW if at == new else "")
        blank = sum(widths[at : at + len(symbol)]) - cell.cell_len
        line.append_text(cell).append(" " * blank)
    return line


def _text_of(cell: str | Text) -> Text:
    return Text(cell) if isinstance(cell, str) else cell


def _span(start: int, end: int) -> str:
    return f"{start}–{end}"
