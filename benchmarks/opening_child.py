"""Opens a vocabulary twice, in its own process, and prints the seconds until the first ids.

    opening.py -> python opening_child.py ENGINE GGUF -> {"first": …, "again": …, "ids": …}

Importing the package is not timed, but imports while it opens a file are.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

from cases import Case
from peers import LLAMA_CPP, open_llama_cpp, open_ours
from timing import seconds


def main() -> None:
    """Open and report."""
    warnings.simplefilter("ignore")
    engine, path = sys.argv[1:]
    case = Case("opened", Path(path), Path())
    if engine == LLAMA_CPP:
        import llama_cpp  # noqa: F401
    ids: list[int] = []

    def open_and_encode() -> None:
        opened = open_llama_cpp(case) if engine == LLAMA_CPP else open_ours(case, engine)
        ids[:] = opened.encode_to_list("Hello world")
        kept.append(opened)  # closing is not timed

    kept: list[object] = []
    first, again = seconds(open_and_encode), seconds(open_and_encode)
    print(json.dumps({"first": first, "again": again, "ids": ids}))


if __name__ == "__main__":
    main()
