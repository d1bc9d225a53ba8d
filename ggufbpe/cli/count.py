"""`ggufbpe count`: how many tokens texts, files and directories have."""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Callable, Iterator
from typing import Any

from .._util.progress import OnProgress, Progress
from .._util.shell import shell_word
from .._util.wording import counted
from ..analysis.views import terminal
from ..analysis.views.answers import answer
from ..data.corpora.corpus_files import File
from ..data.corpora.records import problem_with, without_compression
from ..data.statistics.file_counts import FileCounter, NamedStream, PromptOf, TextCounts, prompt_maker
from ..tokenizer import Tokenizer
from . import _chat, _output
from ._arguments import Parser, UsageError, overrides_of, require_no_models
from ._files import add_no_ignore, ignored_of, say_what_is_not_utf8, say_what_was_left_out
from ._given_models import model_path, tokenizer_at
from ._input import settle_stdin, stdin
from ._progress import Bar

_SORTED_BY = ("name", "tokens", "bytes", "chars/token")
_COMPRESSED = 1000  # how many times its size a file may decompress to
_UNKNOWN = 10**9  # bytes expected of standard input; more makes a row wider
_LARGE = 1 << 20  # bytes; counting such a file takes long enough to show it at once


def add_arguments(parser: Parser) -> None:
    parser.add_model()
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="files, directories and URLs that fsspec opens"
    )
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="count a text")
    parser.add_stdin("count")
    parser.add_argument(
        "--field",
        "--text-column",
        metavar="NAME",
        help='the field or column with the text of JSON lines and tables (default: "text"); all files are then read'
        " as JSON lines, except those named .csv, .parquet or .arrow",
    )
    parser.add_switch(
        "--chat", help="files are chats, as `ggufbpe chat` takes them; a .jsonl file has one in each line"
    )
    _chat.add_chat_flags(parser)
    _chat.add_date(parser)
    _chat.add_media_flags(parser)
    parser.add_special_flags()
    parser.add_argument(
        "--sort",
        choices=_SORTED_BY,
        help="sort the rows by name, or the largest first (default: as they come)",
    )
    parser.add_number("--top", help="show only the first N, sorted by tokens unless --sort is given")
    parser.add_number("--limit", help="exit with code 1 if there are more than N tokens in all")
    parser.add_switch(
        "-q", "--quiet", help="print only the number of tokens in all, and no notes and warnings"
    )
    add_no_ignore(parser)
    parser.add_switch("--json", help="print one object: files, total, errors, skipped")


def run(arguments: argparse.Namespace) -> int:
    settle_stdin(arguments, "paths", "prompt")
    require_no_models(arguments.paths, "count", arguments)
    _check(arguments)
    model = model_path(arguments)
    tokenizer = tokenizer_at(model, overrides_of(arguments))
    prompt = _prompt_maker(arguments, tokenizer) if arguments.chat else None
    if arguments.mmproj is not None:
        _chat.warn_of_mismatch(arguments.mmproj, model)
    bar = Bar()

    def report(name: str, error: Exception) -> None:
        is_text = isinstance(error, FileNotFoundError) and " " in name
        remedy = f"; a text needs -p: -p {shell_word(name)}" if is_text else ""
        _output.error(f"{name}: {problem_with(name, error)}{remedy}")

    counter = FileCounter(
        tokenizer,
        report,
        prompt,
        add_bos=not arguments.no_bos,
        parse_special=arguments.parse_special,
        field=arguments.field,
    )
    found = counter.find(arguments.paths, ignored_of(arguments))
    sources: list[File | NamedStream] = [*_streams(arguments), *found]
    if not sources and not counter.errors:
        _output.note(f"ggufbpe: no files to count in {terminal.one_line(', '.join(arguments.paths))}")
    several = len(sources) > 1 or any(map(os.path.isdir, arguments.paths))
    table = _Table(sum(map(_largest, found)), arguments.stdin or arguments.chat)
    order = arguments.sort or ("tokens" if arguments.top else None)
    counts = []
    try:
        for each in counter.count(sources, _shown_on(bar, found)):
            counts.append(each)
            if not (arguments.json or arguments.quiet or order):
                bar.clear()
                table.row(each)
    finally:
        bar.clear()
    result = counter.result(counts)
    shown = counts if order is None else sorted(counts, key=_KEYS[order])[: arguments.top]
    if arguments.json:
        _output.write_json(answer(result._replace(files=shown).to_dict(), model=tokenizer.name))
    elif arguments.quiet:
        _output.write(f"{result.total.tokens}\n".encode())
    else:
        for each in shown if order else ():
            table.row(each)
        if several:
            table.row(result.total)
    if len(shown) < len(counts):
        more = counted(len(counts) - len(shown), "more file")
        _output.note(f"ggufbpe: the total includes {more}")
    say_what_was_left_out(result.skipped, "give a path to count it")
    say_what_is_not_utf8(result.total.undecodable_bytes)
    if result.errors:
        return 2
    return int(arguments.limit is not None and result.total.tokens > arguments.limit)


