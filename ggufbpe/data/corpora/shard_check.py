"""Checks shards against their manifest and their tokenizer: `ggufbpe check`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..._util.arguments import integer
from ..._util.verdicts import ERROR, HEALTHY, WARNING
from ...tokenizer import Tokenizer
from ...tokenizer.inputs import Model, tokenizer_of
from .byte_formats import Ids
from .chunk_encoder import ChunkEncoder
from .chunks import ChunkReader
from .documents import Options
from .hashed_files import file_hash
from .manifest import Shard, read_inputs
from .marked_ids import BOUNDARIES, IDS, POSITIONS, arrays_of, values_of
from .shard_formats import count_rows
from .shard_reader import EncodedCorpus, wrong_tokenizer
from .storage import ChangedError
from .whole_rows import with_padding

_MOST_SHARDS = 8  # of which a sample is taken


class Checked(NamedTuple):
    """The result of `check_corpus`.

    `shards` is the number of shards, and `problems` are what is wrong with them, each with the file that it is about.
    `sampled` counts the documents that were encoded again, and `not_sampled` says why not all of the sample was; "" if
    all of it was, or if no model was given.
    """

    shards: int
    problems: list[str]
    sampled: int
    not_sampled: str

    @property
    def is_right(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    @property
    def is_compared(self) -> bool:
        """Whether ids were compared, or nobody asked for it."""
        return self.sampled > 0 or not self.not_sampled

    @property
    def verdict(self) -> str:
        """The result in a word: "healthy", "error", or "warning" if ids were to be compared and were not."""
        if self.problems:
            return ERROR
        return HEALTHY if self.is_compared else WARNING

    def to_dict(self) -> dict[str, Any]:
        """What `ggufbpe check --json` prints."""
        return {"is_right": self.is_right, **self._asdict()}


def check_corpus(output: str | os.PathLike[str], model: Model | None = None, *, sample: int = 100) -> Checked:
    """Check shards against their manifest, and with a model a sample of documents against its tokenizer.

    Returns `Checked`: the number of shards, the problems found, and the number of documents encoded again.

    Each file must have the hash in the manifest, and each index its number of rows and ids. The first `sample`
    documents of up to eight shards are read from the corpus and encoded again, unless an input has changed.
    `ValueError` for a `sample` below 1.
    """
    integer("sample", sample, least=1)
    corpus = EncodedCorpus.open(output)
    problems = [problem for shard in corpus.shards for problem in _problems_of(corpus, shard)]
    problems += _wrong_sums(corpus)
    sampled, not_sampled = 0, ""
    if model is not None and not problems:
        tokenizer = tokenizer_of(model)
        problems = wrong_tokenizer(corpus, tokenizer)
        if not problems:
            sampled, not_sampled, problems = _sample_problems(corpus, tokenizer, sample)
    return Checked(len(corpus.shards), problems, sampled, not_sampled)


def _problems_of(corpus: EncodedCorpus, shard: Shard) -> Iterator[str]:
    is_whole = True
    for facts in shard.files:
        problem = "missing"
        with suppress(FileNotFoundError), corpus.folder.open(facts.name) as file:
            problem = "" if file_hash(file) == facts.sha256 else "not the bytes that were written"
        if problem:
            is_whole = False
            yield f"{facts.name}: {problem}"
    if is_whole:
        rows, tokens = count_rows(corpus.form, corpus.folder, shard.name, corpus.layout)
        if (rows, tokens) != (shard.rows, shard.tokens):
            yield (
                f"{shard.name}: {rows} rows and {tokens} ids, where the manifest says {shard.rows} and {shard.tokens}"
            )


def _wrong_sums(corpus: EncodedCorpus) -> Iterator[str]:
    for name in ("rows", "tokens"):
        total = sum(getattr(shard, name) for shard in corpus.shards)
        if total != corpus.manifest[name]:
            yield f"manifest.json: {corpus.manifest[name]} {name}, where its shards have {total}"


# ---- a sample, encoded once more ----------------------------------------------------------------------


def _sample_problems(corpus: EncodedCorpus, tokenizer: Tokenizer, count: int) -> tuple[int, str, list[str]]:
    """How many documents were encoded again, why no more, and which shards have other ids.

    These are the first `count` documents of some shards, spread over all.
    """
    looked_at = 0
    problems: list[str] = []
    shards = corpus.shards
    step = max(-(-len(shards) // _MOST_SHARDS), 1)
    for shard in shards[::step]:
        wanted = min(count, shard.documents)
        try:
            documents = [ids for ids, _ in zip(_encoded_again(corpus, tokenizer, shard), range(wanted))]
        except OSError as error:
            return looked_at, f"{error.filename}: {error.strerror}", problems
        except ChangedError as error:
            return looked_at, str(error), problems
        again = np.concatenate([np.zeros(0, corpus.layout.held), *documents])
        for array in arrays_of(corpus.layout).keys() - {POSITIONS, BOUNDARIES}:
            there = _beginning_of(corpus, shard, shard.carried + len(again), array)[shard.carried :]
            values = values_of(again, array, corpus.layout) if corpus.layout.is_marked else again
            if not np.array_equal(values[: len(there)], there) or (
                corpus.layout.window is None and len(there) < len(again)
            ):
                what = "ids" if array == IDS else array
                problems.append(
                    f"{shard.name}: not the {what} that the tokenizer gives for its first documents"
                )
        looked_at += len(documents)
    return looked_at, "", problems


def _encoded_again(corpus: EncodedCorpus, tokenizer: Tokenizer, shard: Shard) -> Iterator[npt.NDArray[Any]]:
    """The ids of documents, from the first of a shard on."""
    options = Options(**corpus.manifest["settings"])
    encoder = ChunkEncoder(tokenizer, options, corpus.layout)
    nothing = np.zeros(0, corpus.layout.held)
    parts = [nothing]  # of a document
    used = shard.carried  # of a row; always less than one
    for chunk in ChunkReader(tokenizer, read_inputs(corpus.folder), options).chunks(shard.start):
        encoded = encoder.encode(chunk)
        if corpus.layout.padding is not None:
            encoded = with_padding(encoded, used, corpus.layout)
            used = (used + int(encoded.lengths.sum())) % (corpus.layout.window or 1)
        ids = Ids(encoded.ids)
        for length in encoded.lengths.tolist():
            yield np.concatenate([*parts, *ids.take(length)])
            parts = [nothing]
        parts += ids.rest()


def _beginning_of(corpus: EncodedCorpus, shard: Shard, size: int, array: str) -> npt.NDArray[Any]:
    """The first `size` values of one of a shard's arrays, of all rows together."""
    number = sum(one.rows for one in corpus.shards[: corpus.shards.index(shard)])
    rows, count = [np.zeros(0, arrays_of(corpus.layout)[array])], 0
    for row, _ in zip(corpus.rows(number, array), range(shard.rows)):
        rows.append(row)
        count += len(row)
        if count >= size:
            break
    return np.concatenate(rows)[:size]
