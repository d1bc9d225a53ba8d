"""A text traced with a trained vocabulary has the ids of `encode`, whatever the form, and tokens where they stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import GPT2

from ggufbpe import GGUFError, Tokenizer, compare, explain, train
from ggufbpe.data.training.trace_text import trace_text

CORPUS = ["low lower lowest newer newest, été naïve 你好\n"] * 3
FORMS: dict[str, dict[str, object]] = {
    "characters": {"pre": "words", "units": "chars", "unk": "<unk>", "special": ["<s>"]},
    "long end of word": {"pre": "words", "units": "chars", "end_of_word": "</w>", "unk": "<unk>"},
    "bytes with an end": {"pre": "words", "units": "bytes", "end_of_word": "_"},
    "lines": {"pre": "none", "special": ["<s>"]},
    "white space": {"pre": "whitespace", "end_of_word": "_", "unk": "<unk>"},
    "as llama.cpp": {"pre": "llama-bpe", "special": ["<s>"]},
    "escaped spaces": {"pre": "gemma4"},
}
TEXTS = ["", "low lowest", "  low<s>\n\nlow\t", "été naïv 你", "<s><s>low,", "low" * 50]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("form", FORMS)
def test_ids_are_those_of_encode(form: str, text: str) -> None:
    found = train(CORPUS, vocab_size=320, **FORMS[form])  # type: ignore[arg-type]
    trace = trace_text(found, text)
    assert trace.ids == found.encode(text)
    assert trace.text == text.encode()
    ends = [0]
    for fragment in trace.fragments:  # which cover the text
        assert fragment.start == ends[-1]
        ends.append(fragment.end)
    assert ends[-1] == len(trace.text)
    for word in trace.words:
        assert word.text.replace("▁", " ") == trace.text[word.start : word.end].decode()
        assert trace.fragments[word.fragment].start <= word.start <= word.end
        assert len(word.unmerged) == len(word.merges) + len(word.symbols) or word.whole
    for token in trace.tokens:
        data = trace.text[token.start : token.end]
        assert token.origin == "unknown" or token.piece in (data, data + b" ", data[:-1] + b" ")


def test_spans_are_those_of_encode_with_offsets() -> None:
    found = train(CORPUS, vocab_size=262, pre="gpt-4o")
    tokenizer = Tokenizer(found.as_vocabulary())
    text = "été naïve 你好 low"
    spans = [(token.start, token.end) for token in trace_text(found, text).tokens]
    assert spans == tokenizer.encode_with_offsets(text)[1]


def test_merges_and_the_end_of_the_word() -> None:
    found = train(["low low low"], vocab_size=7, pre="words", units="chars", end_of_word="</w>")
    [word] = trace_text(found, "low").words
    assert word.unmerged == ["l", "o", "w", "</w>"]
    assert [(merge.left, merge.right, merge.position) for merge in word.merges] == [
        (left, right, "low".index(left[0])) for left, right in found.merges
    ]
    assert [(symbol.text, symbol.start, symbol.end) for symbol in word.symbols] == [("low</w>", 0, 3)]


def test_special_tokens_can_be_plain_text() -> None:
    found = train(CORPUS, vocab_size=40, **FORMS["characters"])  # type: ignore[arg-type]
    special = found.token_to_id["<s>"]
    assert special in trace_text(found, "low<s>").ids
    assert special not in trace_text(found, "low<s>", parse_special=False).ids


def test_a_character_that_no_token_has() -> None:
    found = train(["low"], vocab_size=4, pre="words", units="chars")
    with pytest.raises(ValueError, match="'x' is not in the learned alphabet"):
        trace_text(found, "lox")


def test_compare_takes_a_vocabulary_itself() -> None:
    one, other = (
        train(CORPUS, vocab_size=40, **FORMS["characters"], ties=ties)
        for ties in ("lexicographic", "first-seen")
    )  # type: ignore[arg-type]
    found = compare({"one": one, "other": other}, "low lowest")
    assert found.names == ("one", "other")
    assert found.counts == [len(one.encode("low lowest")), len(other.encode("low lowest"))]


def test_explain_takes_a_vocabulary_itself_and_its_file(tmp_path: Path) -> None:
    found = train(CORPUS, vocab_size=40, **FORMS["characters"])  # type: ignore[arg-type]
    found.save(tmp_path / "v.json")
    assert explain(found, "low é") == explain(tmp_path / "v.json", "low é") == trace_text(found, "low é")
    with pytest.raises(ValueError, match="has no chats"):
        explain(found, [{"role": "user", "content": "low"}])
    with pytest.raises(GGUFError, match="a vocabulary that `ggufbpe train` wrote as JSON, not a GGUF"):
        Tokenizer.from_gguf(tmp_path / "v.json")
    with pytest.raises(TypeError, match=r"the text must be a str, bytes or a pathlib.Path, not int"):
        explain(GPT2, 1)  # type: ignore[arg-type]
