"""Random texts and random vocabularies, for comparisons that go on where the fixtures end.

Everything follows from a seed. The texts are those of ggufbpe/models/pretokenizers/random_texts.py, and changed fixture
texts; they are short ones for the most part, for what goes wrong goes wrong within a few characters, and so there can
be more of them.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from charsmaps import charsmap
from fixture_texts import CONTRACTIONS, KINDS, NOT_WHITE_SPACE, WHITE_SPACE, texts
from gguf import GGUFValueType, TokenType
from loading_rules import byte_alphabet

from ggufbpe.models.pretokenizers import random_texts
from ggufbpe.models.rwkv import unescape

_LENGTHS = (1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 10, 12, 16, 40)
ATOMS = [*KINDS.values(), *CONTRACTIONS, *WHITE_SPACE, *NOT_WHITE_SPACE, *random_texts.ATOMS]


class RandomTexts(random_texts.RandomTexts):
    """The package's source of texts, which also takes fixture texts and changes them."""

    def __init__(self, seed: str, special: Sequence[str] = ()) -> None:
        super().__init__(seed, special=special)
        self._atoms_known = ATOMS
        self._known = _known()
        self._ways.insert(2, self._changed)
        self._weights.insert(2, 3)

    def broken_text(self) -> bytes:
        """One text with some of `_FORMS`, none of which is UTF-8; `within_unicode` takes those out that crash."""
        data = bytearray(self.text()[:200])
        for _ in range(self._dice.choice((1, 1, 2, 4))):
            at = self._dice.randrange(len(data) + 1)
            data[at:at] = self._dice.choice(_FORMS)(self._dice, self._atom())
        return bytes(data)

    def _length(self) -> int:
        return self._dice.choice(_LENGTHS)

    def _changed(self) -> bytes:
        """A part of a known text, with a few changes."""
        dice = self._dice
        text = dice.choice(self._known)
        start = dice.randrange(len(text))
        part = bytearray(text[start : start + 2 * self._length()])
        for _ in range(dice.randrange(4)):
            at = dice.randrange(len(part) + 1)
            if dice.random() < 0.4:
                del part[at : at + dice.randrange(1, 4)]
            else:
                part[at:at] = self._atom().encode("utf-8", "surrogatepass")
        return bytes(part)


@cache
def _known() -> list[bytes]:
    return [text for text in texts() if 0 < len(text) < 400]


def _form(code_point: int, length: int) -> bytes:
    """A code point in 2 to 4 bytes, whether it needs so many or not.

    >>> _form(ord(" "), 2)
    b'\\xc0\\xa0'
    """
    lead = (0xC0, 0xE0, 0xF0)[length - 2]
    places = range(6 * (length - 1), -1, -6)
    first, *others = [code_point >> place for place in places]
    return bytes([lead | first, *(0x80 | each & 0x3F for each in others)])


def _overlong(dice: random.Random, atom: str) -> bytes:
    """A character of `atom` in more bytes than it needs."""
    code_point = ord(dice.choice(atom)) & 0xFFFF
    least = 2 if code_point < 0x80 else 3 if code_point < 0x800 else 4
    return _form(code_point, dice.randint(least, 4))


def _surrogates(dice: random.Random, atom: str) -> bytes:
    """A surrogate, or a pair of them."""
    pair = _form(dice.randrange(0xD800, 0xDC00), 3), _form(dice.randrange(0xDC00, 0xE000), 3)
    return dice.choice((*pair, b"".join(pair)))


def _truncated(dice: random.Random, atom: str) -> bytes:
    """The beginning of a character, and perhaps more text."""
    char = dice.choice(("é", "中", "🙂", "\ufffd", "\U0010ffff", *filter(str.isalpha, atom)))
    data, more = (text.encode("utf-8", "surrogatepass") for text in (char, atom))
    return data[: dice.randrange(1, max(len(data), 2))] + dice.choice((b"", more))


