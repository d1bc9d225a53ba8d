"""Checks that no token which the chat template writes is of type UNUSED.

llama.cpp does not find such a token in a prompt as it finds control tokens, and shows nothing where the model generates
it. A reserved token that was renamed often keeps that type.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..._util.wording import counted, listed
from ...gguf.constants import TokenType
from ...models.vocabulary import UNUSED
from .chat_markers import literals_of
from .facts import Facts
from .finding import Finding
from .marker_types import set_marker_types
from .token_checks import BRACKETED, bracketed


def unused_in_template(model: Facts) -> list[int]:
    """Return the tokens of type UNUSED that are names in brackets and that the template has as text, ascending."""
    named = [
        token
        for token in bracketed(model)
        if model.tokens[token] in model.template
        and BRACKETED.fullmatch(model.tokens[token])
        and _is_unused(model, token)
    ]
    texts = literals_of(model.template) if named else []
    return [token for token in named if any(model.tokens[token] in text for text in texts)]


def unused_markers(model: Facts) -> Iterator[Finding]:
    """Tokens of type UNUSED that the chat template writes: a note for those that no sample prompt has."""
    prompts = model.rendered.text if model.rendered else ""
    found = unused_in_template(model)
    shown = [token for token in found if not prompts or model.tokens[token] in prompts]
    for severity, tokens in (("warning", shown), ("note", [token for token in found if token not in shown])):
        if tokens:
            yield _finding(model, severity, tokens)


def _finding(model: Facts, severity: str, tokens: list[int]) -> Finding:
    names = [f"{model.quoted(token)} (id {token})" for token in tokens]
    return Finding(
        severity,
        "unused_marker",
        "The chat template writes tokens that are stored as unused.",
        "llama.cpp does not take an unused token out of a prompt as one marker, and when the model generates it, "
        "nothing is shown.",
        set_marker_types(model, tokens),
        model.token(tokens[0]),
        {"count": len(tokens), "ids": tokens[:100], "texts": [model.tokens[token] for token in tokens[:100]]},
        f"{counted(len(tokens), 'token')} of the template {'is' if len(tokens) == 1 else 'are'} of type UNUSED: "
        f"{listed(names, len(names), shown=str)}.",
    )


def _is_unused(model: Facts, token: int) -> bool:
    """Check that a token is unused, and not made special by llama.cpp, as "<|im_end|>" is whatever its type."""
    if model.tokenizer is not None:
        return model.tokenizer.vocabulary.attributes[token] == UNUSED
    return model.type_of(token) == int(TokenType.UNUSED)
