"""What the tests of ggufbpe/integrations/ share: the libraries, a real vocabulary, and an awkward document."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, ROOT
from real_vocabularies import cached

import ggufbpe
from ggufbpe import Tokenizer

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it asks the network otherwise
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # transformers asks, too, even for a folder


def library(module: str) -> Any:
    """A library's module. Without it the tests are skipped, or fail where all libraries are required."""
    if os.environ.get("GGUFBPE_INTEGRATIONS") == "required":  # scripts/test_integrations.sh
        return importlib.import_module(module)
    return pytest.importorskip(module)


def real(name: str) -> Tokenizer:
    """The tokenizer of a real vocabulary of llama.cpp's. Without these the test is skipped, or fails in CI."""
    return Tokenizer.from_gguf(cached(name))


TOK = Tokenizer.from_gguf(GPT2)
END = 50256  # <|endoftext|>
DOCUMENT = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")[
    :4000
] + "\n\nnaïve 者也 😀👩‍👩‍👧 <|endoftext|> end"
KILOBYTE = DOCUMENT[:1000]

SPLIT = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""

NUMBERS = r"(a|é|😀)[0-9]{2}"  # a regular expression whose texts `of_numbers` lists
NUMBER_TEXTS = [f"{letter}{number:02}".encode() for letter in "aé😀" for number in range(100)]

NAMES, AGES = ["Zoe", "<|endoftext|>"], [7, 42]
JSON_SCHEMA = {  # whose texts, with one space after each comma and colon, are JSON_TEXTS
    "type": "object",
    "properties": {"name": {"enum": NAMES}, "age": {"enum": AGES}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
JSON_TEXTS = [json.dumps({"name": name, "age": age}) for name in NAMES for age in AGES]


def both(path: Path, folder: Path) -> tuple[Any, Any]:
    """`GGUFTokenizer` of a model, and transformers' own of the tokenizer.json that `ggufbpe export` writes."""
    if not path.exists():
        pytest.skip(f"{path.name} is fetched by scripts/reference.py prepare")
    transformers = library("transformers")
    from ggufbpe.integrations.transformers import GGUFTokenizer

    ggufbpe.export(path, to="tokenizer.json", check=False).save(folder)
    ours = GGUFTokenizer.from_gguf(path)
    names = ours.model_input_names  # with token_type_ids of BERT, as its own class in transformers has them
    return ours, transformers.AutoTokenizer.from_pretrained(folder, model_input_names=names)


def plain(encoded: Any) -> dict[str, Any]:
    """The lists of an encoding. Of transformers' two kinds, only one has the length of a text in a list."""
    found = {name: rows.tolist() if hasattr(rows, "tolist") else rows for name, rows in encoded.items()}
    return {name: [rows] if isinstance(rows, int) else rows for name, rows in found.items()}


def real_tiktoken() -> Any:
    """A `tiktoken.Encoding` of GPT-2's vocabulary, whose ranks are the ids: these are in the order of its merges."""
    ranks = {data: token for token, data in enumerate(TOK.token_bytes) if token != END}
    return library("tiktoken").Encoding(
        "gpt2", pat_str=SPLIT, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": END}
    )


def allowed_in_json(generated: bytes) -> set[int]:
    """`allowed` for the texts of JSON_SCHEMA."""
    return allowed(generated, [text.encode() for text in JSON_TEXTS])


def allowed(generated: bytes, texts: list[bytes] = NUMBER_TEXTS, tok: Tokenizer = TOK) -> set[int]:
    """By brute force over all tokens: those after which one of `texts` can still come; EOS if one is complete."""
    eos = tok.eos_id
    assert eos is not None
    begun = len(generated)
    rests = {
        text[begun:end]
        for text in texts
        if text.startswith(generated)
        for end in range(begun + 1, len(text) + 1)
    }
    found = {token for token, data in enumerate(tok.token_bytes) if data in rests and token != eos}
    return found | {eos} if generated in texts else found


def ids_of_bits(mask: bytes) -> set[int]:
    """The ids whose bits are set in a mask."""
    return {8 * index + bit for index, byte in enumerate(mask) if byte for bit in range(8) if byte >> bit & 1}
