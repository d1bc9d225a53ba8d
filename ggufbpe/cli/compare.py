"""`ggufbpe compare`: how several models cut one text, side by side."""

from __future__ import annotations

import argparse

from .._util.escapes import process_escapes
from ..analysis.verify.side_by_side import compare
from ..analysis.views.compare_lines import compared_as_json, shown_lines
from ..analysis.views.compare_page import comparison_html
from . import _output
from ._arguments import Parser, UsageError, overrides_of
from ._classic import trained_path
from ._files import check_page, write_page
from ._given_models import models_of, tokenizer_at
from ._input import read_text, settle_stdin


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help="two or more .gguf files, models' names, a tokenizer.json, or a .json of `ggufbpe train`",
    )
    parser.add_repeated("-m", "--model", metavar="MODEL", help="one more of them")
    parser.add_names("append")
    parser.add_text()
    parser.add_override_kv()
    parser.add_switch("-e", "--escape", help="process escape sequences in the text")
    parser.add_parse_special()
    parser.add_switch("--ids", help="show each token's id, too")
    parser.add_switch("--all", help="show every place, even where all cut alike")
    parser.add_switch("--json", help="print one object")
    parser.add_argument("--html", metavar="FILE", help="write a self-contained page instead")
    parser.add_switch("--force", help="write the page over an existing file")
    parser.add_color()


def run(arguments: argparse.Namespace) -> int:
    settle_stdin(arguments, "prompt", "file")
    check_page(arguments)
    text = read_text(arguments, "compare")  # first, as a text without -p would be looked for as a model
    models = models_of(arguments, [*arguments.model, *arguments.models])
    if len(models) < 2:
        raise UsageError(f"two models or more, not {len(models)} (see ggufbpe compare --help)")
    text = process_escapes(text) if arguments.escape else text
    overrides = overrides_of(arguments)
    opened = [trained_path(path, arguments) or tokenizer_at(path, overrides) for path in models]
    compared = compare(opened, text, parse_special=arguments.parse_special)
    if arguments.json:
        for part in compared_as_json(compared):
            _output.write(part)
    elif arguments.html is not None:
        write_page(arguments.html, comparison_html(compared, arguments.all))
    else:
        lines = shown_lines(
            compared,
            ids=arguments.ids,
            everything=arguments.all,
            color=_output.use_color(arguments.color),
            width=_output.terminal_width(),
        )
        _output.write_lines(line.rstrip(" ") for line in lines)
    return int(not compared.is_same)
