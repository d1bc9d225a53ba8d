"""SentencePiece's byte pair encoding in a tokenizer.json: merges made from scores, and byte fallback (Llama 2).

The normalizer puts a space before each stretch of plain text between special tokens, as llama.cpp does, and escapes
spaces.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..._util.spelling import BYTE_OF, SPACE
from ...models.spm import score_ranks
from ...models.vocabulary import Vocabulary
from .. import incompatibilities
from ..incompatibilities import Incompatibility, about_tokens
from ..score_merges import ScoreMerges, merges_by_scores
from .hf_parts import HFParts, Part, byte_pair_model, replace, sequence


def score_parts(vocabulary: Vocabulary, code_points: bool) -> HFParts:
    """The parts for byte pair encoding by scores; there are no code points to list."""
    ranks = score_ranks(vocabulary.scores, len(vocabulary.tokens))
    merges = merges_by_scores(vocabulary.tokens, ranks, vocabulary.token_to_id)
    unknown = vocabulary.special_ids["unk"]
    model = byte_pair_model(
        vocabulary.token_to_id,
        merges.pairs,
        byte_fallback=True,
        unknown=None if unknown is None else vocabulary.tokens[unknown],
    )
    told = [
        *incompatibilities.bytes_that_fail(vocabulary),
        *_merging(merges),
    ]
    return HFParts(
        score_normalizer(vocabulary.add_space_prefix),
        None,
        _decoder(vocabulary.add_space_prefix),
        model,
        told,
        scores=dict(enumerate(vocabulary.scores or [0.0] * len(ranks))),
    )


def score_normalizer(add_space_prefix: bool) -> Part:
    """The normalizer that puts a space before the text, if asked, and escapes spaces."""
    prefix = [{"type": "Prepend", "prepend": SPACE}] * add_space_prefix
    return sequence("normalizers", [*prefix, replace(" ", SPACE)])


def _decoder(add_space_prefix: bool) -> Part:
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] * add_space_prefix
    return sequence("decoders", [replace(SPACE, " "), {"type": "ByteFallback"}, {"type": "Fuse"}, *strip])


def _merging(merges: ScoreMerges) -> Iterator[Incompatibility]:
    yield from about_tokens(
        "order_of_equal_scores",
        merges.circular,
        "made of pairs of equal score that can overlap in a text: llama.cpp joins the leftmost first, the library "
        "always the same pair",
    )
    yield from about_tokens(
        "tokens_without_merges",
        merges.unmade,
        "joined by llama.cpp from characters that are not tokens, which the library has no merge for",
    )
    yield from about_tokens(
        "merged_byte_tokens",
        [left + right for left, right in merges.pairs if left in BYTE_OF or right in BYTE_OF],
        "with the text of a byte token, which the library also joins where that stands for the byte",
        ("begins or ends", "begin or end"),
    )
