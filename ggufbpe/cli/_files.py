"""What commands say of files that were not read, and files that they write."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping

from .._util import files
from .._util.errors import printable
from .._util.files import is_special
from ..analysis.views import terminal
from . import _output
from ._arguments import Parser, UsageError
from ._signals import termination_as_exit


class GivenPath:
    """A path as it was given: `pathlib` would make one slash of the two of a URL."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return self._path


def add_no_ignore(parser: Parser) -> None:
    parser.add_switch("--no-ignore", help="in a git repository, also read files that git ignores")


def ignored_of(arguments: argparse.Namespace) -> Callable[[str], frozenset[str]] | None:
    """What `files_of` leaves out of directories."""
    from ..data.corpora.corpus_files import ignored_by_git

    return None if arguments.no_ignore else ignored_by_git


def say_what_was_left_out(skipped: Mapping[str, int], remedy: str = "") -> None:
    """A note of how many files of directories were not read, by kind; with a remedy if it works for one of them."""
    parts = {kind: f"{number} {kind}" for kind, number in sorted(skipped.items()) if number}
    if parts:
        from ..data.corpora.corpus_files import NEVER_READ

        shown = f" ({remedy})" if remedy and not NEVER_READ.issuperset(parts) else ""
        _output.note(f"ggufbpe: skipped in directories: {', '.join(parts.values())}{shown}")


def say_what_is_not_utf8(undecodable: int) -> None:
    """A note of how many bytes are not UTF-8, if any are."""
    if undecodable:
        bytes_are = "byte is" if undecodable == 1 else "bytes are"
        _output.note(f"ggufbpe: {undecodable} {bytes_are} not UTF-8; each counts as one character (U+FFFD)")


# ---- files that are written -----------------------------------------------------------------------------


def require_free(target: str, force: bool, *sources: str | None) -> None:
    """`UsageError` for an existing file without --force, for one of `sources`, and for what cannot be a file.

    Devices and pipes are always free: nothing is replaced there. Checked before the work, so that none is lost.
    """
    if os.path.isdir(target):
        raise UsageError(f"{printable(target)} is a directory")
    if not os.path.basename(target):
        raise UsageError(f"{printable(target)} is not the name of a file")
    folder = os.path.dirname(target)
    while folder and not os.path.exists(folder):
        folder = os.path.dirname(folder)
    if folder and not os.path.isdir(folder):
        raise UsageError(f"{printable(folder)} is not a directory")
    for source in sources if os.path.exists(target) else ():
        if source is not None and os.path.exists(source) and os.path.samefile(target, source):
            raise UsageError(f"{printable(target)} is the input file; give another name")
    if os.path.lexists(target) and not force and not is_special(target):
        raise UsageError(f"{printable(target)} already exists; --force overwrites it")


def require_path(output: str, why: str = "this command writes several files", needed: str = "folder") -> None:
    """`UsageError` for `-o ""`, and for `-o -`, as the command cannot write to standard output."""
    if not output:
        raise UsageError(f"-o '': the name is empty; give a {needed}")
    if output == "-":
        raise UsageError(f"-o -: {why}, so it cannot write to standard output; give a {needed}")


def require_folder(target: str) -> None:
    """`UsageError` for a file that cannot be written because of its folder."""
    folder = os.path.dirname(target) or "."
    if not os.path.isdir(folder):
        missing = "" if os.path.exists(folder) else " (No such file or directory)"
        raise UsageError(f"{printable(folder)} is not a directory{missing}: nothing can be written there")
    if not os.access(folder, os.W_OK) and not is_special(target):
        raise UsageError(f"{printable(target)}: nothing can be written there")


def is_standard_output(path: str) -> bool:
    """Whether what is written to `path` goes to standard output: "-", or a device or pipe that stands for it.

    The null device never does, as nobody reads what goes there.
    """
    try:
        return path == "-" or (
            is_special(path)
            and os.path.samestat(os.stat(path), os.fstat(1))
            and not os.path.samefile(path, os.devnull)
        )
    except OSError:  # it is closed
        return False


def check_json(arguments: argparse.Namespace) -> None:
    """`UsageError` where both the file and the report would go to standard output."""
    if arguments.json and is_standard_output(arguments.output or ""):
        raise UsageError(f"-o {arguments.output} and --json: only one of them can be standard output")


def check_page(arguments: argparse.Namespace) -> None:
    """`UsageError` for --html with --json, and for a page that cannot be written; before any work."""
    if arguments.html is None:
        return
    if arguments.json:
        raise UsageError("give --html or --json, not both")
    require_page(arguments.html, arguments.force, arguments.file)


def require_page(target: str, force: bool, *sources: str | None) -> None:
    """`UsageError` for a page that cannot be written or is one of `sources`; `NotInstalledError` without jinja2."""
    require_free(target, force, *sources)
    require_folder(target)
    from ..analysis.views.html_page import require_jinja

    require_jinja()


def write_outputs(contents: Mapping[str, bytes]) -> None:
    """Write files by path, all or none; "-" is standard output. Folders are made."""
    if "-" in contents:
        _output.write(contents["-"])
        _output.flush()
        return
    for path in contents:
        if folder := os.path.dirname(path):
            os.makedirs(folder, exist_ok=True)
    with termination_as_exit():
        files.write_files(contents)


def write_page(path: str, parts: Iterable[str]) -> None:
    """Write a page, and say where it is."""
    write_file(path, (part.encode() for part in parts))
    _output.note(f"ggufbpe: the page is in {terminal.one_line(path)}")


def write_file(path: str, parts: Iterable[bytes]) -> None:
    """Write one file piece by piece, whole or not at all; "-" is standard output."""
    if path == "-":
        for part in parts:
            _output.write(part)
        _output.flush()
        return
    with termination_as_exit(), files.replacing(path) as (file, _):
        for part in parts:
            file.write(part)
