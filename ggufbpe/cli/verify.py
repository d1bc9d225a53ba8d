"""`ggufbpe verify`: our ids against those of llama.cpp or another tokenizer."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import NamedTuple

from ..corpus import CorpusError, File, decompressed, files_of, has_json_lines, records
from ..escapes import process_escapes
from ..gguf.metadata import Overrides
from ..oracles.oracles import USAGES, Oracle, open_oracle
from ..tokenizer import Tokenizer
from ..verify.result import Difference, Example, FailureGroup, Progress, Result, Shown, Text, visible_text
from ..verify.verify import verify
from ..views.report import all_fixes, count, to_html, to_json, verdict
from ..vocab import load
from . import _output
from ._arguments import Parser, UsageError, add_model, add_special_flags, model_path, overrides_of
from ._files import (
    cut_into_texts,
    problem_with,
    require_folder,
    require_free,
    say_what_was_left_out,
    write_files,
)
from ._progress import Bar

_DESCRIPTION = """\
Compare the ids of texts with those that another tokenizer gives, and show what differs, where, and why.

Each file is one text; what is longer than 64 KiB is cut after a line, so that files may be of any size. Of \
directories, files are taken that `ggufbpe count` would count, and compressed files and JSON lines are read as there. \
Texts are taken as they are; backslash escapes are read only with --escape.

Recorded ids of a model that adds EOS and no BOS may be with EOS, as the function llama_tokenize gives them, or \
without, as the command llama-tokenize prints them; it is said of which kind they were taken to be.

The exit code is 0 if all ids are the same, 1 if some differ or the other tokenizer failed on a text (it crashed, \
hung or gave garbage), 2 if nothing could be compared or something could not be read."""
_EXAMPLES = """\
examples:
  ggufbpe verify -m model.gguf --against llama-tokenize README.md src
  ggufbpe verify -m model.gguf --against llama-tokenize:./llama.cpp/build/bin -p "Hello world"
  ggufbpe verify -m model.gguf --against llama-cpp-python --fuzz 10000 --seed 1
  ggufbpe verify -m model.gguf --against server:http://127.0.0.1:8080 --stdin < corpus.txt
  ggufbpe verify -m model.gguf --against hf:tokenizer.json --html report.html docs
  ggufbpe verify -m model.gguf --against ids:recorded.json -p "Hello world"

against:
  llama-tokenize[:PATH]    the command of llama.cpp, on PATH or where PATH says
  llama-cpp-python         the package, with the model of -m
  xllamacpp                the package, which has the llama.cpp that ggufbpe follows
  server:URL               a running llama-server
  hf:FILE                  a tokenizer.json, read by the package tokenizers
  tiktoken:FILE or NAME    a .tiktoken file, or an encoding that tiktoken knows
  ids:FILE                 ids that you have, as JSON or numbers, one list a text
  gguf:FILE                ggufbpe itself, with another model"""

EXIT_SAME, EXIT_DIFFERENT, EXIT_ERROR = 0, 1, 2
_LIMIT = 1 << 16  # bytes of a text that is cut from a file
_SHOWN = 10  # differences printed on a terminal; --json and --html have all
_TEXT_SHOWN = 200  # bytes of a text that are printed
_PIECE_WIDTH = 28  # columns of a piece in a row
_MARK, _GOOD, _BAD = "\x1b[1;31m", "\x1b[32m", "\x1b[31m"


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    add_model(parser)
    parser.add_argument("--against", metavar="ORACLE", help=f"what to compare with: {', '.join(USAGES)}")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and directories")
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="compare a text")
    parser.add_argument("--stdin", action="store_true", help="compare standard input")
    parser.add_argument(
        "--field", metavar="NAME", help='every file is JSON lines; their text is this field (default: "text")'
    )
    parser.add_argument("--fuzz", metavar="N", type=int, help="compare N random texts")
    parser.add_argument("--seed", metavar="S", default="1", help="what random texts follow from (default: 1)")
    parser.add_argument("-e", "--escape", action="store_true", help="process escape sequences in texts")
    add_special_flags(parser)
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=30.0,
        help="how long the other tokenizer may take for a text (default: 30)",
    )
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--html", metavar="PATH", help="also write a report that a browser shows")
    parser.add_argument("--force", action="store_true", help="write the report over an existing file")
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colour (default: auto)"
    )


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    model = model_path(arguments)
    overrides = overrides_of(arguments)
    tokenizer = Tokenizer.from_gguf(model, overrides=overrides)
    with (
        _overridden(model, overrides) if overrides else nullcontext(model) as opened,
        open_oracle(arguments.against, opened, tokenizer, arguments.timeout) as oracle,
    ):
        texts = _Texts(arguments, tokenizer, oracle)
        bar = Bar()
        try:
            result = verify(
                tokenizer,
                oracle,
                texts,
                add_special=not arguments.no_bos,
                parse_special=arguments.parse_special,
                progress=_shown_on(bar, texts.total_bytes, arguments.fuzz),
            )
        finally:
            bar.clear()
        texts.say_what_was_skipped()
        _report(arguments, result, oracle, model)
    if texts.errors or not (result.compared or result.failed):
        return EXIT_ERROR
    return EXIT_SAME if result.same else EXIT_DIFFERENT


@contextmanager
def _overridden(model: str, overrides: Overrides) -> Iterator[str]:
    """The path of a GGUF of the vocabulary alone with the overrides in it, for other programs to open."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, os.path.basename(model))
        with open(path, "wb") as file:
            file.write(load(model, overrides)[1].to_bytes())
        yield path


