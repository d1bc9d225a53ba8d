"""The chat template: whether its markers are tokens, and whether it writes a BOS that is added anyway."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import printable
from ..gguf.constants import TokenizerKey, TokenType
from ..vocab import CONTROL, UNKNOWN, USER_DEFINED
from ..wording import counted
from .facts import Facts
from .finding import Finding, Where

_K = TokenizerKey

_MARKER = re.compile(
    r"<\|[^|<>{}\s'\"]{1,60}\|>|<｜[^｜<>{}\s'\"]{1,60}｜>|\[/?INST\]|<</?SYS>>|"
    r"<(?:start|end)_of_turn>|<\|?turn\|?>|\[/?(?:SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]"
)
_PLAIN_MARKERS = re.compile(r"\[/?INST\]|<</?SYS>>")  # in Llama 2 they are text like any other
_JINJA_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)


def bos_twice(model: Facts) -> Iterator[Finding]:
    """A BOS that both the tokenizer and the template add."""
    tokenizer = model.tokenizer
    if tokenizer is None or not tokenizer.add_bos or tokenizer.bos_id is None:
        return
    template = _JINJA_COMMENT.sub("", model.template)
    text = tokenizer.vocabulary.tokens[tokenizer.bos_id]
    literally = text in template and tokenizer.bos_id != tokenizer.eos_id
    if literally or re.search(r"\bbos_token\b", template):
        written = printable(text) if literally else "bos_token"
        yield Finding(
            "warning",
            "bos_twice",
            f"BOS is added to every text, and the chat template writes it as well ({written})",
            "llama.cpp's own chat code takes one away. A program that renders the template itself and then encodes "
            "the result with special tokens added sends two, which many models answer worse.",
            "encode rendered prompts without adding BOS"
            + (
                ""
                if tokenizer.vocabulary.pre_tokenizer.always_add_bos
                else f", or {model.set(_K.ADD_BOS, 'false')}"
            ),
            model.key(_K.CHAT_TEMPLATE),
            {"bos": tokenizer.bos_id, "text": text},
        )


def chat_markers(model: Facts) -> Iterator[Finding]:
    """Markers of the chat template that are not one special token."""
    template = _JINJA_COMMENT.sub("", model.template)
    for marker in dict.fromkeys(_MARKER.findall(template)):
        token = model.ids.get(marker)
        if token is not None and _is_special(model, token):
            continue
        if token is None and model.tokenizer is None:
            pieces = "no token"
        elif token is None and model.tokenizer is not None:
            ids = model.tokenizer.encode(marker, add_special=False)
            pieces = f"no token, and becomes {counted(len(ids), 'token')}"
        else:
            pieces = f"token {token}, but an ordinary one, so it is cut like other text"
        plain = token is None and _PLAIN_MARKERS.fullmatch(marker) is not None
        yield Finding(
            "note" if plain else "warning",
            "chat_marker",
            f"the chat template has {printable(marker)}, which is {pieces}",
            "The model was trained with one special token there; pieces of text do not mean the same to it."
            if not plain
            else "In some models it is meant so, as in Llama 2.",
            "the template is of another model: set the right one with --set " + _K.CHAT_TEMPLATE
            if token is None
            else model.set_types(CONTROL=[token]),
            Where(_K.CHAT_TEMPLATE, token, model.key(_K.CHAT_TEMPLATE).offset),
            {"marker": marker},
        )


def _is_special(model: Facts, token: int) -> bool:
    if model.tokenizer is not None:
        return bool(model.tokenizer.vocabulary.attributes[token] & (CONTROL | USER_DEFINED | UNKNOWN))
    kinds = (TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.UNKNOWN)
    return model.type_of(token) in map(int, kinds)
