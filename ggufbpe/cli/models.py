"""`ggufbpe models`: the models on this machine, whichever program has them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from .._util.errors import escape_invisible, printable
from .._util.progress import Progress
from .._util.shell import visible_command
from .._util.wording import in_bytes
from ..analysis.doctor.local_models import BROKEN, LocalModel, local_models
from ..analysis.views import terminal
from ..hub.stores.all_stores import STORES, closed_folders
from . import _output
from ._arguments import Parser, UsageError
from ._progress import Bar, waiting

_STORES = f"{', '.join(STORES[:-1])} or {STORES[-1]}"

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text


_HEAD = (
    "size",
    "tokens",
    "context",
    "architecture",
    "tokenizer",
    "pre-tokenizer",
    "template",
    "doctor",
    "security",
    "name",
)
_STYLES = {"error": "bold red", "warning": "yellow", "healthy": "green"}


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "pattern", nargs="?", metavar="MODEL_NAME", help="a part of the name, or a pattern with * and ?"
    )
    parser.add_argument(
        "--no-doctor", dest="verdicts", action="store_false", help="give no verdicts, which is faster"
    )
    parser.add_argument(
        "--remote", metavar="hf:OWNER/REPO", help="list the .gguf files of a repository of the hub instead"
    )
    parser.add_argument(
        "--drafts-for", metavar="MODEL", help="list the smaller models that may draft for this one instead"
    )
    parser.add_switch("--json", help="print a list of objects")
    parser.add_color()


def run(arguments: argparse.Namespace) -> int:
    if arguments.remote is not None:
        return _remote(arguments)
    if arguments.drafts_for is not None:
        return _drafts(arguments)
    bar = Bar()

    def show(progress: Progress) -> None:
        if bar.is_due():
            bar.draw(progress.share, escape_invisible(progress.item))

    try:
        models = local_models(arguments.pattern, verdicts=arguments.verdicts, progress=show)
    finally:
        bar.clear()
    for store, folder in closed_folders():
        _output.note(
            f"ggufbpe: you may not read {terminal.one_line(folder)}, so models of {store} may be missing"
        )
    if arguments.json:
        _output.write(terminal.json_bytes([model.to_dict() for model in models]))
        return 0
    if not models:
        if arguments.pattern and os.path.exists(arguments.pattern):
            raise UsageError(
                f"{printable(arguments.pattern)} is a path: this command lists the models of {_STORES}; "
                "`ggufbpe info PATH` shows a file"
            )
        of_name = "of that name " if arguments.pattern else ""
        _output.note(f"ggufbpe: no model {of_name}of {_STORES} on this machine")
        return 0
    width = _output.terminal_width()
    _output.draw(_rows(models, width), arguments.color, width)
    return 0


def _rows(models: list[LocalModel], width: int | None) -> Iterator[RenderableType]:
    from rich.text import Text

    from ..analysis.views.drawing import columns

    sound = [model for model in models if model.verdict != BROKEN]
    rows: list[list[str | Text]] = [list(_HEAD), *_cells(sound)] if sound else []
    widest = [max(map(len, column)) for column in zip(*rows)]
    if width is not None and sum(widest) + 2 * len(widest[1:]) > width:
        yield from _listed(rows[1:])
    elif rows:
        yield columns(rows, 3)
    for number, model in enumerate(each for each in models if each.verdict == BROKEN):
        if number == 0 and rows:
            yield ""
        told = terminal.one_line(f"{model.name}: {model.problem}")
        yield Text.assemble(("broken", "bold red"), f" {told}")


def _cells(models: list[LocalModel]) -> Iterator[list[str | Text]]:
    """A row of the table for each name: further ones of a file have nothing but the name."""
    from rich.text import Text

    for model in models:
        facts = (model.size and in_bytes(model.size), model.tokens, model.context)
        texts = (model.architecture, model.tokenizer, model.pre)
        verdict = Text(model.verdict or "-", _STYLES.get(model.verdict or "", ""))
        template = "yes" if model.chat_template else "no"
        shown: list[str | Text] = [terminal.one_line(str(fact or "-")) for fact in (*facts, *texts)]
        security = Text(model.security or "-", _STYLES.get(model.security or "", ""))
        yield [*shown, template, verdict, security, terminal.one_line(model.name)]
        for name in model.names[1:]:
            yield [*[""] * 9, f"  = {terminal.one_line(name)}"]


def _listed(rows: list[list[str | Text]]) -> Iterator[RenderableType]:
    """The rows where the terminal is too narrow for the table: a name, and what is known of it below."""
    from rich.text import Text

    from ..analysis.views.drawing import indented, unbroken, uncut

    for *facts, name in rows:
        yield uncut(str(name))
        told = [(head, fact) for head, fact in zip(_HEAD, facts) if str(fact) not in ("", "-")]
        if told:
            parts = [Text.assemble(unbroken(f"{head} "), fact) for head, fact in told]
            yield indented(Text(", ").join(parts), 2)


def _drafts(arguments: argparse.Namespace) -> int:
    """The models that may draft for another, the smallest first."""
    from ..analysis.doctor.drafts import LocalDraft, local_drafts
    from ..hub.model_location import locate

    if arguments.pattern is not None:
        raise UsageError("--drafts-for lists the drafts of one model, and takes no MODEL_NAME beside it")
    found = local_drafts(locate(arguments.drafts_for))
    if arguments.json:
        rows = [
            {**each.model.to_dict(), "draft": each.check.verdict, "fix": each.check.fix} for each in found
        ]
        _output.write(terminal.json_bytes(rows))
        return 0
    if not found:
        _output.note(
            f"ggufbpe: no smaller model of {_STORES} on this machine may draft for it; "
            "`ggufbpe diff --draft TARGET DRAFT` checks a file in any folder"
        )
        return 0
    from ..analysis.views.drawing import columns

    def told(each: LocalDraft) -> str:
        return (
            f"after {visible_command(each.check.fix)}"
            if each.check.fix
            else each.check.verdict.replace("_", " ")
        )

    table = [["size", "name", "draft"]]
    table += [
        [in_bytes(each.model.size or 0), terminal.one_line(each.model.name), told(each)] for each in found
    ]
    _output.draw([columns(table, 1)], arguments.color)
    return 0


def _remote(arguments: argparse.Namespace) -> int:
    """The files of a repository, each with the name that opens it."""
    from ..hub.name_grammar import HubName, hub_name, parse_name

    given = arguments.remote
    name = parse_name(given)
    if not isinstance(name, HubName):
        with suppress(ValueError):
            name = hub_name(given)
    if not isinstance(name, HubName):
        raise UsageError(f"{printable(given, 200)} is no repository of the hub: give hf:OWNER/REPO")
    if arguments.pattern is not None:
        raise UsageError("--remote lists one repository, and takes no MODEL_NAME beside it")
    from ..hub.remote.huggingface import files_on_hub

    with waiting(f"asking for {escape_invisible(str(name))}"):
        found = files_on_hub(name)
    named = [(HubName(name.owner, name.repo, None, file.name, name.revision), file.size) for file in found]
    if arguments.json:
        _output.write(terminal.json_bytes([{"name": str(each), "size": size} for each, size in named]))
        return 0
    from ..analysis.views.drawing import columns

    rows = [["size", "name"], *([in_bytes(size), terminal.one_line(str(each))] for each, size in named)]
    _output.draw([columns(rows, 1)], arguments.color)
    return 0
