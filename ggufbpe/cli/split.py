"""`ggufbpe split`: the parts of a text that have at most so many tokens."""

from __future__ import annotations

import argparse
import itertools
import os
from typing import Any

from .._util.errors import printable
from .._util.utf8 import text_fields
from ..analysis.views import terminal
from ..analysis.views.answers import answer
from ..tokenizer.boundaries import BOUNDARIES, KeepSeparator
from . import _output
from ._arguments import Parser, UsageError
from ._files import require_path
from ._given_models import opened_tokenizer
from ._input import read_text, settle_stdin


def add_arguments(parser: Parser) -> None:
    parser.add_model()
    parser.add_text()
    parser.add_number("--size", "--limit", default=512, help="at most N tokens in a part (default: 512)")
    parser.add_number("--overlap", default=0, help="repeat at most N tokens of the part before (default: 0)")
    parser.add_switch(
        "--add-special",
        help="count the BOS and EOS that the model adds to each part, as for embeddings",
    )
    parser.add_argument(
        "--boundaries",
        choices=tuple(BOUNDARIES),
        default="paragraph",
        help="the strongest level of boundaries (default: paragraph)",
    )
    parser.add_argument(
        "--keep-separator",
        choices=("end", "start", "none"),
        default="end",
        help="keep what separates two parts at the end of the first or at the start of the second; none: leave out "
        "white space at both ends of each part (default: end)",
    )
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--separator", metavar="TEXT", help="print the texts with this between them")
    shape.add_argument("--json", action="store_true", help="print one object with all parts")
    shape.add_argument(
        "-o", "--output", metavar="DIRECTORY", help="write each part to a file in a new directory"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.output is not None:
        require_path(arguments.output)
    settle_stdin(arguments, "prompt", "file")
    data = read_text(arguments, "split")
    tokenizer = opened_tokenizer(arguments)
    keep: KeepSeparator = False if arguments.keep_separator == "none" else arguments.keep_separator
    text: str | bytes = data
    try:
        text = data.decode()
    except UnicodeDecodeError:
        _output.note("ggufbpe: the text is not UTF-8, so start and end are in bytes")
    try:
        spans = tokenizer.split(
            text,
            arguments.size,
            arguments.overlap,
            arguments.boundaries,
            keep,
            add_special=arguments.add_special,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    parts = [text[start:end] for start, end in spans]
    written = [part.encode() if isinstance(part, str) else part for part in parts]
    if arguments.output is not None:
        _write_files(arguments.output, written)
    elif arguments.separator is not None:
        _output.write(os.fsencode(arguments.separator).join(written))
    else:
        counts = (tokenizer.count(part, add_special=arguments.add_special) for part in written)
        rows = map(_row, spans, counts, written)
        if arguments.json:
            _output.write_json(answer({"parts": list(rows)}, model=tokenizer.name))
            return 0
        _output.write_lines(map(terminal.json_text, rows))
    return 0


def _row(span: tuple[int, int], tokens: int, part: bytes) -> dict[str, Any]:
    start, end = span
    return {"start": start, "end": end, "tokens": tokens, **text_fields("text", part)}


def _write_files(folder: str, parts: list[bytes]) -> None:
    try:
        os.mkdir(folder)
    except FileExistsError:
        raise UsageError(
            f"{printable(folder)} already exists; -o needs the name of a new directory"
        ) from None
    width = len(str(len(parts)))
    for number, part in zip(itertools.count(1), parts):
        with open(os.path.join(folder, f"part-{number:0{width}}.txt"), "xb") as file:
            file.write(part)
