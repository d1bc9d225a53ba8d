"""Words counted in parts, which here run one after the other in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ggufbpe.data.training.draft_vocabulary import Added
from ggufbpe.data.training.training_texts import CorpusOptions
from ggufbpe.data.training.word_counts import Splitting, count_words

pytestmark = pytest.mark.cluster


def results_of(
    name: str, functions: list[Callable[[], Any]], workers: int | None
) -> Generator[Any, None, None]:
    """What tasks return, in order."""
    yield from (function() for function in functions)


@pytest.mark.parametrize("pre", ["gpt-2", "none", "words"])
def test_counts_are_those_of_one_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pre: str) -> None:
    from ggufbpe.data.training import ray_counting

    monkeypatch.setattr(ray_counting, "connected", lambda *_: nullcontext())
    monkeypatch.setattr(
        ray_counting, "ray", SimpleNamespace(put=lambda value: value, get=lambda value: value)
    )
    monkeypatch.setattr(ray_counting, "results_of", results_of)
    monkeypatch.setattr(ray_counting, "segment_size", lambda total, limit: 7)
    texts = ["b a<s>a\n", "low lower\nb a", "é<s>"]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
    told: list[tuple[int, int]] = []
    reading = CorpusOptions(progress=lambda read, total: told.append((read, total)))
    split = Splitting(pre, "bytes")
    counting = (split, Added(["<s>"], [], None), None)
    parts = list(ray_counting.counted_on_ray("local", [str(tmp_path)], reading, counting, 1))
    assert len(parts) >= len(texts)
    found: Counter[str] = Counter()
    for part in parts:
        found.update(part)
    expected = count_words(texts, split, lambda text: text.split("<s>"))
    kept = [(word, count) for word, count in found.items() if not split.drops(word)]
    assert kept == list(expected.items())
    total = sum(len(text.encode()) for text in texts)
    assert told[-1] == (total, total)
