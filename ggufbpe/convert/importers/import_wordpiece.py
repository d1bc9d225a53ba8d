"""Imports WordPiece from a tokenizer.json or a vocab.txt: the pieces as llama.cpp writes them, and BERT's flags.

convert_hf_to_gguf.py writes U+2581 before user-defined tokens, too, so that they are never found; this module does
not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from typing import Any

from ..._util.errors import printable
from ..._util.spelling import unescape_spaces
from ...gguf.constants import TokenizerKey, TokenType
from ...models import tokenizer_model
from ..exporters.hf_config import HFConfig
from ..exporters.hf_wordpiece import word_piece_normalizer
from ..imported import NotImportableError, refuse_repeated
from ..incompatibilities import Incompatibility, replaced_tokens
from ..word_pieces import GOES_ON, as_token
from .hf_document import HFDocument

_K = TokenizerKey
_SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
_MOST_ADDED = 100_000  # ids without a word piece in between
_ENDLESS = 1 << 20  # characters of a word


def import_word_pieces(read: HFDocument) -> tuple[dict[str, Any], list[Incompatibility]]:
    """The keys of WPM, and what llama.cpp does differently."""
    prefix = read.model.get("continuing_subword_prefix", GOES_ON)
    if prefix != GOES_ON:
        raise NotImportableError(
            f"continuing pieces begin with {printable(prefix)}, and must begin with {GOES_ON!r}"
        )
    told: list[Incompatibility] = []
    flags = _flags(read, told)
    ends, _ = read.ends()
    keys: dict[str, Any] = {**flags}
    unknown = read.ids.get(read.model.get("unk_token") or "")
    for key, token in ((_K.BOS_ID, ends.get("bos")), (_K.SEP_ID, ends.get("eos")), (_K.UNK_ID, unknown)):
        if token is not None:
            keys[key] = token
    if {"bos", "eos"} - ends.keys():
        told.append(
            Incompatibility(
                "always_added", "the file does not add both CLS and SEP to a text, and llama.cpp always does"
            )
        )
    longest = read.model.get("max_input_chars_per_word", 100)
    if longest < _ENDLESS:
        told.append(
            Incompatibility(
                "long_words",
                f"a word of more than {longest} characters is unknown; llama.cpp has no such limit",
            )
        )
    told.append(
        Incompatibility("escaped_spaces", "after U+2581 in a text, llama.cpp begins a word without a space")
    )
    types = read.types[:]
    read.config.set_types(types)
    keys[_K.TOKEN_TYPE] = types
    keys[_K.LIST] = _as_tokens(read.tokens, {token["id"] for token in read.added}, types)
    return keys, told


def lines_of_pieces(path: str, data: bytes, config: HFConfig) -> list[str]:
    """The word pieces of the vocab.txt at `path`, whose content is `data`.

    `NotImportableError` for any other text, with the reason: the tokens for unknown words and for the beginning of a
    text must be there, under the names that `config` gives them, and only added tokens can have white space in them.
    """
    try:
        lines = data.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise NotImportableError(
            f"{path}: byte {error.start} is not UTF-8, so this is not a vocab.txt"
        ) from error
    counts = Counter(lines)
    for name in ("unk", "cls"):
        text = config.token(name) or ("" if _exported(config) else _SPECIAL[name])
        if text and text not in counts:
            raise NotImportableError(
                f"{path}: no line is {printable(text)}, which a vocab.txt of BERT has; ggufbpe imports no other "
                "lists of tokens"
            )
    added = {text for _, text, _ in config.added_tokens()}
    for number, line in enumerate(lines, 1):
        what = f"{path}: line {number}"
        if not line.strip() or "\0" in line:
            raise NotImportableError(f"{what} is {printable(line, 40)}, which is not a word piece")
        if (" " in line or "\t" in line) and line not in added:
            raise NotImportableError(
                f"{what}, {printable(line, 40)}, has white space in it, and a word piece has none"
            )
        if counts[line] > 1:
            raise NotImportableError(
                f"{what}, {printable(line, 40)}, is there twice, on which llama.cpp aborts"
            )
    return lines


def _exported(config: HFConfig) -> bool:
    """Whether the settings are those of our own export of word pieces, which need not have all special tokens."""
    return tokenizer_model(config.text(_K.MODEL)).algorithm == "word pieces"


def word_pieces_of_lines(lines: list[str], config: HFConfig) -> tuple[dict[str, Any], list[Incompatibility]]:
    """Metadata and incompatibilities of the word pieces in the lines of a vocab.txt."""
    lines, types = lines[:], [int(TokenType.NORMAL)] * len(lines)
    special: set[int] = set()
    replaced: dict[str, str] = {}
    for index, text, added in config.added_tokens():
        if index > len(lines) + _MOST_ADDED:
            raise NotImportableError(
                f"an added token has the id {index}, and there are {len(lines)} word pieces"
            )
        lines += [f"[PAD{empty}]" for empty in range(len(lines), index + 1)]
        types += [int(TokenType.UNUSED)] * (len(lines) - len(types))
        if unescape_spaces(lines[index]) != unescape_spaces(text):
            replaced[text] = lines[index] if types[index] != TokenType.UNUSED else ""
            lines[index] = text
        types[index] = int(added)
        special.add(index)
    known = {text: token for token, text in enumerate(lines) if text}  # an empty name names no token
    keys: dict[str, Any] = {}
    names = {"cls": _K.BOS_ID, "sep": _K.SEP_ID, "unk": _K.UNK_ID, "pad": _K.PAD_ID, "mask": _K.MASK_ID}
    for name, text in _SPECIAL.items():
        token = known.get(config.token(name) or ("" if config.section else text))
        if token is not None:
            types[token] = int(TokenType.CONTROL)
            keys[names[name]] = token
            special.add(token)
    config.set_types(types)
    lowercase = config.config.get("do_lower_case", True) is True
    accents = config.config.get("strip_accents")
    keys[_K.NORMALIZER_LOWERCASE] = lowercase
    keys[_K.NORMALIZER_STRIP_ACCENTS] = accents if isinstance(accents, bool) else lowercase
    keys[_K.TOKEN_TYPE] = types
    keys[_K.LIST] = _as_tokens(lines, special, types)
    return keys, [_NORMALIZATION, *replaced_tokens(replaced)]


_NORMALIZATION = Incompatibility(
    "normalization",
    "llama.cpp keeps only the first letter of a Hangul syllable, and with accents it drops all marks, which BERT's own "
    "normalizer keeps; it has the punctuation of Unicode 15.1",
)


def _as_tokens(texts: list[str], special: Container[int], types: list[int]) -> list[str]:
    """Pieces as tokens; special tokens, and placeholders for ids without a piece, stay as they are."""
    tokens = [
        text if token in special or (kind == TokenType.UNUSED and text == f"[PAD{token}]") else as_token(text)
        for token, (text, kind) in enumerate(zip(texts, types))
    ]
    refuse_repeated(tokens, "two word pieces become the token")
    return tokens


def _flags(read: HFDocument, told: list[Incompatibility]) -> dict[str, bool]:
    lowercase = strip_accents = False
    for part in read.parts("normalizer"):
        if part.get("type") == "BertNormalizer":
            lowercase = part.get("lowercase", True) is True
            accents = part.get("strip_accents")
            strip_accents = accents if isinstance(accents, bool) else lowercase
        lowercase = lowercase or part.get("type") == "Lowercase"
        strip_accents = strip_accents or part.get("type") == "StripAccents"
    if read.document.get("normalizer") != word_piece_normalizer(lowercase, strip_accents):
        told.append(_NORMALIZATION)
    else:
        told.append(Incompatibility("older_punctuation", "llama.cpp has the punctuation of Unicode 15.1"))
    told.append(
        Incompatibility("newer_unicode", "characters that came after Unicode 15.1 have no class in llama.cpp")
    )
    return {_K.NORMALIZER_LOWERCASE: lowercase, _K.NORMALIZER_STRIP_ACCENTS: strip_accents}
