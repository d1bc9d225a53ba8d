"""Small vocabularies, each made for one rule that llama.cpp applies when it loads a model.

    [this file] -> record_fixtures.py -> fixtures/vocabs/*.gguf, fixtures/recorded/loading_rules.json.gz

`RULES` is a table: the name of the rule, the metadata that calls for it, and the pieces from which texts for
it are put together. The rules are those of llama_vocab::impl::load, tokenizer_st_partition and
token_to_piece (src/llama-vocab.cpp). A rule that makes llama.cpp refuse the file is here, too.

But: files that are no sound GGUF are made elsewhere (make_malformed.py).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from gguf import GGUFValueType, TokenType

NORMAL, UNKNOWN, CONTROL = TokenType.NORMAL, TokenType.UNKNOWN, TokenType.CONTROL
USER_DEFINED, UNUSED, BYTE = TokenType.USER_DEFINED, TokenType.UNUSED, TokenType.BYTE

K = "tokenizer.ggml."
WORDS = ["hello", "Ġworld", "Ġthe", "Ġthere", "ing", "Ġis", "ĊĊ", "ĠĠ", "12", "Ã©"]
PIECES = ["hello", " world", " ", "  ", "\n", "\t\n ", "the", "é", "x", "12", "."]


@dataclass(frozen=True)
class Rule:
    """One vocabulary, and what its texts are made of besides `PIECES`."""

    keys: dict[str, Any]
    pieces: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def all_texts(self, name: str) -> list[bytes]:
        """The texts of the rule: its own, each piece, and mixtures of its pieces, the same at every run."""
        dice = random.Random(name)
        found = [*self.texts, "", *self.pieces, *PIECES]
        weights = [3] * len(self.pieces) + [1] * len(PIECES)
        for _ in range(60):
            found.append("".join(dice.choices(self.pieces + PIECES, weights, k=dice.randint(2, 8))))
        return [text.encode() for text in dict.fromkeys(found)]


def byte_alphabet() -> list[str]:
    """GPT-2's character for each byte.

    >>> byte_alphabet()[ord(" ")]
    'Ġ'
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return [chr(byte) if byte in plain else chr(256 + others.index(byte)) for byte in range(256)]


def word_merges(words: list[str]) -> list[str]:
    """Merges that build each word from its characters, from the left.

    >>> word_merges(["abc"])
    ['a b', 'ab c']
    """
    merges = [f"{word[:end]} {word[end]}" for word in words for end in range(1, len(word))]
    return list(dict.fromkeys(merges))


DEFAULT_MERGES = word_merges(WORDS)
NO_MERGES = ["Ā Ā"]  # one that no text needs, for the gguf package writes no empty array


def vocabulary(
    special: dict[str, int] | None = None,
    *,
    pre: str | None = "gpt-2",
    model: str = "gpt2",
    tokens: list[str] | None = None,
    merges: list[str] | None = DEFAULT_MERGES,
    ids: dict[str, str] | None = None,
    **keys: Any,
) -> dict[str, Any]:
    """The metadata of a vocabulary: byte tokens, what `WORDS` needs, then `special` tokens with their types.

    `ids` names special tokens by key, as in {"eos": "<eos>"}; `keys` are further keys below
    `tokenizer.ggml.`, where None leaves out what would be there; a name with "__" is a whole key with dots.
    """
    plain = tokens or [*byte_alphabet(), *(merge.replace(" ", "") for merge in merges or [])]
    kinds = dict.fromkeys(plain, int(NORMAL)) | {token: int(kind) for token, kind in (special or {}).items()}
    every = list(kinds)
    found: dict[str, Any] = {
        "general.architecture": "llama",
        K + "model": model,
        K + "pre": pre,
        K + "tokens": every,
        K + "token_type": list(kinds.values()),
        K + "merges": merges,
    }
    found |= {f"{K}{name}_token_id": every.index(token) for name, token in (ids or {}).items()}
    for name, value in keys.items():
        found[name.replace("__", ".") if "__" in name else K + name] = value
    return {key: value for key, value in found.items() if value is not None}


def rule(special: dict[str, int] | None = None, texts: list[str] | None = None, **options: Any) -> Rule:
    """A `vocabulary` whose special tokens are the pieces of its texts."""
    return Rule(vocabulary(special, **options), list(special or {}), texts or [])


def control(*tokens: str) -> dict[str, int]:
    return dict.fromkeys(tokens, CONTROL)


def user_defined(*tokens: str) -> dict[str, int]:
    return dict.fromkeys(tokens, USER_DEFINED)


def shuffled(tokens: list[str], seed: int) -> list[str]:
    random.Random(seed).shuffle(tokens)
    return tokens


