"""--help-model has the flags that all commands share which open a model; --help of each does not repeat them."""

from __future__ import annotations

import pytest
from commands import Run, run

from ggufbpe.cli import COMMANDS

__all__ = ["run"]  # the fixture

OPENING = sorted(COMMANDS.keys() - {"completion", "import", "list-pre", "models", "page", "train"})
SHARED = ("--hf-repo", "--hf-file", "--model-url", "--offline", "--refresh")


@pytest.mark.parametrize("command", OPENING)
def test_flags_of_models_are_in_one_place(command: str, run: Run) -> None:
    short, models = run(command, "--help").text, run(command, "--help-model").text
    assert "--help-model" in short
    for flag in SHARED:
        assert flag not in short
        assert flag in models
    assert ("--override-kv" in short) == (command == "fix")


def test_flags_of_models_are_taken_all_the_same(run: Run) -> None:
    kv = "tokenizer.ggml.add_bos_token=bool:true"
    assert run("tokenize", "-p", "a", "--ids", "--offline", "--override-kv", kv, "-q").text == "[50256, 64]\n"
    assert "--llama-cpp" in run("tokenize", "--help-model").text
    assert "--help-model" not in run("list-pre", "--help").text


@pytest.mark.parametrize(
    ("command", "has_default"), [("info", True), ("export", True), ("doctor", False), ("fix", False)]
)
def test_help_says_whether_a_model_must_be_named(command: str, has_default: bool, run: Run) -> None:
    said = " ".join(run(command, "--help").text.split())
    assert "GGUFBPE_MODEL in the environment" in said
    assert ("or the GPT-2 vocabulary that comes with ggufbpe" in said) == has_default
