"""`ggufbpe explain`: the way of a text through the steps, to its ids."""

from __future__ import annotations

import argparse
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, NamedTuple

from ..escapes import Unescaped, process_escapes
from ..tokenizer import Tokenizer
from ..trace.parts import Parts
from ..trace.survey import Survey, Wanted, survey, survey_of
from ..trace.trace import Token, Totals, Trace, Word, as_json, to_json
from ..trace.why_not import WhyNot, why_not
from ..trace.why_not import to_json as answer_to_json
from ..views.explain import (
    Quote,
    Sentence,
    answer_in_words,
    fate_of,
    html,
    kind_of,
    notes_on,
    summary,
    taken_by,
)
from . import _output
from ._arguments import (
    Parser,
    UsageError,
    add_model,
    add_sources,
    add_special_flags,
    model_path,
    overrides_of,
)
from ._files import require_folder, require_free, write_file
from ._input import stdin

_DESCRIPTION = """\
Show how a text becomes tokens: the fragments between special tokens; the words, each with the alternative of the \
pre-tokenizer's pattern that took it; the merges of each word in order, with their ranks; and the ids, with the \
bytes of the text that they stand for.

The text is taken as it is; backslash escapes are read only with --escape. Words and tokens are numbered from 0."""
_EXAMPLES = """\
examples:
  ggufbpe explain "Hello world"
  ggufbpe explain -m model.gguf -f prompt.txt --word 12
  ggufbpe explain -m model.gguf -p "Hello world" --why-not Hell
  ggufbpe explain -m model.gguf -f prompt.txt --html way.html
  ggufbpe explain -m model.gguf --stdin --json < prompt.txt"""

_WORDS, _MERGES, _TOKENS, _FRAGMENTS = 20, 24, 60, 20  # shown without --all
_WORDS_OF_PAGE, _MOST_FRAGMENTS = 500, 5000  # on a page
_READ, _IN_MEMORY = 1 << 16, 1 << 20  # bytes
_CLIPPED = 200  # bytes of a fragment that are shown, and of the text in colours ten times as many

_BACKGROUNDS = ("\x1b[30;46m", "\x1b[30;43m", "\x1b[30;42m", "\x1b[30;45m")  # black on a colour, in turn
_NEW = "\x1b[30;42m"  # what a merge made
_SPECIAL = "\x1b[1;7m"


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    add_model(parser)
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="the text")
    add_sources(parser, "the text")
    parser.add_argument("text", nargs="?", help="the text, as with -p")
    parser.add_argument(
        "-e", "--escape", action="store_true", help="process escape sequences such as \\n, also in PIECE"
    )
    add_special_flags(parser)
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--word", type=int, metavar="N", help="show only word N, with all its merges")
    part.add_argument("--token", type=int, metavar="N", help="show only token N, and its word")
    part.add_argument(
        "--why-not",
        metavar="PIECE",
        help='say why this token was not produced; as text (" world") or as the vocabulary has it ("Ġworld")',
    )
    parser.add_argument("--all", action="store_true", help="show all of a long text")
    parser.add_argument("--json", action="store_true", help="print the trace as JSON, all of it")
    parser.add_argument("--html", metavar="FILE", help="write a page instead, self-contained")
    parser.add_argument("--force", action="store_true", help="write the page over an existing file")
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colour (default: auto)"
    )


def run(arguments: argparse.Namespace) -> int:
    with _given_text(arguments) as given:
        tokenizer = Tokenizer.from_gguf(model_path(arguments), overrides=overrides_of(arguments))
        stream: Any = given or stdin()
        stream = Unescaped(stream) if arguments.escape else stream
        flags = {"add_special": not arguments.no_bos, "parse_special": arguments.parse_special}
        is_one = arguments.word is not None or arguments.token is not None
        if arguments.why_not is None and not arguments.json and (is_one or not arguments.all):
            _show(arguments, _survey(arguments, tokenizer, stream, flags), None)
            return 0
        with SpooledTemporaryFile(_IN_MEMORY) as file:  # it is read again and again, and may be a pipe
            for part in iter(lambda: stream.read(_READ), b""):
                file.write(part)
            whole = Parts(tokenizer, file, **flags)
            answer = _answer(arguments, whole)
            if arguments.json:
                for text in _json(arguments, whole, answer):
                    _output.write(text.encode())
            elif arguments.all and not is_one:
                _show(arguments, whole, answer)
            else:
                _show(arguments, _survey(arguments, tokenizer, whole.file, flags), answer)
    return 0


def _show(arguments: argparse.Namespace, found: Survey | Parts, answer: WhyNot | None) -> None:
    """The page, or lines on the terminal."""
    if arguments.html is not None:
        count = found.totals.words if arguments.all else _WORDS_OF_PAGE
        write_file(arguments.html, (text.encode() for text in html(found, count, answer)))
        return
    word, token = (None, None) if isinstance(found, Parts) else _chosen(arguments, found)
    view = _View(_output.terminal_width() or 100, _output.use_color(arguments.color), arguments.all)
    for line in view.lines(found, word, token, answer):
        _output.write(f"{line.rstrip(' ')}\n".encode("utf-8", "replace"))


