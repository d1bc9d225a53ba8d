"""Sets special ids, end-of-generation tokens, and the attributes that follow from names and texts of tokens.

Source: src/llama-vocab.cpp, llama_vocab::impl::load.
"""

# No `from __future__ import annotations`: `typing` would compile each annotation of a NamedTuple at every import.

from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from typing import NamedTuple

from .._util.errors import VocabularyError, printable
from .._util.llama_cpp_states import FOLLOWED, RFL_PARAMETER, lacks
from ..gguf import typed
from ..gguf.constants import KEY_ARCHITECTURE, KEY_NAME, TokenizerKey
from ..gguf.metadata import Metadata
from .token_table import tokens_with
from .tokenizer_model import Warn
from .vocabulary import CONTROL, LSTRIP, NORMAL, RSTRIP, UNUSED, USER_DEFINED, Correct, Correction

# Special ids: name, keys that set it (the later wins), texts by which it is found if no key names it.
# If several texts are in one vocabulary, llama.cpp takes the one that comes first in a C++ hash map,
# which is arbitrary; here it is the first of this list.
SPECIAL_IDS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("bos", (TokenizerKey.BOS_ID,), ()),
    ("eos", (TokenizerKey.EOS_ID,), ()),
    (
        "eot",
        (TokenizerKey.EOT_ID,),
        (
            *("<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>"),
            *("<|end_of_text|>", "<EOT>", "_<EOT>", "[EOT]", "<｜end▁of▁sentence｜>"),
            "<end_of_utterance>",
        ),
    ),
    ("eom", (TokenizerKey.EOM_ID,), ("<|eom_id|>",)),
    ("unk", (TokenizerKey.UNK_ID,), ()),
    ("sep", (TokenizerKey.SEP_ID,), ()),
    ("pad", (TokenizerKey.PAD_ID,), ()),
    ("mask", (TokenizerKey.MASK_ID,), ()),
    (
        "fim_pre",
        (TokenizerKey.FIM_PRE_ID, TokenizerKey.PREFIX_ID),
        (
            *("<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>"),
            *("<|code_prefix|>", "<|prefix|>", "<|plamo:fim_prefix|>"),
        ),
    ),
    (
        "fim_suf",
        (TokenizerKey.FIM_SUF_ID, TokenizerKey.SUFFIX_ID),
        (
            *("<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>"),
            *("<|code_suffix|>", "<|suffix|>", "<|plamo:fim_suffix|>"),
        ),
    ),
    (
        "fim_mid",
        (TokenizerKey.FIM_MID_ID, TokenizerKey.MIDDLE_ID),
        (
            *("<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>"),
            *("<|code_middle|>", "<|middle|>", "<|plamo:fim_middle|>"),
        ),
    ),
    ("fim_pad", (TokenizerKey.FIM_PAD_ID,), ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]")),
    (
        "fim_rep",
        (TokenizerKey.FIM_REP_ID,),
        ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    ),
    ("fim_sep", (TokenizerKey.FIM_SEP_ID,), ("<|file_sep|>", "<|plamo:file_separator|>")),
)

END_OF_GENERATION = (
    *("<|eot_id|>", "<|eot|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>"),
    *("<|flush|>", "<|calls|>", "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>"),
    *("<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>"),
    *("<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~["),
    "<|ifm|im_end|>",
)
# Texts that llama.cpp makes control tokens whatever their type; those of special ids, unless a key names another.
MADE_CONTROL = frozenset((*END_OF_GENERATION, *(text for _, _, texts in SPECIAL_IDS for text in texts)))
ALWAYS_SHOWN = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")  # gpt-oss


# Pre-tokenizers and architectures of models in which <mask> strips the white space before it.
STRIPS_MASK = ("jina-v2-de", "jina-v2-es", "jina-v2-code", "mmbert")
STRIPPING_ARCHITECTURES = ("nomic-bert-moe", "jina-bert-v3")
PHI_3 = ("phi-3", "phi3")
MODERN_BERT = "modern-bert"
TELLING_PARTS = {  # the parts of a model's names that affect its tokens
    KEY_ARCHITECTURE: STRIPPING_ARCHITECTURES,
    KEY_NAME: (*PHI_3, MODERN_BERT),
}


class UnfinishedVocabulary(NamedTuple):
    """The parts of a vocabulary that one rule after the other changes."""

    path: str
    warn: Warn
    correct: Correct
    tokens: Sequence[str]
    token_to_id: Mapping[str, int]
    attributes: MutableSequence[int]
    special_ids: dict[str, int | None]
    state: str = FOLLOWED  # of llama.cpp


def special_ids(
    file: Metadata, defaults: Mapping[str, int], size: int, warn: Warn, correct: Correct
) -> dict[str, int | None]:
    """The special ids from defaults and keys, by name; None if there is none."""
    ids: dict[str, int | None] = {}
    for name, keys, _ in SPECIAL_IDS:
        default = token_id = defaults.get(name)
        if token_id is not None and token_id >= size:
            token_id = None
        for key in keys:
            given = typed.unsigned(file, key)
            if given is not None and given >= size:
                warn(
                    f"{key} = {given} is out of range; {'none' if token_id is None else token_id} is used instead"
                )
            elif given is not None:
                token_id = given
        if token_id is None and default is not None:
            what = f"the default {name.upper()} id {default} is out of range, so there is none"
            correct(Correction("default_id", what))
        ids[name] = token_id
    return ids


