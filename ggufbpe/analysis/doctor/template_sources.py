"""Reads a chat template from where it is kept: a file of its own, transformers' settings, or another model."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..._util.errors import ModelNameError, RemoteNotFoundError, printable
from ...chat.known_templates import PREFIX, known_source
from ...chat.template.lexer import MOST_SOURCE
from ...convert.exporters.hf_config import HFConfig
from ...gguf.constants import GGUF_MAGIC, TokenizerKey
from ...gguf.reader import GGUFFile
from ...gguf.source import is_tokenizer_of_others
from ...hub.model_location import locate
from ...hub.name_grammar import PREFIXES, HubName, parse_name
from ...tokenizer.inputs import TextOrPath

SETTINGS = "tokenizer_config.json"
JINJA = "chat_template.jinja"
_MOST_SETTINGS = 16 << 20  # bytes of tokenizer_config.json, which may list all added tokens
_MODEL_NAME = re.compile(rf"({'|'.join(map(re.escape, PREFIXES))})[^\s{{}}]+")


def template_text(template: TextOrPath) -> str:
    """Return the text of a chat template.

    It is given as text, as "known:NAME", as the name of a model such as "hf:OWNER/REPO", or as the path of a file with
    it: a template, transformers' tokenizer_config.json or a folder with that file, or another GGUF. `ValueError` if
    there is no valid template, `OSError` if a file cannot be read, `GGUFError` for a model that cannot be used.
    """
    what = "the chat template"
    if isinstance(template, os.PathLike):
        what = printable(os.fspath(template))
        template = _in_file(os.fsdecode(template))
    elif isinstance(template, str):
        if (known := known_source(template)) is not None:
            return known
        if is_model_name(template):
            what, template = printable(template), _of_model(template)
    data = template.encode() if isinstance(template, str) else bytes(memoryview(template))
    if (settings := transformers_settings(data)) is not None:
        data = _in_settings(settings, what).encode()
    if len(data) > MOST_SOURCE:
        raise ValueError(f"{what} has more than {MOST_SOURCE:,} bytes, too many for a chat template")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{what} is not UTF-8: {error.reason} at byte {error.start}") from None
    if not text.strip():
        raise ValueError(
            f"{what} is empty; to remove the model's, remove the key {TokenizerKey.CHAT_TEMPLATE}"
        )
    if "\0" in text:
        raise ValueError(f"{what} contains a NUL character, where llama.cpp would end it")
    return text


def template_source(argument: str) -> TextOrPath:
    """Return what `template_text` takes for an argument that is "known:NAME", the name of a model, or a path."""
    is_name = argument.startswith(PREFIX) or (is_model_name(argument) and not os.path.lexists(argument))
    return argument if is_name else Path(argument)


def is_model_name(given: str) -> bool:
    """Return whether `given` names a model by the place where it is, and so is no template.

    >>> is_model_name("hf:Qwen/Qwen3-0.6B"), is_model_name("hf: {{ messages }}")
    (True, False)
    """
    return _MODEL_NAME.fullmatch(given) is not None


def transformers_settings(data: str | bytes) -> dict[str, Any] | None:
    """Return the object in `data` if it is JSON, as transformers' tokenizer_config.json is; None for a template."""
    try:
        text = data if isinstance(data, str) else data.decode()
        bare = text.removeprefix("\ufeff").lstrip()
        found = json.loads(bare) if bare[:1] == "{" and bare[:2] not in ("{%", "{{", "{#") else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def template_in_settings(settings: dict[str, Any]) -> str | None:
    """Return the chat template in the settings of transformers, of several the default one; None if there is none."""
    return HFConfig(settings, {}, {}).chat_template


def _in_settings(settings: dict[str, Any], what: str) -> str:
    found = template_in_settings(settings)
    if found is None:
        raise ValueError(f'{what} is JSON without a "chat_template", so it has no template')
    return found


def _in_file(path: str) -> str | bytes:
    """Return what is at a path; of a folder or a GGUF, the template in it; of a tokenizer.json, the one beside it."""
    if os.path.isdir(path):
        found = _first_template(lambda name: os.path.join(path, name))
        if found is None:
            raise ValueError(f"the folder {printable(path)} has no chat template, in {JINJA} or {SETTINGS}")
        return found
    if is_tokenizer_of_others(path):
        return _in_file(os.path.dirname(path) or os.curdir)
    with open(path, "rb") as file:
        if file.read(len(GGUF_MAGIC)) == GGUF_MAGIC:
            return _in_model(path)
        file.seek(0)
        is_json = path.endswith(".json")
        return file.read((_MOST_SETTINGS if is_json else MOST_SOURCE) + 1)


def _first_template(find: Callable[[str], str]) -> str | bytes | None:
    """Return the first of transformers' files that has a template; `find` returns the path of a file by its name."""
    for name in (JINJA, SETTINGS):
        try:
            path = find(name)
            found = _in_file(path)
        except (FileNotFoundError, RemoteNotFoundError):
            continue
        if name == JINJA:
            return found
        settings = transformers_settings(found)
        if settings is None:
            raise ValueError(
                f"{printable(path)} is not a JSON object of at most {_MOST_SETTINGS:,} bytes in UTF-8"
            )
        if template_in_settings(settings) is not None:
            return found
    return None


def _in_model(name: str) -> str:
    """Return the template in the metadata of a GGUF."""
    with GGUFFile(locate(name).opened()) as file:
        found = file[TokenizerKey.CHAT_TEMPLATE] if TokenizerKey.CHAT_TEMPLATE in file else None  # noqa: SIM401 - has no get
    if not isinstance(found, str):
        raise ValueError(f"the model {printable(name)} has no chat template")
    return found


def _of_model(name: str) -> str | bytes:
    """Return the template of a model: of a repository of transformers if it is one, else of its GGUF."""
    reference = parse_name(name)
    if not isinstance(reference, HubName) or reference.quant or reference.file:
        return _in_model(name)
    from ...hub.remote.huggingface import downloaded

    found = _first_template(lambda file: downloaded(reference, file))
    if found is not None:
        return found
    try:
        return _in_model(name)
    except ModelNameError:
        raise ValueError(f"the repository {printable(name)} has no chat template") from None
