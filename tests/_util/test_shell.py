"""Words of commands in messages: a shell that reads them gets the text back."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess

import pytest

from ggufbpe._util.errors import escape_invisible
from ggufbpe._util.shell import no_flag, shell_path, shell_word, visible_command

TEXTS = [
    "model.gguf",
    "a b",
    "it's",
    "-m.gguf",
    "m\x1b[31m.gguf",
    "m\x1bb.gguf",
    "m\udcff.gguf",
    "two\nlines",
    "it's\n\"2\" 'x\\n'\\",
    "\u200b$HOME`x`",
    "❤\ufe0f",
    "'\"'\x07",
    "$'\n'",
]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_shell_reads_a_word_as_the_text(text: str, shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell}")
    word = shell_word(text)
    assert word == escape_invisible(word)
    script = f"printf '%s|' {word} {visible_command(shlex.join(['a b', text]))}"
    out = subprocess.run([shell, "-c", os.fsencode(script)], check=True, capture_output=True).stdout
    assert out == os.fsencode(f"{text}|a b|{text}|")


def test_a_path_is_never_a_flag() -> None:
    assert [shell_path(path) for path in ("-m.gguf", "--", "a/-b", "- \n")] == [
        "./-m.gguf",
        "./--",
        "a/-b",
        r"$'./- \012'",
    ]
    assert (no_flag("-"), no_flag("")) == ("./-", "")
