"""`ggufbpe export`: a model's vocabulary in the files of other libraries, and how far their ids agree."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ..analysis.views import terminal
from ..errors import printable
from ..hub.model_location import ModelLocation, locate
from . import _output
from ._arguments import Parser, UsageError, add_model_first, add_override_kv, model_path, overrides_of
from ._files import require_free, write_outputs
from ._input import read_file
from ._progress import waiting, waiting_for

if TYPE_CHECKING:
    from ..convert.export_formats import Export
    from ..convert.incompatibilities import Incompatibility
    from ..convert.parity import Agreement, CheckedLibrary
    from ..tokenizer import Tokenizer

FORMATS = ("tokenizer.json", "sentencepiece", "vocab.txt", "tiktoken", "merges.txt", "vocab-gguf")
_DESCRIPTION = """\
Write the vocabulary of a model in a format that other programs read.

  tokenizer.json  for Hugging Face's tokenizers, and tokenizer_config.json beside it: all except RWKV
  sentencepiece   tokenizer.model, and tokenizer_config.json beside it: SPM (llama) and UGM (t5)
  vocab.txt       a word piece a line, and tokenizer_config.json beside it: WPM (bert)
  tiktoken        for OpenAI's tiktoken, a file of ranks, and beside it a .json with pattern and special tokens: BPE
  merges.txt      merges.txt, and vocab.json beside it: BPE
  vocab-gguf      a GGUF of only the tokenizer's metadata, which llama.cpp loads with vocab_only: all models

Text is normalized and split as in llama.cpp, where the format can express that. The patterns of a tokenizer.json are \
those of the models' own files if these split alike, which tokenizers 1.0 reads as well; all others list code \
points, so that they depend on no library's Unicode version. Where a format cannot do what llama.cpp does, the \
output lists the tokens or characters concerned. If the library is installed, its ids are compared with \
ours on random texts, on characters of every kind, and on the lines of --sample.