def _too_large(dice: random.Random, atom: str) -> bytes:
    """A code point above U+10FFFF in four bytes, or a byte that begins none."""
    return dice.choice(
        (
            _form(dice.choice((0x110000, 0x13FFFF, 0x1FFFFF, dice.randrange(0x110000, 0x200000))), 4),
            bytes([dice.randrange(0xF8, 0x100)]) + b"\x88\x80\x80\x80"[: dice.randrange(5)],
            bytes([dice.choice((0xC0, 0xC1, 0xF5, 0x80, 0xBF))]),
        )
    )


_FORMS = (_overlong, _overlong, _surrogates, _truncated, _too_large)


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


def random_word_pieces(seed: str, source: RandomTexts) -> dict[str, Any]:
    """The same of a WordPiece vocabulary: beginnings of words and what may follow, of which some is missing."""
    dice = random.Random(seed)
    lowercase = dice.choice((None, True, False))
    kinds = dict.fromkeys(
        ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
        int(dice.choice((TokenType.NORMAL, TokenType.CONTROL))),
    )
    begins = dice.choice(("▁", "▁", "▁", "##"))
    for _ in range(dice.choice((30, 150, 400))):
        text = source.text().decode("utf-8", "ignore").replace("\x00", "")
        text = (
            text if lowercase is False and dice.random() < 0.5 else unicodedata.normalize("NFD", text.lower())
        )
        for word in text.split()[:6]:
            start = dice.randrange(len(word))
            piece = word[start : start + dice.choice((1, 1, 2, 3, 5, 9))]
            kinds.setdefault(begins + word[: dice.randint(1, 6)], int(TokenType.NORMAL))
            kinds.setdefault(begins + word[0], int(TokenType.NORMAL))
            kinds.setdefault(piece, int(TokenType.NORMAL))
            if dice.random() < 0.7:
                kinds.update(dict.fromkeys(word, int(TokenType.NORMAL)))
    if dice.random() < 0.1:
        kinds[begins] = int(TokenType.NORMAL)
    kinds.update(_special_kinds(dice))
    return _keys(dice, "bert", kinds) | _flags(
        dice,
        {"normalizer.lowercase": lowercase, "normalizer.strip_accents": dice.choice((None, True, False))},
    )


def random_escaped_tokens(seed: str, source: RandomTexts) -> dict[str, Any]:
    """The same of an RWKV vocabulary: parts of texts, and bytes of which some are missing.

    Where a token begins, its first byte is a token, too: llama.cpp does not come to an end otherwise.
    """
    dice = random.Random(seed)
    found = {bytes([byte]) for byte in range(256) if dice.random() < dice.choice((1, 1, 0.9, 0.5))}
    for _ in range(dice.choice((30, 200, 800))):
        text = source.text().replace(b"\x00", b"")
        if text:
            start = dice.randrange(len(text))
            found.add(text[start : start + dice.choice((2, 2, 3, 4, 6, 12))])
    kinds = {_escaped(dice, token): int(TokenType.NORMAL) for token in sorted(found)}
    for unfinished in ("\\", "\\x", "\\x4", "\\q"):
        if dice.random() < 0.2:
            kinds.setdefault(unfinished, int(TokenType.NORMAL))
    kinds.update(_special_kinds(dice))
    begun = {unescape(text)[:1] for text in kinds} - {b""}
    kinds.update({f"\\x{first.hex()}": int(TokenType.NORMAL) for first in begun - set(map(unescape, kinds))})
    return _keys(dice, "rwkv", kinds) | _flags(dice, {})


def _escaped(dice: random.Random, token: bytes) -> str:
    """The bytes as RWKV's vocabularies have them; now and then with more escapes than are needed."""
    if dice.random() < 0.1:
        return "".join(f"\\x{byte:02x}" for byte in token)
    return repr(token)[2:-1]


def _special_kinds(dice: random.Random) -> dict[str, int]:
    types = (TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.USER_DEFINED, TokenType.UNKNOWN)
    return {text: int(dice.choice((*types, TokenType.UNUSED))) for text in random_specials(dice)}


