"""`ggufbpe truncate`: the longest part of a text that has at most so many tokens."""

from __future__ import annotations

import argparse
import os

from .._util.utf8 import text_fields
from ..analysis.views.answers import answer
from . import _output
from ._arguments import Parser, UsageError
from ._given_models import opened_tokenizer
from ._input import read_text, settle_stdin


def add_arguments(parser: Parser) -> None:
    parser.add_model()
    parser.add_text()
    parser.add_number("-n", "--limit", required=True, help="at most N tokens")
    parser.add_switch("--add-special", help="count the BOS and EOS that the model adds, as for embeddings")
    parser.add_argument(
        "--side",
        choices=("right", "left", "middle"),
        default="right",
        help="where text is taken away: at its end, its beginning, or in its middle (default: right)",
    )
    parser.add_argument(
        "--marker", metavar="TEXT", default="", help="what takes the place of the text taken away"
    )
    parser.add_argument(
        "--at",
        choices=("character", "word"),
        default="character",
        help="cut between any two characters, or not within words (default: character)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print an object of the text and its number of tokens"
    )


def run(arguments: argparse.Namespace) -> int:
    settle_stdin(arguments, "prompt", "file")
    data = read_text(arguments, "truncate")
    tokenizer = opened_tokenizer(arguments)
    marker = os.fsencode(arguments.marker).decode("utf-8", "replace")
    try:
        cut = tokenizer.truncate(
            data,
            arguments.limit,
            side=arguments.side,
            marker=marker,
            at=arguments.at,
            add_special=arguments.add_special,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    if arguments.json:
        found = {
            **text_fields("text", cut),
            "tokens": tokenizer.count(cut, add_special=arguments.add_special),
            "truncated": cut != data,
        }
        _output.write_json(answer(found, model=tokenizer.name))
    else:
        _output.write(cut)
    return 0
