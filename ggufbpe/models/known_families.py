"""Known families of vocabularies: how their tokens begin and end, and what their files say about them.

Every fact is that of a vocabulary in llama.cpp's repository (models/ggml-vocab-*.gguf), or of the tokenizer.json that
T5 and umT5 were published with; a test compares them. What a model's file has beyond these facts, or instead of them,
may have been changed on purpose, so a difference is evidence, and no proof that the file is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .pretokenizers.registry import PRE_TOKENIZERS
from .special_ids import PHI_3

_NEARLY_ALL = 0.9  # of the tokens are in a file that has lost some


class KnownFamily(NamedTuple):
    """What the files of one family of models have."""

    name: str
    model: str  # tokenizer.ggml.model
    size: int  # number of tokens
    first: tuple[str, ...]  # the tokens with the first ids
    last: tuple[int, str]  # one of the last tokens that every file has, with its id
    pres: tuple[str, ...]  # names in tokenizer.ggml.pre; empty where the model has no pre-tokenizer
    add_bos: bool
    add_eos: bool
    bos: tuple[int, str] | None  # id and text
    eos: tuple[int, str] | None
    named: str = ""  # a pattern of the beginning of a model's name
    last_marker: tuple[int, str] | None = None  # where tokens that do more than fill up come behind `last`
    added_text: range = range(0)  # ids of user-defined tokens of plain text, which merges do not make
    control: range = range(0)  # ids of control tokens, where their texts do not tell that they are in use
    has_charsmap: bool = False  # in all files of the family
    hidden: tuple[str, ...] = ()  # texts of all control tokens, where usual names do not tell them
    shown: tuple[str, ...] = ()  # texts of all user-defined markers, which are shown when generated
    inner: tuple[int, str] | None = None  # a token that tells the family where the last ones are lost

    @property
    def vocabulary(self) -> str:
        """What a vocabulary of the family is called, with its article.

        >>> KNOWN_FAMILIES[0].vocabulary
        'a Phi-3 vocabulary'
        """
        return f"{'an' if self.name.startswith('X') else 'a'} {self.name} vocabulary"

    @property
    def last_used(self) -> tuple[int, str]:
        """The last token, with its id, that does not only fill up the vocabulary."""
        return self.last_marker or self.last

    def begins(self, tokens: Sequence[str]) -> bool:
        """Check that a vocabulary begins as those of the family."""
        return tuple(tokens[: len(self.first)]) == self.first

    def has(self, tokens: Sequence[str]) -> bool:
        """Check that a vocabulary begins and ends as those of the family."""
        index, text = self.last
        return len(tokens) > index and tokens[index] == text and self.begins(tokens)

    def lacks_few(self, tokens: Sequence[str]) -> bool:
        """Check that a vocabulary has nearly as many tokens as those of the family, and none that contradicts them."""
        known = filter(None, (self.bos, self.eos, self.inner, self.last, self.last_marker))
        has_others = any(index < len(tokens) and tokens[index] != text for index, text in known)
        return self.begins(tokens) and _NEARLY_ALL * self.size <= len(tokens) <= self.size and not has_others

    def is_whole(self, tokens: Sequence[str], eos: object) -> bool:
        """Check that a vocabulary is complete and has its family's EOS, so that only the model's name is wrong."""
        return len(tokens) > self.last_used[0] and (self.eos is None or eos == self.eos[0])


_SPM = ("<unk>", "<s>", "</s>")
_GPT2 = ("!", '"', "#")

# A family whose vocabulary begins as another one's comes before that one.
KNOWN_FAMILIES = (
    KnownFamily(
        *("Phi-3", "llama", 32064, _SPM, (32001, "<|assistant|>"), ()),
        *(True, False, (1, "<s>"), (32000, "<|endoftext|>"), f".*({'|'.join(PHI_3)})"),
        last_marker=(32010, "<|user|>"),
        inner=(31999, "给"),
    ),
    KnownFamily(
        *("Llama 2", "llama", 32000, _SPM, (31999, "给"), ()),
        *(True, False, (1, "<s>"), (2, "</s>"), r"llama-?2"),
    ),
    KnownFamily(
        *("Baichuan", "llama", 64000, _SPM, (63999, "\uf1e9"), ()),
        *(True, False, (1, "<s>"), (2, "</s>"), r"baichuan-7b"),
    ),
    KnownFamily(
        *("BERT", "bert", 30522, ("[PAD]", "[unused0]", "[unused1]"), (30521, "～"), ()),
        *(True, False, (101, "[CLS]"), None),
    ),
    KnownFamily(
        *("XLM-RoBERTa", "t5", 250048, ("<s>", "<pad>", "</s>"), (249999, "ấ"), ()),
        *(True, True, (0, "<s>"), (2, "</s>"), r"xlm-roberta"),
        has_charsmap=True,
    ),
    KnownFamily(
        *("T5", "t5", 32100, ("<pad>", "</s>", "<unk>"), (31999, "▁Internațional"), ()),
        *(False, True, None, (1, "</s>")),
        has_charsmap=True,
    ),
    KnownFamily(
        *("umT5", "t5", 256300, ("<pad>", "</s>", "<s>"), (255999, "啕"), ()),
        *(False, True, None, (1, "</s>"), r"umt5"),
    ),
    KnownFamily(
        *("GPT-2", "gpt2", 50257, _GPT2, (50255, "Ġgazed"), ("gpt-2",)),
        *(False, False, (50256, "<|endoftext|>"), (50256, "<|endoftext|>"), r"gpt-?2"),
    ),
    KnownFamily(
        *("GPT-NeoX", "gpt2", 50432, ("<|endoftext|>", "<|padding|>", "!"), (50253, "ĠOutcomes"), ("mpt",)),
        *(False, False, (0, "<|endoftext|>"), (0, "<|endoftext|>"), r"(gpt-)?neox|mpt-"),
        last_marker=(50276, "  "),
        added_text=range(50254, 50277),
    ),
    KnownFamily(
        *("Falcon", "gpt2", 65024, (">>TITLE<<", ">>ABSTRACT<<"), (65023, "Ġvictoria"), ("falcon",)),
        *(False, False, (11, "<|endoftext|>"), (11, "<|endoftext|>")),
    ),
    KnownFamily(
        *("StarCoder 2", "gpt2", 49152, ("<|endoftext|>", "<fim_prefix>"), (49151, "sdb"), ("starcoder",)),
        *(False, False, (0, "<|endoftext|>"), (0, "<|endoftext|>"), r"starcoder-?2"),
    ),
    KnownFamily(
        *("Refact", "gpt2", 49216, ("<|endoftext|>", "<fim_prefix>"), (49151, "getOptions"), ("refact",)),
        *(False, False, (0, "<|endoftext|>"), (0, "<|endoftext|>"), r"refact"),
    ),
    KnownFamily(
        *(
            "Command R",
            "gpt2",
            256000,
            ("<PAD>", "<UNK>", "<CLS>"),
            (254999, "ĠÐ·Ð±ÑĸÑĢÐ½Ð°"),
            ("command-r",),
        ),
        *(True, False, (5, "<BOS_TOKEN>"), (255001, "<|END_OF_TURN_TOKEN|>"), r"(c4ai-)?command-r"),
        last_marker=(255028, "<|EXTRA_9_TOKEN|>"),
    ),
    KnownFamily(
        *("DeepSeek Coder", "gpt2", 32256, _GPT2, (31999, "ĠShan"), ("deepseek-coder",)),
        *(True, False, (32013, "<｜begin▁of▁sentence｜>"), (32014, "<｜end▁of▁sentence｜>")),
        last_marker=(32021, "<|EOT|>"),
        added_text=range(32000, 32013),
    ),
    KnownFamily(
        *("DeepSeek LLM", "gpt2", 102400, _GPT2, (99999, "ç²ĺèĨľ"), ("deepseek-llm",)),
        *(
            True,
            False,
            (100000, "<｜begin▁of▁sentence｜>"),
            (100001, "<｜end▁of▁sentence｜>"),
            r"deepseek-llm",
        ),
        last_marker=(100014, "ü"),
        added_text=range(100002, 100015),
    ),
    KnownFamily(
        *("Llama 3", "gpt2", 128256, _GPT2, (127999, "éĶ¦"), ("llama-bpe",)),
        *(True, False, (128000, "<|begin_of_text|>"), (128001, "<|end_of_text|>"), r"(meta-)?llama-?3"),
        last_marker=(128009, "<|eot_id|>"),
        control=range(128000, 128256),
    ),
    KnownFamily(
        *("Qwen 2", "gpt2", 151936, _GPT2, (151642, "â½Ĺ"), ("qwen2", "qwen35")),
        *(False, False, (151643, "<|endoftext|>"), (151643, "<|endoftext|>"), r"qwen-?2(?!\d)"),
        last_marker=(151645, "<|im_end|>"),
        control=range(151643, 151646),
    ),
    KnownFamily(
        *("Gemma 4", "gemma4", 262144, ("<pad>", "<eos>", "<bos>"), (262143, "<unused6226>"), ("gemma4",)),
        *(True, False, (2, "<bos>"), (1, "<eos>"), r"gemma-?4"),
        hidden=(
            *("<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|think|>", "<|tool>", "<tool|>", "<|turn>"),
            *("<turn|>", "<|image>", "<image|>", "<|image|>", "<|audio>", "<audio|>", "<|audio|>"),
            "<|video|>",
        ),
        shown=(
            *('<|"|>', "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>"),
            *("<|tool_response>", "<tool_response|>"),
        ),
    ),
)


def family_of_tokens(tokens: Sequence[str]) -> KnownFamily | None:
    """The family whose vocabulary begins and ends as these tokens do; None if none is known.

    >>> family_of_tokens(["hello"]) is None
    True
    """
    return next((family for family in KNOWN_FAMILIES if family.has(tokens)), None)


def family_of_names(names: Iterable[str]) -> tuple[KnownFamily, str] | None:
    """The first family after which one of these names of models is called, with that name.

    >>> family_of_names(["Meta Llama 3.1 8B Instruct"])[0].name
    'Llama 3'
    """
    for name in names:
        word = re.sub(r"[\s_]+", "-", name.rpartition("/")[2].lower())
        for family in KNOWN_FAMILIES:
            if family.named and re.match(family.named, word):
                return family, name
    return None


def splits_like(pre: str | None, family: KnownFamily) -> bool:
    """Check that a name in `tokenizer.ggml.pre` splits texts as the family's files do."""
    entry = PRE_TOKENIZERS.get(pre or "")
    return entry is not None and any(PRE_TOKENIZERS[name].family == entry.family for name in family.pres)
