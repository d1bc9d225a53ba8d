"""`ggufbpe export`: a model's vocabulary in the files of other libraries, and how far their ids agree."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING

from .._util.errors import printable
from .._util.files import is_special
from ..analysis.conversion.export_vocabulary import TOKENIZER_CONFIG, check_export, export_files, stem_of
from ..analysis.conversion.parity import unexplained
from ..convert.export_formats import FORMATS
from ..convert.importers.import_files import file_in, files_read
from ..tokenizer import Tokenizer
from . import _output
from ._arguments import Parser, UsageError, overrides_of
from ._convert import add_check, agreement_lines, converted_answer, lines_of, tell
from ._files import check_json, is_standard_output, require_free, write_outputs
from ._given_models import model_path
from ._progress import waiting, waiting_for

if TYPE_CHECKING:
    from ..convert.export_formats import Export
    from ..hub.model_location import ModelLocation


def add_arguments(parser: Parser) -> None:
    parser.add_model_first(has_default=True)
    parser.add_override_kv()
    parser.add_argument("--to", metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="the file to write, by its suffix, or a directory for all files; - for standard output",
    )
    parser.add_switch("--force", help="write over existing files")
    parser.add_switch("--renumber", help="tiktoken: assign new ids if ids are not in the order of merges")
    parser.add_switch(
        "--code-points",
        help="tokenizer.json: patterns list code points, for the same ids with any Unicode version; not for "
        "tokenizers 1.0",
    )
    add_check(parser)


def run(arguments: argparse.Namespace) -> int:
    kind = _kind(arguments)
    check_json(arguments)
    if kind == "vocab-gguf" and arguments.override_kv:
        raise UsageError("vocab-gguf keeps the file's keys unchanged: `ggufbpe fix --set` changes them")
    model = model_path(arguments)
    paths = _paths(arguments, kind, model)
    sample = [line for path in arguments.sample for line in lines_of(path)]
    tokenizer = Tokenizer.from_gguf(model, overrides=overrides_of(arguments))
    with waiting_for("exporting", model):
        export = export_files(
            tokenizer, model, kind, renumber=arguments.renumber, code_points=arguments.code_points
        )
    files = {path: export.files[name] for name, path in paths.items()}
    write_outputs(files)
    for name in export.files.keys() - paths.keys():
        _output.note(
            f"lost, since {name} is not written: {_content(name, export)}; -o DIRECTORY writes all files"
        )
    told = [f"wrote {path} ({len(data)} bytes)" for path, data in files.items() if path != "-"]
    told += [f"limit: {limit.what}" for limit in export.limits]
    with waiting("comparing with the library"):
        found = None if arguments.no_check else check_export(kind, tokenizer, export, sample)
    if arguments.json:
        main = next(iter(files))
        shown = converted_answer(found, export.limits, files, model=tokenizer.name, path=main, format=kind)
        _output.write_json(shown)
        return int(unexplained(found, export.limits))
    for line in [*told, *agreement_lines(found)]:
        tell(line, on_stderr=any(map(is_standard_output, files)))
    return int(unexplained(found, export.limits))


def _content(name: str, export: Export) -> str:
    """The content of one of the further files, in words."""
    if name == TOKENIZER_CONFIG:
        config = json.loads(export.files[name])
        named = [
            f"{key} {printable(config[key], 40)}"
            for key in ("bos_token", "cls_token", "eos_token", "sep_token")
            if key in config
        ]
        template = ["the chat template"] * ("chat_template" in config)
        return ", ".join([*named, *template, "other special ids", "the pre-tokenizer's name"])
    return {
        "ranks.tiktoken.json": "the pattern and the special tokens",
        "vocab.json": "the ids of the tokens",
    }[name]


def _kind(arguments: argparse.Namespace) -> str:
    kind = arguments.to
    if kind is None:
        raise UsageError(f"which format? --to {', '.join(FORMATS)}")
    if kind not in FORMATS:
        raise UsageError(f"there is no format {printable(kind)}; there are {', '.join(FORMATS)}")
    if arguments.renumber and kind != "tiktoken":
        raise UsageError("--renumber is for --to tiktoken")
    if arguments.code_points and kind != "tokenizer.json":
        raise UsageError("--code-points is for --to tokenizer.json")
    return str(kind)


# ---- where the files go ---------------------------------------------------------------------------------


def _paths(arguments: argparse.Namespace, kind: str, model: str | ModelLocation) -> dict[str, str]:
    """The path of each file to write, by its name in the export."""
    given = arguments.output
    stem = stem_of(model)
    main, *others = FORMATS[kind].files
    default = {"tiktoken": f"{stem}.tiktoken", "vocab-gguf": f"{stem}-vocab.gguf"}.get(kind, main)
    if given == "-" or (given and is_special(given)):  # a device or a pipe
        return {main: given}
    if given and os.path.isfile(named := given.rstrip("/" + os.sep)) and _is_folder(given, kind, main):
        suffix = os.path.splitext(main)[1]
        raise UsageError(
            f"{printable(named)} is a file, and {printable(given)} is taken for a directory; the name of a file ends "
            f"in {suffix}"
        )
    path = os.path.join(given, default) if given and _is_folder(given, kind, main) else given or default
    folder = os.path.dirname(path)
    paths = {main: path}
    for name in others:
        if kind == "tiktoken":
            paths[name] = f"{path}.json"
        elif name != TOKENIZER_CONFIG or os.path.basename(path) == main:  # it is only looked for beside that
            paths[name] = os.path.join(folder, name)
    for target in paths.values():
        require_free(target, arguments.force, *_sources(model))
    return paths


def _sources(model: str | ModelLocation) -> list[str]:
    """The files that the model is read from."""
    path = os.fspath(model)
    if isinstance(model, str) or not model.is_imported:
        return [path]
    return files_read(file_in(path))


def _is_folder(given: str, kind: str, main: str) -> bool:
    """Whether `given` is a folder: it is one, ends like one, or several files have no name of their own in it."""
    if os.path.isdir(given) or given.endswith(("/", os.sep)):
        return True
    return kind != "vocab-gguf" and not given.endswith(os.path.splitext(main)[1])
