"""The names of the files of shards."""

from __future__ import annotations

from ggufbpe.data.corpora.shard_formats import FORMS
from ggufbpe.data.corpora.shard_names import shards_among, written_among


def test_the_files_of_every_form_are_known() -> None:
    for form in FORMS.values():
        names = [f"part-00000{suffix}" for suffix in (form.suffix, *form.indexes)]
        assert written_among(names) == names


def test_shards_are_told_by_the_files_beside_them() -> None:
    shards = {"inputs.jsonl", "manifest.json", "part-00000.bin"}
    assert shards_among([*shards, "a.txt", "part-00000.txt"]) == shards
    assert shards_among(["inputs.jsonl", "part-00000.bin"]) == frozenset()