def _survey(
    arguments: argparse.Namespace, tokenizer: Tokenizer, stream: Any, flags: dict[str, bool]
) -> Survey:
    """The text counted, and traced where it is shown."""
    is_page = arguments.html is not None
    words, tokens = (_WORDS_OF_PAGE, 0) if is_page else (_WORDS, _TOKENS)
    # one word more, for of the last one not all is seen that the stages cut
    wanted = Wanted(words + 1, tokens, arguments.word, arguments.token)
    fragments = _MOST_FRAGMENTS if is_page else _FRAGMENTS
    return survey(tokenizer, stream, wanted, **flags, fragments=fragments)


def _answer(arguments: argparse.Namespace, whole: Parts) -> WhyNot | None:
    if arguments.why_not is None:
        return None
    piece = os.fsencode(arguments.why_not)
    piece = process_escapes(piece) if arguments.escape else piece
    whole.file.seek(0)
    answer = why_not(whole.tokenizer, whole.file, piece, **whole.flags)
    whole.file.seek(0)
    return answer


@contextmanager
def _given_text(arguments: argparse.Namespace) -> Iterator[BinaryIO | None]:
    """The text of the one source that is given; None for standard input."""
    given = [arguments.text, arguments.prompt, arguments.file]
    if sum(each is not None for each in given) + arguments.stdin != 1:
        raise UsageError("give one text: TEXT, -p TEXT, -f PATH or --stdin (see ggufbpe explain --help)")
    if arguments.html is not None and arguments.json:
        raise UsageError("--html and --json: give one of them")
    if arguments.html is not None and (arguments.word is not None or arguments.token is not None):
        raise UsageError("--html shows all words: leave out --word and --token")
    if arguments.html is not None:
        require_free(arguments.html, arguments.file, arguments.force)
        require_folder(arguments.html)
    if arguments.file is not None:
        with open(arguments.file, "rb") as file:
            yield file
        return
    text = arguments.text if arguments.text is not None else arguments.prompt
    yield None if text is None else io.BytesIO(os.fsencode(text))


def _chosen(arguments: argparse.Namespace, found: Survey) -> tuple[int | None, int | None]:
    """The numbers of the word and the token that --word and --token ask for, in the part that is traced."""
    _require_numbers(arguments, found.totals)
    word, token = arguments.word, arguments.token
    return (
        None if word is None else word - found.before.words,
        None if token is None else token - found.before.tokens,
    )


def _require_numbers(arguments: argparse.Namespace, totals: Totals) -> None:
    """Refuse a --word or --token that the text does not have."""
    for noun, number, count in (
        ("word", arguments.word, totals.words),
        ("token", arguments.token, totals.tokens),
    ):
        if number is not None and not 0 <= number < count:
            there = f"there are {noun}s 0 to {count - 1}" if count else f"the text has no {noun}s"
            raise UsageError(f"there is no {noun} {number}: {there}")


# ---- JSON -----------------------------------------------------------------------------------------------


def _json(arguments: argparse.Namespace, whole: Parts, answer: WhyNot | None) -> Iterator[str]:
    """What --json prints, in pieces: the trace, the part of it that was asked for, or the answer."""
    if answer is not None:
        yield _output.json_text(answer_to_json(answer), indent=2)
    elif arguments.word is not None or arguments.token is not None:
        _require_numbers(arguments, whole.totals)
        yield _output.json_text(_one(whole, arguments.word, arguments.token), indent=2)
    else:
        yield from _json_of(whole)
    yield "\n"


def _one(whole: Parts, word: int | None, token: int | None) -> dict[str, Any]:
    """One word, or one token with its word."""
    for before, found in whole.parts:
        if word is not None and word - before.words < len(found.words):
            return as_json(found.words[word - before.words], before)
        if token is not None and token - before.tokens < len(found.tokens):
            one = found.tokens[token - before.tokens]
            in_word = None if one.word is None else as_json(found.words[one.word], before)
            return {**as_json(one, before), "in_word": in_word}
    raise AssertionError("a number that is not in the text")


def _json_of(whole: Parts) -> Iterator[str]:
    """The trace of all, as `to_json` has it; a list at a time, so that none is held."""
    lists: dict[str, Iterable[Any]] = {
        "ids": chain.from_iterable(whole.ids),
        "fragments": (as_json(fragment) for fragment, _ in whole.fragments),
        "words": (as_json(word, before) for before, found in whole.parts for word in found.words),
        "tokens": (as_json(token, before) for before, found in whole.parts for token in found.tokens),
    }
    between = "{\n  "
    for key, value in to_json(whole.model).items():
        yield f'{between}"{key}": '
        between = ",\n  "
        if key == "text":
            yield from _json_text_of(whole)
        elif key in lists:
            yield from _json_list(lists[key])
        else:
            yield _output.json_text(value, indent=2).replace("\n", "\n  ")
    yield "\n}"


