"""The tokenizers that ours is compared with, all behind one interface.

    verify.py -> [this file] -> llama_tokenize.py, in_process.py, libraries.py, sentencepiece_model.py, server.py,
                                recorded_ids.py

`ORACLES` has them by their `--against` names. None is trusted: it may crash, hang, or answer with garbage; each of
these is a `Failure` in place of the ids, after which the next text gets its answer.

But: they are asked only for ids, since not all can give more.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import printable
from ..tokenizer import Tokenizer
from .in_process import in_process, library_folder
from .libraries import tiktoken_library, tokenizers_library
from .llama_tokenize import LlamaTokenize
from .oracle import Oracle, OracleError
from .recorded_ids import other_model, recorded
from .sentencepiece_model import sentencepiece_library
from .server import Server


def open_oracle(given: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
    """The oracle that `--against` names, such as "llama-tokenize" or "server:http://localhost:8080".

    `model` is the file that `tokenizer` comes from; `seconds` bounds the answer for one text. Raises
    `OracleError`, whose message says what to do.
    """
    name, _, rest = given.partition(":")
    if name not in ORACLES:
        likely = _form_of_file(given)
        meant = f"was {printable(f'{likely}:{given}')} meant?" if likely else f"there are {', '.join(USAGES)}"
        raise OracleError(f"there is no oracle {printable(given)}; {meant}")
    if not rest and name in NEED_ARGUMENT:
        raise OracleError(f"{name} needs something after a colon: {NEED_ARGUMENT[name]}")
    if not model and name in OPEN_THE_FILE:
        raise OracleError(f"{name} opens the model's file, and this tokenizer has none")
    return ORACLES[name](rest, model, tokenizer, seconds)


def _form_of_file(given: str) -> str | None:
    """The name of the oracle that reads a file with such a name."""
    endings = {
        ".gguf": "gguf",
        "tokenizer.json": "hf",
        ".tiktoken": "tiktoken",
        ".model": "sentencepiece",
        ".json": "ids",
    }
    return next((name for ending, name in endings.items() if given.endswith(ending)), None)


ORACLES: dict[str, Callable[[str, str, Tokenizer, float], Oracle]] = {
    "llama-tokenize": LlamaTokenize,
    "llama-cpp": library_folder,
    "llama-cpp-python": in_process("llama-cpp-python"),
    "xllamacpp": in_process("xllamacpp"),
    "server": Server,
    "hf": tokenizers_library,
    "tiktoken": tiktoken_library,
    "sentencepiece": sentencepiece_library,
    "ids": recorded,
    "gguf": other_model,
}
OPEN_THE_FILE = frozenset(("llama-tokenize", "llama-cpp", "llama-cpp-python", "xllamacpp"))
NEED_ARGUMENT = {
    "llama-cpp": "a folder with llama.cpp's library (libllama.so, .dylib or llama.dll)",
    "server": "the address of a llama-server, such as server:http://127.0.0.1:8080",
    "hf": "the path of a tokenizer.json",
    "tiktoken": "a .tiktoken file or the name of an encoding",
    "sentencepiece": "the path of a tokenizer.model",
    "ids": "the path of a file of ids",
    "gguf": "the path of another GGUF",
}
USAGES = (
    "llama-tokenize[:PATH]",
    "llama-cpp:FOLDER",
    "llama-cpp-python",
    "xllamacpp",
    "server:URL",
    "hf:tokenizer.json",
    "tiktoken:FILE.tiktoken",
    "tiktoken:ENCODING",
    "sentencepiece:tokenizer.model",
    "ids:FILE",
    "gguf:other.gguf",
)
