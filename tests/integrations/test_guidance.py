"""guidance's tokenizer over a GGUF."""

from __future__ import annotations

import pytest
from conftest import ROOT
from integration_cases import DOCUMENT, END, TOK, library, real

from ggufbpe import Tokenizer

library("guidance")

from ggufbpe.integrations.guidance import tokenizer  # noqa: E402 - after its library


def test_guidance_encodes_and_decodes() -> None:
    made = tokenizer(TOK)
    ids = made.encode(DOCUMENT.encode(), parse_special=False)
    assert ids == TOK.encode_ordinary(DOCUMENT)
    assert made.decode(ids) == DOCUMENT.encode()
    assert (made.bos_token_id, made.eos_token_id) == (END, END)
    assert made.encode(b"a<|endoftext|>b") == [64, END, 65]
    assert made.encode(b"a<|endoftext|>b", parse_special=False) == TOK.encode_ordinary("a<|endoftext|>b")
    for data in (b"caf\xc3", b"a\xffb", b"\xff\xff"):
        assert made.decode(made.encode(data)) == data
    assert made.is_special_token(END)
    assert not made.is_special_token(0)


@pytest.mark.parametrize("name", ["llama-spm", "phi-3"])
@pytest.mark.parametrize("text", ["Hello world", " a", "1<s>2</s>3", "a\nb", "<|user|>Hi"])
def test_a_text_comes_back_without_a_space_before_it(name: str, text: str) -> None:
    tok = real(name)
    made = tokenizer(tok)
    ids = made.encode(text.encode())
    assert made.decode(ids) == text.encode()
    assert made.recode(ids) == ids
    assert [*filter(tok.is_special, ids)] == [*filter(tok.is_special, tok.encode(text, add_special=False))]
    assert made.decode(made.encode(b"a\xf0\x9f")) == b"a\xf0\x9f"


@pytest.mark.parametrize("name", ["nomic-bert-moe", "bert-bge"])
@pytest.mark.parametrize("text", ["Hello\nworld", "一龘<s>x", "<|user|>\nHi"])
def test_nothing_of_a_prompt_is_left_out(name: str, text: str) -> None:
    tok = real(name)
    assert tokenizer(tok).encode(text.encode()) == tok.encode(text, add_special=False, continues=True)


@pytest.mark.filterwarnings("ignore:.*no token for the newline")
def test_bytes_without_a_token_are_left_out() -> None:
    """What llguidance calls must not raise, since that would end as a panic."""
    tok = Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / "spm-without-bytes.gguf")
    made = tokenizer(tok)
    assert made.decode(made.encode(b"a\xff\xfeb")) == b"a"
