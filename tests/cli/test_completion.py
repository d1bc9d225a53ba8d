"""`ggufbpe completion` prints the code that a shell runs once."""

from __future__ import annotations

import sys

import pytest
from commands import Run, call

from ggufbpe._util.extras import NotInstalledError
from ggufbpe.cli import completion
from ggufbpe.cli._arguments import UsageError
from ggufbpe.cli._completion import SHELLS

__all__ = ["call"]  # the fixture


@pytest.mark.parametrize("shell", SHELLS)
def test_code_of_each_shell(shell: str, call: Run) -> None:
    pytest.importorskip("argcomplete")
    found = call(completion, shell)
    assert "ggufbpe" in found.text
    assert {"bash": "complete -o", "zsh": "compdef", "fish": "complete --command ggufbpe"}[
        shell
    ] in found.text


def test_what_cannot_be_completed(call: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="invalid choice: 'cmd'"):
        call(completion, "cmd")
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    with pytest.raises(NotInstalledError, match="argcomplete"):
        call(completion, "bash")
