"""The token counts of requests that llama-server's `/infill` and `/rerank` take.

Source: post_infill and post_rerank in tools/server/server-context.cpp.
"""

from __future__ import annotations

from typing import Any

from .._util.utf8 import byte_length
from .failures import RequestError
from .request_body import (
    MOST_DOCUMENTS,
    MOST_PAIRED,
    check_size,
    given_texts,
    require_object,
    required_text,
)
from .served_models import Models


def count_infill(models: Models, body: Any) -> dict[str, Any]:
    """`/infill/input_tokens`: the token count of `input_prefix`, `input_suffix`, `prompt` and `input_extra`.

    All of the other files counts, since the context in which llama-server would cut them is not known. `RequestError`
    501, as from llama-server, for a model that cannot fill in.
    """
    given = require_object(body)
    prefix, suffix = required_text(given, "input_prefix"), required_text(given, "input_suffix")
    prompt = required_text(given, "prompt") if given.get("prompt") is not None else ""
    extra = given.get("input_extra", [])
    if not isinstance(extra, list) or not all(map(_is_file, extra)):
        raise RequestError(400, "'input_extra' must be an array of objects with a string 'text'")
    tokenizer = models.of(body)
    try:
        return _counted(len(tokenizer.encode_infill(prefix, suffix, prompt, extra)))
    except ValueError as error:
        raise RequestError(501, str(error)) from None


def _is_file(given: Any) -> bool:
    return (
        isinstance(given, dict)
        and isinstance(given.get("text"), str)
        and isinstance(given.get("filename", ""), str)
    )


def count_rerank(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/rerank/input_tokens`: the token counts of `query` with each of `documents` or `texts`, and their sum.

    A model's template for pairs puts a document wherever the query has "{document}", as llama-server does.
    """
    given = require_object(body)
    query = required_text(given, "query")
    documents = given_texts(given, "documents" if "documents" in given else "texts", MOST_DOCUMENTS)
    size = byte_length(query) * len(documents)
    if places := query.count("{document}"):
        size += places * sum(map(byte_length, documents))
    check_size(size, MOST_PAIRED, "query, once for each document,")
    tokenizer = models.of(body)
    counts = [len(tokenizer.encode_pair(query, document)) for document in documents]
    return {**_counted(sum(counts)), "documents": counts}


def _counted(count: int) -> dict[str, Any]:
    return {"input_tokens": count, "object": "response.input_tokens"}
