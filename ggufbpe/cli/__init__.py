"""The command line: finds the command, runs it, and turns whatever goes wrong into one line and an exit code.

Exit codes: 0 done; 2 something is wrong with the arguments, a file or the output; 130 interrupted; 141 the
reader of the output went away (130 and 141 are what a shell reports for SIGINT and SIGPIPE).

Only the module of the chosen command is imported, to start fast.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, cast

try:
    from .._util.shell import shell_word
    from . import _output
    from ._arguments import Parser, UsageError, parse_arguments
except KeyboardInterrupt:  # as `main` answers it, which is not there yet
    raise SystemExit(130) from None

if TYPE_CHECKING:
    import argparse

GROUPS = {  # what for: command: what it does, in a line
    "look": {
        "tokenize": "the ids of a text, printed as llama-tokenize prints them",
        "detokenize": "the text of ids",
        "chat": "the prompt of a chat, or its ids, as llama-server makes them",
        "explain": "how a text becomes ids, step by step",
        "compare": "how several models tokenize one text, side by side",
        "info": "what a model file says about itself and its tokenizer",
        "models": "the models on this machine, whichever program downloaded them",
        "list-pre": "the pre-tokenizers and their patterns",
    },
    "mend": {
        "verify": "compare the ids with those of llama.cpp or another tokenizer",
        "diagnose": "find out why ids from elsewhere are not the model's",
        "doctor": "find what is wrong in a model's metadata",
        "diff": "what differs between the tokenizers of two models",
        "fix": "write a copy of a model with corrected metadata",
    },
    "count": {
        "count": "count the tokens of files and directories",
        "split": "the parts of a text that have at most so many tokens",
        "truncate": "the longest part of a text that has at most so many tokens",
        "stats": "how well tokenizers compress a corpus, side by side",
    },
    "convert": {
        "export": "write a vocabulary for tokenizers, tiktoken and others",
        "import": "make a vocabulary out of a tokenizer.json",
    },
    "train": {
        "train": "learn a vocabulary from a corpus",
        "encode": "write a corpus as shards of ids, for training",
        "decode": "the documents of such shards as text",
        "check": "check such shards against their manifest and tokenizer",
    },
    "serve": {
        "serve": "answer over HTTP, as llama-server, vLLM and Ollama do",
        "page": "the page of serve as a static site, without a server",
    },
    "shell": {
        "completion": "shell completion of commands, flags and model names",
    },
}
COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}

# Imports create no garbage. Looking for cycles every 700 objects, and again at the end, took a tenth of the
# instructions of a short command.
_COLLECT_AFTER = 50_000  # objects

EXIT_ERROR, EXIT_INTERRUPTED, EXIT_BROKEN_PIPE = 2, 130, 141

_DESCRIPTION = "Open any GGUF model's tokenizer without loading the model, and get exactly llama.cpp's ids."
_EXAMPLES = """\
examples:
  ggufbpe tokenize -m model.gguf -p "Hello world"
  ggufbpe tokenize -m model.gguf -f prompt.txt --ids
  ggufbpe count -m model.gguf src README.md
  ggufbpe info model.gguf

Without -m, the model is GGUFBPE_MODEL in the environment, or the GPT-2 vocabulary that comes with ggufbpe.
`ggufbpe help COMMAND` shows the flags of a command, `ggufbpe COMMAND --help-model` those that name its models."""


class _Command(Protocol):
    """What the module of a command has."""

    def add_arguments(self, parser: Parser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (`sys.argv[1:]` if None) and return the exit code.

    >>> main(["detokenize", "15496", "995"])
    Hello world0
    """
    if argv is not None:
        return _main(list(argv))
    if "_ARGCOMPLETE" in os.environ:  # a shell asks; answering it ends the process
        from .completion import complete

        complete(COMMANDS, lambda name, parser: _load(name).add_arguments(parser))
    gc.set_threshold(_COLLECT_AFTER)
    try:
        return _main(sys.argv[1:])
    finally:
        gc.freeze()


def _main(arguments: list[str]) -> int:
    _output.begin(quiet=False)
    try:
        return _exit_code(arguments)
    finally:
        _output.begin(quiet=False)


def _exit_code(arguments: list[str]) -> int:
    debug, wants_json = False, False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)  # GGUFWarning is one; not imported, to start fast
            warnings.showwarning = _shown_once()
            head, name, tail = _split(arguments)
            debug, wants_json = "--debug" in head, "--json" in tail
            parsed = _parse(head, name, tail)
            debug, wants_json = parsed.debug, getattr(parsed, "json", False)
            _output.begin(quiet=parsed.quiet)
            code: int = parsed.run(parsed)
            _output.flush()
            return code
    except SystemExit as done:  # --help
        return _flushed(done.code if isinstance(done.code, int) else EXIT_ERROR)
    except KeyboardInterrupt:
        return _flushed(EXIT_INTERRUPTED)
    except BrokenPipeError:
        _output.abandon()
        return EXIT_BROKEN_PIPE
    except Exception as error:
        if isinstance(error, _output.OutputError):
            _output.abandon()
        if debug:
            import traceback

            _output.say(traceback.format_exc().rstrip())
        else:
            _output.error(describe(error))
        if wants_json and not isinstance(error, _output.OutputError):
            _output.write_failure(error, describe(error))
        return _flushed(EXIT_ERROR)


