"""Documents read from a corpus and encoded once more, to hold its shards to the tokenizer.

EncodedCorpus, inputs -> [this file] -> what differs
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..extras import imported
from ..tokenizer import Tokenizer
from .encode import Options, chunk_reader
from .encoding import ChunkEncoder, Document, without_records_before
from .manifest import Shard, read_inputs
from .output import EncodedCorpus
from .places import ChangedError

if TYPE_CHECKING:
    import numpy.typing as npt

_MOST_SHARDS = 8


def sample_problems(corpus: EncodedCorpus, tokenizer: Tokenizer, count: int) -> tuple[int, str, list[str]]:
    """How many documents were looked at, why no more, and which shards have other ids.

    The first `count` documents of some shards, spread over all.
    """
    numpy = imported("numpy", "corpora", "shards")
    looked_at = 0
    problems: list[str] = []
    shards = corpus.shards
    step = max(-(-len(shards) // _MOST_SHARDS), 1)
    for shard in shards[::step]:
        wanted = min(count, shard.documents)
        try:
            documents = [ids for ids, _ in zip(_encoded_again(corpus, tokenizer, shard), range(wanted))]
        except (OSError, ChangedError) as error:
            return looked_at, str(error), problems
        again = numpy.concatenate([numpy.zeros(0, corpus.described.dtype), *documents])
        there = _beginning_of(corpus, shard, shard.carried + len(again))[shard.carried :]
        if not numpy.array_equal(again[: len(there)], there) or (
            corpus.described.window is None and len(there) < len(again)
        ):
            problems.append(f"{shard.name}: not the ids that the tokenizer gives for its first documents")
        looked_at += len(documents)
    return looked_at, "", problems


def _encoded_again(corpus: EncodedCorpus, tokenizer: Tokenizer, shard: Shard) -> Iterator[npt.NDArray[Any]]:
    """The documents from the first of a shard on."""
    settings = dict(corpus.manifest["settings"])
    document = Document(*(settings.pop(name) for name in Document._fields))
    options = Options(document, **settings)
    encoder = ChunkEncoder(tokenizer, document, corpus.described.dtype)
    numpy = imported("numpy", "corpora", "shards")
    nothing = numpy.zeros(0, corpus.described.dtype)
    unfinished: list[Any] = []
    for chunk in chunk_reader(tokenizer, read_inputs(corpus.folder), options).chunks(shard.start):
        encoded = without_records_before(shard.start, encoder.encode(chunk), chunk)
        ids: npt.NDArray[Any] = numpy.concatenate([*unfinished, *encoded.ids, nothing])
        before = sum(map(len, unfinished))
        begin = 0
        for length in encoded.lengths.tolist():
            yield ids[begin : begin + length + before]
            begin += length + before
            before = 0
        unfinished = [ids[begin:]] if len(ids) > begin else []


def _beginning_of(corpus: EncodedCorpus, shard: Shard, size: int) -> npt.NDArray[Any]:
    """The first `size` ids of a shard, of all rows together."""
    numpy = imported("numpy", "corpora", "shards")
    number = sum(one.rows for one in corpus.shards[: corpus.shards.index(shard)])
    rows, found = [numpy.zeros(0, corpus.described.dtype)], 0
    for row, _ in zip(corpus.rows(number), range(shard.rows)):
        rows.append(row)
        found += len(row)
        if found >= size:
            break
    beginning: npt.NDArray[Any] = numpy.concatenate(rows)[:size]
    return beginning
