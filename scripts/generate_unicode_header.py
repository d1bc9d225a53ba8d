"""Write ggufbpe/native/src/unicode_classes.h: the tables of ggufbpe/_util/unicode_classes.py for the compiled engine.

python scripts/generate_unicode_header.py            # writes the file
python scripts/generate_unicode_header.py --print    # prints it
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from generate_unicode_classes import runs_of, wrapped
from generated_file import write_or_print

from ggufbpe._util.unicode_classes import CLASSES, CONTROL, STARTS, UNICODE_VERSION, decomposed, lower

TARGET = Path(__file__).resolve().parent.parent / "ggufbpe" / "native" / "src" / "unicode_classes.h"

HEAD = """// The class of every code point, and what it becomes in lower case and when it is decomposed:
// ggufbpe/_util/unicode_classes.py for C++.
//
// Unicode {version}. Written by scripts/generate_unicode_header.py; do not edit.

#pragma once

#include <cstddef>
#include <cstdint>

namespace ggufbpe {{

// Code points from CLASS_STARTS[i] up to the next start have the class CLASS_LETTERS[i].
constexpr size_t CLASS_RUNS = {runs};

// clang-format off
constexpr uint32_t CLASS_STARTS[CLASS_RUNS] = {{
"""


def changed_by(function: Callable[[int], int]) -> Callable[[int], int | None]:
    """Return a form of `function` that gives None for a code point that it leaves as it is."""
    return lambda code_point: None if function(code_point) == code_point else function(code_point)


def module_text() -> str:
    """The whole header, as in the repository."""
    pairs = [(a, lower(a)) for a in range(0x110000) if lower(a) != a]
    runs = runs_of(changed_by(decomposed))
    lines = wrapped([hex(start) for start in STARTS])
    lines += ["};", "constexpr char CLASS_LETTERS[CLASS_RUNS + 1] ="]
    lines += [f'    "{CLASSES[i : i + 100]}"' for i in range(0, len(CLASSES), 100)]
    lines[-1] += ";"
    lines += ["", f"constexpr size_t LOWER_PAIRS = {len(pairs)};"]
    lines += ["constexpr uint32_t LOWER[LOWER_PAIRS][2] = {"]
    lines += wrapped([f"{{{a:#x}, {b:#x}}}" for a, b in pairs])
    lines += ["};", "", f"constexpr size_t DECOMPOSED_RUNS = {len(runs)};"]
    lines += ["// The first, the last, and the first code point of what each of them decomposes to."]
    lines += ["constexpr uint32_t DECOMPOSED[DECOMPOSED_RUNS][3] = {"]
    lines += wrapped([f"{{{a:#x}, {b:#x}, {c:#x}}}" for a, b, c in runs])
    lines += ["};", "", f"constexpr size_t CONTROL_RUNS = {len(CONTROL)};"]
    lines += ["// The first and the last."]
    lines += ["constexpr uint32_t CONTROL[CONTROL_RUNS][2] = {"]
    lines += wrapped([f"{{{a:#x}, {b:#x}}}" for a, b in CONTROL])
    lines += ["};", "// clang-format on", "", "}  // namespace ggufbpe"]
    return HEAD.format(version=UNICODE_VERSION, runs=len(STARTS)) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_or_print(__doc__, TARGET, module_text)
