"""A trained vocabulary encodes and decodes, in llama.cpp's form and in the classic ones."""

from __future__ import annotations

import pytest
from synthetic import byte_tokens

from ggufbpe import Tokenizer
from ggufbpe.data.training.trained_vocabulary import Form, TrainedVocabulary, token_bytes
from ggufbpe.data.training.word_counts import Splitting
from ggufbpe.models.vocabulary import BYTE, CONTROL, NORMAL, UNKNOWN

BYTES = Form(Splitting("gpt-2", "bytes"))
CLASSIC = Form(Splitting("words", "chars"), end_of_word="</w>", unk="<unk>")


def of_bytes() -> TrainedVocabulary:
    """Bytes, a special token, and two merges."""
    tokens = [*byte_tokens(), "<s>", "ab", "Ġab"]
    return TrainedVocabulary(
        tokens, [NORMAL] * 256 + [CONTROL] + [NORMAL] * 2, [("a", "b"), ("Ġ", "ab")], [], BYTES
    )


def classic(form: Form = CLASSIC) -> TrainedVocabulary:
    """Letters with an end of words, as in the paper of Sennrich et al."""
    tokens = ["<unk>", "</w>", "l", "o", "w", "lo", "low", "low</w>"]
    merges = [("l", "o"), ("lo", "w"), ("low", "</w>")]
    return TrainedVocabulary(tokens, [UNKNOWN] + [NORMAL] * 7, merges, [], form)


def test_bytes() -> None:
    vocabulary = of_bytes()
    ids = vocabulary.encode("ab<s> abé")
    assert [vocabulary.tokens[token] for token in ids] == ["ab", "<s>", "Ġab", "Ã", "©"]
    assert vocabulary.tokenize("ab<s> abé") == ["ab", "<s>", "Ġab", "Ã", "©"]
    assert vocabulary.decode(ids) == "ab<s> abé"
    assert vocabulary.decode_bytes(ids[-1:]) == b"\xa9"
    assert vocabulary.decode(ids[-1:]) == "\ufffd"
    assert repr(vocabulary) == "<TrainedVocabulary gpt-2 of 259 tokens>"


def test_classic() -> None:
    vocabulary = classic()
    assert vocabulary.tokenize("low lox") == ["low</w>", "lo", "<unk>", "</w>"]
    ids = vocabulary.encode("low lox")
    assert ids == [7, 5, 0, 1]
    assert vocabulary.decode(ids) == "low lo<unk>"
    assert vocabulary.encode_word("low") == (7,)


def test_a_character_without_a_token() -> None:
    vocabulary = classic(CLASSIC._replace(unk=None))
    assert vocabulary.tokenize("x") == ["x", "</w>"]
    with pytest.raises(ValueError, match="'x' is not in the learned alphabet"):
        vocabulary.encode("x")


@pytest.mark.parametrize("token", [-1, 8])
def test_ids_out_of_range(token: int) -> None:
    with pytest.raises(ValueError, match=f"token id {token} is out of range: the vocabulary has ids 0 to 7"):
        classic().token_bytes(token)


FORMS = {
    "has no pre-tokenizer that splits as 'words'": Form(Splitting("words", "chars")),
    "has no end-of-word symbol": BYTES._replace(end_of_word="</w>"),
    "has no unknown token": BYTES._replace(unk="<unk>"),
    "gpt-2 writes text as bytes": Form(Splitting("gpt-2", "chars")),
}


@pytest.mark.parametrize("reason", FORMS)
def test_why_not_llama_cpp(reason: str) -> None:
    assert reason in (FORMS[reason].why_not_llama_cpp() or "")
    assert BYTES.why_not_llama_cpp() is None


RAW = Form(Splitting("gemma4", "chars"))
PIECES = [
    ("Ġa", NORMAL, BYTES, b" a"),
    ("Ġ", CONTROL, BYTES, "Ġ".encode()),  # a special token is its text
    ("<0x0a>", BYTE, RAW, b"\n"),
    ("<0x0a>", NORMAL, RAW, b"<0x0a>"),
    ("▁a", NORMAL, RAW, b" a"),
    ("a</w>", NORMAL, CLASSIC, b"a "),
]


@pytest.mark.parametrize(("token", "attribute", "form", "data"), PIECES)
def test_token_bytes(token: str, attribute: int, form: Form, data: bytes) -> None:
    assert token_bytes(token, attribute, form) == data


def test_as_vocabulary_has_no_special_ids() -> None:
    tokenizer = Tokenizer(of_bytes().as_vocabulary())
    assert (tokenizer.bos_id, tokenizer.eos_id, tokenizer.unk_token) == (None, None, None)


def test_as_vocabulary() -> None:
    vocabulary = of_bytes().as_vocabulary()
    assert (vocabulary.pre, list(vocabulary.merges)) == ("gpt-2", ["a b", "Ġ ab"])
    assert vocabulary.special_token_ids == (256,)
