"""mistral-common's interface over a GGUF."""

from __future__ import annotations

import pytest
from integration_cases import DOCUMENT, END, TOK, library, real

from ggufbpe import Tokenizer

base = library("mistral_common.tokens.tokenizers.base")

from ggufbpe.integrations.mistral_common import tokenizer  # noqa: E402 - after its library

MADE = tokenizer(TOK)
POLICY = base.SpecialTokenPolicy


def test_mistral_common() -> None:
    ids = TOK.encode_ordinary(DOCUMENT)
    assert MADE.encode(DOCUMENT, bos=True, eos=False) == [END, *ids]
    assert MADE.encode(DOCUMENT, bos=False, eos=True) == [*ids, END]
    assert MADE.decode([15496, 995, END]) == "Hello world"
    assert MADE.decode([15496, END], POLICY.KEEP) == "Hello<|endoftext|>"
    with pytest.raises(ValueError, match="RAISE"):
        MADE.decode([END], POLICY.RAISE)
    with pytest.raises(ValueError, match=r"(?i)policy"):
        MADE.decode([0], 7)
    assert (MADE.n_words, MADE.bos_id, MADE.pad_id, MADE.special_ids) == (len(TOK), END, -1, {END})
    assert MADE.get_special_token("<|endoftext|>") == END
    assert [MADE.is_special(each) for each in (END, "<|endoftext|>", 0, "a")] == [True, True, False, False]
    assert (MADE.version, MADE.id_to_piece(995)) == (base.TokenizerVersion.v7, " world")
    assert isinstance(MADE, base.Tokenizer)


@pytest.mark.parametrize("name", ["BOS", "EOS"])
def test_a_token_that_the_vocabulary_lacks_is_an_error(name: str) -> None:
    ids = {**TOK.vocabulary.special_ids, "bos": None, "eos": None}
    made = tokenizer(Tokenizer(TOK.vocabulary._replace(special_ids=ids)))
    with pytest.raises(ValueError, match=f"The vocabulary has no {name} token."):
        made.encode("a", bos=name == "BOS", eos=name == "EOS")


def test_a_sentencepiece_vocabulary() -> None:
    """As mistral-common's own `SentencePieceTokenizer` decodes, which has no space at the beginning, and pieces."""
    made = tokenizer(real("llama-spm"), version="v3")
    for bos in (False, True):
        assert made.decode(made.encode("Hello  world\n", bos=bos, eos=True)) == "Hello  world\n"
    ids = made.encode("Hello\n者", bos=True, eos=True)
    assert made.decode(ids, POLICY.KEEP) == "<s>▁Hello<0x0A>者</s>"
    assert [made.id_to_piece(token) for token in ids[:3]] == ["<s>", "▁Hello", "<0x0A>"]
