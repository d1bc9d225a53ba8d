"""Opens another program's tokenizer files without writing a GGUF: `Tokenizer.from_huggingface`."""

from __future__ import annotations

import errno
import os
import warnings

from .._util.errors import escape_invisible
from ..gguf.source import Source
from ..hub.model_location import IMPORTED, ModelLocation
from ..models.vocabulary import GGUFWarning
from .imported import NotImportableError, pack
from .importers.import_files import import_file
from .incompatibilities import NOT_ABOUT_IDS

_NOTE = "imported in memory: this is the GGUF that `ggufbpe import` would write"


def imported_model(path: str, pre: str | None = None) -> ModelLocation:
    """Return the GGUF that `ggufbpe import` writes for the files at `path`, in memory.

    Warns (`GGUFWarning`) of everything in the files that llama.cpp has no place for. Arguments and errors are those of
    `import_vocabulary`.
    """
    if not os.path.lexists(path):
        raise FileNotFoundError(
            errno.ENOENT, "no such file or folder, and names of repositories are not taken", path
        )
    try:
        imported = import_file(path, pre=pre)
    except NotImportableError as error:
        raise NotImportableError(f"{escape_invisible(path)}: {error}") from error
    for limit in imported.limits:
        but = "" if limit.name in NOT_ABOUT_IDS else "as a GGUF, it would give other ids for a few texts: "
        message = f"{escape_invisible(path)}: {but}{limit.what}"
        warnings.warn(message, GGUFWarning, stacklevel=3)
    return ModelLocation(path, note=_NOTE, source=Source(IMPORTED + path, pack(imported.metadata)))
