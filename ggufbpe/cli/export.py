"""`ggufbpe export`: a model's vocabulary in the files of other libraries, and how far their ids agree."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..errors import printable
from ..views import terminal
from . import _output
from ._arguments import Parser, UsageError, add_model_first, add_override_kv, model_path, overrides_of
from ._files import require_free, write_outputs
from ._input import read_file

if TYPE_CHECKING:
    from ..interop.check import Agreement, CheckedLibrary
    from ..interop.hugging_face import Export
    from ..interop.limits import Limit
    from ..tokenizer import Tokenizer

FORMATS = ("tokenizer.json", "tiktoken", "vocab-gguf", "merges.txt")
_DESCRIPTION = """\
Write the vocabulary of a model in a format that other programs read.

  tokenizer.json  for Hugging Face's tokenizers, and tokenizer_config.json beside it
  tiktoken        for OpenAI's tiktoken: a file of ranks, and beside it a .json with pattern and special tokens
  vocab-gguf      a GGUF of the tokenizer's metadata alone, which llama.cpp loads with vocab_only
  merges.txt      merges.txt, and vocab.json beside it

Words are split as llama.cpp splits them. A tokenizer.json has the patterns of the models' own files where those do \
it, which tokenizers 1.0 reads as well; all other patterns list code points, so that they depend on no library's \
Unicode version. Where a format cannot do what llama.cpp does, it is said which tokens or characters that concerns. \
Where the library is installed, its ids are compared with ours on random texts, on characters of every kind, and on \
the lines of --sample.

The exit code is 0 if the files are written, 1 if ids differ then without a limit that was told, 2 if nothing was \
written."""
_EXAMPLES = """\
examples:
  ggufbpe export model.gguf --to tokenizer.json
  ggufbpe export model.gguf --to tokenizer.json -o converted --sample corpus.txt
  ggufbpe export model.gguf --to tiktoken -o model.tiktoken
  ggufbpe export model.gguf --to vocab-gguf -o - | sha256sum"""

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
        help="tiktoken: give new ids where ids are not in the order of merges",
    )
    parser.add_argument(
        "--code-points",
        action="store_true",
        help="tokenizer.json: patterns list code points, for the same ids with any Unicode version; not for "
        "tokenizers 1.0",
    )
    parser.add_argument("--no-check", action="store_true", help="do not compare ids with the library's")
    parser.add_argument(
        "--sample", action="append", default=[], metavar="PATH", help="compare on the lines of a file, too"
    )


def run(arguments: argparse.Namespace) -> int:
    kind = _kind(arguments)
    if kind == "vocab-gguf" and arguments.override_kv:
        raise UsageError(
            "vocab-gguf has the keys as they stand in the file: `ggufbpe fix --set` changes them"
        )
    model = model_path(arguments)
    paths = _paths(arguments, kind, model)
    sample = [line for path in arguments.sample for line in lines_of(path)]
    tokenizer, export = _exported(kind, model, arguments)
    files = {path: export.files[name] for name, path in paths.items()}
    write_outputs(files)
    for name in export.files.keys() - paths.keys():
        _output.note(
            f"lost, for {name} is not written: {_content(name, export)}; -o DIRECTORY writes all files"
        )
    told = [f"wrote {path} ({len(data)} bytes)" for path, data in files.items() if path != "-"]
    told += [f"limit: {limit.what}" for limit in export.limits]
    found = None if arguments.no_check else _checked(kind, tokenizer, export, sample, told)
    for line in told:
        tell(line, on_stderr="-" in files)
    return int(unexplained(found, export.limits))


def _content(name: str, export: Export) -> str:
    """What one of the further files has in it, in words."""
    if name == "tokenizer_config.json":
        config = json.loads(export.files[name])
        named = [f"{key} {printable(config[key], 40)}" for key in ("bos_token", "eos_token") if key in config]
        template = ["the chat template"] * ("chat_template" in config)
        return ", ".join([*named, *template, "other special ids", "the pre-tokenizer's name"])
    return {
        "ranks.tiktoken.json": "the pattern and the special tokens",
        "vocab.json": "the ids of the tokens",
    }[name]


def unexplained(found: Agreement | None, limits: Iterable[Limit]) -> bool:
    """Whether ids differ although nothing is known that makes them."""
    if found is None or found.same:
        return False
    causes = {limit.name for limit in limits} - {"default_ids", "not_read_by_tokenizers_1"}
    if causes <= {"newer_unicode", "long_s"}:
        return not (causes and all(map(_has_newer_character, (example.text for example in found.examples))))
    return False


def _has_newer_character(text: str) -> bool:
    """Whether a text has a character that llama.cpp's Unicode version may not know, or the long s."""
    from ..unicode_classes import class_of

    return any(char == "\u017f" or (char > "\x7f" and class_of(ord(char)) == "-") for char in text)


