"""Metadata to vocabulary: tokens, attributes, special ids and flags, by llama.cpp's loading rules.

    reader.py -> metadata -> [this file] -> vocabulary -> tokenizer.py

Source of every rule: src/llama-vocab.cpp, llama_vocab::impl::load, in its order. What llama.cpp logs as a
warning and then goes on with is one of `Vocabulary.warnings` here, which `warn_of` makes a `GGUFWarning`; so is
a pre-tokenizer that is likely the wrong one, of which llama.cpp says nothing unless it is missing.

But: nothing about text. How a pre-tokenizer splits is in registry.py and split.py.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Mapping, MutableSequence, Sequence
from copy import copy
from enum import IntFlag
from typing import NamedTuple, cast, overload

from ..errors import (
    GGUFError,
    MissingKeyError,
    UnknownPreTokenizerError,
    UnsupportedTokenizerError,
    VocabularyError,
    printable,
)
from ..gguf.constants import KEY_ARCHITECTURE, KEY_NAME, TokenizerKey, TokenType
from ..gguf.metadata import Metadata, Overrides
from ..gguf.reader import GGUFFile
from ..gguf.schema import DEFAULT_IDS, has_right_type, wrong_type
from ..kernel import native
from ..kernel.lazy import LazyIds, LazyStrings
from ..models.bpe.merge import byte_level
from ..models.bpe.registry import PRE_TOKENIZERS, PreTokenizer
from ..models.bpe.telltales import telltales


class GGUFWarning(UserWarning):
    """Something in a model file that llama.cpp warns of and goes on with."""


class TokenAttribute(IntFlag):
    """What a token is; the values are llama.cpp's (include/llama.h: llama_token_attr)."""

    UNDEFINED = 0
    UNKNOWN = 1
    UNUSED = 2
    NORMAL = 4
    CONTROL = 8
    USER_DEFINED = 16
    BYTE = 32
    LSTRIP = 128
    RSTRIP = 256


_A = TokenAttribute
UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE, LSTRIP, RSTRIP = (
    int(flag)
    for flag in (_A.UNKNOWN, _A.UNUSED, _A.NORMAL, _A.CONTROL, _A.USER_DEFINED, _A.BYTE, _A.LSTRIP, _A.RSTRIP)
)  # plain integers: an enumeration's `|` costs a microsecond, and there are 250,000 tokens

_ATTRIBUTE_OF_TYPE = {
    int(TokenType.NORMAL): NORMAL,
    int(TokenType.UNKNOWN): UNKNOWN,
    int(TokenType.CONTROL): CONTROL,
    int(TokenType.USER_DEFINED): USER_DEFINED,
    int(TokenType.UNUSED): UNUSED,
    int(TokenType.BYTE): BYTE,
}

BPE_MODELS = ("gpt2", "gemma4", "hybriddna", "whitespace")
_OTHER_MODELS = {  # tokenizer.ggml.model: what it is, in words
    "llama": "SentencePiece BPE with scores (SPM), as of Llama 1 and 2",
    "bert": "WordPiece, as of BERT",
    "t5": "Unigram, as of T5",
    "rwkv": "RWKV's greedy longest match",
    "plamo2": "PLaMo-2's Unigram",
    "none": "no tokenizer at all: the model has no vocabulary",
    "no_vocab": "no tokenizer at all: the model has no vocabulary",
    "test": "llama.cpp's own test tokenizer",
}

DNA_MARKER = "\ue000"  # ends the text of a DNA k-mer, to part it from a word of the same letters

