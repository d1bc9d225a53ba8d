"""The names of the files that `encode_corpus` writes, by which they are told from the texts of a corpus."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

MANIFEST, UNFINISHED, INPUTS = "manifest.json", "unfinished.json", "inputs.jsonl"
SUFFIXES = (".bin", ".idx", ".ds", ".ds.index", ".ds.metadata", ".ds.loss", ".npy", ".parquet", ".arrow")
_SHARD = re.compile(r"part-\d{5,}(\.[a-z_]+)+")  # Spark's files have a UUID behind the number
_BEGINNING = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"format"\s*:\s*"')
HEAD = 64  # bytes of a manifest that are looked at

HeadOf = Callable[[str], bytes]  # the first bytes of a file, by its name


def written_among(names: Iterable[str]) -> list[str]:
    """Those of the names in a folder of shards that are of files which `encode_corpus` writes.

    >>> written_among(["a.jsonl", "part-00000.bin", "inputs.jsonl"])
    ['part-00000.bin', 'inputs.jsonl']
    """
    own = (MANIFEST, UNFINISHED, INPUTS)
    return [name for name in names if name in own or (_SHARD.fullmatch(name) and name.endswith(SUFFIXES))]


def has_manifest(names: Collection[str], head_of: HeadOf) -> bool:
    """Whether one of the files in a folder is a manifest that `encode_corpus` wrote, by how it begins."""
    return any(name in names and _BEGINNING.match(head_of(name)) for name in (MANIFEST, UNFINISHED))


def shards_among(names: Iterable[str], head_of: HeadOf) -> frozenset[str]:
    """The files in a folder that `encode_corpus` wrote, by the names of all; none without its list of inputs."""
    there = set(names)
    if INPUTS not in there or not has_manifest(there, head_of):
        return frozenset()
    return frozenset(written_among(there))
