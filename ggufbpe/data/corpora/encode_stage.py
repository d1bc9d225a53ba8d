"""Encoding as a step in the pipelines of other libraries: batches of `datasets` and Ray, documents of datatrove."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..._util.errors import printable
from ...models.tokenizer_model import NO_TOKEN
from ...tokenizer import Tokenizer
from ...tokenizer.inputs import Model, tokenizer_of
from .documents import may_lack_tokens
from .records import CorpusError, text_bytes

_KEPT = 4  # tokenizers of a process
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
        self._text_column, self._id_column = text_column, id_column
        self._parse_special = parse_special
        self._may_lack_tokens = may_lack_tokens(self._tokenizer)
        self._prefix_ids = self._added(bos, self._tokenizer.bos_id, "BOS")
        self._suffix_ids = self._added(eos, self._tokenizer.eos_id, "EOS")

    def __getstate__(self) -> dict[str, Any]:
        tokenizer = self._tokenizer
        return {**self.__dict__, "_tokenizer": (tokenizer.fingerprint, pickle.dumps(tokenizer, 5))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        fingerprint, content = state["_tokenizer"]
        self.__dict__.update(state, _tokenizer=opened_once(fingerprint, lambda: content))

    def _added(self, is_wanted: bool, token: int | None, name: str) -> list[int]:
        if is_wanted and token is None:
            raise ValueError(f"the model has no {name} token; leave it out ({name.lower()}=False)")
        return [token] if is_wanted and token is not None else []

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Return a batch, columns by name, with the ids of each text.

        `KeyError` where it lacks the column of texts, `CorpusError` where a row has no text. `TypeError` for a single
        record, as `datasets` gives without `batched=True`, and for a table of pyarrow.
        """
        name = printable(self._text_column)
        if not hasattr(batch, "keys"):
            raise TypeError(
                f"the batch is a {type(batch).__name__}, not columns by name; "
                "Ray gives these with batch_format='numpy', `datasets` with with_format(None)"
            )
        if self._text_column not in batch:
            there = ", ".join(map(printable, batch)) or "none"
            raise KeyError(
                f"there is no column {name}; text_column=NAME names another one; there are {there}"
            )
        texts = batch[self._text_column]
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
        texts = []
        for index, value in enumerate(values):
            try:
                texts.append(text_bytes(value, self._text_column))
            except ValueError as error:
                raise CorpusError(f"{name_of(index)}: {error}") from None
        rows = self._tokenizer.encode_batch(
            texts, add_special=False, parse_special=self._parse_special, threads=1
        )
        for index, ids in enumerate(rows) if self._may_lack_tokens else ():
            if NO_TOKEN in ids:  # llama.cpp gives -1, which is no id to be trained on
                raise CorpusError(
                    f"{name_of(index)}: a part of it has no token, and the model has no unknown token"
                )
        return [[*self._prefix_ids, *ids, *self._suffix_ids] for ids in rows]