def _check(arguments: argparse.Namespace) -> None:
    if arguments.against is None:
        raise UsageError(f"what to compare with? Give --against with one of {', '.join(USAGES)}")
    sources = (arguments.prompt, arguments.fuzz, arguments.paths or None, arguments.stdin or None)
    if all(source is None for source in sources):
        raise UsageError("no texts: give files or directories, -p TEXT, --stdin or --fuzz N")
    if arguments.fuzz is not None and arguments.against.startswith("ids:"):
        raise UsageError("recorded ids are of texts that you have, and --fuzz makes new ones")
    if arguments.html is not None:
        require_free(arguments.html, arguments.model, arguments.force)
        require_folder(arguments.html)
    if not arguments.timeout > 0:
        raise UsageError(f"--timeout must be more than 0, not {arguments.timeout:g}")


def _report(arguments: argparse.Namespace, result: Result, oracle: Oracle, model: str) -> None:
    if arguments.json:
        _output.write(_output.json_bytes(to_json(result, model, oracle.note)))
    else:
        printer = Printer(_output.use_color(arguments.color), _output.terminal_width() or 100)
        for line in printer.lines(result, oracle.note):
            _output.write(f"{line}\n".encode())
    if arguments.html is not None:
        _output.flush()
        write_files({arguments.html: to_html(result, model, oracle.note).encode()})
        _output.note(f"ggufbpe: the report is in {_output.one_line(arguments.html)}")


# ---- texts ----------------------------------------------------------------------------------------------


class _Texts:
    """The texts to compare, one by one; files are opened when their turn comes."""

    def __init__(self, arguments: argparse.Namespace, tokenizer: Tokenizer, oracle: Oracle) -> None:
        self._arguments = arguments
        self._tokenizer = tokenizer
        self._skipped: Counter[str] = Counter()
        self.errors = 0
        self._limit = sys.maxsize - 1 if oracle.recorded else _LIMIT  # recorded ids are of whole texts
        self._files = list(files_of(arguments.paths, self._skipped, self._report))
        prompt = len(os.fsencode(arguments.prompt or ""))
        unknown = arguments.stdin or arguments.fuzz is not None
        self.total_bytes = None if unknown else sum(file.size for file in self._files) + prompt

    def __iter__(self) -> Iterator[Text]:
        arguments = self._arguments
        if arguments.prompt is not None:
            yield Text("-p", 0, self._read(os.fsencode(arguments.prompt)))
        for file in self._files:
            yield from self._of_file(file)
        if arguments.stdin:
            if sys.stdin is None:
                raise ValueError("standard input is closed")
            yield from self._of_stream("standard input", sys.stdin.buffer)
        if arguments.fuzz is not None:
            from ..verify.fuzz import texts_for

            source = texts_for(self._tokenizer, arguments.seed)
            for number in range(arguments.fuzz):
                yield Text(f"random text {number} of seed {arguments.seed}", 0, source.text())

    def _of_file(self, file: File) -> Iterator[Text]:
        try:
            with open(file.path, "rb") as raw, decompressed(raw, file.path) as stream:
                field = self._arguments.field
                if field is None and not has_json_lines(file.path):
                    yield from self._of_stream(file.path, stream)
                    return
                for number, (text, _) in enumerate(records(stream, file.path, field, self._report)):
                    yield Text(f"{file.path}, text {number}", 0, self._read(text))
        except (OSError, MemoryError, CorpusError) as error:
            self._report(file.path, error)

    def _of_stream(self, name: str, stream: object) -> Iterator[Text]:
        offset = 0
        limit = self._limit
        parts: Iterable[bytes]
        parts = [stream.read()] if limit != _LIMIT else cut_into_texts(stream, limit)  # type: ignore[attr-defined, arg-type]
        for data in parts:
            yield Text(name, offset, self._read(data))
            offset += len(data)

    def _read(self, data: bytes) -> bytes:
        return process_escapes(data) if self._arguments.escape else data

    def _report(self, path: str, error: Exception) -> None:
        self.errors += 1
        _output.error(f"{path}: {problem_with(path, error).removeprefix(f'{path}: ')}")

    def say_what_was_skipped(self) -> None:
        say_what_was_left_out(self._skipped, "give a path to compare it")


