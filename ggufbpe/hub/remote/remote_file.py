"""Where a remote file is: found by huggingface.py and ollama_registry.py, used by http_file.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class RemoteFile(NamedTuple):
    """A file of a repository."""

    name: str  # with its folders, as "Q8_0/model-00001-of-00002.gguf"
    size: int  # bytes
    url: str


class FilePlace(NamedTuple):
    """Where a remote file is."""

    name: str  # of the file that was chosen, as "hf:bartowski/Llama-3.2-1B-Instruct-GGUF/….gguf"
    url: str
    named: str  # the address that the user or a setting gave; only its server gets the credentials
    secret: Mapping[str, str]  # headers for that server
    version: (
        str | None
    )  # what the server calls the content: the same where it is the same; None if not known yet
    size: int | None  # bytes, if known
