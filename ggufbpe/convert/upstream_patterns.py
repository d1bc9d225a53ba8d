r"""Data: the patterns of models' own tokenizer.json, by family of pre-tokenizers.

The patterns are quoted from the comments of llama.cpp (src/llama-vocab.cpp; for kimi-k2 src/unicode.cpp). Families
that llama.cpp splits differently from their original are listed with the original. recognize.py knows a model by
these patterns, hf_splitting.py runs them, and tokenizer_json.py writes those that tokenizers 1.0 reads (`PORTABLE`).

A family that is not listed has llama.cpp's own patterns (registry.py), or an original that is not known.
"""

from __future__ import annotations

from typing import Any

_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SPACES = r"\s+(?!\S)|\s+"
_TAIL = rf" ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|{_SPACES}"
_SLASH_TAIL = rf" ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|{_SPACES}"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_NOT_HAN = r"&&[^\p{Han}]]"
_JAIS = "|".join(
    rf"\s{{{count}}}(?!\S)" for count in ("512", "256", "128", "64", "32", "16", "8", "4", "1,2")
)


def _cased(suffix: str, upper: str = _UPPER, lower: str = _LOWER) -> str:
    first = r"[^\r\n\p{L}\p{N}]?"
    return f"{first}{upper}*{lower}+{suffix}|{first}{upper}+{lower}*{suffix}"


_GPT_4O = _cased(_CONTRACTION + "?") + r"|\p{N}{1,3}|" + _SLASH_TAIL

# Each pattern runs on the pieces left by those before. Of families with equal patterns, the first is the usual one.
ORIGINALS: dict[str, tuple[str, ...]] = {
    "llama-bpe": (rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1,3}}|{_TAIL}",),
    "jais-2": (
        rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|{_JAIS}|\s{{1}}",
    ),
    "qwen2": (rf"{_CONTRACTION}|{_WORD}|\p{{N}}|{_TAIL}",),
    "qwen35": (
        _CONTRACTION
        + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|"
        + _SPACES,
    ),
    "tekken": (_cased("") + r"|\p{N}|" + _SLASH_TAIL,),
    "gpt-4o": (_GPT_4O,),
    "granite-embed-multi-97m": (_GPT_4O,),
    "tiny_aya": (r"\d{1,3}(?=(?:\d{3})*\b)", _GPT_4O),
    "kimi-k2": (
        r"[\p{Han}]+|"
        + _cased(_CONTRACTION + "?", _UPPER[:-1] + _NOT_HAN, _LOWER[:-1] + _NOT_HAN)
        + r"|\p{N}{1,3}|"
        + _TAIL,
    ),
    "bailingmoe": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|"
        + _SPACES,
    ),
    "seed-coder": (rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|\s*[\r\n]+|{_SPACES}",),
    "exaone-moe": (
        _CONTRACTION
        + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|"
        + _SPACES,
    ),
    "minicpm5": (r"\p{N}{1,3}", rf"{_CONTRACTION}|{_WORD}|\p{{N}}+|{_TAIL}"),
}


# ---- what tokenizers 1.0 reads --------------------------------------------------------------------------

_GPT_2: dict[str, Any] = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": False,
    "use_regex": True,
}
_DEEPSEEK_WORDS = (  # with literal line breaks, as in the models' files; it knows no other spelling
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^"""
    "\r\n"
    r"""\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+["""
    "\r\n"
    r"""]*|\s*["""
    "\r\n"
    rf"""]+|{_SPACES}"""
)


def split(pattern: str, behavior: str = "Isolated", kind: str = "Regex") -> dict[str, Any]:
    """A pre-tokenizer `Split` of tokenizer.json; `kind` is "Regex" or "String"."""
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": False}


def _digits(individual: bool) -> dict[str, Any]:
    return {"type": "Digits", "individual_digits": individual}


_LINE_RUNS = split("\n", "Contiguous", "String")

# The pre-tokenizers that split as llama.cpp does and that tokenizers 1.0.0rc3 reads, too. It runs no regular expression
# of a file's own: it knows seven by their text (tk-encode/src/utils/unrolled_regex.rs in its sources), character for
# character, and has its own code for them. It refuses all others when a text is encoded; a family without an entry
# here is split at borders (convert/exporters/boundary_markers.py).
PORTABLE: dict[str, tuple[dict[str, Any], ...]] = {
    "gpt-2": (_GPT_2,),
    "starcoder": (_digits(True), _GPT_2),
    "llama-bpe": (split(ORIGINALS["llama-bpe"][0]),),
    "qwen2": (split(ORIGINALS["qwen2"][0]),),
    # the original first cuts digits into threes; the rest is the same
    "minicpm5": (_digits(False), split(ORIGINALS["llama-bpe"][0])),
    "laguna": (_LINE_RUNS, split(ORIGINALS["qwen2"][0])),
    "deepseek-v3": (
        split(r"\p{N}{1,3}"),
        split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
        split(_DEEPSEEK_WORDS),
    ),
    "gemma4": (_LINE_RUNS,),
}

BY_ITS_UNICODE = frozenset(PORTABLE) - {"gemma4"}
"""Families whose patterns use classes of characters, which follow the library's Unicode version."""

IGNORING_CASE = frozenset(("llama-bpe", "qwen2", "minicpm5", "laguna"))
"""Families whose patterns match contractions in any case; the s then includes U+017F."""
