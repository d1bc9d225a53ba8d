"""The manifest of shards, and the state of a run that is not finished."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ggufbpe.data.corpora.chunks import CorpusPlace
from ggufbpe.data.corpora.document_notes import DocumentFacts
from ggufbpe.data.corpora.hashed_files import FileFacts
from ggufbpe.data.corpora.manifest import (
    RunState,
    Shard,
    Tail,
    begin_run,
    changed_input,
    changed_setting,
    finish,
    has_no_shards,
    read_inputs,
    read_manifest,
    summary_of_inputs,
    totals,
    unfinished,
    written_names,
)
from ggufbpe.data.corpora.records import CorpusError
from ggufbpe.data.corpora.shard_reader import EncodedCorpus
from ggufbpe.data.corpora.storage import Input, LocalFolder, folder_at

FILES = [FileFacts("part-00000.bin", 20, "ab"), FileFacts("part-00000.idx", 9, "cd")]
FIRST = Shard("part-00000", 2, 3, 10, 40, 1, CorpusPlace(), 0, FILES)
SECOND = Shard("part-00001", 5, 4, 7, 30, 0, CorpusPlace(1, 100, 3), 6, [])
HEADER = {
    "version": 2,
    "format": "npy",
    "dtype": "uint16",
    "tokenizer": {"name": "x"},
    "settings": {"eos": True},
}
STATE = RunState(HEADER, [FIRST, SECOND], CorpusPlace(2, 5, 1), [7, 8])


def test_an_unfinished_run_is_read_back(tmp_path: Path) -> None:
    folder = folder_at(str(tmp_path))
    assert unfinished(folder) is None
    STATE.write(folder)
    assert unfinished(folder) == STATE
    with pytest.raises(CorpusError, match="encoding was not finished"):
        read_manifest(folder)


def test_a_finished_shard_is_added_to_an_unfinished_run(tmp_path: Path) -> None:
    """A kill while it is added leaves the run as it was before."""
    folder = LocalFolder(str(tmp_path))
    before = STATE._replace(shards=[FIRST], place=CorpusPlace(1), carry=[5])
    before.write(folder)
    begun = (tmp_path / "unfinished.json").read_bytes()
    folder.append("unfinished.json", STATE.last_shard())
    assert unfinished(folder) == STATE
    data = (tmp_path / "unfinished.json").read_bytes()
    third = STATE._replace(shards=[*STATE.shards, FIRST])
    for cut in range(len(begun), len(data) - 1):
        (tmp_path / "unfinished.json").write_bytes(data[:cut])
        assert unfinished(folder) == before
        (tmp_path / "unfinished.json").write_bytes(data[:cut] + bytes(len(data) - cut - 1) + b"\n")
        assert unfinished(folder) == before
    for line in (data[len(begun) : -9], b"[]", b"[" * 100_000):
        (tmp_path / "unfinished.json").write_bytes(begun + line + b"\n" + third.last_shard())
        with pytest.raises(CorpusError, match=r"unfinished\.json: not what ggufbpe writes"):
            unfinished(folder)


def test_a_finished_run(tmp_path: Path) -> None:
    folder = folder_at(str(tmp_path))
    with pytest.raises(CorpusError, match=r"there is no manifest\.json"):
        read_manifest(folder)
    STATE.write(folder)
    content = finish(folder, STATE, Tail(1, 9, 2, [5, 6, 7]))
    assert folder.names() == ["manifest.json"]
    sums = {name: content[name] for name in ("documents", "rows", "tokens", "text_bytes", "bad_records")}
    assert sums == {"documents": 8, "rows": 7, "tokens": 17, "text_bytes": 79, "bad_records": 3}
    assert content["left_over_tokens"] == 3
    assert not {"lengths", "longest", "notes"} & content.keys()
    assert read_manifest(folder) == (json.loads((tmp_path / "manifest.json").read_bytes()), STATE.shards)


@pytest.mark.parametrize("tail", [Tail(0, 0, 0, []), Tail(1, 9, 0, [5], DocumentFacts({"1": 1}, 1))])
def test_lengths_are_those_of_all_documents(tail: Tail, tmp_path: Path) -> None:
    counted = FIRST._replace(lengths={"4": 2}, longest=3)
    content = finish(folder_at(str(tmp_path)), STATE._replace(shards=[counted, counted]), tail)
    assert content["lengths"] == {**({"1": 1} if tail.documents else {}), "4": 4}
    assert content["longest"] == 3


def test_totals() -> None:
    assert totals([]) == dict.fromkeys(("documents", "rows", "tokens", "text_bytes", "bad_records"), 0)
    assert totals([FIRST, SECOND])["tokens"] == 17


DAMAGED = {
    b"{": "not JSON",
    b'{"version": 1}': "not of version 2",
    b'{"version": 2}': "not what ggufbpe writes",
    b'{"version": 2, "shards": [{"name": "x"}]}': "not what ggufbpe writes",
    b'{"version": 2, "shards": [], "next": {"place": {}, "carry": []}}': "not what ggufbpe writes",
    json.dumps({**HEADER, "shards": [{"name": "x"}]}).encode(): "not what ggufbpe writes",
    json.dumps({**HEADER, "shards": []}).encode(): "not what ggufbpe writes",
    json.dumps({**HEADER, "tokenizer": 5, "shards": []}).encode(): "not what ggufbpe writes",
    **dict.fromkeys((b"[]", b"5", b"null", b"[" * 100_000), "not what ggufbpe writes"),
}


@pytest.mark.parametrize("data", DAMAGED, ids=lambda data: data[:60].decode())
def test_damaged_manifests(tmp_path: Path, data: bytes) -> None:
    for name, read in (("manifest.json", read_manifest), ("unfinished.json", unfinished)):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(CorpusError, match=f"{name}: {DAMAGED[data]}"):
            read(folder_at(str(tmp_path)))  # type: ignore[operator]


@pytest.mark.parametrize("line", [STATE.last_shard(), b"nonsense"])
def test_nothing_is_added_to_a_manifest(line: bytes, tmp_path: Path) -> None:
    folder = LocalFolder(str(tmp_path))
    finish(folder, STATE, Tail(0, 0, 0, []))
    folder.append("manifest.json", line)
    with pytest.raises(CorpusError, match=r"manifest\.json: not what ggufbpe writes"):
        read_manifest(folder)


@pytest.mark.parametrize(
    "change",
    [{"format": "odd"}, {"settings": {}}, {"settings": {"odd": 1}}, {"tokenizer": {}}],
    ids=json.dumps,
)
def test_a_manifest_whose_header_is_damaged(change: dict[str, Any], tmp_path: Path) -> None:
    folder = folder_at(str(tmp_path))
    finish(folder, STATE._replace(header={**HEADER, **change}), Tail(0, 0, 0, []))
    with pytest.raises(CorpusError, match=r"manifest\.json: not what ggufbpe writes"):
        EncodedCorpus.open(tmp_path)


@pytest.mark.parametrize("data", [b"[]", b"x", b"5", b'{"path": "a"}', b"[" * 100_000])
def test_a_damaged_list_of_inputs(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "inputs.jsonl").write_bytes(data)
    with pytest.raises(CorpusError, match=r"inputs\.jsonl: not what ggufbpe writes"):
        read_inputs(folder_at(str(tmp_path)))


A, B = Input("a", 1, "x"), Input("b", 2, "y")
CHANGES = [
    ([A, B], [A, B], ""),
    ([A, B], [A], "b is gone"),
    ([A], [A, B], "b is new"),
    ([A, B], [A, B._replace(version="z")], "b was changed"),
    ([A, B], [B, A], "the order or number of the inputs has changed"),
    ([A, A, B], [A, B], "the order or number of the inputs has changed"),
    ([A, A, B], [A, B, B], "the order or number of the inputs has changed"),
    ([A, B], [A._replace(path="./a"), B._replace(path=os.path.abspath("b"))], ""),
    ([A], [A._replace(path="./a", size=2)], "./a was changed"),
    ([A._replace(path="s3://b/c//d")], [A._replace(path="s3://b/c/d")], "s3://b/c//d is gone"),
]


@pytest.mark.parametrize(("before", "now", "change"), CHANGES)
def test_changed_input(before: list[Input], now: list[Input], change: str) -> None:
    assert changed_input(before, now) == change


def test_inputs(tmp_path: Path) -> None:
    folder = folder_at(str(tmp_path))
    begin_run(folder, RunState(HEADER, []), [A, B])
    assert read_inputs(folder) == [A, B]
    assert has_no_shards(folder)
    told = summary_of_inputs([A, B])
    assert (told["files"], told["bytes"], len(told["sha256"])) == (2, 3, 64)
    assert summary_of_inputs([B, A])["sha256"] != told["sha256"]


def test_a_new_run_replaces_what_another_wrote(tmp_path: Path) -> None:
    folder = folder_at(str(tmp_path))
    for name in ("part-00000.bin", "manifest.json", "notes.txt"):
        (tmp_path / name).touch()
    begin_run(folder, RunState({"version": 2}, []), [A])
    assert folder.names() == ["inputs.jsonl", "notes.txt", "unfinished.json"]
    begin_run(folder, STATE, [A])
    assert not has_no_shards(folder)
    (tmp_path / "unfinished.json").write_text("nonsense")
    assert not has_no_shards(folder)


def test_a_changed_setting_is_named() -> None:
    before = {"format": "npy", "settings": {"eos": True, "padding": 3}}
    assert changed_setting(before, before) == ""
    assert changed_setting(before, {"format": "arrow"}) == "format npy, not arrow"
    assert changed_setting(before, {"settings": {"eos": False}}) == "eos True, not False"
    assert changed_setting(before, {"settings": {"padding": None}}) == "whole True, not False"


def test_written_names(tmp_path: Path) -> None:
    names = [
        "manifest.json",
        "inputs.jsonl",
        "part-00000.bin",
        "part-00000.txt",
        "other.bin",
        "part-00000.idx",
    ]
    for name in names:
        (tmp_path / name).touch()
    assert written_names(folder_at(str(tmp_path))) == [
        "inputs.jsonl",
        "manifest.json",
        "part-00000.bin",
        "part-00000.idx",
    ]
