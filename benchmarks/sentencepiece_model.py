"""A vocabulary as a sentencepiece `.model`, which sentencepiece reads, and gigatoken for SPM.

    models/ -> [this file] -> peers.py

Source of the fields: sentencepiece_model.proto. But: only what encoding needs.
"""

from __future__ import annotations

import struct

from ggufbpe.models.vocabulary import BYTE, CONTROL, UNKNOWN, UNUSED, USER_DEFINED, Vocabulary

_TYPES = {UNKNOWN: 2, CONTROL: 3, USER_DEFINED: 4, UNUSED: 5, BYTE: 6}  # of a piece; 1 is a normal one
_UNIGRAM, _BPE = 1, 2


def sentencepiece_model(vocabulary: Vocabulary) -> bytes:
    """The whole file. `NotImplementedError` for a model that sentencepiece does not have."""
    if not vocabulary.tokenizer_model.has_scores:
        raise NotImplementedError(f"sentencepiece has no {vocabulary.tokenizer_model.description}")
    unknown = vocabulary.special_ids["unk"]
    pieces = b"".join(
        _message(
            1,
            _message(1, text.encode())
            + _float(2, vocabulary.scores[token])
            + _number(3, 2 if token == unknown else _type(vocabulary.attributes[token])),
        )
        for token, text in enumerate(vocabulary.tokens)
    )
    is_bpe = not vocabulary.tokenizer_model.normalizes
    trainer = _number(3, _BPE if is_bpe else _UNIGRAM) + _number(35, is_bpe) + _number(40, unknown or 0)
    normalizer = (
        _message(1, b"identity" if is_bpe else b"nmt_nfkc")
        + _message(2, vocabulary.charsmap)
        + _number(3, vocabulary.add_space_prefix)
        + _number(4, vocabulary.remove_extra_whitespaces)
        + _number(5, True)
    )
    return pieces + _message(2, trainer) + _message(3, normalizer)


def _type(attribute: int) -> int:
    known = (number for flag, number in _TYPES.items() if attribute & flag and flag != UNKNOWN)
    return next(known, 1)


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(data) + bytes([number])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(int(value))


def _float(field: int, value: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", value)


def _message(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data
