"""What the tests of exports share: vocabularies, texts, and libraries with an export in them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from conftest import ROOT, missing
from fixture_texts import texts as fixture_texts
from random_texts import RandomTexts
from reference import NotPreparedError, tokenizers_1

from ggufbpe import GGUFError, GGUFWarning, Tokenizer
from ggufbpe._util.utf8 import is_utf8
from ggufbpe.analysis.conversion import parity
from ggufbpe.convert.export_formats import export_to
from ggufbpe.models.vocabulary import Vocabulary


@cache
def opened(path: Path) -> Tokenizer | None:
    """A tokenizer; None where the file cannot be opened, as some fixtures are meant to be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        try:
            return Tokenizer.from_gguf(path)
        except GGUFError:
            return None


FIXTURES = [
    path for path in sorted((ROOT / "fixtures" / "vocabs").glob("*.gguf")) if opened(path) is not None
]


def tokenizer(path: Path) -> Tokenizer:
    found = opened(path)
    assert found is not None
    return found


def sample(tok: Tokenizer, count: int) -> list[str]:
    """Texts of the recorded answers, and random ones with the model's special tokens."""
    known = [data.decode() for data in fixture_texts() if is_utf8(data)]
    special = [tok.vocabulary.tokens[token] for token in tok.vocabulary.special_token_ids]
    source = RandomTexts("export", special)
    texts = [source.text().decode("utf-8", "replace") for _ in range(count)]
    return random.Random("export").sample(known, count) + texts


def differing(
    tok: Tokenizer, library: parity.CheckedLibrary, texts: list[str]
) -> list[tuple[str, bool, bool]]:
    """Texts and flags where ids are not those of the library; texts that have none in llama.cpp are left out."""
    ways = [(a, p) for a in {False, library.adds_special} for p in {False, library.parses_special}]
    return [
        (text, *flags)
        for text in texts
        for flags in ways
        if (ours := ids_or_none(tok, text, flags)) is not None and ours != library.encode(text, *flags)
    ]


def ids_or_none(tok: Tokenizer, text: str, flags: tuple[bool, bool]) -> list[int] | None:
    try:
        return tok.encode(text, add_special=flags[0], parse_special=flags[1])
    except ValueError:  # a byte without a token, where llama.cpp throws an exception
        return None


def in_library(vocabulary: Vocabulary) -> parity.CheckedLibrary:
    return parity.hugging_face(export_to("tokenizer.json", vocabulary).files["tokenizer.json"])


def in_tiktoken(vocabulary: Vocabulary, **options: bool) -> parity.CheckedLibrary:
    found = parity.library_for("tiktoken", export_to("tiktoken", vocabulary, "test", **options))
    assert found is not None
    return found


def names(limits: tuple[Any, ...]) -> set[str]:
    return {limit.name for limit in limits}


def asked_of_version_1(folder: Path, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    try:
        path = tokenizers_1()
    except NotPreparedError as error:
        missing(str(error))
    (folder / "questions").write_text(json.dumps(questions))
    child = [
        sys.executable,
        str(ROOT / "tests" / "helpers" / "tokenizers_child.py"),
        str(folder / "questions"),
    ]
    run = subprocess.run(child, env={**os.environ, "PYTHONPATH": str(path)}, capture_output=True, check=True)
    answers: list[dict[str, Any]] = json.loads(run.stdout)
    return answers
