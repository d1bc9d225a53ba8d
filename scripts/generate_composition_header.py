"""Write ggufbpe/native/src/unicode_composition.h: the tables of ggufbpe/_util/unicode_composition.py for "
"the compiled engine"

python scripts/generate_composition_header.py            # writes the file
python scripts/generate_composition_header.py --print    # prints it
"""

from __future__ import annotations

from pathlib import Path

from generate_unicode_classes import wrapped
from generate_unicode_composition import COMPOSITIONS, DECOMPOSITIONS
from generated_file import write_or_print

from ggufbpe._util.unicode_composition import COMPOSING, UNICODE_VERSION

TARGET = Path(__file__).resolve().parent.parent / "ggufbpe" / "native" / "src" / "unicode_composition.h"

HEAD = """// What canonical composition (NFC) needs of each code point: ggufbpe/_util/unicode_composition.py in C++.
//
// Unicode {version}. Written by scripts/generate_composition_header.py; do not edit.

#pragma once

#include <cstddef>
#include <cstdint>

namespace ggufbpe {{

// clang-format off
"""


def table(comment: str, name: str, rows: list[tuple[int, ...]]) -> list[str]:
    """The lines of an array of rows."""
    size = f"{name}_ROWS"
    head = [
        f"constexpr size_t {size} = {len(rows)};",
        f"// {comment}",
        f"constexpr uint32_t {name}[{size}][3] = {{",
    ]
    return [*head, *wrapped([f"{{{', '.join(map(hex, row))}}}" for row in rows]), "};", ""]


def module_text() -> str:
    """The whole header, as in the repository."""
    lines = table(
        "Code points that may change or combine with the one before: the first, the last, their combining class.",
        "COMPOSING",
        [*COMPOSING],
    )
    lines += table(
        "A code point, and the one or two that it decomposes to in one step.",
        "DECOMPOSITIONS",
        [(point, *parts, *[0] * (2 - len(parts))) for point, parts in sorted(DECOMPOSITIONS.items())],
    )
    lines += table(
        "Two code points, and the one that they compose to.",
        "COMPOSITIONS",
        [(*pair, composed) for pair, composed in sorted(COMPOSITIONS.items())],
    )
    lines += ["// clang-format on", "", "}  // namespace ggufbpe"]
    return HEAD.format(version=UNICODE_VERSION) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_or_print(__doc__, TARGET, module_text)
