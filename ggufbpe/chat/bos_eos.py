"""BOS and EOS as templates write them, and how they are removed from a prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .prompt_tokenizer import PromptTokenizer


@dataclass(frozen=True)
class BosEos:
    """The bytes of BOS and EOS, empty where a vocabulary has none, and whether the tokenizer adds them."""

    bos: bytes = b""
    eos: bytes = b""
    adds_bos: bool = False
    adds_eos: bool = False

    @classmethod
    def of(cls, tokenizer: PromptTokenizer) -> BosEos:
        """The ends of a tokenizer's texts.

        Source: common_chat_templates_init in common/chat.cpp.
        """
        vocabulary = tokenizer.vocabulary
        bos, eos = (
            b"" if token is None else tokenizer.token_to_piece(token)
            for token in (vocabulary.special_ids["bos"], vocabulary.special_ids["eos"])
        )
        return cls(bos, eos, vocabulary.add_bos, vocabulary.add_eos)

    def without_added(self, prompt: str) -> str:
        """The prompt, one character for each byte, without a BOS and an EOS that the tokenizer will add.

        Source: common_chat_template_direct_apply_impl in common/chat.cpp.
        """
        if self.adds_bos:
            prompt = prompt.removeprefix(self.bos.decode("latin-1"))
        if self.adds_eos:
            prompt = prompt.removesuffix(self.eos.decode("latin-1"))
        return prompt