def _keys(dice: random.Random, model: str, kinds: dict[str, int]) -> dict[str, Any]:
    """The metadata of a vocabulary of these tokens and types, in random order."""
    order = list(kinds)
    dice.shuffle(order)
    keys: dict[str, Any] = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": model,
        "tokenizer.ggml.tokens": order,
        "tokenizer.ggml.token_type": [kinds[token] for token in order],
    }
    names = {
        "bert": ("bos", "cls", "seperator", "unknown", "padding", "mask"),
        "rwkv": ("bos", "eos", "unknown"),
    }
    for name in names[model]:
        # without CLS and SEP, llama.cpp aborts
        if name in ("bos", "seperator") or dice.random() < 0.7:
            keys[f"tokenizer.ggml.{name}_token_id"] = dice.randrange(len(order))
    return keys


def _flags(dice: random.Random, flags: dict[str, bool | None]) -> dict[str, bool]:
    """Flags that all models have, mostly left out, and a model's own."""
    for flag in ("add_bos_token", "add_eos_token", "add_sep_token", "add_space_prefix"):
        flags[flag] = dice.choice((None, None, True, False))
    return {"tokenizer.ggml." + flag: value for flag, value in flags.items() if value is not None}


def random_scored_tokens(seed: str, source: RandomTexts) -> dict[str, Any]:
    """The same of an SPM vocabulary: parts of texts with scores of every kind; bytes may be missing."""
    dice = random.Random(seed)
    present = dice.choice((1, 1, 1, 1, 1, 1, 1, 1, 1, 0.99, 0.9))
    bytes_of = [f"<0x{byte:02X}>" for byte in range(256) if dice.random() < present]
    kinds = dict.fromkeys(["<unk>", "<s>", "</s>", *bytes_of], int(TokenType.NORMAL))
    kinds.update(dict.fromkeys(bytes_of, int(TokenType.BYTE)))
    for _ in range(dice.choice((20, 100, 300))):
        text = source.text().decode("utf-8", "ignore").replace("\x00", "")
        text = text.replace(" ", "▁") if dice.random() < 0.95 else text
        if not text:
            continue
        start = dice.randrange(len(text))
        part = text[start : start + dice.choice((1, 2, 2, 3, 4, 7))]
        part = "▁" + part if dice.random() < 0.3 else part
        ends = range(1, len(part) + 1)  # what it can be merged from, mostly from the left
        parts = [part[:end] for end in ends] if dice.random() < 0.7 else [part[-end:] for end in ends]
        kinds.update({each: int(TokenType.NORMAL) for each in parts if dice.random() < 0.95})
        if dice.random() < 0.7:
            kinds.update(dict.fromkeys(part, int(TokenType.NORMAL)))
    types = (TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.USER_DEFINED, TokenType.UNKNOWN)
    for special in random_specials(dice):
        special = special.replace(" ", "▁") if dice.random() < 0.3 else special
        kinds[special] = int(dice.choice((*types, TokenType.UNUSED)))
    order = list(kinds)
    dice.shuffle(order)
    score: Callable[[], float] = dice.choice(
        (
            lambda: -dice.random() * 1000,
            lambda: -dice.random() * 1000,
            lambda: 0.0,
            lambda: float(dice.randrange(-3, 3)),
            lambda: dice.choice((0.0, -0.0, 1e30, -1e30, float("inf"), float("-inf"), -1e-40)),
            lambda: 1e8 + dice.randrange(20),  # more digits than a float32 has
        )
    )
    keys: dict[str, Any] = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": order,
        "tokenizer.ggml.token_type": [kinds[token] for token in order],
    }
    if dice.random() < 0.95:
        keys["tokenizer.ggml.scores"] = [score() for _ in order]
    elif dice.random() < 0.5:
        keys["tokenizer.ggml.scores"] = [dice.randrange(-9, 9) for _ in order]
    for name in ("bos", "eos", "unknown", "padding"):
        if dice.random() < 0.6:
            keys[f"tokenizer.ggml.{name}_token_id"] = dice.randrange(len(order))
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
        "<|eot|>",
        "<|eot_id|>",
        "<|ifm|im_end|>",
        '<rfl:parameter name="',
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


