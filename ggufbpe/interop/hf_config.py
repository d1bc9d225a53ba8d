"""tokenizer_config.json, the file beside a tokenizer.json: special tokens, the chat template, and what only a GGUF has.

    vocabulary -> [this file] -> hugging_face.py; tokenizer_config.json -> [this file] -> import_hf.py

What a tokenizer.json has no place for stands under "gguf", by the names of the keys; other readers leave it alone.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from ..errors import printable
from ..gguf.constants import KEY_ARCHITECTURE, KEY_NAME, TokenizerKey, TokenType
from ..spelling import BYTE_OF
from ..vocab import (
    BYTE,
    CONTROL,
    LSTRIP,
    NORMAL,
    RSTRIP,
    SPECIAL_IDS,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    Vocabulary,
)
from .imported import NotImportableError

_K = TokenizerKey
GGUF_SECTION, OTHER_TYPES, SCORES = "gguf", "token_types", "scores"
CONFIG_TOKENS = (
    ("bos", _K.BOS_ID),
    ("eos", _K.EOS_ID),
    ("unk", _K.UNK_ID),
    ("sep", _K.SEP_ID),
    ("pad", _K.PAD_ID),
    ("mask", _K.MASK_ID),
)

SPECIAL_ID_KEYS = {name: keys[0] for name, keys, _ in SPECIAL_IDS}
TYPE_OF_ATTRIBUTE = {
    NORMAL: TokenType.NORMAL,
    UNKNOWN: TokenType.UNKNOWN,
    CONTROL: TokenType.CONTROL,
    USER_DEFINED: TokenType.USER_DEFINED,
    UNUSED: TokenType.UNUSED,
    BYTE: TokenType.BYTE,
}


# ---- written --------------------------------------------------------------------------------------------


def config_of(
    vocabulary: Vocabulary, chat_template: str | None, scores: Mapping[int, float] | None = None
) -> dict[str, Any]:
    """What `transformers` wants to know besides, and what only a GGUF has a place for, such as these `scores`."""
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
    added_behind = tuple(vocabulary.tokenizer_model.added_names(True, True)[1])
    for name, _ in CONFIG_TOKENS:
        token = vocabulary.special_ids[name]
        if token is not None and token in vocabulary.special_token_ids:  # not the 11 of models that name none
            named = "cls" if name == "bos" and added_behind == ("sep",) else name
            config[f"{named}_token"] = vocabulary.tokens[token]
    config["add_bos_token"], config["add_eos_token"] = vocabulary.add_bos, vocabulary.add_eos
    config["clean_up_tokenization_spaces"] = vocabulary.pre_tokenizer.clean_spaces
    if chat_template is not None:
        config["chat_template"] = chat_template
    config[GGUF_SECTION] = _gguf_section(vocabulary)
    if scores:
        config[GGUF_SECTION][SCORES] = _by_score(scores)
    return config


def _gguf_section(vocabulary: Vocabulary) -> dict[str, Any]:
    """Keys of a GGUF by their names."""
    texts = {
        KEY_ARCHITECTURE: vocabulary.architecture,
        KEY_NAME: vocabulary.name,
        TokenizerKey.MODEL: vocabulary.model,
        TokenizerKey.PRE: vocabulary.pre,
    }
    ids = {
        SPECIAL_ID_KEYS[name]: token
        for name, token in vocabulary.special_ids.items()
        if token is not None and not _found_by_text(vocabulary, token)
    }
    flags = {
        TokenizerKey.ADD_BOS: vocabulary.add_bos,
        TokenizerKey.ADD_EOS: vocabulary.add_eos,
        TokenizerKey.ADD_SEP: vocabulary.add_sep,
        TokenizerKey.ADD_PREFIX: vocabulary.add_space_prefix,
    }
    if vocabulary.tokenizer_model.normalizes:
        flags[TokenizerKey.REMOVE_EXTRA_WS] = vocabulary.remove_extra_whitespaces
        flags[TokenizerKey.NORMALIZER_LOWERCASE] = vocabulary.lowercase
        flags[TokenizerKey.NORMALIZER_STRIP_ACCENTS] = vocabulary.strip_accents
    return {**texts, **ids, **flags, OTHER_TYPES: _other_types(vocabulary)}


def _found_by_text(vocabulary: Vocabulary, token: int) -> bool:
    """Whether loading made a special token of one of another type, for its text; it will do so again."""
    kind = vocabulary.attributes[token] & ~(LSTRIP | RSTRIP)
    return bool(kind & CONTROL and kind != CONTROL)


def _other_types(vocabulary: Vocabulary) -> dict[str, list[int]]:
    """The tokens whose type a tokenizer.json does not tell, by the number of the type."""
    found: dict[str, list[int]] = {}
    special, byte_level = set(vocabulary.special_token_ids), vocabulary.pre_tokenizer.byte_encode
    for token, attribute in enumerate(vocabulary.attributes):
        kind = attribute & ~(LSTRIP | RSTRIP)
        if kind == CONTROL | UNUSED and "unused" in vocabulary.tokens[token]:
            kind = CONTROL  # loading marks such tokens, and will again
        told = NORMAL
        if token in special:
            told = CONTROL if kind & (CONTROL | UNKNOWN) else USER_DEFINED
        elif not byte_level and kind == BYTE and vocabulary.tokens[token] in BYTE_OF:
            told = BYTE
        if kind != CONTROL and _found_by_text(vocabulary, token):
            kind &= ~CONTROL
        if kind != told:
            found.setdefault(str(int(TYPE_OF_ATTRIBUTE.get(kind, 0))), []).append(token)
    return found


def _by_score(scores: Mapping[int, float]) -> dict[str, list[int]]:
    """The ids of the tokens of each score."""
    found: dict[str, list[int]] = {}
    for token, score in scores.items():
        found.setdefault(repr(score), []).append(token)  # a string also where it is infinite
    return found


# ---- read -----------------------------------------------------------------------------------------------


class HFConfig:
    """A tokenizer_config.json, which may lack anything."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        section = config.get(GGUF_SECTION)
        self.section: dict[str, Any] = section if isinstance(section, dict) else {}

    def text(self, key: str) -> str:
        """A string that an export wrote down; "" where there is none."""
        found = self.section.get(key)
        return found if isinstance(found, str) else ""

    def token(self, name: str) -> str:
        """The text of a special token, which is a string or an object."""
        token = self.config.get(f"{name}_token")
        found = token.get("content") if isinstance(token, dict) else token
        return found if isinstance(found, str) else ""

    def written_ids(self, known: Container[str], size: int) -> Iterator[tuple[str, int]]:
        """The special ids that an export wrote down, but for those of `known` keys."""
        for key in SPECIAL_ID_KEYS.values():
            token = self.section.get(key)
            if token is None or key in known:
                continue
            if type(token) is not int or not 0 <= token < size:
                raise NotImportableError(
                    f"tokenizer_config.json has {printable(str(token))} for {key}, which is no token's id"
                )
            yield key, token

    def written_types(self, size: int) -> Iterator[tuple[int, int]]:
        """Tokens and their types that an export wrote down."""
        for kind, ids in (self.section.get(OTHER_TYPES) or {}).items():
            for index in ids:
                if not 0 <= index < size:
                    raise NotImportableError(
                        f"tokenizer_config.json has a type for {index}, which is no token's id"
                    )
                yield index, int(kind)

    def written_scores(self, size: int) -> dict[int, float]:
        """The scores of tokens that an export wrote down."""
        found: dict[int, float] = {}
        for score, ids in (self.section.get(SCORES) or {}).items():
            for index in ids:
                if type(index) is not int or not 0 <= index < size:
                    raise NotImportableError(
                        f"tokenizer_config.json has a score for {printable(str(index))}, which is no token's id"
                    )
                found[index] = float(score)
        return found

    @property
    def chat_template(self) -> str | None:
        """The template; of several, the one called "default"."""
        found = self.config.get("chat_template")
        if isinstance(found, list):
            named = {part.get("name"): part.get("template") for part in found if isinstance(part, dict)}
            found = named.get("default")
        return found if isinstance(found, str) else None
