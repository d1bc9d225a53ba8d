"""Arrow files of lists, and lists read back from Arrow and parquet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ggufbpe.data.corpora import row_formats
from ggufbpe.data.corpora.byte_formats import Layout
from ggufbpe.data.corpora.row_formats import COLUMN, TableWriter, arrow_schema, row_batches
from ggufbpe.data.corpora.storage import folder_at

LAYOUT = Layout("uint16", "test", None)
FORM = SimpleNamespace(suffix=".arrow")
ROWS = [[1, 2, 3], [], [4], [5, 6], [7]]


def write(folder: Path) -> None:
    """An Arrow file of `ROWS`, whose ids come in parts that end anywhere."""
    writer = TableWriter(FORM, folder_at(str(folder)), "part", LAYOUT)
    writer.write([np.array([1, 2, 3, 4, 5], "uint16")], np.array([3, 0, 1]))
    writer.write([np.array([6], "uint16"), np.array([7], "uint16")], np.array([2, 1]))
    [facts] = writer.finish()
    assert facts.size == (folder / "part.arrow").stat().st_size


def test_schema() -> None:
    assert arrow_schema(LAYOUT) == pa.schema([(COLUMN, pa.large_list(pa.uint16()))])


@pytest.mark.parametrize(("limit", "batches"), [(1 << 16, 1), (2, 3), (1, 5)])
def test_arrow_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, batches: int) -> None:
    monkeypatch.setattr(row_formats, "GROUP_ROWS", limit)
    write(tmp_path)
    with pa.ipc.open_file(tmp_path / "part.arrow") as file:
        assert file.num_record_batches == batches
        assert file.read_all().column(COLUMN).to_pylist() == ROWS


@pytest.mark.parametrize("name", ["part.arrow", "part.parquet"])
@pytest.mark.parametrize("start", range(6))
def test_row_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, start: int) -> None:
    monkeypatch.setattr(row_formats, "GROUP_ROWS", 2)
    write(tmp_path)
    table = pa.table({COLUMN: pa.array(ROWS, pa.large_list(pa.uint16()))})
    pq.write_table(table, tmp_path / "part.parquet", row_group_size=2)
    batches = [batch.to_pylist() for batch in row_batches(folder_at(str(tmp_path)), name, start)]
    assert all(batches)  # none is empty
    assert [row for batch in batches for row in batch] == ROWS[start:]


THREADS = Path("/proc/self/task")
READ = f"""
import os, sys
import numpy, pyarrow.parquet
from ggufbpe.data.corpora.row_formats import row_batches
from ggufbpe.data.corpora.storage import folder_at

before = len(os.listdir("{THREADS}"))
batches = list(row_batches(folder_at(sys.argv[1]), "part.parquet"))
print(len(os.listdir("{THREADS}")) - before)
"""


@pytest.mark.skipif(
    not THREADS.exists(), reason="this system does not list the threads of a process in /proc"
)
def test_reading_starts_no_threads(tmp_path: Path) -> None:
    """Threads of pyarrow that still hold a buffer of Python's when the interpreter ends abort the process."""
    table = pa.table({COLUMN: pa.array(ROWS * 1000, pa.large_list(pa.uint16()))})
    pq.write_table(table, tmp_path / "part.parquet", row_group_size=100)
    done = subprocess.run([sys.executable, "-c", READ, tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_a_discarded_file_leaves_nothing(tmp_path: Path) -> None:
    writer = TableWriter(FORM, folder_at(str(tmp_path)), "part", LAYOUT)
    writer.write([np.array([1], "uint16")], np.array([1]))
    writer.discard()
    assert list(tmp_path.iterdir()) == []