def find_special_tokens(draft: UnfinishedVocabulary) -> None:
    """Special ids that no key names, found by the text of a token."""
    unknown = lacks(draft.state, "special text")
    for name, _, texts in SPECIAL_IDS:
        if draft.special_ids[name] is None:
            match = next((text for text in texts if text in draft.token_to_id and text not in unknown), None)
            if match is not None:
                draft.special_ids[name] = draft.token_to_id[match]
                _make_control(draft, match)


def mark_unused(draft: UnfinishedVocabulary) -> None:
    """Control tokens with "unused" in their text are unused."""
    for index in tokens_with(draft.attributes, CONTROL):
        if "unused" in draft.tokens[index]:
            draft.attributes[index] |= UNUSED


def end_of_generation(draft: UnfinishedVocabulary) -> frozenset[int]:
    """The tokens that end a generation: by their texts, and EOS, EOT and EOM."""
    _, _, correct, tokens, to_id, attributes, ids, state = draft
    unknown = lacks(state, "special text")
    eog = {i for i in (ids["fim_pad"], ids["fim_rep"], ids["fim_sep"]) if i is not None}
    for text in END_OF_GENERATION:
        if text in to_id and text not in unknown:
            eog.add(to_id[text])
            _make_control(draft, text)
    for text in ALWAYS_SHOWN:
        if text in to_id:
            what = f"{printable(text)} becomes a user-defined token, which is always shown"
            correct(Correction("always_shown", what, to_id[text]))
            attributes[to_id[text]] = USER_DEFINED
    for name in ("eos", "eot", "eom"):
        token_id = ids[name]
        if token_id is not None and token_id not in eog:
            eog.add(token_id)
            what = f"the {name.upper()} token {token_id} was not an end-of-generation token, and becomes one"
            correct(Correction("end_of_generation", what, token_id))
    of_text = {tokens[i]: i for i in eog}
    calls = "<|call|>" in of_text or "<|calls|>" in of_text
    if "<|end|>" in of_text and calls and ("<|return|>" in of_text or "<|flush|>" in of_text):
        # o200k_harmony and solar-open: <|end|> ends a message, not the generation
        eog.discard(of_text["<|end|>"])
        attributes[of_text["<|end|>"]] = USER_DEFINED
        what = "'<|end|>' ends a message here, so it is not an end-of-generation token"
        correct(Correction("not_end_of_generation", what, of_text["<|end|>"]))
    has_rfl = RFL_PARAMETER in to_id and RFL_PARAMETER not in lacks(state, "rule")
    if "</s>" in of_text and ("<|tool_response>" in of_text or "<|plamo:eos|>" in of_text or has_rfl):
        eog.discard(of_text["</s>"])
        attributes[of_text["</s>"]] = NORMAL
        what = "'</s>' is a normal token here, so it is not an end-of-generation token"
        correct(Correction("not_end_of_generation", what, of_text["</s>"]))
    return frozenset(eog)


def _make_control(draft: UnfinishedVocabulary, text: str) -> None:
    index = draft.token_to_id[text]
    if not draft.attributes[index] & CONTROL:
        what = f"token {index}, {printable(text)}, looks like a control token and becomes one"
        draft.correct(Correction("made_control", what, index))
        draft.attributes[index] |= CONTROL


KEEPING_SPACE = ("<unk>", "<s>", "<|endoftext|>")  # special tokens of Phi-3 that take no space behind them


def takes_space_behind(name: str, text: str) -> bool:
    """Return whether a special token takes the spaces behind it, as `set_strip_attributes` decides by a model's name.

    >>> takes_space_behind("Phi3", "<|user|>"), takes_space_behind("Phi3", "<s>")
    (True, False)
    """
    return any(part in lowered(name) for part in PHI_3) and text not in KEEPING_SPACE


def set_strip_attributes(
    draft: UnfinishedVocabulary,
    special_token_ids: tuple[int, ...],
    named_pre: str,
    architecture: str,
    name: str,
) -> None:
    """Attributes that a GGUF does not carry, from the names of tokenizer, architecture and model."""
    path, warn, _, _, to_id, attributes, _, _ = draft
    name = lowered(name)

    def has_any(text: str, parts: Iterable[str]) -> bool:
        return any(part in text for part in parts)

    def set_lstrip(text: str) -> None:
        if text in to_id:
            attributes[to_id[text]] |= LSTRIP
        else:
            warn(f"the token {printable(text)} is missing: convert the model again")

    if has_any(named_pre, STRIPS_MASK) or has_any(architecture, STRIPPING_ARCHITECTURES):
        set_lstrip("<mask>")
    elif has_any(name, PHI_3):
        for text in ("</s>", "<unk>", "<s>", "<|endoftext|>"):
            if text not in to_id:
                raise VocabularyError(
                    f"the model's name says Phi-3, but it has no token {printable(text)}; llama.cpp refuses it",
                    path=path,
                    key=KEY_NAME,
                    remedy="convert the model again, or set another general.name",
                )
        for index in (*special_token_ids, to_id["</s>"]):
            attributes[index] |= RSTRIP
        for text in KEEPING_SPACE:
            attributes[to_id[text]] &= ~RSTRIP
    elif MODERN_BERT in name:
        set_lstrip("[MASK]")


def lowered(name: str) -> str:
    """Lower case as by tolower in the C locale: ASCII only."""
    return name.encode().lower().decode()
