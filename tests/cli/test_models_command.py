"""`ggufbpe models` lists what other programs keep on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run, call
from small_models import small_model
from stores import lm_studio_file, ollama_layer, ollama_model

from ggufbpe.cli import models
from ggufbpe.cli._arguments import UsageError
from ggufbpe.hub.remote import huggingface

__all__ = ["call", "small_model"]  # fixtures

NOT_THERE = ("OLLAMA_MODELS", "HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE", "XDG_CACHE_HOME")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without models."""
    for name in NOT_THERE:
        monkeypatch.setenv(name, str(tmp_path / "no" / name))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def ollama(home: Path, small_model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of Ollama with a model, and one that cannot be opened."""
    folder = home / "ollama"
    monkeypatch.setenv("OLLAMA_MODELS", str(folder))
    small, broken = (ollama_layer(folder, data) for data in (small_model.read_bytes(), b"not a GGUF"))
    ollama_model(folder, "registry.ollama.ai/library/small/latest", [small])
    ollama_model(folder, "registry.ollama.ai/library/broken/latest", [broken])
    return folder


def test_a_machine_without_models(call: Run) -> None:
    found = call(models)
    assert (found.code, found.out) == (0, b"")
    assert found.err == "ggufbpe: no model of Ollama, Hugging Face, llama.cpp or LM Studio on this machine\n"
    assert "no model of that name of Ollama" in call(models, "llama").err


def test_a_table(call: Run, ollama: Path) -> None:
    lines = call(models).text.splitlines()
    assert lines[0].split() == [
        *(
            "size",
            "tokens",
            "context",
            "architecture",
            "tokenizer",
            "pre-tokenizer",
            "template",
            "doctor",
            "security",
            "name",
        )
    ]
    facts = lines[1].split()
    assert facts[-1] == "ollama:small:latest"
    assert facts[-9:-1] == ["268", "-", "gpt2", "gpt2", "gpt-2", "yes", "healthy", "healthy"]
    assert lines[-1].startswith("broken ollama:broken:latest: ")


def test_names_and_verdicts(call: Run, ollama: Path) -> None:
    assert "broken" not in call(models, "small").text
    assert "small" not in call(models, "ollama:b*").text
    assert "healthy" not in call(models, "--no-doctor").text


def test_a_narrow_terminal(call: Run, ollama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ggufbpe.cli._output.terminal_width", lambda: 40)
    lines = call(models, "small").text.splitlines()
    assert lines[0] == "ollama:small:latest"
    assert any("doctor healthy" in line for line in lines[1:])
    assert max(map(len, lines)) <= 40


def test_json(call: Run, ollama: Path) -> None:
    broken, small = json.loads(call(models, "--json").out)
    facts = [small[name] for name in ("name", "store", "tokens", "verdict")]
    assert facts == ["ollama:small:latest", "Ollama", 268, "healthy"]
    assert (broken["name"], broken["verdict"]) == ("ollama:broken:latest", "broken")


def test_other_stores(call: Run, home: Path, small_model: Path) -> None:
    lm_studio_file(home / ".lmstudio" / "models", "me/small-GGUF/small-Q8_0.gguf", small_model.read_bytes())
    [model] = json.loads(call(models, "--json").out)
    assert model["store"] == "LM Studio"


def test_a_repository_is_listed_alone(call: Run) -> None:
    with pytest.raises(UsageError, match="takes no MODEL_NAME beside it"):
        call(models, "x", "--remote", "hf:a/b")


@pytest.mark.parametrize("name", ["ollama:gemma3", "gemma3", "./folder", "a/b:"])
def test_what_is_no_repository(call: Run, name: str) -> None:
    with pytest.raises(UsageError, match=f"^'{name}' is no repository of the hub: give hf:OWNER/REPO$"):
        call(models, "--remote", name)


@pytest.mark.parametrize("name", ["hf:a/b", "a/b", "a/b:Q8_0", "a/b/x/m.gguf", "https://huggingface.co/a/b"])
def test_a_repository_may_be_named_as_elsewhere(
    name: str, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface, "files_on_hub", lambda asked: [])
    assert call(models, "--remote", name, "--json").out == b"[]\n"


def test_a_folder_is_no_pattern(call: Run, tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"is a path: this command lists the models of Ollama.* `ggufbpe info PATH`"
    ):
        call(models, tmp_path)


def test_without_a_draft_the_command_for_a_file_is_told(call: Run, small_model: Path) -> None:
    assert (
        "`ggufbpe diff --draft TARGET DRAFT` checks a file in any folder"
        in call(models, "--drafts-for", small_model).err
    )
