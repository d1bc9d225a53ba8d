"""`explain` traces a text, or the prompt of a chat with its parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import RAW_UTF8
from small_models import CHATML, small_tokenizer

from ggufbpe.analysis.explain.explain_text import explain

TOKENIZER = small_tokenizer(add_bos=True)


def test_a_text(tmp_path: Path) -> None:
    found = explain(TOKENIZER, "hello world")
    assert [token.id for token in found.tokens] == TOKENIZER.encode("hello world")
    assert [word.text for word in found.words] == ["hello", " world"]
    assert found.chat is None
    (tmp_path / "text").write_bytes(b"hello\xff")
    assert explain(TOKENIZER, tmp_path / "text").text == b"hello\xff"


@pytest.mark.parametrize(("add", "parse"), [(True, True), (True, False), (False, True), (False, False)])
def test_flags_are_those_of_encode(add: bool, parse: bool) -> None:
    text = "hello<|im_end|>"
    found = explain(TOKENIZER, text, add_special=add, parse_special=parse)
    ids = TOKENIZER.encode(text, add_special=add, parse_special=parse)
    assert [token.id for token in found.tokens] == ids


def test_the_path_of_a_model() -> None:
    assert explain(RAW_UTF8, "ab").tokens


def test_a_chat() -> None:
    messages = [{"role": "user", "content": "hello"}]
    found = explain(TOKENIZER, messages, chat_template=CHATML)
    prompt = TOKENIZER.chats.prompt({"messages": messages}, CHATML)
    assert (found.text, [token.id for token in found.tokens]) == (prompt, TOKENIZER.encode(prompt))
    assert found.chat is not None
    assert found.chat.rendered.prompt == prompt
    body = {"messages": messages, "add_generation_prompt": False}
    assert explain(TOKENIZER, body, chat_template=CHATML).text == TOKENIZER.chats.prompt(body, CHATML)
    for flags in ({"add_special": False}, {"parse_special": False}):
        with pytest.raises(ValueError, match="always added and parsed in chats"):
            explain(TOKENIZER, messages, chat_template=CHATML, **flags)  # type: ignore[arg-type]
