"""Each face speaks its own language: the library names Python's arguments, the command line flags."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Run, run
from conftest import ROOT

from ggufbpe.analysis.views.flag_names import FLAGS, with_flags

__all__ = ["run"]  # the fixture

PACKAGE = ROOT / "ggufbpe"
FLAG = re.compile(r"(?<![\w`-])--[a-z][a-z-]+")

# Views of the command line may name flags, and oracles give them to other programs. Here, too, they are not of
# messages about arguments: whole commands, llama.cpp's flags, flags of `serve`.
COMMANDS = {
    "analysis/diagnose/chat_changes.py": "where --json has more",
    "analysis/doctor/facts.py": "flags of a command that is put together",
    "analysis/doctor/bos_checks.py": "flags of a command that is put together",
    "analysis/doctor/tensor_checks.py": "flags of a command that is put together",
    "analysis/verify/upstream_chats.py": "flags of a command that is put together",
    "data/corpora/corpus_files.py": "git's flags",
    "gguf/change.py": "the command that a change is",
    "hub/model_location.py": "the command that changes a model",
    "hub/stores/all_stores.py": "commands of other programs",
    "hub/stores/ollama_store.py": "commands of other programs",
    "hub/remote/huggingface.py": "a whole command, in backticks",
    "hub/name_grammar.py": "llama.cpp's flag, for which the function is",
    "gguf/kv_override.py": "llama.cpp's flag, for which the file is",
    "models/pretokenizers/unknown_names.py": "the whole command that opens the file",
    "chat/chats.py": "llama-server's flags",
    "chat/request/build.py": "llama-server's flags",
    "server/guard.py": "flags of `ggufbpe serve`, for who runs it",
}


def messages(path: Path) -> Iterator[str]:
    """The strings of a file that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def test_no_message_of_the_library_has_flags() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(("cli/", "analysis/views/", "analysis/oracles/")) or name in COMMANDS:
            continue
        flags = [
            text
            for text in messages(path)
            if FLAG.search(
                re.sub(r"`[^`]*`( with --[a-z-]+)?|(llama-server|pip install|ggufbpe [a-z-]+) .*", "", text)
            )
        ]
        if flags:
            found[name] = flags
    assert found == {}


def test_what_is_translated_is_said_somewhere() -> None:
    said = "\n".join(
        text for path in PACKAGE.rglob("*.py") if path.parent.name != "cli" for text in messages(path)
    )
    said = said.replace("{'\n", "{'").replace("\n': NAME}", "': NAME}")
    for phrase in FLAGS:
        if not phrase.startswith("overrides="):  # put together of parts
            assert phrase in said, phrase


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a; force=True overwrites it", "a; --force overwrites it"),
        ("enforce=True", "enforce=True"),
        ("nothing of it", "nothing of it"),
        ("overrides={'tokenizer.ggml.pre': NAME}", "--override-kv tokenizer.ggml.pre=str:NAME"),
    ],
)
def test_with_flags(text: str, shown: str) -> None:
    assert with_flags(text) == shown


def test_messages_on_the_command_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a\xff")
    result = run("train", tmp_path / "a.txt", "--vocab-size", "260", "--trace")
    assert "or give --errors replace to read U+FFFD" in result.err
    (tmp_path / "a.jsonl").write_bytes(b'{"body": "a", "id": 1}\n')
    train = ["train", tmp_path / "a.jsonl", "--vocab-size", "260", "--trace"]
    assert run(*train).err.endswith(
        "line 1: there is no field 'text'; --field NAME names another (the fields with texts are 'body')\n"
    )
    assert "the field 'id' is a number, not a text; --field NAME" in run(*train, "--field", "id").err
    (tmp_path / "a.jsonl").write_bytes(b'{"instruction": "Add", "output": "3"}\n')
    assert run("encode", tmp_path / "a.jsonl", "-o", tmp_path / "shards").err.endswith(
        "line 1: there is no field 'text': this is a chat, which is read with `ggufbpe encode --chats` or `ggufbpe "
        "count --chat`; --on-error skip leaves such records out\n"
    )