def _json_list(items: Iterable[Any]) -> Iterator[str]:
    is_empty = True
    for item in items:
        yield "[\n    " if is_empty else ",\n    "
        yield _output.json_text(item, indent=2).replace("\n", "\n    ")
        is_empty = False
    yield "[]" if is_empty else "\n  ]"


def _json_text_of(whole: Parts) -> Iterator[str]:
    """The text, and its bytes where it is not UTF-8."""
    is_utf8 = True
    yield '"'
    for data in whole.text:  # cut between characters
        text = data.decode("utf-8", "replace")
        is_utf8 = is_utf8 and text.encode() == data
        yield _output.json_text(text)[1:-1]
    yield '"'
    if not is_utf8:
        yield ',\n  "text_bytes": "'
        yield from (data.hex() for data in whole.text)
        yield '"'


# ---- the terminal ---------------------------------------------------------------------------------------


class _Cell(NamedTuple):
    """Text that is safe to print, how wide it is, and its colour."""

    text: str
    width: int
    color: str = ""


_Row = Sequence[str | _Cell]


class _View:
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
        yield from self._said([_output.one_line(summary(seen.model, seen.totals))])
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
            words, tokens = min(words, _WORDS), min(tokens, _TOKENS)
        if tokens:
            yield ""
            yield from self._text(
                islice((token for part in seen.parts for token in part.trace.tokens), tokens)
            )
        yield from self._fragments(seen)
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
            special = token.origin in ("special", "bos", "eos", "dna")
            color = _SPECIAL if special else _BACKGROUNDS[number % len(_BACKGROUNDS)]
            for cell in [_cell(token.piece or token.text, color)] + [_Cell("|", 1)] * (not self._color):
                if used and used + cell.width > self._width:
                    yield line
                    line, used = "", 0
                line, used = line + self._paint(cell), used + cell.width
        yield line

    def _fragments(self, seen: Survey | Parts) -> Iterator[str]:
        def rows() -> Iterator[_Row]:
            for fragment, data in seen.fragments if self._all else islice(seen.fragments, _FRAGMENTS):
                size = fragment.end - fragment.start
                most = len(data) if self._all else _CLIPPED
                text = self._quoted(data if size <= most else data[:most] + "…".encode())
                token = "" if fragment.token is None else str(fragment.token)
                place = _span(fragment.start, fragment.end)
                yield place, kind_of(fragment), token, text if data else ""

        yield from self._table("fragments", ("bytes", "what", "id", "text"), rows)
        count = seen.totals.fragments
        if not self._all and count > _FRAGMENTS:
            yield from self._said([f"… {_FRAGMENTS} of {count:,} fragments: --all shows all"])

    def _word(self, found: Trace, number: int) -> Iterator[str]:
        word = found.words[number]
        yield ""
        text = self._quoted(found.text[word.start : word.end])
        title = f"word {number + self._before.words}  "
        place = f"  bytes {self._span(word.start, word.end)}"
        yield self._bold(title) + self._clip(text, self._width - len(title) - len(place)) + self._dim(place)
        yield from self._said(taken_by(found, word), indent=2)
        if word.whole is not None:
            yield from self._said([f"a token, taken whole without merging ({word.whole})"], indent=2)
        elif word.merges and not self._all and word.text in self._shown:
            yield self._dim(f"  merged as word {self._shown[word.text]}")
        else:
            if not self._all:
                self._shown.setdefault(word.text, number)
            yield from self._merges(word)
        yield from self._result(word)

    def _merges(self, word: Word) -> Iterator[str]:
        """A line for each merge: its rank, all symbols after it where they were, and the pair."""
        ranks = max((len(str(merge.rank)) for merge in word.merges), default=0)
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
            rank = f"{merge.rank:>{indent - 2}}  "
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
        shown = f"/{_output.one_line(text if self._all or len(text) <= 120 else text[:119] + '…')}/"
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
        return f"{cell.color}{cell.text}{_output.RESET}"

    def _bold(self, text: str) -> str:
        return f"{_output.BOLD}{text}{_output.RESET}" if self._color else text

    def _dim(self, text: str) -> str:
        return f"{_output.DIM}{text}{_output.RESET}" if self._color else text


def _cell_of(given: str | _Cell) -> _Cell:
    return _Cell(given, len(given)) if isinstance(given, str) else given


def _span(start: int, end: int) -> str:
    return f"{start}–{end}"


def _pair(left: str, right: str) -> _Cell:
    first, second = _cell(left), _cell(right)
    return _Cell(f"{first.text} + {second.text}", first.width + second.width + 3)


def _cell(text: str | bytes, color: str = "") -> _Cell:
    """Text of a user or a model: escaped, and right-to-left text kept from turning what is around it."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    shown = _output.visible(data)
    width = len(shown) if shown.isascii() else sum(map(_char_width, shown))
    return _Cell(_output.isolated(shown), width, color)


def _char_width(char: str) -> int:
    """The columns that a terminal gives a character."""
    from unicodedata import category, east_asian_width

    if char < "\u0300":
        return 1
    if category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1
