"""Loads a vocabulary from metadata by the rules of the compiled engine, native/src/vocabulary/loading.h.

loading.py and the files around it have the same rules in Python, for the reference engine and for the words of errors.
"""

from array import array
from functools import partial
from typing import Any

from .._util.llama_cpp_states import lacking_names
from ..gguf import typed
from ..gguf.constants import KEY_ARCHITECTURE, KEY_NAME, GGUFValueType, TokenizerKey
from ..gguf.metadata import Metadata
from ..native.lazy_strings import LazyIds, LazyStrings, compiled, strings_of
from . import tokenizer_model
from .special_ids import SPECIAL_IDS
from .token_table import read_scores
from .vocabulary import Correction, Vocabulary


def compiled_vocabulary(file: Metadata, state: str) -> Vocabulary | None:
    """The vocabulary from `file`, as a state of llama.cpp reads it; None if the rules refuse it."""
    fields = compiled().load_vocabulary(file.kind, partial(_content, file), lacking_names(state))
    if fields is None:
        return None
    kind = tokenizer_model(typed.string(file, TokenizerKey.MODEL))
    named_pre = typed.string(file, TokenizerKey.PRE, "")
    told: list[str] = []  # `fields` has it, too
    entry = kind.pre_tokenizer(file, named_pre, told.append)
    tokens, names = fields.pop("tokens"), fields.pop("names")
    texts = typed.compiled_strings(file, TokenizerKey.LIST)
    if texts is None or texts.strings is not names:
        texts = LazyStrings(names)
    return Vocabulary(
        model=kind.name,
        pre=entry.name,
        pre_tokenizer=entry,
        tokens=texts if tokens is names else LazyStrings(tokens),
        token_to_id=LazyIds(texts),
        attributes=array("H", fields.pop("attributes")),
        merges=kind.merges(file, named_pre),
        special_ids=dict(zip((name for name, _, _ in SPECIAL_IDS), fields.pop("special_ids"))),
        eog_ids=frozenset(fields.pop("eog_ids")),
        llama_cpp=state,
        scores=read_scores(file, len(names), kind.has_scores),
        first_attributes=array("H", fields.pop("first_attributes")) or (),
        path=file.path,
        architecture=typed.string(file, KEY_ARCHITECTURE, ""),
        name=typed.string(file, KEY_NAME, ""),
        named_pre=named_pre,
        named_add_bos=typed.flag_if_there(file, TokenizerKey.ADD_BOS),
        corrections=tuple(Correction(*each) for each in fields.pop("corrections")),
        **fields,
    )


def _content(file: Metadata, key: str) -> Any:
    """The value of a key as `load_vocabulary` takes it, without an object for each element of an array."""
    element = file.element_type(key)
    if element is GGUFValueType.STRING:
        texts = typed.compiled_strings(file, key)
        return strings_of(typed.strings(file, key) if texts is None else texts)
    return file[key] if element is None else file.numbers(key)
