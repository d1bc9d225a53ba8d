"""`EncodeStage`: what it refuses. That its ids are those of shards is in test_corpus_encoding.py."""

from __future__ import annotations

import pytest
from small_models import small_tokenizer

from ggufbpe import EncodeStage, Tokenizer


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return small_tokenizer()


@pytest.mark.parametrize("text", ["ab", b"ab"])
def test_one_text_is_no_batch(text: object, tok: Tokenizer) -> None:
    """What `datasets` gives without `batched=True`; a list for each character would ruin a data set."""
    with pytest.raises(TypeError, match=r"the column 'text' is one text, not a batch.*batched=True"):
        EncodeStage(tok)({"text": text})


def test_a_batch_without_the_column(tok: Tokenizer) -> None:
    with pytest.raises(KeyError, match="no column 'body'"):
        EncodeStage(tok, text_column="body")({"text": ["ab"]})
