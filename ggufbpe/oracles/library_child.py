"""The child process that asks another tokenizer's Python package, so that its crash is not ours.

    oracles.py -> (pipe) -> [this file] -> tokenizers or tiktoken

Run by its path, not imported: it needs nothing of ggufbpe. Messages are a length of 8 bytes, little-endian,
and that many bytes. The first one is JSON: the library, and what it opens. Then each is a text after a byte
of flags. An answer begins with a byte: "+" and the ids as int32 (the first one: a version), "-" and why the
text was refused, "!" and why the library could not be opened, "?" if it is not installed.

But: one text at a time. The parent knows so which text the process died of.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    del sys.path[0]  # this folder, whose modules are not to be taken for others of the same name

import array
import base64
import json
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

Encode = Callable[[bytes, bool, bool], "list[int]"]

ADD_SPECIAL, PARSE_SPECIAL = 1, 2


def tokenizers(config: dict[str, Any]) -> tuple[str, Encode]:
    """Hugging Face's `tokenizers` with a tokenizer.json: 0.x, or the other interface of 1.0."""
    package: Any = import_module("tokenizers")
    tokenizer = package.Tokenizer.from_file(config["file"])
    version = str(package.__version__)
    if not hasattr(tokenizer, "no_truncation"):
        return version, _pipeline(tokenizer)
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        tokenizer.encode_special_tokens = not parse_special
        return list(tokenizer.encode(text.decode(), add_special_tokens=add_special).ids)

    return version, encode


def _pipeline(tokenizer: Any) -> Encode:
    """The same with 1.0, which refuses what it cannot run only with a text to encode."""
    tokenizer.truncation = tokenizer.padding = None
    tokenizer.encode("a")

    def encode(text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        flags = {"add_special_tokens": add_special, "encode_special_tokens": not parse_special}
        return list(tokenizer.encode(text.decode(), **flags).ids)

    return encode


def tiktoken(config: dict[str, Any]) -> tuple[str, Encode]:
    """OpenAI's `tiktoken`, with an encoding by its name or the ranks of a file."""
    import importlib.metadata

    package: Any = import_module("tiktoken")
    if "file" not in config:
        encoding = package.get_encoding(config["name"])
    else:
        with open(
            config["file"], "rb"
        ) as file:  # tiktoken's own reader would keep a copy, and not look again
            ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, file)}
        taken = set(ranks.values())
        known = _known_encoding(config["name"], ranks)
        definition = known or {"pat_str": config["pattern"], "special_tokens": config["special"]}
        special = definition["special_tokens"].items()
        definition["special_tokens"] = {text: token for text, token in special if token not in taken}
        encoding = package.Encoding(config["name"], mergeable_ranks=ranks, **definition)

    def encode(text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        if parse_special:
            return list(encoding.encode(text.decode(), allowed_special="all"))
        return list(encoding.encode_ordinary(text.decode()))

    return importlib.metadata.version("tiktoken"), encode


def _known_encoding(name: str, ranks: dict[bytes, int]) -> dict[str, Any] | None:
    """Pattern and special tokens of an encoding that tiktoken knows by name, without the network."""
    try:
        public: Any = import_module("tiktoken_ext.openai_public")
    except ImportError:
        return None
    make = public.ENCODING_CONSTRUCTORS.get(name)
    if make is None:
        return None
    for loader in ("load_tiktoken_bpe", "data_gym_to_mergeable_bpe_ranks"):
        setattr(public, loader, lambda *_, **__: ranks)
    definition = make()
    return {key: definition[key] for key in ("pat_str", "special_tokens")}


LIBRARIES = {"tokenizers": tokenizers, "tiktoken": tiktoken}


def main() -> None:
    """Answer questions until standard input ends."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not run into the answers

    def receive() -> bytes:
        return questions.read(int.from_bytes(questions.read(8), "little"))

    def send(kind: bytes, data: bytes) -> None:
        answers.write((len(data) + 1).to_bytes(8, "little") + kind + data)
        answers.flush()

    config = json.loads(receive())
    try:
        version, encode = LIBRARIES[config["library"]](config)
    except ModuleNotFoundError as error:
        return send(b"?", str(error).encode())
    except Exception as error:
        return send(b"!", f"{error}".encode("utf-8", "backslashreplace"))
    send(b"+", version.encode())
    while message := receive():
        flags = message[0]
        try:
            ids = encode(message[1:], bool(flags & ADD_SPECIAL), bool(flags & PARSE_SPECIAL))
        except UnicodeDecodeError as error:
            send(
                b"-", f"the text is not UTF-8 at byte {error.start}, which the package does not take".encode()
            )
        except Exception as error:
            send(b"-", f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace"))
        else:
            send(b"+", array.array("i", ids).tobytes())
    return None


if __name__ == "__main__":
    main()
