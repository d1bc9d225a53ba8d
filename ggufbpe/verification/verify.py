"""Compares our ids with an oracle's, and finds for each kind of difference its smallest text and its cause.

    texts, oracle -> [this file] -> Result -> report.py, cli/verify.py

Texts come one by one and only examples are kept, so a corpus may be of any size. Differences are told apart
first by what stands on both sides ("N" for digits against "N|N", say); for each kind the first text is kept.
At the end each is shrunk, the step in which the two part is read off a trace, the cause is looked for, and
kinds of one step and cause become one difference.

But: says what differs, not who is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..oracles.oracle import Oracle, OracleError
from ..tokenizer import Tokenizer
from .examine import Examining
from .result import Progress, Result, Text

BATCH_BYTES = 1 << 18


def verify(
    tokenizer: Tokenizer,
    oracle: Oracle,
    texts: Iterable[Text],
    *,
    add_special: bool = True,
    parse_special: bool = True,
    progress: Progress = lambda *_: None,
) -> Result:
    """Compare the ids of `texts`. Raises `OracleError` where the oracle has no more to say.

    >>> with open_oracle("llama-tokenize", path, tok, 30) as oracle:            # doctest: +SKIP
    ...     verify(tok, oracle, [Text("greeting", 0, b"Hello world")]).same
    True
    """
    add_special, parse_special = oracle.add_special(add_special), oracle.parse_special(parse_special)
    job = Examining(tokenizer, oracle, add_special, parse_special, progress)
    for batch in _batches(texts, oracle.batch):
        job.compare(batch)
    if oracle.recorded and not job.result.texts:
        raise OracleError("there is no text to go with the recorded ids")
    job.examine()
    return job.result


def _batches(texts: Iterable[Text], most: int) -> Iterator[list[Text]]:
    batch: list[Text] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text.data)
        if len(batch) >= most or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
