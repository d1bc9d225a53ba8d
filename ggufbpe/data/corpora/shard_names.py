"""The names of the files that `encode_corpus` writes, by which they are told from the texts of a corpus."""

from __future__ import annotations

from collections.abc import Iterable

MANIFEST, UNFINISHED, INPUTS = "manifest.json", "unfinished.json", "inputs.jsonl"
SUFFIXES = (".bin", ".idx", ".ds", ".ds.index", ".ds.metadata", ".ds.loss", ".npy", ".parquet", ".arrow")


def written_among(names: Iterable[str]) -> list[str]:
    """Those of the names in a folder of shards that are of files which `encode_corpus` writes.

    >>> written_among(["a.jsonl", "part-00000.bin", "inputs.jsonl"])
    ['part-00000.bin', 'inputs.jsonl']
    """
    own = (MANIFEST, UNFINISHED, INPUTS)
    return [name for name in names if name in own or (name.startswith("part-") and name.endswith(SUFFIXES))]


def shards_among(names: Iterable[str]) -> frozenset[str]:
    """The files in a folder that `encode_corpus` wrote, by the names of all; none without its list of inputs."""
    there = set(names)
    if INPUTS not in there or there.isdisjoint((MANIFEST, UNFINISHED)):
        return frozenset()
    return frozenset(written_among(there))
