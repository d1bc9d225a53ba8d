"""`ggufbpe page`: the server's page as a static site."""

from __future__ import annotations

import argparse
from pathlib import Path

from .._util.errors import printable
from .._util.shell import shell_path
from ..analysis.views.answers import answer
from . import _output
from ._arguments import Parser, UsageError
from ._files import require_path


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FOLDER",
        help="the folder to write to, which must be new or empty",
    )
    parser.add_switch(
        "--force", help="write into a folder that has files; those of the same names are replaced"
    )
    parser.add_switch("--json", help="print what was written as JSON")


def run(arguments: argparse.Namespace) -> int:
    from ..server.standalone_page import write_standalone_page

    require_path(arguments.output)
    folder = Path(arguments.output)
    if folder.is_dir() and any(folder.iterdir()) and not arguments.force:
        raise UsageError(f"{printable(arguments.output)} is not empty; --force writes over its files")
    files = write_standalone_page(folder)
    if arguments.json:
        names = sorted(path.relative_to(arguments.output).as_posix() for path in files)
        _output.write_json(answer({"files": names}, path=arguments.output))
    else:
        count = f"{len(files)} files in {arguments.output}"
        _output.note(f"{count}; to look at them: python3 -m http.server -d {shell_path(arguments.output)}")
    return 0