def _kind(arguments: argparse.Namespace) -> str:
    kind = arguments.to
    if kind is None:
        raise UsageError(f"which format? --to {', '.join(FORMATS)}")
    if kind not in FORMATS:
        raise UsageError(f"there is no format {printable(kind)}; there are {', '.join(FORMATS)}")
    if arguments.renumber and kind != "tiktoken":
        raise UsageError("--renumber goes with --to tiktoken")
    if arguments.code_points and kind != "tokenizer.json":
        raise UsageError("--code-points goes with --to tokenizer.json")
    return str(kind)


def _exported(kind: str, model: str, arguments: argparse.Namespace) -> tuple[Tokenizer, Export]:
    from ..tokenizer import Tokenizer

    tokenizer = Tokenizer.from_gguf(model, overrides=overrides_of(arguments))
    if kind != "vocab-gguf":
        from ..models.bpe.text import byte_pair_text

        byte_pair_text(tokenizer)  # or it is an error
    if kind == "tokenizer.json":
        from ..interop.hugging_face import to_tokenizer_json

        return tokenizer, to_tokenizer_json(
            tokenizer.vocabulary, _chat_template(model), code_points=arguments.code_points
        )
    if kind == "tiktoken":
        from ..interop.tiktoken_files import to_tiktoken

        name = os.path.basename(model).removesuffix(".gguf")
        return tokenizer, to_tiktoken(tokenizer.vocabulary, name, renumber=arguments.renumber)
    if kind == "merges.txt":
        from ..interop.merges_txt import to_merges_txt

        return tokenizer, to_merges_txt(tokenizer.vocabulary)
    from ..interop.vocab_gguf import to_vocab_gguf

    return tokenizer, to_vocab_gguf(model)


def _chat_template(model: str) -> str | None:
    from ..gguf.constants import TokenizerKey
    from ..gguf.reader import GGUFFile

    with GGUFFile(model) as file:
        found = file[TokenizerKey.CHAT_TEMPLATE] if TokenizerKey.CHAT_TEMPLATE in file else None  # noqa: SIM401
    return found if isinstance(found, str) else None


# ---- where the files go ---------------------------------------------------------------------------------


def _paths(arguments: argparse.Namespace, kind: str, model: str) -> dict[str, str]:
    """The path of each file to write, by its name in the export."""
    given = arguments.output
    stem = os.path.basename(model).removesuffix(".gguf")
    names = {
        "tokenizer.json": ("tokenizer.json", "tokenizer.json"),
        "tiktoken": ("ranks.tiktoken", f"{stem}.tiktoken"),
        "vocab-gguf": ("vocab.gguf", f"{stem}-vocab.gguf"),
        "merges.txt": ("merges.txt", "merges.txt"),
    }
    main, default = names[kind]
    if given == "-":
        return {main: "-"}
    path = os.path.join(given, default) if given and _is_folder(given, kind, main) else given or default
    folder = os.path.dirname(path)
    paths = {main: path}
    if kind == "tiktoken":
        paths["ranks.tiktoken.json"] = f"{path}.json"
    elif kind == "merges.txt":
        paths["vocab.json"] = os.path.join(folder, "vocab.json")
    elif kind == "tokenizer.json" and os.path.basename(path) == "tokenizer.json":
        # only beside a file of this name is it looked for
        paths["tokenizer_config.json"] = os.path.join(folder, "tokenizer_config.json")
    for target in paths.values():
        require_free(target, model, arguments.force)
    return paths


def _is_folder(given: str, kind: str, main: str) -> bool:
    """Whether files go into `given`: it is one, is written as one, or several files have no name of theirs in it."""
    if os.path.isdir(given) or given.endswith(("/", os.sep)):
        return True
    return kind != "vocab-gguf" and not given.endswith(os.path.splitext(main)[1])


# ---- what is told ---------------------------------------------------------------------------------------


def _checked(
    kind: str, tokenizer: Tokenizer, export: Export, sample: list[str], told: list[str]
) -> Agreement | None:
    """The comparison with the library, told; None where there is none to compare with."""
    from ..extras import NotInstalledError
    from ..interop.check import agreement, library_for

    if kind not in ("tokenizer.json", "tiktoken"):
        return None
    try:
        library: CheckedLibrary = library_for(kind, export)
    except NotInstalledError as error:
        told.append(f"not checked: {error}")
        return None
    found = agreement(tokenizer, library, sample)
    told += agreement_lines(found)
    return found


def agreement_lines(found: Agreement) -> Iterator[str]:
    """What a comparison found, for people."""
    tried = f"{found.library}: {found.texts} texts and {found.characters} characters"
    if found.same:
        yield f"{tried}, all ids the same"
        return
    share = 100 * found.differing / found.texts if found.texts else 0
    yield (
        f"{tried}; ids differ in {found.differing} texts ({share:.2g} %), in at most {found.differing_tokens} of "
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
    """A line to standard output, or to standard error where the output is a file's content."""
    if on_stderr:
        _output.note(terminal.one_line(line))
    else:
        _output.write(f"{terminal.one_line(line)}\n".encode("utf-8", "backslashreplace"))
