"""The child process that runs another package: its answers to what it is asked."""

from __future__ import annotations

import array
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ggufbpe.analysis.oracles import library_child
from ggufbpe.analysis.oracles.library_child import ADD_SPECIAL, PARSE_SPECIAL, opened

PACKAGE = """
class Tokenizer:
    @classmethod
    def from_buffer(cls, data):
        if data == b"bad":
            raise ValueError("no such model")
        print("noise, which must not mix with the answers")
        return cls()

    def no_truncation(self): pass
    no_padding = no_truncation

    def encode(self, text, add_special_tokens):
        if text == "fault":
            raise KeyError("oh")
        self.ids = [len(text), int(add_special_tokens), int(self.encode_special_tokens)]
        return self

__version__ = "7.7"
"""


def answers(folder: Path, config: dict[str, Any], *messages: bytes) -> list[bytes]:
    """What a child answers to a configuration and then to messages, with a made-up package `tokenizers`."""
    (folder / "tokenizers.py").write_text(PACKAGE)
    sent = [json.dumps(config).encode(), *messages]
    done = subprocess.run(
        [sys.executable, library_child.__file__],
        input=b"".join(len(each).to_bytes(8, "little") + each for each in sent),
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    found, rest = [], done.stdout
    while rest:
        size = int.from_bytes(rest[:8], "little")
        found.append(rest[8 : 8 + size])
        rest = rest[8 + size :]
    return found


def ids(*numbers: int) -> bytes:
    return b"+" + array.array("i", numbers).tobytes()


def test_questions_and_answers(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(b"good")
    config = {"library": "tokenizers", "file": str(tmp_path / "model")}
    both, add, parse = ADD_SPECIAL | PARSE_SPECIAL, ADD_SPECIAL, PARSE_SPECIAL
    questions = [bytes([flags]) + "naïf".encode() for flags in (both, add, parse, 0)]
    found = answers(
        tmp_path, config, *questions, bytes([0]) + b"fault", bytes([0]) + b"a\xff", bytes([0]) + b"x"
    )
    assert found == [
        b"+7.7",
        ids(4, 1, 0),
        ids(4, 1, 1),
        ids(4, 0, 0),
        ids(4, 0, 1),
        b"-KeyError: 'oh'",
        b"-the text is not UTF-8 at byte 1, which the package does not accept",
        ids(1, 0, 1),
    ]


def test_a_file_that_the_package_refuses(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(b"bad")
    config = {"library": "tokenizers", "file": str(tmp_path / "model")}
    assert answers(tmp_path, config) == [b"!no such model"]


def test_a_package_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "sentencepiece.py").write_text("import nowhere_at_all")
    config = {"library": "sentencepiece", "file": str(tmp_path / "sentencepiece.py")}
    [answer] = answers(tmp_path, {**config, "add_bos": True, "add_eos": False})
    assert answer == b"?No module named 'nowhere_at_all'"


def test_what_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").write_bytes(b"data")
    file = str(tmp_path / "model")
    names = ("open_tiktoken", "open_tiktoken_file", "open_sentencepiece")
    for name in names:
        monkeypatch.setattr(
            library_child.adapters, name, lambda *given, name=name, **named: (name, given, named)
        )
    assert opened({"library": "tiktoken", "name": "o200k"}) == ("open_tiktoken", ("o200k",), {})
    config = {"library": "tiktoken", "name": "o200k", "file": file, "pattern": "p", "special": {"a": 1}}
    assert opened(config) == ("open_tiktoken_file", ("o200k", b"data", "p", {"a": 1}), {})
    flags = {"add_bos": True, "add_eos": False}
    assert opened({"library": "sentencepiece", "file": file, **flags}) == (
        "open_sentencepiece",
        (b"data",),
        flags,
    )
