"""Vocabularies and random texts with special tokens for tests that split long texts."""

from __future__ import annotations

import random
import warnings
from contextlib import suppress
from functools import cache

from conftest import ROOT
from synthetic import CHARACTERS, WORDS

from ggufbpe import GGUFWarning, Tokenizer
from ggufbpe._util.errors import GGUFError
from ggufbpe.analysis.explain import long_text_parts
from ggufbpe.analysis.views.explain_lines import ExplainLines
from ggufbpe.tokenizer.trace import Trace

ODD = ("\n", "\n\n", "\r\n", " ", " \n", "", "  ", "<mask>", "<|endoftext|>")

BROKEN = (
    b"\xff",
    b"\x81\x82\x83\x84\x85",
    b"\xe2\x96",
    b"\xc0\xa0",
    b"\xed\xa0\x80",
    b"\xf8",
    b"\xf0\x9f\x98 ",
)

VOCABULARIES = sorted((ROOT / "fixtures" / "vocabs").glob("*.gguf"))


@cache
def opened() -> dict[str, Tokenizer]:
    """The recorded vocabularies that llama.cpp takes, by name."""
    found = {}
    for path in VOCABULARIES:
        with suppress(GGUFError), warnings.catch_warnings():
            warnings.simplefilter("ignore", GGUFWarning)
            found[path.stem] = Tokenizer.from_gguf(path, "native")
    return found


def odd_text(seed: str, special: list[str]) -> bytes:
    """Characters of every kind, special tokens, white space and line ends, and bytes that are not UTF-8."""
    choice = random.Random(seed).choice
    lines = ("".join(choice((*CHARACTERS, *WORDS)) for _ in range(choice(range(9)))) for _ in range(150))
    ends = (*ODD, *special)
    return b"".join((line + choice(ends) + choice(ends)).encode() + choice((b"", *BROKEN)) for line in lines)


def special_texts(tokenizer: Tokenizer) -> list[str]:
    return [tokenizer.id_to_token(token) for token in tokenizer.vocabulary.special_token_ids][:9]


def lines(given: long_text_parts.Parts | Trace) -> list[str]:
    return list(ExplainLines(80, False, True).lines(given, None, None, None))
