"""Exports an SPM or UGM vocabulary to tokenizer.model, the file of sentencepiece.

The protocol buffer comes from the sentencepiece package. Pieces are as in llama.cpp, which gets them from such files.

sentencepiece finds no control tokens in texts, and adds BOS and EOS only when told to: both are up to the caller.

Source of the format: src/sentencepiece_model.proto of google/sentencepiece; of how it reads it, src/model_interface.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..._util.errors import printable
from ..._util.extras import imported
from ..._util.spelling import BYTE_OF, BYTE_TOKENS, SPACE
from ...gguf.constants import TokenType
from ...models.tokenizer_model import first_attributes
from ...models.vocabulary import BYTE, CONTROL, UNKNOWN, UNUSED, USER_DEFINED, Vocabulary
from .. import incompatibilities
from ..export_formats import Export, json_file, require_expressible
from ..incompatibilities import Incompatibility, about_tokens
from ..portable_patterns import NotExpressibleError
from .hf_config import ChatTemplates, tokenizer_config

TOKENIZER_MODEL, TOKENIZER_CONFIG = "tokenizer.model", "tokenizer_config.json"
UNIGRAM, BPE = 1, 2  # TrainerSpec.ModelType
_ALGORITHMS = {"scores": BPE, "unigram": UNIGRAM}


def protocol() -> Any:
    """sentencepiece's protocol buffer classes. `NotInstalledError` without the package."""
    wanted = "a sentencepiece model"
    imported("google.protobuf", "sentencepiece", wanted)
    return imported("sentencepiece.sentencepiece_model_pb2", "sentencepiece", wanted)


def to_sentencepiece(vocabulary: Vocabulary, chat_template: ChatTemplates = None) -> Export:
    """tokenizer.model, and a tokenizer_config.json for what it has no place for.

    Raises `NotExpressibleError` if sentencepiece would not load it, `NotInstalledError` without the package.
    """
    require_expressible(vocabulary, "sentencepiece")
    vocabulary = incompatibilities.listed_out(vocabulary)
    unknown, tokens = vocabulary.special_ids["unk"], vocabulary.tokens
    if unknown is None:
        raise NotExpressibleError("there is no unknown token, and sentencepiece requires one")
    if "" in vocabulary.token_to_id:
        raise NotExpressibleError(f"token {printable('')} is empty, which sentencepiece does not accept")
    kinds, pieces = _types(vocabulary, unknown), _pieces(vocabulary)
    model = protocol().ModelProto()
    scores = vocabulary.scores or [0.0] * len(tokens)
    for text, score, kind in zip(pieces, scores, kinds):
        model.pieces.add(piece=text, score=score, type=kind)
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    trainer.model_type = _ALGORITHMS[vocabulary.tokenizer_model.algorithm]
    trainer.vocab_size = len(tokens)
    trainer.byte_fallback = TokenType.BYTE in kinds
    for name in ("unk", "bos", "eos", "pad"):
        token = vocabulary.special_ids[name]
        setattr(trainer, f"{name}_id", -1 if token is None else token)
        if token is not None:
            setattr(trainer, f"{name}_piece", pieces[token])
    normalizer.name = "identity" if not vocabulary.charsmap else ""
    normalizer.precompiled_charsmap = vocabulary.charsmap
    normalizer.add_dummy_prefix = vocabulary.add_space_prefix or vocabulary.remove_extra_whitespaces
    normalizer.remove_extra_whitespaces = vocabulary.remove_extra_whitespaces
    normalizer.escape_whitespaces = True
    files = {
        TOKENIZER_MODEL: model.SerializeToString(deterministic=True),
        TOKENIZER_CONFIG: json_file(tokenizer_config(vocabulary, chat_template, kinds)),
    }
    return Export(files, tuple(_limits(vocabulary, kinds)))


def _types(vocabulary: Vocabulary, unknown: int) -> list[TokenType]:
    """The type of each piece: one is unknown, and byte pieces are complete or absent."""
    by_scores = vocabulary.tokenizer_model.algorithm == "scores"
    kinds = vocabulary.attributes if by_scores else first_attributes(vocabulary)

    def kind_of(token: int, text: str, kind: int) -> TokenType:
        if token == unknown:
            return TokenType.UNKNOWN
        if kind & (CONTROL | UNKNOWN):
            return TokenType.CONTROL
        if by_scores and text in BYTE_OF:
            return TokenType.BYTE
        return (
            TokenType.USER_DEFINED
            if kind & USER_DEFINED
            else TokenType.UNUSED
            if kind & UNUSED
            else TokenType.NORMAL
        )

    types = [kind_of(token, text, kind) for token, (text, kind) in enumerate(zip(vocabulary.tokens, kinds))]
    there = types.count(TokenType.BYTE)
    if there not in (0, len(BYTE_TOKENS)) or (not by_scores and any(kind & BYTE for kind in kinds)):
        raise NotExpressibleError(
            (f"{there} of 256 bytes have a token" if by_scores else "bytes have tokens that no text becomes")
            + ", and sentencepiece falls back to all of them or to none"
        )
    return types


