"""Vocabularies made in memory, and the texts to try on them: shared by the tests of single steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from conftest import GPT2, RAW_UTF8
from hypothesis import settings
from hypothesis import strategies as st

from ggufbpe import Tokenizer
from ggufbpe.models.bpe.bpe_text import BytePairText
from ggufbpe.models.bpe.merge import BYTE_CHARS
from ggufbpe.models.loading import load_vocabulary
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.vocabulary import CONTROL, NORMAL, UNKNOWN, USER_DEFINED, Vocabulary

BYTE_LEVEL = [name for name, entry in PRE_TOKENIZERS.items() if entry.byte_encode]
ONE_OF_EACH_FAMILY = list({entry.family: name for name, entry in PRE_TOKENIZERS.items()}.values())
BYTE_LEVEL_FAMILIES = [name for name in ONE_OF_EACH_FAMILY if name in BYTE_LEVEL]
RAW_NAMES = [name for name in PRE_TOKENIZERS if name not in (*BYTE_LEVEL, "whitespace")]


def bounded(max_examples: int) -> settings:
    """The same examples in every run, without a limit for a single one and without a folder of findings."""
    return settings(max_examples=max_examples, derandomize=True, deadline=None, database=None)


@cache
def gpt2_vocabulary() -> Vocabulary:
    """GPT-2's, as the file has it."""
    return load_vocabulary(GPT2)


@cache
def raw_utf8_vocabulary() -> Vocabulary:
    """The small Gemma-like one, of which llama.cpp warns that its `</s>` is a normal token."""
    return load_vocabulary(RAW_UTF8)


@cache
def tokenizer_as(name: str) -> Tokenizer:
    """A real vocabulary under another pre-tokenizer: GPT-2's, or the raw one for names that need such."""
    vocabulary = gpt2_vocabulary() if name in BYTE_LEVEL else raw_utf8_vocabulary()
    return Tokenizer(vocabulary._replace(pre=name, pre_tokenizer=PRE_TOKENIZERS[name]))


def byte_pairs(tokenizer: Tokenizer) -> BytePairText:
    """The splitting and merging of a tokenizer that has them."""
    text = tokenizer.pipeline.plain_text
    assert isinstance(text, BytePairText)
    return text


def native_encoder(tokenizer: Tokenizer) -> Any:
    """The `_native.Encoder` of a tokenizer that runs on the compiled engine."""
    from ggufbpe.tokenizer.native_engine import NativeEngine

    engine = tokenizer._engine
    assert isinstance(engine, NativeEngine)
    return engine.encoder


def make_vocabulary(
    tokens: Iterable[str],
    *,
    attributes: Mapping[str, int] | None = None,
    merges: Iterable[str] = (),
    pre: str = "gpt-2",
    flags: Mapping[str, bool] | None = None,
    **changes: Any,
) -> Vocabulary:
    """A vocabulary of `tokens`, normal unless `attributes` says otherwise.

    `flags` are changes to the pre-tokenizer's flags, `changes` those to the vocabulary's fields.
    """
    texts = list(tokens)
    kinds = [(attributes or {}).get(text, NORMAL) for text in texts]
    fields: dict[str, Any] = {
        "model": "gpt2",
        "pre": pre,
        "pre_tokenizer": PRE_TOKENIZERS[pre]._replace(**dict[str, Any](flags or {})),
        "tokens": texts,
        "token_to_id": {text: index for index, text in enumerate(texts)},
        "attributes": kinds,
        "merges": list(merges),
        "special_ids": {**dict.fromkeys(gpt2_vocabulary().special_ids), **changes.pop("special_ids", {})},
        "eog_ids": frozenset(),
        "special_token_ids": tuple(
            index for index, kind in enumerate(kinds) if kind & (CONTROL | USER_DEFINED | UNKNOWN)
        ),
    }
    return Vocabulary(**{**fields, **changes})


def byte_tokens() -> list[str]:
    """A token for each byte, in GPT-2's alphabet; the id is the byte."""
    return list(BYTE_CHARS)


# Characters of every class, with those that one rule or another singles out.
CHARACTERS = (
    "aAsStTdDmMlLrReEvVxzIMG"
    "0123456789٣²Ⅳ"
    " \t\n\r\v\f\x1c\x85\xa0\u1680\u2003\u2028\u3000"
    "'’!?.,;:-_/\\()[]{}<>@#$%&*+=^`|~\"…—。，"
    "éßÄǅʰªσЖשعनไაअ中一㐀가ㄱあアｱ"
    "\u0301\u0903\u20dd\u200d\ufe0f"
    "€©→🙂🦙𝟘𐍈"
    "\0\x7f\xad\u0378\ue000\ufdd0\ufffd\U0010ffff"
)
WORDS = (
    "'ll",
    "'RE",
    "<|endoftext|>",
    "<sentinel:12>",
    "IMGIMGABZ",
    "1234567",
    "   ",
    "\r\n",
    "Hello",
    "中文",
)

texts = st.lists(
    st.one_of(
        st.sampled_from(CHARACTERS),
        st.sampled_from(WORDS),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=30,
).map("".join)

_BAD_BYTES = (
    *(b"\x80", b"\xbf", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x99", b"\xff", b"\xf8\x88\x80\x80\x80"),
    *(b"\xc0\xa0", b"\xc1\x81", b"\xe0\x80\xa0", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf4\x90\x80\x80"),
)
broken_bytes = st.lists(
    st.one_of(texts.map(str.encode), st.sampled_from(_BAD_BYTES), st.binary(max_size=4)), max_size=8
).map(b"".join)
