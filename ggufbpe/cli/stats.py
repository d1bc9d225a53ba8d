"""`ggufbpe stats`: how tokenizers cut a corpus, side by side."""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .._util.progress import Progress
from .._util.wording import percent
from ..analysis.views import terminal
from ..analysis.views.answers import answer
from ..data.corpora.records import problem_with
from ..data.statistics.text_groups import GROUPINGS
from . import _output
from ._arguments import Parser, UsageError, overrides_of, require_no_models
from ._chat import add_template_flags, refuse_text_flags, template_of
from ._files import GivenPath, add_no_ignore, require_free, say_what_is_not_utf8, say_what_was_left_out
from ._given_models import model_paths
from ._input import settle_stdin, stdin
from ._progress import Bar, duration
from ._signals import termination_as_exit

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..data.statistics.compare_corpus import Measures, Stats


def add_arguments(parser: Parser) -> None:
    parser.add_models("repeat it for several")
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="files, directories and URLs that fsspec opens"
    )
    parser.add_stdin("measure")
    parser.add_argument(
        "--by",
        choices=GROUPINGS,
        default="file",
        help="what gets a row: each file (default), each folder (the first below a PATH), each extension, or "
        "only the total",
    )
    parser.add_argument("--by-field", metavar="NAME", help="group JSON lines by this field, such as lang")
    parser.add_argument(
        "--field",
        "--text-column",
        metavar="NAME",
        help='the field or column that is the text of JSON lines and tables (default: "text"); every file has such'
        " records then, a line of JSON where it is not named .csv, .parquet or .arrow",
    )
    parser.add_switch(
        "--chats",
        help="measure chats in the forms that `ggufbpe encode --chats` reads: of each model, the prompts that its own "
        "template makes",
    )
    parser.add_argument(
        "--preference",
        choices=("chosen", "rejected"),
        help="with --chats: which answer of a preference pair to measure",
    )
    add_template_flags(parser)
    add_no_ignore(parser)
    parser.add_special_flags()
    parser.add_switch("--json", help="print one object: tokenizers, rows, total, errors")
    parser.add_switch("--csv", help="print comma-separated values, a line a row")
    parser.add_argument("--plot", metavar="FILE", help="also draw it: a .png or .svg file")
    parser.add_switch("--force", help="draw over an existing file")
    parser.add_argument(
        "--theme", choices=("light", "dark"), default="light", help="of the plot (default: light)"
    )


def run(arguments: argparse.Namespace) -> int:
    settle_stdin(arguments, "paths")
    require_no_models(arguments.paths, "stats", arguments)
    if not arguments.paths and not arguments.stdin:
        raise UsageError("nothing to measure: give files or directories, or --stdin")
    _check_chats(arguments)
    if arguments.json and arguments.csv:
        raise UsageError("--json or --csv, not both")
    if arguments.plot is not None:
        from ..data.statistics.plots import check

        check(arguments.plot)  # fail before an hour of measuring
        require_free(arguments.plot, arguments.force, *arguments.paths)
    job = _Job()
    try:
        found = job.stats(arguments)
    finally:
        job.bar.clear()
    if job.errors and not found.rows and not (arguments.json or arguments.csv):
        return 2  # a table of nothing would hide what is said of the files
    if arguments.json:
        _output.write_json(answer({**found.to_dict(), "errors": job.errors}))
    elif arguments.csv:
        _output.write(_csv(found))
    else:
        width = _output.terminal_width()
        _output.draw(_tables(found, width), width=width)
    if arguments.plot is not None:
        if found.total[0].tokens:
            with termination_as_exit():
                found.plot(arguments.plot, theme=arguments.theme)
        else:
            _output.warning(f"no tokens, so nothing to draw: {arguments.plot} is not written")
    say_what_was_left_out(found.skipped, "give a path to measure it")
    say_what_is_not_utf8(found.total[0].undecodable_bytes)
    return 2 if job.errors else 0


def _check_chats(arguments: argparse.Namespace) -> None:
    """`UsageError` for flags that do not go with --chats, or only go with it."""
    if not arguments.chats:
        for flag in ("--preference", "--chat-template", "--chat-template-file"):
            if getattr(arguments, flag[2:].replace("-", "_")) is not None:
                raise UsageError(f"{flag} is for chats: give --chats")
        return
    if arguments.field is not None:
        raise UsageError("--chats recognizes records by their fields: leave out --field")
    refuse_text_flags(arguments)


