"""`ggufbpe verify`: our ids against those of llama.cpp or another tokenizer."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext

from ..corpus import CorpusError, File, decompressed, files_of, has_json_lines, records
from ..escapes import process_escapes
from ..gguf.metadata import Overrides
from ..oracles.oracle import Oracle
from ..oracles.oracles import USAGES, open_oracle
from ..tokenizer import Tokenizer
from ..verification.result import Progress, Result, Text
from ..verification.verify import verify
from ..views import terminal
from ..views.report import to_html, to_json
from ..views.report_lines import ReportLines
from ..vocab import load
from . import _output
from ._arguments import (
    Parser,
    UsageError,
    add_model,
    add_special_flags,
    add_stdin,
    model_path,
    overrides_of,
    require_no_models,
)
from ._files import (
    add_no_ignore,
    cut_into_texts,
    ignored_of,
    problem_with,
    require_folder,
    require_free,
    say_what_was_left_out,
    write_outputs,
)
from ._input import settle_stdin, stdin
from ._progress import Bar

_DESCRIPTION = """\
Compare the ids of texts with those that another tokenizer gives, and show what differs, where, and why.

Each file is one text; what is longer than 64 KiB is cut after a line, so that files may be of any size. Of \
directories, files are taken that `ggufbpe count` would count, and compressed files and JSON lines are read as there. \
Texts are taken as they are; backslash escapes are read only with --escape.

Recorded ids of a model that adds EOS and no BOS may be with EOS, as the function llama_tokenize gives them, or \
without, as the command llama-tokenize prints them; it is said of which kind they were taken to be.

The exit code is 0 if all ids are the same, 1 if some differ or the other tokenizer failed on a text (it crashed, \
hung or gave garbage), 2 if nothing could be compared or something could not be read."""
_EXAMPLES = """\
examples:
  ggufbpe verify -m model.gguf --against llama-tokenize README.md src
  ggufbpe verify -m model.gguf --against llama-tokenize:./llama.cpp/build/bin -p "Hello world"
  ggufbpe verify -m model.gguf --against llama-cpp-python --fuzz 10000 --seed 1
  ggufbpe verify -m model.gguf --against server:http://127.0.0.1:8080 --stdin < corpus.txt
  ggufbpe verify -m model.gguf --against hf:tokenizer.json --html report.html docs
  ggufbpe verify -m model.gguf --against ids:recorded.json -p "Hello world"

against:
  llama-tokenize[:PATH]    the command of llama.cpp, on PATH or where PATH says
  llama-cpp-python         the package, with the model of -m
  xllamacpp                the package, which has the llama.cpp that ggufbpe follows
  server:URL               a running llama-server
  hf:FILE                  a tokenizer.json, read by the package tokenizers
  tiktoken:FILE or NAME    a .tiktoken file, or an encoding that tiktoken knows
  sentencepiece:FILE       a tokenizer.model, read by the package sentencepiece
  ids:FILE                 ids that you have, as JSON or numbers, one list a text
  gguf:FILE                ggufbpe itself, with another model"""

EXIT_SAME, EXIT_DIFFERENT, EXIT_ERROR = 0, 1, 2
_LIMIT = 1 << 16  # bytes of a text that is cut from a file


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    add_model(parser)
    parser.add_argument("--against", metavar="ORACLE", help=f"what to compare with: {', '.join(USAGES)}")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and directories")
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="compare a text")
    add_stdin(parser, "compare")
    parser.add_argument(
        "--field", metavar="NAME", help='every file is JSON lines; their text is this field (default: "text")'
    )
    add_no_ignore(parser)
    parser.add_argument("--fuzz", metavar="N", type=int, help="compare N random texts")
    parser.add_argument("--seed", metavar="S", default="1", help="what random texts follow from (default: 1)")
    parser.add_argument("-e", "--escape", action="store_true", help="process escape sequences in texts")
    add_special_flags(parser)
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=30.0,
        help="how long the other tokenizer may take for a text (default: 30)",
    )
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--html", metavar="PATH", help="also write a report that a browser shows")
    parser.add_argument("--force", action="store_true", help="write the report over an existing file")
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colour (default: auto)"
    )


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    model = model_path(arguments)
    overrides = overrides_of(arguments)
    tokenizer = Tokenizer.from_gguf(model, overrides=overrides)
    with (
        _overridden(model, overrides) if overrides else nullcontext(model) as opened,
        open_oracle(arguments.against, opened, tokenizer, arguments.timeout) as oracle,
    ):
        texts = _Texts(arguments, tokenizer, oracle)
        bar = Bar()
        try:
            result = verify(
                tokenizer,
                oracle,
                texts,
                add_special=not arguments.no_bos,
                parse_special=arguments.parse_special,
                progress=_shown_on(bar, texts.total_bytes, arguments.fuzz),
            )
        finally:
            bar.clear()
        texts.say_what_was_skipped()
        _report(arguments, result, oracle, model)
    if texts.errors or not (result.compared or result.failed):
        return EXIT_ERROR
    return EXIT_SAME if result.same else EXIT_DIFFERENT


@contextmanager
def _overridden(model: str, overrides: Overrides) -> Iterator[str]:
    """The path of a GGUF of the vocabulary alone with the overrides in it, for other programs to open."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, os.path.basename(model))
        with open(path, "wb") as file:
            file.write(load(model, overrides)[1].to_bytes())
        yield path


