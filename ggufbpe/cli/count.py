"""`ggufbpe count`: how many tokens texts, files and directories have."""

from __future__ import annotations

import argparse
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, BinaryIO, NamedTuple

from .._util import utf8
from .._util.wording import counted
from ..analysis.views import terminal
from ..data.corpora.corpus_files import File, files_of, open_file
from ..data.corpora.readers import has_records, read_lines, records
from ..data.corpora.records import CorpusError, decompressed, has_json_lines, without_compression
from ..tokenizer import Tokenizer
from ..tokenizer.chunking import LONG_TEXT, added_ids, blocks
from . import _output
from ._arguments import (
    Parser,
    UsageError,
    add_model,
    add_special_flags,
    add_stdin,
    model_path,
    overrides_of,
    require_no_models,
)
from ._chat import add_chat_flags, prompts_of, require_chat
from ._files import add_no_ignore, ignored_of, problem_with, say_what_is_not_utf8, say_what_was_left_out
from ._input import settle_stdin, stdin
from ._progress import Bar

_DESCRIPTION = """\
Count the tokens of files and directories; each file is one text. Standard output gets a table with one line per file \
and a total.

Directories are searched for regular files, sorted by name. Names that begin with a dot, binary files (with a NUL in \
the first 8000 bytes, git's rule), links and, in a git repository, what git ignores are skipped there, and their \
number is shown at the end; files named on the command line are always counted. Files named .gz and .zst are \
decompressed, and each line of .jsonl and .ndjson is a text of its own, as in `ggufbpe stats`. Files may be of any \
size. A file that cannot be read is reported, the others are still counted, and the exit code is 2.

With --chat, files are chats: a .json file is one chat, a .jsonl file has one in each line; a chat is a list of \
messages or the body of a request. Tokens and bytes are those of the prompts, and tokens are counted as llama-server \
does. A line that is not a chat is reported with its number, and the others are counted. A model without a chat \
template needs one (--chat-template known:chatml).

As in llama-tokenize --show-count, BOS is counted if the model asks for it. Escape sequences are never processed."""
_EXAMPLES = """\
examples:
  ggufbpe count README.md src
  ggufbpe count -m model.gguf --no-bos docs/*.md
  ggufbpe count -m model.gguf --top 10 .
  ggufbpe count -m model.gguf -p "Hello world"
  git diff | ggufbpe count -m model.gguf
  ggufbpe count -m model.gguf --chat messages.json chats.jsonl
  ggufbpe count -m model.gguf --json src > tokens.json"""

_SORTED_BY = ("name", "tokens", "bytes", "chars/token")
_COMPRESSED = 1000  # how many times its size a file may decompress to
_UNKNOWN = 10**9  # bytes expected of standard input; more makes a row wider
_LARGE = 1 << 20  # bytes; counting such a file takes long enough to show it at once


class _Counts(NamedTuple):
    """The numbers of one text."""

    name: str
    tokens: int
    bytes: int
    characters: int
    undecodable_bytes: int  # not UTF-8; each counts as a character

    @property
    def ratio(self) -> str:
        return f"{self.characters / self.tokens:.2f}" if self.tokens else "-"


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    add_model(parser)
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="files, directories and URLs that fsspec opens"
    )
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="count a text")
    add_stdin(parser, "count")
    parser.add_argument(
        "--field",
        "--text-column",
        metavar="NAME",
        help='the field or column with the text of JSON lines and tables (default: "text"); all files are then read'
        " as JSON lines, except those named .csv, .parquet or .arrow",
    )
    parser.add_argument(
        "--chat",
        action="store_true",
        help="files are chats, as `ggufbpe chat` takes them; a .jsonl file has one in each line",
    )
    add_chat_flags(parser)
    add_special_flags(parser)
    parser.add_argument(
        "--sort",
        choices=_SORTED_BY,
        help="sort the rows by name, or the largest first (default: as they come)",
    )
    parser.add_argument(
        "--top", type=int, metavar="N", help="show only the first N, sorted by tokens unless --sort is given"
    )
    add_no_ignore(parser)
    parser.add_argument("--json", action="store_true", help="print one object: files, total, errors, skipped")


def run(arguments: argparse.Namespace) -> int:
    settle_stdin(arguments, "paths", "prompt")
    require_no_models(arguments.paths, "count", arguments)
    if not arguments.paths and arguments.prompt is None and not arguments.stdin:
        raise UsageError("nothing to count: give files or directories, -p TEXT or --stdin")
    _check_chat(arguments)
    if arguments.top is not None and arguments.top < 1:
        raise UsageError(f"--top must be 1 or more, not {arguments.top}")
    tokenizer = Tokenizer.from_gguf(model_path(arguments), overrides=overrides_of(arguments))
    job = _Job(tokenizer, arguments)
    job.run(arguments)
    return 2 if job.errors else 0


