"""`ggufbpe decode`: the documents in shards, as text."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from .._util.wording import counted
from ..analysis.views import terminal
from . import _output
from ._arguments import Parser, UsageError
from ._given_models import opened_tokenizer

if TYPE_CHECKING:
    from ..data.corpora.shard_reader import DecodedRow

_LONGEST = 200  # bytes of a text shown per line


def add_arguments(parser: Parser) -> None:
    parser.add_argument("output", metavar="OUT", help="the folder of the shards")
    parser.add_model()
    parser.add_number("--document", help="print the whole text of this document; the first is 0")
    parser.add_number("--start", default=0, help="the first document to show (default: 0)")
    parser.add_number("-n", "--count", help="how many to show (default: 10)")
    parser.add_switch("--ids", help="show ids instead of text")
    parser.add_switch("--special", help="show control tokens, too")
    parser.add_switch("--mask", help="show which parts the assistant wrote, and control tokens")
    parser.add_switch("--json", help="print one object per line: number, ids, text, and with --mask the mask")


def run(arguments: argparse.Namespace) -> int:
    if arguments.document is not None and (arguments.start or arguments.count is not None):
        raise UsageError("--document, or --start and --count, not both")
    start = arguments.start if arguments.document is None else arguments.document
    count = 10 if arguments.count is None else min(arguments.count, sys.maxsize)
    if arguments.mask and arguments.ids:
        raise UsageError("--mask shows text: leave out --ids, or give --json for both")
    if start < 0 or count < 0:
        raise UsageError("documents are counted from 0")
    from ..data.corpora.shard_reader import decode_corpus

    tokenizer = opened_tokenizer(arguments)
    is_one = arguments.document is not None
    rows = decode_corpus(
        arguments.output,
        tokenizer,
        start=start,
        count=1 if is_one else count,
        special=arguments.special or arguments.mask,
        mask=arguments.mask,
    )
    shown = 0
    for row in rows:
        shown += 1
        if arguments.json:
            _output.write_lines([terminal.json_text(row.to_dict())])
        elif arguments.mask:
            _write_runs(row, None if is_one else _LONGEST)
        elif is_one:
            text = b"%s\n" % " ".join(map(str, row.ids)).encode() if arguments.ids else row.text
            _output.write(text)
        else:
            line = " ".join(map(str, row.ids)) if arguments.ids else terminal.shown_text(row.text, _LONGEST)
            _output.write_lines([f"{row.number:>6}  {counted(len(row.ids), 'token'):>12}  {line}"])
    if is_one and not shown:
        raise UsageError(f"there is no document {start}")
    return 0


def _write_runs(row: DecodedRow, longest: int | None) -> None:
    """Print a document part by part, each with at most `longest` bytes of text."""
    _output.write_lines([f"{row.number:>6}  {counted(len(row.ids), 'token'):>12}"])
    for run in row.runs:
        text = terminal.shown_text(run.text, len(run.text) + 1 if longest is None else longest)
        label = "label" if run.is_marked else "-"
        _output.write_lines([f"{'':6}  {counted(run.tokens, 'token'):>12}  {label:5}  {text}"])
