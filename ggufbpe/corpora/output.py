"""Shards that were written: their documents again, and whether they are what the manifest and the tokenizer say.

folder -> [this file] -> ids, texts; findings
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ..inputs import Model, tokenizer_of
from ..tokenizer import Tokenizer
from .forms import FORMS, Description, count_rows, file_hash, rows_of
from .manifest import Shard, read_manifest
from .places import Folder, folder_at

if TYPE_CHECKING:
    import numpy.typing as npt


class EncodedCorpus:
    """A folder of shards: what `encode_corpus` gives, and `EncodedCorpus.open` of a folder that it wrote."""

    def __init__(self, folder: Folder, found: dict[str, Any], shards: list[Shard]) -> None:
        self.folder, self.manifest, self.shards = folder, found, shards
        self.form = FORMS[found["format"]]
        self.described = Description(found["dtype"], found["tokenizer"]["name"], found["settings"]["pack"])

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> EncodedCorpus:
        """The shards in a folder, or behind a URL. `CorpusError` where there are none, or encoding was not finished."""
        folder = folder_at(os.fspath(path))
        return cls(folder, *read_manifest(folder))

    @property
    def documents(self) -> int:
        """How many documents were encoded."""
        return int(self.manifest["documents"])

    @property
    def tokens(self) -> int:
        """How many ids the shards have."""
        return int(self.manifest["tokens"])

    @property
    def bad_records(self) -> int:
        """How many records were skipped."""
        return int(self.manifest["bad_records"])

    def __len__(self) -> int:
        """How many rows there are: documents, or windows of a fixed length."""
        return int(self.manifest["rows"])

    def __getitem__(self, number: int) -> npt.NDArray[Any]:
        """The ids of a row, EOS and all. `IndexError` where there is none."""
        if number < 0:
            number += len(self)
        rows = self.rows(number)
        if number < 0 or (row := next(rows, None)) is None:
            raise IndexError(f"there are {len(self)} rows")
        return row

    def rows(self, start: int = 0) -> Iterator[npt.NDArray[Any]]:
        """The ids of the rows from number `start` on."""
        for shard in self.shards:
            if start < shard.rows:
                yield from rows_of(self.form, self.folder, shard.name, self.described, start)
            start = max(start - shard.rows, 0)

    def to_dict(self) -> dict[str, Any]:
        """What `ggufbpe encode --json` prints: the manifest."""
        return self.manifest

    def __repr__(self) -> str:
        return (
            f"<EncodedCorpus {self.manifest['format']}: {self.documents} documents, {self.tokens} tokens, "
            f"{len(self.shards)} shards>"
        )


# ---- check ----------------------------------------------------------------------------------------------


class Checked(NamedTuple):
    """What `check_corpus` found."""

    shards: int
    problems: list[str]  # each with the file that it is about
    sampled: int  # documents that were read and encoded again
    not_sampled: str  # why none was, where a model was given

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """What `ggufbpe check --json` prints."""
        return {"is_right": self.is_right, **self._asdict()}


def check_corpus(output: str | os.PathLike[str], model: Model | None = None, *, sample: int = 100) -> Checked:
    """Hold shards to their manifest, and with a model a sample of documents to its tokenizer.

    Each file has the size and the hash of the manifest, each index the rows and ids. Of up to eight shards, the first
    `sample` documents are read from the corpus once more and encoded; where an input is not what it was, none is.
    """
    corpus = EncodedCorpus.open(output)
    problems = [problem for shard in corpus.shards for problem in _problems_of(corpus, shard)]
    problems += _wrong_sums(corpus)
    sampled, not_sampled = 0, ""
    if model is not None and not problems:
        from .sample import sample_problems

        tokenizer = tokenizer_of(model)
        problems = _wrong_tokenizer(corpus, tokenizer)
        if not problems:
            sampled, not_sampled, problems = sample_problems(corpus, tokenizer, sample)
    return Checked(len(corpus.shards), problems, sampled, not_sampled)


def _problems_of(corpus: EncodedCorpus, shard: Shard) -> Iterator[str]:
    is_whole = True
    for facts in shard.files:
        try:
            with corpus.folder.open(facts.name) as file:
                found = file_hash(file)
        except FileNotFoundError:
            found = "missing"
        if found != facts.sha256:
            is_whole = False
            yield (
                f"{facts.name}: missing"
                if found == "missing"
                else f"{facts.name}: not the bytes that were written"
            )
    if is_whole:
        rows, tokens = count_rows(corpus.form, corpus.folder, shard.name, corpus.described)
        if (rows, tokens) != (shard.rows, shard.tokens):
            yield (
                f"{shard.name}: {rows} rows and {tokens} ids, where the manifest says {shard.rows} and {shard.tokens}"
            )


def _wrong_sums(corpus: EncodedCorpus) -> Iterator[str]:
    for name in ("rows", "tokens"):
        found = sum(getattr(shard, name) for shard in corpus.shards)
        if found != corpus.manifest[name]:
            yield f"manifest.json: {corpus.manifest[name]} {name}, where its shards have {found}"


def _wrong_tokenizer(corpus: EncodedCorpus, tokenizer: Tokenizer) -> list[str]:
    if tokenizer.fingerprint == corpus.manifest["tokenizer"]["fingerprint"]:
        return []
    return [f"manifest.json: the tokenizer was another one, that of {corpus.manifest['tokenizer']['name']}"]


# ---- texts ----------------------------------------------------------------------------------------------


class DecodedRow(NamedTuple):
    """A row as text."""

    number: int
    ids: list[int]
    text: bytes

    def to_dict(self) -> dict[str, Any]:
        """What `ggufbpe decode --json` prints of it."""
        return {"number": self.number, "ids": self.ids, "text": self.text.decode("utf-8", "replace")}


def decode_corpus(
    output: str | os.PathLike[str], model: Model, *, start: int = 0, count: int | None = None
) -> Iterator[DecodedRow]:
    """The documents of shards as text, from number `start` on; control tokens, such as EOS, are left out.

    `ValueError` where the tokenizer is not that of the shards.
    """
    corpus, tokenizer = EncodedCorpus.open(output), tokenizer_of(model)
    if wrong := _wrong_tokenizer(corpus, tokenizer):
        raise ValueError(f"{output}/{wrong[0]}")
    for number, row in enumerate(islice(corpus.rows(start), count), start):
        ids = row.tolist()
        yield DecodedRow(number, ids, tokenizer.decode_bytes(ids))
