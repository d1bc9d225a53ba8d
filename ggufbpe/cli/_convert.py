"""What the commands export and import share: the comparison with a library, and how it is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..analysis.views import terminal
from ..errors import printable
from . import _output
from ._arguments import Parser
from ._input import read_file

if TYPE_CHECKING:
    from ..convert.parity import Agreement

_SHOWN_CHARACTERS = 12


def add_check(parser: Parser) -> None:
    """The flags of the comparison with the library whose format it is."""
    parser.add_switch("--no-check", help="do not compare ids with the library's")
    parser.add_argument(
        "--sample", action="append", default=[], metavar="PATH", help="compare on the lines of a file, too"
    )


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
    share = 100 * found.differing / found.texts if found.texts else 0
    yield (
        f"{tried}; ids differ in {found.differing} texts ({share:.2g}%), in at most {found.differing_tokens} of "
        f"{found.tokens} tokens"
    ) + (
        f" and on {len(found.differing_characters)} characters: {_characters(found.differing_characters)}"
        if found.differing_characters
        else ""
    )
    for text, ours, theirs in found.examples:
        yield f"  {printable(text, 60)}: {_ids(ours)} here, {_ids(theirs)} there"


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
    if on_stderr:
        _output.note(terminal.one_line(line))
    else:
        _output.write(f"{terminal.one_line(line)}\n".encode("utf-8", "backslashreplace"))