def _check_chat(arguments: argparse.Namespace) -> None:
    require_chat(arguments)
    if not arguments.chat:
        return
    if arguments.prompt is not None or arguments.field is not None:
        raise UsageError("--chat counts chats in files: leave out -p and --field")
    if arguments.no_bos or not arguments.parse_special:
        raise UsageError(
            "special tokens are always added and parsed in chats: leave out the flags against it"
        )


class _Job:
    """One run of the command: what was counted, what was skipped, and what could not be read."""

    def __init__(self, tokenizer: Tokenizer, arguments: argparse.Namespace) -> None:
        self._tokenizer = tokenizer
        self._added = 0 if arguments.no_bos else sum(map(len, added_ids(tokenizer)))  # tokens a text
        self._prompt = prompts_of(tokenizer, arguments) if arguments.chat else None
        if arguments.chat:  # llama-server adds EOS, too, where no BOS is wanted
            self._added = sum(map(len, tokenizer.vocabulary.added))
        self._parse_special = arguments.parse_special
        self._field = arguments.field
        self._json = arguments.json
        self._top = arguments.top
        self._sort = arguments.sort or ("tokens" if arguments.top else None)
        self._counted: list[_Counts] = []
        self._skipped: Counter[str] = Counter()
        self.errors: list[dict[str, str]] = []

    def run(self, arguments: argparse.Namespace) -> None:
        tables = arguments.field is not None
        found = list(files_of(arguments.paths, self._skipped, self._report, ignored_of(arguments), tables))
        if self._prompt is not None:
            others = [file for file in found if file.path != file.root and not _is_named_as_json(file.path)]
            found = [file for file in found if file not in others]
            self._skipped["not named .json or .jsonl"] += len(others)
        streams: list[tuple[str, BinaryIO]] = []
        if arguments.prompt is not None:
            streams.append(("(prompt)", io.BytesIO(os.fsencode(arguments.prompt))))
        if arguments.stdin:
            streams.append(("(stdin)", stdin()))
        several = len(found) + len(streams) > 1 or any(map(os.path.isdir, arguments.paths))
        table = _Table(sum(map(_largest, found)), arguments.stdin or arguments.chat)
        at_once = not (self._json or self._sort)
        bar = Bar()
        try:
            for counts in self._all_counts(streams, found, bar):
                self._counted.append(counts)
                if at_once:
                    bar.clear()
                    table.row(counts)
        finally:
            bar.clear()
        numbers = [counts[1:] for counts in self._counted] or [(0, 0, 0, 0)]
        total = _Counts("total", *map(sum, zip(*numbers)))
        shown = (
            self._counted if self._sort is None else sorted(self._counted, key=_KEYS[self._sort])[: self._top]
        )
        if self._json:
            self._print_json(shown, total)
        elif not at_once:
            for counts in shown:
                table.row(counts)
        if several and not self._json:
            table.row(total)
        if len(shown) < len(self._counted):
            more = counted(len(self._counted) - len(shown), "more file")
            _output.note(f"ggufbpe: the total includes {more}")
        say_what_was_left_out(self._skipped, "give a path to count it")
        say_what_is_not_utf8(total.undecodable_bytes)

    def _all_counts(
        self, streams: list[tuple[str, BinaryIO]], found: list[File], bar: Bar
    ) -> Iterator[_Counts]:
        for name, stream in streams:
            if self._prompt is None:
                yield self._count_text(name, stream, lambda _: None)
                continue
            try:
                yield self._counts(name, self._prompts(name, stream), lambda _: None, self._added)
            except ValueError as error:
                self._report(name, error)
        total = sum(file.size for file in found) or 1
        before = 0  # bytes of the files before this one
        for number, file in enumerate(found, 1):
            label = f"{number}/{len(found)} {terminal.one_line(os.path.basename(file.path))}"
            if bar.is_due(at_once=file.size >= _LARGE):
                bar.draw(before / total, label)
            try:
                with open_file(file.path) as raw:

                    def show(_: int, raw: IO[bytes] = raw, before: int = before, label: str = label) -> None:
                        if bar.is_due():
                            bar.draw((before + raw.tell()) / total, label)

                    counts = self._count_file(file.path, raw, show)
            except (OSError, MemoryError, ValueError) as error:
                bar.clear()
                self._report(file.path, error)
            else:
                yield counts
            before += file.size

    def _count_file(self, path: str, raw: IO[bytes], show: Callable[[int], None]) -> _Counts:
        with decompressed(raw, path) as stream:
            if self._prompt is not None:
                return self._counts(path, self._prompts(path, stream), show, self._added)
            if not has_records(path, self._field):
                return self._count_text(path, stream, show)
            texts = (text for text, _ in records(stream, path, self._field, self._report))
            return self._counts(path, texts, show, self._added)

    def _prompts(self, name: str, stream: IO[bytes]) -> Iterator[bytes]:
        """The prompts of the chats in a file."""
        assert self._prompt is not None
        if has_json_lines(name):
            yield from read_lines(stream, name, self._report, self._prompt)
        else:
            yield self._prompt(stream.read())

    def _count_text(self, name: str, stream: IO[bytes], show: Callable[[int], None]) -> _Counts:
        """The counts of a text, read block by block so that memory does not grow with it."""
        counts = self._counts(name, self._cut(stream), show, None)
        return counts._replace(tokens=counts.tokens + self._added)

    def _cut(self, stream: IO[bytes]) -> Iterator[bytes]:
        return blocks(stream, [self._tokenizer], self._parse_special, continues=True)

    def _blocks(self, text: bytes) -> Iterable[bytes]:
        """A long text block by block."""
        return [text] if len(text) < LONG_TEXT else self._cut(io.BytesIO(text))

    def _counts(
        self, name: str, parts: Iterable[bytes], show: Callable[[int], None], added: int | None
    ) -> _Counts:
        """The counts of all parts together; each adds `added` tokens. None: the parts are blocks of one text."""
        tokens = size = characters = undecodable = 0
        for whole in parts:
            tokens += added or 0
            continues = added is None and size > 0
            for part in [whole] if added is None else self._blocks(whole):
                text = utf8.decode(part)
                tokens += self._tokenizer.count(
                    part, add_special=False, parse_special=self._parse_special, continues=continues
                )
                continues = True
                size += len(part)
                characters += len(text)
                undecodable += utf8.undecodable(part, text)
                show(size)
        return _Counts(name, tokens, size, characters, undecodable)

    # ---- output ---------------------------------------------------------------------------------

    def _report(self, path: str, error: Exception) -> None:
        problem = problem_with(error)
        if isinstance(error, CorpusError):  # may name the file, which `error` below does
            problem = problem.removeprefix(f"{path}: ")
        self.errors.append({"name": path, "error": problem})
        _output.error(f"{path}: {problem}")

    def _print_json(self, shown: list[_Counts], total: _Counts) -> None:
        numbers = total._asdict()
        del numbers["name"]
        result = {
            "files": [counts._asdict() for counts in shown],
            "total": numbers,
            "errors": self.errors,
            "skipped": {kind: number for kind, number in sorted(self._skipped.items()) if number},
        }
        _output.write(terminal.json_bytes(result))


