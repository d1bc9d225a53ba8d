"""Run by test_export_formats.py with another version of the package tokenizers first on the path: ids of its own.

    file of questions -> [this file] -> standard output

Questions and answers are JSON: of files, each with texts and flags; of each, the ids, or why it was refused.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ggufbpe.analysis.conversion.parity import hugging_face


def answer(path: str, texts: list[str], flags: list[tuple[bool, bool]]) -> dict[str, Any]:
    try:
        library = hugging_face(Path(path).read_bytes())
    except Exception as error:
        return {"refused": str(error)}
    return {
        "library": library.name,
        "ids": [[library.encode(text, *pair) for pair in flags] for text in texts],
    }


if __name__ == "__main__":
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    json.dump([answer(**question) for question in asked], sys.stdout)
