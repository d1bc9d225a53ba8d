"""`ggufbpe completion`: what makes a shell complete commands, flags and models' names."""

from __future__ import annotations

import argparse

from . import _output
from ._arguments import Parser
from ._completion import SHELLS, shell_code

_DESCRIPTION = """\
Print what makes a shell complete the commands of ggufbpe, their flags, and the models on this machine by their names. \
It takes the package argcomplete: pip install 'ggufbpe[completion]'."""
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
