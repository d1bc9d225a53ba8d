"""RWKV's tokenizer, which takes the longest token at each position, in bytes: the model `rwkv`.

Where a text has the beginning of a token but no whole one, llama.cpp returns to the beginning of the text, again and
again until memory is full. In this module the unknown token then stands for one byte, as where no token begins.

Source: src/llama-vocab.cpp, llm_tokenizer_rwkv_session and llama_unescape_rwkv_token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .._util.lazy import cached_property
from ..gguf.metadata import Metadata
from .pretokenizers.registry import PreTokenizer
from .tokenizer_model import NO_TOKEN, TextModel, TokenizerModel, Warn, unknown_id
from .trie import Trie

if TYPE_CHECKING:
    from .format_detection import Looks
    from .tracers.trace_types import Tracer
    from .vocabulary import Vocabulary

_FLAGS = PreTokenizer("", "", byte_encode=False, clean_spaces=False)
_NAMED = {ord("t"): 0x09, ord("n"): 0x0A, ord("r"): 0x0D}


class RWKVModel(TokenizerModel):
    """`rwkv`."""

    name = "rwkv"
    description = "RWKV's greedy longest match"
    vocab_type = 5
    is_supported = True
    algorithm = "longest match"
    architecture = "rwkv6"
    has_pre_tokenizer = False
    is_one_word = True
    needs_bytes = True
    refuses_short_byte_tokens = False

    def recognizes(self, looks: Looks) -> bool:
        """Bytes written as escapes, and no sign of other models."""
        return looks.has_escapes and not (looks.has_merges or looks.begins_words or looks.is_byte_level)

    def pre_tokenizer(self, file: Metadata, named_pre: str, warn: Warn) -> PreTokenizer:
        """Only flags."""
        return _FLAGS

    def has_line_break(self, entry: PreTokenizer, token_to_id: Mapping[str, int]) -> bool:
        """Whether a token is a newline. Without one llama.cpp says nothing; where a token begins with it, it hangs."""
        return any(text in token_to_id for text in ("\\n", "\n", "\\x0a", "\\\n"))

    def line_break(self, vocabulary: Vocabulary, plain_ids: Iterable[int]) -> int | None:
        """The token of a newline; llama.cpp looks it up before it knows the unknown token."""
        first = next(iter(plain_ids), NO_TOKEN)
        is_token = first != NO_TOKEN and unescape(vocabulary.tokens[first]) == b"\n"
        return first if is_token else None

    def piece(self, text: str, attribute: int) -> bytes:
        """The bytes of any token, whatever its attributes."""
        return unescape(text)

    def added_names(self, add_bos: bool, add_eos: bool) -> tuple[Sequence[str], Sequence[str]]:
        """Nothing, whatever the flags say."""
        return (), ()

    def text_model(self, vocabulary: Vocabulary, most_words: int | None = None) -> RWKVText:
        """The longest tokens."""
        return RWKVText(vocabulary)


def unescape(text: str) -> bytes:
    r"""The bytes that a token stands for.

    >>> unescape(r"\n\xe4\xb8\\"), unescape(r"caf\'e\x4")  # half of a number is dropped
    (b'\n\xe4\xb8\\', b"caf'e")
    """
    data = text.encode()
    if b"\\" not in data:
        return data
    found = bytearray()
    at = 0
    while at < len(data):
        byte = data[at]
        at += 1
        if byte != 0x5C:
            found.append(byte)
        elif at < len(data):
            escaped = data[at]
            at += 1
            if escaped != ord("x"):
                found.append(_NAMED.get(escaped, escaped))
            else:
                if at + 1 < len(data):
                    found.append((_digit(data[at]) * 16 + _digit(data[at + 1])) & 0xFF)
                at += 2
    return bytes(found)


def _digit(byte: int) -> int:
    """The value of a hexadecimal digit; for other bytes, llama.cpp's result on machines with signed char."""
    return byte - ord("a") + 10 if ord("a") <= byte < 0x80 else byte - ord("0")


class RWKVText(TextModel):
    """The `TextModel` (tokenizer_model.py) of RWKV."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._unknown = unknown_id(vocabulary)

    @cached_property
    def trie(self) -> Trie:
        """The tokens, unescaped."""
        return Trie((unescape(text), token) for token, text in enumerate(self.vocabulary.tokens))

    def unescaped(self, token: int) -> bytes:
        """The bytes that a token matches."""
        return unescape(self.vocabulary.tokens[token])

    def words(self, fragment: bytes) -> list[str]:
        """The whole text: nothing splits it."""
        return [fragment.decode("utf-8", "replace")] if fragment else []

    def runs(self, fragment: bytes) -> Iterator[Iterable[tuple[int, ...]]]:
        """The ids, each in its own tuple."""
        yield ((token,) for token, _, _ in self.spans(fragment))

    def spans(self, fragment: bytes) -> Iterator[tuple[int, int, int]]:
        """(id, start, end) of each token, in bytes of the fragment."""
        longest = self.trie.longest
        at = 0
        while at < len(fragment):
            token, end = longest(fragment, at) or (self._unknown, at + 1)
            yield token, at, end
            at = end

    def tracer(self) -> Tracer:
        """The tracer of its steps."""
        from .tracers.rwkv import RWKVTracer

        return RWKVTracer(self)
