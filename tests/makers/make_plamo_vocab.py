"""Writes fixtures/plamo.gguf: the tokens of fixtures/unigram.gguf as a vocabulary of PLaMo, as its converter makes it.

    python tests/makers/make_plamo_vocab.py [--large] [--out PATH]

With `--large`, a vocabulary of about the size of PLaMo's own, for benchmarks: the tokens of Llama 2, and those of
Gemma 4 that have Japanese in them, out of the vocabularies that `reference.py prepare` gets. Theirs are merged by rank,
so scores are made of ranks, as if words were as frequent as Zipf says.

But: PLaMo's own vocabularies cannot be had without its models.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import warnings
from itertools import zip_longest
from pathlib import Path
from typing import Any

from gguf import TokenType

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from reference import ROOT, cache_directory, vocabulary, write_metadata

from ggufbpe._util.spelling import BYTE_TOKENS, SPACE
from ggufbpe.models.loading import load_vocabulary
from ggufbpe.models.vocabulary import NORMAL

SPECIAL = {"<|plamo:unk|>": TokenType.UNKNOWN} | dict.fromkeys(
    ("<|plamo:bos|>", "<|plamo:eos|>", "<|plamo:pad|>", "<|plamo:op|>", "<|plamo:fim_prefix|>"),
    TokenType.CONTROL,
)
PADDING = 20  # tokens of the score -1000, up to the size that the model has
ACROSS = ["|>x", "x<", "<|", "aa", "aaa", "aaaa", "aaaaa", "  ", "     x", ". ", ", ", "\n\n", "\ufeffa"]
_JAPANESE = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")


def keys(scores: dict[str, float], model: str = "plamo2") -> dict[str, Any]:
    """The metadata of these tokens and PLaMo's own."""
    padding = [f"[PAD{number}]" for number in range(1, PADDING + 1)]
    kinds = {
        **SPECIAL,
        **dict.fromkeys(BYTE_TOKENS, TokenType.BYTE),
        **dict.fromkeys(scores, TokenType.NORMAL),
        **dict.fromkeys(padding, TokenType.UNUSED),
    }
    return {
        "general.architecture": model,
        "general.name": "ggufbpe PLaMo fixture",
        "tokenizer.ggml.model": model,
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": list(kinds),
        "tokenizer.ggml.scores": [scores.get(token, -1000.0 if token in padding else 0.0) for token in kinds],
        "tokenizer.ggml.token_type": [int(kind) for kind in kinds.values()],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_space_prefix": False,
    }


def small() -> dict[str, float]:
    """The tokens of the unigram fixture, and some that go across what PLaMo-3 cuts out."""
    source = load_vocabulary(ROOT / "fixtures" / "unigram.gguf")
    learned = {
        token.replace(SPACE, " "): score for token, score in zip(source.tokens, source.scores) if score
    }
    return learned | dict.fromkeys(ACROSS, -7.0)


def large() -> dict[str, float]:
    """Tokens of two real vocabularies in turn, by rank."""
    latin, both = (load_vocabulary(vocabulary(name)) for name in ("llama-spm", "gemma-4"))
    normal = (token for token, kind in zip(latin.tokens, latin.attributes) if kind == NORMAL)
    japanese = (token for token in both.tokens if _JAPANESE.search(token))
    ranked = (token.replace(SPACE, " ") for pair in zip_longest(normal, japanese) for token in pair if token)
    return {token: -math.log(rank) - 2 for rank, token in enumerate(dict.fromkeys(ranked), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    default = cache_directory() / "plamo.gguf" if arguments.large else ROOT / "fixtures" / "plamo.gguf"
    out = arguments.out or default
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = keys(large() if arguments.large else small())
    write_metadata(out, made)
    print(f"{out}: {len(made['tokenizer.ggml.tokens'])} tokens, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
