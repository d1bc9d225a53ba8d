"""The files of a corpus: what is left out of directories, and what is read wherever it lies."""

from __future__ import annotations

import errno
from collections import Counter
from pathlib import Path

import pytest
from commands import Run, run
from conftest import GPT2
from corpus_cases import files_in, tok

from ggufbpe import Tokenizer, encode_corpus
from ggufbpe.data.corpora.corpus_files import files_of
from ggufbpe.data.corpora.records import CorpusError, raised
from ggufbpe.data.corpora.storage import LocalFolder, Unfinished

__all__ = ["run", "tok"]  # fixtures

LINE = '{"text": "hi there"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.jsonl").write_text(LINE)
    return folder


# ---- runs that go on ------------------------------------------------------------------------------------


@pytest.fixture
def stopped(folder: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that met a full disk in its second shard."""
    (folder / "a.jsonl").write_text(LINE * 9)
    real = LocalFolder.create

    def create(self: LocalFolder, name: str) -> Unfinished:
        if name.startswith("part-00001"):
            raise OSError(errno.ENOSPC, "No space left on device", name)
        return real(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFolder, "create", create)
        message = "No space left on device; the finished shards stay, and resume=True goes on with them"
        with pytest.raises(OSError, match=message) as error:
            encode_corpus(folder / "a.jsonl", tok, folder.parent / "out", shard_size=9)
    assert (error.value.errno, error.value.filename) == (errno.ENOSPC, "part-00001.bin")
    return folder.parent / "out"


def test_an_input_may_be_named_otherwise_in_a_run_that_goes_on(
    stopped: Path, folder: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = encode_corpus(folder / "a.jsonl", tok, folder.parent / "whole", shard_size=9)
    monkeypatch.chdir(folder)
    found = encode_corpus("../corpus/a.jsonl", tok, stopped, shard_size=9, resume=True)
    assert found.documents == 9
    assert files_in(stopped) == files_in(folder.parent / "whole")
    assert found.manifest == whole.manifest


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
