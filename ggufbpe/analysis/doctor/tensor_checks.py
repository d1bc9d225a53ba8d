"""Finds tensors that llama.cpp refuses: the file is cut off, or what it says of them cannot be right.

Like the rest of the metadata, tensor infos are read without the data that they describe.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..._util.errors import GGUFError, RemoteError, ShardError, TensorError, TruncatedFileError
from ...gguf.reader import GGUFFile
from ...gguf.tensors import check_file_type, check_parts, check_tensors
from .finding import Finding, Where

_REMOTE_FIX = "the file is like this where it is stored: choose another one, or tell its owner"


def broken_tensors(file: GGUFFile) -> Iterator[Finding]:
    """An error if llama.cpp refuses the tensors of a file, their type or, if it is the first of several, other parts.

    The length of a remote file is the one that its host reports; other parts of it are not looked at.
    """
    try:
        check_tensors(file)
        check_parts(file)
        check_file_type(file)
    except RemoteError:  # only the keys were kept
        return
    except GGUFError as error:
        yield Finding(
            "error",
            _id_of(error),
            error.problem,
            "llama.cpp refuses the file when it reads the list of its tensors, before anything else is loaded.",
            (error.remedy or "convert the model again") if file.is_on_disk else _REMOTE_FIX,
            Where(error.key, None, error.offset),
            {"tensor": error.tensor, "missing_bytes": error.missing}
            if isinstance(error, TensorError)
            else None,
        )


def _id_of(error: GGUFError) -> str:
    if isinstance(error, ShardError):
        return "parts"
    is_short = isinstance(error, TruncatedFileError) or (isinstance(error, TensorError) and error.missing)
    return "cut_off" if is_short else "tensors"
