"""Records llama-server's prompts of chats in fixtures/chats/, for tests that need nothing but the repository.

    python scripts/reference.py prepare --newer
    python tests/makers/record_chats.py

- `vocabulary.gguf`: a byte-level vocabulary of which the markers of all templates are special tokens;
- `answers.json.xz`: the requests of chat_kinds.py, and for each template of llama.cpp's collection, which the package
  has (scripts/generate_chat_templates.py), and for a model without one the answers to them. `answers` of a template
  are its different ones, `index` has the number of each request's: [prompt, tokens], [status, message], or null, where
  the server ended. `now` is the second of the recording, UTC, for templates that print the date.

But: that date makes the answers of a few templates new in each recording.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from chat_kinds import CHATS
from gguf import TokenType
from make_tiny_model import GPT2, make_tiny_model

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from chat_server import ChatServer, ServerGoneError
from reference import CHATS as CHATS_STATE
from reference import ROOT, write_metadata

from ggufbpe.chat.known_templates import known_templates
from ggufbpe.gguf.reader import GGUFFile

CHAT_FIXTURES = ROOT / "fixtures" / "chats"
VOCABULARY = CHAT_FIXTURES / "vocabulary.gguf"
MERGES = 1500
BOS, EOS, EOT = "<s>", "</s>", "<|im_end|>"
_MARKER = re.compile(r"<[|｜][^|｜<>{}' ]+[|｜]>|</?[a-z_:|A-Z]+>|\[/?[A-Z_]+\]")


def read_chats(name: str) -> dict[str, Any]:
    """One of the recorded files, by its name without endings; or "templates", by name: "" is for a model without."""
    if name == "templates":
        return {"": "", **{known.name: known.source for known in known_templates().values()}}
    content: dict[str, Any] = json.loads(lzma.decompress((CHAT_FIXTURES / f"{name}.json.xz").read_bytes()))
    return content


def write_chats(name: str, content: dict[str, Any]) -> None:
    """Write a recorded file; the same content gives the same bytes."""
    CHAT_FIXTURES.mkdir(parents=True, exist_ok=True)
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    path = CHAT_FIXTURES / f"{name}.json.xz"
    path.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
    print(f"{path}: {path.stat().st_size} bytes, {len(data)} unpacked", flush=True)


def write_vocabulary(out: Path, templates: dict[str, str]) -> Path:
    """The first merges of GPT-2, and every marker that a template has as a token of its own."""
    with GGUFFile(GPT2) as file:
        tokens = list(file["tokenizer.ggml.tokens"])[: 256 + MERGES]
        merges = list(file["tokenizer.ggml.merges"])[:MERGES]
    found = sorted({marker for template in templates.values() for marker in _MARKER.findall(template)})
    markers = [BOS, EOS, *(marker for marker in found if marker not in (BOS, EOS))]
    kinds = [int(TokenType.NORMAL)] * len(tokens)
    kinds += [int(TokenType.CONTROL if "|" in marker else TokenType.USER_DEFINED) for marker in markers]
    kinds[len(tokens) : len(tokens) + 2] = [int(TokenType.CONTROL)] * 2
    tokens += markers
    return write_metadata(
        out,
        {
            "general.architecture": "llama",
            "general.name": "ggufbpe chat fixture",
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": kinds,
            "tokenizer.ggml.merges": merges,
            "tokenizer.ggml.bos_token_id": tokens.index(BOS),
            "tokenizer.ggml.eos_token_id": tokens.index(EOS),
            "tokenizer.ggml.eot_token_id": tokens.index(EOT),
            "tokenizer.ggml.add_bos_token": True,
        },
    )


def record(server: ChatServer, template: str) -> dict[str, Any]:
    """The answers of one template to all chats."""
    refused = server.open(template or None)
    if refused is not None:
        return {"refused": refused}
    answers: list[Any] = []
    index = []
    for request in CHATS.values():
        try:
            answer: Any = list(server.ask(request))
        except ServerGoneError:
            answer = None
        if answer not in answers:
            answers.append(answer)
        index.append(answers.index(answer))
    return {"answers": answers, "index": index}


def main() -> int:
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    templates: dict[str, str] = read_chats("templates")
    write_vocabulary(VOCABULARY, templates)
    start = time.time()
    with tempfile.TemporaryDirectory() as folder:
        model = make_tiny_model(Path(folder) / "tiny.gguf", VOCABULARY)
        with ChatServer(model) as server:
            recorded = {name: record(server, template) for name, template in templates.items()}
    if int(start) // 86_400 != int(time.time()) // 86_400:
        print(
            "midnight went by: templates that print the date have two of them; once more, please",
            file=sys.stderr,
        )
        return 1
    write_chats(
        "answers",
        {"llama.cpp": CHATS_STATE, "now": int(start), "requests": CHATS, "templates": recorded},
    )
    gone = sum(part.get("answers", []).count(None) for part in recorded.values())
    print(
        f"{len(CHATS)} chats, {len(recorded)} templates, "
        f"{gone} templates that ended the server, {time.time() - start:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
