"""Data: texts that llama.cpp is known to split differently from Hugging Face with the model's own pattern.

Models are trained on the splitting of their `tokenizer.json`; llama.cpp cannot run every pattern in there as
written (src/llama-vocab.cpp has the originals beside its own, as "original regex from tokenizer.json").
Each entry was found by running both over 52,000 code points in 24 contexts each; scripts/hf_splitting.py
repeats it, with the `tokenizers` package as Hugging Face's side.

Only splitting is covered. Normalization is not (Qwen's tokenizer.json makes text NFC, llama.cpp does not), and for
families whose original is not known, only llama.cpp's pattern could be tried.
"""

from __future__ import annotations

from typing import NamedTuple


class SplittingDifference(NamedTuple):
    """One way in which splitting differs."""

    characters: str  # on which, in words
    what: str
    example: str
    hugging_face: tuple[str, ...]  # the example, split
    llama_cpp: tuple[str, ...]


CASE_BEYOND_ASCII = SplittingDifference(
    "upper- and lower-case letters beyond ASCII",
    "a capital does not begin a new word after a small letter if one of them is not ASCII, because llama.cpp "
    "takes any letter beyond ASCII for both",
    "écoleÉté",
    ("école", "Été"),
    ("écoleÉté",),
)
_CASE = SplittingDifference(
    "upper- and lower-case letters",
    r"a capital does not begin a new word after a small letter, because \p{Lu} and \p{Ll} both mean any letter",
    "JavaScript",
    ("Java", "Script"),
    ("JavaScript",),
)
_MARKS = SplittingDifference(
    "combining marks: Indic vowel signs, Arabic and Hebrew points, Thai tone marks, accents in NFD",
    "a mark ends the word before it, where in the original it is a part of it",
    "की है",
    ("की", " है"),
    ("क", "ी", " ह", "ै"),
)
_LONG_S = SplittingDifference(
    "ſ (U+017F) after an apostrophe",
    "it is not a contraction, while the original, which ignores case, takes it for an s",
    "'ſa",
    ("'ſ", "a"),
    ("'ſa",),
)
_OTHER_NUMBERS = SplittingDifference(
    "numbers that are not digits, such as ², ½, Ⅳ",
    "they count as digits of the group of three that they stand beside",
    "²1",
    ("²", "1"),
    ("²1",),
)
_HAN = SplittingDifference(
    "Han script outside of the main blocks: radicals (U+2E80 to U+2FD5), 々 and 〇, and Extensions from I on",
    "they are not taken for Han",
    "⺀a",
    ("⺀", "a"),
    ("⺀a",),
)
_SPACES = SplittingDifference(
    "spaces from U+1680 to U+3000, such as U+2003 and U+3000",
    r"they stay with the space before them, where the original counts them as [\u0800-\u4e00]",
    " \u2003",
    (" ", "\u2003"),
    (" \u2003",),
)

DIFFERENCES: dict[str, tuple[SplittingDifference, ...]] = {
    **dict.fromkeys(("llama-bpe", "jais-2", "qwen2", "qwen35", "bailingmoe", "seed-coder"), (_LONG_S,)),
    **dict.fromkeys(("exaone-moe", "minicpm5"), (_LONG_S,)),
    "tekken": (CASE_BEYOND_ASCII, _MARKS),
    "gpt-4o": (CASE_BEYOND_ASCII, _MARKS),
    "granite-embed-multi-97m": (CASE_BEYOND_ASCII,),
    "tiny_aya": (_CASE, _OTHER_NUMBERS),
    "kimi-k2": (_CASE, _MARKS, _HAN),
    "youtu": (_CASE,),
    **dict.fromkeys(("deepseek-llm", "deepseek-coder"), (_SPACES,)),
}

# Families for one original pattern, which llama.cpp follows more closely under one name: ids do not tell the right one.
SAME_ORIGINAL = (frozenset(("gpt-4o", "granite-embed-multi-97m")),)
