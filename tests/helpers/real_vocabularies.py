"""The vocabularies of llama.cpp's repository."""

from __future__ import annotations

from pathlib import Path

from conftest import missing
from reference import NotPreparedError, vocabulary


def cached(name: str) -> Path:
    """Return the path of a vocabulary, such as "gpt-2"; skip the test if none are prepared."""
    try:
        return vocabulary(name)
    except NotPreparedError as error:
        missing(str(error))
