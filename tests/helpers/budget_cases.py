"""Random texts and chats that must fit, each held to brute force: what `truncate`, `split` and `fit_chat` must give."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

import pytest
from budget_texts import random_text
from conftest import GPT2

from ggufbpe import ChatError, Tokenizer
from ggufbpe.tokenizer.boundaries import BOUNDARIES

NOW = datetime(2026, 1, 1)
TEMPLATES = ("known:Qwen-Qwen3-0.6B", "known:google-gemma-2-2b-it", "known:chatml")
WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "runs", "away")
CHATS = Tokenizer.from_gguf(GPT2)


# ---- truncate ----------------------------------------------------------------------------------------


def longest(tok: Tokenizer, text: str, limit: int, side: str, marker: str) -> str | None:
    """The longest part by brute force; None if even the marker does not fit."""
    if tok.count(text, add_special=False) <= limit:
        return text
    for size in range(len(text) - 1, -1, -1):
        head = {"right": size, "left": 0, "middle": (size + 1) // 2}[side]
        part = text[:head] + marker + text[len(text) - size + head :]
        if tok.count(part, add_special=False) <= limit:
            return part
    return None


def check_truncate(tok: Tokenizer, dice: random.Random, words: tuple[int, ...] = (1, 2, 5, 20)) -> None:
    """`AssertionError` unless a random text is cut to its longest part."""
    text = random_text(dice, dice.choice(words))
    limit = dice.randint(0, tok.count(text, add_special=False) + 1)
    side: Any = dice.choice(("right", "left", "middle"))
    marker = dice.choice(("", "…", " [..] "))
    expected = longest(tok, text, limit, side, marker)
    if expected is None:
        with pytest.raises(ValueError, match="the marker alone has"):
            tok.truncate(text, limit, side=side, marker=marker)
        return
    found = tok.truncate(text, limit, side=side, marker=marker)
    assert found == expected, (text, limit, side, marker)
    in_bytes = tok.truncate(text.encode(), limit, side=side, marker=marker)
    assert in_bytes == found.encode(), (text, limit, side, marker)


# ---- split -------------------------------------------------------------------------------------------


def check_split(tok: Tokenizer, dice: random.Random, words: tuple[int, ...] = (0, 1, 2, 10, 60)) -> None:
    """`AssertionError` unless the parts of a random text cover it in order, and each part and overlap fits."""
    text = random_text(dice, dice.choice(words))
    size = dice.choice((1, 2, 3, 8, 20, 100))
    overlap = dice.choice((0, 0, dice.randrange(size)))
    keep: Any = dice.choice(("end", "start"))
    boundaries = dice.choice([*BOUNDARIES])
    given = text, size, overlap, boundaries, keep
    spans = tok.split(*given)
    done = 0
    for start, end in spans:
        assert start <= done < end, given
        assert tok.fits(text[start:end], size) or end == start + 1, given
        assert start == done or tok.fits(text[start:done], overlap), given
        done = end
    assert done == len(text), given
    in_bytes = tok.split(text.encode(), *given[1:])
    places = [place for span in spans for place in span]
    assert [len(text[:place].encode()) for place in places] == [n for span in in_bytes for n in span], given


# ---- fit_chat ----------------------------------------------------------------------------------------


def random_words(dice: random.Random, words: int) -> str:
    """So many of `WORDS`."""
    return " ".join(dice.choices(WORDS, k=words))


def random_chat(dice: random.Random, tools: bool) -> list[dict[str, Any]]:
    """Up to seven turns, with calls and results of tools if `tools`."""
    found = [{"role": "system", "content": random_words(dice, 9)}] if dice.random() < 0.5 and tools else []
    for number in range(dice.randint(1, 6)):
        found.append({"role": "user", "content": random_words(dice, dice.randint(1, 30))})
        if tools and dice.random() < 0.4:
            call = {
                "type": "function",
                "id": f"call{number:05}",
                "function": {"name": "f", "arguments": "{}"},
            }
            found.append({"role": "assistant", "content": "", "tool_calls": [call]})
            content = random_words(dice, dice.choice((2, 40, 100)))
            found.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        found.append({"role": "assistant", "content": random_words(dice, dice.randint(1, 30))})
    return [*found, {"role": "user", "content": "end"}]


def chat_count(messages: list[dict[str, Any]], template: str) -> int:
    """The tokens of a chat's prompt."""
    return len(CHATS.apply_chat_template(messages, chat_template=template, now=NOW))


def check_fit_chat(template: str, dice: random.Random) -> None:
    """`AssertionError` unless the fewest messages of a random chat are left out."""
    chat = random_chat(dice, tools="gemma" not in template)
    limit = dice.randint(10, chat_count(chat, template) + 2)
    users = [number for number, message in enumerate(chat) if message["role"] == "user"]
    system = [message for message in chat if message["role"] == "system"]
    candidates = {n: chat if n == users[0] else [*system, *chat[n:]] for n in users}
    fitting = [n for n, messages in candidates.items() if chat_count(messages, template) <= limit]
    if not fitting:
        with pytest.raises(ChatError, match="the chat does not fit"):
            CHATS.fit_chat(chat, limit, chat_template=template, now=NOW)
        return
    fitted = CHATS.fit_chat(chat, limit, chat_template=template, now=NOW)
    assert fitted.messages == [*system, *chat[fitting[0] :]], (chat, limit)
    assert fitted.dropped == tuple(range(len(system), fitting[0])), (chat, limit)
    assert fitted.count == chat_count(fitted.messages, template) <= limit, (chat, limit)
    assert fitted.renderings <= 12, (chat, limit)
