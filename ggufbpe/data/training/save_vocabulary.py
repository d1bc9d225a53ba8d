"""Saves a trained vocabulary to a file: GGUF (which llama.cpp loads with `vocab_only`), JSON or merges.txt.

The GGUF has only metadata. It always names BOS and EOS: llama.cpp takes token 11 for both in a file that names none
(src/llama-vocab.cpp, llama_vocab::impl::load), and no key can say that there is none. Without special tokens they are
the token of byte 0, which no text has; a comma, for example, would end a generation.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..._util.files import replacing
from ..._util.spelling import BYTE_TOKENS
from ...gguf.constants import KEY_ARCHITECTURE, KEY_NAME, TokenizerKey, TokenType
from ...gguf.reader import GGUFFile
from ...gguf.schema import as_fields
from ...gguf.value_types import Field, Value
from ...gguf.writer import packed_file
from ...models import tokenizer_model
from ...models.bpe.merge import BYTE_CHARS
from ...models.token_table import ATTRIBUTE_OF_TYPE
from ...models.vocabulary import CONTROL, GGUFWarning

if TYPE_CHECKING:
    from .trained_vocabulary import Seed, TrainedVocabulary

SUFFIXES = (".gguf", ".json", ".txt")
_NAME = "vocabulary trained by ggufbpe"  # not the file's name: llama.cpp has rules for some names
# CONTROL is last: a token of another type that llama.cpp takes for a control token by its text keeps its type.
_TYPES = sorted(ATTRIBUTE_OF_TYPE.items(), key=lambda each: each[1] == CONTROL)


def save(trained: TrainedVocabulary, path: str | os.PathLike[str]) -> None:
    """Write a vocabulary in the format that the suffix of `path` names."""
    target = Path(path)
    if target.suffix not in SUFFIXES:
        raise ValueError(f"{target}: a vocabulary is saved as {', '.join(SUFFIXES)}")
    writers = {".gguf": _write_gguf, ".json": _write_json, ".txt": _write_merges}
    with replacing(target) as (file, _):
        writers[target.suffix](trained, file)
    if target.suffix == ".gguf":  # last: a caller may turn warnings into errors
        _warn_of_unnamed_ends(trained)
        _warn_of_unasked_bos(trained)


def _write_gguf(trained: TrainedVocabulary, file: IO[bytes]) -> None:
    reason = trained.form.why_not_llama_cpp()
    if reason is not None:
        raise ValueError(f"{reason} (or save it as .json)")
    if not trained.merges:
        reason = "" if trained.word_count else ", since the corpus has no text"
        raise ValueError(f"llama.cpp refuses a vocabulary without merges, and none was learned{reason}")
    kept = {} if trained.seed is None else _kept(trained.seed)
    architecture = {KEY_ARCHITECTURE: tokenizer_model(trained.form.model).architecture}
    tokens: dict[str, Value] = {
        TokenizerKey.LIST: trained.tokens,
        TokenizerKey.TOKEN_TYPE: [_type_of(attribute) for attribute in trained.attributes],
        TokenizerKey.MERGES: [f"{left} {right}" for left, right in trained.merges],
    }
    keys = kept or as_fields({KEY_NAME: _NAME, **_keys(trained)})
    file.write(packed_file({**as_fields(architecture), **keys, **as_fields(tokens)}))


def _keys(trained: TrainedVocabulary) -> dict[str, Value]:
    """The keys of a new vocabulary that llama.cpp reads, besides tokens, types and merges."""
    form = trained.form
    end = trained.token_to_id[_unnamed_end(trained)]
    return {
        TokenizerKey.MODEL: form.model,
        TokenizerKey.PRE: form.splitting.pre,
        TokenizerKey.ADD_BOS: form.adds_bos,
        TokenizerKey.ADD_EOS: False,
        TokenizerKey.BOS_ID: end if form.bos is None else trained.token_to_id[form.bos],
        TokenizerKey.EOS_ID: end if form.eos is None else trained.token_to_id[form.eos],
    }


def _unnamed_end(trained: TrainedVocabulary) -> str:
    """The token that ends texts if no special token does: that of byte 0."""
    return BYTE_CHARS[0] if trained.form.splitting.units == "bytes" else BYTE_TOKENS[0]


def _warn_of_unnamed_ends(trained: TrainedVocabulary) -> None:
    if trained.form.eos is None and trained.seed is None:
        end = _unnamed_end(trained)
        warnings.warn(
            "the vocabulary has no special token, and a GGUF cannot say that there is no BOS and no EOS, so both are "
            f"the token of byte 0, {end!r} ({trained.token_to_id[end]}), which texts do not have; train with "
            "special=['<|endoftext|>'] for one that ends a text",
            GGUFWarning,
            stacklevel=4,
        )


def _warn_of_unasked_bos(trained: TrainedVocabulary) -> None:
    """Warn of a pre-tokenizer with which llama.cpp adds BOS although `bos` named none."""
    entry = trained.form.splitting.entry
    if trained.form.adds_bos or trained.seed is not None or entry is None or not entry.always_add_bos:
        return
    bos = _unnamed_end(trained) if trained.form.bos is None else trained.form.bos
    warnings.warn(
        f"with the pre-tokenizer {entry.name}, llama.cpp puts BOS before each text, whatever the file says: here "
        f"{bos!r} ({trained.token_to_id[bos]}); name the token for it with bos=NAME",
        GGUFWarning,
        stacklevel=4,
    )


def _kept(seed: Seed) -> dict[str, Field]:
    """The keys of a seed that stay: the tokenizer's, except those that training extends, and its names."""
    grown = (TokenizerKey.LIST, TokenizerKey.TOKEN_TYPE, TokenizerKey.MERGES, TokenizerKey.SCORES)
    with GGUFFile(seed.model.opened()) as file:
        kept = {
            key: Field(file.value_type(key), file[key], file.element_type(key))
            for key in file
            if key in (KEY_ARCHITECTURE, KEY_NAME) or (key.startswith("tokenizer.") and key not in grown)
        }
    overridden = {key: value for key, value in seed.overrides.items() if key not in grown}
    kept.update(as_fields({key: value for key, value in overridden.items() if value is not None}))
    return {key: field for key, field in kept.items() if overridden.get(key, field) is not None}


def _type_of(attribute: int) -> int:
    return next((kind for kind, flag in _TYPES if attribute & flag), 0)


def _write_json(trained: TrainedVocabulary, file: IO[bytes]) -> None:
    form = trained.form
    content = {
        "pre": form.splitting.pre,
        "units": form.splitting.units,
        "end_of_word": form.end_of_word,
        "unk": form.unk,
        "bos": form.bos,
        "eos": form.eos,
        "tokens": trained.tokens,
        "types": [TokenType(_type_of(attribute)).name.lower() for attribute in trained.attributes],
        "merges": [list(pair) for pair in trained.merges],
        "frequencies": [step.frequency for step in trained.trace],
    }
    file.write((json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode())


def _write_merges(trained: TrainedVocabulary, file: IO[bytes]) -> None:
    lines = [f"{left} {right}" for left, right in trained.merges]
    if any(line.count(" ") != 1 or "\n" in line for line in lines):
        raise ValueError("merges.txt cannot hold tokens with spaces or line breaks; save it as .json")
    file.write("\n".join(["#version: 0.2", *lines, ""]).encode())
