"""Markers and words of one vocabulary, told apart."""

from __future__ import annotations

from pathlib import Path
from string import ascii_lowercase

import pytest
from conftest import ROOT
from reference import write_metadata
from small_models import CONTROL, K, scored_keys

from ggufbpe import Tokenizer, diff, fix
from ggufbpe._util.spelling import BYTE_TOKENS
from ggufbpe.analysis.doctor.marker_tokens import find_marker_tokens
from ggufbpe.gguf.constants import TokenType
from ggufbpe.models.vocabulary import USER_DEFINED

pytestmark = pytest.mark.tries_fixes


@pytest.mark.parametrize(
    ("words", "special", "expected"),
    [(40, 40, True), (40, 21, True), (40, 20, False), (39, 39, False), (0, 0, False)],
)
def test_types_tell_no_words_where_most_words_are_special(
    words: int, special: int, expected: bool, tmp_path: Path
) -> None:
    keys = scored_keys([f"▁word{number}" for number in range(words)], ["<user>", "<bot>"])
    keys[K.TOKEN_TYPE][259 : 259 + special] = [CONTROL] * special
    model = write_metadata(tmp_path / "model.gguf", keys)
    assert find_marker_tokens(Tokenizer.from_gguf(model)).lacks_words is expected


def test_audio_codes_that_are_parsed_are_shown_as_well(tmp_path: Path) -> None:
    """The ids tell neither, and programs read such codes in the answer."""
    keys = scored_keys(["▁word"], [f"<|semantic_{number}|>" for number in range(100)])
    first = len(keys[K.LIST]) - 100
    keys[K.TOKEN_TYPE][first:] = [int(TokenType.NORMAL)] * 100
    markers = find_marker_tokens(Tokenizer.from_gguf(write_metadata(tmp_path / "model.gguf", keys)))
    assert markers.types_of([first + 7]) == dict.fromkeys(range(first, first + 100), USER_DEFINED)


@pytest.mark.parametrize("name", ["gemma4", "spm", "mmbert"])
def test_bytes_and_markers_are_no_special_words(name: str) -> None:
    tokenizer = Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / f"{name}.gguf")
    assert not find_marker_tokens(tokenizer).lacks_words


def test_a_small_vocabulary_without_any_plain_token_has_no_words(tmp_path: Path) -> None:
    keys = scored_keys(["▁word"])
    keys[K.TOKEN_TYPE], keys[K.MODEL] = [CONTROL] * len(keys[K.LIST]), "bert"
    markers = find_marker_tokens(Tokenizer.from_gguf(write_metadata(tmp_path / "model.gguf", keys)))
    assert not markers.is_word(keys[K.LIST].index("▁word"))


def test_tokens_of_bytes_that_lost_their_types_are_no_markers() -> None:
    """In Gemma 4's vocabulary, they stand near markers with brackets of the same kind."""
    path = ROOT / "fixtures" / "raw-utf8.gguf"
    tokenizer = Tokenizer.from_gguf(path, overrides={K.TOKEN_TYPE: None})
    tokens = tokenizer.vocabulary.tokens
    markers = find_marker_tokens(tokenizer)
    found = markers.types_of([tokens.index("<bos>"), tokens.index("<|turn>")])
    assert [tokens[token] for token in found if tokens[token] in BYTE_TOKENS] == []


@pytest.mark.parametrize("turn", [1, -1])
def test_lost_markers_of_a_small_vocabulary_speak_against_it_however_many_bytes_it_has(
    turn: int, tmp_path: Path
) -> None:
    keys = scored_keys([f"▁{letter}" for letter in ascii_lowercase], ["<user>", "<bot>"])
    good, bad = write_metadata(tmp_path / "good.gguf", keys), tmp_path / "bad.gguf"
    user = keys[K.LIST].index("<user>")
    fix(good, bad, token_types={user: "NORMAL", user + 1: "NORMAL"})
    found = diff(*(bad, good)[::turn])
    assert found.suspect == (turn < 0)
    assert found.reasons == ("'<user>' and 1 other are plain text",)
    assert found.fix == f"ggufbpe fix {bad} --set-token-type {user}..{user + 1}=CONTROL -o fixed.gguf"
