"""Loads a vocabulary from metadata by the rules that all models share. Each model's own rules are in its module.

Where the compiled engine runs, its rules make the vocabulary (compiled_loading.py). Those here are the same, for the
reference engine, and say what is wrong with a file that is refused.

Source of every rule: src/llama-vocab.cpp, llama_vocab::impl::load, in its order. Rules that an older state of
llama.cpp does not have are left out for a tokenizer of that state (_util/llama_cpp_states.py).

What llama.cpp logs and a user can fix is recorded in `Vocabulary.warnings`, which `emit_warnings` turns into a
`GGUFWarning`. So is a pre-tokenizer that is likely wrong, of which llama.cpp warns only if it is missing. What
llama.cpp corrects by itself is recorded in `Vocabulary.corrections`, which `doctor` and `info` show.
"""

# No `from __future__ import annotations`: `typing` would compile each annotation of a TypedDict at every import.

import os
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TypedDict

from .._util.errors import GGUFError, UnknownPreTokenizerError, UnsupportedTokenizerError, printable
from .._util.llama_cpp_states import FOLLOWED, NFC, STRICT_UTF8, lacks
from ..gguf import typed
from ..gguf.constants import KEY_ARCHITECTURE, KEY_NAME, TokenizerKey
from ..gguf.metadata import Metadata, Overrides
from ..gguf.reader import GGUFFile
from ..gguf.source import Source
from ..native import native
from . import SUPPORTED, tokenizer_model
from .chat_templates import chat_templates
from .compiled_loading import compiled_vocabulary
from .pretokenizers.registry import PreTokenizer
from .special_ids import (
    TELLING_PARTS,
    UnfinishedVocabulary,
    end_of_generation,
    find_special_tokens,
    lowered,
    mark_unused,
    set_strip_attributes,
    special_ids,
)
from .token_table import (
    check_byte_tokens,
    named_tokens,
    read_attributes,
    read_scores,
    tokens_with,
)
from .tokenizer_model import TokenizerModel, Warn
from .vocabulary import SPECIAL_TYPES, Correct, Correction, Vocabulary


def load_vocabulary(path: str | os.PathLike[str]) -> Vocabulary:
    """The vocabulary of a GGUF file. Raises a `GGUFError` if it cannot be used, `OSError` if not opened.

    `UnsupportedTokenizerError` for tokenizers that ggufbpe does not read. Does not warn: the
    warnings are in the vocabulary, for `emit_warnings`.
    """
    return load(path)[0]


def load(
    path: str | os.PathLike[str] | Source,
    overrides: Overrides | None = None,
    data: bytes | None = None,
    llama_cpp: str = FOLLOWED,
) -> tuple[Vocabulary, Metadata]:
    """The vocabulary of a GGUF file, and the metadata that was read, with `overrides` in place of some keys.

    Instead of a path, an open source, or the bytes `data` that `packed` gave, may be read. `llama_cpp` is one of
    `states.STATES`. Raises the errors of `load_vocabulary`.
    """
    with GGUFFile(path, data, taken=(TokenizerKey.LIST, TokenizerKey.MERGES)) as file:
        file.require_first_shard()
        metadata = Metadata(file, overrides)
        try:
            return load_from(metadata, llama_cpp)
        except UnknownPreTokenizerError as error:
            from .pretokenizers.unknown_names import add_nearest

            add_nearest(error, metadata)
            raise


def load_from(metadata: Metadata, llama_cpp: str = FOLLOWED) -> tuple[Vocabulary, Metadata]:
    """The vocabulary from `metadata`, and the metadata used. An error says if an override is at fault."""
    try:
        vocabulary = compiled_vocabulary(metadata, llama_cpp) if native is not None else None
        if vocabulary is None:
            vocabulary = reference_vocabulary(metadata, llama_cpp)
    except GGUFError as error:
        if error.key in metadata.overridden:
            error.remedy = "it is overridden: override it differently, or not at all"
        raise
    chat_templates(metadata)  # keys that are read are kept
    metadata.detach()
    return _doubted(vocabulary), metadata


