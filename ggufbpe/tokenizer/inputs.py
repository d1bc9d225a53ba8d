"""Opens what a caller in Python may pass as a model (a `Tokenizer`, path or name) or as a text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from .._util.arguments import iterable
from .._util.errors import printable
from .._util.wording import short_names
from ..chat.request.body import body_with_fields
from ..hub.model_location import ModelLocation
from . import Tokenizer
from .engine import Text

_Opened = TypeVar("_Opened")

Model = Tokenizer | str | os.PathLike[str]
TextOrPath = Text | os.PathLike[str]
ChatOrBody = Mapping[str, Any] | Sequence[Mapping[str, Any]]


def tokenizer_of(model: Model) -> Tokenizer:
    """The tokenizer itself, or that of the GGUF file at a path or of a name."""
    return model if isinstance(model, Tokenizer) else Tokenizer.from_gguf(model)


def tokenizers_of(models: Model | Iterable[Model] | Mapping[str, Model]) -> dict[str, Tokenizer]:
    """The tokenizers by name, as `opened_by_name` names them."""
    return opened_by_name(models, tokenizer_of)


def opened_by_name(models: Any, open_model: Callable[[Any], _Opened]) -> dict[str, _Opened]:
    """The models by name: of a mapping its own names, else those of the files, or of the pre-tokenizers.

    A file has as many of its folders in its name as tell it apart. `ValueError` where there is no model, or
    two have one name.
    """
    if isinstance(models, Mapping):
        names = list(map(str, models))
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two models have the name {printable(twice)}")
        found = dict(zip(names, map(open_model, models.values())))
    else:
        single = isinstance(models, (Tokenizer, str, os.PathLike))
        given = [models] if single else list(iterable("models", models, "models"))
        found = dict(zip(short_names([_name(model) for model in given]), map(open_model, given)))
    if not found:
        raise ValueError("no model: give a Tokenizer, or the path or name of a model")
    return found


def _name(model: Any) -> str:
    if isinstance(model, (str, os.PathLike)) and not isinstance(model, ModelLocation):
        return os.fspath(model)
    return getattr(model, "name", "") or getattr(model, "pre", "trained")


def text_of(text: TextOrPath) -> bytes:
    """A text as bytes: a `str` in UTF-8, bytes as they are, and all that is in the file at a `pathlib.Path`.

    `ValueError` for a `str` that UTF-8 cannot write, `OSError` where the file cannot be read, `TypeError` for
    anything else.
    """
    if isinstance(text, os.PathLike):
        with open(text, "rb") as file:
            return file.read()
    if isinstance(text, str):
        return text.encode()
    try:
        return bytes(memoryview(text))
    except TypeError:
        kind = type(text).__name__
        raise TypeError(f"the text must be a str, bytes or a pathlib.Path, not {kind}") from None


def request_body(chat: ChatOrBody) -> dict[str, Any]:
    """The body of a request out of a chat: of messages, or of a body as it is."""
    return body_with_fields(chat if isinstance(chat, Mapping) else list(chat), {})
