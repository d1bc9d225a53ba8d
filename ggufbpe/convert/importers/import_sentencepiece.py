"""Imports tokenizer.model: sentencepiece's byte pair encoding and unigram model as llama.cpp has them.

Source of what is written where: convert_hf_to_gguf.py (_create_vocab_sentencepiece, T5Model, _xlmroberta_set_vocab).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from typing import Any

from ..._util.errors import printable
from ..._util.spelling import unescape_spaces
from ...gguf.constants import TokenizerKey, TokenType
from ..exporters.hf_config import CONFIG_TOKENS, HFConfig
from ..exporters.sentencepiece_model import BPE, UNIGRAM, protocol
from ..imported import NotImportableError, refuse_repeated
from ..incompatibilities import Incompatibility, replaced_tokens
from .hf_document import require_charsmap

_K = TokenizerKey
_ADDED_SCORE, _PADDED_SCORE = -1000.0, -10000.0
_MOST_ADDED = 100_000
_FAIRSEQ = (
    ("<s>", TokenType.CONTROL),
    ("<pad>", TokenType.CONTROL),
    ("</s>", TokenType.CONTROL),
    ("<unk>", TokenType.UNKNOWN),
)
FAIRSEQ_NAME = "sentencepiece.bpe.model"


class _Pieces:
    """Texts, scores and types of tokens, by id."""

    def __init__(self, pieces: Iterator[tuple[str, float, int]]) -> None:
        self.texts: list[str] = []
        self.scores: list[float] = []
        self.types: list[int] = []
        for text, score, kind in pieces:
            self.texts.append(text)
            self.scores.append(score)
            self.types.append(kind)

    def put(self, index: int, text: str, kind: int) -> str:
        """Replace a token, or append one; ids skipped on the way are unused. Return the text that is lost by it."""
        if index > len(self.texts) + _MOST_ADDED:
            raise NotImportableError(
                f"an added token has the id {index}, and there are {len(self.texts)} pieces"
            )
        for empty in range(len(self.texts), index + 1):
            self.texts.append(f"[PAD{empty}]")
            self.scores.append(_PADDED_SCORE)
            self.types.append(int(TokenType.UNUSED))
        lost = self.texts[index] if self.types[index] != TokenType.UNUSED else text
        self.texts[index], self.scores[index], self.types[index] = text, _ADDED_SCORE, int(kind)
        return "" if unescape_spaces(lost) == unescape_spaces(text) else lost


def read_model(data: bytes) -> Any:
    """The protocol buffer of a tokenizer.model whose pieces can be tokens. `NotImportableError` if it is none."""
    model = protocol().ModelProto()
    try:
        model.ParseFromString(data)
        texts = [piece.piece for piece in model.pieces]
    except Exception as error:  # DecodeError
        raise NotImportableError(
            f"this is not a sentencepiece model: {printable(str(error), 200)}"
        ) from error
    odd = next((index for index, text in enumerate(texts) if not isinstance(text, str)), None)
    if odd is not None:
        raise NotImportableError(f"this is not a sentencepiece model: piece {odd} is not UTF-8")
    if not texts:
        raise NotImportableError("this is not a sentencepiece model: it has no pieces")
    if model.trainer_spec.model_type not in (BPE, UNIGRAM):
        raise NotImportableError(
            "the model splits into words or characters, and llama.cpp has sentencepiece's BPE and unigram only"
        )
    refuse_repeated(texts, "two pieces are")
    for index, piece in enumerate(model.pieces):
        if not piece.piece or "\0" in piece.piece:
            raise NotImportableError(
                f"piece {index} is {printable(piece.piece, 40)}: none can be empty or have a NUL"
            )
        if math.isnan(piece.score):
            raise NotImportableError(
                f"the score of piece {index}, {printable(piece.piece, 40)}, is not a number"
            )
    return model


def import_sentencepiece(
    data: bytes, config: HFConfig, *, fairseq: bool = False
) -> tuple[str, dict[str, Any], list[Incompatibility]]:
    """The algorithm, the keys from a tokenizer.model and the files beside it, and what llama.cpp does differently.

    With `fairseq`, ids are those of XLM-RoBERTa: four special tokens first and a mask last.
    """
    model = read_model(data)
    pieces = _Pieces((piece.piece, piece.score, piece.type) for piece in model.pieces)
    if fairseq:
        pieces.texts[:3] = [text for text, _ in _FAIRSEQ]
        pieces.types[:3] = [int(kind) for _, kind in _FAIRSEQ]
        pieces.scores[:3] = [0.0] * len(_FAIRSEQ)
        pieces.put(len(pieces.texts), "<mask>", TokenType.CONTROL)
    replaced = {text: pieces.put(index, text, kind) for index, text, kind in config.added_tokens()}
    refuse_repeated(pieces.texts, "two ids have the token")
    config.set_types(pieces.types)
    algorithm = "scores" if model.trainer_spec.model_type == BPE else "unigram"
    normalizer = model.normalizer_spec
    keys: dict[str, Any] = {
        _K.LIST: pieces.texts,
        _K.TOKEN_TYPE: pieces.types,
        _K.SCORES: pieces.scores,
        _K.ADD_PREFIX: normalizer.add_dummy_prefix,
    }
    if algorithm == "unigram":
        keys[_K.REMOVE_EXTRA_WS] = normalizer.remove_extra_whitespaces
        if normalizer.precompiled_charsmap:
            keys[_K.PRECOMPILED_CHARSMAP] = array("b", require_charsmap(normalizer.precompiled_charsmap))
    keys.update(_special_ids(model, pieces, config))
    return algorithm, keys, [*_limits(model, algorithm, pieces), *replaced_tokens(replaced)]


def _special_ids(model: Any, pieces: _Pieces, config: HFConfig) -> Iterator[tuple[str, int]]:
    """The ids that tokenizer_config.json names, or else the model."""
    ids = {text: token for token, text in enumerate(pieces.texts) if text}  # an empty name names no token
    found: dict[str, int] = {}
    for name, key in CONFIG_TOKENS:
        token = ids.get(config.token(name))
        own = ids.get(getattr(model.trainer_spec, f"{name}_piece", ""))
        if token is None and own is not None and pieces.types[own] in (TokenType.CONTROL, TokenType.UNKNOWN):
            token = own
        if token is not None:
            found[key] = token
    found.update(config.written_ids(found, len(pieces.texts)))
    yield from found.items()


def _limits(model: Any, algorithm: str, pieces: _Pieces) -> Iterator[Incompatibility]:
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    is_unigram = algorithm == "unigram"
    if not is_unigram and normalizer.precompiled_charsmap:
        yield Incompatibility("normalizer", "llama.cpp does not apply the file's charsmap: its SPM has none")
    if not is_unigram and normalizer.remove_extra_whitespaces:
        yield Incompatibility(
            "extra_white_space",
            "several spaces become one and those at the ends are dropped; llama.cpp keeps them",
        )
    if trainer.treat_whitespace_as_suffix or not normalizer.escape_whitespaces:
        yield Incompatibility("white_space", "the file puts spaces after words, or leaves them as they are")
    if trainer.byte_fallback and is_unigram:
        yield Incompatibility("byte_fallback", "the file has byte fallback, and llama.cpp's Unigram has none")
    if not trainer.byte_fallback and not is_unigram:
        yield Incompatibility(
            "bytes_without_tokens",
            "the file has no byte tokens; for a character that is not a token, llama.cpp throws an exception",
        )
    if TokenType.USER_DEFINED in pieces.types:
        yield Incompatibility(
            "spaces_beside_user_defined_tokens",
            "user-defined tokens split a text in llama.cpp, which puts a space before each part that is plain text",
            pieces.types.count(TokenType.USER_DEFINED),
        )
    if TokenType.UNUSED in pieces.types:
        yield Incompatibility(
            "unused_tokens",
            "llama.cpp makes unused tokens from text like any other",
            pieces.types.count(TokenType.UNUSED),
        )
    if is_unigram:
        yield Incompatibility(
            "rounded_sums", "scores are added in single precision there, and in double in llama.cpp"
        )
