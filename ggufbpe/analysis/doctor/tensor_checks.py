"""Finds tensors that llama.cpp refuses: the file is cut off, what it says of them cannot be right, or they do not fit.

Like the rest of the metadata, tensor infos are read without the data that they describe.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..._util.errors import GGUFError, RemoteError, ShardError, TensorError, TruncatedFileError
from ..._util.wording import counted
from ...gguf.constants import KEY_ARCHITECTURE, TokenizerKey
from ...gguf.reader import GGUFFile
from ...gguf.tensors import check_file_type, check_parts, check_tensors, tensor_infos
from ...gguf.token_edits import TokenChanges, token_edits
from .chat_markers import PLAIN_MARKERS, markers_of
from .facts import Facts
from .finding import Finding, Where

_EMBEDDING = b"token_embd.weight"
_SURELY_FILLED = 64  # rows without a token: so few are seldom tokens that were lost
_MOST_ADDED = 1000  # tokens that a command adds: Windows takes 32,767 characters
_MOST_REMOVED = 64  # tokens
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


def rows_of_tokens(model: Facts) -> Iterator[Finding]:
    """An embedding that does not have a row for each token.

    Source: src/llama-model.cpp, llama_model_base::load_tensors, where `n_vocab` is the number of tokens. A draft of
    EAGLE-3 may have any number of rows (src/models/eagle3.cpp).
    """
    if model.text(KEY_ARCHITECTURE) == "eagle3":
        return
    try:
        shapes = {info.name: info.shape for info in tensor_infos(model.source)}
    except GGUFError:  # which `broken_tensors` reports
        return
    rows, size = (*shapes.get(_EMBEDDING, ()), 0, 0)[1], len(model.tokens)
    if not rows or not size or rows == size:
        return
    add = [f"[PAD{at}]" for at in range(size, min(rows, size + _MOST_ADDED + 1))]
    remove = range(rows, min(size, rows + _MOST_REMOVED + 1))
    try:
        token_edits(model.source, TokenChanges(add=[(text, "UNUSED") for text in add], remove=remove))
        is_used = any(model.tokens[at] in model.template for at in remove)
        missing = [marker for marker in markers_of(model.template) if marker not in model.ids]
        is_lost = bool(add) and not all(map(PLAIN_MARKERS.fullmatch, missing))
        is_possible = len(add) <= _MOST_ADDED and len(remove) <= _MOST_REMOVED and not (is_used or is_lost)
    except (GGUFError, ValueError):  # such as a special id among the tokens that would be removed
        is_possible = False
    words = [word for text in add for word in ("--add-token", f"{text}=UNUSED")]
    words += [word for at in remove for word in ("--remove-token", str(at))]
    how = (
        "fill up the vocabulary, as llama.cpp's converter does" if add else "remove the tokens without a row"
    )
    if len(add) > _SURELY_FILLED:
        how = f"if the original tokenizer has no more tokens, {how}"
    yield Finding(
        "error",
        "vocabulary_size",
        f"The model has {counted(rows, 'token')} by its tensors, and {size} by its vocabulary.",
        "llama.cpp refuses the file: 'token_embd.weight' has wrong shape.",
        f"{how}: {model.command(*words)}"
        if is_possible
        else "convert the model again, with the tokenizer that belongs to it",
        model.key(TokenizerKey.LIST),
        {"rows": rows, "tokens": size},
    )


def _id_of(error: GGUFError) -> str:
    if isinstance(error, ShardError):
        return "parts"
    is_short = isinstance(error, TruncatedFileError) or (isinstance(error, TensorError) and error.missing)
    return "cut_off" if is_short else "tensors"
