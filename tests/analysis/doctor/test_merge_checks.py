"""Merges that do not fit the tokens, and tokens that exchanged their ids."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from conftest import GPT2
from small_models import FactsOf, K, facts_of, found

from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.analysis.doctor.merge_checks import exchanged_tokens, merge_parts, unreachable
from ggufbpe.gguf.reader import GGUFFile

__all__ = ["facts_of"]  # the fixture


@cache
def keys() -> dict[str, Any]:
    """GPT-2's first 3,000 merges, with the tokens that they make, and one that no merge makes."""
    with GGUFFile(GPT2) as file:
        merges, tokens = file[K.MERGES][:3000], [*file[K.LIST][:3256], "<|endoftext|>"]
    return {"general.architecture": "gpt2", K.MODEL: "gpt2", K.PRE: "gpt-2", K.LIST: tokens, K.MERGES: merges}


def exchanged(*texts: str) -> dict[str, Any]:
    """Each token has the id of the one before, and the first that of the last."""
    after = dict(zip(texts, (*texts[1:], *texts[:1])))
    return {**keys(), K.LIST: [after.get(token, token) for token in keys()[K.LIST]]}


def test_merges_of_no_tokens(facts_of: FactsOf, monkeypatch: pytest.MonkeyPatch) -> None:
    model = facts_of({**keys(), K.MERGES: ["Ġ t", "Ġq uuxx", "Ġ t", *keys()[K.MERGES][1:], "ab"]})
    findings = list(merge_parts(model))
    assert found(findings) == [("merges_not_in_vocabulary", "warning"), ("duplicate_merges", "note")]
    assert findings[0].detail == {"count": 2, "of": 3003, "merges": [1, 3002]}
    assert findings[0].what == "Some merges join or make texts that are no tokens."
    assert "' q' + 'uuxx', where ' q' is not one" in findings[0].evidence
    monkeypatch.setattr(Facts, "compiled", lambda self, key: None)  # as without the compiled engine
    assert list(merge_parts(Facts(model.source, None))) == findings


def test_no_merge_is_left(facts_of: FactsOf) -> None:
    findings = list(unreachable(facts_of(keys()).changed({K.MERGES: []})))
    assert found(findings) == [("unreachable_tokens", "warning")]
    assert findings[0].what == "Many tokens never come out of a text, as if merges were missing."
    assert findings[0].detail is not None
    assert findings[0].detail["count"] == 3000


def test_merges_of_tokens(facts_of: FactsOf) -> None:
    assert list(merge_parts(facts_of(keys()))) == []


@pytest.mark.parametrize(
    ("texts", "ids"),
    [
        ((), []),
        (("Ġthe", "ation"), [262, 341]),
        (("Ġthe", "in"), [259, 262]),
        (("in", "he"), [258, 259]),  # neighbors
        (("e", "ation"), [68, 341]),  # no merge makes single bytes
        (("e", "ation", "Ġthe"), [68, 262, 341]),
        (("Ġthe", "<|endoftext|>"), [262, 3256]),
        (("Ġthe", "Ġt"), [256, 262]),
        (("a", "e"), []),  # which nothing shows
    ],
)
def test_tokens_that_exchanged_their_ids(texts: tuple[str, ...], ids: list[int], facts_of: FactsOf) -> None:
    findings = list(exchanged_tokens(facts_of(exchanged(*texts))))
    assert [finding.detail for finding in findings] == ([{"ids": ids}] if ids else [])


def test_an_order_of_its_own_is_no_exchange(facts_of: FactsOf) -> None:
    """As that of Gemma's tokens, which sentencepiece made."""
    tokens = keys()[K.LIST]
    for other in (
        [*tokens[:256], *tokens[1000:3256], *tokens[256:1000], tokens[3256]],
        [*tokens[:256], *sorted(tokens[256:3256]), tokens[3256]],
    ):
        assert list(exchanged_tokens(facts_of({**keys(), K.LIST: other}))) == []
