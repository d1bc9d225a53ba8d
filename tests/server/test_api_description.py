"""The description of the API, held to the table of endpoints."""

from __future__ import annotations

from ggufbpe.server.api_description import description, description_page
from ggufbpe.server.endpoints import ENDPOINTS

OPERATIONS = {
    (path, method): operation
    for path, methods in description()["paths"].items()
    for method, operation in methods.items()
}


def test_every_endpoint_is_described_once() -> None:
    assert set(OPERATIONS) == {(each.path, each.method.lower()) for each in ENDPOINTS.values()}
    ids = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(ids)) == len(ids)


def test_an_operation_has_its_summary_examples_and_types() -> None:
    for endpoint in ENDPOINTS.values():
        operation = OPERATIONS[endpoint.path, endpoint.method.lower()]
        assert operation["summary"] == endpoint.summary
        assert set(operation["responses"]) == {"200", "400", "401", "403", "413", "429", "503"}
        assert [each["name"] for each in operation.get("parameters", [])] == list(endpoint.query)
        assert ("requestBody" in operation) == bool(endpoint.examples)
        if endpoint.examples:
            content = operation["requestBody"]["content"]["application/json"]
            assert [each["value"] for each in content["examples"].values()] == list(endpoint.examples)
            assert set(content["schema"]["properties"]) == {"model"}.union(*endpoint.examples)


def test_types_of_fields() -> None:
    [operation] = [each for (path, _), each in OPERATIONS.items() if path == "/v1/count"]
    properties = operation["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert properties["model"] == {"type": "string"}
    assert properties["texts"] == {"type": ["array", "string"]}  # of both examples


def test_the_page_names_every_endpoint() -> None:
    page = "".join(description_page())
    assert all(endpoint.path in page for endpoint in ENDPOINTS.values())
    assert "<script" not in page
