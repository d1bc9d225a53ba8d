"""Describes the API, as OpenAPI (/openapi.json) and as a page (/docs)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from .. import LLAMA_CPP, __version__
from .._util.llama_cpp_states import CHATS
from ..analysis.views.html_page import rendered
from .answer_schemas import shared_definitions
from .endpoints import ENDPOINTS, Endpoint

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "type"],
            "properties": {
                "code": {"type": "integer"},
                "message": {"type": "string"},
                "type": {"type": "string"},
            },
        }
    },
}
_OLLAMA_ERROR = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
_ABOUT = (
    "Tokenizers of GGUF models, from their metadata alone. The endpoints of llama-server, vLLM and Ollama take "
    f"and return the same JSON as theirs (llama.cpp {CHATS}; ids are those of {LLAMA_CPP}). Of several models, the "
    "field model names one."
)
_REFUSALS = {
    "400": "The request is not valid.",
    "401": "The API key is missing or wrong.",
    "403": "The request comes from a page that may not send requests.",
    "404": "No model has this name.",
    "408": "The request has not arrived in time.",
    "413": "The request exceeds a limit of the server.",
    "415": "The body is compressed.",
    "429": "Too many requests are waiting.",
    "431": "The head of the request is too long.",
    "500": "The model cannot be read, or the server has failed.",
    "501": "The model's tokenizer is not supported, or the model lacks the tokens for this.",
    "503": "The answer takes too long, or the server holds too much.",
}
_BEFORE_THE_PATH = ("408", "431")  # refused before the path is known, so always in llama-server's form
_SCHEMAS = {str: "string", bool: "boolean", int: "integer", list: "array", dict: "object"}


@cache
def description() -> dict[str, Any]:
    """The description in OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS.values():
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    paths["/metrics"] = {"get": _metrics()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "ggufbpe serve", "version": __version__, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR, "OllamaError": _OLLAMA_ERROR, **shared_definitions()},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def _metrics() -> dict[str, Any]:
    """The one page that programs read."""
    content = {"text/plain": {"schema": {"type": "string"}}}
    return {
        "operationId": "get_metrics",
        "summary": "metrics in Prometheus's text format.",
        "responses": {
            "200": {"description": "The metrics.", "content": content},
            **_refusals("/metrics", ("401", "403")),
        },
    }


def _refusals(path: str, statuses: Iterable[str] = tuple(_REFUSALS)) -> dict[str, Any]:
    """The refusals of requests to a path. Below /api/, they have Ollama's form, and an unknown model gets 404."""
    is_below_api = path.startswith("/api/")
    refusals = {}
    for status in statuses:
        if status != "404" or is_below_api:
            name = "OllamaError" if is_below_api and status not in _BEFORE_THE_PATH else "Error"
            schema = {"$ref": f"#/components/schemas/{name}"}
            refusals[status] = {
                "description": _REFUSALS[status],
                "content": {"application/json": {"schema": schema}},
            }
    return refusals


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()}{endpoint.path.replace('/', '_').replace('-', '_')}",
        "summary": endpoint.summary,
        "responses": {
            "200": {
                "description": "The answer.",
                "content": {"application/json": {"schema": endpoint.returns}},
            },
            **_refusals(endpoint.path),
        },
    }
    if endpoint.query:
        operation["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": "string"}} for name in endpoint.query
        ]
    if endpoint.examples:
        examples = {
            f"example {number}": {"value": value} for number, value in enumerate(endpoint.examples, 1)
        }
        content = {"schema": _schema(endpoint), "examples": examples}
        operation["requestBody"] = {"required": True, "content": {"application/json": content}}
    return operation


def _schema(endpoint: Endpoint) -> dict[str, Any]:
    """The fields of the examples, with their types, or what the endpoint says of them."""
    type_names: dict[str, list[str]] = {"model": ["string"]}
    for example in endpoint.examples:
        for name, value in example.items():
            types, kind = type_names.setdefault(name, []), _SCHEMAS[type(value)]
            types += [kind] * (kind not in types)
    properties: dict[str, Any] = {name: _type_of(types) for name, types in type_names.items()}
    properties |= endpoint.fields
    schema = {"type": "object", "properties": properties}
    return {**schema, "required": list(endpoint.required)} if endpoint.required else schema


def _type_of(types: list[str]) -> dict[str, Any]:
    return {"type": types if len(types) > 1 else types[0]}


def description_page() -> Iterator[str]:
    """The description of the API as an HTML page, without scripts and external resources."""
    return rendered(
        "server.html",
        title="ggufbpe serve",
        model="",
        about=_ABOUT,
        version=__version__,
        endpoints=tuple(ENDPOINTS.values()),
    )