def _check(arguments: argparse.Namespace) -> None:
    if arguments.against is None:
        raise UsageError(f"what to compare with? Give --against with one of {', '.join(USAGES)}")
    settle_stdin(arguments, "paths", "prompt", "fuzz")
    require_no_models(arguments.paths, "verify", arguments)
    sources = (arguments.prompt, arguments.fuzz, arguments.paths or None, arguments.stdin or None)
    if all(source is None for source in sources):
        raise UsageError("no texts: give files or directories, -p TEXT, --stdin or --fuzz N")
    if arguments.fuzz is not None and arguments.against.startswith("ids:"):
        raise UsageError("recorded ids are of texts that you have, and --fuzz makes new ones")
    if arguments.html is not None:
        require_free(arguments.html, arguments.model, arguments.force)
        require_folder(arguments.html)
    if not arguments.timeout > 0:
        raise UsageError(f"--timeout must be more than 0, not {arguments.timeout:g}")


def _report(arguments: argparse.Namespace, result: Result, oracle: Oracle, model: str) -> None:
    if arguments.json:
        _output.write(terminal.json_bytes(to_json(result, model, oracle.note)))
    else:
        printer = ReportLines(_output.use_color(arguments.color), _output.terminal_width() or 100)
        for line in printer.lines(result, oracle.note):
            _output.write(f"{line}\n".encode())
    if arguments.html is not None:
        _output.flush()
        write_outputs({arguments.html: to_html(result, model, oracle.note).encode()})
        _output.note(f"ggufbpe: the report is in {terminal.one_line(arguments.html)}")


# ---- texts ----------------------------------------------------------------------------------------------


class _Texts:
    """The texts to compare, one by one; files are opened when their turn comes."""

    def __init__(self, arguments: argparse.Namespace, tokenizer: Tokenizer, oracle: Oracle) -> None:
        self._arguments = arguments
        self._tokenizer = tokenizer
        self._skipped: Counter[str] = Counter()
        self.errors = 0
        self._limit = sys.maxsize - 1 if oracle.recorded else _LIMIT  # recorded ids are of whole texts
        self._files = list(files_of(arguments.paths, self._skipped, self._report, ignored_of(arguments)))
        prompt = len(os.fsencode(arguments.prompt or ""))
        unknown = arguments.stdin or arguments.fuzz is not None
        self.total_bytes = None if unknown else sum(file.size for file in self._files) + prompt

    def __iter__(self) -> Iterator[Text]:
        arguments = self._arguments
        if arguments.prompt is not None:
            yield Text("-p", 0, self._read(os.fsencode(arguments.prompt)))
        for file in self._files:
            yield from self._of_file(file)
        if arguments.stdin:
            yield from self._of_stream("standard input", stdin())
        if arguments.fuzz is not None:
            from ..verification.fuzz import texts_for

            source = texts_for(self._tokenizer, arguments.seed)
            for number in range(arguments.fuzz):
                yield Text(f"random text {number} of seed {arguments.seed}", 0, source.text())

    def _of_file(self, file: File) -> Iterator[Text]:
        try:
            with open(file.path, "rb") as raw, decompressed(raw, file.path) as stream:
                field = self._arguments.field
                if field is None and not has_json_lines(file.path):
                    yield from self._of_stream(file.path, stream)
                    return
                for number, (text, _) in enumerate(records(stream, file.path, field, self._report)):
                    yield Text(f"{file.path}, text {number}", 0, self._read(text))
        except (OSError, MemoryError, CorpusError) as error:
            self._report(file.path, error)

    def _of_stream(self, name: str, stream: object) -> Iterator[Text]:
        offset = 0
        limit = self._limit
        parts: Iterable[bytes]
        parts = [stream.read()] if limit != _LIMIT else cut_into_texts(stream, limit)  # type: ignore[attr-defined, arg-type]
        for data in parts:
            yield Text(name, offset, self._read(data))
            offset += len(data)

    def _read(self, data: bytes) -> bytes:
        return process_escapes(data) if self._arguments.escape else data

    def _report(self, path: str, error: Exception) -> None:
        self.errors += 1
        _output.error(f"{path}: {problem_with(error).removeprefix(f'{path}: ')}")

    def say_what_was_skipped(self) -> None:
        say_what_was_left_out(self._skipped, "give a path to compare it")


def _shown_on(bar: Bar, total_bytes: int | None, total_texts: int | None) -> Progress:
    """What draws the bar: by bytes, or by texts where only their number is known."""

    def show(what: str, texts: int, size: int) -> None:
        if bar.is_due():
            total, done = (total_bytes, size) if total_bytes else (total_texts, texts)
            bar.draw(done / total if total else None, f"{what}: {texts} texts, {size / 1e6:.1f} MB")

    return show
