"""The verdicts of the audit in the list of models on this machine."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import pytest
from reference import write_metadata
from small_models import CHATML, Keys, small_keys, with_template

from ggufbpe.analysis.doctor import local_models
from ggufbpe.analysis.doctor.finding import Examination


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of LM Studio, the only one with models."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GGUFBPE_CACHE_DIR", str(tmp_path / "cache"))
    for name in list(os.environ):
        if name.startswith(("HF_", "HUGGING", "LLAMA_", "OLLAMA_", "XDG_")):
            monkeypatch.delenv(name)
    return tmp_path / ".lmstudio" / "models" / "owner"


def put(folder: Path, name: str, keys: Keys) -> None:
    (folder / name).mkdir(parents=True, exist_ok=True)
    inspect.unwrap(write_metadata)(folder / name / f"{name}.gguf", keys)


def verdicts() -> dict[str, str | None]:
    found = local_models.local_models()
    return {Path(model.path).stem: model.security for model in found}


def test_the_list_goes_on_when_an_audit_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, "one", small_keys())
    put(folder, "two", with_template(CHATML))
    audit = local_models.audit

    def failing(path: str) -> Examination:
        if "one" in path:
            raise MemoryError
        return audit(path)

    monkeypatch.setattr(local_models, "audit", failing)
    assert verdicts() == {"one": "error", "two": "healthy"}


def test_a_cached_verdict_is_of_the_same_metadata(folder: Path) -> None:
    """The audit examines what doctor passes over."""
    put(folder, "one", small_keys())
    assert verdicts() == {"one": "healthy"}
    for number, key in enumerate(("quantize.imatrix.file", "general.size_label", "split.x")):
        put(folder, f"bad{number}", {**small_keys(), key: "x\x1b[2J"})
    assert verdicts() == {"one": "healthy", "bad0": "error", "bad1": "error", "bad2": "error"}


def test_a_cached_verdict_is_of_the_checks_as_they_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check may be added between two versions, and a package installed anew under the same one."""
    put(folder, "one", small_keys())
    assert verdicts() == {"one": "healthy"}

    def fails(path: str) -> Examination:
        raise MemoryError(path)

    monkeypatch.setattr(local_models, "audit", fails)
    assert verdicts() == {"one": "healthy"}
    checks = folder.parent / "doctor"
    (checks / "security").mkdir(parents=True)
    (checks / "security" / "rules.py").touch()
    monkeypatch.setattr(local_models, "__file__", str(checks / "local_models.py"))
    for _ in range(2):
        local_models._edition.cache_clear()
        assert verdicts() == {"one": "error"}
    local_models._edition.cache_clear()
