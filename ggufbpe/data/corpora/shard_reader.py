"""Reads shards: their ids, and their documents as text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._util.wording import counted
from ...tokenizer import Tokenizer
from ...tokenizer.inputs import Model, tokenizer_of
from .byte_formats import Layout
from .manifest import Shard, read_manifest
from .shard_formats import FORMS, document_ends, read_rows
from .storage import Folder, folder_at

if TYPE_CHECKING:
    import numpy.typing as npt


_KEPT = 64  # indexes of shards


class EncodedCorpus:
    """A folder of shards: what `encode_corpus` gives, and `EncodedCorpus.open` of a folder that it wrote."""

    def __init__(
        self, folder: Folder, content: dict[str, Any], shards: list[Shard], skipped: Mapping[str, int] = {}
    ) -> None:
        self.folder, self.manifest, self.shards = folder, content, shards
        self.skipped = skipped  # files left out of directories by this run, by kind; not in the manifest
        self.form = FORMS[content["format"]]
        self._ends: dict[str, Any] = {}  # of rows, by shard
        self.layout = Layout(content["dtype"], content["tokenizer"]["name"], content["settings"]["pack"])

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> EncodedCorpus:
        """The shards in a folder or at a URL. `CorpusError` if there are none, or encoding was not finished."""
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
                ends = self._ends_of(shard)
                yield from read_rows(self.form, self.folder, shard.name, self.layout, ends, start)
            start = max(start - shard.rows, 0)

    def _ends_of(self, shard: Shard) -> Any:
        """The ends of a shard's documents, read once unless many other shards are read meanwhile."""
        if shard.name not in self._ends:
            while len(self._ends) >= _KEPT:
                del self._ends[next(iter(self._ends))]
            self._ends[shard.name] = document_ends(self.form, self.folder, shard.name, self.layout)
        return self._ends[shard.name]

    def to_dict(self) -> dict[str, Any]:
        """What `ggufbpe encode --json` prints: the manifest."""
        return self.manifest

    def __repr__(self) -> str:
        return (
            f"<EncodedCorpus {self.manifest['format']}: {self.documents} documents, {self.tokens} tokens, "
            f"{counted(len(self.shards), 'shard')}>"
        )


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
    """Yield the documents of shards as text, from number `start` on; control tokens, such as EOS, are left out.

    The text is the one that was encoded, spaces and all, where the tokenizer keeps it: llama.cpp's clean-up of spaces,
    which is for answers, is not done. `ValueError` where the tokenizer is not that of the shards.
    """
    corpus, tokenizer = EncodedCorpus.open(output), tokenizer_of(model)
    if wrong := wrong_tokenizer(corpus, tokenizer):
        raise ValueError(f"{output}/{wrong[0]}")
    has_bos = corpus.manifest["settings"]["bos"] and corpus.layout.window is None
    for number, row in enumerate(islice(corpus.rows(start), count), start):
        ids = row.tolist()
        # A space that the model puts before a text is taken away at the beginning of ids alone.
        is_behind_bos = has_bos and ids[:1] == [tokenizer.bos_id]
        yield DecodedRow(number, ids, tokenizer.decode_bytes(ids[is_behind_bos:], clean_spaces=False))


def wrong_tokenizer(corpus: EncodedCorpus, tokenizer: Tokenizer) -> list[str]:
    """A problem if the shards were encoded with another tokenizer."""
    if tokenizer.fingerprint == corpus.manifest["tokenizer"]["fingerprint"]:
        return []
    return [f"manifest.json: the tokenizer was another one, that of {corpus.manifest['tokenizer']['name']}"]
