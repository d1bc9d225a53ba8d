"""What Ollama's clients ask a server before they chat: its version, its models, and the facts of one.

Source: ListHandler, GetModelInfo and getModelData in Ollama's server/routes.go; ListResponse and ShowResponse in
api/types.go. Sizes and dates are those of the GGUF. So are digests in Ollama's store, where Ollama has that of its
manifest. Elsewhere a digest of path, size and date stands in: `ollama list` cuts 12 characters out of any digest.
"""

from __future__ import annotations

import hashlib
import os
import re
from datetime import datetime, timezone
from functools import partial
from typing import Any

from .. import __version__
from .._util.errors import ChatError, StoreError
from ..analysis.doctor.model_info import file_type
from ..chat.ollama_model import OllamaModel
from ..gguf.constants import KEY_ARCHITECTURE, KEY_NAME, TokenizerKey
from ..gguf.reader import GGUFFile
from ..hub.model_location import locate
from ..hub.name_grammar import parse_name
from ..hub.stores.ollama_store import ollama_layers
from ..tokenizer import Tokenizer
from .failures import RequestError
from .llama_server import template_in_force
from .other_servers import ollama_model
from .request_body import given_flag, require_object
from .served_models import Models

_PREFIX = "ollama:"
_LONGEST = 5  # elements of an array that is shown without "verbose"
_NEVER = "0001-01-01T00:00:00Z"  # Go's zero time


def version_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/api/version`: the version of ggufbpe."""
    return {"version": __version__}


def tags_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/api/tags`: the models with size, date, digest and details, which are empty if a model cannot be opened."""
    return {"models": [_tag(models, name) for name in models.paths]}


def _tag(models: Models, name: str) -> dict[str, Any]:
    try:
        path, size, details = models.known_of_file(name, _facts)
    except RequestError:
        path, size, details = "", 0, _details("", "")
    digest = re.search(r"sha256-([0-9a-f]{64})$", path)
    modified = _modified(path)
    standing_in = hashlib.sha256(f"{models.paths[name]}\n{size}\n{modified}".encode(errors="surrogateescape"))
    shown = str(parse_name(name)).removeprefix(_PREFIX) if name.startswith(_PREFIX) else name
    return {
        "name": shown,
        "model": shown,
        "modified_at": modified,
        "size": size,
        "digest": digest[1] if digest else standing_in.hexdigest(),
        "details": details,
    }


def _facts(file: GGUFFile) -> tuple[str, int, dict[str, Any]]:
    """The path of a model's file, "" if it is not on this machine, its size, and its details."""
    family = file[KEY_ARCHITECTURE] if KEY_ARCHITECTURE in file else ""  # noqa: SIM401 - no dict, has no get
    path = file.path if file.is_on_disk else ""
    return path, file.size, _details(str(family), (file_type(file) or "").partition(" ")[0])


def _details(family: str, quantization: str) -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": family,
        "families": [family] if family else [],
        "parameter_size": "",
        "quantization_level": quantization,
    }


def show_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/api/show`: the details, metadata and template of a model; of arrays, the short ones, or all with `verbose`."""
    given = require_object(body)
    name = ollama_model(models, {"model": given.get("model") or given.get("name")})
    verbose = given_flag(given, "verbose", False)
    path, _, details = models.known_of_file(name, _facts)
    tokenizer = models.named(name)
    return {
        "template": _go_template(name, tokenizer) or template_in_force(tokenizer)[0],
        "details": details,
        "model_info": models.asked(name, partial(_metadata, verbose=verbose)),
        "capabilities": ["tokenize"],
        "modified_at": _modified(path),
    }


def _metadata(model: str, verbose: bool) -> dict[str, Any]:
    with GGUFFile(locate(model).opened()) as file:
        return {
            key: [] if not verbose and file.array_length(key) > _LONGEST else file[key]
            for key in file
            if key not in (KEY_NAME, TokenizerKey.CHAT_TEMPLATE)
        }


def _go_template(name: str, tokenizer: Tokenizer) -> str:
    """The Go template that Ollama uses for a model of its store; "" if it uses none."""
    if not name.startswith(_PREFIX):
        return ""
    try:
        layers = ollama_layers(name)
        uses_it = layers is not None and OllamaModel(layers, tokenizer).source == "go_template"
    except (StoreError, ChatError, OSError):
        return ""
    return layers.template or "" if layers is not None and uses_it else ""


def _modified(path: str) -> str:
    try:
        return datetime.fromtimestamp(os.stat(path).st_mtime, timezone.utc).isoformat()
    except OSError:
        return _NEVER
