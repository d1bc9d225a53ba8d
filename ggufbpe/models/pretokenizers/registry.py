r"""Data: the patterns and flags of each pre-tokenizer name in `tokenizer.ggml.pre`.

Source: src/llama-vocab.cpp of the followed llama.cpp (`llama_cpp_states.FOLLOWED`), llm_tokenizer_bpe (patterns of
each pre-tokenizer type) and llama_vocab::impl::load (names and flags). A new name there is a word in `_NAMES` here,
and a new way of splitting an entry in `_FAMILIES`: docs/design.md, "A new name in tokenizer.ggml.pre".

A stage's `pattern` is llama.cpp's, character for character (non-ASCII written as escapes). Where its code
runs a hand-written splitter that differs from the pattern, or where the pattern as it stands cannot be run in
linear time, `rule` is what replaces it, and `step` the function that goes with it (splitter.py). All three are in
the syntax of pattern.py.
"""

# No `from __future__ import annotations`: `typing` would compile each annotation of a NamedTuple at every import.

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from ..._util.llama_cpp_states import since


def _any(*alternatives: str) -> str:
    """Return the pattern that tries `alternatives` in order."""
    return "|".join(alternatives)


# Patterns are put together from these alternatives.
_CONTRACTION = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_OTHER = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_LINES = r"\s*[\r\n]+"
_SPACES = r"\s+(?!\S)|\s+"

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_LLAMA3 = _any(_CONTRACTION, _WORD, r"\p{N}{1,3}", _OTHER, _LINES, _SPACES)
_QWEN2 = _any(_CONTRACTION, _WORD, r"\p{N}", _OTHER, _LINES, _SPACES)

# The tekken and gpt-4o words: upper case, then lower case, where a letter beyond ASCII is both.
_UPPER, _LOWER = r"((?=[\p{L}])([^a-z]))", r"((?=[\p{L}])([^A-Z]))"
_CASED = (
    r"[^\r\n\p{L}\p{N}]?" + _UPPER + "*" + _LOWER + "+",
    r"[^\r\n\p{L}\p{N}]?" + _UPPER + "+" + _LOWER + "*",
)
_OTHER_SLASH = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
_GPT4O_TAIL = [r"\p{N}{1,3}", _OTHER_SLASH, _LINES, _SPACES]
_GPT4O = _any(_CASED[0] + _CONTRACTION + "?", _CASED[1] + _CONTRACTION + "?", *_GPT4O_TAIL)
_MARKED = tuple(word.replace(r"[\p{L}]", r"[\p{L}\p{M}]") for word in _CASED)

_CATEGORIES_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_CATEGORIES_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CATEGORIES = (
    r"[^\r\n\p{L}\p{N}]?" + _CATEGORIES_UPPER + "*" + _CATEGORIES_LOWER + "+" + _CONTRACTION + "?",
    r"[^\r\n\p{L}\p{N}]?" + _CATEGORIES_UPPER + "+" + _CATEGORIES_LOWER + "*" + _CONTRACTION + "?",
)

_KANA_HAN = r"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_HAN_HANGUL = r"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_PUNCTUATED_WORD = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
_DEEPSEEK_WORD = r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
_DEEPSEEK3 = _any(_PUNCTUATED_WORD, _DEEPSEEK_WORD, r" ?[\p{P}\p{S}]+[\r\n]*", _LINES, _SPACES)
_BLOOM = r" ?[^(\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"

# The letters of Latin, Greek, Cyrillic and other cased scripts, as deepseek-llm lists them.
_CASED_LETTERS = (
    r"[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af"
    r"\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5"
    r"\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba"
    r"\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45"
    r"\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-"
    r"\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107"
    r"\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f"
    r"\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
    r"\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17"
    r"\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb"
    r"\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]"
)

_ASIAN_SCRIPTS = (
    r"[\u4e00-\u9fff\u3400-\u4dbf\u8c48-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf"
    r"\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af"
    r"\u1100-\u11ff]+"
)

_K2_HORIZON_WORD = r"[^\r\n\p{L}\p{N}]?(?:\p{L}|\p{M}|\u200C|\u200D)+"
_K2_HORIZON_TAIL = [r"\p{N}{1,3}", _OTHER, _LINES, _SPACES]

_EXAONE_MOE = [
    _CONTRACTION,
    r"[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+",
    r"\p{N}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]?",
    r"\s*[\r\n]",
    _SPACES,
]