# What NFC changes, or what it must leave: marks in and out of order, Hangul, singletons, exclusions, neighbours.
COMPOSED_ATOMS = [
    *(
        "e\u0301",
        "\xe9",
        "a\u0315\u0300",
        "\xe0\u0315",
        "q\u0307\u0323",
        "s\u0323\u0307",
        "\u1e69",
        "c\u0327\u0301",
    ),
    *(
        "\u0344",
        "\u0308\u0301",
        "\u0301",
        "\u0300\u0301",
        "a\u0323\u0302\u0301",
        "\u1ead\u0301",
        "\u212b",
        "\u2126",
        "\u212a",
    ),
    *(
        "\u0958",
        "\u0915\u093c",
        "\u0f73",
        "\u0f71\u0f72",
        "\u0f81",
        "\u09c7\u09be",
        "\u0dd9\u0dcf\u0dca",
        "\u2adc",
        "\ufb1d",
    ),
    *(
        "\u1112\u1161\u11ab",
        "\ud55c",
        "\ud558\u11ab",
        "\u1100\u1161",
        "\uac00\u11a7",
        "\u11a8",
        "\u1161",
        "\uac01\u11a8",
    ),
    *(
        "=\u0338",
        "<\u0338",
        " \u0338",
        "\n\u0301",
        "\u2581\u0301",
        "\u037e",
        "\u1fef",
        "\u2000",
        "\u2001",
        "\uf900",
        "\U0002f800",
    ),
    *(
        "\U0001d15e",
        "\U0001d160",
        "\U00011099\U000110ba",
        "\U00011935\U00011930",
        "\u059a\u1dfa",
        "\u034f\u0301",
        "\ufffd\u0301",
    ),
]


# ---- unigram models ----------------------------------------------------------------------------------------


def random_unigram_vocabulary(seed: str, source: RandomTexts) -> dict[str, Any]:
    """The metadata of a small vocabulary of the model t5: scores of every kind, random charsmap, types and flags."""
    dice = random.Random(seed)
    kinds: dict[str, int] = {
        "<pad>": TokenType.CONTROL,
        "</s>": TokenType.CONTROL,
        "<unk>": TokenType.UNKNOWN,
    }
    if dice.random() < 0.02:
        kinds = dict.fromkeys(dice.sample(["a", "▁a", "▁"], k=dice.randint(1, 3)), TokenType.NORMAL)
    for part in _random_parts(dice, source) if len(kinds) == 3 else []:
        kinds.setdefault(part, TokenType.NORMAL)
    types = [
        TokenType.CONTROL,
        TokenType.USER_DEFINED,
        TokenType.USER_DEFINED,
        TokenType.UNKNOWN,
        TokenType.UNUSED,
    ]
    for special in random_specials(dice) if len(kinds) > 3 else []:
        kinds[special] = dice.choice(types)
    for token in kinds if dice.random() < 0.3 else []:
        if dice.random() < 0.2:
            kinds[token] = dice.choice([*types, TokenType.NORMAL])
    order = list(kinds)
    dice.shuffle(order)
    types_of_all = [int(kinds[token]) for token in order]
    keys: dict[str, Any] = {
        "general.architecture": dice.choice(("t5", "llama", "nomic-bert-moe")),
        "tokenizer.ggml.model": "t5",
        "tokenizer.ggml.tokens": order,
        "tokenizer.ggml.token_type": [
            kind if kind != TokenType.BYTE or len(token.encode()) > 2 else TokenType.NORMAL
            for token, kind in zip(order, types_of_all)
        ],
    }
    if scores := _random_scores(dice, len(order)):
        keys["tokenizer.ggml.scores"] = scores
    if dice.random() < 0.7:
        data = charsmap(_random_replacements(dice, source))
        if dice.random() < 0.05:
            at = dice.randrange(4, len(data))
            data = data[:at] + dice.randbytes(1) + data[at + 1 :]
        element = dice.choice((GGUFValueType.INT8, GGUFValueType.UINT8))
        signed = [byte - 256 * (byte > 127 and element is GGUFValueType.INT8) for byte in data]
        keys["tokenizer.ggml.precompiled_charsmap"] = (signed, GGUFValueType.ARRAY, element)
    for name in ("bos", "eos", "unknown", "padding"):
        if dice.random() < 0.6:
            keys[f"tokenizer.ggml.{name}_token_id"] = dice.randrange(len(order))
    for flag in (
        *("add_bos_token", "add_eos_token", "add_space_prefix", "remove_extra_whitespaces"),
        "normalizer.nfc",
    ):
        if dice.random() < 0.6:
            keys["tokenizer.ggml." + flag] = dice.random() < 0.5
    if keys.get("tokenizer.ggml.add_bos_token"):
        keys["tokenizer.ggml.bos_token_id"] = 0  # or llama.cpp aborts at every text
    return keys


