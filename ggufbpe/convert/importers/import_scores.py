"""Imports SentencePiece's byte pair encoding from a tokenizer.json: scores for its merges (Llama 2, Mistral 7B).

convert_hf_to_gguf.py takes scores from tokenizer.model, and without that file writes one score for all tokens. This
module chooses scores so that merges happen in the file's order, or takes those that an export recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..._util.spelling import BYTE_TOKENS, SPACE
from ...gguf.constants import TokenizerKey, TokenType
from ...models.spm import score_ranks
from ..exporters.hf_parts import replace
from ..incompatibilities import Incompatibility, about_tokens
from ..score_merges import Pair, merges_by_scores, scores_by_merges
from .hf_document import HFDocument
from .hf_limits import metaspace_limits, tokens_across_words

_K = TokenizerKey


def goes_by_scores(read: HFDocument, written_algorithm: str) -> bool:
    """Whether a byte pair encoding is SentencePiece's: a space goes before text, or an export says so."""
    kinds = {part.get("type") for name in ("normalizer", "pre_tokenizer") for part in read.parts(name)}
    return "ByteLevel" not in kinds and (
        bool(kinds & {"Prepend", "Metaspace"}) or written_algorithm == "scores"
    )


def import_scores(read: HFDocument) -> tuple[dict[str, Any], list[Incompatibility]]:
    """The keys of SPM, and what llama.cpp does differently."""
    pairs = list(read.merge_pairs())
    types = read.types_with_bytes()
    unknown = read.ids.get(read.model.get("unk_token") or "")
    if unknown is not None and not read.config.section:
        types[unknown] = int(TokenType.UNKNOWN)
    read.config.set_types(types)
    scores, told = _scores(read, pairs)
    keys: dict[str, Any] = {_K.TOKEN_TYPE: types, _K.SCORES: scores, _K.ADD_PREFIX: _puts_space(read)}
    if unknown is not None:
        keys[_K.UNK_ID] = unknown
    return keys, [*told, *_limits(read)]


def _scores(read: HFDocument, pairs: list[Pair]) -> tuple[list[float], list[Incompatibility]]:
    written = read.config.written_scores(len(read.tokens))
    if len(written) == len(read.tokens):
        scores = [written[token] for token in range(len(read.tokens))]
        found = merges_by_scores(read.tokens, score_ranks(scores, len(scores)), read.ids)
        if found.pairs == pairs:
            return scores, list(_without_merges(found.unmade))
    made = scores_by_merges(pairs)
    lowest = min(made.scores.values(), default=0.0) - 1.0
    scores = [made.scores.get(text, lowest) for text in read.tokens]
    found = merges_by_scores(read.tokens, score_ranks(scores, len(scores)), read.ids)
    expected, known = found.pairs, set(pairs)
    others = [left + right for left, right in expected if (left, right) not in known]
    told = [*_without_merges([*others, *found.unmade])]
    if [pair for pair in expected if pair in known] != pairs:
        told += about_tokens(
            "merges_apart",
            made.shared,
            "merges between those of others; they have one score in llama.cpp, which joins the leftmost first",
            ("has", "have"),
        )
    return scores, told


def _without_merges(texts: list[str]) -> Iterator[Incompatibility]:
    what = (
        "also the text of two tokens or characters that the file has no merge for; llama.cpp joins these, too"
    )
    yield from about_tokens("pairs_without_merges", texts, what)


def _puts_space(read: HFDocument) -> bool:
    schemes = [
        part.get("prepend_scheme", "always" if part.get("add_prefix_space", True) else "never")
        for part in read.parts("pre_tokenizer")
        if part.get("type") == "Metaspace"
    ]
    prepends = any(part.get("type") == "Prepend" for part in read.parts("normalizer"))
    return prepends or any(scheme != "never" for scheme in schemes)


def _limits(read: HFDocument) -> Iterator[Incompatibility]:
    own = ({"type": "Prepend", "prepend": SPACE}, replace(" ", SPACE))
    for part in read.parts("normalizer"):
        if part not in own:
            yield Incompatibility(
                "normalizer",
                f"the normalizer {part.get('type')} changes texts, and llama.cpp takes them as they are",
            )
    for part in read.parts("pre_tokenizer"):
        kind = part.get("type")
        if kind != "Metaspace":
            yield Incompatibility(
                "splitting", f"the file splits text by {kind}, and llama.cpp does not split it"
            )
            continue
        if part.get("split", True):
            yield from tokens_across_words(read)
    yield from metaspace_limits(read)
    missing = sum(name not in read.ids for name in BYTE_TOKENS)
    if missing or not read.model.get("byte_fallback"):
        yield Incompatibility(
            "bytes_without_tokens",
            f"{missing} bytes have no token, and llama.cpp throws an exception for a character that needs one"
            if missing
            else "the file has no byte fallback, and llama.cpp has",
            missing or 1,
        )
    if read.model.get("ignore_merges"):
        yield Incompatibility("ignore_merges", "words that are tokens are taken whole; llama.cpp merges them")
    if read.model.get("dropout"):
        yield Incompatibility("dropout", "merges are dropped at random, which llama.cpp never does")
