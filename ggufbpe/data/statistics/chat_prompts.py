"""Makes the prompts of a corpus of chats, one for each model, by its own template or by one for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from ..._util.errors import ChatError, escape_invisible
from ...tokenizer import Tokenizer
from ..corpora.chat_records import PREFERENCES, Preference, chat_of_record
from .measure import Measures, Stats
from .text_groups import PromptsOf


def prompts_maker(
    named: Mapping[str, Tokenizer], chat_template: str | None, preference: Preference | None
) -> PromptsOf:
    """Return a function that makes the prompts of a record, as `encode_corpus` makes them with `chats`.

    It raises `ChatError` if one of the models refuses the chat, and `ValueError` for a record that has none.
    `NoTemplateError` if a model has no template and none is given. Of several models, these errors name the one.
    """
    from ...chat.known_templates import resolved

    if preference not in (None, *PREFERENCES):
        raise ValueError(f"preference is 'chosen' or 'rejected', not {preference!r}")
    template, now = resolved(chat_template), datetime.now()
    models = {name if len(named) > 1 else "": tokenizer for name, tokenizer in named.items()}
    for name, tokenizer in models.items():
        with _naming(name):
            tokenizer.chats.require_template(template)

    def prompts(record: Mapping[str, Any]) -> list[bytes]:
        chat = chat_of_record(record, preference)
        if not chat.messages:
            raise ValueError("a chat without messages")
        made = []
        for name, tokenizer in models.items():
            with _naming(name):
                made.append(tokenizer.chats.prompt(chat.body, template, now, whole=True))
        return made

    return prompts


@contextmanager
def _naming(model: str) -> Iterator[None]:
    """Put the name of a model before the message of a `ChatError`, unless it is ""."""
    try:
        yield
    except ChatError as error:
        if model:
            error.args = (f"{escape_invisible(model)}: {error}",)
        raise


def side_by_side(found: Sequence[Stats]) -> Stats:
    """Join the statistics of single models, which have the same groups."""
    rows: list[Measures] = [row for of_group in zip(*(each.rows for each in found)) for row in of_group]
    return Stats(
        [usage for each in found for usage in each.usage],
        rows,
        [row for each in found for row in each.total],
        found[0].skipped,
    )
