"""Shows how several tokenizers split one text, side by side.

Tokens are compared by bytes of the text alone, since an id means nothing in another vocabulary. So models of any kind
can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from ..._util.verdicts import same_or_different
from ..._util.wording import counted
from ...data.training.load_vocabulary import trained_vocabulary_of, utf8_text
from ...data.training.trace_text import trace_text
from ...data.training.trained_vocabulary import TrainedVocabulary
from ...tokenizer import Tokenizer
from ...tokenizer.inputs import Model, TextOrPath, opened_by_name, text_of, tokenizer_of
from .align import piece_or_nothing
from .stretches import SplittingModel, Stretches


@dataclass(frozen=True, repr=False)
class Comparison:
    """The result of `compare`: the `names` of the models, the bytes of the `text`, and its `stretches` in order."""

    names: tuple[str, ...]
    text: bytes
    stretches: Stretches

    @property
    def counts(self) -> list[int]:
        """How many tokens each model makes of the text."""
        return self.stretches.counts

    @property
    def is_same(self) -> bool:
        """Whether all models split the text the same way."""
        return self.stretches.differing == 0

    @property
    def verdict(self) -> str:
        """The result in a word: "same" or "different"."""
        return same_or_different(self.is_same)

    def to_dict(self) -> dict[str, Any]:
        """All of it as `ggufbpe compare --json` writes it; pieces that are not UTF-8 also have their bytes in hex."""
        return {**self.summary(), "stretches": [stretch.to_dict() for stretch in self.stretches]}

    def summary(self) -> dict[str, Any]:
        """The fields of `to_dict` without the stretches, of which there may be many."""
        models = [{"name": name, "tokens": tokens} for name, tokens in zip(self.names, self.counts)]
        return {"models": models, "bytes": len(self.text)}

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {counted(n, 'token')}" for name, n in zip(self.names, self.counts))
        return f"<Comparison: {counted(len(self.text), 'byte')}; {counts}>"


def compare(
    models: Iterable[Model | TrainedVocabulary] | Mapping[str, Model | TrainedVocabulary],
    text: TextOrPath,
    *,
    parse_special: bool = True,
) -> Comparison:
    """Split a text with several models: the stretches between the places where all of them split it, in order.

    `models` are of any kind, each a `Tokenizer`, a `TrainedVocabulary` or the path of a file; a mapping gives them
    names. `text` is a `str`, bytes, or the `pathlib.Path` of a file. BOS and EOS are not added.

    >>> for stretch in compare(["a.gguf", "b.gguf"], "Hello 123").stretches:        # doctest: +SKIP
    ...     print(stretch.start, [[token.piece for token in row] for row in stretch.tokens])
    0 [[b'Hello'], [b'Hello']]
    5 [[b' ', b'123'], [b' ', b'1', b'2', b'3']]

    Each token has its id in its own vocabulary, its bytes, and its place in the bytes of `text`. Tokens that cover no
    byte of it, such as a space that a model puts before it, belong to the stretch that follows. `ValueError` if no
    model is given, `GGUFError` for one that cannot be used.
    """
    named, data = opened_by_name(models, _opened), text_of(text)
    splits = [_splits(model, parse_special) for model in named.values()]
    return Comparison(tuple(named), data, Stretches(splits, data))


def _opened(model: Model | TrainedVocabulary) -> Tokenizer | TrainedVocabulary:
    return trained_vocabulary_of(model) or tokenizer_of(cast(Model, model))


def _splits(model: Tokenizer | TrainedVocabulary, parse_special: bool) -> SplittingModel:
    if isinstance(model, Tokenizer):
        encode = model.encode_with_offsets_to_numpy
        return SplittingModel(
            partial(encode, add_special=False, parse_special=parse_special), partial(piece_or_nothing, model)
        )

    def offsets(text: bytes) -> tuple[Any, Any]:
        import numpy as np

        tokens = trace_text(model, utf8_text(text), parse_special=parse_special).tokens
        spans = np.array([(token.start, token.end) for token in tokens], np.int64).reshape(-1, 2)
        return np.array([token.id for token in tokens], np.int32), spans

    return SplittingModel(offsets, model.token_bytes)
