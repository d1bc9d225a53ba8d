"""Opens the tokenizers that ours is compared with, all behind one interface.

`ORACLES` lists them by the kinds of against.py. None is trusted: an oracle may crash, hang, or answer with garbage;
each of these is a `Failure` in place of the ids, after which the next text gets its answer. Oracles are asked only
for ids, since not all can give more.
"""

from __future__ import annotations

from collections.abc import Callable

from ...tokenizer import Tokenizer
from .against import CHATS_OF_HUB, NEED_ARGUMENT, Against, against_of
from .hub_oracle import chats_on_the_hub, on_the_hub
from .library_oracle import sentencepiece_library, tiktoken_library, tokenizers_library
from .llama_library import library_folder, llama_library
from .llama_tokenize import LlamaTokenize
from .oracle import Oracle, OracleError
from .recorded_ids import other_model, recorded
from .server_oracle import Server
from .transformers_oracle import transformers_library


def open_oracle(given: str | Against, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
    """The oracle that `--against` means (against.py), such as "llama-tokenize" or the path of a tokenizer.json.

    `model` is the file that `tokenizer` comes from; `seconds` bounds the answer for one text. Raises
    `OracleError`, whose message says what to do.
    """
    meant = against_of(given) if isinstance(given, str) else given
    if not meant.rest and meant.kind in NEED_ARGUMENT:
        raise OracleError(f"{meant.kind} needs something after a colon: {NEED_ARGUMENT[meant.kind]}")
    if not model and meant.kind in OPEN_THE_FILE:
        raise OracleError(f"{meant.kind} opens the model's file, and this tokenizer has none")
    return ORACLES[meant.kind](meant.rest, model, tokenizer, seconds)


ORACLES: dict[str, Callable[[str, str, Tokenizer, float], Oracle]] = {
    "llama-tokenize": LlamaTokenize,
    "llama-cpp": library_folder,
    "llama-cpp-python": llama_library("llama-cpp-python"),
    "xllamacpp": llama_library("xllamacpp"),
    "server": Server,
    "tokenizers": tokenizers_library,
    "tiktoken": tiktoken_library,
    "sentencepiece": sentencepiece_library,
    "ids": recorded,
    "gguf": other_model,
    "hub": on_the_hub,
    CHATS_OF_HUB: chats_on_the_hub,
    "transformers": transformers_library,
}
OPEN_THE_FILE = frozenset(("llama-tokenize", "llama-cpp", "llama-cpp-python", "xllamacpp"))
