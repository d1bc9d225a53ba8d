"""`ggufbpe check`: whether shards agree with their manifest and their tokenizer."""

from __future__ import annotations

import argparse

from .._util.wording import counted
from ..analysis.views import answers, terminal
from . import _output
from ._arguments import Parser, UsageError, overrides_of
from ._given_models import models_of


def add_arguments(parser: Parser) -> None:
    parser.add_argument("output", metavar="OUT", help="the folder of the shards")
    parser.add_argument(
        "-m", "--model", metavar="MODEL", help="the model that they were encoded with, a .gguf file or a name"
    )
    parser.add_names("append")
    parser.add_override_kv()
    parser.add_number(
        "--sample", default=100, help="documents to encode again, from each of up to 8 shards (default: 100)"
    )
    parser.add_switch("--json", help="print one object: verdict, findings, sampled …")


def run(arguments: argparse.Namespace) -> int:
    if arguments.sample < 1:
        raise UsageError(
            f"--sample must be 1 or more, not {arguments.sample}; to encode no documents again, leave out -m"
        )
    from ..data.corpora.shard_check import check_corpus
    from ..tokenizer import Tokenizer

    models = models_of(arguments, [] if arguments.model is None else [arguments.model])
    if len(models) > 1:
        raise UsageError(f"one model, not {len(models)} (see ggufbpe check --help)")
    overrides = overrides_of(arguments)
    model = Tokenizer.from_gguf(models[0], overrides=overrides) if models else None
    found = check_corpus(arguments.output, model, sample=arguments.sample)
    if arguments.json:
        _output.write_json(answers.shards(found, arguments.output, None if model is None else model.name))
    else:
        _output.write_lines(map(terminal.one_line, found.problems))
        sampled = f", {counted(found.sampled, 'document')} encoded again" if model is not None else ""
        if found.is_right and found.is_compared:
            _output.write(f"OK: {counted(found.shards, 'shard')}{sampled}\n".encode())
        elif found.is_right:
            are = counted(found.shards, "shard is", "shards are")
            _output.write(f"{are} as written, but no ids were compared with the tokenizer's\n".encode())
    if found.not_sampled:
        more = "more " if found.is_compared else ""
        _output.note(
            f"ggufbpe: no {more}documents were encoded again: {terminal.one_line(found.not_sampled)}"
        )
    return 0 if found.is_right and found.is_compared else 1
