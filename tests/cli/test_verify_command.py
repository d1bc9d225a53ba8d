"""`ggufbpe verify` compares ids with those of another tokenizer; its exit code says whether they are the same."""

from __future__ import annotations

import inspect
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Run, call, posix_only
from reference import write_metadata
from small_models import CHATML, small_model, with_template

from ggufbpe import Tokenizer
from ggufbpe.analysis.oracles.oracle import OracleError
from ggufbpe.analysis.verify.result import ComparedText
from ggufbpe.cli import verify
from ggufbpe.cli._arguments import UsageError

__all__ = ["call", "small_model"]  # fixtures


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small model, which adds BOS."""
    path = tmp_path_factory.mktemp("other") / "other.gguf"
    return inspect.unwrap(write_metadata)(path, with_template(CHATML, add_bos_token=True))


def test_equal_ids(call: Run, small_model: Path) -> None:
    found = call(verify, "-m", small_model, "--against", small_model, "-p", "hello")
    assert found.code == 0
    assert found.text.splitlines()[0] == "the ids are the same"


def test_other_ids(call: Run, small_model: Path, other: Path) -> None:
    found = call(verify, "-m", small_model, "--against", other, "-p", "hello")
    assert found.code == 1
    assert found.text.startswith("1 of 1 text differs, in 1 place\n")
    assert "cause: bos: " in found.text
    assert call(verify, "-m", small_model, "--against", other, "-p", "hello", "--no-bos").code == 0


def test_texts_from_everywhere(call: Run, small_model: Path, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / "texts" / name).write_text("hello\n")
    given = ("-m", small_model, "--against", small_model, "--json")
    for arguments, stdin, count in (
        ([tmp_path / "texts"], None, 2),
        ([tmp_path / "texts" / "a.txt", "-p", "x"], None, 2),
        (["--stdin"], b"hello", 1),
        (["--fuzz", "20"], None, 20),
    ):
        found = call(verify, *given, *arguments, stdin=stdin)
        assert (found.code, json.loads(found.out)["texts"]) == (0, count)


def test_recorded_ids(call: Run, small_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "ids.json"
    ids = Tokenizer.from_gguf(small_model).encode("a\nb")
    path.write_text(json.dumps(ids))
    given = ("-m", small_model, "--against", path)
    assert call(verify, *given, "-p", "a\nb").code == 0
    assert call(verify, *given, "-p", r"a\nb", "--escape").code == 0
    assert call(verify, *given, "-p", r"a\nb").code == 1


def test_chats(call: Run, small_model: Path, other: Path, tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text('[{"role": "user", "content": "hello"}]\n' * 2)
    found = call(verify, "-m", small_model, "--against", small_model, "--chat", path)
    assert (found.code, found.text.splitlines()[0]) == (0, "the prompts of 2 chats are the same")
    assert (
        call(verify, "-m", small_model, "--against", other, "--chat", path).code == 1
    )  # by the ids of prompts


def test_a_page(call: Run, small_model: Path, other: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    given = ("-m", small_model, "--against", other, "-p", "hello", "--html")
    found = call(verify, *given, path)
    assert (found.code, found.err) == (1, f"ggufbpe: the report is in {path}\n")
    assert "1 of 1 text differs" in path.read_text()
    with pytest.raises(UsageError, match="already exists; --force overwrites it"):
        call(verify, *given, path)
    assert call(verify, *given, "-").out.startswith(b"<!DOCTYPE html>")


def test_a_file_that_cannot_be_read_is_an_error(call: Run, small_model: Path, tmp_path: Path) -> None:
    good = tmp_path / "good.txt"
    good.write_text("hello")
    found = call(verify, "-m", small_model, "--against", small_model, good, tmp_path / "nowhere.txt")
    assert found.code == 2
    assert "nowhere.txt: No such file or directory" in found.err
    assert found.text.startswith("the ids are the same")  # of what could be read


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (["-p", "a"], UsageError, "what should the ids be compared with"),
        (["--against", "MODEL"], UsageError, "no texts: give files or directories"),
        (["--against", "ids:x", "--fuzz", "5"], UsageError, "--fuzz makes new texts"),
        (
            ["--against", "llama-tokenize", "--chat", "x"],
            UsageError,
            "--chat needs something that makes prompts",
        ),
        (["--against", "MODEL", "--chat", "x", "--no-bos"], UsageError, "always added and parsed in chats"),
        (["--against", "MODEL", "-p", "a", "--timeout", "0"], UsageError, "--timeout must be more than 0"),
        (["--against", "MODEL", "-p", "a", "--html", "-", "--json"], UsageError, "only one of them can be"),
        (["--against", "nowhere:x", "-p", "a"], OracleError, "nowhere"),
        (["--against", "MODEL", "-p", "a", "--tools", "x"], UsageError, "--chat"),
    ],
)
def test_arguments_that_make_no_sense(
    arguments: list[str], error: type[Exception], words: str, call: Run, small_model: Path
) -> None:
    given = [str(small_model) if each == "MODEL" else each for each in arguments]
    with pytest.raises(error, match=words):
        call(verify, "-m", small_model, *given)


@posix_only
@pytest.mark.parametrize("is_json", [False, True])
def test_ctrl_c_shows_what_was_compared(
    call: Run,
    small_model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
    is_json: bool,
) -> None:
    taken: list[int] = []

    def texts(tokenizer: Tokenizer, count: int, seed: str) -> Iterator[ComparedText]:
        for number in range(count):
            if number == 7:
                os.kill(os.getpid(), signal.SIGINT)
            taken.append(number)
            yield ComparedText(f"text {number}", 0, b"hello")

    monkeypatch.setattr("ggufbpe.analysis.verify.id_comparison._random", texts)
    with pytest.raises(KeyboardInterrupt):
        call(verify, "-m", small_model, "--against", small_model, "--fuzz", "1000", *["--json"] * is_json)
    shown = capsysbinary.readouterr()
    if is_json:
        found = json.loads(shown.out)
        assert (found["texts"], found["same"], found["stopped"]) == (7, True, True)
    else:
        assert shown.out.startswith(b"the ids are the same\n  compared     7 texts")
    assert b"stopping; what was compared is shown in a moment" in shown.err
    assert len(taken) == 8
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
