"""What asks the reference: an oracle that could not be opened leaves no child behind it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, missing
from reference import NEWER, OLDER, LoadError, NotPreparedError, Oracle

from ggufbpe.oracles import llama_cpp

REFUSED = ROOT / "fixtures" / "malformed" / "empty.gguf"


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The child processes that are started."""
    started: list[Any] = []

    def start(*arguments: Any) -> Any:
        started.append(original(*arguments))
        return started[-1]

    original = llama_cpp._start_child
    monkeypatch.setattr(llama_cpp, "_start_child", start)
    return started


@pytest.mark.parametrize(("state", "part"), [(NEWER, "--newer"), (OLDER, "--older")])
def test_a_state_that_is_not_there_is_named_with_what_gets_it(
    state: str,
    part: str,
    children: list[Any],
    gpt2_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GGUFBPE_CACHE", str(tmp_path))
    with pytest.raises(NotPreparedError, match=f"prepare {part}"):
        Oracle(gpt2_path, state)
    assert children == []


@pytest.mark.parametrize("state", [NEWER, OLDER])
def test_a_refused_file_leaves_no_child(state: str, children: list[Any]) -> None:
    try:
        with pytest.raises(LoadError, match="refused"):
            Oracle(REFUSED, state)
    except NotPreparedError as error:
        missing(str(error))
    assert [child.returncode is not None for child in children] == [True]


@pytest.mark.parametrize("state", [NEWER, OLDER])
def test_texts_around_a_crash_have_their_answers(state: str, gpt2_path: Path, tmp_path: Path) -> None:
    """A batch is asked again in parts, down to the texts that llama.cpp dies of: here of a long run (std::regex)."""
    from reference import Crash, with_pre

    model = with_pre(gpt2_path, "gpt-4o", tmp_path / "gpt-4o.gguf")
    texts = [b"Hello", b" world"] * 50
    texts[37] = b"a" * 100_000
    try:
        with Oracle(model, state) as oracle:
            answers = oracle.tokenize(texts, True, True)
            crashes = oracle.crashes
    except NotPreparedError as error:
        missing(str(error))
    assert [index for index, answer in enumerate(answers) if isinstance(answer, Crash)] == [37]
    assert answers[:37] + answers[38:] == ([[15496], [995]] * 50)[:37] + ([[15496], [995]] * 50)[38:]
    assert crashes == 1
