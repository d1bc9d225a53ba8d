r"""Unigram models in a tokenizer.json: NFC, the charsmap, white space, and pieces with scores (T5, XLM-RoBERTa).

The whole text is one lattice, as in llama.cpp, and not one per word: so sums are rounded alike, and tokens may contain
spaces. Regular expressions in normalizers, unlike those that split, are run by tokenizers 1.0 as well.

The library takes every token for a piece, whatever its type, and scores the unknown token 10 below the lowest score of
all. llama.cpp takes only normal, user-defined and unused tokens, and only normal ones count for the lowest score. So
tokens that it leaves out get that lowest score here, and import takes their own from tokenizer_config.json.
"""

from __future__ import annotations

import math
from array import array
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any

from ..._util.errors import printable
from ..._util.spelling import SPACE
from ...models.tokenizer_model import first_attributes
from ...models.vocabulary import NORMAL, UNUSED, USER_DEFINED, Vocabulary
from .. import incompatibilities
from ..incompatibilities import Incompatibility, about_tokens
from ..portable_patterns import NotExpressibleError
from .hf_parts import HFParts, replace, sequence

_PENALTY = 10.0  # of the unknown token, below the lowest score


def unigram_parts(vocabulary: Vocabulary, code_points: bool) -> HFParts:
    """The parts of a unigram model; there are no code points to list."""
    scores, written = _scores(vocabulary), _written_scores(vocabulary)
    if not all(map(math.isfinite, written)):
        token = next(token for token, score in enumerate(written) if not math.isfinite(score))
        raise NotExpressibleError(
            f"the score of token {token}, {printable(vocabulary.tokens[token])}, is {written[token]}, "
            "which JSON has no number for"
        )
    model = {
        "type": "Unigram",
        "unk_id": vocabulary.special_ids["unk"],
        "vocab": list(zip(vocabulary.tokens, written)),
        "byte_fallback": False,
    }
    prefix = vocabulary.add_space_prefix or vocabulary.remove_extra_whitespaces
    decoder = {
        "type": "Metaspace",
        "replacement": SPACE,
        "prepend_scheme": "always" if prefix else "never",
        "split": False,
    }
    changed = {token: own for token, (own, score) in enumerate(zip(scores, written)) if own != score}
    return HFParts(
        sequence("normalizers", unigram_normalizer(vocabulary)),
        None,
        decoder,
        model,
        list(_limits(vocabulary)),
        scores=changed,
    )


def unigram_normalizer(vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """Return composition, the charsmap, and the rules for spaces, in the order in which llama.cpp applies them."""
    steps: list[dict[str, Any]] = [{"type": "NFC"}] if vocabulary.nfc else []
    if vocabulary.charsmap:
        charsmap = b64encode(vocabulary.charsmap).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": charsmap})
    if vocabulary.remove_extra_whitespaces:
        steps += [replace(r"\A +| +\z", "", "Regex"), replace(" +", SPACE, "Regex")]
    else:
        steps.append(replace(" ", SPACE))
    if vocabulary.remove_extra_whitespaces or vocabulary.add_space_prefix:
        steps.append({"type": "Prepend", "prepend": SPACE})
    return steps


def _written_scores(vocabulary: Vocabulary) -> list[float]:
    """The scores for a library that takes every token for a piece."""
    scores, kinds = _scores(vocabulary), first_attributes(vocabulary)
    lowest = min((score for score, kind in zip(scores, kinds) if kind & NORMAL), default=0.0)
    unknown = array("f", [lowest - _PENALTY])[0]  # as llama.cpp rounds it
    lowest = min(lowest, unknown + _PENALTY)

    def written(score: float, kind: int) -> float:
        if kind & NORMAL:
            return score
        return 0.0 if kind & USER_DEFINED else max(score, lowest) if kind & UNUSED else lowest

    return list(map(written, scores, kinds))


def _scores(vocabulary: Vocabulary) -> Sequence[float]:
    return vocabulary.scores or [0.0] * len(vocabulary.tokens)


def _limits(vocabulary: Vocabulary) -> Iterator[Incompatibility]:
    scores, first, texts = _scores(vocabulary), first_attributes(vocabulary), vocabulary.tokens
    hidden = [texts[token] for token, kind in enumerate(first) if not kind & (NORMAL | UNUSED | USER_DEFINED)]
    what = "found in plain text by the library and not by llama.cpp"
    yield from about_tokens("control_tokens_in_text", hidden, what)
    low = min((scores[t] for t, kind in enumerate(first) if kind & NORMAL), default=0.0)
    unused = [texts[t] for t, kind in enumerate(first) if kind & UNUSED and scores[t] < low]
    yield from about_tokens(
        "scores_of_unused_tokens",
        unused,
        "a score below those of all normal tokens, and get the lowest of these here: a text with one of them may "
        "become that token",
        ("has", "have"),
    )
    if vocabulary.special_ids["unk"] is None:
        yield Incompatibility(
            "unknown_missing", "there is no unknown token: a text that needs one is an error in the library"
        )
    yield from incompatibilities.user_defined_prefixes(vocabulary)
    if vocabulary.nfc:
        yield Incompatibility(
            "older_composition",
            "the library composes texts (NFC) by older tables of Unicode: marks that are newer, such as U+07FD, are "
            "not put in order with other marks",
        )
    if vocabulary.charsmap:
        yield Incompatibility(
            "charsmap_by_graphemes",
            "the library replaces a character together with the marks on it: the accent of U+FF21 U+0301 and the "
            "line feed of CR LF are lost there, and llama.cpp keeps them",
        )
    yield from incompatibilities.texts_of_spaces(vocabulary)