def _shown_on(bar: Bar, total_bytes: int | None, total_texts: int | None) -> Progress:
    """What draws the bar: by bytes, or by texts where only their number is known."""

    def show(what: str, texts: int, size: int) -> None:
        if bar.is_due():
            total, done = (total_bytes, size) if total_bytes else (total_texts, texts)
            bar.draw(done / total if total else None, f"{what}: {texts} texts, {size / 1e6:.1f} MB")

    return show


# ---- what is printed ------------------------------------------------------------------------------------


class Printer:
    """The result in lines for people."""

    def __init__(self, color: bool, width: int) -> None:
        self._color = color
        self._width = width

    def lines(self, result: Result, note: str) -> Iterator[str]:
        yield from self._summary(result, note)
        for number, difference in enumerate(result.differences[:_SHOWN], 1):
            yield ""
            yield from self._difference(number, difference)
        if fix := all_fixes(result):
            yield from ("", f"all fixes in one: {_output.one_line(fix)}")
        more = len(result.differences) - _SHOWN
        if more > 0:
            yield from ("", f"and {more} more difference{'s' * (more > 1)}, which --json and --html have")
        if result.other_places:
            yield from ("", f"and {result.other_places} more places, which were only counted")
        for group in result.failures:
            yield ""
            yield from self._failure(group)

    def _summary(self, result: Result, note: str) -> Iterator[str]:
        text = verdict(result)
        if result.different:
            places = sum(difference.places for difference in result.differences) + result.other_places
            text += f", in {count(places, 'place')}"
        good = result.compared and not result.different
        yield self._colored(text, _GOOD if good else _BAD)
        if result.failed:
            yield self._colored(f"{result.oracle} failed on {count(result.failed, 'text')}", _BAD)
        if result.refused:
            yield f"{count(result.refused, 'text')} not compared, which {result.oracle} cannot take"
        rows = [
            ("texts", str(result.texts), f"{result.bytes} bytes"),
            ("ggufbpe", f"{result.tokens} tokens", rate(result.bytes, result.seconds)),
            (result.oracle, f"{result.oracle_tokens} tokens", rate(result.bytes, result.oracle_seconds)),
        ]
        first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
        if first + second > self._width - 16:
            yield from (f"  {name}: {', '.join(rest)}" for name, *rest in rows)
        else:
            yield from (f"  {name:{first}}  {number:>{second}}  {last}" for name, number, last in rows)
        if note:
            yield self._wrapped(f"  {note}", 2)

    def _difference(self, number: int, difference: Difference) -> Iterator[str]:
        places = count(difference.places, "place")
        first = difference.first
        yield self._wrapped(f"{self._colored(f'{number}. {difference.step}', _output.BOLD)}: {places}", 3)
        yield from self._causes(difference)
        yield self._wrapped(f"   first in {where(first.text, first.start)}", 5)
        yield from self._rows(first)
        if difference.smallest is not None:
            text = difference.smallest.text.data
            yield self._wrapped(f"   smallest text: {shown_text(text)} ({count(len(text), 'byte')})", 5)
            yield from self._rows(difference.smallest)

    def _causes(self, difference: Difference) -> Iterator[str]:
        if not difference.causes:
            yield "   cause: not found"
            return
        share = "" if difference.explains == 1.0 else f" (explains {difference.explains:.0%} of the ids)"
        for cause in difference.causes:
            what = _output.one_line(str(cause.detail.get("what", "")))
            yield self._wrapped(f"   cause: {cause.id}{': ' * bool(what)}{what}{share}", 5)
            if cause.fix:
                yield f"   fix: {_output.one_line(cause.fix)}"  # in one piece, to be copied

    def _failure(self, group: FailureGroup) -> Iterator[str]:
        text = group.first.data
        kind = self._colored(group.kind, _output.BOLD)
        yield self._wrapped(f"{kind}: {_output.one_line(group.detail)}", 3)
        yield self._wrapped(f"   {count(group.texts, 'text')}, first {where(group.first, 0)}", 5)
        yield self._wrapped(f"   {shown_text(text)} ({count(len(text), 'byte')})", 5)

    def _wrapped(self, text: str, indent: int) -> str:
        return _output.wrapped(text, self._width, indent, start=0)

    def _colored(self, text: str, color: str) -> str:
        return f"{color}{text}{_output.RESET}" if self._color else text

    # ---- two rows, aligned ----------------------------------------------------------------------

    def _rows(self, example: Example) -> Iterator[str]:
        """Ours above theirs, each token over its id, in as many blocks as the width asks for."""
        room = self._width - 14
        columns = [_column(ours, theirs, left_out, room) for ours, theirs, left_out in _by_span(example)]
        while columns:
            used = 0
            block: list[_Column] = []
            while columns and (not block or used + columns[0].width <= room):
                used += columns[0].width + 2
                block.append(columns.pop(0))
            for label, line in (("at byte", 0), ("ours", 1), ("", 2), ("theirs", 3), ("", 4)):
                cells = [self._cell(column, line) for column in block]
                yield f"     {label:8} {'  '.join(cells)}".rstrip()
            if not self._color:
                marks = ["^" * column.width if column.differs else " " * column.width for column in block]
                if any(column.differs for column in block):
                    yield f"     {'':8} {'  '.join(marks)}".rstrip()

    def _cell(self, column: _Column, line: int) -> str:
        text, width = column.lines[line]
        padded = text + " " * (column.width - width)
        if not self._color:
            return padded
        if line in (0, 2, 4):
            return f"{_output.DIM}{padded}{_output.RESET}"
        return f"{_MARK}{padded}{_output.RESET}" if column.differs else padded


