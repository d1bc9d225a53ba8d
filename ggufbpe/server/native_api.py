"""This project's own endpoints. Most answer with what a command prints with `--json`.

Models are given by name, never by path, and texts as strings, never as files.
"""

from __future__ import annotations

from typing import Any

import orjson

from ..analysis.diagnose.id_diagnosis import diagnose
from ..analysis.explain.explain_text import explain
from ..analysis.explain.why_not import why_not
from ..analysis.verify.model_diff import diff
from ..tokenizer import Tokenizer
from .failures import RequestError
from .llama_server import render_chat
from .request_body import (
    MOST_COMPARED,
    MOST_SEARCHED,
    MOST_TEXTS,
    MOST_TRACED,
    bounded_text,
    check_size,
    given_flags,
    given_template,
    given_texts,
    require_object,
    required_ids,
    required_text,
)
from .served_models import Models


def count_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/count`: the number of tokens of each of `texts`, and their sum."""
    given = require_object(body)
    texts = given_texts(given, "texts", MOST_TEXTS)
    flags = given_flags(given)
    tokenizer = models.of(body)
    counts = [tokenizer.count(text, **flags) for text in texts]
    return {"counts": counts, "total": sum(counts)}


def common_prefix_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/common_prefix`: how many of `tokens` are the first ids of `content`, and where and why the rest differ.

    `position` is in bytes of `content`, and `cause` is empty if nothing differs, as in `Tokenizer.common_prefix`.
    """
    given = require_object(body)
    tokens = required_ids(given, "tokens", MOST_COMPARED)
    text = bounded_text(required_text(given, "content"), MOST_COMPARED)
    flags = given_flags(given)
    return models.of(body).common_prefix(tokens, text, **flags)._asdict()


def explain_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/explain`: each step from `text`, or the chat in `messages`, to its ids, as `ggufbpe explain --json`.

    With `why_not`, a piece, it says why the piece is not among the tokens of the text. `chat_template` is a template
    in place of the model's.
    """
    given = require_object(body)
    flags = given_flags(given)
    if "messages" in given:
        tokenizer = models.of(body)
        template = given_template(given, tokenizer.chat_templates)
        check_size(len(render_chat(models, tokenizer, given, template)), MOST_TRACED)
        return explain(tokenizer, given, chat_template=template).to_dict()
    text = bounded_text(required_text(given, "text"), MOST_TRACED)
    tokenizer = models.of(body)
    if "why_not" in given:
        piece = bounded_text(required_text(given, "why_not"), MOST_TRACED)
        return why_not(tokenizer, text, piece, **flags).to_dict()
    return explain(
        tokenizer, text, add_special=flags["add_special"], parse_special=flags["parse_special"]
    ).to_dict()


def diff_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/diff`: how two models differ, as `ggufbpe diff --json`, and where they encode `texts` differently."""
    given = require_object(body)
    names = given.get("models")
    if not isinstance(names, list) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise RequestError(400, "'models' must be an array of two names")
    texts = given_texts(given, "texts", MOST_TEXTS) if "texts" in given else []
    bounded_text("".join(texts), MOST_SEARCHED)
    a, b = (models.named(models.known(name)) for name in names)
    return diff(a, b, texts).to_dict()


def diagnose_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/diagnose`: why `ids` are not those of `text` or the chat in `messages`, as `ggufbpe diagnose --json`.

    `others` are names of models that the ids may come from. A chat may have `expected_prompt` instead of `ids`.
    """
    given = require_object(body)
    others = given_texts(given, "others", len(models.paths)) if "others" in given else []
    tokenizers: list[Tokenizer] = [models.named(models.known(name)) for name in others]
    if "messages" in given:
        return _diagnosis_of_chat(models.of(body), given, tokenizers)
    text = bounded_text(required_text(given, "text"), MOST_SEARCHED)
    flags = given_flags(given)
    return diagnose(
        models.of(body),
        text,
        required_ids(given, "ids", MOST_SEARCHED),
        others=tokenizers,
        add_special=flags["add_special"],
        parse_special=flags["parse_special"],
    ).to_dict()


def _diagnosis_of_chat(
    tokenizer: Tokenizer, given: dict[str, Any], others: list[Tokenizer]
) -> dict[str, Any]:
    chat = {name: value for name, value in given.items() if name not in _EXPECTED}
    try:
        size = len(orjson.dumps(chat))
    except TypeError:  # orjson writes 254 levels and reads 1024
        raise RequestError(400, "the chat is nested too deeply") from None
    check_size(size, MOST_SEARCHED, "chat")
    if "expected_prompt" not in given:
        return diagnose(
            tokenizer, chat=chat, ids=required_ids(given, "ids", MOST_SEARCHED), others=others
        ).to_dict()
    if "ids" in given:
        raise RequestError(400, "a chat has either 'ids' or 'expected_prompt'")
    prompt = bounded_text(required_text(given, "expected_prompt"), MOST_SEARCHED)
    return diagnose(tokenizer, chat=chat, expected_prompt=prompt, others=others).to_dict()


_EXPECTED = ("ids", "expected_prompt")
