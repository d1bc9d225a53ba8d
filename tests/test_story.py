"""The whole story, as a new user lives it, with the real commands.

The first: a GGUF has lost its `tokenizer.ggml.pre`. The ids that the real llama-tokenize gives with the right one are
at hand. `verify` says that and where they differ, `diagnose` says why, `fix` mends the file, and `verify` passes. The
others: Llama 2, bge and nomic, opened, found to be right, broken by a flag or a wrong model, diagnosed, and mended.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import missing
from reference import NotPreparedError, llama_tokenize_command, vocabulary, with_pre

pytestmark = pytest.mark.tries_fixes

PROMPT = """\
The invoice of 2024-11-05 says:

    total = 1234567.89 EUR;\tWE'LL pay it "in full", won't we?\r
"""


def run(
    *arguments: object, folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command as a user does; what it prints is text."""
    return subprocess.run(
        list(map(str, arguments)),
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
    )


def ggufbpe(
    *arguments: object, folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "ggufbpe", *arguments, folder=folder, **environment)


@pytest.fixture(scope="module")
def command() -> Path:
    try:
        return llama_tokenize_command()
    except NotPreparedError as error:
        missing(str(error))


@pytest.fixture(scope="module")
def right() -> Path:
    try:
        return vocabulary("llama-bpe")
    except NotPreparedError as error:
        missing(str(error))


@pytest.mark.slow
def test_a_missing_pre_is_found_and_mended(command: Path, right: Path, tmp_path: Path) -> None:
    # A model whose conversion lost the key. llama.cpp falls back to its default splitting.
    broken = with_pre(right, None, tmp_path / "model.gguf", extra={"tokenizer.ggml.pre": None})
    prompt = tmp_path / "prompt.txt"
    prompt.write_bytes(PROMPT.encode())

    # The ids that a sound copy of the model gives, from the real command.
    recorded = run(command, "-m", right, "-f", prompt, "--ids", "--no-escape")
    assert recorded.returncode == 0
    ids = tmp_path / "ids.json"
    ids.write_text(recorded.stdout)
    assert len(json.loads(recorded.stdout)) > 20

    # verify says that they differ, and where: at the year, which is a place where words are cut.
    found = ggufbpe("verify", "-m", broken, "--against", str(ids), prompt)
    assert found.returncode == 1
    assert found.stdout.startswith("1 of 1 text differs, in ")
    assert re.search(r"^1\. words: \d+ places$", found.stdout, re.MULTILINE)
    assert f"   first in {prompt}, byte " in found.stdout
    assert "cause: pre_type: " in found.stdout

    # The same from a sound copy of the model, which also gives the smallest text that differs.
    found = ggufbpe("verify", "-m", broken, "--against", str(right), prompt, "--json")
    assert found.returncode == 1
    [words] = [one for one in json.loads(found.stdout)["differences"] if one["step"] == "words"]
    assert 0 < len(words["smallest"]["text"]) <= 4

    # diagnose names the cause, with the names that split alike, and the command that mends it.
    found = ggufbpe("diagnose", "-m", broken, "-f", prompt, "--ids", ids, "--json")
    diagnosis = json.loads(found.stdout)
    assert not diagnosis["match"]
    best = diagnosis["explanations"][0]
    assert best["explains"] == 1.0
    assert [cause["id"] for cause in best["causes"]] == ["pre_type"]
    fix = best["fix"]
    assert "tokenizer.ggml.pre=" in fix

    # The command is taken as it is given, as one would copy it.
    name, *arguments = shlex.split(fix)
    assert name == "ggufbpe"
    found = ggufbpe(*arguments, folder=tmp_path)
    assert found.returncode == 0, found.stderr
    fixed = tmp_path / "fixed.gguf"

    # Now all agree: with the recorded ids, and with the real command on the mended file.
    assert ggufbpe("verify", "-m", fixed, "--against", str(ids), prompt).returncode == 0
    path = os.pathsep.join([str(command.parent), os.environ["PATH"]])
    found = ggufbpe("verify", "-m", fixed, "--against", "llama-tokenize", prompt, "-p", "In 1984", PATH=path)
    assert found.returncode == 0, found.stdout
    assert found.stdout.startswith("the ids are the same\n")
    found = ggufbpe("diagnose", "-m", fixed, "-f", prompt, "--ids", ids, "--json")
    said = json.loads(found.stdout)
    assert (said["verdict"], said["match"], said["findings"], said["fix"]) == ("same", True, [], "")


