"""The texts in the content of a message, which is a text or a list of parts, and cutting them to a number of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .prompt_tokenizer import PromptTokenizer, Side


def texts_of(content: Any) -> list[str]:
    """Return the texts of a message's content: the content itself, or the text of each part that has one."""
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in _parts(content) if _has_text(part)]


def cut_content(
    tokenizer: PromptTokenizer, content: Any, size: int, side: Side, marker: str
) -> tuple[Any, int] | None:
    """Return `content` with its texts cut to at most `size` tokens in all, and how many that saves.

    None if they fit, or cannot be cut further. The longest text is cut first, down to `marker`, and the next one if
    that is not enough. Parts without a text stay.
    """
    texts = texts_of(content)
    if not texts or (len(texts) == 1 and tokenizer.fits(texts[0], size)):
        return None
    counts = [tokenizer.count(text, add_special=False) for text in texts]
    too_many, saved = sum(counts) - size, 0
    least = tokenizer.count(marker, add_special=False)
    for number in sorted(range(len(texts)), key=counts.__getitem__, reverse=True):
        if saved >= too_many:
            break
        room = max(counts[number] - (too_many - saved), least)
        texts[number] = tokenizer.truncate(texts[number], room, side=side, marker=marker)
        saved += counts[number] - tokenizer.count(texts[number], add_special=False)
    return (_with_texts(content, texts), saved) if saved > 0 else None


def _with_texts(content: Any, texts: Sequence[str]) -> Any:
    if isinstance(content, str):
        return texts[0]
    left = iter(texts)
    return [{**part, "text": next(left)} if _has_text(part) else part for part in content]


def _parts(content: Any) -> Sequence[Any]:
    return content if isinstance(content, Sequence) and not isinstance(content, bytes) else ()


def _has_text(part: Any) -> bool:
    return isinstance(part, Mapping) and isinstance(part.get("text"), str)
