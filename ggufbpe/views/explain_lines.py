"""The way of a text, as lines for a terminal.

trace/ -> Survey, Parts -> explain.py (words) -> [this file] -> cli/explain.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from ..models.steps import Word, written_bytes
from ..trace.parts import Parts
from ..trace.reasons import WhyNot
from ..trace.survey import Survey, survey_of
from ..trace.trace import Token, Totals, Trace
from . import terminal
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

WORDS, _MERGES, TOKENS, FRAGMENTS, CHANGES = 20, 24, 60, 20, 20  # shown if not all is
_CLIPPED = 200  # bytes of a fragment that are shown, and of the text in colours ten times as many

_BACKGROUNDS = ("\x1b[30;46m", "\x1b[30;43m", "\x1b[30;42m", "\x1b[30;45m")  # black on a colour, in turn
_NEW = "\x1b[30;42m"  # what a merge made
_SPECIAL = "\x1b[1;7m"


class _Cell(NamedTuple):
    """Text that is safe to print, how wide it is, and its colour."""

    text: str
    width: int
    color: str = ""


_Row = Sequence[str | _Cell]


class ExplainLines:
    """Draws for a terminal of `width` columns."""

    def __init__(self, width: int, color: bool, everything: bool) -> None:
        self._width = width
        self._color = color
        self._all = everything
        self._shown: dict[str, int] = {}  # words whose merges were shown
        self._before = Totals()  # the part that is traced

    def lines(
        self, given: Survey | Parts | Trace, word: int | None, token: int | None, answer: WhyNot | None
    ) -> Iterator[str]:
        seen = survey_of(given) if isinstance(given, Trace) else given
        yield from self._said([terminal.one_line(summary(seen.model, seen.totals))])
        if answer is not None:
            for said in answer_in_words(seen.model, answer):
                yield ""
                yield from self._said(said)
        elif isinstance(seen, Parts) or word is token is None:
            yield from self._everything(seen)
        else:
            yield from self._one(seen, word, token)

    def _one(self, seen: Survey, word: int | None, token: int | None) -> Iterator[str]:
        """One word, or one token with its word."""
        self._all = True
        self._before, found = seen.before, seen.trace
        if word is not None:
            yield from self._word(found, word)
            yield from self._tokens(seen, [n for n, each in enumerate(found.tokens) if each.word == word])
        elif token is not None:
            number = found.tokens[token].word
            yield from self._tokens(seen, [token])
            yield from () if number is None else self._word(found, number)

    def _everything(self, seen: Survey | Parts) -> Iterator[str]:
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
        for self._before, found in seen.parts:
            for number in range(min(len(found.words), words - self._before.words)):
                yield from self._word(found, number)
        if words < totals.words:
            yield ""
            yield from self._said(
                [f"… words 0 to {words - 1} of {totals.words:,}: --word N shows one, --all shows all"]
            )
        yield from self._tokens(seen, range(tokens))
        if tokens < totals.tokens:
            yield from self._said(
                [f"… tokens 0 to {tokens - 1} of {totals.tokens:,}: --token N shows one, --all shows all"]
            )

    # ---- parts ----

    def _text(self, tokens: Iterable[Token]) -> Iterator[str]:
        """The text in its tokens: coloured, or with bars between them."""
        line, used = "", 0
        for number, token in enumerate(tokens):
            special = token.word is None
            color = _SPECIAL if special else _BACKGROUNDS[number % len(_BACKGROUNDS)]
            for cell in [_cell(token.piece or token.text, color)] + [_Cell("|", 1)] * (not self._color):
                if used and used + cell.width > self._width:
                    yield line
                    line, used = "", 0
                line, used = line + self._paint(cell), used + cell.width
        yield line

    def _fragments(self, seen: Survey | Parts) -> Iterator[str]:
        def rows() -> Iterator[_Row]:
            for fragment, data in seen.fragments if self._all else islice(seen.fragments, FRAGMENTS):
                size = fragment.end - fragment.start
                most = len(data) if self._all else _CLIPPED
                text = self._quoted(data if size <= most else data[:most] + "…".encode())
                token = "" if fragment.token is None else str(fragment.token)
                place = _span(fragment.start, fragment.end)
                yield place, kind_of(fragment), token, text if data else ""

        yield from self._table("fragments", ("bytes", "what", "id", "text"), rows)
        count = seen.totals.fragments
        if not self._all and count > FRAGMENTS:
            yield from self._said([f"… {FRAGMENTS} of {count:,} fragments: --all shows all"])

    def _changes(self, seen: Survey | Parts) -> Iterator[str]:
        """What normalization changed: all of it, or each change once."""
        left_out = False

        def rows() -> Iterator[_Row]:
            nonlocal left_out
            known: set[tuple[bytes, str]] = set()
            for before, found in seen.parts:
                for change in found.changes:
                    what = change.text, change.became
                    if not self._all and (what in known or len(known) == CHANGES):
                        left_out = True
                        continue
                    known.add(what)
                    place = _span(change.start + before.bytes, change.end + before.bytes)
                    yield place, self._quoted(change.text), self._quoted(change.became), why_changed(change)

        yield from self._table("normalization", ("bytes", "text", "becomes", "why"), rows)
        if left_out:
            yield from self._said(["… each change once: --all shows all"], 2)

    def _word(self, found: Trace, number: int) -> Iterator[str]:
        word = found.words[number]
        yield ""
        text = self._quoted(found.text[word.start : word.end])
        title = f"word {number + self._before.words}  "
        place = f"  bytes {self._span(word.start, word.end)}"
        yield self._bold(title) + self._clip(text, self._width - len(title) - len(place)) + self._dim(place)
        taken = taken_by(found, word)
        yield from self._said(taken, indent=2) if taken else ()
        yield from self._steps(word, number)
        yield from self._result(word)

    def _steps(self, word: Word, number: int) -> Iterator[str]:
        """How a word became symbols."""
        if word.whole is not None:
            yield from self._said([f"a token, taken whole without merging ({word.whole})"], indent=2)
        elif word.merges and not self._all and word.text in self._shown:
            yield self._dim(f"  merged as word {self._shown[word.text]}")
        else:
            if not self._all:
                self._shown.setdefault(word.text, number)
            yield from self._merges(word)
        for said in steps_in_words(word, 1 << 60 if self._all else _MERGES):
            yield from self._said(said, indent=2)

    def _merges(self, word: Word) -> Iterator[str]:
        """A line for each merge: its rank, all symbols after it where they were, and the pair."""
        ranks = max((len(weight_of(merge)) for merge in word.merges), default=0)
        indent = max(ranks, 4) + 4
        cells = [_cell(char) for char in word.written] if len(word.written) <= self._width else []
        pairs = max((_pair(merge.left, merge.right).width for merge in word.merges), default=0)
        room = self._width - indent
        fits = cells and sum(cell.width + 1 for cell in cells) <= room
        beside = fits and sum(cell.width + 1 for cell in cells) + 2 + pairs <= room
        if fits and word.merges:
            yield " " * indent + self._row(cells, [(at, char) for at, char in enumerate(word.written)], None)
        symbols = dict(enumerate(word.written))
        shown = word.merges if self._all else word.merges[:_MERGES]
        for merge in shown:
            symbols[merge.position] += symbols.pop(merge.position + len(merge.left))
            rank = f"{weight_of(merge):>{indent - 2}}  "
            row = self._row(cells, sorted(symbols.items()), merge.position) if fits else ""
            pair = _pair(merge.left, merge.right)
            if fits and beside:
                yield self._dim(rank) + row + "  " + self._dim(pair.text)
            elif fits:
                yield self._dim(rank) + row
            else:
                yield self._dim(rank) + self._clip(pair, room)
        if len(shown) < len(word.merges):
            yield self._dim(f"  … {len(shown)} of {len(word.merges):,} merges: --word N shows all")

    def _row(self, cells: list[_Cell], symbols: list[tuple[int, str]], new: int | None) -> str:
        """The symbols, each in the columns of its first characters; the rest of its columns are blank."""
        line = ""
        for at, symbol in symbols:
            room = sum(cell.width + 1 for cell in cells[at : at + len(symbol)])
            cell = _cell(symbol, _NEW if at == new else "")
            line += self._paint(cell) + " " * (room - cell.width)
        return line

    def _result(self, word: Word) -> Iterator[str]:
        """The symbols that became tokens, and the others."""
        for number, symbol in enumerate(word.symbols if self._all else word.symbols[:_MERGES]):
            color = _BACKGROUNDS[number % len(_BACKGROUNDS)]
            ids = " ".join(map(str, symbol.ids))
            cell = self._clip(_cell(symbol.text, color), self._width - 5 - len(ids))
            fate = fate_of(symbol)
            yield f"  → {cell} {self._bold(ids)}{'  ' * bool(fate)}{fate}"
        if not self._all and len(word.symbols) > _MERGES:
            yield self._dim(f"  … {_MERGES} of {len(word.symbols):,} symbols: --word N shows all")

    def _tokens(self, seen: Survey | Parts, numbers: Sequence[int]) -> Iterator[str]:
        """Those of a part that is the only one by their numbers, and of several the first ones."""

        def rows() -> Iterator[_Row]:
            for self._before, found in seen.parts:
                last = range(len(found.tokens)) if isinstance(seen, Parts) else numbers
                for number in last:
                    token = found.tokens[number]
                    yield (
                        str(number + self._before.tokens),
                        str(token.id),
                        self._span(token.start, token.end),
                        self._quoted(token.piece),
                        _cell(token.text) if token.text.encode() != token.piece else "",
                        notes_on(token),
                    )

        yield from self._table("tokens", ("#", "id", "bytes", "piece", "vocabulary", ""), rows)

    def _span(self, start: int, end: int) -> str:
        """A place in the traced part, as one in the text."""
        return _span(start + self._before.bytes, end + self._before.bytes)

    # ---- how it is drawn ----

    def _table(self, title: str, head: tuple[str, ...], rows: Callable[[], Iterable[_Row]]) -> Iterator[str]:
        """Columns as wide as they need to be; numbers to the right; long text is cut at the terminal's edge.

        The rows are asked for twice: first it is only seen how wide they are.
        """
        most = max(self._width // 3, 12)
        used = [0] * len(head)
        for row in rows():
            used = [max(width, _cell_of(cell).width) for width, cell in zip(used, row)]
        if not any(used):
            return
        yield ""
        yield self._bold(title)
        columns = [at for at in range(len(head)) if used[at]]
        widths = [min(max(width, len(name)), most) for width, name in zip(used, head)]
        for index, row in enumerate(chain([head], rows())):
            line, room = "  ", self._width - 2
            for at in columns:
                width = min(room if at == columns[-1] else widths[at], room)
                cell = _cell_of(row[at])
                blank = " " * max(width - cell.width, 0)
                text = self._clip(cell, width)
                line += (blank + text if head[at] in ("#", "id") else text + blank) + "  "
                room -= width + 2
                if room < 4:
                    break
            yield line if index else self._dim(line)

    def _said(self, said: Sentence, indent: int = 0) -> Iterator[str]:
        """A sentence in lines that fit, broken at spaces of our own, and in patterns that fit no line."""
        room = max(self._width - indent, 20)
        lines, used = [""], 0
        for part in self._unbroken(said, room):
            if used and used + len(part.text.rstrip(" ")) - len(part.text) + part.width > room:
                lines.append("")
                used = 0
            lines[-1] += part.text
            used += part.width
        yield from (" " * indent + line for line in lines)

    def _unbroken(self, said: Sentence, room: int) -> Iterator[_Cell]:
        """The parts of a sentence between which a line may end."""
        text, width = "", 0
        for part in said:
            if isinstance(part, Quote) and not part.is_pattern:
                cell = self._quoted(part.text)
                text, width = text + self._clip(cell, room), width + min(cell.width, room)
                continue
            words = self._pattern(part, room) if isinstance(part, Quote) else re.split("(?<= )", part)
            for word in words:
                text, width = text + word, width + len(word)
                if word.endswith(" ") or width >= room:
                    yield _Cell(text, width)
                    text, width = "", 0
        yield _Cell(text, width)

    def _pattern(self, quote: Quote, room: int) -> list[str]:
        """A pattern between slashes, cut if it is very long, in parts that fit a line."""
        text = str(quote.text)
        shown = f"/{terminal.one_line(text if self._all or len(text) <= 120 else text[:119] + '…')}/"
        return [shown[at : at + room] for at in range(0, len(shown), room)]

    def _quoted(self, data: str | bytes) -> _Cell:
        cell = _cell(data)
        return _Cell(f"'{cell.text}'", cell.width + 2)

    def _clip(self, cell: _Cell, width: int) -> str:
        """The cell in `width` columns, painted."""
        if cell.width <= width:
            return self._paint(cell)
        text, used = "", 0
        for char in cell.text:
            used += _char_width(char)
            if used >= max(width, 2):
                break
            text += char
        if "\u2068" in text and "\u2069" not in text:
            text += "\u2069"
        return self._paint(_Cell(text + "…", width, cell.color))

    def _paint(self, cell: _Cell) -> str:
        if not self._color or not cell.color:
            return cell.text
        return f"{cell.color}{cell.text}{terminal.RESET}"

    def _bold(self, text: str) -> str:
        return f"{terminal.BOLD}{text}{terminal.RESET}" if self._color else text

    def _dim(self, text: str) -> str:
        return f"{terminal.DIM}{text}{terminal.RESET}" if self._color else text


def _cell_of(given: str | _Cell) -> _Cell:
    return _Cell(given, len(given)) if isinstance(given, str) else given


def _span(start: int, end: int) -> str:
    return f"{start}–{end}"


def _pair(left: str, right: str) -> _Cell:
    first, second = _cell(left), _cell(right)
    return _Cell(f"{first.text} + {second.text}", first.width + second.width + 3)


def _cell(text: str | bytes, color: str = "") -> _Cell:
    """Text of a user or a model: escaped, and right-to-left text kept from turning what is around it."""
    data = text if isinstance(text, bytes) else written_bytes(text)
    shown = terminal.visible(data)
    width = len(shown) if shown.isascii() else sum(map(_char_width, shown))
    return _Cell(terminal.isolated(shown), width, color)


def _char_width(char: str) -> int:
    """The columns that a terminal gives a character."""
    from unicodedata import category, east_asian_width

    if char < "\u0300":
        return 1
    if category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1
