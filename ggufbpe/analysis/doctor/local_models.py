"""Lists the models on this machine for `ggufbpe models`, with their metadata and doctor's verdict.

Only the metadata of each file is read, and a file with several names once. The verdict takes the longest; it is cached
for all files whose metadata differs only in the quantization, that of an audit for those with the same metadata.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ... import LLAMA_CPP, __version__
from ..._util.arguments import checked_str
from ..._util.errors import GGUFError
from ..._util.extras import NotInstalledError
from ..._util.files import replacing
from ..._util.progress import OnProgress, Progress
from ..._util.verdicts import ERROR, HEALTHY, WARNING
from ...gguf.constants import KEY_ARCHITECTURE, TokenizerKey
from ...gguf.reader import GGUFFile
from ...gguf.tensors import check_file_type, check_parts, check_tensors
from ...hub.quantization import model_parts
from ...hub.stores import all_stores
from ...hub.stores.stored_model import StoredModel, entries
from .examination import doctor
from .finding import Examination
from .model_info import context_length, string_of
from .security.audit import audit

BROKEN = "broken"
_MOST_VERDICTS = 4000  # in the cache


@dataclass(frozen=True)
class LocalModel:
    """A model on this machine. Facts that the file lacks are None.

    `name` is the shortest of the `names` that open the model (of a broken one, of all names). `store` is "Ollama",
    "Hugging Face", "llama.cpp" or "LM Studio", `path` the path of the file, and `size` the number of bytes of all its
    parts. `architecture`, `tokenizer` (`tokenizer.ggml.model`) and `pre` are as in the file. `tokens` is the size of
    the vocabulary, `context` the length in tokens that the model was trained with, and `chat_template` the length of
    the template in characters. `verdict` is "healthy", "warning", "error", or "broken", and then `problem` says why.
    `security` is the verdict of `audit`; None without jinja2 and for a broken model. If no verdicts were requested,
    `verdict` is None but for broken models, and `security` always.
    """

    name: str
    names: tuple[str, ...]
    store: str
    path: str
    size: int | None = None
    architecture: str | None = None
    tokenizer: str | None = None
    pre: str | None = None
    tokens: int | None = None
    context: int | None = None
    chat_template: int | None = None
    verdict: str | None = None
    security: str | None = None
    problem: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The object that `ggufbpe models --json` writes."""
        return {**asdict(self), "names": list(self.names)}


def local_models(
    pattern: str | None = None,
    *,
    verdicts: bool = True,
    progress: OnProgress | None = None,
) -> list[LocalModel]:
    """Return the models that Ollama, the Hugging Face hub's cache, llama.cpp and LM Studio have here, by name.

    `pattern` is a part of the name, or a pattern with `*`, `?` and `[…]`; case does not matter. Without `verdicts`,
    which take seconds for a tokenizer that was not examined before, `verdict` is None except for broken files.
    `progress` is called with a `Progress` in models, whose item is the current one's name.

    >>> [(model.name, model.verdict) for model in local_models("llama")]        # doctest: +SKIP
    [('hf:bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M', 'healthy')]
    """
    if pattern is not None:
        checked_str("pattern", pattern)
    files = _by_file(
        each for each in all_stores.stored_models() if pattern is None or _fits(each.name, pattern)
    )
    kept = _Verdicts() if verdicts else None
    found = []
    try:
        for done, (path, names) in enumerate(files.items()):
            if progress is not None:
                progress(Progress("examine", done, len(files), "models", names[0].name))
            found.append(_model(path, names, kept))
    finally:  # even if interrupted: verdicts take time
        if kept is not None:
            kept.save()
    return sorted(found, key=lambda model: model.name.lower())


def _fits(name: str, pattern: str) -> bool:
    name, pattern = name.lower(), pattern.lower()
    if any(char in pattern for char in "*?["):
        return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name.partition(":")[2], pattern)
    return pattern in name


def _by_file(models: Iterable[StoredModel]) -> dict[str, list[StoredModel]]:
    """The models of each file by its real path, the shortest name first; those without a file by their name."""
    found: dict[str, list[StoredModel]] = {}
    for each in models:
        found.setdefault(os.path.realpath(each.path) if each.path else each.name, []).append(each)
    return {path: sorted(names, key=lambda each: len(each.name)) for path, names in found.items()}


