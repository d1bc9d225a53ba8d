"""The files of a corpus: what is left out of directories, and what is read wherever it lies."""

from __future__ import annotations

import errno
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from commands import Run, run
from conftest import GPT2
from corpus_cases import files_in, tok

from ggufbpe import Tokenizer, encode_corpus
from ggufbpe.data.corpora.corpus_files import files_of
from ggufbpe.data.corpora.records import CorpusError, raised
from ggufbpe.data.corpora.storage import LocalFolder, LocalOutput

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

    def create(self: LocalFolder, name: str) -> LocalOutput:
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


# Of users: Spark's names, names of shards that nothing here wrote, a list of other inputs, another's manifest.
SPARED = (
    "part-00000-uuid.snappy.parquet",
    "part-00000-uuid.c000.snappy.parquet",
    "part-0.arrow",
    "part-00000.txt",
)
IN_THE_WAY = ("part-00000.parquet", "part-00000.bin", "inputs.jsonl", "manifest.json", "unfinished.json")


@pytest.mark.parametrize("line", ["nonsense\n", LINE])
def test_files_of_others_stay(line: str, folder: Path, tok: Tokenizer) -> None:
    for name in SPARED:
        (folder / name).write_text("mine")
    (folder / "a.jsonl").write_text(LINE + line)
    if line != LINE:
        with pytest.raises(CorpusError, match="line 2"):
            encode_corpus(folder / "a.jsonl", tok, folder)
        assert sorted(files_in(folder)) == sorted(["a.jsonl", *SPARED])
        return
    for force in (False, True):
        assert encode_corpus(folder / "a.jsonl", tok, folder, force=force).documents == 2
    assert {files_in(folder)[name] for name in SPARED} == {b"mine"}


@pytest.mark.parametrize("name", IN_THE_WAY)
@pytest.mark.parametrize("options", [{}, {"force": True}, {"resume": True}])
def test_files_of_others_with_names_of_shards_are_refused(
    name: str, options: dict[str, bool], folder: Path, tok: Tokenizer
) -> None:
    (folder / name).write_text('{"version": 2, "name": "mine"}\n')
    before = files_in(folder)
    message = f"{name} has the name of a file that encoding writes; give another folder"
    with pytest.raises(FileExistsError, match=message):
        encode_corpus(folder / "a.jsonl", tok, folder, **options)  # type: ignore[arg-type]
    assert files_in(folder) == before


def test_the_list_of_inputs_of_a_run_that_was_killed_is_replaced(folder: Path, tok: Tokenizer) -> None:
    """It is written first."""
    out = folder.parent / "out"
    encode_corpus(folder, tok, out)
    for name in ("manifest.json", "part-00000.bin", "part-00000.idx"):
        (out / name).unlink()
    assert encode_corpus(folder, tok, out).documents == 1


def test_a_finished_run_that_lacks_a_shard_does_not_go_on(folder: Path, tok: Tokenizer) -> None:
    """As one whose shards were being removed by force when it was killed."""
    out = folder.parent / "out"
    encode_corpus(folder, tok, out)
    (out / "part-00000.bin").unlink()
    with pytest.raises(
        CorpusError, match=r"part-00000\.bin: not the file that was written; force=True begins anew"
    ):
        encode_corpus(folder, tok, out, resume=True)
    assert encode_corpus(folder, tok, out, force=True).documents == 1


@pytest.mark.parametrize("form", ["megatron", "parquet"])
def test_shards_in_a_folder_are_no_texts(form: str, folder: Path, tok: Tokenizer, run: Run) -> None:
    """Whoever reads the folder: the run that wrote them, another one, `train`."""
    found = encode_corpus(folder, tok, folder / "out", format=form)
    assert (found.documents, +found.skipped) == (1, Counter())
    number = len(list((folder / "out").iterdir()))
    again = encode_corpus(folder, tok, folder / "out", format=form, force=True)
    other = encode_corpus(folder, tok, folder.parent / "other")
    for found in (again, other):
        assert (found.documents, +found.skipped) == (1, Counter({"written by ggufbpe encode": number}))
    result = run("train", folder, "--vocab-size", "257", "-o", folder.parent / "small.gguf")
    assert (result.code, f"{number} written by ggufbpe encode" in result.err) == (0, True)
    counted = json.loads(run("count", "-m", GPT2, folder, "--json").out)
    assert (len(counted["files"]), counted["skipped"]) == (1, {"written by ggufbpe encode": number})


def test_texts_in_the_folder_of_shards_are_read(folder: Path, tok: Tokenizer) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "b.jsonl").write_text(LINE)
    for options in ({}, {"resume": True}, {"force": True}):
        assert encode_corpus(folder, tok, folder / "out", **options).documents == 2  # type: ignore[arg-type]


def test_shards_behind_a_url_are_no_texts(tok: Tokenizer) -> None:
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").pipe_file("/shards/a.jsonl", LINE.encode())
    for force in (False, True):
        found = encode_corpus("memory://shards", tok, "memory://shards/out", format="npy", force=force)
        assert found.documents == 1
    fsspec.filesystem("memory").pipe_file("/shards/out/manifest.json", b"{}")
    names = [file.path for file in files_of(["memory://shards/out"], Counter(), raised)]
    assert "memory:///shards/out/inputs.jsonl" in names


def test_shards_at_the_root_of_a_file_system_are_no_texts(folder: Path, tok: Tokenizer) -> None:
    """Of a zip archive, where no name begins with a slash."""
    pytest.importorskip("fsspec")
    encode_corpus(folder, tok, folder.parent / "out")
    archive = shutil.make_archive(str(folder.parent / "shards"), "zip", folder.parent / "out")
    skipped: Counter[str] = Counter()
    assert list(files_of([f"zip://::{archive}"], skipped, raised)) == []
    assert skipped == {"written by ggufbpe encode": len(files_in(folder.parent / "out"))}


def test_files_that_are_named_as_shards_are_texts_elsewhere(folder: Path) -> None:
    """A manifest is ours by how it begins: `inputs.jsonl` beside another one is a plausible data set."""
    names = ["a.jsonl", "inputs.jsonl", "manifest.json", "part-00000.txt"]
    for name in names[1:]:
        (folder / name).write_text(LINE)
    found = files_of([str(folder)], Counter(), raised)
    assert [Path(file.path).name for file in found] == names
