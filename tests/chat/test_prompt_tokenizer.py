"""Chats need no more of a tokenizer than `PromptTokenizer` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from synthetic import byte_tokens, make_vocabulary

from ggufbpe.chat.chats import Chats
from ggufbpe.chat.prompt_tokenizer import PromptTokenizer
from ggufbpe.chat.token_origins import chat_tokens
from ggufbpe.models.vocabulary import CONTROL, Vocabulary

BOS = 256


class BytesTokenizer(PromptTokenizer):
    """A tokenizer with a token for each byte, which adds a BOS."""

    @property
    def vocabulary(self) -> Vocabulary:
        return make_vocabulary(
            [*byte_tokens(), "<s>"],
            attributes={"<s>": CONTROL},
            special_ids={"bos": BOS, "eos": None},
            add_bos=True,
        )

    @property
    def chat_templates(self) -> Mapping[str, str]:
        return {"": "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }}|{% endfor %}"}

    def encode(self, text: bytes, /) -> list[int]:
        return [BOS, *text]

    def encode_with_offsets(self, text: bytes, /) -> tuple[list[int], Sequence[tuple[int, int]]]:
        return self.encode(text), [(0, 0), *((at, at + 1) for at in range(len(text)))]

    def token_to_piece(self, token: int, /) -> bytes:
        return b"<s>" if token == BOS else bytes([token])


def test_prompt_and_origins_of_tokens() -> None:
    tokenizer = BytesTokenizer()
    rendered = Chats(tokenizer).parts({"messages": [{"role": "user", "content": "hé"}]})
    assert (
        rendered.prompt == "user:hé|".encode()
    )  # the BOS of the template gives way to that of the tokenizer
    tokens = chat_tokens(tokenizer, rendered)
    assert list(tokens.ids) == [BOS, *rendered.prompt]
    names = [origin.name for origin in tokens.origins]
    assert names == ["added", *["messages[0].role"] * 4, "template", *["messages[0].content"] * 3, "template"]
