"""Charsmaps in sentencepiece's precompiled form, out of plain dictionaries: for random vocabularies and for rules.

    replacements -> [this file] -> tokenizer.ggml.precompiled_charsmap

Source of the layout: src/llama-vocab.cpp, llm_tokenizer_ugm_session::xcda_array_view.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping


def charsmap(replacements: Mapping[bytes, bytes]) -> bytes:
    """The map as bytes. Keys and replacements have no NUL, keys are not empty.

    >>> len(charsmap({b"a": b"b"}))
    1031
    """
    strings = b"\0"
    trie: dict[int, dict] = {}  # type: ignore[type-arg]
    for key, text in sorted(replacements.items()):
        node = trie
        for byte in key:
            node = node.setdefault(byte, {})
        node[0] = {"value": len(strings)}
        strings += text + b"\0"
    units = _double_array(trie)
    blob = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(blob)) + blob + strings


def _double_array(trie: dict) -> list[int]:  # type: ignore[type-arg]
    """Each node's children lie at one number, different for each node, XORed with their bytes."""
    units: list[int] = [0] * 256
    is_free = [False, *[True] * 255]
    taken: set[int] = set()
    waiting = [(0, trie)]
    while waiting:
        index, node = waiting.pop()
        place = next(
            place
            for place in range(1, len(units) + 1)
            if place not in taken
            and all((place ^ byte) >= len(units) or is_free[place ^ byte] for byte in node)
        )
        taken.add(place)
        while any(place ^ byte >= len(units) for byte in (*node, 255)):
            units += [0] * 256
            is_free += [True] * 256
        units[index] |= (index ^ place) << 10 | (0x100 if 0 in node else 0)
        for byte, child in node.items():
            is_free[place ^ byte] = False
            if byte:
                units[place ^ byte] = byte
                waiting.append((place ^ byte, child))
            else:
                units[place] = 1 << 31 | child["value"]
    return units
