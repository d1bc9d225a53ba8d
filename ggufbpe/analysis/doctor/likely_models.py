"""Tells which tokenizer model the tokens of a file were made for, where `tokenizer.ggml.model` names another one."""

from __future__ import annotations

from ...models import tokenizer_model
from ...models.format_detection import Looks, models_like
from ...models.known_families import family_of_tokens
from .facts import Facts
from .family_checks import splits_like


def likely_models(model: Facts) -> list[str]:
    """Return the models that the tokens look like, if they do not look like those of the model that the file names.

    A known family decides, then the traits of the tokens. Where merges are missing, tokens without learned scores may
    be those of byte pair encoding as well as those of a model with scores, so that nothing tells which it is.
    """
    kind, looks = model.kind, model.looks
    recognized = kind.recognizes(looks)
    is_unclear = recognized is None and (kind.own_pre or kind.has_sequences or not kind.is_supported)
    if recognized or is_unclear or not looks.is_telling:
        return []
    family = family_of_tokens(model.tokens)
    if family is not None:
        is_own = family.model == model.model or (kind.has_pre_tokenizer and splits_like(model.pre, family))
        return [] if is_own or tokenizer_model(family.model).recognizes(looks) is False else [family.model]
    likely = models_like(looks, model.model)
    if kind.algorithm == "merges" and not _has_learned_scores(looks):
        return [name for name in likely if not tokenizer_model(name).has_scores]
    return likely


def _has_learned_scores(looks: Looks) -> bool:
    return looks.has_ranks or looks.has_logarithms or looks.has_charsmap
