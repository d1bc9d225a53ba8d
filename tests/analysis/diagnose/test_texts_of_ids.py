"""The texts of ids that do not stand for their own, in time that grows no faster than text and ids."""

from __future__ import annotations

import time

import pytest
from conftest import GPT2

from ggufbpe import Tokenizer
from ggufbpe.analysis.diagnose.texts_of_ids import swapped
from ggufbpe.analysis.doctor.texts_with_ids import TextWithIds

TAB, LINE, LETTER = 197, 198, 88

HOSTILE = {
    "a run of spaces, and ids that are not in it": (b" " * 60_000, [LETTER] * 60_000),
    "runs of line breaks, in which three ids never follow each other": (
        (b"ay" + b"\n" * 2000) * 8,
        ([TAB, LINE, LINE, LETTER] + [LINE] * 2000) * 8,
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_white_space_takes_no_long_time(case: str) -> None:
    text, ids = HOSTILE[case]
    tokenizer = Tokenizer.from_gguf(GPT2)
    assert [tokenizer.token_to_piece(token) for token in (TAB, LINE, LETTER)] == [b"\t", b"\n", b"y"]
    start = time.thread_time()
    assert swapped(tokenizer, [TextWithIds(text, ids)]) == ()
    assert time.thread_time() - start < 3
