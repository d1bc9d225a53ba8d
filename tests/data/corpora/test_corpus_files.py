"""The files of a corpus: what is left out of directories, and what is read wherever it lies."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from commands import Run, run
from conftest import GPT2
from corpus_cases import tok

from ggufbpe import Tokenizer, encode_corpus
from ggufbpe.data.corpora.corpus_files import files_of
from ggufbpe.data.corpora.records import CorpusError, raised

__all__ = ["run", "tok"]  # fixtures

LINE = '{"text": "hi there"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.jsonl").write_text(LINE)
    return folder


# ---- shards ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", ["a.jsonl", ""])
def test_what_is_named_is_encoded_into_its_own_folder(named: str, folder: Path, tok: Tokenizer) -> None:
    for options in ({}, {"resume": True}, {"force": True}):
        assert encode_corpus(folder / named, tok, folder, **options).documents == 1  # type: ignore[arg-type]


def test_a_file_that_would_be_replaced_is_refused(folder: Path, tok: Tokenizer) -> None:
    path = folder / "inputs.jsonl"
    path.write_text(LINE)
    with pytest.raises(CorpusError, match=r"inputs\.jsonl has the name of a file that encoding writes to "):
        encode_corpus(path, tok, folder)
    assert path.read_text() == LINE


@pytest.mark.parametrize("form", ["megatron", "parquet"])
def test_shards_in_a_folder_are_no_texts(form: str, folder: Path, tok: Tokenizer, run: Run) -> None:
    """Whoever reads the folder: the run that wrote them, another one, `train`."""
    for force in (False, True):
        found = encode_corpus(folder, tok, folder / "out", format=form, force=force)
        assert (found.documents, +found.skipped) == (1, Counter())
    other = encode_corpus(folder, tok, folder.parent / "other")
    number = len(list((folder / "out").iterdir()))
    assert (other.documents, +other.skipped) == (1, Counter({"written by ggufbpe encode": number}))
    result = run("train", folder, "--vocab-size", "257", "-o", folder.parent / "small.gguf")
    assert (result.code, f"{number} written by ggufbpe encode" in result.err) == (0, True)
    assert run("count", "-m", GPT2, folder, "--json").code == 0


def test_shards_behind_a_url_are_no_texts(tok: Tokenizer) -> None:
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").pipe_file("/shards/a.jsonl", LINE.encode())
    for force in (False, True):
        found = encode_corpus("memory://shards", tok, "memory://shards/out", format="npy", force=force)
        assert found.documents == 1


def test_files_that_are_named_as_shards_are_texts_elsewhere(folder: Path) -> None:
    for name in ("inputs.jsonl", "part-00000.txt"):
        (folder / name).write_text(LINE)
    found = files_of([str(folder)], Counter(), raised)
    assert [Path(file.path).name for file in found] == ["a.jsonl", "inputs.jsonl", "part-00000.txt"]
