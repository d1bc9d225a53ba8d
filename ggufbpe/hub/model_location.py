"""Turns a path or a name of a model into a `ModelLocation`, which says what `GGUFFile` opens.

    path or name -> locate -> name_grammar.parse_name -> stores/all_stores.find_stored -> ModelLocation.opened

Every function and command that takes a model calls `locate`. A path that exists always wins, then a model on this
machine, and only then, if the name says where, a remote one. The rest of `hub/` is imported only for an argument that
is not an existing path, and `hub/remote/` only when a remote model is opened.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from .._util.errors import ModelNameError, printable
from .._util.shell import no_flag
from ..gguf.source import is_tokenizer_of_others

if TYPE_CHECKING:
    from ..gguf.source import Source
    from .name_grammar import Remote
    from .remote.range_stream import RemoteProgress
    from .stores.stored_model import StoredModel

ModelName = str | os.PathLike[str]
IMPORTED = (
    "import:"  # before the path of another program's files: what errors call the GGUF that is made of them
)


class ModelLocation:
    """The model that a path or name stands for. It can be given wherever a path can, and then is its file's path.

    `name` is the name in full, so that it can be typed again (of a remote model, once it is opened). `path` is the
    file's path, "" if it is not on this machine, and `store` the program in whose store it is, such as "Ollama"; "" for
    a path or a remote model. `choice` says what was chosen if the name left a choice, and `note` what is worth knowing
    about the model. `remote` says where a remote model is, otherwise None. `progress` can be set to a function, which
    is called before a remote file is requested, as its bytes arrive, and with None at the end.
    """

    def __init__(
        self,
        name: str,
        path: str = "",
        store: str = "",
        choice: str = "",
        note: str = "",
        remote: Remote | None = None,
        *,
        offline: bool = False,
        refresh: bool = False,
        source: Source | None = None,
    ) -> None:
        self.name = name
        self.path = path
        self.store = store
        self.choice = choice
        self.note = note
        self.remote = remote
        self.progress: Callable[[RemoteProgress | None], None] | None = None
        self._offline, self._refresh = offline, refresh
        self._source = source  # the metadata if it is in memory: imported, or remote and read before

    def __fspath__(self) -> str:
        return self.path or self.name

    def __repr__(self) -> str:
        return f"<ModelLocation {self.name}: {self.path or 'remote'}>"

    def opened(self) -> str | Source:
        """Return what `GGUFFile` takes: the path, or bytes in memory. Those of a remote file are read once."""
        if self._source is None:
            if self.remote is None:
                return self.path
            self._source = self._read(self.remote)
        return self._source.again()

    @property
    def is_imported(self) -> bool:
        """Whether the model is a GGUF in memory, made of another program's files (convert/in_memory.py)."""
        return self.remote is None and self._source is not None

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


def locate(model: ModelName, *, offline: bool = False, refresh: bool = False) -> ModelLocation:
    """Return the location of a model: the file at the path `model`, or else the model of that name (docs/names.md).

    `offline` never uses the network; `refresh` checks remote metadata that was read before. Either way, models of other
    programs on this machine are taken as they are. Nothing is requested before the model is opened.

    `ModelNameError` if a name fits no form, or several models; `FileNotFoundError` if there is no such model on this
    machine and the name stands for no remote one; `PermissionError` for a path through a folder that is closed;
    `StoreError` if a program's store is damaged; `TypeError` for anything but a path or a name.

    >>> locate("ollama:gemma3")                                             # doctest: +SKIP
    <ModelLocation ollama:gemma3:latest: /home/me/.ollama/models/blobs/sha256-…>
    """
    if isinstance(model, ModelLocation):
        return model
    if not isinstance(model, (str, bytes, os.PathLike)):
        raise TypeError(
            f"a model is given by its path or name, a str or os.PathLike, not {type(model).__name__}"
        )
    if os.path.lexists(model):
        path = os.fsdecode(model)
        return ModelLocation(path, path)
    from .name_grammar import BareName, FilePath, OllamaName, Remote, parse_name
    from .stores.all_stores import find_stored

    reference = parse_name(model)
    if isinstance(reference, FilePath):
        return _at_path(reference.path)
    if isinstance(reference, BareName):
        return _of_bare_name(reference.name)
    stored = find_stored(reference)
    if stored is not None:
        names_a_file = getattr(reference, "file", None) or getattr(reference, "quant", None)
        has_choice = not isinstance(reference, OllamaName) and not names_a_file
        return _in_store(stored, f"using {stored.name}, the file on this machine" if has_choice else "")
    if isinstance(reference, Remote):
        return ModelLocation(str(reference), remote=reference, offline=offline, refresh=refresh)
    similar = _similar_models(str(reference).partition(":")[2])
    raise _missing(str(model), f"no such model on this machine{similar}")


def _at_path(path: str) -> ModelLocation:
    """Return the location of a file at a path that may begin with `~`."""
    expanded = os.path.expanduser(path)
    try:
        os.lstat(expanded)
    except PermissionError:  # of a folder on the way
        raise
    except (OSError, ValueError):
        raise _missing(path, f"{os.strerror(errno.ENOENT)}{_similar_files(expanded)}") from None
    return ModelLocation(expanded, expanded)


