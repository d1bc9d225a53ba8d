"""The models that a server was started with, by name, each opened on first use.

A request names a model; only the paths given at the start are ever opened.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from .._util.errors import GGUFError, ModelNameError
from .._util.wording import short_names
from ..chat.media.mmproj import Mmproj
from ..gguf.constants import KEY_ARCHITECTURE, TokenizerKey
from ..gguf.reader import GGUFFile
from ..hub.model_location import locate
from ..hub.name_grammar import PREFIXES, parse_name
from ..models import tokenizer_model
from ..tokenizer import Tokenizer
from .failures import RequestError
from .request_body import field

T = TypeVar("T")


def named_models(given: list[str], located: Callable[[str], T]) -> dict[str, T]:
    """Models by name, out of what `-m` was given: NAME=PATH, a name of a store, or a path, named as its file.

    `located` turns a path into a model. `ValueError` if two models have the same name.

    >>> named_models(["models/a.gguf", "chat=models/b.gguf", "hf:owner/repo:Q8_0"], str)
    {'a': 'models/a.gguf', 'chat': 'models/b.gguf', 'hf:owner/repo:Q8_0': 'hf:owner/repo:Q8_0'}
    """
    pairs = [_name_and_path(each) for each in given]
    short = iter(short_names([path for name, path in pairs if not name]))
    models: dict[str, T] = {}
    for name, path in pairs:
        name = name or next(short)
        if name in models:
            raise ValueError(f"two models have the name {name!r}; give one another name: -m NAME=PATH")
        models[name] = located(path)
    return models


def _name_and_path(given: str) -> tuple[str, str]:
    if given.startswith(PREFIXES):
        return given, given
    name, equals, path = given.partition("=")
    return (name, path) if equals and name and "/" not in name and "\\" not in name else ("", given)


def _in_full(name: str) -> str:
    """A name of a store as `ggufbpe models` writes it: "ollama:gemma3:latest"; any other as it is."""
    try:
        return str(parse_name(name)) if name.startswith(PREFIXES) else name
    except ModelNameError:
        return name


class _OpenModel(NamedTuple):
    tokenizer: Tokenizer
    facts: dict[str, Any]  # of the file that was opened; another one may be at its path by now


class Models:
    """Tokenizers by the names of their models; the `most_open` most recently used ones stay open."""

    def __init__(
        self,
        paths: Mapping[str, str],
        most_open: int = 8,
        overrides: Mapping[str, Any] | None = None,
        mmproj: str | None = None,
        media_path: str | None = None,
    ) -> None:
        """`mmproj` is the file of the first model's projector, `media_path` the folder of media for chats."""
        self.paths = dict(paths)
        self.default = next(iter(self.paths))
        self._mmproj = None if mmproj is None else Mmproj.from_file(mmproj)
        self.media_path = media_path
        self._in_full = {_in_full(name): name for name in reversed(self.paths)}
        self._most_open = most_open
        self._overrides = dict(overrides or {})
        self._open: OrderedDict[str, _OpenModel] = OrderedDict()
        self._changing = Lock()
        self._opening = {name: Lock() for name in self.paths}

    def chosen(self, body: Any) -> str:
        """The name in the field `model`; the first model's name if there is none.

        A single model answers whatever the field says, as in llama-server. `RequestError` 400 for a name that no model
        has, as from llama-server's router.
        """
        name = field(body, "model", "")
        if len(self.paths) == 1 or not name:
            return self.default
        return self.known(name)

    def mmproj_of(self, name: str) -> Mmproj | None:
        """The projector of a model's images and audio, if it has one."""
        return self._mmproj if name == self.default else None

    @property
    def use_of_mmproj(self) -> str:
        """What follows the refusal of an image or a recording: where the projector is used; "" if there is none."""
        if self._mmproj is None:
            return ""
        return f" (this server has one, which counts for the model {self.default!r} where only tokens are counted)"

    def known(self, name: str) -> str:
        """The model that has this name, or has it in full. `RequestError` 400 if there is none."""
        full_name = name if name in self.paths else self._in_full.get(_in_full(name))
        if full_name is None:
            raise RequestError(400, f"model '{name}' not found", reason="model not found")
        return full_name

    def of(self, body: Any) -> Tokenizer:
        """The tokenizer of the model that a body chooses."""
        return self.named(self.chosen(body))

    def named(self, name: str) -> Tokenizer:
        """The tokenizer of a model, opened if need be. `RequestError` 500 if its file cannot be used."""
        tokenizer = self.if_open(name)
        if tokenizer is not None:
            return tokenizer
        with self._opening[name]:
            tokenizer = self.if_open(name)
            if tokenizer is None:
                facts = self.asked(name, partial(_facts, overrides=self._overrides))
                tokenizer = self.asked(name, partial(Tokenizer.from_gguf, overrides=self._overrides))
                with self._changing:
                    self._open[name] = _OpenModel(tokenizer, facts)
                    while len(self._open) > self._most_open:
                        self._open.popitem(last=False)
        return tokenizer

    def if_open(self, name: str) -> Tokenizer | None:
        """The tokenizer if it is open already."""
        with self._changing:
            if name not in self._open:
                return None
            self._open.move_to_end(name)
            return self._open[name].tokenizer

    @property
    def open_count(self) -> int:
        """The number of open models."""
        return len(self._open)

    def facts(self, name: str) -> dict[str, Any]:
        """The field `meta` of `/v1/models`: what the metadata says, without anything about the weights.

        These are facts of the model that is open, else of the file that would be opened now.
        """
        with self._changing:
            model = self._open.get(name)
        return self.asked(name, partial(_facts, overrides=self._overrides)) if model is None else model.facts

    def asked(self, name: str, ask: Callable[[str], T]) -> T:
        """The result of reading the file of a model. `RequestError` 500 if the file cannot be used.

        Only the log says why: the words of an error may name other files, which clients must not learn of.
        """
        path = self.paths[name]
        try:
            return ask(path)
        except (GGUFError, ModelNameError) as error:
            why = str(error)
        except OSError as error:
            why = f"{path}: {error.strerror or error}"
        raise RequestError(500, f"the model {name!r} cannot be used; the server's log says why", reason=why)


def _facts(path: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    with GGUFFile(locate(path).opened()) as file:

        def value(key: str) -> Any:
            if key in overrides:
                return overrides[key]
            return file[key] if key in file else None  # noqa: SIM401 - a GGUFFile has no get

        architecture = value(KEY_ARCHITECTURE)
        model = tokenizer_model(str(value(TokenizerKey.MODEL)))
        n_ctx = value(f"{architecture}.context_length")
        return {
            "vocab_type": model.vocab_type,
            "n_vocab": file.array_length(TokenizerKey.LIST) if TokenizerKey.LIST in file else 0,
            "n_ctx": n_ctx,
            "n_ctx_train": n_ctx,
            "n_embd": value(f"{architecture}.embedding_length"),
        }
