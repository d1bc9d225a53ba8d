"""Random texts for one model: with its patterns, its special tokens, and some of its other tokens."""

from __future__ import annotations

import random

from ...models.pretokenizers.pattern import parse
from ...models.pretokenizers.random_texts import RandomTexts
from ...models.vocabulary import Vocabulary
from ...tokenizer import Tokenizer


def texts_for(tokenizer: Tokenizer, seed: str) -> RandomTexts:
    """A source for one model: with its patterns, its special tokens, and some of its other tokens."""
    vocabulary: Vocabulary = tokenizer.vocabulary
    special = [vocabulary.tokens[token] for token in vocabulary.special_token_ids]
    dice = random.Random(f"{seed}/tokens")
    some = dice.sample(range(tokenizer.vocab_size), min(2000, tokenizer.vocab_size))
    rules = [stage.rule for stage in vocabulary.pre_tokenizer.stages if stage.rule]
    return RandomTexts(
        seed,
        special=special,
        pieces=[piece for token in some if (piece := tokenizer.token_to_piece(token, special=False))],
        patterns=[parse(rule) for rule in rules],
    )
