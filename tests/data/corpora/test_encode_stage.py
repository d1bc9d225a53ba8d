"""`EncodeStage`: what it refuses. That its ids are those of shards is in test_corpus_encoding.py."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from small_models import small_tokenizer

from ggufbpe import EncodeStage, Tokenizer
from ggufbpe.data.corpora.records import CorpusError

WITHOUT_UNKNOWN = Path(__file__).resolve().parents[3] / "fixtures" / "vocabs" / "wpm-unknown-missing.gguf"


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


@pytest.mark.parametrize(
    ("value", "kind"), [(None, "null"), (float("nan"), "a number"), (3, "a number"), (["ab"], "a list")]
)
def test_a_row_without_a_text_is_an_error(value: object, kind: str, tok: Tokenizer) -> None:
    """As in `encode_corpus`: nobody wants to train on the words None and nan."""
    with pytest.raises(CorpusError, match=f"row 2 of the batch: the column 'text' has {kind}, not a text"):
        EncodeStage(tok)({"text": ["ab", value]})
    document = SimpleNamespace(id="7", text=value, metadata={})
    with pytest.raises(CorpusError, match=f"the document '7': the column 'text' has {kind}, not a text"):
        list(EncodeStage(tok).documents([document]))


def test_bytes_and_lone_surrogates_are_encoded_as_in_shards(tok: Tokenizer) -> None:
    found = EncodeStage(tok, eos=False)({"text": [b"ab\xff", "a\ud800"]})
    expected = [tok.encode(text, add_special=False) for text in (b"ab\xff", b"a\xed\xa0\x80")]
    assert found["input_ids"] == expected


@pytest.mark.parametrize("batch", [pa.table({"text": ["ab"]}), pa.record_batch({"text": ["ab"]})])
def test_a_table_of_pyarrow_is_refused(batch: object, tok: Tokenizer) -> None:
    with pytest.raises(
        TypeError, match=f"is a {type(batch).__name__}, not columns by name; .*batch_format='numpy'"
    ):
        EncodeStage(tok)(batch)  # type: ignore[arg-type]


def test_a_text_that_lacks_a_token_is_an_error() -> None:
    """As in `encode_corpus`: llama.cpp gives -1 for it, which is no id to be trained on."""
    stage = EncodeStage(WITHOUT_UNKNOWN, eos=False)
    with pytest.raises(CorpusError, match="row 2 of the batch: a part of it has no token"):
        stage({"text": ["hello", "zq"]})