class Stage(NamedTuple):
    """One pattern of a list; it splits the pieces left by those before."""

    pattern: str  # as in llama.cpp; "" for a stage that only prepares the next one
    rule: str  # the pattern that is matched
    step: str | None = None  # the function of splitter.py that does it; None for a plain match


def _stage(*alternatives: str, rule: str | None = None, step: str | None = None) -> Stage:
    pattern = _any(*alternatives)
    return Stage(pattern, pattern if rule is None else rule, step)


_LINE_RUNS = _stage(r"[^\n]+|[\n]+")
# unicode_regex_split_custom_gpt2 also takes white space that the pattern leaves, as one word
_GPT2_STAGE = _stage(_GPT2, rule=_GPT2 + r"|\s+")

_FAMILIES: dict[str, tuple[Stage, ...]] = {
    "default": (_stage(r"[\p{P}\$\+<=>\^~\|]+"), _GPT2_STAGE, _stage(r"\p{N}+"), _stage(r"[0-9][0-9][0-9]")),
    "gpt-2": (_GPT2_STAGE,),
    "starcoder": (_stage(r"\p{N}"), _GPT2_STAGE),
    "falcon": (_stage(r"[\p{P}\$\+<=>\^~\|`]+"), _GPT2_STAGE, _stage(r"[0-9][0-9][0-9]")),
    "chameleon": (
        _stage(r"<sentinel:[0-9]+>"),
        _stage(r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"),
        _stage(r"([\t\n]|    |  )"),
        _stage(r"\p{N}"),
        _stage(r"[\p{P}!-/:-@\[-`{-~]"),
        _GPT2_STAGE,
    ),
    "llama-bpe": (_stage(_LLAMA3),),
    "k2-horizon": (
        # unicode_regex_split_custom_k2_horizon: a long s is an s after an apostrophe
        _stage(
            _CONTRACTION,
            _K2_HORIZON_WORD,
            *_K2_HORIZON_TAIL,
            rule=_any(
                _CONTRACTION.replace("[sS]", r"[sS\u017f]"),
                r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}\u200c\u200d]+",
                *_K2_HORIZON_TAIL,
            ),
        ),
    ),
    "jais-2": (
        Stage("", r"(?![\r\n])\s|\s", "blocks_of_white_space"),
        _stage(
            "|".join(
                [_CONTRACTION, _WORD, r"\p{N}{1,3}", _OTHER, _LINES]
                + [
                    rf"\s{{{count}}}(?!\S)"
                    for count in ("512", "256", "128", "64", "32", "16", "8", "4", "1,2")
                ]
                + [r"\s{1}"]
            )
        ),
    ),
    "minicpm5": (_stage(r"\p{N}{1,3}"), _stage(_CONTRACTION, _WORD, r"\p{N}+", _OTHER, _LINES, _SPACES)),
    "qwen2": (_stage(_QWEN2),),
    "qwen35": (
        _stage(
            _CONTRACTION,
            r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",
            r"\p{N}",
            r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
            _LINES,
            _SPACES,
        ),
    ),
    "laguna": (_LINE_RUNS, _stage(_QWEN2)),
    "seed-coder": (_stage(_CONTRACTION, _WORD, r"\p{N}{1}", r" ?[^\s\p{L}\p{N}\r\n]+", _LINES, _SPACES),),
    "ufakzeka": (_stage(_WORD, r"\p{N}", _OTHER, _LINES, _SPACES),),
    "bailingmoe": (
        _stage(r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])", _WORD, r"\p{N}", _OTHER, r"\s*[\r\n]", _SPACES),
    ),
    "exaone-moe": (
        _stage(
            *_EXAONE_MOE,
            rule=_any(_CONTRACTION, r"[^\r\n\p{L}\p{N}]?\p{L}[\p{L}\p{M}]*", *_EXAONE_MOE[2:]),
            step="letters_joined_by_spaces",
        ),
    ),
    "tekken": (_stage(*_CASED, r"\p{N}", _OTHER_SLASH, _LINES, _SPACES),),
    "gpt-4o": (_stage(_GPT4O),),
    "granite-embed-multi-97m": (
        _stage(_MARKED[0] + _CONTRACTION + "?", _MARKED[1] + _CONTRACTION + "?", *_GPT4O_TAIL),
    ),
    "tiny_aya": (
        # unicode_regex_split_custom takes the splitter of afmoe for this pattern
        _stage(r"\d{1,3}(?=(?:\d{3})*\b)", rule=r"\p{N}+", step="digit_groups"),
        _stage(*_CATEGORIES, *_GPT4O_TAIL),
    ),
    "youtu": (
        _stage(
            r"[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c"
            r"\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|" + _KANA_HAN
        ),
        _stage(*_CATEGORIES, r"\p{N}", _OTHER_SLASH, _LINES, _SPACES),
    ),
    "kimi-k2": (
        # unicode_regex_split_custom_kimi_k2: letters are not parted by case, and Han words stand apart
        _stage(
            r"\p{Han}+",
            rule=_any(
                r"\p{Han}+",
                r"[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})\p{L})+" + _CONTRACTION + "?",
                r"\p{N}{1,3}",
                _OTHER,
                _LINES,
                _SPACES,
            ),
        ),
    ),
    "deepseek-llm": (
        _stage(r"[\r\n]"),
        _stage(r"\s?" + _CASED_LETTERS + "+"),
        _stage(r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"),
        _stage(r"\s+$", rule=r"\s", step="trailing_white_space"),
        _stage(_HAN_HANGUL),
        _stage(r"\p{N}+"),
    ),
    "deepseek-coder": (
        _stage(r"[\r\n]"),
        _stage(r"\s?\p{L}+"),
        _stage(r"\s?\p{P}+"),
        _stage(_HAN_HANGUL),
        _stage(r"\p{N}"),
    ),
    "deepseek-v3": (_stage(r"\p{N}{1,3}"), _stage(_KANA_HAN), _stage(_DEEPSEEK3)),
    "spark2_5": (
        _stage(r"\p{N}{1,3}"),
        _stage(_KANA_HAN),
        _stage(_PUNCTUATED_WORD, _DEEPSEEK_WORD, r" ?[\p{P}\p{S}]+", r"[\r\n]", _SPACES),
        _stage(r"\p{N}"),
    ),
    "afmoe": (
        _stage(r"\p{AFMoE_digits}", rule=r"\p{N}+", step="digit_groups"),
        _stage(_ASIAN_SCRIPTS),
        _stage(_DEEPSEEK3),
    ),
    "superbpe": (_stage(r"\p{N}+"), _stage(r"(?=(\d{3})+(?!\d))", rule=r"\d+", step="thousands")),
    "bloom": (_stage(_BLOOM),),
    "viking": (_stage(_BLOOM), _stage(r"\p{N}")),
    "gemma4": (_LINE_RUNS,),
    # llm_tokenizer_bpe_session::tokenize: the second stage is not a pattern in llama.cpp, but a search for U+2581
    "mmbert": (_LINE_RUNS, Stage("", r"\u2581[^\u2581]*|[^\u2581]+")),
    "whitespace": (_stage(r"\S+"),),
}


