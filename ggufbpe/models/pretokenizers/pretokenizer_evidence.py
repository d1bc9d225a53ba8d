"""Finds tokens that reveal how a vocabulary's training text was split, and which of them each family splits.

A merge never crosses a word boundary: if several years are tokens, digits were not cut into threes. This check
takes a fraction of a millisecond, each time a file is opened. families.py judges by all tokens.

Measured on the 13 byte-level vocabularies of llama.cpp under all 29 families: the right one is never doubted, and
269 of the 298 wrong ones are, of those that families.py doubts by the share of tokens that they cut.
"""

from __future__ import annotations

from collections.abc import Container

from ..bpe.merge import byte_level
from .registry import PreTokenizer

_PRESENT = 0.2  # a vocabulary has a feature if it has this share of its strings; a small one has few of them
_FEWEST = 4  # telltale tokens: fewer may have been added by hand

# What the strings of a feature have in common, and the strings; some are tokens of a vocabulary that has the feature.
FEATURES: dict[str, tuple[str, ...]] = {
    "two digits": tuple(map(str, range(10, 100))),
    "three digits": tuple(map(str, range(100, 1000, 7))),
    "four digits": tuple(map(str, range(1990, 2021))),
    "space and digits": (" 1", " 2", " 3", " 10", " 12", " 20", " 100"),
    "letters and digits": ("mp3", "h1", "x1", "v1", " a1", " i18"),
    "contractions": ("'s", "'t", "'re", "'ve", "'ll", "'m", "'d"),
    "contractions in capitals": ("'S", "'T", "'RE", "'LL"),
    "word with contraction": ("don't", " don't", "it's", " it's", " I'm", "n't"),
    "apostrophe and word": ("'on", "'in", "'id", "'al", "'em"),
    "apostrophe and word after a contraction's letter": ("'self", "'data", "'title", "'type", "'message"),
    "punctuation and word": ("(self", ".com", "(x", "_id", "/bin", ".get", "(data", "-on", ".py", '"name'),
    "dash or quotation mark and word": ("—and", "“We", "“The", "—it", "…and"),
    "tab and word": ("\treturn", "\tif", "\tint", "\tthis"),
    "words joined by a space": (" of the", " in the", " to be", " and the", " on the"),
    "comma and word": (", and", ". The", ", the"),
    "capital inside a word": ("getElement", " JavaScript", " YouTube", " iPhone", " GitHub", " McC"),
    "punctuation and line break": (");\n", ";\n", ",\n", "{\n", ".\n", ":\n", ">\n", "}\n"),
    "punctuation and line breaks": (");\n\n", ".\n\n", "}\n\n", ":\n\n", ";\n\n"),
    "slash and line break": ("//\n", "/\n", "*/\n"),
    "space and punctuation": (" (", " '", " =", " -", " {", " ["),
    "several punctuation marks": ("();", "):", '",', "='", "');", "//", "...", "--"),
    "several line breaks": ("\n\n", "\n\n\n", "\n\n\n\n"),
    "line break and spaces": ("\n ", "\n  ", "\n    ", "\n        "),
    "line break, spaces, line break": ("\n \n", "\n  \n", "\n\n  "),
    "odd numbers of spaces": ("   ", "     ", "       ", "         "),
    "space and Han character": (" 的", " 中", " 中国", " 我"),
    "Chinese comma and word": ("，我", "。他", "，在", "的，"),
}  # fmt: skip

# For each byte-level family, which of `FEATURES` it cuts, in their order. It follows from the patterns (families.py,
# `allows_feature`), but running these takes longer than opening a file; a test checks that the two agree.
CUT_BY = {
    "afmoe": "..xxx..x...x.xx.......x..xx",
    "bailingmoe": "xxxxx..x.x...xx.......x....",
    "bloom": "..........x.xxx.xxx.......x",
    "chameleon": "xxxxxxxxxxxxxxx.xxxxxxxxx.x",
    "deepseek-coder": "xxxxxxxxxxxx.xx.xxx..xxx.xx",
    "deepseek-llm": "...xxxxxxxxx.xx.xxx..xxx.xx",
    "deepseek-v3": "..xxx..x...x.xx.......x..xx",
    "default": "..xxxxxxxxxxxxx.xxxx......x",
    "exaone-moe": "xxxxx..x.x....x..x....x....",
    "falcon": "..x.xxxxxxxxxxx.xxxx......x",
    "gpt-2": "....x.xxxxxxxxx.xxx.......x",
    "gpt-4o": "..xxx........xxx......x....",
    "granite-embed-multi-97m": "..xxx........xxx......x....",
    "jais-2": "..xxx..x.x...xx.......x.x..",
    "k2-horizon": "..xxx..x.x...xx.......x....",
    "kimi-k2": "..xxx........xx.......x..xx",
    "laguna": "xxxxx..x.x...xx.xxx...xx...",
    "llama-bpe": "..xxx..x.x...xx.......x....",
    "minicpm5": "..xxx..x.x...xx.......x....",
    "qwen2": "xxxxx..x.x...xx.......x....",
    "qwen35": "xxxxx..x.x...xx.......x....",
    "seed-coder": "xxxxx..x.x...xx.xxx...x....",
    "spark2_5": "xxxxx..x...x.xx.xxx..xxx.xx",
    "starcoder": "xxxxx.xxxxxxxxx.xxx.......x",
    "superbpe": "..xxx......................",
    "tekken": "xxxxx..x.....xxx......x....",
    "tiny_aya": "..xxx........xx.......x....",
    "ufakzeka": "xxxxx..x.....xx.......x....",
    "viking": "xxxxx.....x.xxx.xxx.......x",
    "youtu": "xxxxx......x.xx.......x..xx",
}


def has_feature(tokens: Container[str], feature: str) -> bool:
    """Whether enough of a feature's strings are among `tokens`."""
    return len(_present(tokens, feature)) >= _PRESENT * len(FEATURES[feature])


def telltales(entry: PreTokenizer, tokens: Container[str]) -> list[str]:
    """Texts of tokens that `entry` would never let form; none if there are too few to tell."""
    tokens_cut: list[str] = []
    for cut, feature in zip(CUT_BY.get(entry.family, ""), FEATURES):
        if cut == "x" and has_feature(tokens, feature):
            tokens_cut += _present(tokens, feature)
    return tokens_cut if len(tokens_cut) >= _FEWEST else []


def _present(tokens: Container[str], feature: str) -> list[str]:
    return [text for text in FEATURES[feature] if (text if text.isalnum() else byte_level(text)) in tokens]