def _of_bare_name(name: str) -> ModelLocation:
    """Return the location of the one model in the stores that a name without a prefix stands for."""
    from .name_grammar import parse_name
    from .stores.all_stores import STORES, closed_folders, find_stored, models_named

    models, far = models_named(name), _on_the_network(name)
    if not models and far:  # names of an older llama.cpp's downloads do not say where the owner ends
        models = [found for found in [find_stored(parse_name(far))] if found is not None]
    if len(models) == 1:
        return _in_store(models[0], f"using {models[0].name}, a model of {models[0].store}")
    if models:
        names = [model.name for model in models]
        fit = f"{printable(name, 200)} fits {len(models)} models"
        raise ModelNameError(f"{fit}; type one of {_listed(names)}", names)
    similar = _similar_models(name)
    if name.lower().endswith((".gguf", ".json")) and not similar:
        return _at_path(name)
    *others, last = STORES
    why = f"{os.strerror(errno.ENOENT)}, and {', '.join(others)} and {last} have no model of this name here"
    closed = _listed(list(dict.fromkeys(folder for _, folder in closed_folders())))
    unread = f"; you may not read {closed}" if closed else ""
    raise _missing(name, f"{why}{similar}{unread}{far and f'; {far} would read one from the network'}")


def _on_the_network(name: str) -> str:
    """Return the name on the hub or in Ollama's registry of a name without a prefix; "" if it can have none."""
    from .name_grammar import is_repository, parse_name

    far = f"hf:{name}" if is_repository(name.partition(":")[0]) else f"ollama:{name}"
    try:
        parse_name(far)
    except ModelNameError:
        return ""
    return far


def _in_store(model: StoredModel, choice: str) -> ModelLocation:
    """Return the location of a model in another program's store. `StoreError` if it cannot be opened."""
    model.require_usable()
    return ModelLocation(model.name, model.path, model.store, choice, model.note)


def _similar_models(name: str) -> str:
    """Return a question that names the models in the stores with similar names; "" if there are none."""
    from .stores.all_stores import similar_names

    return _did_you_mean(similar_names(name))


def _similar_files(path: str) -> str:
    """Return a question that names the .gguf files in the folder of `path` with similar names; "" if there are none."""
    from difflib import get_close_matches

    folder, name = os.path.split(path)
    try:
        there = [each for each in os.listdir(folder or ".") if each.lower().endswith(".gguf")]
    except OSError:
        return ""
    return _did_you_mean(
        [os.path.join(folder, each) for each in get_close_matches(name, there, n=3, cutoff=0.8)]
    )


def _did_you_mean(names: list[str]) -> str:
    return f" (did you mean {_listed(names)}?)" if names else ""


def _listed(names: list[str]) -> str:
    return ", ".join(printable(name, 200)[1:-1] for name in names[:10]) + (" …" if len(names) > 10 else "")


def _missing(name: str, why: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, why, name)


def fix_command(path: str, changes: Iterable[str]) -> str:
    """Return the `ggufbpe fix` that makes `changes` to a copy of a model.

    A remote model is to be downloaded before. Another program's files are imported by a command before it. The first
    part of a split model is changed in place or, where it must not be, keeps its name in a folder into which the other
    parts are to be linked before: llama.cpp finds those by its name. The copy of fixed.gguf, called fixed in a server,
    is fixed-2.gguf, and so on. To be shown, the command goes through `shell.visible_command`.
    """
    import shlex

    first, model = "", path or "model.gguf"
    files = path.removeprefix(IMPORTED)
    if files and is_tokenizer_of_others(files):
        first, model = f"ggufbpe import {shlex.quote(no_flag(files))} -o vocab.gguf && ", "vocab.gguf"
    elif path and not os.path.lexists(path):
        from .name_grammar import Remote, parse_name
        from .stores.all_stores import how_to_download

        if isinstance(reference := parse_name(path), Remote):
            command, model = how_to_download(reference) or ("", "model.gguf")
            first = f"download it first{f' ({command})' * bool(command)}, then "
    from .quantization import is_of_several

    name, output = os.path.basename(model), ["-o", "fixed.gguf"]
    copied = re.fullmatch(r"fixed(?:-(\d{1,9}))?(?:\.gguf)?", name)
    if copied and os.path.abspath(model) == os.path.abspath(name):
        output[1] = f"fixed-{int(copied[1] or 1) + 1}.gguf"
    elif is_of_several(name) and _may_change(path, model):
        output = ["--in-place"]
    elif is_of_several(name):
        first += "link the other parts into a folder named fixed, then "
        output = ["-o", f"fixed/{name}"]
    return f"{first}ggufbpe fix {shlex.join((no_flag(model), *changes, *output))}"


def _may_change(path: str, model: str) -> bool:
    """Whether `fix` may change `model` in place: a file at `path` that is no blob, or a download to this folder.

    Other stores that name files by their content, as DVC's, link to files that nobody may write to.
    """
    if not os.path.lexists(path):
        return os.path.basename(model) == model
    is_kept = os.path.islink(path) and os.path.exists(path) and not os.stat(path).st_mode & stat.S_IWUSR
    return not is_blob(path) and not is_kept


def is_blob(path: str) -> bool:
    """Whether a file is named by the digest of its content, as in Ollama's store and the hub's cache."""
    folder, file = os.path.split(os.path.realpath(path))
    is_digest = re.fullmatch(r"(sha256-)?([0-9a-f]{40}|[0-9a-f]{64})", file) is not None
    return os.path.basename(folder) == "blobs" and is_digest