def _prompt_maker(arguments: argparse.Namespace, tokenizer: Tokenizer) -> PromptOf:
    """What makes the prompts of chats, as flags say."""
    return prompt_maker(
        tokenizer,
        _chat.template_of(arguments, tokenizer),
        _chat.request_fields(arguments),
        _chat.date_of(arguments),
        arguments.mmproj,
        arguments.media_path,
    )


def _streams(arguments: argparse.Namespace) -> Iterator[NamedStream]:
    """The text of -p and standard input, if they are given."""
    if arguments.prompt is not None:
        yield NamedStream("(prompt)", io.BytesIO(os.fsencode(arguments.prompt)))
    if arguments.stdin:
        yield NamedStream("(stdin)", stdin())


def _shown_on(bar: Bar, found: list[File]) -> OnProgress:
    """Return a function that draws progress on `bar`; a large file is named as soon as it is opened."""
    sizes = {file.path: file.size for file in found}
    latest = ""

    def show(progress: Progress) -> None:
        nonlocal latest
        is_new, latest = progress.item != latest, progress.item
        if bar.is_due(at_once=is_new and sizes[progress.item] >= _LARGE):
            name = terminal.one_line(os.path.basename(progress.item))
            bar.draw(progress.share, f"{progress.counts['files']}/{len(found)} {name}")

    return show


def _check(arguments: argparse.Namespace) -> None:
    """Raise a `UsageError` for flags that do not go together or have no sensible value."""
    if not arguments.paths and arguments.prompt is None and not arguments.stdin:
        raise UsageError("nothing to count: give files or directories, -p TEXT or --stdin")
    if arguments.top is not None and arguments.top < 1:
        raise UsageError(f"--top must be 1 or more, not {arguments.top}")
    if arguments.limit is not None and arguments.limit < 0:
        raise UsageError(f"--limit must be 0 or more, not {arguments.limit}")
    _chat.require_chat(arguments)
    _chat.check_media(arguments)
    if not arguments.chat:
        return
    if arguments.prompt is not None or arguments.field is not None:
        raise UsageError("--chat counts chats in files: leave out -p and --field")
    _chat.refuse_text_flags(arguments)


_KEYS: dict[str, Callable[[TextCounts], Any]] = {
    "name": lambda counts: counts.name,
    "tokens": lambda counts: -counts.tokens,
    "bytes": lambda counts: -counts.bytes,
    "chars/token": lambda counts: -(counts.characters_per_token or 0),
}


def _largest(file: File) -> int:
    """The most bytes of text that the file may have."""
    return file.size * (1 if without_compression(file.path) == file.path else _COMPRESSED)


class _Table:
    """The table, printed row by row. All numbers fit, as no text has more tokens than bytes."""

    def __init__(self, total_size: int, is_more: bool) -> None:
        self._width = max(6, len(str(total_size + _UNKNOWN * is_more)))
        self._has_head = False

    def row(self, counts: TextCounts) -> None:
        """Print the counts of a file; the first row comes with the header."""
        if not self._has_head:
            self._has_head = True
            self._print("tokens", "bytes", "chars/token", "name")
        ratio = counts.characters_per_token
        shown = "-" if ratio is None else f"{ratio:.2f}"
        self._print(str(counts.tokens), str(counts.bytes), shown, terminal.one_line(counts.name))
        _output.flush()

    def _print(self, tokens: str, size: str, ratio: str, name: str) -> None:
        width = self._width
        _output.write(f"{tokens:>{width}}  {size:>{width}}  {ratio:>11}  {name}\n".encode())
