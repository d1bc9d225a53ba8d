"""Stores of models in the layouts that Ollama, the hub's library, llama.cpp and LM Studio write, for tests.

Ollama's is written after manifest/manifest.go and layer.go (WriteManifest, NewLayer), llama.cpp's old one after
common/arg.cpp of its time, LM Studio's after its documentation. Caches of the hub are made by `huggingface_hub`, from
a server on the loopback.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remote_server import Served, remote_server

MODEL = "application/vnd.ollama.image.model"
TEMPLATE = "application/vnd.ollama.image.template"
GO_TEMPLATE = b"""\
{{ range .Messages }}<start_of_turn>{{ if eq .Role "assistant" }}model{{ else }}{{ .Role }}{{ end }}
{{ .Content }}<end_of_turn>
{{ end }}<start_of_turn>model
"""


def ollama_layer(models: Path, data: bytes, kind: str = MODEL) -> dict[str, Any]:
    """A blob in the folder `models`, as a layer of a manifest."""
    digest = hashlib.sha256(data).hexdigest()
    blobs = models / "blobs"
    blobs.mkdir(parents=True, exist_ok=True)
    (blobs / f"sha256-{digest}").write_bytes(data)
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}


def ollama_model(models: Path, place: str, layers: list[dict[str, Any]]) -> Path:
    """A manifest at `place`, HOST/NAMESPACE/MODEL/TAG."""
    path = models / "manifests" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    config = ollama_layer(models, b"{}", "application/vnd.docker.container.image.v1+json")
    kind = "application/vnd.docker.distribution.manifest.v2+json"
    path.write_text(json.dumps({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers}))
    return path


COMMITS = {revision: hashlib.sha1(revision.encode()).hexdigest() for revision in ("main", "old")}


def hub_cache(folder: Path, repository: str, files: Mapping[str, bytes], revision: str = "main") -> None:
    """Download `files` into a cache of the hub, which is `folder`. Each revision has a commit of its own."""
    from huggingface_hub import hf_hub_download

    served = {
        name: Served(data, headers={"ETag": f'"{hashlib.sha256(data).hexdigest()}"'})
        for name, data in files.items()
    }
    with remote_server() as server:
        server.put_hub(repository, served, revision)
        for file in server.files.values():
            if "X-Repo-Commit" in file.headers:
                file.headers["X-Repo-Commit"] = COMMITS.get(revision, revision)
        for name in files:
            hf_hub_download(repository, name, cache_dir=folder, endpoint=server.home, revision=revision)


def llama_cpp_file(folder: Path, repository: str, file: str, data: bytes) -> Path:
    """A file as older versions of llama.cpp downloaded it, with what they noted beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{repository}_{file}".replace("/", "_")
    path.write_bytes(data)
    Path(f"{path}.etag").write_text('"abc"')
    manifest = {"ggufFile": {"rfilename": file}}
    (folder / f"manifest={repository.replace('/', '=')}=latest.json").write_text(json.dumps(manifest))
    return path


def lm_studio_file(folder: Path, place: str, data: bytes | os.PathLike[str]) -> Path:
    """A file at `place`, PUBLISHER/MODEL/FILE; a link where `data` is a path."""
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(data, bytes):
        path.write_bytes(data)
    else:
        path.symlink_to(data)
    return path


def make_named_stores(home: Path, model: bytes) -> None:
    """The models that examples name, where Ollama, the hub's library and LM Studio keep them below `home`."""
    for tag in ("4b", "latest"):
        models = home / ".ollama/models"
        layers = [ollama_layer(models, model), ollama_layer(models, GO_TEMPLATE, TEMPLATE)]
        ollama_model(models, f"registry.ollama.ai/library/gemma3/{tag}", layers)
    for repository, file in (
        ("google/gemma-3-4b-it-qat-q4_0-gguf", "gemma-3-4b-it-q4_0.gguf"),
        ("bartowski/Llama-3.2-1B-Instruct-GGUF", "Llama-3.2-1B-Instruct-Q8_0.gguf"),
    ):
        hub_cache(home / ".cache/huggingface/hub", repository, {file: model})
    lm_studio_file(home / ".lmstudio/models", "someone/tiny/tiny-Q8_0.gguf", model)
