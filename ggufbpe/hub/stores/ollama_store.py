"""Ollama's models: a manifest for each name, which says which blob is the GGUF.

    MODELS/manifests/HOST/NAMESPACE/MODEL/TAG   JSON with layers: a media type, a digest and a size for each
    MODELS/blobs/sha256-…                       the layers

Source: ollama's manifest/manifest.go and paths.go (Manifests, BlobsPath), server/images.go (GetModel),
envconfig/config.go (Models).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from ..._util.errors import ModelNameError, StoreError, printable
from ..name_grammar import OLLAMA_TAG, OllamaName, Reference, parse_name
from .stored_model import (
    Store,
    StoredModel,
    bounded_bytes,
    bounded_json,
    distinct,
    entries,
    home,
    leads_out,
    setting,
    why_no_file,
)

_NAME = "Ollama"
_USE = (
    "to use it in Ollama: `ollama show --modelfile {name} > Modelfile`, write FROM {in_modelfile} in the place of "
    "its FROM line, then `ollama create {name}-fixed -f Modelfile`"
)
# The service's models; only on Linux does the service run as another user.
SERVICE_FOLDER = "/usr/share/ollama/.ollama/models" if sys.platform == "linux" else ""

_LAYER = "application/vnd.ollama.image."
MODEL_TYPE = _LAYER + "model"
TEMPLATE_TYPES = (_LAYER + "template", _LAYER + "prompt")
TEMPLATE_NOTE = "Ollama has a template of its own beside the file; the one that is read here is the file's"

_DIGEST = re.compile(r"sha256[:-]([0-9a-fA-F]{64})")


def _folders() -> list[str]:
    """The possible folders: `OLLAMA_MODELS`, the user's, the service's."""
    named = (setting("OLLAMA_MODELS") or "").strip().strip("\"'")  # envconfig/config.go, Var
    folders = (named, home(".ollama", "models"), SERVICE_FOLDER)
    return [folder for folder in folders if folder]


def _models() -> Iterator[StoredModel]:
    """All models, in the order of their names."""
    for folder in distinct(_folders()):
        for name, path in _manifests(folder):
            try:
                yield _model(folder, name, path)
            except StoreError as error:
                yield StoredModel(str(name), "", _NAME, *_names_without_prefix(name), problem=str(error))


def _find(reference: Reference) -> StoredModel | None:
    """The model of an Ollama name."""
    place = _place(reference)
    return None if place is None else _model(*place)


def _place(reference: Reference) -> tuple[str, OllamaName, str] | None:
    """The folder, name and manifest of a name, compared as Ollama compares names: case-insensitively.

    Exactly that name comes first, since a file system may have both.
    """
    if not isinstance(reference, OllamaName):
        return None
    places = [(folder, *place) for folder in distinct(_folders()) for place in _manifests(folder)]
    same = (place for place in places if _folded(place[1]) == _folded(reference))
    return min(same, key=lambda place: str(place[1]) != str(reference), default=None)


class OllamaLayers(NamedTuple):
    """What Ollama keeps beside a model's GGUF, for its chats. `config` has the fields of Ollama's ConfigV2."""

    name: OllamaName
    config: dict[str, Any]
    template: str | None = None
    system: str = ""
    messages: list[Any] = []  # noqa: RUF012 - never changed


def ollama_layers(name: str) -> OllamaLayers | None:
    """The layers of a model of Ollama's store by its name; None if there is no such model. `StoreError` if damaged."""
    place = _place(parse_name(name))
    if place is None:
        return None
    folder, found, path = place
    manifest = bounded_json(path)
    gguf_layer(manifest, path)
    config = manifest.get("config")
    layers = OllamaLayers(found, _object(folder, config, path) if isinstance(config, dict) else {})
    for layer in manifest["layers"]:
        kind = layer.get("mediaType")
        if kind in TEMPLATE_TYPES:
            layers = layers._replace(template=_text(folder, layer, path))
        elif kind == _LAYER + "system":
            layers = layers._replace(system=_text(folder, layer, path))
        elif kind == _LAYER + "messages":
            messages = bounded_json(_blob(folder, layer, path))
            layers = layers._replace(messages=messages if isinstance(messages, list) else [])
    return layers


def _object(folder: str, layer: dict[str, Any], manifest: str) -> dict[str, Any]:
    found = bounded_json(_blob(folder, layer, manifest))
    return found if isinstance(found, dict) else {}


def _text(folder: str, layer: dict[str, Any], manifest: str) -> str:
    return bounded_bytes(_blob(folder, layer, manifest)).decode("utf-8", "replace")


