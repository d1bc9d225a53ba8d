"""The names of the files of shards."""

from __future__ import annotations

import pytest

from ggufbpe.data.corpora.shard_formats import FORMS
from ggufbpe.data.corpora.shard_names import shards_among, written_among


def test_the_files_of_every_form_are_known() -> None:
    for form in FORMS.values():
        suffixes = [form.suffix, *form.indexes]
        infixes = ["", ".labels", ".mask", ".position_ids", ".cu_seqlens"]
        names = [f"part-00000{infix}{suffix}" for infix in infixes for suffix in suffixes]
        assert written_among(names) == names
    assert written_among(["part-123456.ds.loss"]) == ["part-123456.ds.loss"]


def test_other_names_are_not_known() -> None:
    spark = ["part-00000-uuid.snappy.parquet", "part-00000-uuid.c000.snappy.parquet"]
    assert written_among([*spark, "part-0.bin", "part-00000.txt", "part-00000.bin.gz", "other.bin"]) == []


@pytest.mark.parametrize(
    ("head", "is_ours"),
    [
        (b'{\n "version": 1,\n "format": "npy",\n', True),
        (b'{"version":2,"format":"npy"}', True),
        (b'{"version": 1, "name": "mine"}', False),
        (b"{}", False),
        (b"", False),
    ],
)
def test_shards_are_told_by_the_files_beside_them(head: bytes, is_ours: bool) -> None:
    shards = {"inputs.jsonl", "manifest.json", "part-00000.bin"}
    found = shards_among([*shards, "a.txt", "part-00000.txt"], lambda name: head)
    assert found == (shards if is_ours else frozenset())
    assert shards_among(["inputs.jsonl", "part-00000.bin"], lambda name: head) == frozenset()
