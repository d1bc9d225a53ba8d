"""`/tokenize` and `/detokenize` as in vLLM, and `/api/tokenize` and `/api/detokenize` as proposed for Ollama.

vLLM uses the same paths as llama-server. Its requests have `prompt` or `messages` where llama-server's have `content`,
and `model` beside `tokens`. Its chats are encoded as `/v1/chat/completions/input_tokens` does it: there is one BOS,
whether the template or the tokenizer writes it.

Source: vllm/entrypoints/openai/protocol.py (TokenizeRequest, DetokenizeRequest); the pull requests for Ollama that
expose its runner's tokenize, which adds no BOS, at these paths.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from .failures import RequestError
from .llama_server import detokenize_answer, pieces_text, render_chat, template_in_force, tokenize_answer
from .request_body import (
    field,
    given_flag,
    given_template,
    has_field,
    require_ids,
    require_object,
    required_text,
)
from .served_models import Models
from .streamed_answers import Items


def tokenize_either(models: Models, body: Any) -> dict[str, Any]:
    """`/tokenize`: the ids of `content` as in llama-server, or of `prompt` or `messages` as in vLLM."""
    if has_field(body, "content") or not (has_field(body, "prompt") or has_field(body, "messages")):
        return tokenize_answer(models, body)
    tokenizer, facts = models.opened(models.chosen(body))
    if has_field(body, "messages"):
        ids = tokenizer.encode_to_numpy(
            render_chat(models, tokenizer, body, given_template(body, tokenizer.chat_templates))
        )
    else:
        adds = given_flag(body, "add_special_tokens", True)
        ids = tokenizer.encode_to_numpy(required_text(body, "prompt"), add_special=adds)
    with_texts = field(body, "return_token_strs", False)
    return {
        "count": len(ids),
        "max_model_len": facts["n_ctx_train"],
        "tokens": ids,
        "token_strs": Items(ids, tokenizer.id_to_token) if with_texts else None,
    }


def detokenize_either(models: Models, body: Any) -> dict[str, Any]:
    """`/detokenize`: the text of `tokens`, as `content` as in llama-server and as `prompt` as in vLLM."""
    answer = detokenize_answer(models, body)
    return {**answer, "prompt": answer["content"]}


def tokenizer_info(models: Models, body: Any) -> dict[str, Any]:
    """`/tokenizer_info`: the texts of BOS, EOS and padding, and the chat template, for lm-evaluation-harness."""
    tokenizer = models.of(body)
    template, _ = template_in_force(tokenizer)
    return {
        "tokenizer_class": "ggufbpe",
        "vocab_size": len(tokenizer),
        "bos_token": tokenizer.bos_token,
        "eos_token": tokenizer.eos_token,
        "pad_token": tokenizer.pad_token,
        "unk_token": tokenizer.unk_token,
        "add_bos_token": tokenizer.add_bos,
        "add_eos_token": tokenizer.add_eos,
        "chat_template": template,
    }


def ollama_tokenize(models: Models, body: Any) -> dict[str, Any]:
    """`/api/tokenize`: the ids of `content` without BOS and EOS, and the time taken in nanoseconds."""
    start = time.perf_counter_ns()
    name = ollama_model(models, require_object(body))
    content = required_text(body, "content")
    tokenizer = models.named(name)
    opened = time.perf_counter_ns()
    ids = tokenizer.encode_to_numpy(content, add_special=False)
    return {"model": body.get("model", name), "tokens": ids, **_durations(start, opened)}


def ollama_detokenize(models: Models, body: Any) -> dict[str, Any]:
    """`/api/detokenize`: the text of `tokens`."""
    start = time.perf_counter_ns()
    name = ollama_model(models, require_object(body))
    tokens = require_ids(body.get("tokens"))
    tokenizer = models.named(name)
    opened = time.perf_counter_ns()
    return {
        "model": body.get("model", name),
        "content": pieces_text(tokenizer, tokens),
        **_durations(start, opened),
    }


def ollama_model(models: Models, body: dict[str, Any]) -> str:
    """Return the served name of the model in a body; ":latest" and the prefix "ollama:" may be left out.

    A single model answers whatever the name is. `RequestError` 404 if none of several models has the name.
    """
    name = required_text(body, "model")
    if len(models.paths) == 1:
        return models.default
    for spelling in (name, name.removesuffix(":latest"), f"ollama:{name}"):
        with suppress(RequestError):
            return models.known(spelling)
    raise RequestError(404, f"model '{name}' not found", reason="model not found")


def _durations(start: int, opened: int) -> dict[str, int]:
    return {"total_duration": time.perf_counter_ns() - start, "load_duration": opened - start}
