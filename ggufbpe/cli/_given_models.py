"""The models that the arguments of a command name: by path, by name, on the hub, or in the environment."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .._util.errors import escape_invisible, printable
from .._util.llama_cpp_states import FOLLOWED
from ..gguf.source import is_tokenizer_of_others
from . import _output
from ._arguments import MODEL_VARIABLE, UsageError, overrides_of

if TYPE_CHECKING:
    from ..gguf.metadata import Overrides
    from ..hub.model_location import ModelLocation
    from ..hub.remote.range_stream import RemoteProgress
    from ..tokenizer import Tokenizer


def default_model() -> str:
    """The path of the vocabulary that comes with the package."""
    return os.path.join(os.path.dirname(os.path.dirname(__file__)), "models", "gpt2.gguf")


def model_path(arguments: argparse.Namespace) -> str | ModelLocation:
    """The model to open; a note on stderr says so if it is the one in the package."""
    named = _named_model(arguments)
    if named is not None:
        return named
    _output.note("ggufbpe: no model given (-m); using the GPT-2 vocabulary that comes with ggufbpe")
    return default_model()


def opened_tokenizer(arguments: argparse.Namespace) -> Tokenizer:
    """The tokenizer of the model to open, with `--override-kv` and `--llama-cpp` where the command has that flag."""
    state = getattr(arguments, "llama_cpp", FOLLOWED)
    return tokenizer_at(model_path(arguments), overrides_of(arguments), state)


def tokenizer_at(path: str | ModelLocation, overrides: Overrides | None, state: str = FOLLOWED) -> Tokenizer:
    """The tokenizer of a model that `located` found."""
    from ..tokenizer import Tokenizer

    return Tokenizer.from_gguf(path, overrides=overrides, llama_cpp=state)


def required_model(arguments: argparse.Namespace, command: str) -> str | ModelLocation:
    """The model to open, for a command where that of the package would make no sense."""
    named = _named_model(arguments)
    if named is None:
        raise UsageError(f"which model? ggufbpe {command} MODEL.gguf (see ggufbpe {command} --help)")
    return named


def model_paths(arguments: argparse.Namespace) -> list[str | ModelLocation]:
    """The models to open where several may be named."""
    shared = {name: getattr(arguments, name) for name in ("hf_file", "offline", "refresh")}
    return models_of(arguments, arguments.model) or [model_path(argparse.Namespace(model=None, **shared))]


def models_of(arguments: argparse.Namespace, given: Iterable[str]) -> list[str | ModelLocation]:
    """The models `given` as arguments, and those named by flags, where there may be several."""
    repositories, addresses = arguments.hf_repo or [], arguments.model_url or []
    return [
        *(located(arguments, each) for each in given),
        *(_on_the_hub(arguments, each) for each in repositories),
        *(located(arguments, each) for each in addresses),
    ]


def _named_model(arguments: argparse.Namespace) -> str | ModelLocation | None:
    names = ("path", "model", "hf_repo", "model_url")
    given = [(name, value) for name in names if (value := getattr(arguments, name, None)) is not None]
    if len(given) > 1:
        raise UsageError(f"give one model, not {printable(given[0][1])} and {printable(given[1][1])}")
    for name, value in given:
        return _on_the_hub(arguments, value) if name == "hf_repo" else located(arguments, value)
    if getattr(arguments, "hf_file", None) is not None:
        raise UsageError("--hf-file names a file of a repository; give the repository, too: -hf OWNER/REPO")
    default = os.environ.get(MODEL_VARIABLE)
    if not default:
        return None
    try:
        found = located(arguments, default)
        if isinstance(found, str):
            os.stat(found)  # a link may lead nowhere
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(
            f"the environment's {MODEL_VARIABLE} names {printable(default)}: {why}; give another model with -m"
        ) from error
    return found


def _on_the_hub(arguments: argparse.Namespace, repository: str) -> str | ModelLocation:
    from ..hub.name_grammar import hub_name

    return located(arguments, str(hub_name(repository, arguments.hf_file)))


def located(arguments: argparse.Namespace, given: str) -> str | ModelLocation:
    """The path itself if it exists; otherwise the model of that name, with a note of what was chosen.

    For a tokenizer.json and other files that `ggufbpe import` reads, the model is what that would write.
    """
    if os.path.lexists(given):
        if not given.endswith(".gguf") and is_tokenizer_of_others(given):
            from ..convert.in_memory import imported_model

            return imported_model(given)
        return given
    from ..hub.model_location import locate

    found = locate(given, offline=arguments.offline, refresh=arguments.refresh)
    if found.remote is not None:
        _watch(found)
    if found.choice:
        _output.note(f"ggufbpe: {escape_invisible(found.choice)}")
    return found


def _watch(found: ModelLocation) -> None:
    """Show the progress of reading a remote model, and say which file was chosen."""
    from ._progress import remote_progress

    show, name = remote_progress(), found.name

    def watch(progress: RemoteProgress | None) -> None:
        show(progress)
        if progress is None and found.name != name and getattr(found.remote, "quant", None) is None:
            _output.note(f"ggufbpe: {escape_invisible(found.name)}, of the files in the repository")

    found.progress = watch
