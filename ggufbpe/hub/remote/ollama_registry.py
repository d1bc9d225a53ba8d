"""Finds the address of a model in Ollama's registry, whose manifest says which blob is the model.

Source: server/images.go, pullModelManifest; server/download.go; types/model/name.go, BaseURL.

Private models are not requested, because Ollama signs requests for them with its key. `ollama pull` downloads them,
and they are then read from Ollama's store.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..._util.errors import RemoteAccessError, RemoteError, RemoteNotFoundError
from ..name_grammar import OllamaName
from ..stores.ollama_store import model_layer
from ..stores.stored_model import LARGEST_JSON
from .http_file import Client
from .range_stream import RemoteLocation

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def address(name: OllamaName) -> str:
    """The model's address in the registry."""
    return f"{name.scheme}://{name.host}/v2/{name.namespace}/{name.model}"


def locate_in_registry(name: OllamaName, client: Client) -> RemoteLocation:
    """Where the model's blob is: one request."""
    url = f"{address(name)}/manifests/{name.tag}"
    try:
        response = client.get(url, {"Accept": MANIFEST})
    except RemoteNotFoundError as error:
        error.problem, error.remedy = (
            "the registry has no such model, or no such tag of it",
            "check its web page",
        )
        raise
    except RemoteAccessError as error:
        error.remedy = (
            f"`ollama pull {str(name).removeprefix('ollama:')}` logs in; its copy is then found here"
        )
        raise
    try:
        manifest = _read(name, client, response)
    finally:
        response.close()
    digest, size = _model_layer(name, manifest)
    return RemoteLocation(str(name), f"{address(name)}/blobs/{digest}", url, {}, digest, size)


def _read(name: OllamaName, client: Client, response: Any) -> Any:
    """The manifest; no more than its maximum length is read."""
    data = b"".join(client.blocks(response, 0, LARGEST_JSON + 1))
    if len(data) > LARGEST_JSON:
        raise _wrong(name, f"the manifest is longer than {LARGEST_JSON} bytes")
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise _wrong(name, "what the registry sends is not a manifest") from None


def _model_layer(name: OllamaName, manifest: Any) -> tuple[str, int]:
    """The digest of the model's blob and its size in bytes."""
    layer = model_layer(manifest)
    if layer is None:
        raise RemoteNotFoundError(
            "the manifest has no GGUF: the model runs elsewhere, or is of another format",
            path=str(name),
            remedy="take another model",
        )
    digest, size = layer.get("digest"), layer.get("size")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise _wrong(name, "the digest of the model is malformed")
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise _wrong(name, "the size of the model is malformed")
    return digest, size


def _wrong(name: OllamaName, problem: str) -> RemoteError:
    return RemoteError(problem, path=str(name), remedy="check that the address is that of a registry")
