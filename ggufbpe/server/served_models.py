"""The models that a server was started with, by name, each opened on first use.

A request names a model; only the paths given at the start are ever opened.
"""

from __future__ import annotations

import os
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
from ..models.loading import load
from ..models.vocabulary import emit_warnings
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


class OpenModel(NamedTuple):
    """A tokenizer and the facts of the file that it was opened from; another file may be at its path by now."""

    tokenizer: Tokenizer
    facts: dict[str, Any]


class _FileState(NamedTuple):
    """What changes when a file is replaced or written to."""

    path: str
    inode: int
    size: int
    modified: int  # nanoseconds


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
        self._facts = partial(_facts, overrides=self._overrides)
        self._open: OrderedDict[str, OpenModel] = OrderedDict()
        # what was read of files, with their states before that, by model and by what read it
        self._known: dict[tuple[str, Callable[[GGUFFile], Any]], tuple[_FileState | None, Any]] = {}
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
        return self.opened(name).tokenizer

    def opened(self, name: str) -> OpenModel:
        """A model with its facts, opened if need be. `RequestError` 500 if its file cannot be used."""
        model = self._used(name)
        if model is not None:
            return model
        with self._opening[name]:
            model = self._used(name)
            if model is None:
                model = self.asked(name, partial(self._opened_at, name=name))
                with self._changing:
                    self._open[name] = model
                    while len(self._open) > self._most_open:
                        self._open.popitem(last=False)
        return model

    def _opened_at(self, path: str, name: str) -> OpenModel:
        """The model at `path`, with the facts of the same file. Answers call it by `name`: clients learn no path."""
        location = locate(path)
        state = _file_state(location.path)
        with GGUFFile(location.opened()) as file:
            facts = self._facts(file)
            vocabulary, metadata = load(file, self._overrides)
        emit_warnings(vocabulary)
        self._known[path, self._facts] = state, facts
        return OpenModel(Tokenizer(vocabulary, metadata=metadata, name=name), facts)

    def if_open(self, name: str) -> Tokenizer | None:
        """The tokenizer if it is open already."""
        model = self._used(name)
        return None if model is None else model.tokenizer

    def _used(self, name: str) -> OpenModel | None:
        """The model if it is open already, which makes it the most recently used one."""
        with self._changing:
            if name not in self._open:
                return None
            self._open.move_to_end(name)
            return self._open[name]

    @property
    def open_count(self) -> int:
        """The number of open models."""
        return len(self._open)

    def facts(self, name: str) -> dict[str, Any]:
        """The field `meta` of `/v1/models`: what the metadata says, without anything about the weights.

        These are facts of the model that is open, else of the file that would be opened now; of a remote model those
        of its last opening.
        """
        with self._changing:
            model = self._open.get(name)
        return self.known_of_file(name, self._facts) if model is None else model.facts

    def known_of_file(self, name: str, read: Callable[[GGUFFile], T]) -> T:
        """What `read` returns for the file of a model, which is opened only if it has changed since the last time.

        A remote file is opened once. `RequestError` 500 if the file cannot be used.
        """
        return self.asked(name, partial(self._known_at, read=read))

    def _known_at(self, path: str, read: Callable[[GGUFFile], T]) -> T:
        location = locate(path)
        state = _file_state(location.path)
        known = self._known.get((path, read))
        if known is None or known[0] != state:
            with GGUFFile(location.opened()) as file:
                known = self._known[path, read] = state, read(file)
        found: T = known[1]
        return found

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


def _file_state(path: str) -> _FileState | None:
    """The state of the file at `path`; None for a remote one, which has no path."""
    if not path:
        return None
    status = os.stat(path)
    return _FileState(path, status.st_ino, status.st_size, status.st_mtime_ns)


def _facts(file: GGUFFile, overrides: Mapping[str, Any]) -> dict[str, Any]:
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
