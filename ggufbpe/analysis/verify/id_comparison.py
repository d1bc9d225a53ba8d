"""Compares our ids with an oracle's, and finds the smallest text and the cause of each kind of difference.

Texts come one by one and only examples are kept, so a corpus may be of any size. Differences are first grouped by the
tokens on both sides (such as "N" for digits against "N|N"); the first text of each kind is kept. At the end each is
shrunk, the step that differs is read off a trace, the cause is looked for, and kinds with the same step and cause
become one difference.

The result says what differs, not who is right.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, takewhile
from typing import Any

from ..._util.arguments import integer, iterable
from ..._util.progress import OnProgress
from ...chat.known_templates import resolved
from ...data.corpora.records import Report, raised
from ...hub.model_location import ModelLocation
from ...tokenizer import Tokenizer
from ...tokenizer.inputs import ChatOrBody, Model, tokenizer_of
from ..oracles.against import Against as Meant
from ..oracles.against import against_of, for_chats, kind_of_file
from ..oracles.open_oracle import open_oracle
from ..oracles.oracle import Oracle, OracleError
from ..oracles.recorded_ids import OtherModel, Recorded
from .chat_comparison import ComparedChat, ComparingChats, read_chats
from .difference_causes import Examining
from .fuzz import texts_for
from .given_texts import ReadingTexts, Source, read_texts
from .result import ComparedText, Verification

BATCH_BYTES = 1 << 18


Against = str | Tokenizer | ModelLocation | os.PathLike[str] | Oracle | Meant | Iterable[Iterable[int]]


def verify(
    model: Model,
    against: Against,
    texts: Source | Iterable[Source] = (),
    *,
    chats: Iterable[ChatOrBody | ComparedChat] | Mapping[str, Any] = (),
    chat_template: str | None = None,
    fuzz: int = 0,
    seed: str = "1",
    add_special: bool = True,
    parse_special: bool = True,
    field: str | None = None,
    read_ignored: bool = True,
    escape: bool = False,
    timeout: float = 30.0,
    report: Report | None = None,
    progress: OnProgress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Verification:
    """Compare the ids of texts with those of another tokenizer: what differs, where, and why.

    `model` is a `Tokenizer` or the path of a file. `against` is a `Tokenizer`, a list of ids for each text, or a `str`:
    "llama-tokenize", "xllamacpp", "llama-cpp-python", "server:URL", "tiktoken:ENCODING", "hf:OWNER/REPO", or the path
    of a GGUF, a tokenizer.json, a tokenizer.model, a .tiktoken file or recorded ids.

    `texts` are `str`, bytes, files and directories (`pathlib.Path`) and binary streams, or one of them; they are
    followed by `fuzz` random texts, determined by `seed`. Files are split into texts of 64 KiB; compressed files and
    JSON lines are recognized by their names, and `field` is the field of JSON lines that is read. Without
    `read_ignored`, files that git ignores are left out. `escape` processes backslash escapes. `add_special` and
    `parse_special` are those of `Tokenizer.encode`.

    `chats` are lists of messages or bodies of requests. The other side must make prompts, as "server:URL" and other
    models do, and folders and repositories of transformers, whose templates the package transformers runs. Prompts and
    refusals are compared first, then the ids of the prompts. `chat_template` is that of
    `Tokenizer.apply_chat_template`.

    The other tokenizer has `timeout` seconds for a text. A file that cannot be read raises an exception, unless
    `report(name, error)` is given to receive it; the result may then have no texts. `progress` is called with a
    `Progress` in texts, which counts "bytes", or in chats. The comparison ends once `stop()` returns True, and
    `is_stopped` of the result says so.

    Raises `OracleError`, a `ValueError`, if the other tokenizer cannot be asked, `ValueError` if there are no texts,
    and `NotInstalledError` for chats without jinja2.

    >>> verify("model.gguf", "llama-tokenize", ["Hello world"]).same            # doctest: +SKIP
    True
    """
    tokenizer, given = tokenizer_of(model), list(read_chats(chats))
    meant = _meant(against)
    if isinstance(meant, Meant) and meant.note:
        warnings.warn(meant.note, DeprecationWarning, stacklevel=2)
    if isinstance(meant, Meant) and given:
        meant = for_chats(meant)
    reading, tell = ReadingTexts(report or raised, field, read_ignored, escape), progress or (lambda _: None)
    with _oracle(meant, tokenizer, timeout) as oracle:
        _require_possible(oracle, bool(given), add_special and parse_special, fuzz)
        comparing = ComparingChats(tokenizer, oracle, resolved(chat_template), tell)
        found = chain(
            read_texts(texts, reading, whole=oracle.recorded),
            comparing.texts(given),
            _random(tokenizer, fuzz, seed),
        )
        flags = {"add_special": add_special, "parse_special": parse_special}
        result = ids_compared(tokenizer, oracle, found, **flags, progress=tell, stop=stop)
        if given:
            result.chats = comparing.examine()
    if not result.texts and not given and report is None:
        raise ValueError("no texts to compare: give some, or fuzz=N")
    return result


def _require_possible(oracle: Oracle, has_chats: bool, has_special: bool, fuzz: int) -> None:
    """`ValueError` for what cannot be compared with this oracle."""
    if integer("fuzz", fuzz, least=0) and oracle.recorded:
        raise ValueError("recorded ids are of texts that you have, and random ones are new")
    if has_chats and not oracle.takes_chats:
        raise OracleError(
            f"{oracle.name} makes no prompts: compare chats with server:URL, another GGUF, or a folder of transformers"
        )
    if has_chats and not has_special:
        raise ValueError(
            "the ids of chats are those with special tokens added and parsed, as llama-server has them"
        )


_Meant = Tokenizer | ModelLocation | Oracle | Meant | Iterable[Iterable[int]]


def _meant(against: Against) -> _Meant:
    """`against` with the meaning of a text or path. `OracleError` if it has none."""
    if isinstance(against, str):
        return against_of(against)
    if isinstance(against, os.PathLike) and not isinstance(against, ModelLocation):
        path = os.fspath(against)
        return Meant(kind_of_file(path), path)
    return against


@contextmanager
def _oracle(against: _Meant, tokenizer: Tokenizer, timeout: float) -> Iterator[Oracle]:
    """What `against` means, open."""
    if isinstance(against, Oracle):
        yield against  # its owner closes it
    elif isinstance(against, (Tokenizer, ModelLocation)):
        yield OtherModel(tokenizer_of(against))
    elif isinstance(against, Meant):
        with tokenizer.gguf_file() as path, open_oracle(against, path, tokenizer, timeout) as oracle:
            yield oracle
    else:
        yield Recorded(iterable("against", against, "lists of ids"))


def _random(tokenizer: Tokenizer, count: int, seed: str) -> Iterator[ComparedText]:
    if count:
        source = texts_for(tokenizer, seed)
    for number in range(count):
        yield ComparedText(f"random text {number} of seed {seed}", 0, source.text())


def ids_compared(
    tokenizer: Tokenizer,
    oracle: Oracle,
    texts: Iterable[ComparedText],
    *,
    add_special: bool = True,
    parse_special: bool = True,
    progress: OnProgress = lambda _: None,
    propose: bool = True,
    stop: Callable[[], bool] | None = None,
) -> Verification:
    """Compare texts with an oracle that is open; without `propose`, no change of the model is proposed.

    No more texts are compared once `stop` returns True.

    Raises `OracleError` where the oracle has no more to say.
    """
    add_special, parse_special = oracle.add_special(add_special), oracle.parse_special(parse_special)
    job = Examining(tokenizer, oracle, add_special, parse_special, progress, propose)
    ends = stop or (lambda: False)
    for batch in _batches(takewhile(lambda _: not ends(), texts), oracle.batch):
        job.compare(batch)
    if oracle.recorded and not job.result.texts:
        raise OracleError("there is no text to go with the recorded ids")
    job.result.is_stopped = ends()
    if not job.result.is_stopped:
        oracle.require_all_taken()
    job.examine()
    job.result.model, job.result.note = tokenizer.name, oracle.note
    return job.result


def _batches(texts: Iterable[ComparedText], most: int) -> Iterator[list[ComparedText]]:
    batch: list[ComparedText] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text.data)
        if len(batch) >= most or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
