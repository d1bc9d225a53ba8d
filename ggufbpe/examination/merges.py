"""The merges: whether they are of these tokens, and lead to all of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ..gguf.constants import TokenizerKey, TokenType
from ..models.bpe.merge import WordEncoder
from ..models.bpe.model import merging_alone
from ..tokenizer import Tokenizer
from ..wording import counted, listed
from .facts import Facts
from .finding import Finding, Where
from .tokens import is_name

_K = TokenizerKey

_SHARE_UNREACHABLE = 0.01  # from here on, they are more than a few leftovers of training


def merge_parts(model: Facts) -> Iterator[Finding]:
    """Merges with a part or a result that is no token, and merges that stand twice."""
    bad: list[int] = []
    first, shown = "", model.quoted_text
    parts = set(chain.from_iterable(model.pairs)) | model.merged
    for index, (left, right) in enumerate(model.pairs) if not parts <= model.ids.keys() else ():
        if left in model.ids and right in model.ids and left + right in model.ids:
            continue
        missing = next(text for text in (left, right, left + right) if text not in model.ids)
        first = first or f"{shown(left)} + {shown(right)}, whose {shown(missing)} is not"
        bad.append(index)
    if bad and model.tokens:
        yield Finding(
            "warning",
            "merges_not_in_vocabulary",
            f"{counted(len(bad), 'merge')} of {len(model.merges)} with a part or a result that is no token: the first "
            f"is merge {bad[0]}, {first}",
            "The symbol that such a merge makes has no id, so it falls back to its bytes; tokens and merges are not "
            "of one model.",
            "convert the model again",
            Where(_K.MERGES, None, model.file.element_offset(_K.MERGES, bad[0])),
            {"count": len(bad), "of": len(model.merges), "merges": bad[:100]},
        )
    if count := len(model.merges) - len(set(model.merges)):
        what = f"{counted(count, 'merge stands', 'merges stand')} a second time"
        why = "The first one counts. Harmless, but a faulty conversion."
        yield Finding(
            "note",
            "duplicate_merges",
            what,
            why,
            "convert the model again",
            model.key(_K.MERGES),
            {"count": count},
        )


def unreachable(model: Facts) -> Iterator[Finding]:
    """Tokens that merging the characters of their own text does not give back."""
    if not model.merges or not model.kind.is_supported:
        return
    found = _unmerged(model)
    if not found:
        return
    whole = model.entry.ignore_merges
    many = len(found) > _SHARE_UNREACHABLE * len(model.tokens)
    texts = [model.tokens[index] for index in found]
    yield Finding(
        "note" if whole or not many else "warning",
        "unreachable_tokens",
        f"{counted(len(found), 'token')} that no merges lead to: {listed(found, len(found), shown=model.quoted)}",
        f"{model.pre} takes a whole word that is a token for that token, so they are found there, but not as parts "
        "of words."
        if whole
        else "Encoding never gives them. A few are left over from training or were added later; many mean that "
        "tokens and merges are not of one model, or that the model wants a pre-tokenizer that ignores merges for "
        "whole words, as llama-bpe does.",
        "nothing to do" if whole or not many else "convert the model again",
        model.token(found[0]),
        {"count": len(found), "ids": found[:100], "texts": texts[:100]},
    )


def _unmerged(model: Facts) -> list[int]:
    """The normal tokens that merging does not give back; by the compiled engine where there is one."""
    found = [
        index
        for index, token in enumerate(model.tokens)
        if len(token) > 1 and model.type_of(index) == int(TokenType.NORMAL) and not is_name(token)
    ]
    if model.tokenizer is not None and model.tokenizer.engine == "native":
        texts = [model.tokens[index] for index in found]
        merged = Tokenizer(merging_alone(model.tokenizer.vocabulary)).encode_batch(texts, add_special=False)
        found = [index for index, ids in zip(found, merged) if ids != [index]]  # and some with line breaks
    if not found:
        return []
    encoder = WordEncoder(model.entry, model.ids, model.merges)
    return [index for index in found if encoder.merged(list(model.tokens[index])) != [model.tokens[index]]]