@pytest.mark.slow
def test_the_broken_model_is_what_llama_cpp_makes_of_it(command: Path, right: Path, tmp_path: Path) -> None:
    """Without the key the real command gives the ids that we give: `verify` passes on what is consistently wrong."""
    broken = with_pre(right, None, tmp_path / "model.gguf", extra={"tokenizer.ggml.pre": None})
    found = ggufbpe("verify", "-m", broken, "--against", f"llama-tokenize:{command}", "-p", PROMPT)
    assert found.returncode == 0, found.stdout


LLAMA_2, BGE, NOMIC = "llama-spm", "bert-bge", "nomic-bert-moe"
SPACED = "The  naïve Café,\n  in 1984: it's 日本 \u2603!"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "broken_by", "cause"),
    [
        (LLAMA_2, "tokenizer.ggml.add_space_prefix=false", "space_prefix"),
        (LLAMA_2, "tokenizer.ggml.model=t5", "model"),
        (BGE, "tokenizer.ggml.normalizer.lowercase=false", "lower_case"),
        (BGE, "tokenizer.ggml.seperator_token_id=100", "sep"),
        (NOMIC, "tokenizer.ggml.remove_extra_whitespaces=false", "extra_whitespace"),
    ],
)
def test_other_models_opened_verified_broken_diagnosed_and_mended(
    name: str, broken_by: str, cause: str, command: Path, tmp_path: Path
) -> None:
    try:
        right = vocabulary(name)
    except NotPreparedError as error:
        missing(str(error))
    prompt = tmp_path / "prompt.txt"
    prompt.write_bytes(SPACED.encode())
    path = os.pathsep.join([str(command.parent), os.environ["PATH"]])

    # It opens, the doctor has nothing to warn of, and its ids are those of the real command.
    assert (
        "SentencePiece" in (shown := ggufbpe("info", "-m", right).stdout)
        or "WordPiece" in shown
        or "Unigram" in shown
    )
    assert ggufbpe("doctor", right, "--strict").returncode == 0
    found = ggufbpe("verify", "-m", right, "--against", "llama-tokenize", prompt, "-p", "In 1984", PATH=path)
    assert found.returncode == 0, found.stdout

    # Somebody changes one key. The ids that were right are at hand; those of the broken file are others.
    recorded = run(command, "-m", right, "-f", prompt, "--ids", "--no-escape")
    ids = tmp_path / "ids.json"
    ids.write_text(recorded.stdout)
    broken = tmp_path / "model.gguf"
    assert ggufbpe("fix", right, "--set", broken_by, "-o", broken).returncode == 0
    found = ggufbpe("verify", "-m", broken, "--against", str(ids), prompt)
    assert found.returncode == 1
    assert f"cause: {cause}: " in found.stdout

    # diagnose says why, and how to mend it; the command is taken as it is given.
    found = ggufbpe("diagnose", "-m", broken, "-f", prompt, "--ids", ids, "--json")
    best = json.loads(found.stdout)["explanations"][0]
    assert ([each["id"] for each in best["causes"]], best["explains"]) == ([cause], 1.0)
    assert ggufbpe(*shlex.split(best["fix"])[1:], folder=tmp_path).returncode == 0

    # Now all agree again.
    fixed = tmp_path / "fixed.gguf"
    assert ggufbpe("verify", "-m", fixed, "--against", str(ids), prompt).returncode == 0
    found = ggufbpe("verify", "-m", fixed, "--against", "llama-tokenize", prompt, PATH=path)
    assert found.returncode == 0, found.stdout
    found = ggufbpe("diagnose", "-m", fixed, "-f", prompt, "--ids", ids)
    assert found.stdout.startswith("match: ")
