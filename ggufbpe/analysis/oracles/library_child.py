"""The child process that runs another tokenizer's Python package, so that its crash is not ours.

Run by its path, not imported: it needs nothing of ggufbpe but library_adapters.py beside it. A message is a length of 8
bytes, little-endian, and that many bytes. The first is JSON: the library, and what it opens. Each later one is a byte
of flags and a text, or with the flag CHAT a question of `Adapter.answer` in JSON, as is its answer. An answer begins
with a byte: "+" and the ids as int32 (first of all: a version), "-" and why the text was refused, "!" and why the
library could not be opened, "?" if it is not installed.

One text at a time, so that the parent knows which text crashed the process.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # modules of this folder must not shadow others of the same name
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]

import array
import json
import math
import signal
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import library_adapters as adapters
else:
    spec = spec_from_file_location("adapters", os.path.join(os.path.dirname(__file__), "library_adapters.py"))
    adapters = module_from_spec(spec)
    spec.loader.exec_module(adapters)

ADD_SPECIAL, PARSE_SPECIAL, CHAT = 1, 2, 4
LONGEST_OPENING = 120  # seconds; the parent waits for less


def opened(config: dict[str, Any]) -> adapters.Adapter:
    """The library that `config` names, with its file or encoding loaded."""
    if config["library"] == "tiktoken" and "file" not in config:
        return adapters.open_tiktoken(config["name"])
    if config["library"] == "transformers":
        return adapters.open_transformers(config["folder"])
    with open(config["file"], "rb") as file:
        data = file.read()
    if config["library"] == "tiktoken":
        return adapters.open_tiktoken_file(config["name"], data, config["pattern"], config["special"])
    if config["library"] == "sentencepiece":
        return adapters.open_sentencepiece(data, add_bos=config["add_bos"], add_eos=config["add_eos"])
    return adapters.open_tokenizers(data)


def main() -> None:
    """Answer questions until standard input ends."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library's output must not mix with the answers

    def receive() -> bytes:
        return questions.read(int.from_bytes(questions.read(8), "little"))

    def send(kind: bytes, data: bytes) -> None:
        answers.write((len(data) + 1).to_bytes(8, "little") + kind + data)
        answers.flush()

    config = json.loads(receive())
    _end_after(LONGEST_OPENING)
    try:
        library = opened(config)
    except ModuleNotFoundError as error:
        return send(b"?", str(error).encode())
    except Exception as error:
        return send(b"!", f"{error}".encode("utf-8", "backslashreplace"))
    _end_after(None)
    send(b"+", library.version.encode())
    while message := receive():
        _end_after(config.get("seconds"))
        try:
            answer = _answered(library, message[0], message[1:])
        except UnicodeDecodeError as error:
            send(
                b"-",
                f"the text is not UTF-8 at byte {error.start}, which the package does not accept".encode(),
            )
        except Exception as error:
            send(b"-", f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace"))
        else:
            send(b"+", answer)
        _end_after(None)
    return None


def _answered(library: adapters.Adapter, flags: int, data: bytes) -> bytes:
    """The answer to a message: ids, or to a question JSON."""
    if flags & CHAT and library.answer is not None:
        return json.dumps(library.answer(json.loads(data))).encode()
    ids = library.encode(data.decode(), bool(flags & ADD_SPECIAL), bool(flags & PARSE_SPECIAL))
    return array.array("i", ids).tobytes()


def _end_after(seconds: float | None) -> None:
    """End this process in that time, since the parent, which would end it, may be gone; None: no longer."""
    if hasattr(signal, "alarm"):
        signal.alarm(0 if seconds is None else math.ceil(seconds) + 1)


if __name__ == "__main__":
    main()
