"""`ggufbpe doctor` prints the verdict on a file, the findings, and the one command that mends them."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Run, call
from reference import write_metadata
from small_models import CHATML, K, Keys, family_keys, small_keys, small_model, with_template

from ggufbpe.analysis.doctor.finding import Finding
from ggufbpe.analysis.verify import upstream
from ggufbpe.cli import doctor
from ggufbpe.cli._arguments import UsageError
from ggufbpe.gguf.constants import GGUFValueType, TokenType

__all__ = ["call", "small_model"]  # fixtures


@pytest.fixture
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("doctor") / "model.gguf"


def write(path: Path, keys: Keys) -> Path:
    return inspect.unwrap(write_metadata)(path, keys)


def test_a_healthy_file(call: Run, small_model: Path) -> None:
    found = call(doctor, small_model)
    assert found.code == 0
    assert found.text == f"OK: nothing to fix (2 notes; --verbose shows them): {small_model}\n"
    verbose = call(doctor, small_model, "--verbose").text.splitlines()
    assert verbose[0] == f"OK: nothing to fix (2 notes): {small_model}"
    assert [line for line in verbose if line.startswith("note: ")] == [
        "note: tools_not_shown",
        "note: clean_spaces",
    ]
    assert call(doctor, small_model, "--strict").code == 0


def test_an_error(call: Run, model: Path) -> None:
    write(model, {**small_keys(), K.ADD_BOS: (0, GGUFValueType.UINT8)})
    found = call(doctor, model)
    lines = found.text.splitlines()
    assert found.code == 1
    assert lines[0] == f"1 error: {model}"
    assert lines[2] == "error: wrong_type"
    assert f"  fix: --set {K.ADD_BOS}=false" in lines  # the whole command stands once, at the end
    assert lines[-2:] == [
        "fix: this one command mends the finding:",
        f"  ggufbpe fix {model} --set {K.ADD_BOS}=false -o fixed.gguf",
    ]


@pytest.mark.parametrize(("flags", "code"), [([], 0), (["--strict"], 1)])
def test_a_warning(flags: list[str], code: int, call: Run, model: Path) -> None:
    write(model, small_keys("<|x|>", kind=1))
    found = call(doctor, model, *flags)
    assert found.code == code
    assert "warning: control_type" in found.text
    assert found.text.startswith(f"1 warning, 1 note (--verbose shows notes, too): {model}\n")


def test_what_is_unlike_other_files_of_the_family(call: Run, model: Path) -> None:
    write(model, family_keys("DeepSeek Coder", add_bos_token=True, add_eos_token=True))
    said = "Unlike DeepSeek Coder files: EOS is added to every text. This may be intended."
    assert said in call(doctor, model).text.splitlines()


def test_several_findings_have_one_command(call: Run, model: Path) -> None:
    write(model, {**small_keys("<|x|>", kind=1), K.ADD_BOS: (0, GGUFValueType.UINT8)})
    assert "fix: this one command mends all 2 findings:" in call(doctor, model).text


def test_a_command_that_is_not_part_of_the_one_at_the_end_is_whole(call: Run, model: Path) -> None:
    """That of a note, and one for which the user has to supply a file."""
    keys = with_template("<|im_start|>{{ messages[-1].content }}<|im_end|>")
    end = keys[K.LIST].index("<|im_end|>")
    keys[K.TOKEN_TYPE][end] = TokenType.NORMAL
    write(model, keys)
    lines = call(doctor, model, "--verbose").text.splitlines()
    for fix, flags in (
        ("nothing to do for llama.cpp; for other programs, set its type:", f"--set-token-type {end}=CONTROL"),
        ("set a template that writes it:", "--chat-template FILE"),
    ):
        assert lines[lines.index(f"  fix: {fix}") + 1] == f"  ggufbpe fix {model} {flags} -o fixed.gguf"


@pytest.mark.parametrize(
    "name",
    [
        "-m.gguf",
        "m\x1b[31m.gguf",
        "m\udcff.gguf",
        "two\nlines.gguf",
        "it's.gguf",
        "a -o fixed.gguf",
        "a && ggufbpe fix b.gguf",
    ],
)
def test_the_command_runs_whatever_the_name_is(
    name: str, call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / name, {**small_keys("<|x|>", kind=1), K.ADD_BOS: (0, GGUFValueType.UINT8)})
    found = call(doctor, "--", name)
    assert "fix: this one command mends all 2 findings:" in found.text
    assert f"  fix: --set {K.ADD_BOS}=false" in found.text.splitlines()
    in_json = json.loads(call(doctor, "--json", "--", name).text)
    fix = bytes.fromhex(in_json["fix_bytes"]) if "fix_bytes" in in_json else in_json["fix"].encode()
    for shell, command in (("bash", found.text.splitlines()[-1].encode()), ("sh", fix)):
        script = f'ggufbpe() {{ {sys.executable} -m ggufbpe "$@"; }}; '.encode() + command
        subprocess.run([shell, "-c", script], check=True, capture_output=True)
        assert call(doctor, "fixed.gguf").text.startswith("OK: ")
        (tmp_path / "fixed.gguf").unlink()


def test_json(call: Run, model: Path) -> None:
    write(model, small_keys(pre="gpt-22"))
    found = call(doctor, model, "--json")
    said = json.loads(found.out)
    assert (found.code, said["counts"]["error"], said["findings"][0]["id"]) == (1, 1, "pre_unknown")
    assert said["fix"].startswith(f"ggufbpe fix {model} ")


def test_overrides_are_examined(call: Run, small_model: Path) -> None:
    found = call(doctor, small_model, "--override-kv", f"{K.PRE}=str:gpt-22")
    assert (found.code, "pre_unknown" in found.text) == (1, True)


def test_without_a_model(call: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLAMA_ARG_MODEL", raising=False)
    with pytest.raises(UsageError, match="ggufbpe doctor --help"):
        call(doctor)


# ---- --security and --sarif -----------------------------------------------------------------------------


def test_an_audit(call: Run, model: Path) -> None:
    hostile = CHATML + "\n{{ ''.__class__ }}"
    write(model, {**with_template(hostile), "general.name": "a\x1b[2Jb"})
    found = call(doctor, model, "--security", "--sarif", model.with_suffix(".sarif"))
    lines = found.text.splitlines()
    assert found.code == 1
    assert "\x1b" not in found.text
    assert "error: terminal_escape" in lines
    assert "  where: tokenizer.chat_template, line 5, column 6" in lines
    [run] = json.loads(model.with_suffix(".sarif").read_text())["runs"]
    assert {"terminal_escape", "sandbox_escape"} <= {result["ruleId"] for result in run["results"]}
    said = json.loads(call(doctor, model, "--security", "--json").out)
    assert said["verdict"] == "error"
    [escape] = [each for each in said["findings"] if each["id"] == "sandbox_escape"]
    assert escape["where"] == {
        "key": "tokenizer.chat_template",
        "token": None,
        "offset": None,
        "line": 5,
        "column": 6,
    }


@pytest.mark.parametrize(("more", "is_told"), [("", False), ("\n{{ ''.__class__ }}", True)])
def test_an_examination_points_to_an_audit_that_finds_something(
    more: str, is_told: bool, call: Run, model: Path
) -> None:
    write(model, with_template(CHATML + more))
    found = call(doctor, model)
    told = "ggufbpe: a security check found 1 error; --security shows it\n"
    assert found.err == (told if is_told else "")
    assert found.text.startswith("OK: nothing to fix")


def test_an_audit_that_finds_nothing(call: Run, small_model: Path) -> None:
    found = call(doctor, small_model, "--security", "--strict")
    assert found.code == 0
    assert found.text.startswith("OK: nothing found (2 notes; --verbose shows them): ")


def test_an_audit_compares_with_nothing(call: Run, small_model: Path) -> None:
    with pytest.raises(UsageError, match="leave out --upstream"):
        call(doctor, small_model, "--security", "--upstream")


def test_sarif_of_an_examination(call: Run, model: Path) -> None:
    write(model, {**small_keys(), K.ADD_BOS: (0, GGUFValueType.UINT8)})
    call(doctor, model, "--sarif", model.with_suffix(".sarif"))
    [run] = json.loads(model.with_suffix(".sarif").read_text())["runs"]
    assert run["results"][0]["ruleId"] == "wrong_type"


def test_sarif_on_standard_output(call: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model.parent)
    write(model, {**small_keys(), K.ADD_BOS: (0, GGUFValueType.UINT8)})
    [run] = json.loads(call(doctor, model, "--sarif", "-").text)["runs"]
    assert run["results"][0]["ruleId"] == "wrong_type"
    assert not Path("-").exists()
    with pytest.raises(UsageError, match="--sarif - and --json: only one of them"):
        call(doctor, model, "--sarif", "-", "--json")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["MODEL", "--upstream"], ""),
        (["--upstream", "MODEL"], ""),  # the flag takes the model for a name, and gives it back
        (["MODEL", "--upstream", "hf:org/model"], "hf:org/model"),
        (["-m", "MODEL", "--upstream", "folder"], "folder"),
    ],
)
def test_the_original_to_compare_with(
    call: Run, small_model: Path, arguments: list[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def compared(model: str, name: str, **how: object) -> tuple[Finding, ...]:
        asked.append((str(model), name))
        return (Finding("warning", "upstream_template_differs", "It differs.", "So.", "mend it"),)

    monkeypatch.setattr(upstream, "upstream", compared)
    found = call(doctor, *(str(small_model) if each == "MODEL" else each for each in arguments))
    assert asked == [(str(small_model), name)]
    assert (found.code, "warning: upstream_template_differs" in found.text) == (0, True)
