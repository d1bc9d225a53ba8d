"""A trained vocabulary to a file: GGUF, JSON or merges.txt.

    trained.py -> [this file] -> vocab.gguf, which llama.cpp loads with `vocab_only`

The GGUF has metadata alone, written by the `gguf` package. It names BOS and EOS always: llama.cpp takes token 11 for
both in a file that names none (src/llama-vocab.cpp, llama_vocab::impl::load), and no key can say that there is none.
Without special tokens they are the token of byte 0, which no text has; a comma would end what is generated.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ..files import replacing
from ..gguf.constants import KEY_ARCHITECTURE, KEY_NAME, GGUFValueType, TokenizerKey, TokenType
from ..gguf.reader import GGUFFile
from ..models import tokenizer_model
from ..models.bpe.merge import BYTE_CHARS
from ..vocab import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED, GGUFWarning

if TYPE_CHECKING:
    from .trained import TrainedVocabulary

SUFFIXES = (".gguf", ".json", ".txt")
_NAME = "vocabulary trained by ggufbpe"  # not the file's: llama.cpp has rules for some names
_TYPES = {
    UNKNOWN: TokenType.UNKNOWN,
    CONTROL: TokenType.CONTROL,
    USER_DEFINED: TokenType.USER_DEFINED,
    UNUSED: TokenType.UNUSED,
    BYTE: TokenType.BYTE,
    NORMAL: TokenType.NORMAL,
}
_Value = tuple[Any, Any, Any]  # as GGUFWriter.add_key_value takes it: value, type, type of elements


def save(trained: TrainedVocabulary, path: str | os.PathLike[str]) -> None:
    """Write a vocabulary in the form that the suffix of `path` names."""
    target = Path(path)
    if target.suffix not in SUFFIXES:
        raise ValueError(f"{target}: a vocabulary is saved as {', '.join(SUFFIXES)}")
    writers = {".gguf": _write_gguf, ".json": _write_json, ".txt": _write_merges}
    with replacing(target) as (file, _):
        writers[target.suffix](trained, file)
    if target.suffix == ".gguf":  # only now: a caller may turn warnings into errors
        _say_what_ends_texts(trained)


def _write_gguf(trained: TrainedVocabulary, file: IO[bytes]) -> None:
    reason = trained.form.why_not_llama_cpp()
    if reason is not None:
        raise ValueError(f"{reason} (or save it as .json)")
    if not trained.merges:
        raise ValueError("llama.cpp refuses a vocabulary without merges, and none was learned")
    from gguf.gguf_writer import GGUFWriter, WriterState

    kept = {} if trained.seed is None else _kept(trained.seed)
    architecture = kept.pop(KEY_ARCHITECTURE, (tokenizer_model(trained.form.model).architecture, None, None))[
        0
    ]
    writer = GGUFWriter(None, architecture)
    writer.fout, writer.state = [cast(Any, file)], WriterState.EMPTY  # as after open_output_file
    if not kept:
        kept = {KEY_NAME: (_NAME, GGUFValueType.STRING, None), **_keys(trained)}
    for key, (value, value_type, element) in kept.items():
        writer.add_key_value(key, value, value_type, element)
    writer.add_token_list(trained.tokens)
    writer.add_token_types([_type_of(attribute) for attribute in trained.attributes])
    writer.add_token_merges([f"{left} {right}" for left, right in trained.merges])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()


def _keys(trained: TrainedVocabulary) -> dict[str, _Value]:
    """What llama.cpp reads of a new vocabulary beside tokens, types and merges."""
    form = trained.form
    end = trained.token_to_id[_unnamed_end(trained)]
    keys: dict[str, _Value] = {
        TokenizerKey.MODEL: (form.model, GGUFValueType.STRING, None),
        TokenizerKey.PRE: (form.splitting.pre, GGUFValueType.STRING, None),
        TokenizerKey.ADD_BOS: (form.adds_bos, GGUFValueType.BOOL, None),
        TokenizerKey.ADD_EOS: (False, GGUFValueType.BOOL, None),
    }
    for key, token in ((TokenizerKey.BOS_ID, form.bos), (TokenizerKey.EOS_ID, form.eos)):
        keys[key] = (end if token is None else trained.token_to_id[token], GGUFValueType.UINT32, None)
    return keys


def _unnamed_end(trained: TrainedVocabulary) -> str:
    """The token that ends texts where no special token does: that of byte 0."""
    return BYTE_CHARS[0] if trained.form.splitting.units == "bytes" else "<0x00>"


def _say_what_ends_texts(trained: TrainedVocabulary) -> None:
    if trained.form.eos is None and trained.seed is None:
        end = _unnamed_end(trained)
        warnings.warn(
            "the vocabulary has no special token, and a GGUF cannot say that there is no BOS and no EOS, so both are "
            f"the token of byte 0, {end!r} ({trained.token_to_id[end]}), which texts do not have; train with "
            "special=['<|endoftext|>'] (--special) for one that ends a text",
            GGUFWarning,
            stacklevel=4,
        )


def _kept(seed: str) -> dict[str, _Value]:
    """The keys of a seed that stay: the tokenizer's, but those that training makes longer, and its names."""
    grown = (TokenizerKey.LIST, TokenizerKey.TOKEN_TYPE, TokenizerKey.MERGES, TokenizerKey.SCORES)
    kept: dict[str, _Value] = {}
    with GGUFFile(seed) as file:
        for key in file.keys():  # noqa: SIM118 - no dict
            of_tokenizer = key.startswith("tokenizer.") and key not in grown
            value = file[key] if of_tokenizer or key in (KEY_ARCHITECTURE, KEY_NAME) else []
            if value != []:  # GGUFWriter cannot write an empty array
                kept[key] = (value, file.value_type(key), file.element_type(key))
    return kept


def _type_of(attribute: int) -> int:
    return next((int(kind) for flag, kind in _TYPES.items() if attribute & flag), 0)


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