def _blob(folder: str, layer: dict[str, Any], manifest: str) -> str:
    """The path of a layer's blob. `StoreError` if it is not a file of the store."""
    path, problem = _blob_of(folder, _digest(layer, manifest, "a layer"))
    if problem:
        raise StoreError(problem, path=path)
    return path


def _digest(layer: dict[str, Any], manifest: str, whose: str) -> str:
    """The digest that a layer names, as 64 lower-case hexadecimal digits. `StoreError` if it is none."""
    digest = layer.get("digest")
    match = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
    if not match:
        _damaged(manifest, f"the digest of {whose} is not a sha256 but {printable(str(digest))}")
    return match[1].lower()


def _blob_of(folder: str, digest: str) -> tuple[str, str]:
    """The path of a blob, and why it is not to be opened; "" if it is."""
    blobs = os.path.join(folder, "blobs")
    path = os.path.join(blobs, f"sha256-{digest}")
    problem = why_no_file(path)
    if not problem and leads_out(path, blobs):
        problem = f"its blob is a link out of the store, to {printable(os.path.realpath(path), 200)}"
    return path, problem


def model_layer(manifest: object) -> dict[str, Any] | None:
    """The manifest's layer with the model: the last one, as in Ollama. None if there is none."""
    layers = manifest.get("layers") if isinstance(manifest, dict) else None
    models = [
        layer
        for layer in (layers if isinstance(layers, list) else ())
        if isinstance(layer, dict) and layer.get("mediaType") == MODEL_TYPE
    ]
    return models[-1] if models else None


def gguf_layer(manifest: object, path: str) -> tuple[str, int | None, str]:
    """The digest and size of the GGUF that a manifest names, and a note on it. `StoreError` if there is none.

    The digest is returned as 64 lower-case hexadecimal digits.
    """
    layers = manifest.get("layers") if isinstance(manifest, dict) else None
    if not isinstance(layers, list) or not all(isinstance(layer, dict) for layer in layers):
        _damaged(path, "the manifest has no list of layers")
    model = model_layer(manifest)
    if model is None:
        raise StoreError(
            "the model has no GGUF: it runs elsewhere, or is stored as single tensors",
            path=path,
            remedy="a model in another form, or the original repository, has its tokenizer",
        )
    digest, size = _digest(model, path, "its layer"), model.get("size")
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        size = None
    has_template = any(layer.get("mediaType") in TEMPLATE_TYPES for layer in layers)
    return digest, size, TEMPLATE_NOTE if has_template else ""


def _manifests(folder: str) -> Iterator[tuple[OllamaName, str]]:
    """The names that have a manifest; like Ollama, skips folders whose names cannot be part of one."""
    places = [("", os.path.join(folder, "manifests"))]
    for _ in range(4):
        places = [
            (f"{name}/{each}", os.path.join(path, each)) for name, path in places for each in entries(path)
        ]
    for name, path in places:
        if not os.path.isdir(path) and (parsed := _parse_place(name[1:])):
            yield parsed, path


def _parse_place(path: str) -> OllamaName | None:
    """The name that "HOST/NAMESPACE/MODEL/TAG" stands for."""
    model, _, tag = path.rpartition("/")
    try:
        name = parse_name(f"ollama:{model}:{tag}")
    except ModelNameError:
        return None
    return name if isinstance(name, OllamaName) else None


def _model(folder: str, name: OllamaName, manifest: str) -> StoredModel:
    """The model of a manifest. `StoreError` if the manifest is damaged."""
    try:
        read = bounded_json(manifest)
    except OSError as error:
        raise StoreError(f"the manifest cannot be read: {error.strerror}", path=manifest) from None
    digest, size, note = gguf_layer(read, manifest)
    path, problem = _blob_of(folder, digest)
    if not problem and size is not None and (actual := os.stat(path).st_size) != size:
        problem = (
            f"its blob has {actual} bytes, and {size} by its manifest: download it again with `ollama pull`"
        )
    return StoredModel(str(name), path, _NAME, *_names_without_prefix(name), problem=problem, note=note)


def _names_without_prefix(name: OllamaName) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names without a prefix: as in Ollama, and without the tag if no other model has that name."""
    full = str(name).removeprefix("ollama:")
    plain = full.removesuffix(f":{name.tag}")
    return ((full, plain), ()) if name.tag == OLLAMA_TAG else ((full,), (plain,))


def _folded(name: OllamaName) -> tuple[str, ...]:
    return tuple(part.lower() for part in (name.host, name.namespace, name.model, name.tag))


def _damaged(path: str, what: str) -> NoReturn:
    raise StoreError(what, path=path, remedy="get the model again with `ollama pull`")


OLLAMA = Store(_NAME, _USE, _folders, _models, _find)
