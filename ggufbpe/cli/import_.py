"""`ggufbpe import`: other programs' tokenizer files as a vocabulary that llama.cpp loads, and how far ids agree."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from ..analysis.conversion.import_vocabulary import ImportedVocabulary, import_vocabulary
from ..convert.importers.import_files import file_in, files_read
from . import _output
from ._arguments import Parser
from ._convert import add_check, agreement_lines, converted_answer, lines_of, tell
from ._files import check_json, is_standard_output, require_free, write_outputs


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "path",
        metavar="PATH",
        help="a tokenizer.json, .model, vocab.txt or merges.txt, or a directory with one",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        default="vocab.gguf",
        help="the file to write (default: vocab.gguf), or -",
    )
    parser.add_switch("--force", help="write over an existing file")
    parser.add_argument("--pre", metavar="NAME", help="the name of the pre-tokenizer, instead of finding it")
    parser.add_argument(
        "--architecture",
        metavar="NAME",
        help="the model's architecture (default: that of the model that was exported, or llama, t5 or bert)",
    )
    parser.add_argument("--name", metavar="TEXT", help="the model's name (default: as above, or none)")
    add_check(parser)


def run(arguments: argparse.Namespace) -> int:
    check_json(arguments)
    source = file_in(arguments.path)
    target = arguments.output
    if target != "-":
        require_free(target, arguments.force, *files_read(source))
    sample = [line for path in arguments.sample for line in lines_of(path)]
    found = import_vocabulary(
        source,
        pre=arguments.pre,
        architecture=arguments.architecture,
        name=arguments.name,
        check=not arguments.no_check,
        sample=sample,
    )
    write_outputs({target: found.gguf})
    if arguments.json:
        _output.write_json(_answer(found, source, target))
        return int(not found.is_explained)
    for line in _lines(found, target):
        tell(line, on_stderr=is_standard_output(target))
    return int(not found.is_explained)


def _answer(found: ImportedVocabulary, source: str, target: str) -> dict[str, Any]:
    """What --json prints."""
    return converted_answer(
        found.agreement or found.not_checked or None,
        found.limits,
        {target: found.gguf},
        model=None,
        path=target,
        source=source,
        tokenizer_model=found.metadata["tokenizer.ggml.model"],
        pre=found.pre,
        recognized=found.recognized,
        tokens=len(found.metadata["tokenizer.ggml.tokens"]),
        merges=len(found.metadata.get("tokenizer.ggml.merges", ())),
    )


def _lines(found: ImportedVocabulary, target: str) -> Iterator[str]:
    """The report, for people."""
    if target != "-":
        yield f"wrote {target} ({len(found.gguf)} bytes)"
    tokens = found.metadata["tokenizer.ggml.tokens"]
    merges = found.metadata.get("tokenizer.ggml.merges")
    if merges is None:
        yield f"{len(tokens)} tokens, model {found.metadata['tokenizer.ggml.model']}"
    else:
        yield f"{len(tokens)} tokens, {len(merges)} merges"
        yield f"pre-tokenizer: {found.pre} ({found.recognized})"
    for limit in found.limits:
        yield f"limit: {limit.what}"
    yield from agreement_lines(found.agreement or found.not_checked or None)
