"""Random texts and random vocabularies, for comparisons that go on where the fixtures end.

Everything follows from a seed. The texts are those of ggufbpe/verify/fuzz.py, and changed fixture texts; they are
short ones for the most part, for what goes wrong goes wrong within a few characters, and so there can be more of them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

from fixture_texts import CONTRACTIONS, KINDS, NOT_WHITE_SPACE, WHITE_SPACE, texts
from gguf import TokenType
from loading_rules import byte_alphabet

from ggufbpe.verify import fuzz

_LENGTHS = (1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 10, 12, 16, 40)
ATOMS = [*KINDS.values(), *CONTRACTIONS, *WHITE_SPACE, *NOT_WHITE_SPACE, *fuzz.ATOMS]


class RandomTexts(fuzz.RandomTexts):
    """The package's source of texts, which also takes fixture texts and changes them."""

    def __init__(self, seed: str, special: Sequence[str] = ()) -> None:
        super().__init__(seed, special=special, known=_known(), atoms=ATOMS)

    def _length(self) -> int:
        return self._dice.choice(_LENGTHS)


@cache
def _known() -> list[bytes]:
    return texts()


def random_vocabulary(seed: str, pre: str, byte_encode: bool, source: RandomTexts) -> dict[str, Any]:
    """The metadata of a small vocabulary with random merges, special tokens, types and flags."""
    dice = random.Random(seed)
    merges = _random_merges(dice, byte_encode, source)
    tokens = byte_alphabet() if byte_encode else [f"<0x{byte:02X}>" for byte in range(256)]
    if dice.random() < 0.2:
        tokens = [token for token in tokens if dice.random() < 0.97]
    kinds = dict.fromkeys(tokens, int(TokenType.NORMAL if byte_encode else TokenType.BYTE))
    for merge in merges:
        if dice.random() < 0.9:
            kinds.setdefault(merge.replace(" ", ""), int(TokenType.NORMAL))
        if not byte_encode:
            kinds.update({part: int(TokenType.NORMAL) for part in merge.split(" ") if len(part) == 1})
    types = [
        TokenType.CONTROL,
        TokenType.USER_DEFINED,
        TokenType.USER_DEFINED,
        TokenType.UNKNOWN,
        TokenType.UNUSED,
    ]
    for special in random_specials(dice):
        kinds[special] = int(dice.choice(types))
    order = list(kinds)
    dice.shuffle(order)
    keys: dict[str, Any] = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
    }
    if dice.random() < 0.15:
        keys["general.name"] = "phi-3"
        order += [text for text in ("<s>", "</s>", "<unk>", "<|endoftext|>") if text not in kinds]
    if pre == "whitespace":
        keys["tokenizer.ggml.model"] = "whitespace"
    elif byte_encode and dice.random() < 0.1:
        keys["tokenizer.ggml.model"] = "hybriddna"
        order += [
            text for text in ("<dna>", "</dna>", "<oov>", "ACGTAC\ue000", "AAAAAA\ue000") if text not in kinds
        ]
    keys |= {
        "tokenizer.ggml.tokens": order,
        "tokenizer.ggml.token_type": [kinds.get(token, int(TokenType.CONTROL)) for token in order],
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": dice.randrange(len(order)),
        "tokenizer.ggml.eos_token_id": dice.randrange(len(order)),
    }
    for flag in ("add_bos_token", "add_eos_token", "add_space_prefix"):
        if dice.random() < 0.4:
            keys["tokenizer.ggml." + flag] = dice.random() < 0.5
    return keys


def random_specials(dice: random.Random) -> list[str]:
    """Texts for special tokens, short and of few letters, so that they overlap; sometimes many."""
    letters = dice.choice(
        (["a", "b"], ["<", "x", ">"], ["a", " ", "\n"], ["é", "\u0301", "中"], dice.choices(ATOMS, k=5))
    )
    count = dice.choice((0, 1, 3, 8, 20, 60))
    made = ["".join(dice.choices(letters, k=dice.randint(1, 5))) for _ in range(count)]
    others = [
        "<|endoftext|>",
        "<|im_end|>",
        "</s>",
        "<mask>",
        "[MASK]",
        "<|tool_response>",
        "<unused1>",
        "<|return|>",
    ]
    made += [text for text in others if dice.random() < 0.15]
    return [text for text in dict.fromkeys(made) if "\x00" not in text and not any(map(_is_surrogate, text))]


def _is_surrogate(char: str) -> bool:
    return "\ud800" <= char <= "\udfff"


def _random_merges(dice: random.Random, byte_encode: bool, source: RandomTexts) -> list[str]:
    """Merges that build parts of random texts, each from random halves, in random order."""
    alphabet = byte_alphabet()
    merges: list[str] = []
    while len(merges) < 60:
        text = source.text().decode("utf-8", "ignore")
        coded = "".join(alphabet[byte] for byte in text.encode()) if byte_encode else text.replace(" ", "▁")
        coded = coded.replace("\x00", "")
        if len(coded) < 2:
            continue
        start = dice.randrange(len(coded) - 1)
        merges += _merges_of(dice, coded[start : start + dice.randint(2, 7)])
    merges = [merge for merge in dict.fromkeys(merges) if merge.count(" ") == 1]
    dice.shuffle(merges)
    return merges


def _merges_of(dice: random.Random, word: str) -> list[str]:
    if len(word) < 2:
        return []
    cut = dice.randrange(1, len(word))
    return [*_merges_of(dice, word[:cut]), *_merges_of(dice, word[cut:]), f"{word[:cut]} {word[cut:]}"]
