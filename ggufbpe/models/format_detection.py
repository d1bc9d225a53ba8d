"""Detects which tokenizer model a file's tokens were made for, whatever its `tokenizer.ggml.model` says.

Byte pair encoding has merges. Tokens from sentencepiece begin words with U+2581 and have scores: whole numbers, the
ranks of merges, in its byte pair encoding; logarithms in its unigram models. WordPiece has the names of BERT's special
tokens. RWKV writes bytes as escapes. PLaMo has names of its own, and unescaped spaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from .._util.errors import GGUFError
from .._util.spelling import BYTE_TOKENS, SPACE
from ..gguf.constants import TokenizerKey
from ..gguf.metadata import Metadata
from ..gguf.reader import GGUFFile
from ..native.lazy_strings import made_once
from .known_families import family_of_tokens, splits_like

_SAMPLE = 20000  # tokens
_LEAST = 500  # tokens that a vocabulary must have to be telling
_SOME = 0.1  # of the tokens must have a trait
_BYTE_LEVEL_SPACE = "\u0120"

_BERT_NAMES = ("[CLS]", "[SEP]", "[UNK]")
_PLAMO_NAMES = ("<|plamo:bos|>", "<|plamo:eos|>")
_DNA_NAMES = ("<dna>", "</dna>", "<oov>")
_NAMES = frozenset((*BYTE_TOKENS, *_BERT_NAMES, *_PLAMO_NAMES, *_DNA_NAMES))


class Looks(NamedTuple):
    """Traits that distinguish the files of one tokenizer model from another's; shares are of a sample of tokens."""

    is_telling: bool = False  # False if there are too few tokens
    begins_words: bool = False  # many tokens begin with U+2581
    is_byte_level: bool = False  # many begin with a space as GPT-2's alphabet writes it
    continues_words: bool = False  # many begin with ##, as in BERT's own files
    has_escapes: bool = False  # many have bytes written as \\x..
    has_bytes: bool = False  # <0x00> to <0xFF>
    has_bert_names: bool = False  # [CLS], [SEP] and [UNK]
    has_plamo_names: bool = False  # <|plamo:bos|> and <|plamo:eos|>
    has_dna_names: bool = False  # <dna>, </dna> and <oov>
    has_merges: bool = False
    has_charsmap: bool = False
    has_ranks: bool = False  # scores that differ, all of them whole numbers
    has_logarithms: bool = False  # scores that are not


def detect_looks(file: GGUFFile | Metadata) -> Looks:
    """The looks of a file; empty ones if its tokens cannot be read."""
    looks = _looks_of_tokens(file)
    if not looks.is_telling:
        return looks
    scores = _list(file, TokenizerKey.SCORES)
    telling = (
        scores if len(set(islice(scores, 0, None, max(len(scores) // _SAMPLE, 1)))) > _LEAST // 2 else []
    )
    whole = all(float(score).is_integer() for score in telling)
    return looks._replace(
        has_merges=bool(_list(file, TokenizerKey.MERGES)),
        has_charsmap=TokenizerKey.PRECOMPILED_CHARSMAP in file,
        has_ranks=bool(telling) and whole,
        has_logarithms=bool(telling) and not whole,
    )


def _looks_of_tokens(file: GGUFFile | Metadata) -> Looks:
    """The traits that the tokens alone show, found once for files in use that have the same tokens."""
    try:
        shared = file.strings(TokenizerKey.LIST) if TokenizerKey.LIST in file else None
    except GGUFError:  # not UTF-8
        shared = None
    return _traits(_list(file, TokenizerKey.LIST)) if shared is None else made_once(shared, _traits)


def _traits(tokens: Sequence[Any]) -> Looks:
    sample = list(islice(tokens, 0, None, max(len(tokens) // _SAMPLE, 1)))
    if len(tokens) < _LEAST or not all(isinstance(token, str) for token in sample):
        return Looks()

    def some(of: Sequence[bool]) -> bool:
        return sum(of) > _SOME * len(sample)

    known = _NAMES.intersection(tokens)
    return Looks(
        is_telling=True,
        begins_words=some([token.startswith(SPACE) for token in sample]),
        is_byte_level=some([token.startswith(_BYTE_LEVEL_SPACE) for token in sample]),
        continues_words=some([token.startswith("##") for token in sample]),
        has_escapes=some(["\\x" in token for token in sample]),
        has_bytes=known.issuperset(BYTE_TOKENS),
        has_bert_names=known.issuperset(_BERT_NAMES),
        has_plamo_names=known.issuperset(_PLAMO_NAMES),
        has_dna_names=known.issuperset(_DNA_NAMES),
    )


def likely_models(tokens: Sequence[str], looks: Looks, own: str, pre: str | None) -> list[str]:
    """The models that a file was likely made for, if its tokens contradict `own`; otherwise an empty list.

    `own` is the model that the file names, "" if it names none. A known family decides, then the looks. Where merges
    are missing, tokens without learned scores may be those of byte pair encoding as well as those of a model with
    scores, so that nothing tells which it is.
    """
    from . import SUPPORTED, tokenizer_model

    kind = tokenizer_model(own)
    recognized = kind.recognizes(looks)
    is_undecided = recognized is None and bool(own)
    is_unclear = is_undecided and (kind.own_pre or kind.has_sequences or not kind.is_supported)
    if recognized or is_unclear or not looks.is_telling:
        return []
    family = family_of_tokens(tokens)
    if family is not None:
        is_own = family.model == own or (is_undecided and kind.has_pre_tokenizer and splits_like(pre, family))
        return [] if is_own or tokenizer_model(family.model).recognizes(looks) is False else [family.model]
    if is_undecided:
        return []
    likely = [name for name in SUPPORTED if tokenizer_model(name).recognizes(looks)]
    has_learned_scores = looks.has_ranks or looks.has_logarithms or looks.has_charsmap
    if kind.algorithm in ("", "merges") and not has_learned_scores:
        return [name for name in likely if not tokenizer_model(name).has_scores]
    return likely


def models_alike(looks: Looks, own: str) -> list[str]:
    """The other models that fit a file as well as `own`, which it looks like."""
    from . import SUPPORTED, tokenizer_model

    if not looks.is_telling or not tokenizer_model(own).recognizes(looks):
        return []
    return [name for name in SUPPORTED if name != own and tokenizer_model(name).recognizes(looks)]


def _list(file: GGUFFile | Metadata, key: str) -> Sequence[Any]:
    if key not in file:
        return ()
    try:
        value = file[key]
    except GGUFError:  # not UTF-8
        return ()
    return value if isinstance(value, list) else ()
