"""The model that is given by its path or its name.

    path or name -> [this file] -> names/, unless there is something at the path -> what `GGUFFile` opens

Every function and command that takes a model comes here. The room of names is imported only for what is no path.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .gguf.source import Source
    from .names.grammar import Remote
    from .remote import FarProgress

ModelName = str | os.PathLike[str]


class Found:
    """A model that a path or a name means. It can be given wherever a path can, and is that of its file."""

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
        self.name = name  # in full, so that it can be typed again; of what is far away, once it is opened
        self.path = path  # of the file; "" of one that is not on this machine
        self.store = (
            store  # the program in whose store it is, as "Ollama"; "" for a path and what is far away
        )
        self.said = said  # what was chosen where the name left a choice, in words
        self.note = note  # what is good to know of it
        self.remote = remote  # where it is, for `ggufbpe.remote`
        # called before a far file is asked for, as its bytes come, and with None when that is over
        self.progress: Callable[[FarProgress | None], None] | None = None
        self._offline, self._refresh = offline, refresh
        self._source: Source | None = None  # what was read from far away

    def __fspath__(self) -> str:
        return self.path or self.name

    def __repr__(self) -> str:
        return f"<Found {self.name}: {self.path or 'far away'}>"

    def opened(self) -> str | Source:
        """What `GGUFFile` takes: the path, or the first bytes of a file that is far away, which are read once."""
        if self.remote is None:
            return self.path
        if self._source is None:
            self._source = self._read(self.remote)
        return self._source.again()

    def _read(self, reference: Remote) -> Source:
        from .remote import FarProgress, far_source

        if self.progress is not None:
            self.progress(FarProgress(self.name, 0, 0))
        try:
            source = far_source(
                reference, offline=self._offline, refresh=self._refresh, progress=self.progress
            )
            self.name = source.path  # with the file that was chosen
            return source
        finally:
            if self.progress is not None:
                self.progress(None)


def locate(model: ModelName, *, offline: bool = False, refresh: bool = False) -> Found:
    """The model that `model` means: what is at that path if there is anything, else what docs/names.md says.

    `offline` asks no network; `refresh` asks again for what was read from far away before. What another program has on
    this machine is taken as it is, with either. Nothing is asked for before the model is opened.

    `ModelNameError` where a name fits no form, or several models; `FileNotFoundError` where there is no such model on
    this machine and none far away is asked for; `StoreError` where a program's store is damaged.

    >>> locate("ollama:gemma3")                                             # doctest: +SKIP
    <Found ollama:gemma3:latest: /home/me/.ollama/models/blobs/sha256-…>
    """
    if isinstance(model, Found):
        return model
    if os.path.lexists(model):
        path = os.fsdecode(model)
        return Found(path, path)
    from .names.resolve import resolve

    return Found(*resolve(model), offline=offline, refresh=refresh)
