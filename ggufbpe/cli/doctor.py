"""`ggufbpe doctor`: what is wrong or suspicious in a model's metadata."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .._util.wording import counted
from ..analysis.doctor.examination import doctor
from ..analysis.doctor.finding import Examination, Finding
from ..analysis.views import answers, terminal
from ..gguf.change import COMMAND
from . import _output
from ._arguments import Parser, add_color, add_model_first, add_override_kv, overrides_of
from ._given_models import required_model
from ._progress import waiting_for

if TYPE_CHECKING:
    from rich.console import RenderableType

_DESCRIPTION = """\
Find what is wrong or suspicious in the metadata of a model's tokenizer, and in the list of its tensors if the file is \
cut off: where it is, why it matters and what to do. \
Errors make llama.cpp refuse the file or abort, or are values that cannot be intended; warnings most likely mean \
different ids than in training; notes are good to know, and shown with --verbose. Files whose tokenizer cannot be \
opened are examined as well.

With --upstream, the ids of random texts are also compared with those of the original tokenizer.json: that of the \
first repository on the Hugging Face hub that the metadata names (general.source.*, general.base_model.*) and that has \
one. Each difference is a warning that says what is at fault: the file, if changing it gives the other ids; llama.cpp; \
or unknown.

The exit code is 1 if an error was found, with --strict also if a warning was, 2 if the file could not be read, \
otherwise 0."""
_EXAMPLES = """\
examples:
  ggufbpe doctor model.gguf
  ggufbpe doctor model.gguf --json
  ggufbpe doctor model.gguf && echo "llama.cpp opens it; there may be warnings"
  ggufbpe doctor model.gguf --strict && echo "nothing speaks against its ids\""""

_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
_WIDTH = 100  # columns at most: longer lines are hard to read


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    add_model_first(parser)
    add_override_kv(parser)
    parser.add_switch(
        "--upstream",
        help="also compare with the tokenizer.json of the Hugging Face repository that the metadata names",
    )
    parser.add_switch("--strict", help="exit with code 1 for warnings, too")
    parser.add_switch("-v", "--verbose", help="show notes, too")
    parser.add_switch("--json", help="print one object")
    add_color(parser)


def run(arguments: argparse.Namespace) -> int:
    path = required_model(arguments, "doctor")
    also: list[Finding] = []
    if arguments.upstream:
        from ..analysis.verify.upstream import upstream

        also = list(upstream(path, overrides=overrides_of(arguments), offline=arguments.offline))
    with waiting_for("examining", path):
        found = doctor(path, overrides=overrides_of(arguments), also=also)
    if arguments.json:
        _output.write_json(answers.examination(found))
    else:
        _show(arguments, found)
    grave = ("error", "warning") if arguments.strict else ("error",)
    return int(any(finding.severity in grave for finding in found.findings))


def _show(arguments: argparse.Namespace, found: Examination) -> None:
    from ..analysis.views.drawing import drawn

    width = _output.terminal_width()
    parts = _parts(found, arguments.verbose)
    for line in drawn(parts, _output.use_color(arguments.color), width and min(width, _WIDTH)):
        _output.write(f"{line}\n".encode("utf-8", "backslashreplace"))


def _parts(found: Examination, verbose: bool) -> Iterator[RenderableType]:
    """The verdict, then the findings; notes only with --verbose."""
    from rich.text import Text

    findings, is_healthy = found.findings, found.is_healthy
    told = [counted(n, severity) for severity, n in found.counts.items() if n]
    verdict = f"{', '.join(told)}" if not is_healthy else "OK: nothing to fix"
    shown = findings if verbose else [finding for finding in findings if finding.severity != "note"]
    if is_healthy and findings:
        verdict += f" ({', '.join(told)}{'' if verbose else '; --verbose shows them'})"
    elif len(shown) < len(findings):
        verdict += " (--verbose shows notes, too)"
    style = "bold green" if is_healthy else _STYLES[findings[0].severity]
    yield Text.assemble(
        (verdict, style), f": {terminal.one_line(found.path)}", no_wrap=True, overflow="ignore"
    )
    for finding in shown:
        yield ""
        yield from _finding(finding)
    yield from _command(found)


def _command(found: Examination) -> Iterator[RenderableType]:
    """The one command for all findings, and what it mends."""
    from rich.text import Text

    from ..analysis.views.drawing import uncut

    proposal = found.proposal
    if proposal is None or not proposal.command:
        return
    mended, of = proposal.explained, len(found.findings) - found.counts["note"]
    which = (
        "the finding" if of == 1 else f"all {of} findings" if mended == of else f"{mended} of {of} findings"
    )
    yield ""
    yield Text(f"fix: this one command mends {which}:")
    yield uncut(f"  {terminal.one_line(proposal.command)}")


def _finding(finding: Finding) -> Iterator[RenderableType]:
    """A finding: a paragraph each for what, where, why and the fix."""
    from rich.text import Text

    from ..analysis.views.drawing import paragraph

    where = finding.where
    place = [where.key] if where.key else []
    place += [f"token {where.token}"] * (where.token is not None)
    place += [f"byte {where.offset}"] * (where.offset is not None)
    yield Text.assemble((finding.severity, _STYLES[finding.severity]), f": {finding.id}")
    yield paragraph(terminal.one_line(finding.what), 2)
    if finding.evidence:
        yield paragraph(terminal.one_line(finding.evidence), 2)
    if place:
        yield paragraph(terminal.one_line("where: " + ", ".join(place)), 2, "dim")
    yield paragraph(terminal.one_line(f"why: {finding.why}"), 2)
    yield paragraph(terminal.one_line(f"fix: {COMMAND.sub(_flags, finding.fix)}"), 2)


def _flags(command: re.Match[str]) -> str:
    """What a command changes: its flags. The whole command for all findings stands at the end."""
    return shlex.join(shlex.split(command[0])[3:-2])
