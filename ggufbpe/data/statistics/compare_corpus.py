"""Compares in numbers how tokenizers split a corpus.

    text_groups.py -> batches of texts -> measure.py -> Stats -> plots.py, the command

`stats` runs the steps. The module is not called `stats`, since that is the public name of the function.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from ..._util.progress import OnProgress, Progress
from ...errors import printable
from ...tokenizer.chunking import blocks
from ...tokenizer.inputs import Model, tokenizers_of
from ..corpora.corpus_files import ignored_by_git
from ..corpora.records import Report, raised
from .measure import Measurer
from .measure import Measures as Measures
from .measure import Stats as Stats
from .measure import Usage as Usage
from .text_groups import GROUPINGS, Reading, batches


def stats(
    models: Model | Iterable[Model] | Mapping[str, Model],
    corpus: str | os.PathLike[str] | IO[bytes] | Iterable[object] | Mapping[str, Any],
    *,
    by: str = "file",
    by_field: str | None = None,
    field: str | None = None,
    parse_special: bool = True,
    add_bos: bool = True,
    report: Report | None = None,
    progress: OnProgress | None = None,
    read_ignored: bool = True,
) -> Stats:
    """Measure how tokenizers split a corpus: bytes and characters per token, tokens per word, use of the vocabulary.

    Returns `Stats`, with a row for each group and tokenizer.

    `models` is one or several of `Tokenizer` and paths of GGUF files; a mapping gives them names. `corpus` has
    texts (`str`), files and directories (`pathlib.Path`), and binary streams, or is one of them; a mapping has such a
    corpus for each group. Bytes need not be UTF-8. Only a block of text and numbers are held in memory.

    `by` names the groups: each "file", each "folder" (the first below a given directory), each "extension", or
    "total" for none; `by_field` takes a field of JSON lines instead, such as their language. `field` is their text:
    None is "text", in files named .jsonl or .ndjson; otherwise every file is JSON lines. `add_bos` counts BOS (and EOS)
    with each text if llama-tokenize adds it; `parse_special` takes the text of control tokens for these tokens.

    A file that cannot be read raises an exception, unless `report(name, error)` is given to receive it. `progress` is
    called with a `Progress` in bytes of files. Without `read_ignored`,
    files that git ignores in a repository's directories are left out, as in the command. `ValueError` for options that
    do not exist, `TypeError` for anything that is not a corpus, `GGUFError` for models that cannot be used.

    >>> [row] = stats("gpt2.gguf", ["Hello world, it's naïve"]).total
    >>> row.tokens, row.characters, row.words, row.tokens_per_word
    (6, 23, 4, 1.5)
    """
    if by not in GROUPINGS:
        raise ValueError(f"by must be one of {', '.join(GROUPINGS)}, not {printable(str(by))}")
    named = tokenizers_of(models)
    measurer = Measurer(named, parse_special, add_bos)
    skipped: Counter[str] = Counter()
    reading = Reading(by, by_field, field, skipped, report or raised, progress or _silent)
    if not read_ignored:
        reading = reading._replace(ignored_in=ignored_by_git)

    def cut(stream: Any) -> Iterator[bytes]:
        return blocks(stream, named.values(), parse_special, continues=True)

    for batch in batches(corpus, reading, cut):
        measurer.add(batch)
    return measurer.result(skipped)


def _silent(progress: Progress) -> None:
    pass
