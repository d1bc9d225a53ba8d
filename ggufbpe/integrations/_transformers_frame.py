"""The part of transformers.py about what a model adds around texts: BOS, EOS, CLS, SEP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ..gguf.constants import TokenizerKey
from ..models.vocabulary import Vocabulary
from ..tokenizer import Tokenizer
from ._transformers_truncation import Truncation

T = TypeVar("T")


class AddedTokens(Truncation):
    """The base class of `GGUFTokenizer` that adds tokens around one text or two, and marks them."""

    tok: Tokenizer
    _before: list[int]  # what the model adds before a text
    _after: list[int]
    _before_second: list[int]  # what is added before the second text of a pair

    def _take(self, tok: Tokenizer) -> None:
        """Set the tokenizer, and what its model adds."""
        self.tok = tok
        self._before, self._after = tok.vocabulary.added
        # As `ggufbpe export` writes tokenizer.json: a model that ends texts by SEP has [CLS] A [SEP] B [SEP].
        self._before_second = [] if ends_by_sep(tok.vocabulary) else self._before

    @property
    def add_bos_token(self) -> bool:
        """Whether a token is added before each text: BOS, or CLS.

        Setting it makes `tok` the tokenizer of a file that says so (tokenizer.ggml.add_bos_token), which
        `save_pretrained` writes. `ValueError` where llama.cpp ignores the flag, as for BERT, or where there is no
        such token.
        """
        return bool(self._before)

    @add_bos_token.setter
    def add_bos_token(self, value: bool) -> None:
        self._override(TokenizerKey.ADD_BOS, value, 0, "before")

    @property
    def add_eos_token(self) -> bool:
        """Whether a token is added behind each text: EOS, or SEP. It can be set like `add_bos_token`."""
        return bool(self._after)

    @add_eos_token.setter
    def add_eos_token(self, value: bool) -> None:
        self._override(TokenizerKey.ADD_EOS, value, 1, "behind")

    def _override(self, key: str, value: bool, side: int, where: str) -> None:
        if bool(self.tok.vocabulary.added[side]) == bool(value):
            return
        changed = self.tok.with_overrides({key: bool(value)})
        if bool(changed.vocabulary.added[side]) != bool(value):
            does = "adds no token" if value else "always adds a token"
            raise ValueError(f"{key} = {value} has no effect: llama.cpp {does} {where} a text of this model")
        self._take(changed)

    def _framed(self, first: Sequence[T], second: Sequence[T] | None, mark: T) -> list[T]:
        """Return one or two sequences with `mark` in each place where the model adds a token."""
        after = [mark] * len(self._after)
        whole = [*[mark] * len(self._before), *first, *after]
        return whole if second is None else [*whole, *[mark] * len(self._before_second), *second, *after]

    def build_inputs_with_special_tokens(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> Any:
        """Return the ids of one or two texts with what the model adds around them: BOS, EOS, CLS, SEP."""
        whole = [*self._before, *token_ids_0, *self._after]
        return whole if token_ids_1 is None else [*whole, *self._before_second, *token_ids_1, *self._after]

    def get_special_tokens_mask(
        self,
        token_ids_0: list[int],
        token_ids_1: list[int] | None = None,
        already_has_special_tokens: bool = False,
    ) -> Any:
        """Return 1 for each token that is added around the texts, else 0; or, of finished ids, for special tokens."""
        if already_has_special_tokens:
            return super().get_special_tokens_mask(token_ids_0, token_ids_1, already_has_special_tokens=True)
        return self._framed(
            [0] * len(token_ids_0), None if token_ids_1 is None else [0] * len(token_ids_1), 1
        )

    def create_token_type_ids_from_sequences(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        """Return 0 for each token of the first text, and 1 for each of the second, with what is added around them."""
        whole = len(self.build_inputs_with_special_tokens(token_ids_0, token_ids_1))
        first = len(self.build_inputs_with_special_tokens(token_ids_0))
        return [0] * first + [1] * (whole - first)


def ends_by_sep(vocabulary: Vocabulary) -> bool:
    """Whether the model has CLS and SEP around a text instead of BOS and EOS."""
    return tuple(vocabulary.tokenizer_model.added_names(True, True)[1]) == ("sep",)