class _Job:
    """One run of the command: its progress, and what could not be read."""

    def __init__(self) -> None:
        self.errors: list[dict[str, str]] = []
        self.bar = Bar()

    def stats(self, arguments: argparse.Namespace) -> Stats:
        from ..data.statistics.compare_corpus import stats
        from ..tokenizer import Tokenizer

        models: Any = model_paths(arguments)
        if (overrides := overrides_of(arguments)) or arguments.chats:
            models = [Tokenizer.from_gguf(path, overrides=overrides) for path in models]
        template = template_of(arguments, models[0]) if arguments.chats else None
        corpus: list[Any] = [SimpleNamespace(name="(stdin)", read=stdin().read)] if arguments.stdin else []
        return stats(
            models,
            [*corpus, *map(GivenPath, arguments.paths)],
            by=arguments.by,
            by_field=arguments.by_field,
            field=arguments.field,
            parse_special=arguments.parse_special,
            add_bos=not arguments.no_bos,
            report=self._report,
            read_ignored=arguments.no_ignore,
            chats=arguments.chats,
            chat_template=template,
            preference=arguments.preference,
            progress=self._show,
        )

    def _show(self, progress: Progress) -> None:
        """Draw the bar, with the time that is left and the current file."""
        if self.bar.is_due():
            share = (progress.share or 0.0) if progress.total else 0.0
            left = duration(self.bar.seconds * (1 - share) / share) if share else ""
            self.bar.draw(share, f"{left:>9} {terminal.one_line(os.path.basename(progress.item))}")

    def _report(self, name: str, error: Exception) -> None:
        problem = problem_with(name, error)
        self.errors.append({"name": name, "error": problem})
        _output.error(f"{name}: {problem}")


# ---- tables ---------------------------------------------------------------------------------------------

_COLUMNS = {  # heading: the field of a row
    "bytes": "bytes",
    "tokens": "tokens",
    "bytes/token": "bytes_per_token",
    "chars/token": "characters_per_token",
    "tokens/word": "tokens_per_word",
    "tokens/piece": "tokens_per_piece",
    "1-byte": "single_byte_share",
    "partial": "partial_share",
    "used": "used_tokens",
}


def _tables(found: Stats, width: int | None) -> Iterator[RenderableType]:
    several = len(found.tokenizers) > 1
    rows = found.rows + (found.total if len(found.groups) != 1 else [])
    names = [["tokenizer"] * several + ["text"]]
    names += [[terminal.one_line(name) for name in [row.tokenizer] * several + [row.group]] for row in rows]
    numbers = [list(_COLUMNS), *([_number(row, name) for name in _COLUMNS.values()] for row in rows)]
    yield from _fitted(numbers, names, width)
    yield ""
    numbers, names = [["vocabulary", "for text", "used", "never used"]], [["tokenizer"]]
    for usage in found.usage:
        never = f"{usage.unused_tokens} ({percent(usage.unused_tokens / max(usage.text_tokens, 1))})"
        counts = map(str, (usage.vocab_size, usage.text_tokens, usage.used_tokens))
        numbers.append([*counts, never])
        names.append([terminal.one_line(usage.tokenizer)])
    yield from _fitted(numbers, names, width)


def _fitted(numbers: list[list[str]], names: list[list[str]], width: int | None) -> Iterator[RenderableType]:
    """A table; if it is too wide, several below each other, each with as many columns of numbers as fit."""
    from ..analysis.views.drawing import columns

    for number, (begin, end) in enumerate(_column_ranges(numbers, names, width)):
        yield from [""] * (number > 0)
        yield columns(([*line[begin:end], *name] for line, name in zip(numbers, names)), end - begin)


def _column_ranges(
    numbers: list[list[str]], names: list[list[str]], width: int | None
) -> Iterator[tuple[int, int]]:
    """The range of number columns in each of the tables."""
    least = 0 if width is None else max(width // 4, 8)  # columns of a name, which may wrap
    room = -sum(min(max(map(len, column)) + 2, least) for column in zip(*names))
    room += 1 << 20 if width is None else width
    widths = [max(map(len, column)) + 2 for column in zip(*numbers)]
    begin = used = 0
    for end, column in enumerate(widths):
        if end > begin and used + column > room:
            yield begin, end
            begin, used = end, 0
        used += column
    yield begin, len(widths)


def _number(row: Measures, name: str) -> str:
    value = getattr(row, name)
    if value is None:
        return "-"
    if name.endswith("_share"):
        return percent(value)
    return str(value) if isinstance(value, int) else f"{value:.2f}"


def _csv(found: Stats) -> bytes:
    import csv

    text = io.StringIO()
    writer = csv.DictWriter(text, list(found.total[0].to_dict()), lineterminator="\n")
    writer.writeheader()
    for row in found.rows:
        names = {"group": terminal.one_line(row.group), "tokenizer": terminal.one_line(row.tokenizer)}
        writer.writerow({**row.to_dict(), **names})
    return text.getvalue().encode("utf-8", "backslashreplace")