# Special ids: name, keys that set it (the later wins), texts by which it is found where no key names it.
# Where several texts stand in one vocabulary, llama.cpp takes the one that comes first in a C++ hash map,
# which is no rule; the first in this list is taken here.
SPECIAL_IDS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("bos", (TokenizerKey.BOS_ID,), ()),
    ("eos", (TokenizerKey.EOS_ID,), ()),
    (
        "eot",
        (TokenizerKey.EOT_ID,),
        (
            "<|eot_id|>",
            "<|im_end|>",
            "<|end|>",
            "<end_of_turn>",
            "<|endoftext|>",
            "<|end_of_text|>",
            "<EOT>",
            "_<EOT>",
            "[EOT]",
            "<｜end▁of▁sentence｜>",
            "<end_of_utterance>",
        ),
    ),
    ("eom", (TokenizerKey.EOM_ID,), ("<|eom_id|>",)),
    ("unk", (TokenizerKey.UNK_ID,), ()),
    ("sep", (TokenizerKey.SEP_ID,), ()),
    ("pad", (TokenizerKey.PAD_ID,), ()),
    ("mask", (TokenizerKey.MASK_ID,), ()),
    (
        "fim_pre",
        (TokenizerKey.FIM_PRE_ID, TokenizerKey.PREFIX_ID),
        (
            "<|fim_prefix|>",
            "<fim-prefix>",
            "<fim_prefix>",
            "<｜fim▁begin｜>",
            "<PRE>",
            "▁<PRE>",
            "<|code_prefix|>",
            "<|prefix|>",
        ),
    ),
    (
        "fim_suf",
        (TokenizerKey.FIM_SUF_ID, TokenizerKey.SUFFIX_ID),
        (
            "<|fim_suffix|>",
            "<fim-suffix>",
            "<fim_suffix>",
            "<｜fim▁hole｜>",
            "<SUF>",
            "▁<SUF>",
            "<|code_suffix|>",
            "<|suffix|>",
        ),
    ),
    (
        "fim_mid",
        (TokenizerKey.FIM_MID_ID, TokenizerKey.MIDDLE_ID),
        (
            "<|fim_middle|>",
            "<fim-middle>",
            "<fim_middle>",
            "<｜fim▁end｜>",
            "<MID>",
            "▁<MID>",
            "<|code_middle|>",
            "<|middle|>",
        ),
    ),
    ("fim_pad", (TokenizerKey.FIM_PAD_ID,), ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]")),
    (
        "fim_rep",
        (TokenizerKey.FIM_REP_ID,),
        ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    ),
    ("fim_sep", (TokenizerKey.FIM_SEP_ID,), ("<|file_sep|>",)),
)

END_OF_GENERATION = (
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
)
# Texts of which llama.cpp makes a control token whatever its type; those of special ids unless a key names another.
MADE_CONTROL = frozenset((*END_OF_GENERATION, *(text for _, _, texts in SPECIAL_IDS for text in texts)))
_ALWAYS_SHOWN = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")  # of gpt-oss


_LSTRIP_ARCHITECTURES = ("nomic-bert-moe", "jina-bert-v3")
_PHI_3 = ("phi-3", "phi3")
_MODERN_BERT = "modern-bert"
_TELLING_PARTS = {  # what of a model's names says something of its tokens
    KEY_ARCHITECTURE: _LSTRIP_ARCHITECTURES,
    KEY_NAME: (*_PHI_3, _MODERN_BERT),
}


class Vocabulary(NamedTuple):
    """All that a tokenizer needs of a model file. `tokens` and `attributes` are indexed by token id.

    `tokens`, `token_to_id` and `merges` are `LazyStrings` and `LazyIds` where the compiled module has read them.
    """

    model: str  # tokenizer.ggml.model
    pre: str  # the name in tokenizer.ggml.pre that is in force; "default" where the file has none
    pre_tokenizer: PreTokenizer
    tokens: Sequence[str]
    token_to_id: Mapping[str, int]
    attributes: MutableSequence[int]  # TokenAttribute flags
    merges: Sequence[str]  # "left right", by rank
    special_ids: dict[str, int | None]  # "bos", "eos", "eot", "eom" … "fim_sep"
    eog_ids: frozenset[int]
    special_token_ids: tuple[int, ...]  # ascending: what the special-token partition looks for
    add_bos: bool = False
    add_eos: bool = False
    add_sep: bool = False
    add_space_prefix: bool = False
    lowercase: bool = True  # the whitespace model makes words lower case
    path: str = ""
    architecture: str = ""
    name: str = ""
    named_pre: str = ""  # tokenizer.ggml.pre as the file has it; "" where it has none
    named_add_bos: bool | None = None  # tokenizer.ggml.add_bos_token, likewise; None: `pre` decides
    warnings: tuple[str, ...] = ()  # what llama.cpp warns of and signs of a wrong `pre`, without the path

    def __deepcopy__(self, memo: dict[int, object]) -> Vocabulary:
        return self._replace(
            tokens=copy(self.tokens),
            token_to_id=copy(self.token_to_id),
            attributes=self.attributes[:],
            merges=copy(self.merges),
            special_ids=dict(self.special_ids),
        )