def _pieces(vocabulary: Vocabulary) -> list[str]:
    """The texts of tokens with spaces escaped, except where another token has that text."""
    escaped = [text.replace(" ", SPACE) for text in vocabulary.tokens]
    return [
        text if text != new and new in vocabulary.token_to_id else new
        for text, new in zip(vocabulary.tokens, escaped)
    ]


# ---- limits ---------------------------------------------------------------------------------------------


def _limits(vocabulary: Vocabulary, kinds: list[TokenType]) -> Iterator[Incompatibility]:
    if vocabulary.tokenizer_model.algorithm == "scores":
        yield from incompatibilities.bytes_that_fail(vocabulary)
        yield from _merged(vocabulary, kinds)
    else:
        yield Incompatibility(
            "rounded_sums",
            "sentencepiece adds scores up in single precision, llama.cpp in double: of two nearly equal ways "
            "it may take the other",
        )
        if vocabulary.nfc:
            yield Incompatibility(
                "composed_texts",
                "llama.cpp composes texts (NFC) before it applies the charsmap; sentencepiece does not, and has no "
                "setting for it; the format tokenizer.json can carry it",
            )
        unused = [text for text, kind in zip(vocabulary.tokens, kinds) if kind == TokenType.UNUSED]
        what = "unused: llama.cpp finds them in texts, sentencepiece does not"
        yield from about_tokens("unused_tokens", unused, what)
        yield from incompatibilities.user_defined_prefixes(vocabulary)
        yield from incompatibilities.texts_of_spaces(vocabulary)
    yield from _other_types(vocabulary, kinds)
    yield from incompatibilities.overlapping_tokens(vocabulary)
    yield from incompatibilities.hidden_tokens(vocabulary)
    yield from _beside_user_defined(vocabulary, kinds)


def _merged(vocabulary: Vocabulary, kinds: list[TokenType]) -> Iterator[Incompatibility]:
    """Tokens that llama.cpp merges like any other, and sentencepiece does not, or takes apart again."""
    known = vocabulary.token_to_id

    def is_made(text: str) -> bool:
        return len(text) == 1 or any(
            (at == 1 or text[:at] in known) and (at == len(text) - 1 or text[at:] in known)
            for at in range(1, len(text))
        )

    plain = (TokenType.NORMAL, TokenType.USER_DEFINED)
    texts = [text for text, kind in zip(vocabulary.tokens, kinds) if kind not in plain and is_made(text)]
    what = "merged from plain text by llama.cpp whatever the type, and not by sentencepiece"
    yield from about_tokens("merged_special_tokens", texts, what)


def _other_types(vocabulary: Vocabulary, kinds: list[TokenType]) -> Iterator[Incompatibility]:
    """Tokens that cannot have the type by which llama.cpp finds or adds them."""
    found = [
        text
        for text, attribute, kind in zip(vocabulary.tokens, vocabulary.attributes, kinds)
        if attribute & (USER_DEFINED | CONTROL | UNKNOWN) == USER_DEFINED and kind != TokenType.USER_DEFINED
    ]
    what = "user-defined, and found in texts by llama.cpp; sentencepiece has another type for bytes and unknown text"
    yield from about_tokens("user_defined_special_tokens", found, what)
    before, after = vocabulary.added
    added = [vocabulary.tokens[token] for token in (*before, *after) if kinds[token] != TokenType.CONTROL]
    yield from about_tokens(
        "bos_and_eos", added, "added to texts by llama.cpp; sentencepiece adds only control tokens"
    )


def _beside_user_defined(vocabulary: Vocabulary, kinds: list[TokenType]) -> Iterator[Incompatibility]:
    texts = [text for text, kind in zip(vocabulary.tokens, kinds) if kind == TokenType.USER_DEFINED]
    if not texts:
        return
    if vocabulary.add_space_prefix or vocabulary.remove_extra_whitespaces:
        yield from about_tokens(
            "spaces_beside_user_defined_tokens",
            texts,
            "a text in llama.cpp, which puts a space before each part that is plain text; sentencepiece puts one "
            "before the whole",
            ("parts", "part"),
        )
    escaped = [text for text in texts if " " in text or SPACE in text]
    what = "found by sentencepiece for spaces and for U+2581 alike, by llama.cpp only as written"
    yield from about_tokens("escaped_spaces", escaped, what)
    yield from incompatibilities.kept_spaces(vocabulary, "sentencepiece", UNKNOWN | CONTROL)
