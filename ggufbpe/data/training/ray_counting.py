"""Counts words on a Ray cluster; the counts and their order are those of a single-machine run.

Each part of a file is counted in a task of Ray, and the counts are added up in order. Merges are learned on one
machine, whose memory holds the distinct words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from ...models.vocabulary import Vocabulary
from ..corpora.distributed import segment_size
from ..corpora.ray_machines import connected, ray, results_of, task_limit
from .draft_vocabulary import Added, cutter
from .native_counting import count_natively, is_there
from .training_texts import CorpusOptions, FilePart, file_parts, files_at, texts_of_part
from .word_counts import Splitting, count_words

Counting = tuple[Splitting, Added, Vocabulary | None]  # what makes words of texts; the last is that of a seed


def counted_on_ray(
    address: str, paths: Sequence[str], reading: CorpusOptions, counting: Counting, workers: int | None
) -> Iterator[Mapping[str, int]]:
    """The words of each part of the files, in the order of first occurrence."""
    files = files_at(paths, reading)
    total = sum(file.size for file in files)
    with connected(address, workers):
        parts = file_parts(files, reading, segment_size(total, task_limit(workers)))
        shared = ray.put((reading._replace(progress=None, skipped=None), counting))
        tasks = [partial(_counted, shared, part) for part in parts]
        read = 0
        with closing(results_of("CountWords", tasks, workers)) as counts:
            for part, words in zip(parts, counts):
                yield words
                read += part.size
                if reading.progress is not None:
                    reading.progress(read, total)


def _counted(shared: Any, part: FilePart) -> dict[str, int]:
    """In a task: the words of a part, in the order of first occurrence."""
    reading, (split, added, seed) = ray.get(shared)
    texts, cut = texts_of_part(part, reading), cutter(added, seed)
    if split.listed is None or not is_there():
        return count_words(texts, split, cut)
    return dict(count_natively(texts, split, cut, threads=1).words())