class _Column(NamedTuple):
    """A stretch of the text where both rows begin and end a token.

    `lines` are its first byte, our pieces, their ids, the oracle's pieces, their ids; each with its width.
    """

    differs: bool
    lines: list[tuple[str, int]]

    @property
    def width(self) -> int:
        return max(width for _, width in self.lines)


def _column(ours: list[Shown], theirs: list[Shown], left_out: tuple[int, int], room: int) -> _Column:
    """The column of some tokens; as many of each side as there is room for."""
    differs = any(token.differs for token in ours + theirs)
    position = str(min(token.start for token in ours + theirs))
    for most in range(max(len(ours), len(theirs)), 0, -1):
        sides = [
            _side(tokens[:most], more + max(len(tokens) - most, 0))
            for tokens, more in zip((ours, theirs), left_out)
        ]
        column = _Column(differs, [(position, len(position)), *sides[0], *sides[1]])
        if column.width <= room:
            break
    return column


def _side(tokens: list[Shown], left_out: int) -> list[tuple[str, int]]:
    """The line of pieces and the line of ids, each with its width; pieces stand over their ids."""
    if not tokens:
        return [("∅", 1), ("", 0)]
    pieces, ids, total = [], [], 0
    for token in tokens:
        piece, width = _shown_piece(token.piece)
        number = str(token.id)
        cell = max(width, len(number))
        pieces.append(piece + " " * (cell - width))
        ids.append(number.ljust(cell))
        total += cell + 1
    if left_out:
        more = f"… and {left_out} more"
        pieces.append(more)
        ids.append(" " * len(more))
        total += len(more) + 1
    return [(" ".join(pieces), total - 1), (" ".join(ids), total - 1)]


def _shown_piece(piece: bytes) -> tuple[str, int]:
    """A piece for a row: safe, spaces visible, not too long; and its width in columns."""
    text = _output.visible(piece).replace(" ", "␣") or "∅"
    while display_width(text) > _PIECE_WIDTH:
        text = text[: max(len(text) * _PIECE_WIDTH // display_width(text) - 1, 1)] + "…"
    width = display_width(text)
    return _output.isolated(text), width


def _by_span(example: Example) -> Iterator[tuple[list[Shown], list[Shown], tuple[int, int]]]:
    """The tokens of both sides that stand over each other; each on its own where they are the same."""
    numbers = sorted({token.span for token in example.ours + example.theirs})
    for number in numbers:
        ours, theirs = (
            [token for token in row if token.span == number] for row in (example.ours, example.theirs)
        )
        if any(token.differs for token in ours + theirs):
            yield ours, theirs, example.left_out if number == example.span else (0, 0)
        else:
            yield from (([one], [other], (0, 0)) for one, other in zip(ours, theirs))


def display_width(text: str) -> int:
    """The columns that a terminal gives to `text`, which is printable.

    >>> display_width("a中\\u0301")
    3
    """
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(char) in ("Mn", "Me", "Cf") else 2 if east_asian_width(char) in "WF" else 1
        for char in text
    )


def shown_text(data: bytes) -> str:
    """A text in quotes, escaped, and cut if it is long."""
    head, is_cut = visible_text(data, _TEXT_SHOWN)
    return f'"{_output.isolated(_output.visible(head))}{"…" if is_cut else ""}"'


def where(text: Text, start: int) -> str:
    """The place of a byte of a text."""
    return f"{_output.one_line(text.source)}, byte {text.offset + start}"


def rate(size: int, seconds: float) -> str:
    return f"{size / 1e6 / seconds:.3g} MB/s" if seconds else "-"
