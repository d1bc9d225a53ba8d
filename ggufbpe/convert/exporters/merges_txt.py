"""Exports a vocabulary to merges.txt and vocab.json, the two files of GPT-2's tokenizer.

`tokenizers.models.BPE.from_file` and many other programs read them. They say nothing about splitting, special tokens
or BOS: tokenizer.json does. The first line, which readers skip, has the name of the pre-tokenizer and the ids of BOS,
EOS and the like for `ggufbpe import`.

A line is two parts with a space between, so merges that contain spaces or line breaks cannot be written.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..._util.errors import printable
from ...gguf.constants import TokenizerKey
from ...models.vocabulary import Vocabulary
from .. import incompatibilities
from ..export_formats import Export, json_file, require_expressible
from ..incompatibilities import Incompatibility
from ..portable_patterns import NotExpressibleError
from .hf_config import CONFIG_TOKENS

MERGES_TXT, VOCAB_JSON = "merges.txt", "vocab.json"
_HEAD = "#version: 0.2"


def to_merges_txt(vocabulary: Vocabulary) -> Export:
    """merges.txt, one merge a line in the order of ranks, and vocab.json, from tokens to ids.

    Raises `NotExpressibleError` for merges that no line can hold.
    """
    require_expressible(vocabulary, "merges.txt")
    vocabulary = incompatibilities.listed_out(vocabulary)
    merges = merges_in_lines(vocabulary)
    lines = [f"{_HEAD} - {_recorded(vocabulary)}", *(f"{left} {right}" for left, right in merges.pairs)]
    files = {MERGES_TXT: ("\n".join(lines) + "\n").encode(), VOCAB_JSON: json_file(vocabulary.token_to_id)}
    return Export(files, (*incompatibilities.dropped_merges(merges), *_not_written(vocabulary)))


def _recorded(vocabulary: Vocabulary) -> str:
    """The keys of a GGUF that `import_merges` reads from the first line."""
    special = vocabulary.special_token_ids  # llama.cpp's default, the token 11, is not among them
    ids = {key: vocabulary.special_ids[name] for name, key in CONFIG_TOKENS}
    keys = {TokenizerKey.MODEL: vocabulary.model, TokenizerKey.PRE: vocabulary.pre}
    keys |= {key: str(token) for key, token in ids.items() if token in special}
    if vocabulary.tokenizer_model.makes_lower_case:
        keys[TokenizerKey.NORMALIZER_LOWERCASE] = str(vocabulary.lowercase).lower()
    return " ".join(f"{key}={value}" for key, value in keys.items())


def _not_written(vocabulary: Vocabulary) -> Iterator[Incompatibility]:
    """What neither of the two files has a place for."""
    if vocabulary.special_token_ids:
        yield Incompatibility(
            "special_tokens",
            "merges.txt and vocab.json do not say which tokens are special, whether BOS and EOS are added, or how "
            "chats are written; tokenizer.json and vocab-gguf do",
            len(vocabulary.special_token_ids),
        )


def merges_in_lines(vocabulary: Vocabulary) -> incompatibilities.Merges:
    """The merges of a vocabulary, one a line. `NotExpressibleError` for merges that no line can hold."""
    merges = incompatibilities.usable_merges(vocabulary)
    unwritable = [pair for pair in merges.pairs if any(set(part) & set(" \n\r") for part in pair)]
    if unwritable:
        raise NotExpressibleError(
            f"{len(unwritable)} merges have white space in them, such as {printable(unwritable[0][0], 40)} with "
            f"{printable(unwritable[0][1], 40)}, which merges.txt cannot hold"
        )
    return merges