def _doubted(vocabulary: Vocabulary) -> Vocabulary:
    """`vocabulary`, with a warning of what llama.cpp takes without a word."""
    told = list(vocabulary.warnings)
    kind, ids = vocabulary.tokenizer_model, vocabulary.token_to_id
    kind.doubt(vocabulary.named_pre, vocabulary.pre_tokenizer, ids, told.append)
    return vocabulary._replace(warnings=tuple(told))


def packed(metadata: Metadata) -> bytes:
    """`metadata` as bytes that are the same for the same tokenizer, whatever file it came from."""
    architecture, name = (typed.string(metadata, key, "") for key in (KEY_ARCHITECTURE, KEY_NAME))
    texts = {KEY_ARCHITECTURE: architecture, KEY_NAME: lowered(name)}  # in the form that is compared
    said = {
        key: next((part for part in parts if part in texts[key]), None)
        for key, parts in TELLING_PARTS.items()
    }
    return Metadata(metadata, said).to_bytes()


def reference_vocabulary(file: Metadata, state: str) -> Vocabulary:
    """The vocabulary from `file`, as a state of llama.cpp reads it. Raises the errors of `load_vocabulary`."""
    told: list[str] = []
    warn = told.append
    corrections: list[Correction] = []
    model = typed.string(file, TokenizerKey.MODEL)
    named_pre = typed.string(file, TokenizerKey.PRE, "")
    typed.unsigned(file, TokenizerKey.TOKEN_TYPE_COUNT)
    kind = _supported(file, model, state)
    _require_known_pre(file, kind, named_pre, state)
    merges, charsmap = kind.merges(file, named_pre), kind.charsmap(file)
    entry = kind.pre_tokenizer(file, named_pre, warn)
    add_space_prefix = typed.flag(file, TokenizerKey.ADD_PREFIX, kind.add_space_prefix)
    remove_extra_whitespaces = typed.flag(file, TokenizerKey.REMOVE_EXTRA_WS, False)
    lacking_rules = lacks(state, "rule")
    nfc = NFC not in lacking_rules and typed.flag(file, TokenizerKey.NORMALIZER_NFC, False)
    tokens, token_to_id = kind.own_tokens(file, warn) or named_tokens(file, warn)
    scores = read_scores(file, len(tokens), kind.has_scores)
    attributes = read_attributes(file, len(tokens))
    first_attributes = attributes[:] if kind.keeps_first_attributes else ()
    defaults = {k: v for k, v in kind.default_ids.items() if k != "bos" or not entry.no_default_bos}
    ids = special_ids(file, defaults, len(tokens), warn, corrections.append)
    correct = corrections.append
    draft = UnfinishedVocabulary(file.path, warn, correct, tokens, token_to_id, attributes, ids, state)
    flags = _flags(file, kind, entry, correct)
    typed.has(file, TokenizerKey.SUPPRESS_TOKENS)  # not used, but another type is refused
    find_special_tokens(draft)
    mark_unused(draft)
    eog_ids = end_of_generation(draft)
    if kind.refuses_short_byte_tokens:
        check_byte_tokens(file, tokens, attributes)
    special_token_ids = tuple(tokens_with(attributes, SPECIAL_TYPES))
    architecture, name = typed.string(file, KEY_ARCHITECTURE, ""), typed.string(file, KEY_NAME, "")
    set_strip_attributes(draft, special_token_ids, named_pre, architecture, name)
    if not kind.has_line_break(entry, token_to_id):
        warn("the vocabulary has no token for the newline character")
    _warn_of_missing_ids(chain(*kind.added_names(flags["add_bos"], flags["add_eos"])), ids, warn)
    vocabulary = Vocabulary(
        model=model,
        pre=entry.name,
        pre_tokenizer=entry,
        tokens=tokens,
        token_to_id=token_to_id,
        attributes=attributes,
        merges=merges,
        special_ids=ids,
        eog_ids=eog_ids,
        special_token_ids=special_token_ids,
        **flags,
        add_space_prefix=add_space_prefix,
        remove_extra_whitespaces=remove_extra_whitespaces,
        nfc=nfc and kind.composes,
        strict_utf8=STRICT_UTF8 not in lacking_rules,
        llama_cpp=state,
        scores=scores,
        first_attributes=first_attributes,
        charsmap=charsmap,
        path=file.path,
        architecture=architecture,
        name=name,
        named_pre=named_pre,
        named_add_bos=typed.flag_if_there(file, TokenizerKey.ADD_BOS),
    )
    kind.check(file, vocabulary, correct)
    return vocabulary._replace(warnings=tuple(told), corrections=tuple(corrections))