def _model(path: str, names: list[StoredModel], kept: _Verdicts | None) -> LocalModel:
    names = [each for each in names if not each.problem] or names  # those that open it, if any does
    first = names[0]
    known: dict[str, Any] = {
        "name": first.name,
        "names": tuple(each.name for each in names),
        "store": first.store,
        "path": first.path,
    }
    if first.problem:
        return LocalModel(**known, verdict=BROKEN, problem=first.problem)
    try:
        known["size"] = model_size(first.path)
        with GGUFFile(path) as file:
            file.require_first_shard()
            known |= _facts(file)
            check_tensors(file)
            check_parts(file, first.path)
            check_file_type(file)
            keys = (None, None) if kept is None else (_key(file, _NOT_EXAMINED), _key(file))
        verdict = None if kept is None else kept.of(keys[0], first.path)
        security = None if kept is None else kept.security_of(keys[1], first.path)
    except GGUFError as error:
        return LocalModel(**known, verdict=BROKEN, problem=error.problem)
    except OSError as error:
        return LocalModel(**known, verdict=BROKEN, problem=error.strerror or str(error))
    return LocalModel(**known, verdict=verdict, security=security)


def model_size(path: str) -> int:
    """The size in bytes of the file, or of all its parts that are there."""
    folder, name = os.path.split(path)
    return sum(os.stat(os.path.join(folder, part)).st_size for part in model_parts(name, entries(folder)))


def _facts(file: GGUFFile) -> dict[str, Any]:
    template = string_of(file, TokenizerKey.CHAT_TEMPLATE)
    return {
        "architecture": string_of(file, KEY_ARCHITECTURE),
        "tokenizer": string_of(file, TokenizerKey.MODEL),
        "pre": string_of(file, TokenizerKey.PRE),
        "tokens": file.array_length(TokenizerKey.LIST) if TokenizerKey.LIST in file else None,
        "context": context_length(file),
        "chat_template": None if template is None else len(template),
    }


# ---- verdicts -------------------------------------------------------------------------------------------

# What differs between quantizations of a model, and no verdict depends on; an audit examines all strings.
_NOT_EXAMINED = (
    "general.file_type",
    "general.quantization_version",
    "general.size_label",
    "quantize.",
    "split.",
)


@cache
def _edition() -> str:
    """The version, and when the files of doctor and the audit changed last: checks also change between versions."""
    changed = 0
    with suppress(OSError):
        changed = max((file.stat().st_mtime_ns for file in Path(__file__).parent.rglob("*.py")), default=0)
    return f"{__version__} {changed}"


def _key(file: GGUFFile, but: tuple[str, ...] = ()) -> str | None:
    """A digest of all metadata but the keys that begin so; None if it cannot be made."""
    try:
        spans = file.spans()
    except GGUFError:  # version 1
        return None
    digest = hashlib.sha256(f"{_edition()} {LLAMA_CPP} {file.version} {file.byteorder}".encode())
    for key, span in spans.items():
        if not key.startswith(but):
            for block in file.blocks(span):
                digest.update(block)
    return digest.hexdigest()


class _Verdicts:
    """Doctor's verdicts by the digest of what it examines, including earlier runs' from the cache folder, if any."""

    def __init__(self) -> None:
        self._path: str | None = None
        self._known: dict[str, str] = {}
        with suppress(ImportError, OSError, ValueError, RecursionError):
            from ..._util.cache_folder import cache_folder

            self._path = os.path.join(cache_folder(), "verdicts.json")
            with open(self._path, "rb") as file:
                read = json.loads(file.read(1 << 20))
            words = {HEALTHY, WARNING, ERROR}
            known = read.items() if isinstance(read, dict) else ()
            self._known = {key: word for key, word in known if isinstance(word, str) and word in words}
        self._new = False

    def of(self, key: str | None, path: str) -> str:
        """The verdict on the file. Raises `GGUFError` and `OSError` as `doctor` does."""
        return self._verdict(key, path, doctor)

    def security_of(self, key: str | None, path: str) -> str | None:
        """The verdict of an audit, likewise; None if jinja2 is missing, "error" if the audit fails."""
        try:
            return self._verdict(None if key is None else f"security {key}", path, audit)
        except NotInstalledError:
            return None
        except (GGUFError, OSError):
            raise
        except Exception:  # one hostile file must not hide the other models
            return ERROR

    def _verdict(self, key: str | None, path: str, examine: Callable[[str], Examination]) -> str:
        if key is not None and key in self._known:
            return self._known[key]
        word = examine(path).verdict
        if key is not None:
            self._known[key] = word
            self._new = True
        return word

    def save(self) -> None:
        """Cache the new verdicts. If that fails, they are computed again next time."""
        if self._path is None or not self._new:
            return
        with suppress(OSError):
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            with replacing(self._path, 0o600, follow=False) as (file, _):
                latest = dict(list(self._known.items())[-_MOST_VERDICTS:])
                file.write(json.dumps(latest, indent=0).encode())
