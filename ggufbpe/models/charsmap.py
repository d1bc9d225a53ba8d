"""The precompiled charsmap of sentencepiece: replacements made in a text before it is tokenized.

The charsmap comes from the file (`tokenizer.ggml.precompiled_charsmap`), so every index in it is checked before use.
It is stored as a double-array trie (XCDA).

Source: src/llama-vocab.cpp, llm_tokenizer_ugm_session::normalize_prefix and xcda_array_view.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from typing import NamedTuple


def describe_truncation(data: bytes) -> str:
    """What a charsmap has too few bytes for; "" if it has enough."""
    size = int.from_bytes(data[:4], "little")
    if len(data) >= 4 and size + 4 < len(data):
        return ""
    return f"has {len(data)} bytes, too few for " + (f"an array of {size}" if data[3:] else "its size")


class Damage(NamedTuple):
    """Where texts lead out of a charsmap."""

    places: int  # of the array, from which a text leads out
    texts: list[bytes]  # the shortest text for each of the first places, the shortest texts first


class Charsmap:
    """A trie of the sequences to replace, as a double array (XCDA), and the replacements."""

    def __init__(self, data: bytes) -> None:
        """`data`: the size of the double array in bytes, the array, and strings that end in NUL; or nothing."""
        size = int.from_bytes(data[:4], "little")
        self._units = array("I", data[4 : 4 + size // 4 * 4])
        if sys.byteorder == "big":
            self._units.byteswap()
        self._strings = data[4 + size :]
        self._last_end = self._strings.rfind(b"\0")  # replacements that begin after it have no end

    def longest(self, text: bytes, start: int) -> tuple[bytes, int] | None:
        """The replacement of the longest key at `start`, and the length of that key."""
        if not self._units:
            return None
        length, value = 0, 0
        index = _base(self._units[0])
        for position in range(start, len(text)):
            byte = text[position]
            if not byte:
                break
            index ^= byte
            unit = self._unit(index, text, start, position + 1)
            if unit & 0x800000FF != byte:
                break
            index ^= _base(unit)
            if unit & 0x100:
                length = position + 1 - start
                value = self._unit(index, text, start, position + 1) & 0x7FFFFFFF
        if not length:
            return None
        if value > self._last_end:
            raise _damaged(text, start, start + length)
        return self._strings[value : self._strings.index(b"\0", value)], length

    def damage(self, most: int = 100) -> Damage:
        """Where texts lead out of this charsmap, with texts for at most `most` of these places.

        Each unit of the array is looked at once, however many keys lead to it.
        """
        size = len(self._units)
        children: dict[int, list[int]] = {}
        for index, unit in enumerate(self._units):
            if unit & 0xFF and not unit & 0x80000000:
                children.setdefault(index ^ (unit & 0xFF), []).append(index)
        root = _base(self._units[0]) if size else 0
        waiting = deque([root] if size else [])
        met = {root: (root, 0)}  # from which place each was met first, and by which byte
        count = 0
        texts: list[bytes] = []

        def add(place: int, byte: int) -> None:
            nonlocal count
            count += 1
            if len(texts) >= most:
                return
            read = bytearray([byte])
            while place != root:
                place, byte = met[place]
                read.append(byte)
            texts.append(bytes(read[::-1]))

        while waiting:
            place = waiting.popleft()
            if place | 0xFF >= size and (out := next((b for b in range(1, 256) if place ^ b >= size), None)):
                add(place, out)
            for index in children.get(place, ()):
                unit = self._units[index]
                below = index ^ _base(unit)
                value = self._units[below] & 0x7FFFFFFF if below < size else len(self._strings)
                if unit & 0x100 and value > self._last_end:
                    add(place, unit & 0xFF)
                if below not in met:
                    met[below] = place, unit & 0xFF
                    waiting.append(below)
        return Damage(count, texts)

    def _unit(self, index: int, text: bytes, start: int, end: int) -> int:
        """The unit at `index`. `ValueError` if the array has none: the bytes from `start` to `end` led there."""
        if index >= len(self._units):
            raise _damaged(text, start, end)
        return self._units[index]


def _damaged(text: bytes, start: int, end: int) -> ValueError:
    seen = text[start : min(end, start + 16)].hex()
    return ValueError(f"the charsmap of the model is damaged: the bytes {seen} of the text lead out of it")


def _base(unit: int) -> int:
    return unit >> 10 << ((unit & 0x200) >> 6)
