"""Turns a path or a name of a model into what `GGUFFile` opens.

Every function and command that takes a model calls this module. The rest of `hub/` is imported only for an argument
that is not an existing path.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..gguf.source import Source
    from .name_grammar import Remote
    from .remote.range_stream import RemoteProgress

ModelName = str | os.PathLike[str]


class ModelLocation:
    """The model that a path or name stands for. It can be given wherever a path can, and then is its file's path."""

    def __init__(
        self,
        name: str,
        path: str = "",
        store: str = "",
        said: str = "",
        note: str = "",
        remote: Remote | None = None,
        *,
        offline: bool = False,
        refresh: bool = False,
    ) -> None:
        self.name = name  # in full, so that it can be typed again; of a remote model, once it is opened
        self.path = path  # of the file; "" if it is not on this machine
        self.store = store  # the program in whose store it is, as "Ollama"; "" for a path or a remote model
        self.said = said  # in words, what was chosen if the name left a choice
        self.note = note  # worth knowing about it
        self.remote = remote  # where it is, for `ggufbpe.hub.remote`
        # called before a remote file is requested, as its bytes arrive, and with None at the end
        self.progress: Callable[[RemoteProgress | None], None] | None = None
        self._offline, self._refresh = offline, refresh
        self._source: Source | None = None  # the remote metadata, once it was read

    def __fspath__(self) -> str:
        return self.path or self.name

    def __repr__(self) -> str:
        return f"<ModelLocation {self.name}: {self.path or 'remote'}>"

    def opened(self) -> str | Source:
        """What `GGUFFile` takes: the path, or the first bytes of a remote file, which are read once."""
        if self.remote is None:
            return self.path
        if self._source is None:
            self._source = self._read(self.remote)
        return self._source.again()

    def _read(self, reference: Remote) -> Source:
        from .remote.opening import remote_source
        from .remote.range_stream import RemoteProgress

        if self.progress is not None:
            self.progress(RemoteProgress(self.name, 0, 0))
        try:
            source = remote_source(
                reference, offline=self._offline, refresh=self._refresh, progress=self.progress
            )
            self.name = source.path  # with the file that was chosen
            return source
        finally:
            if self.progress is not None:
                self.progress(None)


def fix_command(path: str, changes: Iterable[str]) -> str:
    """The `ggufbpe fix` that makes `changes` to a copy of a model; of a remote one, after how to download it."""
    import shlex

    first, model = "", path or "model.gguf"
    if path and not os.path.lexists(path):
        from .name_grammar import Remote, parse_name
        from .stores.all_stores import how_to_download

        if isinstance(name := parse_name(path), Remote):
            command, model = how_to_download(name) or ("", "model.gguf")
            first = f"download it first{f' ({command})' * bool(command)}, then "
    return f"{first}ggufbpe fix {shlex.join((model, *changes))} -o fixed.gguf"


def locate(model: ModelName, *, offline: bool = False, refresh: bool = False) -> ModelLocation:
    """The model that `model` stands for: the file at that path if there is one, else by its name (docs/names.md).

    `offline` never uses the network; `refresh` checks remote metadata that was read before. Either way, models of other
    programs on this machine are taken as they are. Nothing is requested before the model is opened.

    `ModelNameError` if a name fits no form, or several models; `FileNotFoundError` if there is no such model on this
    machine and the name stands for no remote one; `StoreError` if a program's store is damaged.

    >>> locate("ollama:gemma3")                                             # doctest: +SKIP
    <ModelLocation ollama:gemma3:latest: /home/me/.ollama/models/blobs/sha256-…>
    """
    if isinstance(model, ModelLocation):
        return model
    if os.path.lexists(model):
        path = os.fsdecode(model)
        return ModelLocation(path, path)
    from .resolve import resolve

    return ModelLocation(*resolve(model), offline=offline, refresh=refresh)