def _random_parts(dice: random.Random, source: RandomTexts) -> list[str]:
    """Parts of texts as tokens: most characters by themselves, and some longer."""
    parts = ["▁"] if dice.random() < 0.9 else []
    parts += [part for atom in COMPOSED_ATOMS for part in (atom, *atom) if dice.random() < 0.3]
    while len(parts) < 150:
        text = source.text().decode("utf-8", "ignore").replace("\0", "")
        text = text.replace(" ", "▁") if dice.random() < 0.9 else text
        if not text:
            continue
        for _ in range(4):
            start = dice.randrange(len(text))
            parts.append(text[start : start + dice.choice((1, 1, 2, 2, 3, 5))])
            parts.append("▁" + parts[-1])
    return [part for part in parts if not any(map(_is_surrogate, part))]


def _random_scores(dice: random.Random, count: int) -> list[float] | list[int]:
    """Scores as trained ones, or equal, or of few values, whole, without order, or absurd; or none."""
    kind = dice.choice(
        ("trained", "trained", "trained", "equal", "few", "whole", "any", "wide", "absurd", "none")
    )
    if kind == "none":
        return []
    if kind == "whole":
        return [dice.randint(-9, 0) for _ in range(count)]
    choices = {
        "trained": lambda: -dice.expovariate(0.1),
        "equal": lambda: -3.3,
        "few": lambda: dice.choice((-1.1, -2.2, -3.3)),
        "any": lambda: dice.uniform(-9, 9),
        "wide": lambda: -dice.expovariate(1) * 10 ** dice.choice((-9, -4, 0, 5)),
        "absurd": lambda: dice.choice(
            (-1e38, 1e38, 0.0, -1e-40, float("inf"), float("-inf"), float("nan"), -2.5)
        ),
    }
    return [choices[kind]() for _ in range(count)]


def _random_replacements(dice: random.Random, source: RandomTexts) -> dict[bytes, bytes]:
    """What grows, shrinks and vanishes: characters and short sequences, also ones that begin alike."""
    found: dict[bytes, bytes] = {}
    fixed = [
        ("\n", " "),
        ("\t", " "),
        ("ﬁ", "fi"),
        ("e\u0301", "é"),
        ("\u3000", " "),
        ("¨", " \u0308"),
        ("\u00ad", ""),
    ]
    for key, text in fixed:
        if dice.random() < 0.5:
            found[key.encode()] = text.encode()
    for _ in range(dice.choice((0, 3, 30))):
        data = source.text().replace(b"\0", b"") or b"x"
        start = dice.randrange(len(data))
        key = data[start : start + dice.choice((1, 2, 3, 4, 6))]
        found[key] = dice.choice((b"", b" ", b"a", "▁".encode(), data[:3], b" a  b ", data[start:][:1]))
    return found


# ---- PLaMo ------------------------------------------------------------------------------------------------

