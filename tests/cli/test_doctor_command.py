"""`ggufbpe doctor` prints the verdict on a file, the findings, and the one command that mends them."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest
from commands import Run, call
from reference import write_metadata
from small_models import K, Keys, small_keys, small_model

from ggufbpe.cli import doctor
from ggufbpe.cli._arguments import UsageError
from ggufbpe.gguf.constants import GGUFValueType

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


def test_several_findings_have_one_command(call: Run, model: Path) -> None:
    write(model, {**small_keys("<|x|>", kind=1), K.ADD_BOS: (0, GGUFValueType.UINT8)})
    assert "fix: this one command mends all 2 findings:" in call(doctor, model).text


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