The exit code is 0 if the files are written, 1 if ids then differ without a limit that explains it, 2 if nothing was \
written."""
_EXAMPLES = """\
examples:
  ggufbpe export model.gguf --to tokenizer.json
  ggufbpe export model.gguf --to tokenizer.json -o converted --sample corpus.txt
  ggufbpe export llama-2.gguf --to sentencepiece -o tokenizer.model
  ggufbpe export bge.gguf --to vocab.txt -o bge/
  ggufbpe export model.gguf --to tiktoken -o model.tiktoken
  ggufbpe export model.gguf --to vocab-gguf -o - | sha256sum"""

TOKENIZER_CONFIG = "tokenizer_config.json"
_SHOWN_CHARACTERS = 12


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    add_model_first(parser)
    add_override_kv(parser)
    parser.add_argument("--to", metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="the file to write, by its suffix, or a directory for all files; - for standard output",
    )
    parser.add_argument("--force", action="store_true", help="write over existing files")
    parser.add_argument(
        "--renumber",
        action="store_true",
        help="tiktoken: assign new ids if ids are not in the order of merges",
    )
    parser.add_argument(
        "--code-points",
        action="store_true",
        help="tokenizer.json: patterns list code points, for the same ids with any Unicode version; not for "
        "tokenizers 1.0",
    )
    add_check(parser)


def add_check(parser: Parser) -> None:
    """The flags of the comparison with the library whose format it is."""
    parser.add_argument("--no-check", action="store_true", help="do not compare ids with the library's")
    parser.add_argument(
        "--sample", action="append", default=[], metavar="PATH", help="compare on the lines of a file, too"
    )


def run(arguments: argparse.Namespace) -> int:
    kind = _kind(arguments)
    if kind == "vocab-gguf" and arguments.override_kv:
        raise UsageError("vocab-gguf keeps the file's keys unchanged: `ggufbpe fix --set` changes them")
    model = model_path(arguments)
    paths = _paths(arguments, kind, model)
    sample = [line for path in arguments.sample for line in lines_of(path)]
    tokenizer, export = _exported(kind, model, arguments)
    files = {path: export.files[name] for name, path in paths.items()}
    write_outputs(files)
    for name in export.files.keys() - paths.keys():
        _output.note(
            f"lost, since {name} is not written: {_content(name, export)}; -o DIRECTORY writes all files"
        )
    told = [f"wrote {path} ({len(data)} bytes)" for path, data in files.items() if path != "-"]
    told += [f"limit: {limit.what}" for limit in export.limits]
    with waiting("comparing with the library"):
        found = None if arguments.no_check else _checked(kind, tokenizer, export, sample, told)
    for line in told:
        tell(line, on_stderr="-" in files)
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


def unexplained(found: Agreement | None, limits: Iterable[Incompatibility]) -> bool:
    """Whether ids differ although no known limit explains it."""
    if found is None or found.same:
        return False
    causes = {limit.name for limit in limits} - {"default_ids", "not_read_by_tokenizers_1"}
    if causes <= _CHARACTERS.keys():
        examples = [example.text for example in found.examples]
        return not (
            causes and all(any(_CHARACTERS[c](char) for c in causes for char in text) for text in examples)
        )
    return False


def _class_of(char: str) -> str:
    from .._util.unicode_classes import class_of

    return class_of(ord(char)) if char > "\x7f" else ""


# Limits about characters, and whether they concern a given one.
_CHARACTERS: dict[str, Callable[[str], bool]] = {
    "newer_unicode": lambda char: _class_of(char) == "-",
    "long_s": lambda char: char == "\u017f",
    "older_punctuation": lambda char: _class_of(char) == "P" or char in "\u166d\U000111c9",
    "escaped_spaces": lambda char: char == "\u2581",
    "border_character": lambda char: char == "\ufdef",
}


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


def _exported(
    kind: str, model: str | ModelLocation, arguments: argparse.Namespace
) -> tuple[Tokenizer, Export]:
    from ..tokenizer import Tokenizer

    tokenizer = Tokenizer.from_gguf(model, overrides=overrides_of(arguments))
    vocabulary = tokenizer.vocabulary
    if kind == "vocab-gguf":
        from ..convert.exporters.vocab_gguf import to_vocab_gguf

        return tokenizer, to_vocab_gguf(model)
    from ..convert.export_formats import FORMATS, export_to

    if kind == "tiktoken":
        given: list[str | None] = [_stem(model)]
        options = {"renumber": arguments.renumber}
    else:
        given = [_chat_template(model)] if TOKENIZER_CONFIG in FORMATS[kind].files else []
        options = {"code_points": arguments.code_points} if kind == "tokenizer.json" else {}
    with waiting_for("exporting", model):
        return tokenizer, export_to(kind, vocabulary, *given, **options)


def _chat_template(model: str | ModelLocation) -> str | None:
    from ..gguf.constants import TokenizerKey
    from ..gguf.reader import GGUFFile

    with GGUFFile(locate(model).opened()) as file:
        found = file[TokenizerKey.CHAT_TEMPLATE] if TokenizerKey.CHAT_TEMPLATE in file else None  # noqa: SIM401
    return found if isinstance(found, str) else None


# ---- where the files go ---------------------------------------------------------------------------------


def _stem(model: str | ModelLocation) -> str:
    """What a file that is made of the model is called, without suffix."""
    if isinstance(model, str):
        return os.path.basename(model).removesuffix(".gguf")
    name = model.name if model.store or model.remote else model.path
    return re.sub(r"[^\w.-]+", "-", os.path.basename(name.partition(":")[2] or name)).removesuffix(".gguf")


def _paths(arguments: argparse.Namespace, kind: str, model: str | ModelLocation) -> dict[str, str]:
    """The path of each file to write, by its name in the export."""
    given = arguments.output
    stem = _stem(model)
    from ..convert.export_formats import FORMATS

    main, *others = FORMATS[kind].files
    default = {"tiktoken": f"{stem}.tiktoken", "vocab-gguf": f"{stem}-vocab.gguf"}.get(kind, main)
    if given == "-":
        return {main: "-"}
    path = os.path.join(given, default) if given and _is_folder(given, kind, main) else given or default
    folder = os.path.dirname(path)
    paths = {main: path}
    for name in others:
        if kind == "tiktoken":
            paths[name] = f"{path}.json"
        elif name != TOKENIZER_CONFIG or os.path.basename(path) == main:  # it is only looked for beside that
            paths[name] = os.path.join(folder, name)
    for target in paths.values():
        require_free(target, os.fspath(model), arguments.force)
    return paths


def _is_folder(given: str, kind: str, main: str) -> bool:
    """Whether `given` is a folder: it is one, ends like one, or several files have no name of their own in it."""
    if os.path.isdir(given) or given.endswith(("/", os.sep)):
        return True
    return kind != "vocab-gguf" and not given.endswith(os.path.splitext(main)[1])


# ---- the report -----------------------------------------------------------------------------------------


def _checked(
    kind: str, tokenizer: Tokenizer, export: Export, sample: list[str], told: list[str]
) -> Agreement | None:
    """The comparison with the library, reported; None if there is no library to compare with."""
    from .._util.extras import NotInstalledError
    from ..convert.parity import agreement, library_for

    try:
        library: CheckedLibrary | None = library_for(kind, export)
    except NotInstalledError as error:
        told.append(f"not checked: {error}")
        return None
    if library is None:
        return None
    found = agreement(tokenizer, library, sample)
    told += agreement_lines(found)
    return found


def agreement_lines(found: Agreement) -> Iterator[str]:
    """The result of a comparison, for people."""
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