# What texts for PLaMo have besides: markers that are cut out, markers that are none, runs, what is left out.
PLAMO_ATOMS = [
    *(
        "<|plamo:x|>",
        "<|plamo:|>",
        "<|plamo:a b|>",
        "<|plamo:\x1c|>",
        "<|plamo:aaaaa|>",
        "|plamo:",
        "<",
        "|>",
    ),
    *(
        "<|plamo:" + "x" * 64 + "|>",
        "<|plamo:" + "x" * 65 + "|>",
        "<<<<<|plamo:日|>>>>>",
        "<|plamo:<|plamo:x|>",
    ),
    *(
        "aaaa",
        "aaa",
        "    ",
        "  ",
        "\n" * 5,
        "\t" * 4,
        "日日日日",
        "\ufeff",
        "\uee00",
        "\uee00" * 4,
        "\U0001f600" * 5,
    ),
    *(">", "x<", ">x", "a<", ">a", "xa", " x", "x ", "日日", "日\uee00", "\ufeffa"),
]


def random_suffix_vocabulary(seed: str, source: RandomTexts, model: str) -> dict[str, Any]:
    """The metadata of a small vocabulary of PLaMo: a token for each byte, or nearly, parts of texts, any scores."""
    dice = random.Random(seed)
    spelling = dice.choice(("<0x{:02X}>", "<0x{:02X}>", "<0x{:02x}>"))
    byte_tokens = [spelling.format(byte) for byte in range(256)]
    if dice.random() < 0.02:
        byte_tokens.remove(dice.choice(byte_tokens))
    kinds: dict[str, int] = dict.fromkeys(byte_tokens, TokenType.BYTE)
    for part in [*(_random_parts(dice, source) if dice.random() < 0.95 else []), *PLAMO_ATOMS]:
        for kind in (part, part.replace("▁", " ")):
            if kind and dice.random() < 0.6:
                kinds.setdefault(kind, TokenType.NORMAL)
    types = [TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.UNKNOWN, TokenType.UNUSED, TokenType.BYTE]
    for special in [
        *random_specials(dice),
        *dice.choices(PLAMO_ATOMS, k=dice.choice((0, 3))),
        "x<0x41>",
        "<0x4g>",
    ]:
        kinds[special] = dice.choice(types)
    for text in ("<|plamo:eos|>", "</s>", "[PAD1]", "[PAD10]", "<0x0a>", "<0x0A>"):
        if dice.random() < 0.2:
            kinds.setdefault(text, dice.choice([*types, TokenType.NORMAL]))
    order = list(kinds)
    dice.shuffle(order)
    if kinds[order[0]] == TokenType.BYTE and dice.random() < 0.95:
        order.insert(0, "<|plamo:unk|>")  # the token 0 must not be a byte's
        kinds[order[0]] = TokenType.UNKNOWN
    scores = _random_scores(dice, len(order))
    if scores and dice.random() < 0.7:
        odd = (-1000.0, -1000.0, -1000.00007, -1999.99995, -2000.0, 0.00005, -0.00015, 3e5, -3e5, 214748.37)
        scores = [dice.choice(odd) if dice.random() < 0.05 else float(score) for score in scores]
    keys: dict[str, Any] = {
        "general.architecture": dice.choice(("llama", "plamo2", "plamo3")),
        "tokenizer.ggml.model": model,
        "tokenizer.ggml.tokens": order,
        "tokenizer.ggml.token_type": [int(kinds[token]) for token in order],
    }
    if scores:
        keys["tokenizer.ggml.scores"] = scores
    for name in ("bos", "eos", "unknown", "padding"):
        if dice.random() < 0.5:
            keys[f"tokenizer.ggml.{name}_token_id"] = dice.randrange(len(order))
    return keys | _flags(dice, {})


OTHER_MODELS = {
    "bert": random_word_pieces,
    "llama": random_scored_tokens,
    "rwkv": random_escaped_tokens,
    "t5": random_unigram_vocabulary,
    "plamo2": partial(random_suffix_vocabulary, model="plamo2"),
    "plamo3": partial(random_suffix_vocabulary, model="plamo3"),
}
# for its texts, besides those for all
ATOMS_OF_MODEL = {"plamo2": PLAMO_ATOMS, "plamo3": PLAMO_ATOMS, "t5": COMPOSED_ATOMS}
