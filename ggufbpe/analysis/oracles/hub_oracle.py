"""A repository of the Hugging Face hub as an oracle: its GGUF, or its tokenizer.json and its templates."""

from __future__ import annotations

from ..._util.errors import RemoteNotFoundError
from ...hub.name_grammar import HubName, parse_name
from ...tokenizer import Tokenizer
from .library_oracle import tokenizers_library
from .oracle import Oracle
from .recorded_ids import OtherModel
from .transformers_oracle import transformers_library


def on_the_hub(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
    """Our own engine with the GGUF that `rest`, a name with hf:, stands for; or else the package tokenizers.

    A `RemoteError` if neither can be read.
    """
    try:
        return OtherModel(Tokenizer.from_gguf(rest))
    except RemoteNotFoundError as refused:
        path = tokenizer_json_on_hub(rest, refused)
    return tokenizers_library(path, model, tokenizer, seconds)


def chats_on_the_hub(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
    """Our own engine with the GGUF that `rest` stands for, or else transformers; a `RemoteError` without either."""
    try:
        return OtherModel(Tokenizer.from_gguf(rest))
    except RemoteNotFoundError as refused:
        _require_repository(rest, refused)
    return transformers_library(rest, model, tokenizer, seconds)


def tokenizer_json_on_hub(name: str, refused: RemoteNotFoundError, *, offline: bool = False) -> str:
    """The path of the downloaded tokenizer.json of a repository that has no GGUF.

    Raises `refused`, which says so, if `name` asks for a certain GGUF, or there is no tokenizer.json either.
    """
    from ...hub.remote.huggingface import downloaded

    reference = _require_repository(name, refused)
    try:
        return downloaded(reference, "tokenizer.json", offline=offline)
    except RemoteNotFoundError:
        raise refused from None


def _require_repository(name: str, refused: RemoteNotFoundError) -> HubName:
    """The repository of which `name` is the name. Raises `refused` if it asks for a certain GGUF."""
    reference = parse_name(name)
    if not isinstance(reference, HubName) or reference.quant or reference.file:
        raise refused
    return reference