def describe(error: Exception) -> str:
    """An error in one line.

    >>> describe(FileNotFoundError(2, "No such file or directory", "model.gguf"))
    'model.gguf: No such file or directory'
    """
    if isinstance(error, OSError) and error.strerror:
        name = error.filename
        return f"{os.fsdecode(name)}: {error.strerror}" if isinstance(name, (str, bytes)) else error.strerror
    if isinstance(error, MemoryError):
        return "out of memory"
    from .._util.extras import NotInstalledError

    told = (OSError, ValueError, NotInstalledError, UsageError, _output.OutputError)
    if isinstance(error, told) and str(error):
        return str(error)
    return f"unexpected {type(error).__name__}: {error} (a bug in ggufbpe; --debug shows where)"


def _split(arguments: list[str]) -> tuple[list[str], str | None, list[str]]:
    """The flags before the command, the command, and what follows it. No flag before it takes a value."""
    for index, argument in enumerate(arguments):
        if not argument.startswith("-"):
            return arguments[:index], argument, arguments[index + 1 :]
    return arguments, None, []


def _parse(head: list[str], name: str | None, tail: list[str]) -> argparse.Namespace:
    """The arguments, with the function that runs them as `run`."""
    top = _top_parser()
    first, others = top.parse_known_args(head)
    if others:
        top.error(
            f"there is no flag {others[0]!r} before the command; flags come after it: ggufbpe tokenize -m ..."
        )
    if first.version:
        from .. import LLAMA_CPP, __version__
        from .._util.llama_cpp_states import CHATS
        from ..native import REMEDY, is_meant, native, why_not_native

        engine = "reference" if native is None else "native"
        follows = f"llama.cpp {LLAMA_CPP} for ids, {CHATS} for chats and the server"
        said = f"ggufbpe {__version__} (engine: {engine}; follows {follows})\n"
        if native is None:
            said += f"The compiled engine, which is much faster, does not run: {why_not_native}.\n"
            said += "" if is_meant else f"{REMEDY}\n"
        _output.write(said.encode())
        top.exit()
    if name is None:
        _output.say(top.format_help())
        _output.error("which command?")
        top.exit(EXIT_ERROR)
    if name == "help":
        name, tail = (tail[0], ["--help"]) if tail and tail[0] != "help" else (None, [])
        if name is None:
            top.print_help()
            top.exit()
    if name not in COMMANDS:
        top.error(f"there is no command {name!r}{_near(name)}")
    parser = Parser(f"ggufbpe {name}")
    command = _load(name)
    command.add_arguments(parser)
    parsed = parse_arguments(parser, tail)
    parsed.debug, parsed.quiet = parsed.debug or first.debug, parsed.quiet or first.quiet
    parsed.run = command.run
    return parsed


def _top_parser() -> Parser:
    width = max(map(len, COMMANDS))
    commands = "\n\n".join(
        "\n".join([f"{purpose}:", *(f"  {name:{width}}  {line}" for name, line in group.items())])
        for purpose, group in GROUPS.items()
    )
    parser = Parser("ggufbpe", usage="ggufbpe [--debug] [--quiet] COMMAND [FLAGS] ...")
    parser.description, parser.epilog = f"{_DESCRIPTION}\n\n{commands}", _EXAMPLES
    parser.add_switch(
        "--version", help="show the version, the engine and which llama.cpp it follows, and exit"
    )
    return parser


def _load(name: str) -> _Command:
    from importlib import import_module

    module = "import_" if name == "import" else name.replace("-", "_")  # a keyword can be no module's name
    return cast(_Command, import_module(f"{__name__}.{module}"))


def _near(name: str) -> str:
    from difflib import get_close_matches

    if name.endswith(".gguf"):
        return f"; a command comes first: ggufbpe info {shell_word(name)}"
    near = get_close_matches(name, [*COMMANDS, "--version"], n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(COMMANDS)}"


def _flushed(code: int) -> int:
    """`code`, or another one if the output could not be written."""
    try:
        _output.flush()
    except BrokenPipeError:
        _output.abandon()
        return EXIT_BROKEN_PIPE
    except _output.OutputError as error:
        _output.abandon()
        _output.error(str(error))
        return EXIT_ERROR
    return code


def _shown_once() -> Callable[..., None]:
    """What shows a warning: one line on stderr, and each text only once a run.

    Python would print two lines, the second one from our own source.
    """
    told: set[str] = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        text = str(message)
        if text not in told:
            told.add(text)
            _output.warning(text)

    return show
