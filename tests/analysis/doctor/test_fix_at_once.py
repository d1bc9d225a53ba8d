"""Changes of one file at the same time: none of them is lost without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fix_cases import EOS, PRE, metadata, write_model

import ggufbpe
from ggufbpe import InterruptedChangeError
from ggufbpe._util.files import undo_record
from ggufbpe.cli import main
from ggufbpe.gguf import edit, in_place
from ggufbpe.gguf.in_place import recover

NAME = "general.name"
SHORT, LONG = "a", "x" * 300  # in place, and longer than what lies before the tensors: the file is replaced
WAYS = pytest.mark.parametrize("name", [SHORT, LONG], ids=["in place", "replaced"])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model.gguf")


def before_writing(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let `act` happen once, after a fix has read the file and before it changes or replaces the file."""
    rewrite, copy, waiting = edit.rewrite, edit._copy, [act]

    def rewrite_later(*arguments: Any) -> None:
        while waiting:
            waiting.pop()()
        rewrite(*arguments)

    def copy_before(*arguments: Any) -> bool:
        shares = copy(*arguments)
        while waiting:
            waiting.pop()()
        return shares

    monkeypatch.setattr(edit, "rewrite", rewrite_later)
    monkeypatch.setattr(edit, "_copy", copy_before)


@WAYS
@pytest.mark.parametrize("other", [SHORT, LONG])
def test_a_second_change_is_refused(
    name: str, other: str, model: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    codes: list[int] = []
    second = [
        "fix",
        str(model),
        "--set",
        f"{PRE}=olmo",
        "--set",
        f"general.version=STRING:{other}",
        "--in-place",
    ]
    before_writing(monkeypatch, lambda: codes.append(main(second)))
    assert main(["fix", str(model), "--set", f"{NAME}={name}", "--in-place"]) == 0
    assert codes == [2]
    assert f"{model}: another process is changing it" in capfd.readouterr().err
    assert (metadata(model)[NAME], metadata(model)[PRE]) == (name, "gpt-2")
    assert main(second) == 0  # nothing stays locked
    assert (metadata(model)[NAME], metadata(model)[PRE]) == (name, "olmo")
    assert os.listdir(model.parent) == [model.name]


@WAYS
def test_a_second_change_is_refused_while_the_first_one_reads(
    name: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new types of tokens are an array, made of the one that was read."""
    from ggufbpe.analysis.doctor import fix as fix_module

    inner, refused = fix_module.edits_for, []

    def later(*arguments: Any) -> Any:
        monkeypatch.setattr(fix_module, "edits_for", inner)
        edits = inner(*arguments)
        with pytest.raises(InterruptedChangeError, match="another process is changing it"):
            ggufbpe.fix(model, in_place=True, token_types={3: "CONTROL"})
        refused.append(True)
        return edits

    monkeypatch.setattr(fix_module, "edits_for", later)
    ggufbpe.fix(model, in_place=True, token_types={4: "CONTROL"}, set={NAME: name})
    assert refused


REPLACED: dict[str, Callable[[Path], object]] = {
    "replaced": lambda model: os.replace(write_model(model.with_name("other.gguf")), model),
    "written": lambda model: model.write_bytes(model.read_bytes().replace(b"gpt-2", b"olmo2")),
    "longer": lambda model: model.write_bytes(model.read_bytes() + bytes(32)),
    "gone": lambda model: model.unlink(),
}


@WAYS
@pytest.mark.parametrize("change", REPLACED)
def test_what_another_program_did_meanwhile_stays(
    change: str, name: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after: list[bytes | None] = []

    def other() -> None:
        REPLACED[change](model)
        after.append(model.read_bytes() if model.exists() else None)

    before_writing(monkeypatch, other)
    with pytest.raises(InterruptedChangeError, match="another process has changed it in the meantime"):
        ggufbpe.fix(model, in_place=True, set={NAME: name})
    assert after == [model.read_bytes() if model.exists() else None]
    assert os.listdir(model.parent) == [model.name] * model.exists()


@pytest.mark.parametrize(
    ("flags", "meanwhile", "expected"),
    [
        (["--set", f"{EOS}=<|a|>"], {13: "<|c|>", 14: "<|a|>"}, (["<|c|>", "<|a|>", "<a"], 14)),
        (["--rename-token", "<a=b=<c"], {15: "<a=b"}, (["<|a|>", "<|b|>", "<c"], 0)),
    ],
)
def test_arguments_mean_what_they_mean_in_the_locked_file(
    flags: list[str],
    meanwhile: dict[int | str, str],
    expected: object,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another process changes tokens just before the file is locked."""
    from ggufbpe.analysis.doctor import fix as fix_module

    ggufbpe.fix(model, in_place=True, add_tokens={"<|a|>": "CONTROL", "<|b|>": "CONTROL", "<a": "CONTROL"})
    inner = fix_module.locked

    def locked(path: str) -> Any:
        monkeypatch.setattr(fix_module, "locked", inner)
        ggufbpe.fix(path, in_place=True, rename_tokens=meanwhile)
        return inner(path)

    monkeypatch.setattr(fix_module, "locked", locked)
    assert main(["fix", str(model), *flags, "--in-place"]) == 0
    found = metadata(model)
    assert (found["tokenizer.ggml.tokens"][13:], found[EOS]) == expected


def test_a_change_that_ended_meanwhile_needs_no_recovery(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record was there before the lock, and is gone with it: another process was at work."""
    before = model.read_bytes()
    found = in_place._record_of
    record = in_place._Record(model.stat().st_ino, len(before), 8, before[8:16], before[8:16])
    answers = [record]
    monkeypatch.setattr(in_place, "_record_of", lambda path: answers.pop() if answers else found(path))
    assert recover(model) is None
    assert (model.read_bytes(), os.path.exists(undo_record(model))) == (before, False)


REFUSALS = (  # which one depends on when the other change is seen
    "another process is changing it",
    "another process has changed it in the meantime",
    "a change of this file was interrupted, or is under way",
    "the file was truncated or written to while it was open",
)


@pytest.mark.slow
@pytest.mark.parametrize("names", [(SHORT, SHORT), (SHORT, LONG), (LONG, LONG)])
def test_of_two_processes_at_once_none_loses_what_it_says_is_written(
    names: tuple[str, str], tmp_path: Path
) -> None:
    for turn in range(5):
        model = write_model(tmp_path / f"{turn}.gguf")
        keys = NAME, "general.author"
        command = [sys.executable, "-m", "ggufbpe", "fix", str(model), "--in-place", "--set"]
        runs = [
            subprocess.Popen(
                [*command, f"{key}=STRING:{name}"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for key, name in zip(keys, names)
        ]
        try:
            told = [run.communicate(timeout=600)[1] for run in runs]
        finally:
            for run in runs:
                run.kill()
        for key, name, run, error in zip(keys, names, runs, told):
            if run.returncode == 0:
                assert metadata(model)[key] == name
            else:
                assert any(refusal in error for refusal in REFUSALS), error
        assert 0 in [run.returncode for run in runs]
