"""`ggufbpe.explain`: traces how a text or a chat becomes tokens.

For a long text, the command traces only the part looked at (survey.py, long_text_parts.py), with the same steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from ..._util.lazy import IMPORT_LOCK
from ...data.training.load_vocabulary import trained_vocabulary_of, utf8_text
from ...data.training.trace_text import trace_text
from ...data.training.trained_vocabulary import TrainedVocabulary
from ...tokenizer.inputs import Model, TextOrPath, text_of, tokenizer_of
from ...tokenizer.trace import Trace


def explain(
    model: Model | TrainedVocabulary,
    text: TextOrPath | Sequence[Mapping[str, Any]] | Mapping[str, Any],
    *,
    add_special: bool = True,
    parse_special: bool = True,
    chat_template: str | None = None,
    now: datetime | None = None,
) -> Trace:
    """Return the `Trace` of a text: its special tokens, what normalization changed, words, merges and tokens.

    `model` is a `Tokenizer`, a `TrainedVocabulary` or the path of a file, `text` a `str`, bytes, or the `pathlib.Path`
    of a file; the flags are those of `Tokenizer.encode`. All of it is kept, in memory about a thousand times the text.
    Offsets are in bytes of the text. `UnsupportedTokenizerError` for a model whose steps cannot be traced.

    A list of messages, or the whole body of a request, is a chat: its prompt is explained, and the `chat` of the trace
    says which part of that the template says, which a message, and what of a message became a special token.
    `chat_template` and `now` are those of `Tokenizer.apply_chat_template`; `ChatError` where that raises it.

    >>> found = explain("model.gguf", " low")
    >>> [merge.rank for merge in found.words[0].merges]
    [44, 66, 1621]
    """
    is_chat = isinstance(text, (Mapping, list, tuple))
    trained = trained_vocabulary_of(model)
    if trained is not None:
        if is_chat:
            raise ValueError("a vocabulary that was trained has no chats; save it as a GGUF")
        plain = utf8_text(text_of(cast(TextOrPath, text)))
        return trace_text(trained, plain, parse_special=parse_special)
    tokenizer = tokenizer_of(cast(Model, model))
    if not is_chat:
        return tokenizer.trace(
            text_of(cast(TextOrPath, text)), add_special=add_special, parse_special=parse_special
        )
    if not (add_special and parse_special):
        raise ValueError("special tokens are always added and parsed in chats")
    with IMPORT_LOCK:
        from ...chat.token_origins import chat_tokens
    body = text if isinstance(text, Mapping) else {"messages": text}
    chat = chat_tokens(tokenizer, tokenizer.chats.parts(body, chat_template, now))
    return tokenizer.trace(chat.rendered.prompt)._replace(chat=chat)