_KEYS: dict[str, Callable[[_Counts], Any]] = {
    "name": lambda counts: counts.name,
    "tokens": lambda counts: -counts.tokens,
    "bytes": lambda counts: -counts.bytes,
    "chars/token": lambda counts: -counts.characters / counts.tokens if counts.tokens else 0,
}


def _is_named_as_json(path: str) -> bool:
    return has_json_lines(path) or without_compression(path).endswith(".json")


def _largest(file: File) -> int:
    """The most bytes of text that the file may have."""
    return file.size * (1 if without_compression(file.path) == file.path else _COMPRESSED)


class _Table:
    """The table, printed row by row. All numbers fit, as no text has more tokens than bytes."""

    def __init__(self, total_size: int, is_more: bool) -> None:
        self._width = max(6, len(str(total_size + _UNKNOWN * is_more)))
        self._has_head = False

    def row(self, counts: _Counts) -> None:
        """Print the counts of a file; the first row comes with the header."""
        if not self._has_head:
            self._has_head = True
            self._print("tokens", "bytes", "chars/token", "name")
        self._print(str(counts.tokens), str(counts.bytes), counts.ratio, terminal.one_line(counts.name))
        _output.flush()

    def _print(self, tokens: str, size: str, ratio: str, name: str) -> None:
        width = self._width
        _output.write(f"{tokens:>{width}}  {size:>{width}}  {ratio:>11}  {name}\n".encode())