PHI_3 = control("<|user|>", "<|end|>", "<|endoftext|>", "<s>", "<unk>") | {
    "</s>": NORMAL,
    "<|note|>": USER_DEFINED,
}
MASK = {"<mask>": CONTROL, "[MASK]": CONTROL, "<s>": CONTROL}
HARMONY = control(
    "<|return|>", "<|call|>", "<|end|>", "<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"
)
QWEN_FIM = [
    "<|fim_prefix|>",
    "<|fim_suffix|>",
    "<|fim_middle|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
]
PAIRS = ["".join(pair) for pair in product("vwxyz", repeat=2)]
TRIPLES = ["".join(triple) for triple in product("wxyz", repeat=3)]
KMERS = ["ACGTAC\ue000", "CCCCCC\ue000", "AAAAAA\ue000", "GTAAAA\ue000", "CCCCCC"]
DNA = {"<dna>": CONTROL, "</dna>": CONTROL, "<oov>": CONTROL, **dict.fromkeys(KMERS, NORMAL)}
DNA_TEXTS = [
    *(
        "<dna>ACGTAC</dna>",
        "<dna>acgtacCCCCCC</dna>x",
        "a<dna>ACGTACG",
        "<dna>GT</dna>",
        "<dna></dna>",
        "<dna>",
    ),
    *(
        "CCCCCC",
        "<dna>NNNNNN</dna>",
        "<dna>ACGTAC ACGTAC</dna>",
        "</dna>ACGTAC",
        "<dna><dna>CCCCCC</dna>",
        "é<dna>é</dna>",
    ),
    *(
        "<dna>CCCCCC\ue000</dna>",
        "CCCCCC\ue000",
        "<oov>",
        "hello <dna>gt</dna> world<dna>A",
        "<DNA>ACGTAC</DNA>",
    ),
]
RAW_TOKENS = [
    *(f"<0x{byte:02X}>" for byte in range(256)),
    *("h", "e", "l", "o", "he", "ll", "▁", "▁▁", "▁he", "w", "r", "d", "\n", "\n\n", "\n\n\n", "é", "H", "É"),
]
RAW_TYPES = dict.fromkeys(RAW_TOKENS[:256], BYTE)
SPM_SCORES = {  # by which "hello" becomes he-ll-o, "▁he" comes before "hel", and spaces are merged last
    "he": -1.0,
    "ll": -2.0,
    "▁he": -3.0,
    "hel": -4.0,
    "▁▁": -1e9,
    "lo": -5.0,
    "llo": -6.0,
    "▁hello": -7.0,
    "o▁w": -8.0,
    "or": -5.0,
    "wor": -9.0,
    "▁wor": -9.0,
    "ld": -5.0,
    "world": -9.0,
    "aa": -4.0,
    "aaa": -4.0,
}
SPM_TOKENS = [
    *("<unk>", "<s>", "</s>", *RAW_TOKENS[:256], *SPM_SCORES, "▁"),
    *("h", "e", "l", "o", "w", "r", "d", "a", "é", "x", "1", "2", "."),
]
SPM_TEXTS = [
    *("hello world", " hello  world", "▁hello▁world", "o wor", "aaaaaaa", "\n\nhello", "hello\x00"),
    *("中 é\U0001f999", "<0x41><s>", "</s>h<unk>", "  \u2581 ", "1 12 2.2"),
]
RAW_MERGES = ["h e", "l l", "▁ ▁", "▁ he", "\n \n", "\n\n \n"]


def raw_rule(special: dict[str, int] | None = None, **options: Any) -> Rule:
    """A `rule` whose tokens are UTF-8 as it is, and a token for each byte; not GPT-2's byte alphabet."""
    return rule(RAW_TYPES | (special or {}), tokens=RAW_TOKENS, merges=RAW_MERGES, **options)


def spm_rule(special: dict[str, int] | None = None, **options: Any) -> Rule:
    """A rule of the model `llama`, with SPM_TOKENS before the special tokens, of score 0."""
    options = {"tokens": SPM_TOKENS, "texts": [], "ids": {}, "scores": SPM_SCORES} | options
    given, texts = options.pop("scores"), [*options.pop("texts"), *SPM_TEXTS]
    types = RAW_TYPES | {"<unk>": UNKNOWN, "<s>": CONTROL, "</s>": CONTROL} | (special or {})
    types = {
        token: kind for token, kind in types.items() if token in options["tokens"] or token in (special or {})
    }
    made = rule(types, texts, model="llama", pre=None, merges=None, **options)
    made.keys.pop(K + "merges", None)
    if given is not None:
        made.keys[K + "scores"] = [given.get(token, 0.0) for token in made.keys[K + "tokens"]]
    return Rule(made.keys, list(special or {}), texts)


WPM_TOKENS = [
    *(
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "▁hello",
        "▁world",
        "▁the",
        "re",
        "▁h",
        "h",
        "e",
        "l",
        "o",
        "he",
        "el",
    ),
    *(
        "▁É",
        "É",
        "▁e",
        "é",
        "▁.",
        "▁,",
        "▁中",
        "中",
        "▁文",
        "s",
        "▁x",
        "##s",
        "▁`",
        "▁;",
        "▁①",
        "i",
        "▁ω",
        "t",
    ),
    *(
        "▁ᄒ",
        "ᅡ",
        "▁♥",
        "♥",
        "▁'",
        "▁!",
        "▁?",
        "▁1",
        "2",
        "▁12",
        "m",
        "ll",
        "\u0301",
        "▁a",
        "b",
        "▁▁",
        "▁H",
        "▁He",
    ),
]
WPM_TEXTS = [
    *(
        "hello world, the hello.",
        "Hello HELLO héllo hE\u0301llo",
        "he're there",
        "ÉE Éé\u0301",
        "中文中 x中文x",
    ),
    *(
        "a\u00adb a\u200bb a\x00b \ufffda\x7fb",
        "a\u2028b\u3000a\x85b\xa0\x1fb",
        "\u037e \u1fef\u2126 İi",
        "♥ <♥ x$x",
    ),
    *(
        "한 하 각",
        "hellohelloh" * 30,
        "zhello helloz",
        "\u2b920 \U0002b820\U0002b920\U0002f800 \uf900",
        "▁hello ▁ x▁",
    ),
    *("[CLS][UNK] [SEP]", "'s ' s . ? !", "\ud800\U000f0000a\u0378b".encode("utf-8", "replace").decode()),
]
WPM_IDS = {"bos": "[CLS]", "seperator": "[SEP]", "unknown": "[UNK]", "padding": "[PAD]"}
RWKV_TOKENS = [
    "<s>",
    *(f"\\x{byte:02x}" for byte in range(256)),
    *(
        "hel",
        "hello",
        "hello world",
        " world",
        "the",
        " the",
        r"\n\n",
        r"\t\n\r",
        r"\'s",
        r"\"",
        r"\\\\",
        r"\xe4\xb8\xad",
    ),
    *(r"\xe4\xb8", "é", r"x\x", r"x\x4", "x\\", r"\q", r"\xZz", "hello ", "ab", r"\x61b", r"\xc3\xa9x"),
]
RWKV_TEXTS = [
    "hello worl hello world",
    "\n\n\n\t\n\r",
    "中 中文 é éx",
    "'s\"\\\\\\",
    "xx4 qab",
    "hell helloh the <s>",
]


