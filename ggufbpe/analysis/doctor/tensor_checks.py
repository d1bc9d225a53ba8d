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
from ...models.special_ids import SPECIAL_IDS
from .chat_markers import PLAIN_MARKERS, markers_of
from .facts import DRAFTERS, Facts
from .finding import Finding, Where

_K = TokenizerKey

_EMBEDDING, _OUTPUT = b"token_embd.weight", b"output.weight"
_SPEAKERS = ("qwen3tts", "wavtokenizer-dec")  # whose output layer is not for tokens of the vocabulary
_SURELY_FILLED = 64  # rows without a token: so few are seldom tokens that were lost
_FILLED_UP_TO = 8  # rows are filled up to a multiple of this at least
_MOST_ADDED = 1000  # tokens that a command adds: Windows takes 32,767 characters
_MOST_REMOVED = 64  # tokens
# Keys whose ids are those of tokens that do something, and so of no filler.
_NEVER_FILLED = tuple(key for name, keys, _ in SPECIAL_IDS if name != "pad" for key in keys)
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


def rows(model: Facts) -> tuple[int, int]:
    """Return the numbers of rows of the embedding and of the output layer; 0 if there is none, or any number is right.

    Source: src/llama-model.cpp, llama_model_base::load_tensors, where `n_vocab` is the number of tokens. A draft may
    have any number of rows (src/models/eagle3.cpp), and so may the output layer of a model that speaks (qwen3vl.cpp,
    wavtokenizer-dec.cpp).
    """
    architecture = model.text(KEY_ARCHITECTURE)
    if architecture == "eagle3":
        return 0, 0
    try:
        shapes = {info.name: info.shape for info in tensor_infos(model.source)}
    except GGUFError:  # which `broken_tensors` reports
        return 0, 0
    embedding, output = ((*shapes.get(tensor, ()), 0, 0)[1] for tensor in (_EMBEDDING, _OUTPUT))
    return embedding, 0 if architecture in {*DRAFTERS, *_SPEAKERS} else output


def rows_of_tokens(model: Facts) -> Iterator[Finding]:
    """An embedding, or an output layer, that does not have a row for each token."""
    size = len(model.tokens)
    of_tensors = dict(zip((_EMBEDDING, _OUTPUT), rows(model)))
    wrong = [tensor for tensor, number in of_tensors.items() if number and number != size]
    if not wrong or not size:
        return
    tensor, number = wrong[0], of_tensors[wrong[0]]
    fix = _as_many_tokens(model, number) if len({*of_tensors.values(), 0}) == 2 else ""
    yield Finding(
        "error",
        "vocabulary_size",
        f"The model has {counted(number, 'token')} by its tensors, and {size} by its vocabulary.",
        f"llama.cpp refuses the file: '{tensor.decode()}' has wrong shape.",
        fix or "convert the model again, with the tokenizer that belongs to it",
        model.key(_K.LIST),
        {"rows": number, "tokens": size},
    )


def _as_many_tokens(model: Facts, number: int) -> str:
    """Return how a vocabulary gets `number` tokens, one for each row; "" where none but the right ones would do."""
    size = len(model.tokens)
    add = [f"[PAD{at}]" for at in range(size, min(number, size + _MOST_ADDED + 1))]
    remove = range(number, min(size, number + _MOST_REMOVED + 1))
    unset = [_K.PAD_ID] if model.scalar(_K.PAD_ID) in remove else []  # which no text has
    try:
        token_edits(model.source, TokenChanges(add=[(text, "UNUSED") for text in add], remove=remove), unset)
        is_used = any(model.tokens[at] in model.template for at in remove)
        missing = [marker for marker in markers_of(model.template) if marker not in model.ids]
        is_lost = bool(add) and not all(map(PLAIN_MARKERS.fullmatch, missing))
        is_lost |= any(size <= (model.scalar(key) or 0) < number for key in _NEVER_FILLED)
        is_possible = len(add) <= _MOST_ADDED and len(remove) <= _MOST_REMOVED and not (is_used or is_lost)
    except (GGUFError, ValueError):  # such as a special id among the tokens that would be removed
        is_possible = False
    words = [word for text in add for word in ("--add-token", f"{text}=UNUSED")]
    words += [word for at in remove for word in ("--remove-token", str(at))]
    words += [word for key in unset for word in ("--remove", key)]
    how = (
        "fill up the vocabulary, as llama.cpp's converter does" if add else "remove the tokens without a row"
    )
    if len(add) > _SURELY_FILLED or (add and number % _FILLED_UP_TO):
        how = f"if the original tokenizer has no more tokens, {how}"
    return f"{how}: {model.command(*words)}" if is_possible else ""


def _id_of(error: GGUFError) -> str:
    if isinstance(error, ShardError):
        return "parts"
    is_short = isinstance(error, TruncatedFileError) or (isinstance(error, TensorError) and error.missing)
    return "cut_off" if is_short else "tensors"
