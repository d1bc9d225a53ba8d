"""`ggufbpe fix` writes a changed copy and prints each change; tests/analysis/doctor/test_fix.py has what is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Run, call
from fix_cases import ADD_BOS, EOS, PRE, TYPES, metadata, write_model

import ggufbpe
from ggufbpe.cli import fix
from ggufbpe.cli._arguments import UsageError
from ggufbpe.gguf.constants import GGUFValueType
from ggufbpe.gguf.value_types import Field

__all__ = ["call"]  # the fixture

TEMPLATE = "tokenizer.chat_template"
PAD = "tokenizer.ggml.padding_token_id"


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
        (["--set-token-type", "2=control"], TYPES, None, f"{TYPES}[2]: 1 (NORMAL) -> 3 (CONTROL)"),
        (["--set", f"{PRE}=gpt-2"], PRE, "gpt-2", f"{PRE}: unchanged"),
        (["--set", f"{PAD}=<|endoftext|>"], PAD, 0, f"{PAD}: missing -> 0"),
        (["--set", f"{PAD}=0x2"], PAD, 2, f"{PAD}: missing -> 2"),
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


@pytest.mark.parametrize("name", [TEMPLATE, f"{TEMPLATE}.tool_use"])
def test_a_template_that_is_set_as_a_key_is_tried(name: str, call: Run, model: Path) -> None:
    broken = "{% for m in messages %}{{ m.content }}"
    copy = model.with_name("fixed.gguf")
    with pytest.raises(ggufbpe.ChatError, match="nothing was written"):
        call(fix, model, "--set", f"{name}=STRING:{broken}", "-o", copy)
    assert not copy.exists()
    call(fix, model, "--set", f"{name}=STRING:{broken}", "-o", copy, "--force")
    assert metadata(copy)[name] == broken


def test_the_template_in_the_settings_of_transformers(call: Run, model: Path) -> None:
    settings, copy = model.with_name("tokenizer_config.json"), model.with_name("fixed.gguf")
    settings.write_text('{"chat_template": "{{ messages[0].content }}"}')
    for given in (settings, model.parent):
        call(fix, model, "--chat-template", given, "-o", copy, "--force")
        assert metadata(copy)[TEMPLATE] == "{{ messages[0].content }}"


def test_templates_that_begin_alike_are_shown_from_where_they_differ(call: Run, model: Path) -> None:
    """Else a malicious one and its replacement look the same."""
    old, new, alike = (model.with_name(f"{name}.gguf") for name in ("old", "new", "alike"))
    begin = "{% for m in messages %}{{ m.content }}{% endfor %}\n"
    call(fix, model, "--set", f"{TEMPLATE}=STRING:{begin}{begin}mine", "-o", old)
    lines = call(fix, old, "--set", f"{TEMPLATE}=STRING:{begin}{begin}", "-o", new).text.splitlines()
    assert lines[0] == f"{TEMPLATE}, from line 3: 'mine' -> ''"
    call(fix, model, "--set", f"{TEMPLATE}=STRING:{begin}{'-' * 90}", "-o", old, "--force")
    lines = call(
        fix, old, "--set", f"{TEMPLATE}=STRING:{begin}{'-' * 89}+", "-o", new, "--force"
    ).text.splitlines()
    assert lines[0] == f"{TEMPLATE}, from line 2: '{'-' * 21}' -> '{'-' * 20}+'"
    assert (
        call(fix, old, "--chat-template", old, "-o", alike).text.splitlines()[0] == f"{TEMPLATE}: unchanged"
    )


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
        (["--set", "tokenizer.ggml.ad_bos_token=true", "-o", "x"], rf"did you mean {ADD_BOS}\?"),
        (["--set", f"{EOS}=<|no token|>", "-o", "x"], "is neither an id nor the text of a special token"),
        (
            ["--set", f"{EOS}=b", "-o", "x"],
            "'b' is neither an id .* give .* the id of a token, or remove the key",
        ),
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
    with pytest.raises((UsageError, ValueError), match=words):
        call(fix, model, *flags)


def test_a_file_that_is_there(call: Run, model: Path) -> None:
    there = model.with_name("there.gguf")
    there.write_text("mine")
    with pytest.raises(UsageError, match="already exists; --force overwrites it"):
        call(fix, model, "--remove", EOS, "-o", there)
    assert there.read_text() == "mine"
    assert call(fix, model, "--remove", EOS, "-o", there, "--force").code == 0


def test_the_end_of_a_key_is_no_key(call: Run, model: Path) -> None:
    """In Python, too, where a new key would be added without a word."""
    said = "pre is not a whole key; write tokenizer.ggml.pre"
    with pytest.raises((UsageError, ValueError), match=said):
        call(fix, model, "--set", "pre=gpt-2", "-o", "out.gguf")
    with pytest.raises(ValueError, match=said):
        ggufbpe.fix(model, "out.gguf", set={"pre": "gpt-2"})
    ggufbpe.fix(model, "out.gguf", set={"my.pre": "gpt-2"})


@pytest.mark.parametrize("key", ["tokenizer.ggml.prez", "tokenizer.ggml.add_bos", "tokenizer.ggml.eos_id"])
def test_a_misspelt_key_is_refused_in_python_too(key: str, model: Path) -> None:
    """A `Field` says that the key is meant; other keys may be near one that llama.cpp reads."""
    with pytest.raises(ValueError, match=rf"no key '{key}' \(did you mean tokenizer\.ggml\.\w+\?\)"):
        ggufbpe.fix(model, "out.gguf", set={key: 1})
    others = {"tokenizer.chat_templates": ["a"], "general.basename": "x"}
    ggufbpe.fix(model, "out.gguf", set={key: Field(GGUFValueType.UINT32, 1), **others})
