"""Opens another program's tokenizer files without writing a GGUF: `Tokenizer.from_huggingface`."""

from __future__ import annotations

import os

from .imported import pack
from .importers.import_files import NAMES, import_file
from .importers.import_merges import VOCAB_NAMES


def gguf_of_files(path: str, pre: str | None = None) -> tuple[bytes, list[str]]:
    """Return the GGUF that `ggufbpe import` writes for the files at `path`, and what it cannot carry, in words.

    Arguments and errors are those of `import_vocabulary`.
    """
    imported = import_file(path, pre=pre)
    return pack(imported.metadata), [limit.what for limit in imported.limits]


def is_other_format(path: str) -> bool:
    """Whether `path` is a file that `ggufbpe import` reads, or a folder with one and without a GGUF."""
    names = {*NAMES, *VOCAB_NAMES}
    try:
        if os.path.isdir(path):
            there = os.listdir(path)
            return not names.isdisjoint(there) and not any(name.endswith(".gguf") for name in there)
        if os.path.basename(path) not in names:
            return False
        with open(path, "rb") as file:
            return file.read(4) != b"GGUF"
    except OSError:
        return False  # whoever opens it says why
