"""`ggufbpe completion`: shell completion of commands, flags, and the names of models on this machine.

Only the module of the command in the line is imported, and the stores are only listed, so that completion is instant.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from typing import Any

from .._util.extras import NotInstalledError, imported
from . import _output
from ._arguments import Parser

SHELLS = ("bash", "zsh", "fish")
_EXTRA, _WHAT = "completion", "completion in a shell"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell: bash, zsh or fish", metavar="SHELL")


def run(arguments: argparse.Namespace) -> int:
    _output.write(shell_code(arguments.shell).encode())
    return 0


def shell_code(shell: str) -> str:
    """What the shell has to run once to get completions."""
    code: str = imported("argcomplete", _EXTRA, _WHAT).shellcode(["ggufbpe"], shell=shell)
    return code.strip() + "\n"


def complete(commands: Mapping[str, str], arguments_of: Callable[[str, Parser], None]) -> None:
    """Answer the shell and end the process; does nothing if argcomplete is not installed.

    `commands` has a line about each, and `arguments_of` adds the arguments of one to its parser.
    """
    try:
        argcomplete = imported("argcomplete", _EXTRA, _WHAT)
    except NotInstalledError:
        return
    argcomplete.autocomplete(_parser(commands, arguments_of), always_complete_options=False)


def _parser(
    commands: Mapping[str, str], arguments_of: Callable[[str, Parser], None]
) -> argparse.ArgumentParser:
    """All commands, and the arguments of the one in the line."""
    words = os.environ.get("COMP_LINE", "").split()[1:]
    named = next((word for word in words if not word.startswith("-")), None)
    top = Parser("ggufbpe")
    top.add_argument("--version", action="store_true")
    parsers = top.add_subparsers(parser_class=Parser)
    for name, line in commands.items():
        parser = parsers.add_parser(name, help=line)
        if name == named:
            arguments_of(name, parser)
            for action in parser.arguments():
                _set_completer(action)
    return top


def _set_completer(action: Any) -> None:
    if action.metavar == "MODEL":
        action.completer = _models_and_files
    elif action.metavar == "MODEL_NAME":
        action.completer = _models
    elif action.metavar == "OWNER/REPO[:QUANT]":
        action.completer = _repositories
    elif action.metavar == "NAME" and action.dest in ("names", "pre"):
        action.completer = _pre_tokenizers


def _models(prefix: str, **_: object) -> list[str]:
    """The names of models that begin with `prefix`, with the prefix of a store or without."""
    from ..hub.stores.all_stores import stored_models

    models = [each for each in stored_models() if not each.problem]
    names = [each.name for each in models]
    if prefix and ":" not in prefix:
        names += [own for each in models for own in (*each.bare_names, *each.fallback_names)]
    shown = (name for name in dict.fromkeys(names) if name.isprintable())
    return [name for name in shown if name.lower().startswith(prefix.lower())]


def _models_and_files(prefix: str, **known: Any) -> list[str]:
    files = imported("argcomplete.completers", _EXTRA, _WHAT).FilesCompleter(("gguf",))
    return [*files(prefix, **known), *_models(prefix)]


def _pre_tokenizers(prefix: str, **_: object) -> list[str]:
    from ..models.pretokenizers.registry import PRE_TOKENIZERS

    return [name for name in PRE_TOKENIZERS if name.startswith(prefix)]


def _repositories(prefix: str, **_: object) -> list[str]:
    return [name.removeprefix("hf:") for name in _models(f"hf:{prefix}") if "@" not in name]
