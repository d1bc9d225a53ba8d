"""The engines measured side by side: ggufbpe and its peers, each opened from the same vocabulary.

    cases.py -> [this file] -> encoding.py, opening_child.py

Each engine gives ids in its cheapest form (`encode`), and as a Python list (`encode_to_list`), without BOS and with
control tokens as plain text. Each works on one thread. Opening one again gives one with empty caches.

But: opening is comparable only between ggufbpe and llama.cpp, which read the GGUF; the others read a tokenizer.json,
and tiktoken gets an existing dictionary.
"""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from cases import Case

OURS = "ggufbpe"
LLAMA_CPP = "llama.cpp"


class Engine(NamedTuple):
    """An opened tokenizer."""

    encode: Callable[[str], Any]  # ids in the engine's cheapest form: an array if it has one
    encode_to_list: Callable[[str], list[int]]
    close: Callable[[], None] = lambda: None


Opener = Callable[[Case], Engine]


def our_tokenizer(case: Case, engine: str = "auto") -> Any:
    """Our tokenizer with one of our engines: "auto", "native" or "reference"."""
    from ggufbpe import Tokenizer

    if "engine" in inspect.signature(Tokenizer.from_gguf).parameters:
        return Tokenizer.from_gguf(case.path, engine=engine)  # type: ignore[call-arg,unused-ignore]
    if engine == "native":
        raise ImportError("this ggufbpe has no compiled engine")
    return Tokenizer.from_gguf(case.path)


def our_engine_name(tokenizer: Any) -> str:
    """ "native" or "reference"."""
    return str(getattr(tokenizer, "engine", "reference"))


def takes_threads(method: Callable[..., Any]) -> bool:
    """Whether one of our methods takes a number of threads."""
    return "threads" in inspect.signature(method).parameters


def open_ours(case: Case, engine: str = "auto") -> Engine:
    """ggufbpe."""
    tokenizer = our_tokenizer(case, engine)
    encode, encode_to_numpy = tokenizer.encode, tokenizer.encode_to_numpy

    # Called as in a program: a `partial` would build its keywords in each call, which would show on a short text.
    def to_list(text: str) -> list[int]:
        found: list[int] = encode(text, add_special=False, parse_special=False)
        return found

    def to_array(text: str) -> Any:
        return encode_to_numpy(text, add_special=False, parse_special=False)

    return Engine(to_array, to_list)


def open_llama_cpp(case: Case) -> Engine:
    """llama.cpp in process, vocabulary only. The buffer for the ids is made once and grows with the text."""
    import llama_cpp
    import numpy as np

    _silence_llama_cpp()
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(case.path).encode(), parameters)
    if not model:
        raise RuntimeError(f"llama.cpp cannot load {case.path}")
    vocab = llama_cpp.llama_model_get_vocab(model)
    buffer = (llama_cpp.llama_token * 1024)()

    def tokenize(text: str) -> int:
        nonlocal buffer
        data = text.encode()
        if len(data) >= len(buffer):
            buffer = (llama_cpp.llama_token * (len(data) + 1))()
        return int(llama_cpp.llama_tokenize(vocab, data, len(data), buffer, len(buffer), False, False))

    def encode(text: str) -> Any:
        count = tokenize(text)
        return np.ctypeslib.as_array(buffer)[:count].copy()

    def encode_to_list(text: str) -> list[int]:
        count = tokenize(text)
        ids: list[int] = buffer[:count]
        return ids

    return Engine(encode, encode_to_list, lambda: llama_cpp.llama_model_free(model))


@cache
def _silence_llama_cpp() -> Any:
    """Switch its log off. The result is kept, since the library holds a pointer to it."""
    import llama_cpp

    silent = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
    return silent


def open_tokenizers(case: Case) -> Engine:
    """HF tokenizers, from a tokenizer.json of the same vocabulary."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(case.tokenizer_json))

    def encode(text: str) -> Any:
        return tokenizer.encode(text, add_special_tokens=False).ids

    return Engine(encode, encode)


def open_tokenizers_1(case: Case) -> Engine:
    """HF tokenizers 1.0, beside the other version."""
    tokenizer = _tokenizers_1().Tokenizer.from_file(str(case.tokenizer_json))
    tokenizer.encode("Hello world")  # an unsupported pattern is an error only here

    def encode(text: str) -> Any:
        return tokenizer.encode(text, add_special_tokens=False).ids

    return Engine(encode, encode)


@cache
def _tokenizers_1() -> Any:
    """The module, which is hidden by the other version's name."""
    from reference import tokenizers_1

    def taken_out() -> dict[str, Any]:
        names = [name for name in sys.modules if name.partition(".")[0] == "tokenizers"]
        return {name: sys.modules.pop(name) for name in names}

    others = taken_out()
    sys.path.insert(0, str(tokenizers_1()))
    try:
        return import_module("tokenizers")
    finally:
        sys.path.pop(0)
        taken_out()
        sys.modules.update(others)


def open_sentencepiece(case: Case) -> Engine:
    """sentencepiece, from a `.model` of the same vocabulary."""
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_file=str(case.sentencepiece_model))
    return Engine(processor.encode, processor.encode)