def wpm_rule(special: dict[str, int] | None = None, **options: Any) -> Rule:
    """A `rule` for WordPiece."""
    options = {"ids": WPM_IDS, "tokens": WPM_TOKENS, "texts": WPM_TEXTS} | options
    return rule(control("[CLS]", "[SEP]") | (special or {}), model="bert", pre=None, merges=None, **options)


def rwkv_rule(special: dict[str, int] | None = None, **options: Any) -> Rule:
    """A `rule` for RWKV."""
    options = {"tokens": RWKV_TOKENS, "texts": RWKV_TEXTS} | options
    return rule(control("<s>") | (special or {}), model="rwkv", pre=None, merges=None, **options)


PLAMO_SCORES = {  # by which "hello" becomes hel-lo, and what PLaMo-3 cuts out stands in tokens that go across
    "hello": -9.0,
    "hel": -3.0,
    "lo": -3.0,
    "he": -3.0,
    "llo": -3.5,
    " world": -2.5,
    "o w": -1.0,
    **dict.fromkeys(("h", "e", "l", "o", "w", " ", "x", "a", "<", ">", "日", "é", "\ue000"), -5.0),
    **dict.fromkeys(("x<", ">x", "|>", "<|", "<|plamo:", "x<|plamo:", "|>x", ">>", "<<"), -1.0),
    **dict.fromkeys(
        ("aa", "aaa", "aaaa", "xa", "ax", "  ", "x ", " x", "\n\n", "\n", "日日", "x日", "日x"), -2.0
    ),
    **dict.fromkeys(("\ufeff", "\ufeffx", "x\ufeff", "\uee00", "x\uee00x", "\uee00x", "aa\uee00aa"), -1.0),
    "unused": -2.0,
}
PLAMO_TEXTS = [
    *(
        "hello world",
        "hello w x",
        "\ufeffhello",
        "x\ufeffx",
        "\ufeff",
        "\ufeff\ufeffx",
        "hello\uee00world",
        "\uee00",
    ),
    *(
        "x\uee00xx\uee00",
        "aa\uee00aa",
        "aaa",
        "xaaaax",
        "aaaaaaa",
        "x  x",
        "x x",
        "x   x",
        "x\n\n\n\n\nx",
        "x\t\t\t\tx",
    ),
    *(
        "日日日日日x",
        "x日日日x",
        "ああああ",
        "x<|plamo:x|>x",
        "<|plamo:|>x",
        "x<|plamo:|>",
        "<<<<|plamo:x|>>>>",
        "x<x|>x",
    ),
    *(
        "<<<<<|plamo:x|>>>>>>",
        "x<|plamo:a b|>x",
        "x<|plamo:a\x1cb|>x",
        "x<|plamo:a\u3000|>x",
        "x<|plamo:a\x1b|>x",
    ),
    *(
        "x<|plamo:" + "x" * 64 + "|>x",
        "x<|plamo:" + "x" * 65 + "|>x",
        "x<|plamo:" + "日" * 64 + "|>x",
        "x<|plamo:x",
    ),
    *(
        "x<|plamo:x|",
        "x<|plamo:x|x>",
        "x<|plamo:<|plamo:x|>x",
        "x<|plamo:x|><|plamo:x|>x",
        "x<|plamo:xaaaax|>x",
    ),
    *(
        "x<|plamo:\uee00|>x",
        "\U0001f999é中",
        "<0x41>x<|plamo:bos|>x",
        "unused",
        "x[PAD1]x",
        "[PAD1]",
        "hello[PAD1",
    ),
]


def plamo_rule(special: dict[str, int] | None = None, **options: Any) -> Rule:
    """A rule of the model `plamo2`, with tokens of score 0 for the special ones and the bytes."""
    options = {
        "model": "plamo2",
        "pre": "default",
        "scores": PLAMO_SCORES,
        "bytes": RAW_TOKENS[:256],
    } | options
    options = {"ids": {}, "add_bos_token": True} | options
    scores, byte_tokens, tokens = options.pop("scores"), options.pop("bytes"), options.pop("first", [])
    own = {"<|plamo:unk|>": UNKNOWN} | control(*(f"<|plamo:{name}|>" for name in ("bos", "eos", "pad", "x")))
    tokens = [*tokens, *own, *byte_tokens, *PLAMO_SCORES]
    types = own | dict.fromkeys(byte_tokens, BYTE) | {"unused": UNUSED} | (special or {})
    made = rule(types, PLAMO_TEXTS, tokens=tokens, merges=None, **options)
    if scores is not None:
        none = type(next(iter(scores.values())))(0)
        made.keys[K + "scores"] = [scores.get(token, none) for token in made.keys[K + "tokens"]]
    return Rule(made.keys, list(special or {}), PLAMO_TEXTS)


