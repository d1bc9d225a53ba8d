"""The compiled engine's rules of loading give what those in Python give, or refuse what these refuse."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from broken_models import BASES, DEFECTS, Base, Defect
from conftest import ROOT, prepared
from damaged_files import damaged
from reference import cache_directory

from ggufbpe import GGUFError
from ggufbpe._util.errors import printable
from ggufbpe._util.llama_cpp_states import STATES
from ggufbpe.gguf.metadata import Metadata, Overrides
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models.compiled_loading import compiled_vocabulary
from ggufbpe.models.loading import reference_vocabulary
from ggufbpe.models.special_ids import ALWAYS_SHOWN, MADE_CONTROL
from ggufbpe.models.vocabulary import Vocabulary
from ggufbpe.native import native

pytestmark = pytest.mark.skipif(native is None, reason="the compiled engine is turned off")

KNOWN = sorted((ROOT / "fixtures").rglob("*.gguf"))
REAL = sorted((cache_directory() / "vocabs").glob("*.gguf"))
DAMAGES = 60  # of each small file
SOME_BASES = ("llama-bpe", "llama-spm", "bert-bge")


def fields(found: Vocabulary | None) -> dict[str, Any] | None:
    """A vocabulary as values that can be compared, whatever keeps its strings and numbers."""
    if found is None:
        return None
    plain = {
        "scores": array("f", found.scores).tobytes(),  # one that is no number is itself
        "first_attributes": list(found.first_attributes),
        "attributes": list(found.attributes),
        "tokens": list(found.tokens),
        "token_to_id": dict(found.token_to_id),
        "merges": list(found.merges),
    }
    return {**found._asdict(), **plain}


def both(
    path: Path | str, state: str = STATES[-1], overrides: Overrides | None = None, data: bytes | None = None
) -> list[Any]:
    """What each has for a file, with the keys that it read; of an error, its words."""
    answers: list[Any] = []
    rules: Callable[[Metadata, str], Vocabulary | None]
    for rules in (compiled_vocabulary, reference_vocabulary):
        try:
            with GGUFFile(path, data) as file:
                metadata = Metadata(file, overrides)
                try:
                    found = fields(rules(metadata, state))
                except GGUFError:
                    found = None
                metadata.detach()
                answers.append(None if found is None else (found, metadata.to_bytes()))
        except GGUFError as error:  # of the file, before any rule
            answers.append(str(error))
    return answers


@pytest.mark.parametrize("path", KNOWN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_known_files_in_every_state(path: Path) -> None:
    for state in STATES:
        compiled, reference = both(path, state)
        assert compiled == reference


@pytest.mark.slow
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_real_vocabularies(path: Path) -> None:
    compiled, reference = both(path)
    assert compiled == reference


@pytest.mark.parametrize(
    "path",
    [path for path in KNOWN if path.parent.name == "vocabs" and path.stat().st_size < 20_000],
    ids=lambda path: path.stem,
)
def test_damaged_files(path: Path) -> None:
    data, dice = path.read_bytes(), random.Random(path.stem)
    for _ in range(DAMAGES):
        hurt = damaged(data, dice)
        compiled, reference = both("damaged.gguf", data=hurt)
        assert compiled == reference, hurt


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
@pytest.mark.parametrize(
    "base", [each for each in BASES if each.name in SOME_BASES], ids=lambda base: base.name
)
def test_broken_models(base: Base, defect: Defect) -> None:
    if defect.name in base.lacks:
        return
    changes = defect.broken(base, random.Random(defect.name), ["Hello world", "1234 and\n\n more"])
    compiled, reference = both(prepared(base.find), overrides={**base.added, **(changes or {})})
    assert compiled == reference


@pytest.mark.parametrize("text", sorted({*MADE_CONTROL, *ALWAYS_SHOWN}))
def test_texts_of_rules_are_shown_as_they_are(text: str) -> None:
    """The compiled engine puts them into quotes, and no more."""
    assert printable(text) == f"'{text}'"
