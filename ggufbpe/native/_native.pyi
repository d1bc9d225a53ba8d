"""The compiled engine, ggufbpe/native/src. Use it through ggufbpe.Tokenizer.

Written by scripts/generate_native_stubs.py; do not edit.
"""

from collections.abc import Callable, Sequence
from typing import Any

class Strings:
    @staticmethod
    def scan(
        data: object, position: int, end: int, count: int, width: int, big_endian: bool
    ) -> Strings | None: ...
    @staticmethod
    def read(
        read: Callable[[int, int], object],
        block: int,
        position: int,
        end: int,
        count: int,
        width: int,
        big_endian: bool,
    ) -> Strings | None: ...
    @staticmethod
    def walk(data: object, position: int, count: int, width: int, big_endian: bool) -> tuple[int, int]: ...
    @staticmethod
    def of(texts: Sequence[str]) -> Strings: ...
    def index(self) -> int: ...
    def find(self, text: str) -> int: ...
    def __len__(self) -> int: ...
    def __getitem__(self, arg: int, /) -> str: ...
    def __eq__(self, other: object) -> bool: ...
    def empty_ones(self) -> list[int]: ...
    def made_tokens(self, tokens: Strings) -> bytes: ...
    def packed(self) -> bytes: ...
    def to_list(self) -> list[str]: ...

def attributes_of(types: object, attribute_of: bytes) -> bytes: ...
def first_nan(numbers: object) -> int: ...
def tokens_with(attributes: object, flags: int) -> list[int]: ...
def rows(
    heads: dict[int, bytes], ids: list[int], starts: list[int], ends: list[int], between: bytes, behind: bytes
) -> bytes: ...

class Splitter:
    def __init__(
        self,
        sets: Sequence[Sequence[int]],
        stages: Sequence[tuple[Sequence[int], str, Sequence[int], Sequence[int]]],
        escape_spaces: bool,
    ) -> None: ...
    def count_words(self, text: bytes) -> int: ...
    def split_ones(self, texts: list[bytes]) -> list[int]: ...
    def cut(self, text: bytes, start: int) -> int: ...

class TextModel:
    pass

class BPEModel(TextModel):
    def __init__(
        self,
        tokens: Strings,
        merges: Strings,
        splitter: Splitter,
        byte_encode: bool,
        ignore_merges: bool,
        newline_runs: bool,
        prepend_space: bool,
        escape_spaces: bool,
        own_step: str,
        cache_bytes: int,
    ) -> None: ...

class WPMModel(TextModel):
    def __init__(
        self, tokens: Strings, unknown: int, lowercase: bool, strip_accents: bool, cache_bytes: int
    ) -> None: ...

class RWKVModel(TextModel):
    def __init__(self, tokens: Strings, unknown: int, cache_bytes: int) -> None: ...

class UGMModel(TextModel):
    def __init__(
        self,
        tokens: Strings,
        matched_by: bytes,
        attributes: bytes,
        scores: bytes,
        charsmap: bytes,
        add_space_prefix: bool,
        remove_extra_whitespaces: bool,
        unknown: int,
        composes: bool,
        strict_utf8: bool,
        cache_bytes: int,
    ) -> None: ...

class SpmModel(TextModel):
    def __init__(self, tokens: Strings, scores: bytes, add_space_prefix: bool, cache_bytes: int) -> None: ...

class PlamoModel(TextModel):
    def __init__(
        self,
        tokens: Strings,
        scores: bytes,
        byte_tokens: bytes,
        cuts_segments: bool,
        strict_utf8: bool,
        cache_bytes: int,
    ) -> None: ...

CACHE_BYTES: int = 33554432

class Ids:
    pass

class Spans:
    pass

class Encoder:
    def __init__(
        self,
        model: TextModel,
        texts: Strings,
        special: Sequence[tuple[int, bool, bool, bool]],
        before: Sequence[int],
        behind: Sequence[int],
        strict_utf8: bool,
    ) -> None: ...
    def encode(self, text: object, add_special: bool, parse_special: bool, continues: bool) -> list[int]: ...
    def encode_to_buffer(
        self, text: object, add_special: bool, parse_special: bool, threads: int, continues: bool
    ) -> Any: ...
    def encode_batch(
        self, texts: Sequence[object], add_special: bool, parse_special: bool, threads: int, as_buffers: bool
    ) -> list[Any]: ...
    def count(
        self, text: object, add_special: bool, parse_special: bool, threads: int, continues: bool
    ) -> int: ...
    def encode_with_offsets(
        self, text: object, add_special: bool, parse_special: bool, continues: bool, as_buffer: bool
    ) -> tuple[Any, Spans]: ...
    def words(self, text: object) -> list[str] | None: ...
    def count_words(self, text: object) -> int | None: ...
    def cut(self, text: bytes, start: int) -> int: ...
    def encode_plain(self, text: object) -> list[int]: ...
    def special_token_spans(self, text: bytes, parse_special: bool) -> list[tuple[int, int]]: ...
    @property
    def cache_bytes(self) -> int: ...
    @property
    def cache_misses(self) -> int: ...
    def release_memory(self) -> None: ...

def release_memory() -> None: ...
def lock_requests() -> int: ...
def lock_waits() -> int: ...

class WordCounter:
    def __init__(self, threads: int) -> None: ...
    def add(self, splitter: Splitter, text: bytes) -> None: ...
    def add_word(self, word: bytes, count: int) -> None: ...
    def words(self) -> list[tuple[str, int]]: ...

class Learner:
    def __init__(
        self,
        tokens: Sequence[str],
        raw: list[Any],
        lengths: Sequence[int],
        known: Sequence[tuple[int, int, int, int]],
        vocab_size: int,
        ties: str,
        min_frequency: int,
        max_token_length: int,
        forbidden: Sequence[str],
    ) -> None: ...
    def add_words(self, symbols: Sequence[int], ends: Sequence[int], counts: Sequence[int]) -> None: ...
    def add_counted(self, counter: WordCounter, token_of_byte: Sequence[int]) -> int: ...
    def run(self, seconds: float) -> bool: ...
    def __len__(self) -> int: ...
    def merges(self) -> list[tuple[int, int, int, int]]: ...
