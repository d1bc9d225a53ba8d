"""Reads shards: their ids, and their documents as text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby, islice, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._util.errors import printable
from ..._util.wording import counted
from ...tokenizer import Tokenizer
from ...tokenizer.inputs import Model, tokenizer_of
from .documents import Options
from .manifest import MANIFEST, Shard, damaged, read_manifest
from .marked_ids import BOUNDARIES, IDS, IGNORED, LABELS, MASK, arrays_of
from .shard_formats import FORMS, document_ends, read_rows
from .storage import Folder, folder_at

if TYPE_CHECKING:
    import numpy.typing as npt


_KEPT = 64  # indexes of shards


class EncodedCorpus:
    """A folder of shards: what `encode_corpus` gives, and `EncodedCorpus.open` of a folder that it wrote.

    `manifest` is the content of manifest.json, and `shards` are the `Shard`s that it lists. `skipped` counts the files
    that this run left out of directories, by kind. `folder`, `form` and `layout` say how to read the files.
    """

    def __init__(
        self, folder: Folder, content: dict[str, Any], shards: list[Shard], skipped: Mapping[str, int] = {}
    ) -> None:
        self.folder, self.manifest, self.shards = folder, content, shards
        self.skipped = skipped
        self._ends: dict[str, Any] = {}  # of rows, by shard
        try:
            self.form = FORMS[content["format"]]
            self.layout = Options(**content["settings"]).layout(
                content["dtype"], content["tokenizer"]["name"]
            )
        except (KeyError, TypeError):
            raise damaged(folder, MANIFEST) from None

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> EncodedCorpus:
        """The shards in a folder or at a URL. `CorpusError` if there are none, or encoding was not finished."""
        folder = folder_at(os.fsdecode(path))
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

    def rows(self, start: int = 0, array: str = IDS) -> Iterator[npt.NDArray[Any]]:
        """The ids of the rows from number `start` on, or another array that is beside them.

        That is "labels", "assistant_masks", "position_ids", or in tables "cu_seqlens". `ValueError` for one that these
        shards do not have.
        """
        there = [name for name in arrays_of(self.layout) if name != BOUNDARIES or self.form.ends is None]
        if array not in there:
            raise ValueError(f"the arrays of these shards are {', '.join(there)}, not {printable(array)}")
        return self._rows(start, array)

    def masks(self, start: int = 0) -> Iterator[list[int]]:
        """1 for each id that the assistant wrote, else 0, of the rows from number `start` on, in either form of a mask.

        `ValueError` if the shards have none.
        """
        if self.layout.mask is None:
            raise ValueError(f"{self.folder.name}: these shards have no mask of what the assistant wrote")
        array = LABELS if self.layout.mask == "labels" else MASK
        for row in self.rows(start, array):
            yield ((row != IGNORED) if array == LABELS else row).astype(int).tolist()

    def _rows(self, start: int, array: str) -> Iterator[npt.NDArray[Any]]:
        for shard in self.shards:
            if start < shard.rows:
                ends = self._ends_of(shard)
                yield from read_rows(self.form, self.folder, shard.name, self.layout, ends, start, array)
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


class MaskedRun(NamedTuple):
    """Consecutive ids of a row that are all the assistant's if `is_marked`, or else none of which is.

    `tokens` is the number of ids, and `text` the bytes that they stand for.
    """

    is_marked: bool
    tokens: int
    text: bytes


class DecodedRow(NamedTuple):
    """Row `number` of shards, from 0, with its `ids` and the bytes of its `text`, as `decode_corpus` yields it.

    If a mask was asked for, `mask` has 1 for each id that the assistant wrote, else 0, and `runs` divides the row by
    it; otherwise, `mask` is None and `runs` is empty.
    """

    number: int
    ids: list[int]
    text: bytes
    mask: list[int] | None = None
    runs: tuple[MaskedRun, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What `ggufbpe decode --json` prints of it."""
        row = {"number": self.number, "ids": self.ids, "text": self.text.decode("utf-8", "replace")}
        return row if self.mask is None else {**row, "mask": self.mask}


def decode_corpus(
    output: str | os.PathLike[str],
    model: Model,
    *,
    start: int = 0,
    count: int | None = None,
    special: bool = False,
    mask: bool = False,
) -> Iterator[DecodedRow]:
    """Yield the documents of shards as text, from number `start` on.

    Control tokens, such as EOS, are left out unless `special` is given. With `mask`, rows also have what the assistant
    wrote; `ValueError` for shards without a mask.

    The text is the one that was encoded, spaces and all, where the tokenizer keeps it: llama.cpp's clean-up of spaces,
    which is for answers, is not done. `ValueError` where the tokenizer is not that of the shards.
    """
    corpus, tokenizer = EncodedCorpus.open(output), tokenizer_of(model)
    if wrong := wrong_tokenizer(corpus, tokenizer):
        raise ValueError(f"{output}/{wrong[0]}")
    has_bos = corpus.manifest["settings"]["bos"] and corpus.layout.window is None

    def decoded(ids: list[int], begin: int = 0, end: int | None = None) -> bytes:
        """The text of a part of a row's ids."""
        # A space that the model puts before a text is taken away at the beginning of ids alone.
        first = int(has_bos and not special and ids[:1] == [tokenizer.bos_id])
        part = ids[max(begin, first) : end]
        return tokenizer.decode_bytes(
            part, unparse_special=special, clean_spaces=False, continues=begin > first
        )

    masks = corpus.masks(start) if mask else repeat(None)
    for number, (row, marks) in enumerate(islice(zip(corpus.rows(start), masks), count), start):
        ids = row.tolist()
        if marks is None:
            yield DecodedRow(number, ids, decoded(ids))
        else:
            runs = tuple(_runs(ids, marks, decoded))
            yield DecodedRow(number, ids, b"".join(run.text for run in runs), marks, runs)


def _runs(
    ids: list[int], mask: list[int], decoded: Callable[[list[int], int, int], bytes]
) -> Iterator[MaskedRun]:
    """The runs of a row, whose texts are together that of the row."""
    end = 0
    for one, same in groupby(mask):
        begin, end = end, end + len(list(same))
        yield MaskedRun(bool(one), end - begin, decoded(ids, begin, end))


def wrong_tokenizer(corpus: EncodedCorpus, tokenizer: Tokenizer) -> list[str]:
    """A problem if the shards were encoded with another tokenizer."""
    if tokenizer.fingerprint == corpus.manifest["tokenizer"].get("fingerprint"):
        return []
    return [f"manifest.json: the tokenizer was another one, that of {corpus.manifest['tokenizer']['name']}"]
