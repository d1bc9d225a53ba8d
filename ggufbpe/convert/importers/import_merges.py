"""Imports merges.txt and vocab.json, the files of GPT-2's tokenizer, which older repositories have.

The two files name neither a pre-tokenizer nor special tokens. Both come from the files beside them, from the first line
of our own export, or from what the tokenizer's class in transformers has built in. Without any, the tokens tell which
pre-tokenizer they were made with.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..._util.errors import printable
from ..._util.wording import counted, listed
from ...gguf.constants import TokenizerKey, TokenType
from ...models import tokenizer_model
from ...models.pretokenizers.families import families, is_byte_level, tied
from ...models.pretokenizers.registry import PRE_TOKENIZERS, PreTokenizer
from ..exporters.boundary_markers import WHITE_SPACE_SPLIT
from ..exporters.hf_bpe import ESCAPED_SPACES, LOWER_CASE
from ..exporters.hf_config import CONFIG_TOKENS, GGUF_SECTION, HFConfig, looks_special
from ..exporters.hf_parts import sequence
from ..imported import Imported, NotImportableError, read_json
from ..incompatibilities import Incompatibility
from .import_hf import import_tokenizer
from .recognize import Recognized

_K = TokenizerKey
VOCAB_NAMES = ("vocab.json", "encoder.json")  # the second is the name in OpenAI's own release of GPT-2
MERGES_NAMES = ("merges.txt", "vocab.bpe")
HEAD = "#version"  # how the first line begins; the rest of it is free
RECORDED = (_K.MODEL, _K.PRE)  # keys that our own export writes into the first line, beside special ids
_WORD_ENDS = ("</w>", "@@")  # on many tokens of one character where words, not bytes, are merged
_FEW = 8
_ENOUGH = 1000  # merges from which a pre-tokenizer can be inferred


class _Class(NamedTuple):
    """What a tokenizer's class in transformers has built in."""

    pre: str
    named: dict[str, str]  # special tokens
    both_ends: bool = False  # whether BOS and EOS are put around each text


_END_OF_TEXT = "<|endoftext|>"
_GPT2 = _Class("gpt-2", dict.fromkeys(("bos_token", "eos_token", "unk_token"), _END_OF_TEXT))
_QWEN2 = _Class("qwen2", dict.fromkeys(("eos_token", "pad_token", "unk_token"), _END_OF_TEXT))
_ROBERTA = _Class(
    "roberta-bpe",
    {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "sep_token": "</s>",
        "cls_token": "<s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "mask_token": "<mask>",
    },
    both_ends=True,
)
_CLASSES = {
    **dict.fromkeys(("GPT2Tokenizer", "CodeGenTokenizer"), _GPT2),
    "Qwen2Tokenizer": _QWEN2,
    **dict.fromkeys(("RobertaTokenizer", "BartTokenizer", "LongformerTokenizer", "LEDTokenizer"), _ROBERTA),
}


def import_merges(
    path: str,
    config: HFConfig,
    *,
    pre: str | None = None,
    architecture: str | None = None,
    name: str | None = None,
) -> Imported:
    """The metadata of a merges.txt at `path` and of the vocab.json beside it; arguments as for `import_tokenizer`.

    Raises `NotImportableError` if there is no vocab.json, if one of the files is not sound, or if llama.cpp has no
    place for the tokenizer; `OSError` if a file cannot be read.
    """
    head, merges = _merges_of(path)
    vocab = read_json(_beside(path, VOCAB_NAMES, "is a merges.txt: its ids are in a vocab.json"))
    for end in _WORD_ENDS:
        if sum(len(text) == len(end) + 1 and text.endswith(end) for text in vocab) >= _FEW:
            raise NotImportableError(
                f"its tokens mark the end of a word with {end!r}, which llama.cpp does not have"
            )
    alone = config.is_empty
    recorded = _recorded_in(head, len(vocab))
    config = config.with_config({GGUF_SECTION: {**recorded, **config.section}}) if recorded else config
    built_in = _CLASSES.get(str(config.config.get("tokenizer_class", "")).removesuffix("Fast"))
    if built_in is not None:
        config = config.with_defaults({key: text for key, text in built_in.named.items() if text in vocab})
    made = {left + right for left, right in merges}
    recognized = None if pre is not None else _recognized(config, built_in, made or set(vocab))
    chosen = pre if recognized is None else recognized.family
    entry = PRE_TOKENIZERS.get(chosen or "")
    byte_level = entry is None or entry.byte_encode
    special = [
        text
        for text, token in vocab.items()
        if token in recorded.values() or (alone and text not in made and looks_special(text))
    ]
    added = _added_tokens(vocab, special, config)
    if not config.is_empty:
        config = config.with_config({"added_tokens_decoder": {}})  # all are in `added`
    read = import_tokenizer(
        {
            "added_tokens": added,
            "normalizer": sequence("normalizers", _normalizer(config, entry)),
            "pre_tokenizer": sequence("pretokenizers", _pre_tokenizer(config, byte_level)),
            "post_processor": _ends(config, built_in, {token["content"]: token["id"] for token in added}),
            "model": {"type": "BPE", "vocab": vocab, "merges": merges, "byte_fallback": not byte_level},
        },
        config,
        pre=chosen,
        architecture=architecture,
        name=name,
    )
    limits = (*read.limits, *_unexplained(vocab, made, added, byte_level))
    return read._replace(recognized=recognized, limits=limits)


