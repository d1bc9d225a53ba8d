"""`ggufbpe count`: how many tokens texts, files and directories have."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from .. import utf8
from ..tokenizer import Tokenizer
from . import _output
from ._arguments import Parser, UsageError, add_model, add_special_flags, model_path
from ._files import Found, find_files, problem_with, say_what_was_left_out
from ._input import read_file, read_stdin
from ._progress import Bar

_DESCRIPTION = """\
Count the tokens of files and directories; each file is one text. A table with a line a file and a total goes to \
standard output.

Directories are searched for regular files, sorted by name. Names that begin with a dot, binary files (a NUL in \
the first 8000 bytes, as git tells them) and links are left out there, and how many is said at the end; a file \
named on the command line is always counted. A file that cannot be read is reported, the others are counted, and \
the exit code is 2.

As in llama-tokenize --show-count, BOS counts where the model wants it. Escape sequences are never processed."""
_EXAMPLES = """\
examples:
  ggufbpe count README.md src
  ggufbpe count -m model.gguf --no-bos docs/*.md
  ggufbpe count -m model.gguf -p "Hello world"
  git diff | ggufbpe count -m model.gguf --stdin
  ggufbpe count -m model.gguf --json src > tokens.json"""

_LARGE = 1 << 20  # a file whose counting takes long enough to be shown before it is done


class _Counts(NamedTuple):
    """The numbers of one text."""

    name: str
    tokens: int
    bytes: int
    characters: int

    @property
    def ratio(self) -> str:
        return f"{self.characters / self.tokens:.2f}" if self.tokens else "-"


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    add_model(parser)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and directories")
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="count a text")
    parser.add_argument("--stdin", action="store_true", help="count standard input")
    add_special_flags(parser)
    parser.add_argument("--json", action="store_true", help="print one object: files, total, errors, skipped")


def run(arguments: argparse.Namespace) -> int:
    if not arguments.paths and arguments.prompt is None and not arguments.stdin:
        raise UsageError("nothing to count: give files or directories, -p TEXT or --stdin")
    tokenizer = Tokenizer.from_gguf(model_path(arguments))
    job = _Job(tokenizer, arguments)
    job.run(arguments)
    return 2 if job.errors else 0


class _Job:
    """One run of the command: what was counted, left out and could not be read."""

    def __init__(self, tokenizer: Tokenizer, arguments: argparse.Namespace) -> None:
        self._tokenizer = tokenizer
        self._add_special = tokenizer.add_bos and not arguments.no_bos  # as in tokenize
        self._parse_special = arguments.parse_special
        self._json = arguments.json
        self._counted: list[_Counts] = []
        self._skipped: Counter[str] = Counter()
        self.errors: list[dict[str, str]] = []

    def run(self, arguments: argparse.Namespace) -> None:
        found = list(find_files(arguments.paths, self._skipped, self._report))
        texts = []
        if arguments.prompt is not None:
            texts.append(("(prompt)", os.fsencode(arguments.prompt)))
        if arguments.stdin:
            texts.append(("(stdin)", read_stdin()))
        several = len(found) + len(texts) > 1 or any(map(os.path.isdir, arguments.paths))
        table = _Table(sum(file.size for file in found) + sum(len(text) for _, text in texts))
        if not self._json:
            table.head()
        bar = Bar()
        try:
            for counts in self._all_counts(texts, found, bar):
                self._counted.append(counts)
                if not self._json:
                    bar.clear()
                    table.row(counts)
        finally:
            bar.clear()
        total = _Counts("total", *(sum(column) for column in _columns(self._counted)))
        if self._json:
            self._print_json(total)
        elif several:
            table.row(total)
        say_what_was_left_out(self._skipped, "give a path to count it")

    def _all_counts(self, texts: list[tuple[str, bytes]], found: list[Found], bar: Bar) -> Iterator[_Counts]:
        for name, text in texts:
            yield self._count(name, text)
        total = sum(file.size for file in found) or 1
        done = 0  # bytes of the files before this one
        for number, file in enumerate(found, 1):
            if bar.is_due(at_once=file.size >= _LARGE):
                name = _output.one_line(os.path.basename(file.path))
                bar.draw(done / total, f"{number}/{len(found)} {name}")
            done += file.size
            try:
                counts = self._count(file.path, read_file(file.path))
            except (OSError, MemoryError, ValueError) as error:
                bar.clear()
                self._report(file.path, error)
            else:
                yield counts

    def _count(self, name: str, text: bytes) -> _Counts:
        tokens = self._tokenizer.count(text, add_special=self._add_special, parse_special=self._parse_special)
        return _Counts(name, tokens, len(text), len(utf8.decode(text)))

    # ---- what is said ---------------------------------------------------------------------------

    def _report(self, path: str, error: Exception) -> None:
        problem = problem_with(path, error)
        self.errors.append({"name": path, "error": problem})
        _output.error(f"{path}: {problem}")

    def _print_json(self, total: _Counts) -> None:
        numbers = total._asdict()
        del numbers["name"]
        result = {
            "files": [counts._asdict() for counts in self._counted],
            "total": numbers,
            "errors": self.errors,
            "skipped": {kind: number for kind, number in sorted(self._skipped.items()) if number},
        }
        _output.write(_output.json_bytes(result))


def _columns(counted: list[_Counts]) -> tuple[list[int], list[int], list[int]]:
    return [c.tokens for c in counted], [c.bytes for c in counted], [c.characters for c in counted]


class _Table:
    """The table, printed row by row: each number is known to fit, as no text has more tokens than bytes."""

    def __init__(self, total_size: int) -> None:
        self._width = max(6, len(str(total_size)))

    def head(self) -> None:
        self._print("tokens", "bytes", "chars/token", "name")

    def row(self, counts: _Counts) -> None:
        self._print(str(counts.tokens), str(counts.bytes), counts.ratio, _output.one_line(counts.name))
        _output.flush()

    def _print(self, tokens: str, size: str, ratio: str, name: str) -> None:
        width = self._width
        _output.write(f"{tokens:>{width}}  {size:>{width}}  {ratio:>11}  {name}\n".encode())
