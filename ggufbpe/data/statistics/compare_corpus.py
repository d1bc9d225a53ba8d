"""Compares in numbers how tokenizers split a corpus.

    text_groups.py -> batches of texts -> measure.py -> Stats -> plots.py, the command

`stats` runs the steps. The module is not called `stats`, since that is the public name of the function.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from ..._util.errors import printable
from ..._util.progress import OnProgress
from ...tokenizer import Tokenizer
from ...tokenizer.chunking import chunks_of_stream
from ...tokenizer.inputs import Model, tokenizers_of
from ..corpora.chat_records import Preference
from ..corpora.corpus_files import ignored_by_git
from ..corpora.records import Report, raised
from .chat_prompts import prompts_maker, side_by_side
from .measure import Measurer
from .measure import Measures as Measures
from .measure import Stats as Stats
from .measure import Usage as Usage
from .text_groups import GROUPINGS, Reading, batches


def stats(
    models: Model | Iterable[Model] | Mapping[str, Model],
    corpus: os.PathLike[str] | IO[bytes] | Iterable[object] | Mapping[str, Any],
    *,
    by: str = "file",
    by_field: str | None = None,
    field: str | None = None,
    parse_special: bool = True,
    add_bos: bool = True,
    report: Report | None = None,
    progress: OnProgress | None = None,
    read_ignored: bool = True,
    chats: bool = False,
    chat_template: str | None = None,
    preference: Preference | None = None,
) -> Stats:
    """Measure how tokenizers split a corpus: bytes and characters per token, tokens per word, use of the vocabulary.

    Returns `Stats`, with a row for each group and tokenizer.

    `models` is one or several of `Tokenizer` and paths of GGUF files; a mapping gives them names. `corpus` is a
    list of texts (`str`), files and directories (`pathlib.Path`), and binary streams, or one `Path` or stream; a
    mapping has such a corpus, or a text, for each group. Bytes need not be UTF-8. Only a chunk of text and numbers are
    held in memory.

    `by` names the groups: each "file", each "folder" (the first below a given directory), each "extension", or "total"
    for none; `by_field` takes a field of JSON lines instead, such as their language. `field` is the field with the
    text, by default "text" in files named .jsonl or .ndjson; if it is given, every file is read as JSON lines.
    `add_bos` counts, with each text, the BOS and EOS that llama-tokenize adds; `parse_special` recognizes control
    tokens.

    With `chats`, records are chats in the forms that `encode_corpus` reads, with the answer of a pair that
    `preference` says. What is measured of a model are the prompts that its own template makes, or `chat_template`; a
    chat that one of the models refuses is reported, and counted for none.

    A file that cannot be read raises an exception, unless `report(name, error)` is given to receive it. `progress` is
    called with a `Progress` in bytes of files. Without `read_ignored`, files that git ignores are left out of
    directories. `ValueError` for options that do not exist, `TypeError` for anything that is not a corpus, `GGUFError`
    for models that cannot be used.

    >>> [row] = stats("gpt2.gguf", ["Hello world, it's naïve"]).total
    >>> row.tokens, row.characters, row.words, row.tokens_per_word
    (6, 23, 4, 1.5)
    """
    if by not in GROUPINGS:
        raise ValueError(f"by must be one of {', '.join(GROUPINGS)}, not {printable(str(by))}")
    named = tokenizers_of(models)
    if not chats and (chat_template is not None or preference is not None):
        raise ValueError("chat_template and preference are for chats=True")
    skipped: Counter[str] = Counter()
    reading = Reading(by, by_field, field, skipped, report or raised, progress or (lambda _: None))
    if not read_ignored:
        reading = reading._replace(ignored_in=ignored_by_git)

    if chats:
        prompts = prompts_maker(named, chat_template, preference)
        return _of_chats(named, corpus, reading._replace(prompts=prompts))
    return _of_texts(named, corpus, reading, parse_special, add_bos)


def _of_texts(
    named: Mapping[str, Tokenizer], corpus: object, reading: Reading, parse_special: bool, add_bos: bool
) -> Stats:
    def cut(stream: Any) -> Iterator[bytes]:
        models = named.values()
        return chunks_of_stream(stream, models, parse_special, continues=True, between_words=True)

    measurer = Measurer(named, parse_special, add_bos)
    for batch in batches(corpus, reading, cut):
        measurer.add(batch)
    return measurer.result(reading.skipped)


def _of_chats(named: Mapping[str, Tokenizer], corpus: object, reading: Reading) -> Stats:
    """The statistics of chats: each model has texts of its own."""
    measurers = [Measurer({name: model}, True, True, are_prompts=True) for name, model in named.items()]
    for batch in batches(corpus, reading, lambda stream: [stream.read()]):
        for measurer, prompts in zip(measurers, batch.prompts):
            measurer.add(batch._replace(texts=prompts, prompts=()))
    return side_by_side([measurer.result(reading.skipped) for measurer in measurers])