RULES: dict[str, Rule] = {
    # default special ids
    "default-ids": rule(control("<|x|>")),
    "default-ids-out-of-range": rule(
        tokens=["a", "b", "c", "Ċ", "ab"], merges=["a b"], texts=["abc\nab", "zab"]
    ),
    "no-line-break-token": rule(
        tokens=["a", "b", "Ġ"], merges=NO_MERGES, ids={"padding": "b"}, texts=["a\nb"]
    ),
    "chatglm-without-bos": rule(control("<eos>"), pre="chatglm-bpe", ids={"eos": "<eos>"}),
    "bos-wanted-but-none": rule(control("<eos>"), pre="glm4", ids={"eos": "<eos>"}, add_bos_token=True),
    "ids-out-of-range": rule(
        control("<bos>"), bos_token_id=99999, eos_token_id=4000000000, seperator_token_id=70000
    ),
    "ids-by-key": rule(
        control("<b>", "<e>", "<t>", "<m>", "<u>", "<s>", "<p>", "<k>"),
        ids={
            "bos": "<b>",
            "eos": "<e>",
            "eot": "<t>",
            "eom": "<m>",
            "unknown": "<u>",
            "seperator": "<s>",
            "padding": "<p>",
            "mask": "<k>",
        },
    ),
    "id-of-type-int32": rule(control("<b>"), bos_token_id=(5, GGUFValueType.INT32)),
    "flag-of-type-uint32": rule(add_bos_token=(1, GGUFValueType.UINT32)),
    # pre-tokenizer names
    "pre-missing": rule(control("<|x|>"), pre=None, texts=["a1234 b's++ 12"]),
    "pre-empty": rule(pre="", texts=["a1234 b's++ 12"]),
    "pre-unknown": rule(pre="no-such-name"),
    "kimi-k2-without-merges": rule(
        control("[EOS]", "[EOT]"), pre="kimi-k2", merges=None, tokens=byte_alphabet()
    ),
    "ignore-merges": rule(
        pre="llama-bpe", merges=["h e"], tokens=[*byte_alphabet(), "he", "hello", "Ġworld", "llo", "Ã©"]
    ),
    "merges-obeyed": rule(
        pre="gpt-2", merges=["h e"], tokens=[*byte_alphabet(), "he", "hello", "Ġworld", "llo", "Ã©"]
    ),
    # flags
    "add-bos": rule(control("<bos>", "<eos>"), ids={"bos": "<bos>", "eos": "<eos>"}, add_bos_token=True),
    "add-bos-and-eos": rule(
        control("<bos>", "<eos>"),
        ids={"bos": "<bos>", "eos": "<eos>"},
        add_bos_token=True,
        add_eos_token=True,
    ),
    "add-eos-only": rule(control("<bos>", "<eos>"), ids={"bos": "<bos>", "eos": "<eos>"}, add_eos_token=True),
    "bos-switched-off": rule(control("<bos>"), pre="llama-bpe", ids={"bos": "<bos>"}, add_bos_token=False),
    "bos-is-eos": rule(
        control("<x>"), ids={"bos": "<x>", "eos": "<x>"}, add_bos_token=True, add_eos_token=True
    ),
    "add-sep": rule(
        control("<s>", "</s>"), pre="roberta-bpe", ids={"bos": "<s>", "eos": "</s>", "seperator": "</s>"}
    ),
    "add-space-prefix": rule(
        control("<bos>"),
        ids={"bos": "<bos>"},
        add_bos_token=True,
        add_space_prefix=True,
        texts=["  hello", " <bos>"],
    ),
    "remove-extra-whitespaces": rule(remove_extra_whitespaces=True, texts=["  hello   world "]),
    "clean-spaces": rule(
        user_defined(" '", "n 't", " ,"),
        texts=[
            "a . b",
            "a 's b ' c",
            "we 're , you 've ! I 'm ? he 'd 'll 't",
            " ' ' '",
            "' . '",
            " .",
            " 'r",
            " '",
            "a '' b",
        ],
    ),
    "clean-spaces-off": rule(user_defined(" '", " ,"), pre="qwen2", texts=["a . b", "a 's b ' c , d"]),
    # special tokens by text
    "eot-by-text": rule({"<|im_end|>": NORMAL, "<|im_start|>": CONTROL, "<|x|>": NORMAL}),
    "eot-llama-3": rule(
        control("<|eot_id|>", "<|begin_of_text|>") | {"<|eom_id|>": NORMAL}, ids={"bos": "<|begin_of_text|>"}
    ),
    "eot-turn": rule({"<end_of_turn>": USER_DEFINED}),
    "eot-endoftext": rule({"<|endoftext|>": CONTROL}, ids={"bos": "<|endoftext|>", "eos": "<|endoftext|>"}),
    "eot-granite": rule({"<|end_of_text|>": UNUSED}),
    "eot-mellum": rule({"<EOT>": NORMAL}),
    "eot-codellama": rule({"_<EOT>": NORMAL}),
    "eot-kimi": rule({"[EOT]": NORMAL, "[EOS]": NORMAL}),
    "eot-deepseek": rule({"<｜end▁of▁sentence｜>": NORMAL}),
    "eot-smoldocling": rule({"<end_of_utterance>": NORMAL}),
    "eog-others": rule(
        {"<eos>": NORMAL, "<turn|>": UNUSED, "[e~[": NORMAL, "</s>": BYTE, "<|flush|>": NORMAL}
    ),
    "eog-minimax": rule(control("[e~[", "]~b]", "]~!b["), pre="minimax-m2", ids={"eos": "[e~["}),
    "eog-k2-horizon": rule({"<|ifm|im_end|>": NORMAL}, pre="k2-horizon"),
    "eog-eos-of-normal-type": rule(ids={"eos": "hello"}),
    "fim-qwen": rule(
        dict.fromkeys(QWEN_FIM, NORMAL),
        pre="qwen2",
    ),
    "fim-plamo": rule(
        dict.fromkeys(
            (
                *(f"<|plamo:fim_{part}|>" for part in ("prefix", "suffix", "middle")),
                "<|plamo:file_separator|>",
            ),
            NORMAL,
        )
    ),
    "fim-starcoder": rule(
        control("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "<reponame>", "<file_sep>")
    ),
    "fim-santacoder": rule(
        user_defined("<fim-prefix>", "<fim-suffix>", "<fim-middle>", "<fim-pad>", "<fim-repo>")
    ),
    "fim-deepseek": rule(
        dict.fromkeys(["<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"], NORMAL), pre="deepseek-coder"
    ),
    "fim-codellama": rule(dict.fromkeys(["▁<PRE>", "▁<SUF>", "▁<MID>"], NORMAL)),
    "fim-short": rule(dict.fromkeys(["<PRE>", "<SUF>", "<MID>", "<PAD>", "<REPO>"], NORMAL)),
    "fim-glm": rule(
        dict.fromkeys(["<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"], NORMAL), pre="glm4"
    ),
    "fim-falcon-h1": rule(dict.fromkeys(["<|prefix|>", "<|suffix|>", "<|middle|>"], NORMAL), pre="falcon-h1"),
    "fim-by-key": rule(
        control("<1>", "<2>", "<3>", "<4>", "<5>", "<6>"),
        ids={
            "fim_pre": "<1>",
            "fim_suf": "<2>",
            "fim_mid": "<3>",
            "fim_pad": "<4>",
            "fim_rep": "<5>",
            "fim_sep": "<6>",
        },
    ),
    "fim-by-deprecated-key": rule(
        control("<1>", "<2>", "<3>"), ids={"prefix": "<1>", "suffix": "<2>", "middle": "<3>"}
    ),
    "fim-by-both-keys": rule(
        control("<1>", "<2>"),
        ids={"fim_pre": "<1>", "prefix": "<2>", "fim_suf": "<2>"},
        suffix_token_id=99999,
    ),
    # end-of-generation exceptions
    "gpt-oss": rule(
        HARMONY | control("<|endoftext|>"), pre="gpt-4o", ids={"bos": "<|endoftext|>", "eos": "<|return|>"}
    ),
    "gpt-oss-without-call": rule(
        control("<|return|>", "<|end|>", "<|message|>"), pre="gpt-4o", ids={"eos": "<|return|>"}
    ),
    "solar-open": rule(
        control("<|flush|>", "<|calls|>", "<|end|>"), pre="solar-open", ids={"eos": "<|flush|>"}
    ),
    "calls-without-flush": rule(control("<|calls|>", "<|end|>"), pre="solar-open"),
    "normal-s-beside-tool-response": rule(control("</s>", "<|tool_response>", "<eos>"), ids={"eos": "<eos>"}),
    "normal-s-beside-plamo": rule(control("</s>", "<|plamo:eos|>"), ids={"eos": "<|plamo:eos|>"}),
    "s-that-ends": rule({"</s>": NORMAL}),
    # since b11739
    "eot-beside-eot-id": rule(control("<|eot|>", "<|eot_id|>")),
    "eot-that-is-plain": rule({"<|eot|>": NORMAL}),
    "normal-s-beside-rfl-parameter": rule(
        {"</s>": CONTROL, '<rfl:parameter name="': NORMAL, "<eos>": CONTROL}, ids={"eos": "<eos>"}
    ),
    "eos-that-is-s-beside-rfl-parameter": rule(control("</s>", '<rfl:parameter name="'), ids={"eos": "</s>"}),
    "s-beside-another-rfl-parameter": rule(control("</s>", "<rfl:parameter>"), ids={"eos": "</s>"}),
    "nfc-of-another-model": rule(texts=["e\u0301", "\xe9"], tokenizer__ggml__normalizer__nfc=True),
    "nfc-that-is-no-flag": rule(tokenizer__ggml__normalizer__nfc="true"),
    # unused tokens and odd types
    "unused": rule(
        control("<unused0>", "[unused1]")
        | {"<unused2>": USER_DEFINED, "<unused3>": NORMAL, "<unused4>": UNUSED}
    ),
    "types": rule(
        {
            "<0>": 0,
            "<1>": 1,
            "<2>": 2,
            "<3>": 3,
            "<4>": 4,
            "<5>": 5,
            "<0x41>": 6,
            "<7>": 7,
            "<m>": -1,
            "<99>": 99,
        }
    ),
    "types-missing": rule(control("<|im_end|>", "<x>"), token_type=None),
    "types-and-scores-longer": rule(control("<x>"), token_type=[1] * 400, scores=[0.5] * 400),
    "types-shorter": rule(token_type=[1] * 100),
    "scores-of-integers": rule(
        control("<x>"), scores=(list(range(400)), GGUFValueType.ARRAY, GGUFValueType.INT32)
    ),
    "scores-shorter": rule(scores=[0.0, 1.0]),
    "byte-tokens": rule(
        dict.fromkeys(["<0x41>", "<0xFF>", "<0x4G>", "<0xZZ>", "abc+7d", "abc 9", "abc"], BYTE)
    ),
    "normal-tokens-beyond-alphabet": rule(
        dict.fromkeys(["中", "a b", "x\ny", "é中", "\u0143\u0144", "€"], NORMAL), texts=["中 a b x\ny"]
    ),
    "empty-tokens": rule(
        tokens=["a", "", "b", "", "Ċ", "ab", *map(str, range(10))], merges=["a b"], texts=["[EMPTY_1]ab"]
    ),
    "nul-in-tokens": rule(
        {"<nul\0rest>": CONTROL, "us\0er": USER_DEFINED}, texts=["<nul", "<nul\0rest>", "us\0er", "a\0b"]
    ),
    # merges
    "merges-odd": rule(
        tokens=[*byte_alphabet(), "ab", "abc", "bc", "Ġb", "cc", "Ġa"],
        merges=[
            "b c",
            "a b",
            "ab c",
            "b c",
            "",
            "nospace",
            " a b",
            "Ġ b",
            "c c ",
            "a  b",
            "Ġ a b",
            "q q",
            "q",
        ],
        texts=["abc", "abcabc bc", " bb ab", "ccccc", "qqq"],
    ),
    "merges-to-no-token": rule(
        tokens=[*byte_alphabet(), "ab"],
        merges=["x y", "Ġ z", "é ü", "a b", "Ċ Ċ"],
        texts=["xyab", " z", "\n\n", " zab"],
    ),
    "merges-missing": rule(merges=None, tokens=byte_alphabet()),
    "bytes-missing": rule(tokens=[*"abcdefgh", "ab", "Ġ"], merges=["a b"], texts=["abz é ab!", "zzz", "é"]),
    "ties-go-left": rule(
        tokens=[*byte_alphabet(), "aa", "aaa", "aaaa", "ba", "bab"],
        merges=["a a", "aa a", "aa aa", "b a", "ba b"],
        texts=["a" * count for count in range(1, 14)] + ["bababab", "baabaaba"],
    ),
    # partition by special tokens
    "overlaps": rule(
        user_defined("aa", "aab", "ba", "abc", "bcd", "b<x>", "<x>") | control("<x>a", "x>"),
        texts=["aaab<x>abcdaab"],
    ),
    "equal-lengths": rule(user_defined(*shuffled(PAIRS[:], 1)), merges=NO_MERGES, texts=["vwxyzvxzywwvvxx"]),
    "equal-lengths-of-many": rule(
        user_defined(*shuffled(PAIRS + TRIPLES, 2))
        | control(*shuffled(["w" + pair + "w" for pair in PAIRS], 3)),
        merges=NO_MERGES,
    ),
    "equal-lengths-ascending": rule(user_defined(*sorted(PAIRS + TRIPLES, key=len)), merges=NO_MERGES),
    "white-space-tokens": rule(user_defined(" ", "  ", "\n", "\n\n", "\t", " \n")),
    "control-inside-user-defined": rule({"<a": CONTROL, "<a>": USER_DEFINED, "a>": UNKNOWN, ">": UNUSED}),
    # attributes by model
    "phi-3": rule(PHI_3, general__name="Phi-3 mini", ids={"bos": "<s>", "eos": "<|endoftext|>"}),
    "phi3": rule(
        PHI_3, general__name="my PHI3", texts=["<|user|> \n\t hello<|end|>\v\f\r <s> <unk> </s> \xa0x"]
    ),
    "phi-3-without-s": rule(control("<|user|>"), general__name="phi-3"),
    "jina-v2-de": rule(
        MASK, pre="jina-v2-de", texts=["hello \n\t<mask> world", "  <mask>  <mask>", "\xa0<mask>"]
    ),
    "jina-v2-es": rule(MASK, pre="jina-v2-es"),
    "jina-v2-code": rule(MASK, pre="jina-v2-code"),
    "jina-v2-without-mask": rule(control("<s>"), pre="jina-v2-de"),
    "jina-bert-v3": rule(MASK, general__architecture="jina-bert-v3"),
    "nomic-bert-moe": rule(MASK, general__architecture="nomic-bert-moe"),
    "modern-bert": rule(MASK, general__name="Some Modern-BERT base"),
    "modern-bert-by-pre-only": rule(MASK, pre="modern-bert"),
    "phi-3-and-jina": rule(PHI_3 | MASK, general__name="phi-3", pre="jina-v2-code"),
    # other tokenizer models
    "hybriddna": rule(DNA, model="hybriddna", pre="qwen2", texts=DNA_TEXTS),
    "hybriddna-of-normal-tags": rule(
        dict.fromkeys(DNA, NORMAL), model="hybriddna", pre="qwen2", texts=DNA_TEXTS
    ),
    "hybriddna-of-control-k-mers": rule(
        DNA | dict.fromkeys(KMERS, CONTROL), model="hybriddna", pre="qwen2", texts=DNA_TEXTS
    ),
    "hybriddna-oov-last": rule(
        dict.fromkeys([*KMERS, "<dna>", "</dna>", "<oov>"], NORMAL),
        model="hybriddna",
        pre="gpt-2",
        texts=DNA_TEXTS,
    ),
    "hybriddna-without-oov": rule(
        dict.fromkeys([*KMERS, "<dna>", "</dna>"], NORMAL), model="hybriddna", pre="qwen2", texts=DNA_TEXTS
    ),
    "hybriddna-with-escaped-spaces": raw_rule(
        DNA,
        model="hybriddna",
        pre="gemma4",
        texts=[*DNA_TEXTS, "h ▁h<dna>ACGT AC CCCCC</dna> h <dna> AA", "<dna>ACG\xa0TAC</dna>"],
    ),
    "gemma4": raw_rule(
        control("<bos>", "<eos>", "</s>", "<|tool_response>"),
        model="gemma4",
        pre=None,
        ids={"bos": "<bos>", "eos": "<eos>"},
        texts=["\n" * count for count in range(1, 8)],
    ),
    "gemma4-bos-switched-off": raw_rule(
        control("<bos>"),
        model="gemma4",
        pre="gpt-2",
        ids={"bos": "<bos>"},
        add_bos_token=False,
    ),
    "gemma4-with-jina-pre": raw_rule(
        control("<bos>", "<mask>"),
        model="gemma4",
        pre="jina-v2-de",
        ids={"bos": "<bos>"},
    ),
    "gemma4-without-byte-tokens": rule(
        control("<bos>"),
        model="gemma4",
        tokens=["he", "h", "e", "▁", "▁he"],
        merges=["h e", "▁ he"],
        ids={"bos": "<bos>"},
    ),
    "gemma4-pre-of-gpt2-model": raw_rule(control("<bos>"), pre="gemma4", ids={"bos": "<bos>"}),
    "sarvam-moe": raw_rule(
        user_defined("<u>", "▁u"),
        pre="sarvam-moe",
        texts=["\n\n\n\n h▁u u"],
    ),
    "mmbert": raw_rule(
        control("<bos>", "<mask>"),
        pre="mmbert",
        ids={"bos": "<bos>"},
        texts=[
            "he  he \n<mask>he\n he\n\n\n▁he▁▁h  <mask>",
            "hé<bos>é<bos> é<bos>\n",
            "\n",
            "▁",
            " ",
            "h",
            "\u2581\n \nh\n",
        ],
    ),
    "mmbert-without-mask": raw_rule(control("<bos>"), pre="mmbert"),
    "mmbert-without-byte-tokens": rule(
        tokens=["he", "h", "e", "▁", "▁he"], merges=["h e", "▁ he"], pre="mmbert", texts=["he he\nhe éh", "é"]
    ),
    "whitespace-with-mmbert": raw_rule(
        control("<s>"),
        model="whitespace",
        pre="mmbert",
        texts=["HE he \n  h\u3000É é\u2028h", " ▁ he", "h \u00a0 h\th\t\th"],
        **{"normalizer.lowercase": True},
    ),
    "hybriddna-with-mmbert": raw_rule(DNA, model="hybriddna", pre="mmbert", texts=DNA_TEXTS),
    "whitespace": raw_rule(
        control("<s>"),
        model="whitespace",
        pre="whitespace",
        texts=["HE he\u3000É é\u2028h", "▁he", "\x1ch"],
    ),
    "whitespace-lowercase": raw_rule(
        control("<S>"),
        model="whitespace",
        pre="whitespace",
        texts=["HE he É ÉHELLO İ K ẞ Ω"],
        **{"normalizer.lowercase": True},
    ),
    "whitespace-model-with-gpt-2": rule(
        control("<s>"), model="whitespace", pre="gpt-2", texts=["hello world\n 12 ÉHELLO"]
    ),
    "whitespace-with-escaped-spaces": raw_rule(
        control("<s>"),
        model="whitespace",
        pre="gemma4",
        texts=["HE he \n  h\u3000É é\u2028h", " ▁ he", "h \u00a0 h"],
        **{"normalizer.lowercase": True},
    ),
    "whitespace-pre-of-gpt2-model": raw_rule(pre="whitespace"),
    "gpt-2-pre-of-gemma4-tokens": raw_rule(pre="gpt-2"),
    "spm": spm_rule(),
    "spm-without-prefix": spm_rule(add_space_prefix=False),
    "spm-without-bos": spm_rule(add_bos_token=False, add_eos_token=True),
    "spm-ids-given": spm_rule(control("<a>", "<b>"), ids={"bos": "<a>", "eos": "<b>"}, add_eos_token=True),
    "spm-pre-does-not-matter": spm_rule(tokenizer__ggml__pre="no-such-name"),
    "spm-user-defined": spm_rule(user_defined("o w", "▁wo", "lo", "  ", "▁▁", "hello")),
    "spm-unused-and-control-tokens-are-merged": spm_rule({"he": UNUSED, "▁he": CONTROL, "ll": UNKNOWN}),
    "spm-phi-3": spm_rule(PHI_3, general__name="Phi-3 mini", ids={"bos": "<s>"}),
    "spm-equal-scores": spm_rule(scores=dict.fromkeys(SPM_SCORES, -1.0)),
    "spm-without-scores": spm_rule(scores=None),
    "spm-whole-scores": Rule(
        {**spm_rule().keys, K + "scores": [-len(token) for token in SPM_TOKENS]}, [], SPM_TEXTS
    ),
    "spm-infinite-scores": spm_rule(
        scores={
            token: float("-inf") if number % 2 else float("inf") for number, token in enumerate(SPM_SCORES)
        }
    ),
    "spm-without-newline": spm_rule(tokens=[token for token in SPM_TOKENS if token != "<0x0A>"]),
    "spm-newline-as-character": spm_rule(
        tokens=[token for token in [*SPM_TOKENS, "\n", "\n\n"] if token != "<0x0A>"]
    ),
    "spm-bytes-as-characters": spm_rule(
        tokens=[token for token in [*SPM_TOKENS, "\t", "~"] if token not in ("<0x09>", "<0x7E>")],
        texts=["~\t", "\t \t"],
    ),
    "spm-without-bytes": spm_rule(tokens=[token for token in SPM_TOKENS if token not in RAW_TYPES]),
    "spm-without-space": spm_rule(tokens=[token for token in SPM_TOKENS if token != "▁"]),
    "spm-bos-out-of-range": spm_rule(tokens=["a"], scores={"a": -1.0}, add_bos_token=False),
    "spm-scores-too-short": Rule({**spm_rule().keys, K + "scores": [0.0] * 9}),
    # WordPiece
    "wpm": wpm_rule(),
    "wpm-cased": wpm_rule(**{"normalizer.lowercase": False}),
    "wpm-cased-without-accents": wpm_rule(
        **{"normalizer.lowercase": False, "normalizer.strip_accents": True}
    ),
    "wpm-with-accents": wpm_rule(**{"normalizer.strip_accents": False}),
    "wpm-flags-say-nothing-is-added": wpm_rule(
        add_bos_token=False, add_eos_token=True, add_sep_token=False, add_space_prefix=True
    ),
    "wpm-default-ids": wpm_rule(ids={}, tokens=[f"[unused{number}]" for number in range(104)] + WPM_TOKENS),
    "wpm-unknown-missing": wpm_rule(ids={"bos": "[CLS]", "seperator": "[SEP]"}),
    "wpm-special-tokens": wpm_rule(
        user_defined("hello w", "▁x") | {"[UNK]": UNKNOWN, "[MASK]": CONTROL}, general__name="modern-bert"
    ),
    "wpm-begins-alone": wpm_rule(tokens=[*WPM_TOKENS, "▁"]),
    "wpm-pre-does-not-matter": Rule(wpm_rule().keys | {K + "pre": "no-such-name"}, texts=WPM_TEXTS),
    # RWKV
    "rwkv": rwkv_rule(),
    "rwkv-flags-say-what-is-added": rwkv_rule(
        ids={"bos": "<s>", "eos": "<s>"}, add_bos_token=True, add_eos_token=True, add_space_prefix=True
    ),
    "rwkv-without-bytes": rwkv_rule(
        user_defined("hello w", "\\n"),
        tokens=["a", "h", "he", "l", r"\xc3", "é", r"\n\n", r"\n"],
        ids={"unknown": "a"},
    ),
    "rwkv-unknown-missing": rwkv_rule(tokens=["a", "h", "he", "l", r"\xc3", "é"]),
    # PLaMo
    "plamo2": plamo_rule(),
    "plamo3": plamo_rule(model="plamo3"),
    "plamo3-adds-both": plamo_rule(model="plamo3", add_eos_token=True, ids={"eos": "<|plamo:x|>"}),
    "plamo2-adds-nothing": plamo_rule(add_bos_token=None, add_space_prefix=True),
    "plamo2-pre-does-not-matter": plamo_rule(pre="no-such-name", general__architecture="plamo2"),
    "plamo2-special-tokens": plamo_rule(
        user_defined("o w", "x<")
        | {"lo": CONTROL, "he": UNKNOWN, "</s>": NORMAL, "<|plamo:fim_prefix|>": NORMAL},
        scores=PLAMO_SCORES | {"<|plamo:x|>": -9.0},
    ),
    "plamo3-user-defined": plamo_rule(user_defined("aa", "  ", "x\uee00x"), model="plamo3"),
    "plamo2-without-scores": plamo_rule(scores=None),
    "plamo2-whole-scores": plamo_rule(scores={token: -len(token) // 2 for token in PLAMO_SCORES}),
    "plamo2-equal-scores": plamo_rule(scores=dict.fromkeys(PLAMO_SCORES, -1.0)),
    "plamo2-better-than-nothing": plamo_rule(scores={token: len(token) for token in PLAMO_SCORES}),
    "plamo2-score-of-1000": plamo_rule(
        {"[PAD1]": UNUSED}, scores=PLAMO_SCORES | {"[PAD1]": -1000.0, "he": -1000.0, "日x": -1000.00004}
    ),
    "plamo3-score-of-1000": plamo_rule(
        {"[PAD1]": UNUSED},
        model="plamo3",
        scores=PLAMO_SCORES | {"[PAD1]": -1000.0, "hel": -1000.0, "a": -1000},
    ),
    "plamo2-score-of-1000-within-another": plamo_rule(
        {"[PAD1]x": NORMAL, "x[PAD1]x": NORMAL, "x[": NORMAL, "[PAD1]": UNUSED},
        scores=PLAMO_SCORES | {"[PAD1]": -1000.0, "[PAD1]x": -3000.0, "x[PAD1]x": -3000.0},
    ),
    "plamo2-scores-are-rounded": plamo_rule(  # halves away from zero: so "aa" is as good as two "a", and longer
        scores=PLAMO_SCORES
        | {"a": 0.03125, "aa": 0.0625 - 0.00005, "aaa": 0.0938, "aaaa": -2000.0, "hel": 3e5}
    ),
    "plamo2-scores-beyond-all": plamo_rule(
        scores=PLAMO_SCORES
        | {
            "hel": float("inf"),
            "lo": float("nan"),
            "he": float("-inf"),
            "aa": 3e38,
            "aaa": -1999.9999,
            "x": 214748.0,
        }
    ),
    "plamo2-bytes-in-lower-case": plamo_rule(bytes=[f"<0x{byte:02x}>" for byte in range(256)]),
    "plamo2-bytes-of-another-form": plamo_rule({"<0x4>": BYTE, "x": BYTE, "<0x4g>": BYTE, "hello": BYTE}),
    "plamo2-byte-twice": plamo_rule({"<0x0a>": BYTE, "<0x4a>": BYTE}),
    "plamo2-byte-missing": plamo_rule(bytes=[token for token in RAW_TOKENS[:256] if token != "<0x41>"]),
    "plamo2-byte-of-another-type": plamo_rule({"<0x41>": NORMAL}),
    "plamo2-byte-is-the-first-token": plamo_rule(first=["<0x41>"]),
    "plamo3-eos-beside-s": plamo_rule(control("</s>"), model="plamo3", ids={"eos": "<|plamo:eos|>"}),
}
