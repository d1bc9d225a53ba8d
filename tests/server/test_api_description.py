"""The description of the API, held to the table of endpoints."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ggufbpe.chat.fitting import FitPolicy
from ggufbpe.server import answer_schemas
from ggufbpe.server.api_description import description, description_page
from ggufbpe.server.endpoints import ENDPOINTS, Endpoint

OPERATIONS = {
    (path, method): operation
    for path, methods in description()["paths"].items()
    for method, operation in methods.items()
}


def test_every_endpoint_is_described_once() -> None:
    endpoints = {(each.path, each.method.lower()) for each in ENDPOINTS.values()}
    assert set(OPERATIONS) == {*endpoints, ("/metrics", "get")}
    ids = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(ids)) == len(ids)


def test_an_operation_has_its_summary_examples_and_types() -> None:
    for endpoint in ENDPOINTS.values():
        operation = OPERATIONS[endpoint.path, endpoint.method.lower()]
        assert operation["summary"] == endpoint.summary
        statuses = {"200", "400", "401", "403", "408", "413", "415", "429", "431", "500", "501", "503"}
        statuses |= {"404"} if endpoint.path.startswith("/api/") else set()
        assert set(operation["responses"]) == statuses
        assert [each["name"] for each in operation.get("parameters", [])] == list(endpoint.query)
        assert ("requestBody" in operation) == bool(endpoint.examples)
        if endpoint.examples:
            content = operation["requestBody"]["content"]["application/json"]
            assert [each["value"] for each in content["examples"].values()] == list(endpoint.examples)
            assert set(content["schema"]["properties"]) == {"model"}.union(*endpoint.examples)


def properties_of(path: str) -> Any:
    """The fields of a request."""
    operation = OPERATIONS[path, "post"]
    return operation["requestBody"]["content"]["application/json"]["schema"]["properties"]


def test_types_of_fields() -> None:
    properties = properties_of("/v1/count")
    assert properties["model"] == {"type": "string"}
    assert properties["texts"] == {"type": ["array", "string"]}  # of both examples


TAKE = {
    ("add_special", "parse_special"): [
        "/tokenize",
        *(each.path for each in ENDPOINTS.values() if "given_flags(" in inspect.getsource(each.answer)),
    ],
    ("chat_template",): ["/v1/fit", "/v1/explain", "/tokenize"],
    ("tools", "tool_choice", "chat_template_kwargs"): [
        *("/tokenize", "/apply-template", "/v1/fit", "/v1/explain", "/v1/diagnose", "/v1/tokens"),
        *("/chat/completions/input_tokens", "/v1/chat/completions/input_tokens", "/v1/messages/count_tokens"),
        *("/responses/input_tokens", "/v1/responses/input_tokens"),
    ],
    ("add_generation_prompt",): [
        "/tokenize",
        "/apply-template",
        "/v1/explain",
        "/chat/completions/input_tokens",
    ],
}


@pytest.mark.parametrize(
    ("path", "fields"), [(path, fields) for fields, paths in TAKE.items() for path in paths]
)
def test_fields_that_endpoints_take_are_described(path: str, fields: tuple[str, ...]) -> None:
    assert set(fields) <= set(properties_of(path))


def test_fields_of_few_values_have_them() -> None:
    assert properties_of("/v1/truncate")["side"] == {"enum": ["right", "left", "middle"]}
    assert properties_of("/v1/truncate")["at"] == {"enum": ["character", "word"]}
    assert properties_of("/v1/split")["keep_separator"] == {"enum": ["end", "start", False]}
    assert {"paragraph", "token"} <= set(properties_of("/v1/split")["boundaries"]["enum"])
    keep = properties_of("/v1/fit")["keep"]
    assert keep["properties"]["shorten_to"] == {"type": "integer", "default": 256}
    assert keep["properties"]["shorten"] == {"type": "array", "items": {"type": "string"}, "default": []}
    assert keep["properties"]["side"]["enum"] == ["right", "left", "middle"]
    assert FitPolicy.of({name: each["default"] for name, each in defaults(keep)}) == FitPolicy()


def defaults(keep: Any) -> Any:
    """The fields of `keep`, with arrays as Python has them."""
    return [
        (name, {**each, "default": tuple(each["default"])} if each["type"] == "array" else each)
        for name, each in keep["properties"].items()
    ]


def answer_schema(path: str, method: str) -> Any:
    """The schema of an answer, with what it refers to."""
    content = OPERATIONS[path, method]["responses"]["200"]["content"]["application/json"]
    return {**content["schema"], "components": description()["components"]}


def test_every_schema_is_that_of_an_answer() -> None:
    returned = [id(each.returns) for each in ENDPOINTS.values()]
    unused = [
        name for name, schema in vars(answer_schemas).items() if name.isupper() and id(schema) not in returned
    ]
    assert [name for name in unused if not name.startswith("_")] == []


@pytest.mark.parametrize("endpoint", ENDPOINTS.values(), ids=lambda each: each.path)
def test_the_schema_of_an_answer_says_something(endpoint: Endpoint) -> None:
    schema = answer_schema(endpoint.path, endpoint.method.lower())
    Draft202012Validator.check_schema(schema)
    assert not Draft202012Validator(schema).is_valid({})
    referred = re.findall(r'"\$ref": "([^"]+)"', json.dumps(schema))
    definitions = {f"#/components/schemas/{name}" for name in description()["components"]["schemas"]}
    assert set(referred) <= definitions


def test_the_page_names_every_endpoint() -> None:
    page = "".join(description_page())
    assert all(endpoint.path in page for endpoint in ENDPOINTS.values())
    assert "<script" not in page
