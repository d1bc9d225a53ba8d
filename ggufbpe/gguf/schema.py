"""Checks what llama.cpp accepts for the keys of a tokenizer: their types, and ids that must be in the vocabulary.

Source: src/llama-vocab.cpp, llama_vocab::impl::load. Each value has one type and no other (GKV in
src/llama-model-loader.cpp).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from .._util.errors import GGUFError, VocabularyError, WrongTypeError
from .constants import KEY_ARCHITECTURE, KEY_NAME, GGUFValueType, TokenizerKey
from .reader import GGUFFile
from .value_types import Field, Value

if TYPE_CHECKING:
    from .metadata import Metadata

_T = GGUFValueType
_K = TokenizerKey

# The keys whose value is a token id.
ID_KEYS = (
    *(_K.BOS_ID, _K.EOS_ID, _K.EOT_ID, _K.EOM_ID, _K.UNK_ID, _K.SEP_ID, _K.PAD_ID, _K.MASK_ID),
    *(_K.FIM_PRE_ID, _K.FIM_SUF_ID, _K.FIM_MID_ID, _K.FIM_PAD_ID, _K.FIM_REP_ID, _K.FIM_SEP_ID),
    *(_K.PREFIX_ID, _K.SUFFIX_ID, _K.MIDDLE_ID),
)

# The type of each key; a list means an array, with the types that its elements may have.
KEY_TYPES: dict[str, GGUFValueType | tuple[GGUFValueType, ...]] = {
    **dict.fromkeys((KEY_ARCHITECTURE, KEY_NAME, _K.MODEL, _K.PRE, _K.CHAT_TEMPLATE), _T.STRING),
    **dict.fromkeys((_K.LIST, _K.MERGES), (_T.STRING,)),
    **dict.fromkeys((_K.TOKEN_TYPE, _K.SUPPRESS_TOKENS), (_T.INT32,)),
    _K.SCORES: (_T.FLOAT32, _T.INT32),
    _K.PRECOMPILED_CHARSMAP: (_T.INT8, _T.UINT8),
    **dict.fromkeys((_K.ADD_BOS, _K.ADD_EOS, _K.ADD_SEP, _K.ADD_PREFIX, _K.REMOVE_EXTRA_WS), _T.BOOL),
    **dict.fromkeys((_K.NORMALIZER_LOWERCASE, _K.NORMALIZER_STRIP_ACCENTS, _K.NORMALIZER_NFC), _T.BOOL),
    **dict.fromkeys((*ID_KEYS, _K.TOKEN_TYPE_COUNT), _T.UINT32),
}

# Keys that llama.cpp also accepts with another type: it takes a number, as text, for the template.
NOT_REFUSED = frozenset((_K.CHAT_TEMPLATE,))


def as_fields(values: Mapping[str, Value]) -> dict[str, Field]:
    """Values of keys in `KEY_TYPES` with their types, as the writer takes them."""
    types = ((key, value, KEY_TYPES[key]) for key, value in values.items())
    return {
        key: Field(_T.ARRAY, value, kind[0]) if isinstance(kind, tuple) else Field(kind, value)
        for key, value, kind in types
    }


def has_right_type(file: GGUFFile | Metadata, key: str) -> bool:
    """Whether a key, which the file has, is of the type in `KEY_TYPES`."""
    wanted = KEY_TYPES[key]
    if isinstance(wanted, tuple):
        return file.element_type(key) in wanted
    return file.value_type(key) is wanted


def wrong_type(file: GGUFFile | Metadata, key: str) -> WrongTypeError:
    """The error for a key whose value has another type."""
    wanted, element = KEY_TYPES[key], file.element_type(key)
    actual = f"an array of {element.name}" if element is not None else f"of type {file.value_type(key).name}"
    must = (
        f"an array of {' or '.join(kind.name for kind in wanted)}"
        if isinstance(wanted, tuple)
        else f"of type {wanted.name}"
    )
    return WrongTypeError(
        f"the value is {actual}; it must be {must}",
        path=file.path,
        offset=file.offset(key),
        key=key,
        remedy="the model was converted by a faulty program: convert it again",
    )


def errors_in(file: GGUFFile) -> Iterator[GGUFError]:
    """The errors in single values, whatever the tokenizer: types, and ids that are out of range."""
    for key in KEY_TYPES:
        if key in file and key not in NOT_REFUSED and not has_right_type(file, key):
            yield wrong_type(file, key)
    size = file.array_length(_K.LIST) if _K.LIST in file else 0
    for key, token in ids_out_of_range(file, size):
        yield VocabularyError(
            f"{token} is out of range: the vocabulary has ids 0 to {size - 1}",
            path=file.path,
            offset=file.offset(key),
            key=key,
            remedy="set another id, or remove the key",
        )


def ids_out_of_range(file: GGUFFile | Metadata, size: int) -> Iterator[tuple[str, int]]:
    """The keys that name a token missing from a vocabulary of `size` tokens, with the id."""
    for key in ID_KEYS:
        if size and key in file and has_right_type(file, key):
            token = file[key]
            if isinstance(token, int) and token >= size:
                yield key, token