_Warn = Callable[[str], None]


class _Draft(NamedTuple):
    """The parts of a vocabulary that one rule after the other changes."""

    path: str
    warn: _Warn
    tokens: Sequence[str]
    token_to_id: Mapping[str, int]
    attributes: array[int]
    special_ids: dict[str, int | None]


def load_vocabulary(path: str | os.PathLike[str]) -> Vocabulary:
    """The vocabulary of a GGUF file. Raises a `GGUFError` if it cannot be used, `OSError` if not opened.

    `UnsupportedTokenizerError` for tokenizers that are not byte pair encoding. Does not warn: what there is to
    warn of comes along, for `warn_of`.
    """
    return load(path)[0]


def load(
    path: str | os.PathLike[str], overrides: Overrides | None = None, data: bytes | None = None
) -> tuple[Vocabulary, Metadata]:
    """The same with `overrides` in place of some keys, or out of `data` that `packed` gave; and what it was made of."""
    with GGUFFile(path, data) as file:
        file.require_first_shard()
        return load_from(Metadata(file, overrides))


def load_from(metadata: Metadata) -> tuple[Vocabulary, Metadata]:
    """The vocabulary that `metadata` makes, and what of it was used. An error says if an override is at fault."""
    try:
        vocabulary = _load(metadata)
    except GGUFError as error:
        if error.key in metadata.overridden:
            error.remedy = "it is overridden: override it with something else, or not at all"
        raise
    metadata.detach()
    return vocabulary, metadata


def packed(metadata: Metadata) -> bytes:
    """`metadata` as bytes that are the same wherever the same tokenizer comes from."""
    architecture, name = (_string(metadata, key, "") for key in (KEY_ARCHITECTURE, KEY_NAME))
    texts = {KEY_ARCHITECTURE: architecture, KEY_NAME: _lowered(name)}  # as they are compared
    said = {
        key: next((part for part in parts if part in texts[key]), None)
        for key, parts in _TELLING_PARTS.items()
    }
    return Metadata(metadata, said).to_bytes()


def warn_of(vocabulary: Vocabulary) -> None:
    """A `GGUFWarning` for each of the vocabulary's `warnings`, in the name of whoever opened the file."""
    if vocabulary.warnings:
        import warnings

        level = _frames_to_caller()
        for problem in vocabulary.warnings:
            where = f"{vocabulary.path}: " if vocabulary.path else ""
            warnings.warn(f"{where}{problem}", GGUFWarning, stacklevel=level)


def _load(file: Metadata) -> Vocabulary:
    told: list[str] = []
    warn = told.append
    model = _string(file, TokenizerKey.MODEL)
    named_pre = _string(file, TokenizerKey.PRE, "")
    _unsigned(file, TokenizerKey.TOKEN_TYPE_COUNT)
    _require_bpe(file, model)
    merges = _merges(file, model, named_pre)
    entry = _pre_tokenizer(file, "gemma4" if model == "gemma4" else named_pre, warn)
    add_space_prefix = _flag(file, TokenizerKey.ADD_PREFIX, False)
    _flag(file, TokenizerKey.REMOVE_EXTRA_WS, False)
    tokens, token_to_id = _tokens(file, model, warn)
    if named_pre == entry.name != "default":
        _doubt(entry, token_to_id, warn)
    attributes = _attributes(file, len(tokens))
    special_ids = _special_ids(file, model, entry, len(tokens), warn)
    draft = _Draft(file.path, warn, tokens, token_to_id, attributes, special_ids)
    add_bos = _add_bos(file, entry, warn)
    add_eos = _flag(file, TokenizerKey.ADD_EOS, False)
    add_sep = _flag(file, TokenizerKey.ADD_SEP, entry.add_sep)
    lowercase = _flag(file, TokenizerKey.NORMALIZER_LOWERCASE, entry.lowercase)
    _check_unused_keys(file)
    _find_special_tokens(draft)
    _mark_unused(draft)
    eog_ids = _end_of_generation(draft)
    _check_byte_tokens(file, draft)
    special_token_ids = tuple(_tokens_with(attributes, CONTROL | USER_DEFINED | UNKNOWN))
    architecture, name = _string(file, KEY_ARCHITECTURE, ""), _string(file, KEY_NAME, "")
    _set_strip_attributes(draft, special_token_ids, named_pre, architecture, name)
    if model == "whitespace" or not _has_line_break(entry, token_to_id):
        warn("the vocabulary has no token for the newline character")
    for added, special_name in ((add_bos, "bos"), (add_eos, "eos")):
        if added and draft.special_ids[special_name] is None:
            what = special_name.upper()
            warn(f"{what} is to be added but there is none, so none is added (llama.cpp aborts)")
    return Vocabulary(
        model=model,
        pre=entry.name,
        pre_tokenizer=entry,
        tokens=tokens,
        token_to_id=token_to_id,
        attributes=attributes,
        merges=merges,
        special_ids=draft.special_ids,
        eog_ids=eog_ids,
        special_token_ids=special_token_ids,
        add_bos=add_bos,
        add_eos=add_eos,
        add_sep=add_sep,
        add_space_prefix=add_space_prefix,
        lowercase=lowercase,
        path=file.path,
        architecture=architecture,
        name=name,
        named_pre=named_pre,
        named_add_bos=_flag(file, TokenizerKey.ADD_BOS, None),
        warnings=tuple(told),
    )


