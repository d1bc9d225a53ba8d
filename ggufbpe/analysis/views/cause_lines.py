"""Shows causes and proposals as lines for a terminal, alike for every command that gives advice."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from ..._util.shell import visible_command
from ...gguf.change import COMMAND
from ..diagnose.cause import Cause
from ..doctor.proposal import Proposal
from . import terminal
from .drawing import beside, paragraph, uncut
from .flag_names import with_flags


def cause_lines(cause: Cause, columns: int, label: str = "") -> Iterator[RenderableType]:
    """Yield a cause: one sentence, then shorter evidence, and what to do outside of the model file."""
    yield beside(" " * columns + label, sentence(str(cause.detail.get("what", cause.id))))
    told = cause.detail.get("evidence")
    if isinstance(told, list) and told:
        yield paragraph(terminal.one_line(f"evidence: {'; '.join(map(str, told))}"), columns + 2, "dim")
    if cause.fix:
        label = "if the file is right" if cause.change else "to do"
        fix = COMMAND.sub(lambda command: visible_command(command[0]), with_flags(cause.fix))
        yield paragraph(terminal.one_line(f"{label}: {fix}"), columns + 2, "dim")


def sentence(text: str) -> str:
    """Return a text as one safe line with a capital and a full stop.

    >>> sentence("the model adds BOS")
    'The model adds BOS.'
    """
    safe = terminal.one_line(text)
    return safe[:1].upper() + safe[1:] + ("" if safe.endswith((".", "?", "!", "…")) else ".")


def proposal_lines(proposal: Proposal | None, of: str = "") -> Iterator[RenderableType]:
    """Yield the one command that is proposed, after what it explains, or why there is none; nothing without a change.

    `of` names the model that is changed where several are compared.
    """
    if proposal is None or not proposal.change:
        return
    if not proposal.command:
        yield paragraph(terminal.one_line(f"no command is proposed: {proposal.objection}"), 0)
        return
    changed = of or ("the file" if proposal.unmended else "")
    what = f"changes {changed}" if changed else "makes all changes"
    explains = f" and {proposal.explains}" if proposal.explains else ""
    yield Text(terminal.one_line(f"fix: this one command {what}{explains}:"))
    yield uncut(f"  {visible_command(proposal.command)}")
