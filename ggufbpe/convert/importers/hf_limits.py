"""Limits of import: how llama.cpp treats the tokens of a tokenizer.json differently from the tokenizers library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..._util.spelling import SPACE
from ..._util.wording import listed
from ...gguf.constants import TokenizerKey, TokenType
from ...models.special_ids import (
    MODERN_BERT,
    PHI_3,
    STRIPPING_ARCHITECTURES,
    STRIPS_MASK,
    UnfinishedVocabulary,
    end_of_generation,
    find_special_tokens,
)
from ...models.token_table import ATTRIBUTE_OF_TYPE, tokens_that_differ
from ...models.vocabulary import CONTROL, SPECIAL_TYPES, UNKNOWN
from ..exporters.hf_config import SPECIAL_ID_KEYS
from ..incompatibilities import Incompatibility, about_tokens
from .hf_document import HFDocument

_BY_NAME = "does only for models of some names"
_FLAGS = (  # of added tokens: what one token does, what several do, and what llama.cpp does instead
    ("lstrip", "takes the white space before it", "take the white space before them", _BY_NAME),
    ("rstrip", "takes the white space after it", "take the white space after them", _BY_NAME),
    ("single_word", "is found only as a whole word", "are found only as whole words", "never asks for"),
)
_BY_TEXT = (  # what llama.cpp makes of tokens by their texts: one token, and several
    (
        "made_control",
        "becomes a control token in llama.cpp, by its text, and is not found in plain text",
        "become control tokens in llama.cpp, by their texts, and are not found in plain text",
    ),
    (
        "always_shown",
        "becomes a user-defined token in llama.cpp, by its text, and is found in plain text, too",
        "become user-defined tokens in llama.cpp, by their texts, and are found in plain text, too",
    ),
    (
        "not_found",
        "becomes a normal token in llama.cpp, by its text, and is not looked for in texts",
        "become normal tokens in llama.cpp, by their texts, and are not looked for in texts",
    ),
    (
        "found_in_texts",
        "is a normal token in the file, becomes a special one in llama.cpp, by its text, and is looked for in texts",
        "are normal tokens in the file, become special ones in llama.cpp, by their texts, and are looked for in texts",
    ),
)


def added_token_limits(read: HFDocument, pre: str, architecture: str, name: str) -> Iterator[Incompatibility]:
    """What added tokens do that llama.cpp does only for some models, by `pre`, `architecture` and `name`."""
    name, added = name.lower(), read.added
    strips_mask = pre in STRIPS_MASK or any(part in architecture for part in STRIPPING_ARCHITECTURES)
    carried = {  # only by name: models/, _set_strip_attributes
        "lstrip": {"<mask>"} if strips_mask else {"[MASK]"} if MODERN_BERT in name else set(),
        "rstrip": set(read.ids) if not strips_mask and any(part in name for part in PHI_3) else set(),
    }
    for flag, one, many, but in _FLAGS:
        texts = [token["content"] for token in added if token.get(flag)]
        lost = [text for text in texts if text not in carried.get(flag, ())]
        if lost:
            yield Incompatibility(flag, f"{_named(lost, one, many)}, which llama.cpp {but}", len(lost))
    if moved := read.renumbered():
        yield Incompatibility(
            "added_ids",
            f"{_named(moved, 'has another id', 'have other ids')} in the library, which numbers added tokens on from "
            "the vocabulary, whatever the file says",
            len(moved),
        )
    if beside := [token["content"] for token in read.added_beside]:
        yield Incompatibility(
            "added_beside",
            f"{_named(beside, 'is', 'are')} added only by the files beside tokenizer.json, which transformers reads "
            "and the tokenizers library does not",
            len(beside),
        )
    if others := read.flags_beside:
        yield Incompatibility(
            "flags_beside",
            f"{_named(others, 'has', 'have')} other flags in the files beside tokenizer.json, which transformers reads "
            "and the tokenizers library does not",
            len(others),
        )
    changes = [part.get("type") for part in read.parts("normalizer")]
    normalized = [t["content"] for t in added if t.get("normalized")] if changes else []
    if normalized:
        yield Incompatibility(
            "normalized_tokens",
            f"{_named(normalized, 'is', 'are')} found in the normalized text, which llama.cpp does not have",
            len(normalized),
        )


def tokens_across_words(read: HFDocument, removes_spaces: bool = False) -> Iterator[Incompatibility]:
    """Tokens that a file which splits text before spaces never makes, and llama.cpp does."""
    joined = [
        text
        for text, kind in zip(read.tokens, read.types)
        if kind == TokenType.NORMAL and text.find(SPACE, 1) > 0 and (text.strip(SPACE) or not removes_spaces)
    ]
    yield from about_tokens(
        "splitting",
        joined,
        "a space that is not the first character: the file splits text before spaces, and llama.cpp does not",
        ("has", "have"),
    )


def metaspace_limits(read: HFDocument, removes_spaces: bool = False) -> Iterator[Incompatibility]:
    """Texts before which `Metaspace` puts no space, and llama.cpp does."""
    schemes = {
        part.get("prepend_scheme", "always" if part.get("add_prefix_space", True) else "never")
        for part in read.parts("pre_tokenizer")
        if part.get("type") == "Metaspace"
    }
    if "first" in schemes:
        yield Incompatibility(
            "first_prefix", "a space goes only before the text; llama.cpp puts one after special tokens, too"
        )
    if schemes - {"never"} and not removes_spaces:
        yield Incompatibility(
            "spaces_at_the_start",
            "no space is put before a text that begins with a space or U+2581; llama.cpp puts one before every text",
        )


def types_by_text(read: HFDocument, metadata: Mapping[str, Any]) -> Iterator[Incompatibility]:
    """Tokens that llama.cpp looks for in texts otherwise than the file says, because of the tokens' own texts.

    `metadata` is that of the import: the tokens, their types, and the special ids.
    """
    tokens = metadata[TokenizerKey.LIST]
    attributes = [ATTRIBUTE_OF_TYPE.get(kind, 0) for kind in metadata[TokenizerKey.TOKEN_TYPE]]
    ids = {name: metadata.get(key) for name, key in SPECIAL_ID_KEYS.items()}
    by_text = dict(zip(tokens, range(len(tokens))))
    ignored: list[object] = []  # warnings and corrections, which opening the result repeats
    draft = UnfinishedVocabulary("", ignored.append, ignored.append, tokens, by_text, attributes, ids)
    before = attributes[:]
    find_special_tokens(draft)
    end_of_generation(draft)
    added = {token["id"]: bool(token.get("special")) for token in read.added}
    texts: dict[str, list[str]] = {name: [] for name, *_ in _BY_TEXT}
    for token in sorted({*added, *tokens_that_differ(attributes, before)}):
        is_found, is_hidden = attributes[token] & SPECIAL_TYPES, bool(attributes[token] & (CONTROL | UNKNOWN))
        if token not in added:
            texts["found_in_texts"].append(tokens[token])
        elif not is_found:
            texts["not_found"].append(tokens[token])
        elif is_hidden is not added[token]:
            texts["made_control" if is_hidden else "always_shown"].append(tokens[token])
    for name, one, many in _BY_TEXT:
        if texts[name]:
            yield Incompatibility(name, _named(texts[name], one, many), len(texts[name]))


def _named(texts: list[str], one: str, many: str) -> str:
    """The texts of tokens, and the verb that follows.

    >>> _named(["<s>"], "is", "are"), _named(["<s>", "</s>"], "is", "are")
    ("'<s>' is", "'<s>', '</s>' are")
    """
    return f"{listed(texts, len(texts), ' and {} more')} {one if len(texts) == 1 else many}"
