"""`ggufbpe completion`: shell completion of commands, flags and model names."""

from __future__ import annotations

import argparse

from . import _output
from ._arguments import Parser
from ._completion import SHELLS, shell_code

_DESCRIPTION = """\
Print shell code that completes ggufbpe's commands, their flags, and the names of the models on this machine. \
Needs the package argcomplete: pip install 'ggufbpe[completion]'."""
_EXAMPLES = """\
examples:
  eval "$(ggufbpe completion bash)"      # in ~/.bashrc
  eval "$(ggufbpe completion zsh)"       # in ~/.zshrc, after compinit
  ggufbpe completion fish | source       # in ~/.config/fish/config.fish"""


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    parser.add_argument("shell", choices=SHELLS, help="the shell: bash, zsh or fish", metavar="SHELL")


def run(arguments: argparse.Namespace) -> int:
    _output.write(shell_code(arguments.shell).encode())
    return 0
