"""LiteLLM counts by a GGUF's tokenizer."""

from __future__ import annotations

from integration_cases import DOCUMENT, TOK, library

litellm = library("litellm")

from ggufbpe.integrations.litellm import custom_tokenizer  # noqa: E402 - after its library


def test_litellm_counts_encodes_and_decodes() -> None:
    made = custom_tokenizer(TOK)
    ids = TOK.encode(DOCUMENT, add_special=False)
    assert litellm.token_counter(model="", text=DOCUMENT, custom_tokenizer=made) == len(ids)
    assert litellm.encode(model="", text=DOCUMENT, custom_tokenizer=made) == ids
    assert litellm.decode(model="", tokens=[15496, 995], custom_tokenizer=made) == "Hello world"


def test_litellm_counts_messages_as_with_its_own_tokenizer() -> None:
    messages = [{"role": "user", "content": "Hello world"}]
    ours = litellm.token_counter(model="", messages=messages, custom_tokenizer=custom_tokenizer(TOK))
    assert ours - TOK.count("Hello world") == litellm.token_counter(
        model="", messages=[{"role": "user", "content": ""}], custom_tokenizer=custom_tokenizer(TOK)
    )
