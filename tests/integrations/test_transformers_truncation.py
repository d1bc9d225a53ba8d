"""transformers: a text or a pair that is cut to a length has the ids, or the refusal, of the fast tokenizer."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, ROOT
from integration_cases import TOK, both, library, plain

library("transformers")

from ggufbpe.integrations.transformers import GGUFTokenizer  # noqa: E402 - after its library

VOCABULARIES = ROOT / ".cache" / "vocabs"
STRATEGIES = [True, "only_first", "only_second", "longest_first"]
TEXTS = [
    ("one two three",),
    ("",),
    ("one", "four five six seven"),
    ("four five six seven", "one"),
    ("a b c d e", "f g h i j"),
    ("", "a b"),
]


@pytest.mark.parametrize(
    "path",
    [GPT2, VOCABULARIES / "ggml-vocab-llama-spm.gguf", VOCABULARIES / "ggml-vocab-bert-bge.gguf"],
    ids=["gpt2", "llama-spm", "bert"],
)
def test_every_length(path: Path, tmp_path: Path) -> None:
    """Below the number of added tokens, the fast tokenizer cuts nothing; ours refuses."""
    ours, theirs = both(path, tmp_path)
    for texts, strategy, side, adds in product(TEXTS, STRATEGIES, ["left", "right"], [True, False]):
        ours.truncation_side = theirs.truncation_side = side
        least = theirs.num_special_tokens_to_add(len(texts) == 2) if adds else 0
        for length in range(12):
            options = {"truncation": strategy, "max_length": length, "add_special_tokens": adds}
            found, wanted = (ids_or_refusal(each, texts, options) for each in (ours, theirs))
            if length < least and wanted != "refused":
                uncut = plain(theirs(*texts, add_special_tokens=adds))
                wanted = uncut if length >= len(uncut["input_ids"]) else "refused"
            assert found == wanted, (texts, options, side)


def ids_or_refusal(made: Any, texts: tuple[str, ...], options: dict[str, Any]) -> Any:
    try:
        return made(*texts, **options)["input_ids"]
    except Exception as error:
        if type(error) is not ValueError and "Truncation error" not in str(error):
            raise
        return "refused"


def test_batches_and_offsets() -> None:
    made = GGUFTokenizer(TOK)
    with pytest.raises(
        ValueError, match=r"the first text has 1 of the tokens, and truncation='only_first' would remove 2 to"
    ):
        made(["a b c", "one"], ["d", "four five six seven"], truncation="only_first", max_length=3)
    found = made("one two", return_offsets_mapping=True, truncation=True, max_length=0)
    assert plain(found) == {"input_ids": [], "attention_mask": [], "offset_mapping": []}
    found = made("one", "four five six", return_offsets_mapping=True, truncation=True, max_length=2)
    assert found["offset_mapping"] == [(0, 3), (0, 4)]


def test_overflow() -> None:
    """Of one text; a fast tokenizer gives windows instead."""
    made = GGUFTokenizer(TOK)
    options = {"truncation": True, "max_length": 3, "stride": 1, "return_overflowing_tokens": True}
    ids = TOK.encode("one two three four five")
    found = made("one two three four five", **options)
    assert (found["input_ids"], found["overflowing_tokens"]) == (ids[:3], ids[2:])
    with pytest.raises(ValueError, match=r"takes one text at a time.*Tokenizer\.split cuts long texts"):
        made(["one two three four five", "one"], **options)