def open_nanotoken(case: Case) -> Engine:
    """nanotoken, which knows WordPiece, from a tokenizer.json of the same vocabulary."""
    from nanotoken import Tokenizer

    tokenizer = Tokenizer.from_json(case.tokenizer_json.read_bytes())

    def encode(text: str) -> Any:
        return tokenizer.encode(text, add_special_tokens=False)

    return Engine(encode, lambda text: encode(text).tolist())


def open_blingfire(case: Case) -> Engine:
    """blingfire with its own model of BERT's uncased vocabulary, which bge has, too."""
    import blingfire

    vocabulary = case.tokenizer.vocabulary
    model = blingfire.load_model(str(Path(blingfire.__file__).parent / "bert_base_tok.bin"))
    unknown = vocabulary.special_ids["unk"]

    def encode(text: str) -> Any:
        return blingfire.text_to_ids(model, text, len(text) + 1, unknown, no_padding=True)

    return Engine(encode, lambda text: encode(text).tolist(), lambda: blingfire.free_model(model))


def open_tokie(case: Case) -> Engine:
    """tokie, from a tokenizer.json of the same vocabulary."""
    from tokie import Tokenizer

    tokenizer = Tokenizer.from_json(str(case.tokenizer_json))

    def encode(text: str) -> Any:
        return tokenizer.encode(text, add_special_tokens=False).ids

    return Engine(encode, encode)


def open_pyrwkv(case: Case) -> Engine:
    """pyrwkv-tokenizer with its own copy of RWKV World's words."""
    from pyrwkv_tokenizer import RWKVTokenizer

    tokenizer = RWKVTokenizer()
    return Engine(tokenizer.encode, tokenizer.encode)


def open_tiktoken(case: Case) -> Engine:
    """tiktoken, from the same vocabulary, whose ids are its ranks; `encode_ordinary` is its fastest method."""
    import tiktoken
    from tokenizer_json import SINGLE_PATTERNS

    family = case.tokenizer.vocabulary.pre_tokenizer.family
    if family not in SINGLE_PATTERNS:
        raise NotImplementedError(f"tiktoken has no way to split as {family or case.tokenizer.model} does")
    encoding = tiktoken.Encoding(
        case.name, pat_str=SINGLE_PATTERNS[family], mergeable_ranks=case.ranks, special_tokens={}
    )
    return Engine(encoding.encode_ordinary, encoding.encode_ordinary)


def open_gigatoken(case: Case) -> Engine:
    """gigatoken, from a file of the same vocabulary. It uses one thread per text."""
    from gigatoken import Tokenizer

    if case.has_scores:
        tokenizer = Tokenizer.from_sentencepiece(str(case.sentencepiece_model))
    else:
        tokenizer = Tokenizer.from_json(case.tokenizer_json.read_bytes())
    return Engine(tokenizer.encode, lambda text: tokenizer.encode(text).tolist())


PEERS: dict[str, Opener] = {
    LLAMA_CPP: open_llama_cpp,
    "HF tokenizers": open_tokenizers,
    "tiktoken": open_tiktoken,
    "gigatoken": open_gigatoken,
    "HF tokenizers 1.0": open_tokenizers_1,
    "sentencepiece": open_sentencepiece,
    "nanotoken": open_nanotoken,
    "blingfire": open_blingfire,
    "tokie": open_tokie,
    "pyrwkv-tokenizer": open_pyrwkv,
}

PACKAGES = {
    LLAMA_CPP: "llama-cpp-python",
    "HF tokenizers": "tokenizers",
    "tiktoken": "tiktoken",
    "gigatoken": "gigatoken",
    "sentencepiece": "sentencepiece",
    "nanotoken": "nanotoken",
    "blingfire": "blingfire",
    "tokie": "tokie",
    "pyrwkv-tokenizer": "pyrwkv-tokenizer",
}

_BYTE_PAIRS = {"gpt2", "gemma4"}
_IN_TOKENIZER_JSON = {*_BYTE_PAIRS, "llama", "bert", "t5"}

# The tokenizer.ggml.model of the vocabularies that each supports; the others take any.
KNOWN_MODELS: dict[str, set[str]] = {
    "HF tokenizers": _IN_TOKENIZER_JSON,
    "HF tokenizers 1.0": _IN_TOKENIZER_JSON,
    "tokie": {"llama", "bert", "t5"},
    "tiktoken": {"gpt2"},
    "gigatoken": {*_BYTE_PAIRS, "llama"},
    "sentencepiece": {"llama", "t5"},
    "nanotoken": {"bert"},
    "blingfire": {"bert"},
    "pyrwkv-tokenizer": {"rwkv"},
}


def knows(name: str, case: Case) -> bool:
    """Whether an engine is meant for a vocabulary."""
    return name not in KNOWN_MODELS or case.tokenizer.model in KNOWN_MODELS[name]


def openers(engine: str) -> dict[str, Opener]:
    """All engines that may be measured, by name; `engine` is ours."""
    return {OURS: lambda case: open_ours(case, engine), **PEERS}
