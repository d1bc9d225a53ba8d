"""Where a model of Ollama's registry is, by its manifest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ggufbpe._util.errors import RemoteAccessError, RemoteError, RemoteNotFoundError
from ggufbpe.hub.name_grammar import OllamaName
from ggufbpe.hub.remote.ollama_registry import MANIFEST, address, locate_in_registry
from ggufbpe.hub.stores.stored_model import LARGEST_JSON

DIGEST = f"sha256:{'0' * 63}a"
NAME = OllamaName("small", "1b")
MODEL = {"mediaType": "application/vnd.ollama.image.model", "digest": DIGEST, "size": 7}


class Answering:
    """A client with one answer, which notes what it is asked and whether the answer was closed."""

    def __init__(self, answer: bytes | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Any]] = []
        self.closed = 0

    def get(self, url: str, headers: Any) -> Any:
        self.asked.append((url, headers))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self

    def blocks(self, response: Any, start: int, end: int) -> Iterator[bytes]:
        assert isinstance(self.answer, bytes)
        yield self.answer[start:end]

    def close(self) -> None:
        self.closed += 1


def manifest(*layers: Any) -> bytes:
    """A manifest of these layers."""
    return json.dumps({"schemaVersion": 2, "layers": list(layers)}).encode()


def test_address() -> None:
    assert address(NAME) == "https://registry.ollama.ai/v2/library/small"
    assert address(OllamaName("m", "t", "ns", "host:80", "http")) == "http://host:80/v2/ns/m"


def test_location() -> None:
    client = Answering(manifest({**MODEL, "mediaType": "application/vnd.ollama.image.license"}, MODEL))
    location = locate_in_registry(NAME, client)  # type: ignore[arg-type]
    assert location[:2] == ("ollama:small:1b", f"{address(NAME)}/blobs/{DIGEST}")
    assert location[-2:] == (DIGEST, 7)
    assert client.asked == [(f"{address(NAME)}/manifests/1b", {"Accept": MANIFEST})]
    assert client.closed == 1


REFUSED: dict[str, tuple[bytes | Exception, type[RemoteError]]] = {
    "what the registry sends is not a manifest": (b"<html>", RemoteError),
    "the manifest is longer than": (b" " * (LARGEST_JSON + 1), RemoteError),
    "the manifest has no GGUF": (manifest(), RemoteNotFoundError),
    "the digest of the model is malformed": (manifest({**MODEL, "digest": f"../{DIGEST}"}), RemoteError),
    "the size of the model is malformed": (manifest({**MODEL, "size": True}), RemoteError),
    "the registry has no such model, or no such tag": (
        RemoteNotFoundError("x", path="m"),
        RemoteNotFoundError,
    ),
    "`ollama pull small:1b` logs in": (RemoteAccessError("x", path="m"), RemoteAccessError),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str) -> None:
    answer, kind = REFUSED[message]
    client = Answering(answer)
    with pytest.raises(kind) as refusal:
        locate_in_registry(NAME, client)  # type: ignore[arg-type]
    assert type(refusal.value) is kind
    assert message in str(refusal.value)
    assert client.closed == (not isinstance(answer, Exception))
