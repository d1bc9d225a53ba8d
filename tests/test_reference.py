"""What asks the reference: an oracle that could not be opened leaves nothing open behind it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import IO, Any

import pytest
import reference
from conftest import ROOT, missing
from reference import LoadError, NotPreparedError, Oracle

REFUSED = ROOT / "fixtures" / "malformed" / "empty.gguf"


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[IO[bytes]]:
    """The temporary files that are made."""
    made: list[IO[bytes]] = []

    def make(*arguments: Any, **options: Any) -> IO[bytes]:
        made.append(original(*arguments, **options))
        return made[-1]

    original = tempfile.TemporaryFile
    monkeypatch.setattr(tempfile, "TemporaryFile", make)
    return made


def test_without_the_library_an_oracle_leaves_no_file_open(
    files: list[IO[bytes]], gpt2_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "library_is_installed", lambda: False)
    with pytest.raises(NotPreparedError, match="prepare --library"):
        Oracle(gpt2_path)
    assert [file.closed for file in files] == [True]


def test_a_refused_file_leaves_no_file_and_no_child(
    files: list[IO[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    children: list[Any] = []

    def start(*arguments: Any) -> Any:
        children.append(original(*arguments))
        return children[-1]

    original = reference._start_child
    monkeypatch.setattr(reference, "_start_child", start)
    try:
        with pytest.raises(LoadError, match="refused"):
            Oracle(REFUSED)
    except NotPreparedError as error:
        missing(str(error))
    assert [file.closed for file in files] == [True]
    assert [child.returncode is not None for child in children] == [True]
