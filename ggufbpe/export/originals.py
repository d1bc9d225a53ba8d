r"""The patterns of models' own tokenizer.json, by family of pre-tokenizers. Data.

    [this file] -> recognize.py, which knows a model by them; scripts/hf_splitting.py, which runs them

As the comments of llama.cpp quote them (src/llama-vocab.cpp; for kimi-k2 src/unicode.cpp). Families that llama.cpp
splits otherwise than their original are here by the original.

But: a family that is not here has the patterns that llama.cpp has for it, in llama.cpp's own words (registry.py), or
an original that is not known.
"""

from __future__ import annotations

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

# Each pattern is run on the pieces that the ones before left. Of families with the same, the first is the usual one.
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