def _has_line_break(entry: PreTokenizer, token_to_id: Mapping[str, int]) -> bool:
    if entry.byte_encode:
        return byte_level("\n") in token_to_id
    return "\n" in token_to_id or "<0x0A>" in token_to_id


# ---- what kind of tokenizer -----------------------------------------------------------------------------


def describe_model(model: str) -> str:
    """What `tokenizer.ggml.model` names, in words."""
    return "byte pair encoding" if model in BPE_MODELS else _OTHER_MODELS.get(model, "unknown to llama.cpp")


def _require_bpe(file: Metadata, model: str) -> None:
    if model in BPE_MODELS:
        return
    error = UnsupportedTokenizerError(
        f"the tokenizer is {printable(model)} ({describe_model(model)}), not byte pair encoding",
        path=file.path,
        offset=file.offset(TokenizerKey.MODEL),
        key=TokenizerKey.MODEL,
        remedy=f"ggufbpe reads {', '.join(BPE_MODELS)}; `ggufbpe info` shows what is in the file",
    )
    error.model = model
    raise error


_LIKELY_WRONG = (
    "and the ids are likely not those that the model was trained with; `ggufbpe doctor` finds the right one"
)


def _doubt(entry: PreTokenizer, token_to_id: Mapping[str, int], warn: _Warn) -> None:
    """Warn of a pre-tokenizer that cuts what are tokens here."""
    found = telltales(entry, token_to_id)
    if found:
        some = ", ".join(map(printable, found[:: max(len(found) // 3, 1)][:3]))
        warn(
            f"{TokenizerKey.PRE} is {printable(entry.name)}, which cuts tokens such as {some}, {_LIKELY_WRONG}"
        )


def _pre_tokenizer(file: Metadata, name: str, warn: _Warn) -> PreTokenizer:
    if not name or name == "default":
        is_so = "'default'" if name else "missing, so the 'default' pre-tokenizer is used"
        warn(f"{TokenizerKey.PRE} is {is_so}, {_LIKELY_WRONG}")
        name = "default"
    if name not in PRE_TOKENIZERS:
        import difflib

        near = difflib.get_close_matches(name, PRE_TOKENIZERS, n=3)
        raise UnknownPreTokenizerError(
            f"unknown pre-tokenizer {printable(name)}"
            + (f" (near: {', '.join(near)})" if near else "")
            + ", which llama.cpp 0c1e57098 refuses as well",
            path=file.path,
            offset=file.offset(TokenizerKey.PRE),
            key=TokenizerKey.PRE,
            remedy="`ggufbpe list-pre` shows all names; convert the model again, or update ggufbpe",
        )
    return PRE_TOKENIZERS[name]


# ---- tokens and merges ----------------------------------------------------------------------------------


def _merges(file: Metadata, model: str, named_pre: str) -> Sequence[str]:
    if TokenizerKey.MERGES not in file and named_pre == "kimi-k2" and model != "gemma4":
        return []
    return _lazy_strings(file, TokenizerKey.MERGES) or _strings(file, TokenizerKey.MERGES)


def _tokens(file: Metadata, model: str, warn: _Warn) -> tuple[Sequence[str], Mapping[str, int]]:
    """The tokens, and the id of each; as list and dictionary where there is something to do about one of them."""
    texts = _lazy_strings(file, TokenizerKey.LIST) if model != "hybriddna" else None
    if texts is not None and texts.strings.index() < 0 and "" not in (ids := LazyIds(texts)):
        return texts, ids
    tokens = _named_tokens(file, warn)
    token_to_id = _token_to_id(file, tokens)
    if model == "hybriddna":
        _erase_dna_markers(tokens, token_to_id)
    return tokens, token_to_id


def _named_tokens(file: Metadata, warn: _Warn) -> list[str]:
    """The tokens; an empty one gets a name."""
    tokens = _strings(file, TokenizerKey.LIST)
    empty = [index for index, token in enumerate(tokens) if not token] if "" in tokens else []
    for index in empty:
        tokens[index] = f"[EMPTY_{index}]"
    if empty:
        some = ", ".join(map(str, empty[:5])) + (" …" if len(empty) > 5 else "")
        warn(f"{len(empty)} of the tokens are empty, at index {some}")
    return tokens


def _token_to_id(file: Metadata, tokens: list[str]) -> dict[str, int]:
    ids = dict(zip(tokens, range(len(tokens))))
    if len(ids) == len(tokens):
        return ids
    seen: dict[str, int] = {}
    for index, token in enumerate(tokens):
        if token in seen:
            break
        seen[token] = index
    raise VocabularyError(
        f"tokens {seen[token]} and {index} are the same, {printable(token)}, where llama.cpp aborts"
        + (f" ({len(tokens) - len(ids)} duplicates in all)" if len(tokens) - len(ids) > 1 else ""),
        path=file.path,
        offset=file.element_offset(TokenizerKey.LIST, index),
        key=TokenizerKey.LIST,
        remedy="convert the model again with a fixed tokenizer",
    )


def _attributes(file: Metadata, token_count: int) -> array[int]:
    """The attribute of each token by its type; scores have no use in byte pair encoding but must fit."""
    _check_parallel(file, TokenizerKey.SCORES, token_count)
    if not _check_parallel(file, TokenizerKey.TOKEN_TYPE, token_count):
        return array("H", [NORMAL]) * token_count
    types = cast("array[int]", file.numbers(TokenizerKey.TOKEN_TYPE))[:token_count]
    attribute = _ATTRIBUTE_OF_TYPE.get
    if native is not None and types.itemsize == 4:
        table = bytes(attribute(token_type, 0) for token_type in range(max(_ATTRIBUTE_OF_TYPE) + 1))
        return array("H", native.attributes_of(types, table))
    return array("H", [attribute(token_type, 0) for token_type in types])


def _tokens_with(attributes: array[int], flags: int) -> list[int]:
    """The tokens with one of `flags`, ascending."""
    if native is not None:
        return cast("list[int]", native.tokens_with(attributes, flags))
    return [index for index, attribute in enumerate(attributes) if attribute & flags]


def _check_parallel(file: Metadata, key: str, token_count: int) -> bool:
    """Whether `key` is there; if so, it must be an array of its type, as long as the tokens."""
    if not _has(file, key):
        return False
    if file.array_length(key) < token_count:
        raise VocabularyError(
            f"has {file.array_length(key)} elements for {token_count} tokens",
            path=file.path,
            offset=file.offset(key),
            key=key,
            remedy="convert the model again",
        )
    return True


def _erase_dna_markers(tokens: list[str], token_to_id: dict[str, int]) -> None:
    """The k-mers come after `<oov>`; their marker is for look-ups, not for text."""
    for index in range(token_to_id.get("<oov>", len(tokens)) + 1, len(tokens)):
        if tokens[index].endswith(DNA_MARKER) and tokens[index] != DNA_MARKER:
            tokens[index] = tokens[index][: -len(DNA_MARKER)]


def _check_byte_tokens(file: Metadata, draft: _Draft) -> None:
    for index in _tokens_with(draft.attributes, BYTE):
        if len(draft.tokens[index].encode()) < 3:
            raise VocabularyError(
                f"token {index}, {printable(draft.tokens[index])}, has the type BYTE but not the form <0xXX>",
                path=file.path,
                offset=file.element_offset(TokenizerKey.LIST, index),
                key=TokenizerKey.LIST,
                remedy="convert the model again",
            )


# ---- special ids and flags ------------------------------------------------------------------------------


def _special_ids(
    file: Metadata, model: str, entry: PreTokenizer, size: int, warn: _Warn
) -> dict[str, int | None]:
    """The special ids that defaults and keys give, by name; None where there is none."""
    defaults = dict(DEFAULT_IDS.get(model, {}))
    if entry.no_default_bos:
        defaults.pop("bos", None)
    ids: dict[str, int | None] = {}
    for name, keys, _ in SPECIAL_IDS:
        token_id = defaults.get(name)
        if token_id is not None and token_id >= size:
            warn(f"the default {name.upper()} id {token_id} is out of range, so there is none")
            token_id = None
        for key in keys:
            given = _unsigned(file, key)
            if given is not None and given >= size:
                warn(f"{key} = {given} is out of range; {token_id} is used instead")
            elif given is not None:
                token_id = given
        ids[name] = token_id
    return ids


def _add_bos(file: Metadata, entry: PreTokenizer, warn: _Warn) -> bool:
    add_bos = _flag(file, TokenizerKey.ADD_BOS, entry.add_bos)
    if entry.always_add_bos and not add_bos:
        warn(f"{TokenizerKey.ADD_BOS} is overridden: {entry.name} always adds BOS")
    return add_bos or entry.always_add_bos


def _check_unused_keys(file: Metadata) -> None:
    """Keys that mean nothing for byte pair encoding, but that llama.cpp reads and refuses in another type."""
    _flag(file, TokenizerKey.NORMALIZER_STRIP_ACCENTS, False)
    _has(file, TokenizerKey.SUPPRESS_TOKENS)


def _find_special_tokens(draft: _Draft) -> None:
    """Special ids that no key names, found by the text of a token."""
    for name, _, texts in SPECIAL_IDS:
        if draft.special_ids[name] is None:
            found = next((text for text in texts if text in draft.token_to_id), None)
            if found is not None:
                draft.special_ids[name] = draft.token_to_id[found]
                _make_control(draft, found)


def _mark_unused(draft: _Draft) -> None:
    """Control tokens with "unused" in their text are unused."""
    for index in _tokens_with(draft.attributes, CONTROL):
        if "unused" in draft.tokens[index]:
            draft.attributes[index] |= UNUSED


def _end_of_generation(draft: _Draft) -> frozenset[int]:
    _, warn, tokens, to_id, attributes, ids = draft
    eog = {i for i in (ids["fim_pad"], ids["fim_rep"], ids["fim_sep"]) if i is not None}
    for text in END_OF_GENERATION:
        if text in to_id:
            eog.add(to_id[text])
            _make_control(draft, text)
    for text in _ALWAYS_SHOWN:
        if text in to_id:
            warn(f"{printable(text)} is made a user-defined token, which is always shown")
            attributes[to_id[text]] = USER_DEFINED
    for name in ("eos", "eot", "eom"):
        token_id = ids[name]
        if token_id is not None and token_id not in eog:
            eog.add(token_id)
            warn(f"the {name.upper()} token {token_id} was not an end-of-generation token")
    of_text = {tokens[i]: i for i in eog}
    calls = "<|call|>" in of_text or "<|calls|>" in of_text
    if "<|end|>" in of_text and calls and ("<|return|>" in of_text or "<|flush|>" in of_text):
        # o200k_harmony and solar-open: <|end|> ends a message, not the generation
        eog.discard(of_text["<|end|>"])
        attributes[of_text["<|end|>"]] = USER_DEFINED
        warn("'<|end|>' ends a message here, so it is no end-of-generation token")
    if "</s>" in of_text and ("<|tool_response>" in of_text or "<|plamo:eos|>" in of_text):
        eog.discard(of_text["</s>"])
        attributes[of_text["</s>"]] = NORMAL
        warn("'</s>' is a normal token here, so it is no end-of-generation token")
    return frozenset(eog)


def _make_control(draft: _Draft, text: str) -> None:
    index = draft.token_to_id[text]
    if not draft.attributes[index] & CONTROL:
        draft.warn(f"token {index}, {printable(text)}, looks like a control token and is made one")
        draft.attributes[index] |= CONTROL


def _set_strip_attributes(
    draft: _Draft, special_token_ids: tuple[int, ...], named_pre: str, architecture: str, name: str
) -> None:
    """Attributes that a GGUF does not carry, by the names of tokenizer, architecture and model."""
    path, warn, _, to_id, attributes, _ = draft
    name = _lowered(name)

    def has_any(text: str, parts: Iterable[str]) -> bool:
        return any(part in text for part in parts)

    def set_lstrip(text: str) -> None:
        if text in to_id:
            attributes[to_id[text]] |= LSTRIP
        else:
            warn(f"the token {printable(text)} is missing: convert the model again")

    if has_any(named_pre, ("jina-v2-de", "jina-v2-es", "jina-v2-code")) or has_any(
        architecture, _LSTRIP_ARCHITECTURES
    ):
        set_lstrip("<mask>")
    elif has_any(name, _PHI_3):
        for text in ("</s>", "<unk>", "<s>", "<|endoftext|>"):
            if text not in to_id:
                raise VocabularyError(
                    f"the model's name says Phi-3, but it has no token {printable(text)}; llama.cpp refuses it",
                    path=path,
                    key=KEY_NAME,
                    remedy="convert the model again, or set another general.name",
                )
        for index in (*special_token_ids, to_id["</s>"]):
            attributes[index] |= RSTRIP
        for text in ("<unk>", "<s>", "<|endoftext|>"):
            attributes[to_id[text]] &= ~RSTRIP
    elif _MODERN_BERT in name:
        set_lstrip("[MASK]")


def _lowered(name: str) -> str:
    """As tolower does it in the C locale: ASCII only."""
    return name.encode().lower().decode()


# ---- typed access ---------------------------------------------------------------------------------------
# llama.cpp takes a value of one type and no other (schema.py), and its strings are C strings: they end at the
# first NUL (gguf_get_val_str, gguf_get_arr_str).


def _has(file: Metadata, key: str) -> bool:
    """Whether the file has the key; `WrongTypeError` where its type is not the one in `KEY_TYPES`."""
    if key not in file:
        return False
    if not has_right_type(file, key):
        raise wrong_type(file, key)
    return True


def _missing(file: Metadata, key: str) -> MissingKeyError:
    return MissingKeyError(
        "the key is missing",
        path=file.path,
        key=key,
        remedy="this is no language model with a tokenizer, or a faulty conversion: `ggufbpe info` shows more",
    )


def _string(file: Metadata, key: str, default: str | None = None) -> str:
    if not _has(file, key):
        if default is None:
            raise _missing(file, key)
        return default
    return cast(str, file[key]).partition("\0")[0]


@overload
def _flag(file: Metadata, key: str, default: bool) -> bool: ...
@overload
def _flag(file: Metadata, key: str, default: None) -> bool | None: ...
def _flag(file: Metadata, key: str, default: bool | None) -> bool | None:
    return cast(bool, file[key]) if _has(file, key) else default


def _unsigned(file: Metadata, key: str) -> int | None:
    return cast(int, file[key]) if _has(file, key) else None


def _lazy_strings(file: Metadata, key: str) -> LazyStrings | None:
    """An array of strings by the compiled module; None if it has none or if one of them is not to stay as it is."""
    _require_strings(file, key)
    strings = file.strings(key)
    return None if strings is None else LazyStrings(strings)


def _strings(file: Metadata, key: str) -> list[str]:
    _require_strings(file, key)
    strings = cast("list[str]", file[key])
    if "\0" in "".join(strings):
        return [string.partition("\0")[0] for string in strings]
    return strings


def _require_strings(file: Metadata, key: str) -> None:
    if not _has(file, key):
        raise _missing(file, key)


def _frames_to_caller() -> int:
    """The `stacklevel`, as seen from `warn_of`, of the first frame outside of this package."""
    import sys

    level, frame = 1, sys._getframe(1)
    package = os.path.dirname(os.path.dirname(__file__))
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    return level
