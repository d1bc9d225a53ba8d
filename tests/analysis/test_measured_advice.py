"""Advice about broken models, followed blindly: 100 cases of a fixed seed, shared out over the four kinds of advice.

scripts/measure_advice.py writes each case, asks a command for advice, runs what was printed, and compares the model
that comes out with the good one. Here it does so for the vocabularies that are quick to read.
"""

from __future__ import annotations

from collections.abc import Iterator

import mending
import pytest
from broken_models import BASES, Base, case
from conftest import missing
from measure_advice import BAD, outcomes, proposals_for_healthy
from reference import NotPreparedError

pytestmark = pytest.mark.tries_fixes

SEED = "ci"
KINDS = ("diagnose", "verify", "diff bad good", "diff good bad")
CASES = {  # of each vocabulary that is quick to read
    **dict.fromkeys(("gpt-2", "starcoder", "bert-bge", "t5", "rwkv"), 12),
    **dict.fromkeys(("deepseek-coder", "llama-spm", "phi-3"), 10),
    "falcon": 6,
    "baichuan": 4,
}
NOT_MENDED: dict[tuple[str, int], str] = {}
"""The cases, by vocabulary and number, in which something is left that a command could have mended."""


OF_WORDS = ("word_special", "types_exchanged")
CASES_OF_WORDS = {
    "gpt-2": 2,
    "starcoder": 6,
    "deepseek-coder": 6,
    "bert-bge": 3,
    "llama-spm": 6,
    "phi-3": 6,
    "rwkv": 1,
}

WORDS_LEFT = {("llama-spm", 1): "nothing"}
"""No space is put before texts, and "ATE" is special: a space before the texts explains all that differs in them."""


@pytest.fixture(params=CASES)
def base(request: pytest.FixtureRequest) -> Iterator[Base]:
    """A vocabulary, which is forgotten after its tests."""
    found = next(each for each in BASES if each.name == request.param)
    try:
        found.find()
    except NotPreparedError as error:
        missing(str(error))
    with mending.watch.busy():  # what is printed is run by these tests themselves
        yield found
    mending.watch.copies.clear()
    if "facts" in vars(found):
        found.facts.source.close()
    for name in ("values", "tokenizer", "facts", "healthy", "markers", "shown"):
        vars(found).pop(name, None)


def test_there_are_100_cases_of_all_models_and_nearly_all_are_mended() -> None:
    assert sum(CASES.values()) == 100
    assert {base.kind for base in BASES if base.name in CASES} == {base.kind for base in BASES}
    assert len(NOT_MENDED) <= 5


@pytest.mark.slow
def test_what_is_printed_mends_and_never_harms(base: Base) -> None:
    """`BAD` has harm, what is left although a command could mend it, and causes that nobody named."""
    ended = {
        number: outcomes(case(SEED, number, (base.name,)), [KINDS[number % len(KINDS)]])[0]
        for number in range(CASES[base.name])
    }
    bad = {number: found for number, found in ended.items() if found.outcome in BAD}
    left = {number: outcome for (name, number), outcome in NOT_MENDED.items() if name == base.name}
    assert {number: found.outcome for number, found in bad.items()} == left, bad
    assert any(found.outcome == "mended" for found in ended.values()) or base.name == "rwkv"


@pytest.mark.slow
@pytest.mark.parametrize("base", CASES_OF_WORDS, indirect=True)
def test_an_ordinary_word_that_is_special_is_mended(base: Base) -> None:
    bad = {}
    for number in range(CASES_OF_WORDS[base.name]):
        [found] = outcomes(case("words", number, (base.name,), OF_WORDS), [KINDS[number % len(KINDS)]])
        if found.outcome in BAD:
            bad[number] = found.outcome
    assert bad == {number: outcome for (name, number), outcome in WORDS_LEFT.items() if name == base.name}


@pytest.mark.slow
@pytest.mark.parametrize("base", [each.name for each in BASES], indirect=True)
def test_no_change_of_a_healthy_model_is_proposed(base: Base) -> None:
    proposed = [found for found in proposals_for_healthy([*KINDS, "doctor"], [base.name]) if found[2]]
    assert proposed == []
