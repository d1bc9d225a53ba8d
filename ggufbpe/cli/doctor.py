"""`ggufbpe doctor`: what is wrong or suspicious in a model's metadata."""

from __future__ import annotations

import argparse
import re

from ..examination.examine import doctor
from ..examination.finding import Examination, Finding
from ..views import terminal
from ..wording import counted
from . import _output
from ._arguments import Parser, add_color, add_model_first, add_override_kv, overrides_of, required_model

_DESCRIPTION = """\
Find what is wrong or suspicious in the metadata of a model's tokenizer, and say where it is, why it matters and \
what to do. Errors make llama.cpp refuse the file or abort, or are values that cannot be intended; warnings most \
likely mean other ids than in training; notes are good to know, and shown with --verbose. Files whose tokenizer \
cannot be opened are examined as well.

The exit code is 1 if there is an error among the findings, with --strict also if there is a warning, 0 if not, 2 if \
the file could not be read."""
_EXAMPLES = """\
examples:
  ggufbpe doctor model.gguf
  ggufbpe doctor model.gguf --json
  ggufbpe doctor model.gguf && echo "llama.cpp opens it; there may be warnings"
  ggufbpe doctor model.gguf --strict && echo "nothing speaks against its ids\""""

_COLORS = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "note": "\x1b[1;36m"}
_WIDTH = 100  # columns at most: longer lines are hard to read
_COMMAND = re.compile(r"(ggufbpe fix .+? -o fixed\.gguf)")


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    add_model_first(parser)
    add_override_kv(parser)
    parser.add_argument("--strict", action="store_true", help="exit code 1 also for warnings")
    parser.add_argument("-v", "--verbose", action="store_true", help="show notes, too")
    parser.add_argument("--json", action="store_true", help="print one object")
    add_color(parser)


def run(arguments: argparse.Namespace) -> int:
    path = required_model(arguments, "doctor")
    found = doctor(path, overrides=overrides_of(arguments))
    if arguments.json:
        _output.write(terminal.json_bytes(found.to_dict()))
    else:
        color, width = _output.use_color(arguments.color), _output.terminal_width()
        width = None if width is None else min(width, _WIDTH)
        _output.write(_text(found, arguments.verbose, color, width))
    grave = ("error", "warning") if arguments.strict else ("error",)
    return int(any(finding.severity in grave for finding in found.findings))


def _text(found: Examination, verbose: bool, color: bool, width: int | None) -> bytes:
    """The verdict, then the findings; notes only where they are asked for."""
    findings, is_healthy = found.findings, found.is_healthy
    told = [counted(n, severity) for severity, n in found.counts.items() if n]
    verdict = f"{', '.join(told)}" if not is_healthy else "OK: nothing to fix"
    shown = findings if verbose else [finding for finding in findings if finding.severity != "note"]
    if is_healthy and findings:
        verdict += f" ({', '.join(told)}{'' if verbose else '; --verbose shows them'})"
    elif len(shown) < len(findings):
        verdict += " (--verbose shows notes, too)"
    begin, end = (
        ("\x1b[1;32m" if is_healthy else _COLORS[findings[0].severity], terminal.RESET) if color else ("", "")
    )
    lines = [f"{begin}{verdict}{end}: {terminal.one_line(found.path)}"]
    for finding in shown:
        lines += ["", *_lines(finding, color, width)]
    return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")


def _lines(finding: Finding, color: bool, width: int | None) -> list[str]:
    """A finding: what and where, why, fix; a paragraph each."""
    where = finding.where
    place = [where.key] if where.key else []
    place += [f"token {where.token}"] * (where.token is not None)
    place += [f"byte {where.offset}"] * (where.offset is not None)
    begin, end = (_COLORS[finding.severity], terminal.RESET) if color else ("", "")
    dim = terminal.DIM if color else ""

    def paragraph(text: str) -> str:
        return "  " + terminal.wrapped(terminal.safe_line(text), width, 2)

    lines = [f"{begin}{finding.severity}{end}: {finding.id}", paragraph(finding.what)]
    if place:
        lines.append(f"{dim}{paragraph('where: ' + ', '.join(place))}{end if dim else ''}")
    lines.append(paragraph(f"why: {finding.why}"))
    for part in _COMMAND.split(f"fix: {finding.fix}"):
        if part.startswith("ggufbpe fix "):  # on one line, however long, so that it can be copied
            lines.append(f"    {terminal.safe_line(part)}")
        elif part.strip():
            lines.append(paragraph(part.strip().removeprefix(", ")))
    return lines
