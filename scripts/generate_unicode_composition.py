"""Write ggufbpe/_util/unicode_composition.py: what Unicode's canonical composition (NFC) needs to know "
"of each code point"

llama.cpp's unicode_cpts_normalize_nfc (src/unicode.cpp) equals NFC of Unicode 15.1.0, which `unicodedata2` of that
version carries, whatever Python runs this.

    pip install 'ggufbpe[generate]'
    python scripts/generate_unicode_composition.py            # writes the file
    python scripts/generate_unicode_composition.py --print    # prints it
"""

from __future__ import annotations

from pathlib import Path

import unicodedata2
from generate_unicode_classes import runs_of, wrapped
from generated_file import write_or_print

TARGET = Path(__file__).resolve().parent.parent / "ggufbpe" / "_util" / "unicode_composition.py"
HANGUL = range(0xAC00, 0xD7A4)  # syllables, whose decompositions are computed

HEAD = '''"""What canonical composition (NFC) needs to know of each code point, by Unicode {version}.

Syllables of Hangul are not in the tables: their decompositions follow from their numbers.

Written by scripts/generate_unicode_composition.py; do not edit.
"""

UNICODE_VERSION = "{version}"

# fmt: off
# Code points that are not always the same after composition: the first, the last, and their combining class. A text
# without any of them is composed.
COMPOSING = (
'''


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


COMPOSITIONS = _compositions()
_SECONDS = {second for _, second in COMPOSITIONS} | {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}


def module_text() -> str:
    """The whole module, as in the repository."""
    lines = wrapped([f"({a:#x}, {b:#x}, {c})" for a, b, c in runs_of(composing)])
    lines += [
        ")",
        "# Canonical decompositions, in one step.",
        "DECOMPOSITIONS: dict[int, tuple[int, ...]] = {",
    ]
    decompositions = {code_point: decomposition(code_point) for code_point in range(0x110000)}
    lines += wrapped(
        [f"{point:#x}: ({', '.join(map(hex, parts))},)" for point, parts in decompositions.items() if parts]
    )
    lines += ["}", "# Pairs that are composed.", "COMPOSITIONS: dict[tuple[int, int], int] = {"]
    lines += wrapped([f"({a:#x}, {b:#x}): {c:#x}" for (a, b), c in sorted(COMPOSITIONS.items())])
    lines += ["}"]
    return HEAD.format(version=unicodedata2.unidata_version) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_or_print(__doc__, TARGET, module_text)
