"""Counts words on a Ray cluster; the counts and their order are those of a single-machine run.

Each part of a file is counted in a task of Ray Data, and the counts are added up in order. Merges are learned on one
machine, whose memory holds the distinct words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...models.vocabulary import Vocabulary
from ..corpora.distributed import segment_size
from ..corpora.ray_machines import (
    causes_raised,
    connected,
    pyarrow,
    quiet_context,
    ray,
    ray_dataset,
    task_limit,
)
from .draft_vocabulary import Added, cutter
from .native_counting import count_natively, is_there
from .training_texts import CorpusOptions, FilePart, file_parts, files_at, texts_of_part
from .word_counts import Splitting, count_words


class Counting(NamedTuple):
    """What makes words of texts."""

    splitting: Splitting
    added: Added
    seed: Vocabulary | None


def counted_on_ray(
    address: str, paths: Sequence[str], reading: CorpusOptions, counting: Counting, workers: int | None
) -> Iterator[Mapping[str, int]]:
    """The words of each part of the files, in the order of first occurrence."""
    files = files_at(paths, reading)
    total = sum(file.size for file in files)
    with connected(address, workers):
        parts = file_parts(files, reading, segment_size(total, task_limit(workers)))
        shared = ray.put((reading._replace(progress=None, skipped=None), counting))
        makers = [partial(_counted, shared, number, part) for number, part in enumerate(parts)]
        if not makers:
            return
        last, read = -1, 0
        with quiet_context(), causes_raised():
            for table in ray_dataset("CountWords", makers, workers).iter_batches(
                batch_size=None, batch_format="pyarrow"
            ):
                for number in table["part"].unique().to_pylist():
                    if number < last:
                        raise AssertionError("the parts of the corpus are not in order")
                    read += sum(part.size for part in parts[last + 1 : number + 1])
                    last = number
                yield dict(zip(table["word"].to_pylist(), table["count"].to_pylist()))
                if reading.progress is not None:
                    reading.progress(read, total)


def _counted(shared: Any, number: int, part: FilePart) -> Iterator[Any]:
    """A table of the words of a part. In a task."""
    reading, (split, added, seed) = ray.get(shared)
    texts, cut = texts_of_part(part, reading), cutter(added, seed)
    if split.listed is None or not is_there():
        words = list(count_words(texts, split, cut).items())
    else:
        words = count_natively(texts, split, cut, threads=1).words()
    yield pyarrow.table(
        {
            "part": pyarrow.array([number] * len(words), pyarrow.int64()),
            "word": pyarrow.array([word for word, _ in words], pyarrow.large_string()),
            "count": pyarrow.array([count for _, count in words], pyarrow.int64()),
        }
    )