def is_merges(path: str) -> bool:
    """Whether the text file at `path` is a merges.txt: its name or its first line says so."""
    if os.path.basename(path) in MERGES_NAMES:
        return True
    with open(path, "rb") as file:
        return file.read(3 + len(HEAD)).removeprefix(codecs.BOM_UTF8).startswith(HEAD.encode())


# ---- the two files --------------------------------------------------------------------------------------


def merges_beside(path: str) -> str:
    """The merges.txt beside the vocab.json at `path`. `NotImportableError` if there is none."""
    return _beside(path, MERGES_NAMES, "is half of a vocabulary: its merges are in a merges.txt")


def _beside(path: str, names: tuple[str, ...], lack: str) -> str:
    """The first file of these names beside `path`. `NotImportableError`, which says the `lack`, if there is none."""
    for name in names:
        neighbour = os.path.join(os.path.dirname(path), name)
        if os.path.isfile(neighbour):
            return neighbour
    raise NotImportableError(f"{path} {lack}, which is not beside it")


def _merges_of(path: str) -> tuple[str, list[tuple[str, str]]]:
    """The first line if it is a comment, else "", and the merges in order."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        lines = data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise NotImportableError(
            f"{path}: byte {error.start} is not UTF-8, so this is not a merges.txt"
        ) from error
    head = lines[0] if lines[0].startswith(HEAD) else ""
    merges = []
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\r")
        if not line or (number == 1 and head):
            continue
        left, space, right = line.partition(" ")
        if not (left and space and right) or " " in right:
            raise NotImportableError(
                f"{path}: line {number}, {printable(line, 40)}, is not two tokens with a space between"
            )
        merges.append((left, right))
    return head, merges


def _recorded_in(head: str, size: int) -> dict[str, Any]:
    """The names, special ids and lower case that our own export wrote into the first line, by their keys in a GGUF."""
    written = dict(re.findall(r"(tokenizer\.ggml\.[\w.]+)=(\S+)", head))
    names: dict[str, Any] = {key: written[key] for key in RECORDED if key in written}
    if _K.NORMALIZER_LOWERCASE in written:
        names[_K.NORMALIZER_LOWERCASE] = written[_K.NORMALIZER_LOWERCASE] == "true"
    numbers = {
        key: written[key] for _, key in CONFIG_TOKENS if re.fullmatch("[0-9]{1,9}", written.get(key, ""))
    }
    return {**names, **{key: int(number) for key, number in numbers.items() if int(number) < size}}


# ---- what they do not say -------------------------------------------------------------------------------


def _recognized(config: HFConfig, built_in: _Class | None, made: set[str]) -> Recognized:
    """The name of the pre-tokenizer, as `family`, and why."""
    recorded = config.text(_K.PRE)
    if recorded in PRE_TOKENIZERS:
        return Recognized(recorded, "patterns", "as exported")
    if built_in is not None:
        name = config.config["tokenizer_class"]
        return Recognized(built_in.pre, "patterns", f"the one that {name} of transformers has built in")
    if not is_byte_level(made):
        raise NotImportableError(
            "its tokens are not bytes in GPT-2's alphabet, and nothing names a pre-tokenizer; pre=NAME does "
            "(ggufbpe list-pre shows all)"
        )
    if len(made) < _ENOUGH:
        few = counted(len(made), "merge")
        sentence = f"nothing names the pre-tokenizer, and {few} are too few to tell; pre=NAME takes another"
        return Recognized("gpt-2", "tokens", sentence)
    ranked = families(made)
    best = ranked[0]
    alike = [family.family for family in tied(ranked) if family is not best]
    sure = f"; {listed(alike, len(alike), ' and {} more', shown=str)} would do as well" if alike else ""
    return Recognized(
        best.family,
        "tokens",
        "nothing names the pre-tokenizer; the tokens look made with this one, which keeps "
        f"{100 * best.share:.2f}% of them whole{sure}; pre=NAME takes another",
    )


def _added_tokens(vocab: dict[str, Any], special_texts: list[str], config: HFConfig) -> list[dict[str, Any]]:
    """The added tokens as a tokenizer.json has them: `special_texts`, and those that the settings name.

    Those that have no id get the next, as in transformers.
    """
    ids = {text: token for text, token in vocab.items() if type(token) is int}
    special: dict[str, bool] = {}
    for token, text, kind in config.added_tokens():
        ids.setdefault(text, token)
        special[text] = kind == TokenType.CONTROL
    following = max(ids.values(), default=-1) + 1
    for text in (*config.named_tokens(), *special_texts):
        if text not in ids:
            ids[text], following = following, following + 1
        special[text] = True
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return [{**plain, "id": ids[text], "content": text, "special": kind} for text, kind in special.items()]


def _normalizer(config: HFConfig, entry: PreTokenizer | None) -> list[dict[str, Any]]:
    """The steps that change a text: for escaped spaces, and for lower case in a model that can have it."""
    steps = [ESCAPED_SPACES] if entry is not None and entry.escape_whitespaces else []
    lowercase = config.flag(_K.NORMALIZER_LOWERCASE)
    if tokenizer_model(config.text(_K.MODEL)).makes_lower_case and lowercase is not False:
        steps += LOWER_CASE if lowercase or entry is None or entry.lowercase else []
    return steps


def _pre_tokenizer(config: HFConfig, byte_level: bool) -> list[dict[str, Any]]:
    """The pre-tokenizer as far as it is not splitting, which the name of the pre-tokenizer gives."""
    prefix = config.config.get("add_prefix_space") is True
    words = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": False}
    drops_white_space = tokenizer_model(config.text(_K.MODEL)).drops_white_space
    return [WHITE_SPACE_SPLIT] * drops_white_space + [words] * byte_level


def _ends(config: HFConfig, built_in: _Class | None, ids: dict[str, int]) -> dict[str, Any]:
    """A post-processor that adds BOS and EOS where the settings or the class want them."""
    both = built_in is not None and built_in.both_ends
    around: dict[str, list[dict[str, Any]]] = {"bos": [], "eos": []}
    keys = {}
    for name, side in around.items():
        token = config.token(name)
        if (both or config.config.get(f"add_{name}_token") is True) and token and token in ids:
            side.append({"SpecialToken": {"id": token, "type_id": 0}})
            keys[token] = {"id": token, "ids": [ids[token]], "tokens": [token]}
    pieces = [*around["bos"], {"Sequence": {"id": "A", "type_id": 0}}, *around["eos"]]
    return {"type": "TemplateProcessing", "single": pieces, "pair": [], "special_tokens": keys}


def _unexplained(
    vocab: dict[str, Any], made: set[str], added: list[dict[str, Any]], byte_level: bool
) -> Iterator[Incompatibility]:
    """Tokens that no merge makes and nothing names: no text has them."""
    known = {token["content"] for token in added}
    texts = [text for text in vocab if len(text) > 1 and text not in made and text not in known]
    if not byte_level:
        texts = [text for text in texts if not re.fullmatch("<0x[0-9A-F]{2}>", text)]
    if texts:
        one = len(texts) == 1
        pronoun, becomes = (
            ("it is", "it becomes a normal token") if one else ("they are", "they become normal tokens")
        )
        yield Incompatibility(
            "special_tokens",
            f"no merge makes {listed(texts, len(texts), ' and {} more')}, and no tokenizer_config.json beside the "
            f"file says what {pronoun} for: {becomes}, which llama.cpp does not find in texts unless it knows "
            "the token's text or takes whole words",
            len(texts),
        )