class PreTokenizer(NamedTuple):
    """What one name in `tokenizer.ggml.pre` stands for.

    Names of one `family` split text the same way; the flags are llama.cpp's defaults, before the file's own keys.
    """

    name: str
    family: str
    byte_encode: bool = True  # words are written in GPT-2's alphabet of bytes; else they stay UTF-8
    escape_whitespaces: bool = False  # spaces become U+2581 before splitting, and back in decoding
    clean_spaces: bool = True  # decoding drops the space before punctuation and some contractions
    ignore_merges: bool = False  # a word that is a token is that token, whatever the merges say
    add_bos: bool = False
    add_sep: bool = False
    no_default_bos: bool = False  # without the BOS id 11 that other BPE models have by default
    newline_runs: bool = False  # a word of line breaks that is a token is that token (Gemma 4)
    prepend_space: bool = False  # a word not of line breaks that has no U+2581 in front gets one (mmBERT)
    lowercase: bool = True  # the whitespace model lowercases words, unless the file says otherwise
    always_add_bos: bool = False  # BOS is added even if the file says not to (Gemma 4)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The patterns, in the order in which they split."""
        return _FAMILIES[self.family] if self.family else ()

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns as in llama.cpp."""
        return tuple(stage.pattern for stage in self.stages if stage.pattern)


def _names(family: str, names: str, **flags: bool) -> list[PreTokenizer]:
    return [PreTokenizer(name, family, **flags) for name in names.split()]


_KEEP = {"clean_spaces": False}  # decoding keeps all spaces
_RAW = {"byte_encode": False, "escape_whitespaces": True}
_GEMMA4 = {**_RAW, "newline_runs": True, "always_add_bos": True}
_LLAMA3_FLAGS = {"ignore_merges": True, "add_bos": True}

_NAMES = [
    *_names("default", "default"),
    *_names("minicpm5", "minicpm5", ignore_merges=True),
    *_names(
        "llama-bpe",
        "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
        **_LLAMA3_FLAGS,
    ),
    *_names("llama-bpe", "dbrx smaug-bpe"),
    *_names("llama-bpe", "chatglm-bpe", no_default_bos=True),
    *_names("llama-bpe", "glm4 glm5", no_default_bos=True, ignore_merges=True),
    *_names("jais-2", "jais-2"),
    *_names("deepseek-llm", "deepseek-llm", **_KEEP),
    *_names("deepseek-coder", "deepseek-coder", **_KEEP),
    *_names("deepseek-v3", "deepseek-v3 hunyuan-dense hy_v4 joyai-llm", **_KEEP),
    *_names("spark2_5", "spark2_5", **_KEEP),
    *_names("youtu", "youtu", ignore_merges=True, **_KEEP),
    *_names("falcon", "falcon"),
    *_names(
        "gpt-2",
        "gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert exaone4 mpt olmo jais",
    ),
    *_names("gpt-2", "jina-v1-en jina-v2-code roberta-bpe", add_sep=True),
    *_names("gpt-2", "trillion granite-docling", **_KEEP),
    *_names("starcoder", "starcoder refact codeshell exaone minerva-7b mellum2"),
    *_names("starcoder", "command-r smollm", **_KEEP),
    *_names("gemma4", "gemma4 granite-embed-multi-311m", **_GEMMA4),
    *_names("gemma4", "sarvam-moe", **_RAW, **_KEEP),
    *_names("mmbert", "mmbert", **_RAW, newline_runs=True, prepend_space=True),
    *_names("whitespace", "whitespace", byte_encode=False, lowercase=False),
    *_names("qwen2", "qwen2 deepseek-r1-qwen kormo f2llmv2 hunyuan grok-2 solar-open", **_KEEP),
    *_names("qwen2", "stablelm2 megrez"),
    *_names("qwen35", "qwen35", **_KEEP),
    *_names("bloom", "poro-chat", **_KEEP),
    *_names("bloom", "bloom gpt3-finnish"),
    *_names("viking", "viking", **_KEEP),
    *_names("tekken", "tekken", **_LLAMA3_FLAGS, **_KEEP),
    *_names("exaone-moe", "exaone-moe"),
    *_names("chameleon", "chameleon", add_bos=True, **_KEEP),
    *_names("gpt-4o", "gpt-4o llama4 kanana2 talkie minimax-m2", **_KEEP),
    *_names("granite-embed-multi-97m", "granite-embed-multi-97m", ignore_merges=True, **_KEEP),
    *_names("tiny_aya", "tiny_aya cohere2moe", **_KEEP),
    *_names("superbpe", "superbpe", **_KEEP),
    *_names("bailingmoe", "bailingmoe bailingmoe2 llada-moe", **_KEEP),
    *_names("seed-coder", "seed-coder", **_KEEP),
    *_names("kimi-k2", "kimi-k2", **_KEEP),
    *_names("ufakzeka", "ufakzeka", **_KEEP),
    *_names("afmoe", "afmoe", **_KEEP),
    *_names("laguna", "laguna", **_KEEP),
    *_names("k2-horizon", "k2-horizon", **_KEEP),
]


def _established_first(entries: Iterable[PreTokenizer]) -> dict[str, PreTokenizer]:
    """Return `entries` by name, in alphabetical order, but names that joined a family in a newer llama.cpp last.

    Of names that serve equally well the first is taken. So a new name in a family changes no answer that the older
    ones gave, and files open in as many builds of llama.cpp as possible.
    """

    def place(entry: PreTokenizer) -> tuple[int, str]:
        joined = 0 if entry.name == entry.family else since("pre", entry.name)
        return joined, entry.name

    return {entry.name: entry for entry in sorted(entries, key=place)}


PRE_TOKENIZERS = _established_first(_NAMES)


def names_alike(entry: PreTokenizer) -> list[str]:
    """Return the other names of the same family, which split alike."""
    return [
        other.name
        for other in PRE_TOKENIZERS.values()
        if other.family == entry.family and other.name != entry.name
    ]


@cache
def one_of_each() -> dict[str, PreTokenizer]:
    """Return a byte-level entry of each family, by family."""
    entries: dict[str, PreTokenizer] = {}
    for entry in PRE_TOKENIZERS.values():
        if entry.byte_encode:
            entries.setdefault(entry.family, entry)
    return entries
