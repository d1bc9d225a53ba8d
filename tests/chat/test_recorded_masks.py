"""Masks under templates with `{% generation %}` are those that transformers gave (scripts/compare_masks.py)."""

from __future__ import annotations

from typing import Any

import pytest
from record_chats import read_chats
from recorded_chats import VOCABULARY

from ggufbpe import Tokenizer

RECORDED = read_chats("masks")
TOK = Tokenizer.from_gguf(VOCABULARY)


@pytest.mark.filterwarnings("ignore:the chat template does not show the tools")  # of some chats
@pytest.mark.parametrize("template", RECORDED["templates"], ids=lambda template: template["name"])
def test_masks(template: dict[str, Any]) -> None:
    """The tokenizer adds a BOS, which transformers leaves to the template."""
    for chat, (ids, mask) in zip(RECORDED["chats"], template["answers"], strict=True):
        found = TOK.apply_chat_template(
            chat["messages"],
            tools=chat["tools"],
            chat_template=template["source"],
            return_assistant_mask=True,
        )
        assert found == ([TOK.bos_id, *ids], [0, *mask])
        assert 0 < sum(mask) < len(mask)
