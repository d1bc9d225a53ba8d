"""Write ggufbpe/_util/unicode_composition.txt: the code points that Unicode's canonical composition (NFC) may change.

llama.cpp's unicode_cpts_normalize_nfc (src/unicode.cpp) equals NFC of Unicode 15.1.0, which `unicodedata2` of that
version carries, whatever Python runs this.

    pip install 'ggufbpe[generate]'
    python scripts/generate_unicode_composition.py            # writes the file
    python scripts/generate_unicode_composition.py --print    # prints it
"""

from __future__ import annotations

from pathlib import Path

import unicodedata2
from generate_unicode_classes import row, runs_of, tables
from generated_file import write_or_print

TARGET = Path(__file__).resolve().parent.parent / "ggufbpe" / "_util" / "unicode_composition.txt"


def decomposition(code_point: int) -> tuple[int, ...]:
    """The code points of the canonical decomposition in one step; none if there is none."""
    found = unicodedata2.decomposition(chr(code_point))
    return () if found.startswith("<") else tuple(int(each, 16) for each in found.split())


def composing(code_point: int) -> int | None:
    """The combining class of a code point that may change or be combined with the one before it; None of any other."""
    char = chr(code_point)
    combining: int = unicodedata2.combining(char)
    if combining or unicodedata2.normalize("NFC", char) != char or code_point in _SECONDS:
        return combining
    return None


def _compositions() -> dict[tuple[int, int], int]:
    found = {}
    for code_point in range(0x110000):
        parts = decomposition(code_point)
        if len(parts) == 2 and unicodedata2.normalize("NFC", chr(code_point)) == chr(code_point):
            found[parts[0], parts[1]] = code_point
    return found


DECOMPOSITIONS = {point: parts for point in range(0x110000) if (parts := decomposition(point))}
COMPOSITIONS = _compositions()
_SECONDS = {second for _, second in COMPOSITIONS} | {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}


def module_text() -> str:
    """The whole file, as in the repository."""
    return tables([row(*run) for run in runs_of(composing)])


if __name__ == "__main__":
    write_or_print(__doc__, TARGET, module_text)
