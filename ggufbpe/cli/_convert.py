"""What the commands export and import share: the comparison with a library, and how it is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .._util.errors import printable
from .._util.verdicts import WARNING
from .._util.wording import counted, percent
from ..analysis.conversion.parity import verdict_on
from ..analysis.views import answers, terminal
from ..analysis.views.flag_names import with_flags
from . import _output
from ._arguments import Parser
from ._input import read_file

if TYPE_CHECKING:
    from ..analysis.conversion.parity import Agreement
    from ..convert.incompatibilities import Incompatibility

_SHOWN_CHARACTERS = 12


def add_check(parser: Parser) -> None:
    """The flags of the comparison with the library whose format it is."""
    parser.add_switch("--no-check", help="do not compare ids with the library's")
    parser.add_switch("--json", help="print one object: path, verdict, findings, agreement …")
    parser.add_repeated("--sample", metavar="PATH", help="compare on the lines of a file, too")


def agreement_lines(found: Agreement | str | None) -> Iterator[str]:
    """Yield the result of a comparison with a library for people, or the reason why there was none."""
    if found is None:
        return
    if isinstance(found, str):
        yield found
        return
    tried = f"{found.library}: {found.texts} texts and {found.characters} characters"
    if found.same:
        yield f"{tried}, all ids the same"
        return
    share = found.differing / found.texts if found.texts else 0
    shown = percent(share) if share >= 0.1 else f"{100 * share:.2g}%"
    yield (
        f"{tried}; ids differ in {counted(found.differing, 'text')} ({shown}), in at most {found.differing_tokens} of "
        f"{found.tokens} tokens"
    ) + (
        f" and on {counted(len(found.differing_characters), 'character')}: {_characters(found.differing_characters)}"
        if found.differing_characters
        else ""
    )
    for text, ours, theirs in found.examples:
        yield f"  {printable(text, 60)}: {_ids(ours)} here, {_ids(theirs)} there"


def converted_answer(
    found: Agreement | str | None,
    limits: Iterable[Incompatibility],
    files: Mapping[str, bytes],
    *,
    model: str | None,
    path: str,
    **facts: Any,
) -> dict[str, Any]:
    """Return what `--json` prints of files that were written, their limits, and the comparison with the library."""
    limits = list(limits)
    compared = None if found is None or isinstance(found, str) else found
    agreement = compared and {
        **compared._asdict(),
        "differing_characters": list(compared.differing_characters),
        "examples": [example._asdict() for example in compared.examples],
    }
    findings = [
        answers.finding(limit.name, with_flags(limit.what), severity=WARNING, number=limit.number)
        for limit in limits
    ]
    written = [{"path": name, "bytes": len(data)} for name, data in files.items()]
    rest = {
        **facts,
        "files": written,
        "agreement": agreement,
        "not_compared": found if isinstance(found, str) else None,
    }
    return answers.answer(rest, model=model, path=path, verdict=verdict_on(found, limits), findings=findings)


def _ids(ids: list[int] | None) -> str:
    if ids is None:
        return "an error"
    return f"[{', '.join(map(str, ids[:12]))}{', …' if len(ids) > 12 else ''}]"


def _characters(points: tuple[int, ...]) -> str:
    shown = ", ".join(f"U+{point:04X}" for point in points[:_SHOWN_CHARACTERS])
    return shown + (" …" if len(points) > _SHOWN_CHARACTERS else "")


def lines_of(path: str) -> Iterator[str]:
    """The lines of a text file, each with its line break."""
    return iter(read_file(path).decode("utf-8", "replace").splitlines(keepends=True))


def tell(line: str, on_stderr: bool) -> None:
    """Print a line on standard output, or on standard error if the output is a file's content."""
    line = with_flags(line)
    if on_stderr:
        _output.note(terminal.one_line(line))
    else:
        _output.write_lines([terminal.one_line(line)])
