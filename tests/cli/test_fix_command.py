"""`ggufbpe fix` writes a changed copy and prints each change; tests/analysis/doctor/test_fix.py has what is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Run, call
from fix_cases import ADD_BOS, EOS, PRE, TYPES, metadata, write_model

from ggufbpe.cli import fix
from ggufbpe.cli._arguments import UsageError

__all__ = ["call"]  # the fixture

TEMPLATE = "tokenizer.chat_template"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_model(tmp_path / "model.gguf")


@pytest.mark.parametrize(
    ("flags", "key", "value", "line"),
    [
        (["--set", f"{PRE}=qwen2"], PRE, "qwen2", f"{PRE}: 'gpt-2' -> 'qwen2'"),
        (["--set", f"{ADD_BOS}=true"], ADD_BOS, True, f"{ADD_BOS}: missing -> true"),
        (["--override-kv", f"{ADD_BOS}=bool:true"], ADD_BOS, True, f"{ADD_BOS}: missing -> true"),
        (["--set", "my.key=UINT32:5"], "my.key", 5, "my.key: missing -> 5"),
        (["--remove", EOS], EOS, None, f"{EOS}: 0 -> removed"),
        (["--set-token-type", "2=CONTROL"], TYPES, None, f"{TYPES}[2]: 1 (NORMAL) -> 3 (CONTROL)"),
        (["--chat-template", "known:Qwen-Qwen3-0.6B"], TEMPLATE, None, f"{TEMPLATE}: missing -> "),
    ],
)
def test_changes(flags: list[str], key: str, value: object, line: str, call: Run, model: Path) -> None:
    copy = model.with_name("fixed.gguf")
    found = call(fix, model, *flags, "-o", copy)
    lines = found.text.splitlines()
    assert lines[0].startswith(line)
    assert lines[-1].startswith(f"wrote {copy} (")
    assert f"{copy.stat().st_size} bytes, 5 tensors unchanged)" in lines[-1]
    if value is not None:
        assert metadata(copy)[key] == value
    elif "--remove" in flags:
        assert key not in metadata(copy)
    else:
        assert metadata(copy)[key] != metadata(model).get(key)


def test_in_place(call: Run, model: Path) -> None:
    found = call(fix, model, "--set", f"{PRE}=qwen2", "--in-place")
    assert f"wrote {model} (only its metadata, in place; " in found.text
    assert metadata(model)[PRE] == "qwen2"


def test_a_template_from_a_file_and_from_standard_input(call: Run, model: Path) -> None:
    source = model.with_name("template.jinja")
    source.write_text("{{ messages[0].content }}")
    for number, (given, stdin) in enumerate(((source, None), ("-", source.read_bytes()))):
        copy = model.with_name(f"fixed{number}.gguf")
        call(fix, model, "--chat-template", given, "-o", copy, stdin=stdin)
        assert metadata(copy)[TEMPLATE] == source.read_text()
    copy = model.with_name("named.gguf")
    call(fix, model, "--chat-template", f"rag={source}", "-o", copy)
    assert metadata(copy)[f"{TEMPLATE}.rag"] == source.read_text()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "nothing to change: give one of --set, --remove, --set-token-type, --chat-template"),
        (["--remove", EOS], "where should the copy go"),
        (["--remove", EOS, "-o", "x", "--in-place"], "where should the copy go"),
        (["--set", "a=INT32:1", "--set", "a=INT32:2", "-o", "x"], "'a' is changed twice"),
        (
            ["--set", f"{ADD_BOS}=true", "--override-kv", f"{ADD_BOS}=bool:false", "-o", "x"],
            "is changed twice",
        ),
        (
            ["--chat-template", "known:a", "--chat-template", "known:b", "-o", "x"],
            "two chat templates are given",
        ),
        (
            ["--chat-template", "a=x", "--chat-template", "a=y", "-o", "x"],
            "the chat template a is given twice",
        ),
    ],
)
def test_arguments_that_make_no_sense(flags: list[str], words: str, call: Run, model: Path) -> None:
    with pytest.raises(UsageError, match=words):
        call(fix, model, *flags)


def test_a_file_that_is_there(call: Run, model: Path) -> None:
    there = model.with_name("there.gguf")
    there.write_text("mine")
    with pytest.raises(UsageError, match="already exists; --force overwrites it"):
        call(fix, model, "--remove", EOS, "-o", there)
    assert there.read_text() == "mine"
    assert call(fix, model, "--remove", EOS, "-o", there, "--force").code == 0
