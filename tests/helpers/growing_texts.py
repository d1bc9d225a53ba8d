"""Random changes of texts that grow, each compared with `encode` of the whole text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from split_cases import BROKEN, ODD, opened
from synthetic import CHARACTERS, WORDS, tokenizer_as

from ggufbpe import Tokenizer
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.tokenizer import incremental, split_points, text_segments
from ggufbpe.tokenizer.incremental import Checkpoint, IncrementalEncoding

_SMALL_SIZES = (
    (incremental, {"_SMALL": 12, "_LARGE": 24, "_OPEN": 4, "_AT_ONCE": 40}),
    (text_segments, {"_MOST": 4, "_FEW": 2}),
    (split_points, {"_FIRST_STEP": 3}),
)


@contextmanager
def small_segments() -> Iterator[None]:
    """Within, segments and chunks are so small that short texts have many."""
    saved: list[tuple[Any, str, Any]] = [
        (module, name, getattr(module, name)) for module, sizes in _SMALL_SIZES for name in sizes
    ]
    try:
        for module, sizes in _SMALL_SIZES:
            for name, size in sizes.items():
                setattr(module, name, size)
        yield
    finally:
        for module, name, size in saved:
            setattr(module, name, size)


def all_tokenizers(engine: str) -> Iterator[tuple[str, Tokenizer]]:
    """Each pre-tokenizer's name with a real vocabulary, and each recorded vocabulary that llama.cpp takes."""
    for name in PRE_TOKENIZERS:
        yield name, Tokenizer(tokenizer_as(name).vocabulary, engine)  # type: ignore[arg-type]
    for name, tokenizer in opened().items():
        yield f"{name}.gguf", Tokenizer(tokenizer.vocabulary, engine)  # type: ignore[arg-type]


class ChangingText:
    """One text that is changed at random, and what its ids must be."""

    def __init__(self, tokenizer: Tokenizer, seed: str, longest: int = 500) -> None:
        """A text of more than `longest` bytes is shortened before it grows again."""
        self._longest = longest
        self._dice = random.Random(seed)
        self._tokenizer = tokenizer
        special = tokenizer.vocabulary.special_token_ids
        self._special = [
            tokenizer.id_to_token(token).encode() for token in special if tokenizer.id_to_token(token)
        ]
        self._flags = {
            "add_special": self._dice.random() < 0.5,
            "parse_special": self._dice.random() < 0.7,
        }
        self._text = b""
        self._ids = tokenizer.encode(b"", **self._flags)
        self._growing: IncrementalEncoding = tokenizer.incremental(**self._flags)
        self._rest: list[bytes] = []  # what is to come, the next one last
        self._at = 0  # where it is to come
        self._kept: list[tuple[Checkpoint, bytes, list[int]]] = []

    def step(self) -> str | None:
        """Change the text; returns what is wrong then, in words, or None."""
        dice = self._dice
        chance = dice.random()
        if chance < 0.06:
            self._kept = [*self._kept[-4:], (self._growing.checkpoint(), self._text, self._ids)]
            return None
        if chance < 0.12 and self._kept:
            checkpoint, text, ids = dice.choice(self._kept)
            self._rest = []
            return self._compared("restore", text, ids, self._growing.restore(checkpoint))
        size = len(self._text)
        if self._rest and self._at <= size:
            data = self._rest.pop()
            return self._changed(self._at, self._at, data)
        start = end = size
        data = b""
        if chance < 0.2 or size > self._longest:
            start = dice.choice((dice.randint(0, size), max(size - dice.randint(0, 9), 0)))
        elif chance < 0.5:
            start, end = sorted((dice.randint(0, size), dice.randint(0, size)))
            end = dice.choice((start, min(start + 3, size), end))
            data = self._piece() if dice.random() < 0.8 else b""
        else:
            data = self._piece()
        if data and dice.random() < 0.4:  # the rest of it comes in the next steps
            parts = self._divided(data)
            data, self._rest = parts[0], parts[:0:-1]
        return self._changed(start, end, data)

    def _divided(self, data: bytes) -> list[bytes]:
        """`data` in two or three parts, or in single bytes."""
        if len(data) < 20 and self._dice.random() < 0.3:
            return [bytes([byte]) for byte in data]
        places = sorted(self._dice.choices(range(len(data) + 1), k=self._dice.randint(1, 2)))
        return [data[first:last] for first, last in zip([0, *places], [*places, len(data)])]

    def _changed(self, start: int, end: int, data: bytes) -> str | None:
        self._at = start + len(data)
        text = self._text[:start] + data + self._text[end:]
        name = f"replace({start}, {end}, {data!r})"
        try:
            ids = self._tokenizer.encode(text, **self._flags)
        except ValueError as error:
            return self._refused(name, start, end, data, error)
        if start == end == len(self._text):
            change = self._growing.append(data)
        elif not data and end == len(self._text):
            change = self._growing.truncate(start)
        else:
            change = self._growing.replace(start, end, data)
        return self._compared(name, text, ids, change)

    def _refused(self, name: str, start: int, end: int, data: bytes, error: ValueError) -> str | None:
        try:
            self._growing.replace(start, end, data)
        except type(error):
            same = self._growing.to_bytes() == self._text and self._growing.ids == self._ids
            return None if same else f"{name} raised and changed {self._text!r}"
        return f"{name} of {self._text!r} did not raise {error!r}"

    def _compared(self, name: str, text: bytes, ids: list[int], change: incremental.IdsChange) -> str | None:
        growing, before = self._growing, self._text
        kept, removed, inserted = change
        from_change = self._ids[:kept] + inserted + self._ids[kept + removed :]
        self._text, self._ids = text, ids
        found = growing.ids
        if found == ids == from_change and growing.count == len(ids) and growing.size == len(text):
            return (
                None if growing.to_bytes() == text else f"{name} of {before!r} gives {growing.to_bytes()!r}"
            )
        self._ids = ids
        return f"{name} of {before!r} with {self._flags}: {found} or {from_change}, not {ids}"

    def _piece(self) -> bytes:
        """What is put in: whole words and special tokens, parts of them, single bytes, or several at once."""
        dice = self._dice
        chance = dice.random()
        if chance < 0.25:
            return dice.choice(CHARACTERS).encode()
        if chance < 0.45:
            return dice.choice((*WORDS, *ODD, " the", " a", "ing ", "  ", "\n\n")).encode()
        if chance < 0.6 and self._special:
            special = dice.choice(self._special)
            cut = dice.randint(0, len(special))
            return dice.choice((special, special[:cut], special[cut:], b" " + special + b" \n"))
        if chance < 0.7:
            character = dice.choice("éßअ中가🙂𝟘▁\ufeff").encode()
            cut = dice.randint(0, len(character))
            return dice.choice((character[:cut], character[cut:]))
        if chance < 0.78:
            return dice.choice((*BROKEN, bytes([dice.randrange(256)])))
        if chance < 0.88:
            return self._tokenizer.token_to_piece(dice.randrange(self._tokenizer.vocab_size))
        return b"".join(self._piece() for _ in range(dice.randint(2, 9)))