def _require_known_pre(file: Metadata, kind: TokenizerModel, name: str, state: str) -> None:
    """`UnknownPreTokenizerError` for a name in `tokenizer.ggml.pre` that this state of llama.cpp does not know."""
    if name in lacks(state, "pre") and kind.has_pre_tokenizer and not kind.ignores_pre:
        from .pretokenizers.unknown_names import unknown_pre_tokenizer

        raise unknown_pre_tokenizer(file, name, state)


def _warn_of_missing_ids(added: Iterable[str], ids: Mapping[str, int | None], warn: Warn) -> None:
    """Warn of each token that should be added to every text and that the vocabulary does not have."""
    for name in added:
        if ids[name] is None:
            warn(f"{name.upper()} should be added, but there is none, so none is added (llama.cpp aborts)")


def _supported(file: Metadata, name: str, state: str) -> TokenizerModel:
    model = tokenizer_model(name)
    if model.is_supported and name not in lacks(state, "model"):
        return model
    problem = f"the tokenizer is {printable(name)} ({model.description}), which cannot be used here"
    remedy = f"ggufbpe reads {', '.join(SUPPORTED)}; `ggufbpe info` shows what is in the file"
    if model.is_supported:
        problem = f"llama.cpp {state} does not know the tokenizer {printable(name)}"
        remedy = f"ask for the answers of a newer state, such as {FOLLOWED}"
    if not model.has_vocabulary:
        problem = f"the file has no tokenizer: the model is {printable(name)}, {model.description}"
        remedy = "use the file of the language model that belongs to it; this one takes no text"
    error = UnsupportedTokenizerError(
        problem, path=file.path, offset=file.offset(TokenizerKey.MODEL), key=TokenizerKey.MODEL, remedy=remedy
    )
    error.model = name
    raise error


class _Flags(TypedDict):
    """The flags of `Vocabulary` for what is added to a text and done to it."""

    add_bos: bool
    add_eos: bool
    add_sep: bool
    lowercase: bool
    strip_accents: bool


def _flags(file: Metadata, kind: TokenizerModel, entry: PreTokenizer, correct: Correct) -> _Flags:
    add_bos = typed.flag(file, TokenizerKey.ADD_BOS, entry.add_bos)
    if entry.always_add_bos and not add_bos:
        what = f"{TokenizerKey.ADD_BOS} is overridden: {entry.name} always adds BOS"
        correct(Correction("add_bos", what))
    add_eos = typed.flag(file, TokenizerKey.ADD_EOS, kind.add_eos)
    add_sep = typed.flag(file, TokenizerKey.ADD_SEP, entry.add_sep)
    lowercase = typed.flag(file, TokenizerKey.NORMALIZER_LOWERCASE, entry.lowercase)
    return {
        "add_bos": add_bos or entry.always_add_bos,
        "add_eos": add_eos,
        "add_sep": add_sep,
        "lowercase": lowercase,
        "strip_accents": typed.flag(file, TokenizerKey.NORMALIZER_STRIP_ACCENTS, lowercase),
    }
