"""`ggufbpe doctor`: what is wrong or suspicious in a model's metadata."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .._util.extras import NotInstalledError
from .._util.shell import visible_command
from .._util.wording import counted
from ..analysis.doctor.examination import doctor
from ..analysis.doctor.finding import Examination, Finding
from ..analysis.doctor.proposal import changes_of
from ..analysis.views import answers, terminal
from ..gguf.change import COMMAND, flags_of_command
from ..hub.model_location import ModelLocation
from . import _output
from ._arguments import Parser, UsageError, overrides_of
from ._files import write_file
from ._given_models import required_model
from ._progress import waiting_for

if TYPE_CHECKING:
    from rich.console import RenderableType


_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
_WIDTH = 100  # columns at most: longer lines are hard to read


def add_arguments(parser: Parser) -> None:
    parser.add_model_first(has_default=False)
    parser.add_override_kv()
    parser.add_argument(
        "--upstream",
        nargs="?",
        const="",
        metavar="NAME",
        help="also compare with the Hugging Face repository that the metadata names, or with hf:OWNER/REPO or a folder",
    )
    parser.add_switch(
        "--security", help="examine what the template and the metadata can do to their user instead"
    )
    parser.add_argument(
        "--sarif",
        metavar="PATH",
        help="also write the findings to a file, as SARIF 2.1.0; - for standard output, which then has nothing else",
    )
    parser.add_switch("--strict", help="exit with code 1 for warnings, too")
    parser.add_switch("-v", "--verbose", help="show notes, too")
    parser.add_switch("--json", help="print one object")
    parser.add_color()


def run(arguments: argparse.Namespace) -> int:
    if arguments.sarif == "-" and arguments.json:
        raise UsageError("--sarif - and --json: only one of them can be standard output")
    try:
        path = required_model(arguments, "doctor")
    except UsageError:
        if not arguments.upstream:
            raise
        arguments.path, arguments.upstream = arguments.upstream, ""  # `--upstream MODEL`
        path = required_model(arguments, "doctor")
    found = _audited(arguments, path) if arguments.security else _examined(arguments, path)
    if arguments.sarif is not None:
        from ..analysis.views.sarif import sarif_log

        write_file(arguments.sarif, [terminal.json_bytes(sarif_log(found))])
    if arguments.json:
        _output.write_json(answers.examination(found))
    elif arguments.sarif != "-":  # which is standard output: nothing but the log goes there
        _show(arguments, found)
        if not arguments.security:
            _point_to_audit(arguments, path)
    grave = ("error", "warning") if arguments.strict else ("error",)
    return int(any(finding.severity in grave for finding in found.findings))


def _examined(arguments: argparse.Namespace, path: str | ModelLocation) -> Examination:
    also: list[Finding] = []
    if arguments.upstream is not None:
        from ..analysis.verify.upstream import upstream

        how = {"overrides": overrides_of(arguments), "offline": arguments.offline}
        with waiting_for("comparing", path):
            also = list(upstream(path, arguments.upstream, **how))
    with waiting_for("examining", path):
        return doctor(path, overrides=overrides_of(arguments), also=also)


def _audited(arguments: argparse.Namespace, path: str | ModelLocation) -> Examination:
    from ..analysis.doctor.security.audit import audit

    if arguments.upstream is not None:
        raise UsageError("--security does not compare with another tokenizer; leave out --upstream")
    with waiting_for("examining", path):
        return audit(path, overrides=overrides_of(arguments))


def _point_to_audit(arguments: argparse.Namespace, path: str | ModelLocation) -> None:
    """Say so if an audit finds something: a model may have nothing to mend, and a template that attacks its user."""
    from ..analysis.doctor.security.audit import audit

    try:
        found = audit(path, overrides=overrides_of(arguments))
    except NotInstalledError:
        return
    told = [counted(n, severity) for severity, n in found.counts.items() if n and severity != "note"]
    if told:
        shown = "it" if sum(found.counts.values()) - found.counts["note"] == 1 else "them"
        _output.note(f"ggufbpe: a security check found {' and '.join(told)}; --security shows {shown}")


def _show(arguments: argparse.Namespace, found: Examination) -> None:
    width = _output.terminal_width()
    parts = _parts(found, arguments.verbose, arguments.security)
    _output.draw(parts, arguments.color, width and min(width, _WIDTH))


def _parts(found: Examination, verbose: bool, is_audit: bool) -> Iterator[RenderableType]:
    """The verdict, the findings, notes only with --verbose, and what is unlike other files of the family."""
    from rich.text import Text

    findings, is_healthy = found.findings, found.is_healthy
    told = [counted(n, severity) for severity, n in found.counts.items() if n]
    verdict = (
        f"{', '.join(told)}" if not is_healthy else "OK: nothing found" if is_audit else "OK: nothing to fix"
    )
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
    if found.unlike_family:
        from ..analysis.views.drawing import paragraph

        left = "; ".join(found.unlike_family)
        yield ""
        yield paragraph(terminal.one_line(f"Unlike {found.family} files: {left}. This may be intended."), 0)
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
    yield uncut(f"  {visible_command(proposal.command)}")


def _finding(finding: Finding) -> Iterator[RenderableType]:
    """A finding: a paragraph each for what, where, why and the fix."""
    from rich.text import Text

    from ..analysis.views.drawing import paragraph, uncut

    where = finding.where
    place = [where.key] if where.key else []
    place += [f"token {where.token}"] * (where.token is not None)
    place += [f"byte {where.offset}"] * (where.offset is not None)
    place += [f"line {where.line}, column {where.column}"] * (where.line is not None)
    yield Text.assemble((finding.severity, _STYLES[finding.severity]), f": {finding.id}")
    yield paragraph(terminal.one_line(finding.what), 2)
    if finding.evidence:
        yield paragraph(terminal.one_line(finding.evidence), 2)
    if place:
        yield paragraph(terminal.one_line("where: " + ", ".join(place)), 2, "dim")
    yield paragraph(terminal.one_line(f"why: {finding.why}"), 2)
    is_at_end = bool(changes_of(finding))
    fix = COMMAND.sub(_flags if is_at_end else "", finding.fix)
    yield paragraph(terminal.one_line(f"fix: {fix}".rstrip()), 2)
    for command in () if is_at_end else COMMAND.findall(finding.fix):
        yield uncut(f"  {visible_command(command)}")


def _flags(command: re.Match[str]) -> str:
    """What a command changes: its flags. The whole command for all errors and warnings stands at the end."""
    return visible_command(shlex.join(flags_of_command(command[0])))
