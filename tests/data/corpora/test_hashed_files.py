"""Files that are hashed while they are written."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from ggufbpe.data.corpora.byte_formats import Layout
from ggufbpe.data.corpora.hashed_files import FileFacts, HashedFile, file_hash, hashed_file
from ggufbpe.data.corpora.shard_formats import FORMS
from ggufbpe.data.corpora.storage import folder_at


def sha256(data: bytes) -> str:
    """The hash of some bytes."""
    return hashlib.sha256(data).hexdigest()


def test_what_is_written_is_hashed(tmp_path: Path) -> None:
    file = HashedFile(folder_at(str(tmp_path)), "a.bin")
    assert file.write(b"ab") == 2
    assert file.write(np.array([1, 2], "<u2")) == 4
    file.flush()
    assert file.tell() == 6
    assert [path.name for path in tmp_path.glob("[!.]*")] == []  # it appears when it is whole
    data = b"ab\1\0\2\0"
    assert file.finish() == FileFacts("a.bin", 6, sha256(data))
    assert (tmp_path / "a.bin").read_bytes() == data


def test_a_head_that_is_known_only_at_the_end(tmp_path: Path) -> None:
    file = HashedFile(folder_at(str(tmp_path)), "a.bin")
    file.write(b"....rest")
    file.begin_with(b"head")
    assert file.finish() == FileFacts("a.bin", 8, sha256(b"headrest"))
    assert (tmp_path / "a.bin").read_bytes() == b"headrest"


def test_what_breaks_off_is_removed(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield b"a"
        raise KeyError

    with pytest.raises(KeyError):
        hashed_file(folder_at(str(tmp_path)), "a.bin", parts())
    assert list(tmp_path.iterdir()) == []
    assert hashed_file(folder_at(str(tmp_path)), "b.bin", [b"a", b"b"]).finish().sha256 == sha256(b"ab")


class FullFolder:
    """A folder on a full disk."""

    def create(self, name: str) -> FullFolder:
        return self

    @property
    def file(self) -> FullFolder:
        return self

    def write(self, data: object) -> int:
        raise OSError(28, "No space left on device")


def test_an_error_of_the_disk_names_the_file() -> None:
    file = HashedFile(FullFolder(), "a.bin")  # type: ignore[arg-type]
    with pytest.raises(OSError, match=r"No space left on device: 'a\.bin'"):
        file.write(b"a")


@pytest.mark.parametrize("mask", [None, "labels"])
@pytest.mark.parametrize("form", FORMS)
def test_a_shard_that_cannot_be_begun_leaves_no_file(
    form: str, mask: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form in ("parquet", "arrow"):
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(HashedFile, "write", Mock(side_effect=OSError(28, "No space left on device")))
    with suppress(OSError):
        FORMS[form].open(folder_at(str(tmp_path)), "part-00000", Layout("uint16", "x", None, mask)).discard()
    assert list(tmp_path.iterdir()) == []


def test_file_hash() -> None:
    data = bytes(3 << 20)
    assert file_hash(io.BytesIO(data)) == sha256(data)
