"""The precompiled charsmap of sentencepiece: replacements made in a text before it is cut into tokens.

    tokenizer.ggml.precompiled_charsmap -> [this file] -> ugm.py

It comes from the file, so every index in it is checked before it is used.

Source: src/llama-vocab.cpp, llm_tokenizer_ugm_session::normalize_prefix and xcda_array_view.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from collections.abc import Iterator


def lacks(data: bytes) -> str:
    """What a charsmap has too few bytes for; "" if it has enough."""
    size = int.from_bytes(data[:4], "little")
    if len(data) >= 4 and size + 4 < len(data):
        return ""
    return f"has {len(data)} bytes, too few for " + (f"an array of {size}" if data[3:] else "its size")


class Charsmap:
    """A trie of the sequences to replace, as a double array (XCDA), and the replacements."""

    def __init__(self, data: bytes) -> None:
        """`data`: the size of the double array in bytes, the array, and strings that end in NUL; or nothing."""
        size = int.from_bytes(data[:4], "little")
        self._units = array("I", data[4 : 4 + size // 4 * 4])
        if sys.byteorder == "big":
            self._units.byteswap()
        self._strings = data[4 + size :]

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
            unit = self._unit(index, text[start : position + 1])
            if unit & 0x800000FF != byte:
                break
            index ^= _base(unit)
            if unit & 0x100:
                length, value = (
                    position + 1 - start,
                    self._unit(index, text[start : position + 1]) & 0x7FFFFFFF,
                )
        if not length:
            return None
        end = self._strings.find(b"\0", value)
        if end < 0:
            raise _damaged(text[start : start + length])
        return self._strings[value:end], length

    def damaged(self) -> Iterator[bytes]:
        """Texts that lead out of it: a shortest one for each place where that happens."""
        size = len(self._units)
        children: dict[int, list[int]] = {}
        for index, unit in enumerate(self._units):
            if unit & 0xFF and not unit & 0x80000000:
                children.setdefault(index ^ (unit & 0xFF), []).append(index)
        waiting = deque([(_base(self._units[0]), b"")] if size else [])
        seen = {at for at, _ in waiting}
        while waiting:
            at, text = waiting.popleft()
            if at | 0xFF >= size and (out := next((b for b in range(1, 256) if at ^ b >= size), None)):
                yield text + bytes([out])
            for index in children.get(at, ()):
                unit = self._units[index]
                below, longer = index ^ _base(unit), text + bytes([unit & 0xFF])
                value = self._units[below] & 0x7FFFFFFF if below < size else len(self._strings)
                if unit & 0x100 and self._strings.find(b"\0", value) < 0:
                    yield longer
                if below not in seen:
                    seen.add(below)
                    waiting.append((below, longer))

    def _unit(self, index: int, seen: bytes) -> int:
        if index >= len(self._units):
            raise _damaged(seen)
        return self._units[index]


def _damaged(seen: bytes) -> ValueError:
    return ValueError(
        f"the charsmap of the model is damaged: the bytes {seen[:16].hex()} of the text lead out of it"
    )


def _base(unit: int) -> int:
    return unit >> 10 << ((unit & 0x200) >> 6)
