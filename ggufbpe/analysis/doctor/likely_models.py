"""Tells which tokenizer model the tokens of a file were made for, where `tokenizer.ggml.model` names another one."""

from __future__ import annotations

from ...models import format_detection
from .facts import Facts


def likely_models_for(model: Facts) -> list[str]:
    """Return the models that the file was likely made for, if its tokens speak against the one that it names."""
    return format_detection.likely_models(model.tokens, model.looks, model.model, model.pre)
