"""Endpoints of llama-server, OpenAI, Anthropic and Ollama that need a model's weights, which this server never reads.

Source: the routes in tools/server/server.cpp; Ollama's API (docs/api.md).
"""

from __future__ import annotations

from .failures import RequestError

_GENERATING = (
    *("/completion", "/completions", "/v1/completions", "/chat/completions"),
    *("/v1/chat/completions", "/v1/chat/completions/control", "/responses"),
    *("/v1/responses", "/v1/messages", "/infill", "/audio/transcriptions"),
    *("/v1/audio/transcriptions", "/api/generate", "/api/chat"),
)
_MEASURING = (
    *("/embedding", "/embeddings", "/v1/embeddings", "/rerank", "/reranking", "/v1/rerank"),
    *("/v1/reranking", "/api/embed", "/api/embeddings"),
)
NEEDING_WEIGHTS = frozenset(
    [("POST", path) for path in (*_GENERATING, *_MEASURING, "/lora-adapters")]
    + [("GET", path) for path in ("/slots", "/lora-adapters")]
)


def needs_weights(path: str) -> RequestError:
    """Return the error (501) for a path of `NEEDING_WEIGHTS`."""
    return RequestError(
        501,
        "this server only counts: it reads the tokenizer of a model, not the weights, and cannot answer "
        f"{path}; run llama-server for that",
    )
