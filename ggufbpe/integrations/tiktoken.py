"""For programs that take a `tiktoken.Encoding`: the ids of a GGUF behind the methods of one."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, Literal

from ..tokenizer import Tokenizer
from ._protocol import checked, eos_id, library

_Base: Any = library("tiktoken", "tiktoken").Encoding


def encoding(tokenizer: Tokenizer, name: str | None = None) -> Encoding:
    """Return a `tiktoken.Encoding` with the ids of `tokenizer`, named like its file unless `name` is given."""
    checked(tokenizer)
    return Encoding(tokenizer, name or tokenizer.name or repr(tokenizer))


class Encoding(_Base):  # type: ignore[misc]
    """A `tiktoken.Encoding` whose ids are those of a `ggufbpe.Tokenizer`.

    Special tokens are those that llama.cpp finds in a text only if asked to: control tokens and the unknown token.
    """

    def __init__(self, tokenizer: Tokenizer, name: str) -> None:
        self.name = name
        self.tokenizer = tokenizer
        self.max_token_value = len(tokenizer) - 1
        self._special_token_values = set(filter(tokenizer.is_special, tokenizer.vocabulary.special_token_ids))
        self._special_tokens = {tokenizer.id_to_token(token): token for token in self._special_token_values}
        begin = os.path.commonprefix(list(self._special_tokens))  # noqa: RUF071 - of texts that are no paths
        self._specials_begin = begin  # found sooner than all of one

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the ids of `text` as plain text."""
        try:
            return self.tokenizer.encode_ordinary(text)
        except ValueError:  # a lone surrogate
            return self.tokenizer.encode_ordinary(_without_surrogates(text))

    def encode(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Collection[str] = (),
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[int]:
        """Return the ids of `text`. `ValueError` if it has a special token that is disallowed, as in tiktoken."""
        if not allowed_special and disallowed_special == "all" and not self._has_special(text):
            return self.encode_ordinary(text)
        specials = self.special_tokens_set
        allowed = specials if allowed_special == "all" else specials & set(allowed_special)
        refused = specials - allowed if disallowed_special == "all" else set(disallowed_special)
        if refused and (found := _one_of(refused).search(text)):
            raise ValueError(
                f"The text has the special token {found[0]!r}, which is disallowed. allowed_special={{{found[0]!r}}} "
                "makes it a token, and disallowed_special=() plain text."
            )
        text = _without_surrogates(text)
        if not allowed or not (parts := re.split(f"({_one_of(allowed).pattern})", text))[1:]:
            return self.tokenizer.encode_ordinary(text)
        if not any(special in text for special in specials - allowed):
            return self.tokenizer.encode(text, add_special=False)
        ids: list[int] = []
        for index, part in enumerate(parts):
            if index % 2:
                ids.append(self._special_tokens[part])
            elif part:
                ids += self.tokenizer.encode_ordinary(part)
        return ids

    def encode_to_numpy(self, text: str, **special: Any) -> Any:
        """Return the ids of `encode` as a uint32 array."""
        import numpy

        return numpy.array(self.encode(text, **special), numpy.uint32)

    def encode_ordinary_batch(self, text: list[str], *, num_threads: int = 8) -> list[list[int]]:
        """Return `encode_ordinary` of each text."""
        texts = list(map(_without_surrogates, text))
        return self.tokenizer.encode_batch(texts, add_special=False, parse_special=False, threads=num_threads)

    def encode_batch(self, text: list[str], *, num_threads: int = 8, **special: Any) -> list[list[int]]:
        """Return `encode` of each text."""
        return [self.encode(each, **special) for each in text]

    def encode_with_unstable(self, text: str, **special: Any) -> Any:
        """Raise `NotImplementedError`."""
        raise NotImplementedError("encode_with_unstable is about tiktoken's own merges.")

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """Return the id of the token with these bytes. `KeyError` if there is none."""
        data = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        return self._ids[data]

    def _has_special(self, text: str) -> bool:
        return self._specials_begin in text and self._specials.search(text) is not None

    @cached_property
    def _specials(self) -> re.Pattern[str]:
        return _one_of(self._special_tokens) if self._special_tokens else re.compile("(?!)")

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        return {data: token for token, data in reversed(list(enumerate(self.tokenizer.token_bytes)))}

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """Return the bytes of `tokens`, one after another. `KeyError` for an id that is out of range."""
        if len(tokens) > 0 and not 0 <= min(tokens) <= max(tokens) <= self.max_token_value:
            raise KeyError(max(tokens) if max(tokens) > self.max_token_value else min(tokens))
        return b"".join(map(self.tokenizer.token_bytes.__getitem__, tokens))

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """Return the text of `tokens`."""
        return self.decode_bytes(tokens).decode("utf-8", errors)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Return the bytes of a token. `KeyError` for an id that is out of range."""
        return self.decode_bytes([token])

    def token_byte_values(self) -> list[bytes]:
        """Return the bytes of all tokens that are not special, ascending."""
        pieces = enumerate(self.tokenizer.token_bytes)
        return sorted(data for token, data in pieces if token not in self._special_token_values)

    @property
    def eot_token(self) -> int:
        """The id that ends a text."""
        return eos_id(self.tokenizer)

    def __getstate__(self) -> object:
        return self.tokenizer, self.name

    def __setstate__(self, state: Any) -> None:
        self.__init__(*state)  # type: ignore[misc]


def _one_of(texts: Collection[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))))


def _without_surrogates(text: str) -> str:
    """Return `text` with U+FFFD for lone surrogates, as tiktoken encodes them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
