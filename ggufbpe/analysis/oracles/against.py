"""Parses the argument of `--against`: a command, a package, a server, the path of a file, or the name of a model.

An existing file is recognized by its contents: "tokenizer.json" becomes ("tokenizers", "tokenizer.json"). The older
forms of paths, such as `gguf:PATH`, still work.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ..._util.errors import ModelNameError, printable
from .oracle import OracleError

# Each of these may be followed by a colon and an argument.
COMMANDS = (
    "llama-tokenize",
    "llama-cpp",
    "llama-cpp-python",
    "xllamacpp",
    "server",
    "tiktoken",
    "transformers",
)
_OLDER = {"hf": "tokenizers", "sentencepiece": "sentencepiece", "ids": "ids", "gguf": "gguf"}
SENTENCEPIECE_FILES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
# Of a folder's files, the first that is there counts.
_NAMES = {"tokenizer.json": "tokenizers", **dict.fromkeys(SENTENCEPIECE_FILES, "sentencepiece")}
_BEGINNING = 1 << 12  # bytes of a file that tell ids from anything else
_IDS = frozenset(b"0123456789-,[]{ \t\r\n")


class Against(NamedTuple):
    """The kind of oracle (a key of `ORACLES`, or "hub"), what it opens, and what to say of an older form."""

    kind: str
    rest: str
    note: str = ""


def against_of(given: str) -> Against:
    """What `given` means. `OracleError` if it means nothing, or a file is not there or not recognized.

    >>> against_of("server:http://127.0.0.1:8080")
    Against(kind='server', rest='http://127.0.0.1:8080', note='')
    """
    name, _, rest = given.partition(":")
    if name in COMMANDS and not (name == "tiktoken" and os.path.exists(rest)):
        return Against(name, rest)
    if os.path.exists(given):
        return Against(kind_of_file(given), given)
    if name in _OLDER or name == "tiktoken":
        return _older(name, rest)
    if _is_model_name(given):
        return Against("gguf", given)
    if os.path.dirname(given) or os.path.splitext(given)[1]:
        raise OracleError(f"{given}: {os.strerror(2)}")
    raise OracleError(f"{printable(given)} is not something to compare with; give one of {', '.join(USAGES)}")


def for_chats(meant: Against) -> Against:
    """`meant` where it is to make prompts of chats: a folder of transformers, whose templates only that package runs.

    >>> for_chats(Against("hub", "hf:Qwen/Qwen3-0.6B"))
    Against(kind='chats of hub', rest='hf:Qwen/Qwen3-0.6B', note='')
    """
    if meant.kind in _NAMES.values() and os.path.isdir(meant.rest):
        return meant._replace(kind="transformers")
    return meant._replace(kind=CHATS_OF_HUB) if meant.kind == "hub" else meant


CHATS_OF_HUB = "chats of hub"


def kind_of_file(path: str) -> str:
    """The kind of oracle that opens the file or folder at `path`. `OracleError` if there is none."""
    if os.path.isdir(path):
        for name, kind in _NAMES.items():
            if os.path.exists(os.path.join(path, name)):
                return kind
        raise OracleError(f"{path} has none of {', '.join(_NAMES)}; give a file")
    try:
        with open(path, "rb") as file:
            data = file.read(_BEGINNING)
    except OSError as error:
        raise OracleError(f"{path}: {error.strerror}") from error
    if data[:4] == b"GGUF" or path.endswith(".gguf"):
        return "gguf"
    if path.endswith(".model"):
        return "sentencepiece"
    if path.endswith(".tiktoken") or _is_ranks(data):
        return "tiktoken"
    if os.path.basename(path) == "tokenizer.json" or (
        data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" and _has_model(path)
    ):
        return "tokenizers"
    if path.endswith((".json", ".jsonl")) or (data.strip() and _IDS.issuperset(data)):
        return "ids"
    raise OracleError(
        f"{path} is not recognized: neither a GGUF, a tokenizer.json, a tokenizer.model, a .tiktoken file nor recorded "
        "ids (ids:PATH reads it as ids)"
    )


def _older(name: str, rest: str) -> Against:
    """What an older form with a prefix means, with a note if it can be left out."""
    if not rest:
        raise OracleError(f"{name} needs something after a colon: {NEED_ARGUMENT[name]}")
    if name == "hf" and not os.path.exists(rest) and _is_model_name(f"hf:{rest}"):
        return Against("hub", f"hf:{rest}")
    kind = _OLDER.get(name, name)
    if os.path.exists(rest):
        try:
            is_needed = kind_of_file(rest) != kind
        except OracleError:
            is_needed = True
        note = "" if is_needed else f"{name}: before a path is not needed any more: {rest} is recognized"
        return Against(kind, rest, note and note + (", and hf: means the hub" if name == "hf" else ""))
    if name == "gguf" and _is_model_name(rest):
        return Against(
            kind, rest, f"gguf: before a model's name is not needed any more: {rest} is recognized"
        )
    return Against(kind, rest)


def _is_model_name(given: str) -> bool:
    """Whether `given` is a name with a store or an address, as `-m` takes it."""
    from ...hub.name_grammar import BareName, FilePath, HubName, parse_name

    try:
        reference = parse_name(given)
    except ModelNameError:
        return False
    if isinstance(reference, HubName) and reference.repo.endswith(".json"):  # hf:to/tokenizer.json is a path
        return False
    return not isinstance(reference, (FilePath, BareName))


def _has_model(path: str) -> bool:
    """Whether a JSON file has what a tokenizer.json has."""
    import json

    try:
        with open(path, "rb") as file:
            document = json.load(file)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and isinstance(document.get("model"), dict)


def _is_ranks(data: bytes) -> bool:
    """Whether lines are a token in base64 and its rank."""
    import base64
    import binascii

    words = data.partition(b"\n")[0].split()
    if len(words) != 2 or not words[1].isdigit():
        return False
    try:
        return bool(base64.b64decode(words[0], validate=True)) and not words[0].isdigit()
    except binascii.Error:
        return False


NEED_ARGUMENT = {
    "llama-cpp": "a folder with llama.cpp's library (libllama.so, .dylib or llama.dll)",
    "server": "the address of a llama-server, such as server:http://127.0.0.1:8080",
    "hf": "a repository on the hub, such as hf:OWNER/REPO",
    "transformers": "a folder or a repository, such as transformers:hf:OWNER/REPO",
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
    "PATH",
    "hf:OWNER/REPO",
    "tiktoken:ENCODING",
    "transformers:FOLDER",
)
