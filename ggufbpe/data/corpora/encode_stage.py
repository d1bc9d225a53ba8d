"""Encoding as a step in the pipelines of other libraries: batches of `datasets` and Ray, documents of datatrove."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..._util.errors import printable
from ...tokenizer import Tokenizer
from ...tokenizer.inputs import Model, tokenizer_of
from .byte_formats import Ids, Layout
from .chunk_encoder import ChunkEncoder
from .chunks import FIRST, Chunk
from .documents import Options
from .records import CorpusError

_KEPT = 4  # tokenizers of a process
_LAYOUT = Layout("uint32", "", None)
_opened: dict[str, Tokenizer] = {}


def opened_once(fingerprint: str, content: Callable[[], bytes]) -> Tokenizer:
    """The tokenizer of a fingerprint, made of its pickle the first time that this process wants it."""
    tokenizer = _opened.get(fingerprint)
    if tokenizer is None:
        while len(_opened) >= _KEPT:
            del _opened[next(iter(_opened))]
        tokenizer = _opened[fingerprint] = pickle.loads(content())
    return tokenizer


class EncodeStage:
    """Adds a column of ids to batches: `dataset.map(stage, batched=True)`, `dataset.map_batches(stage)`.

    `stage.documents` is a step of datatrove's, which adds the ids to the metadata of documents. It is pickled with what
    makes the tokenizer, so each process opens it once, and wherever it runs the ids are those of `encode_corpus`.
    """

    def __init__(
        self,
        model: Model,
        *,
        text_column: str = "text",
        id_column: str = "input_ids",
        bos: bool = False,
        eos: bool = True,
        parse_special: bool = False,
    ) -> None:
        """`ValueError` where the model has no token that is to be added."""
        self._tokenizer = tokenizer_of(model)
        self._id_column = id_column
        self._options = Options(text_column, bos=bos, eos=eos, parse_special=parse_special)
        self._encoder = ChunkEncoder(self._tokenizer, self._options, _LAYOUT)

    def __getstate__(self) -> dict[str, Any]:
        tokenizer = self._tokenizer
        return {
            "_tokenizer": (tokenizer.fingerprint, pickle.dumps(tokenizer, 5)),
            "_id_column": self._id_column,
            "_options": self._options,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        fingerprint, content = state["_tokenizer"]
        self.__dict__.update(state, _tokenizer=opened_once(fingerprint, lambda: content))
        self._encoder = ChunkEncoder(self._tokenizer, self._options, _LAYOUT)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Return a batch, columns by name, with the ids of each text.

        `KeyError` where it lacks the column of texts, `CorpusError` where a row has no text. `TypeError` for a single
        record, as `datasets` gives without `batched=True`, and for a table of pyarrow.
        """
        name = printable(self._options.text_column)
        if not hasattr(batch, "keys"):
            raise TypeError(
                f"the batch is a {type(batch).__name__}, not columns by name; "
                "Ray gives these with batch_format='numpy', `datasets` with with_format(None)"
            )
        if self._options.text_column not in batch:
            there = ", ".join(map(printable, batch)) or "none"
            raise KeyError(
                f"there is no column {name}; text_column=NAME names another one; there are {there}"
            )
        texts = batch[self._options.text_column]
        if isinstance(texts, (str, bytes)):
            raise TypeError(f"the column {name} is one text, not a batch: give `datasets` batched=True")
        return {**batch, self._id_column: self._ids(texts, lambda index: f"row {index + 1} of the batch")}

    def documents(self, data: Iterable[Any], rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Documents of datatrove's, with ids in their metadata. `CorpusError` for one without a text."""
        for document in data:
            self._add_ids(document)
            yield document

    def _add_ids(self, document: Any) -> None:
        [ids] = self._ids([document.text], lambda _: f"the document {printable(str(document.id))}")
        document.metadata[self._id_column] = ids

    def _ids(self, values: Iterable[object], name_of: Callable[[int], str]) -> list[list[int]]:
        """The ids of each text; an error has its name."""
        encoded = self._encoder.encode(Chunk("rows", [(value,) for value in values], FIRST, 0))
        for bad in encoded.bad:
            raise CorpusError(f"{name_of(bad.record)}: {bad.reason}")
        ids = Ids(encoded.ids)
        return [[token for part in ids.take(length) for token in part.tolist()] for length in encoded.lengths]
