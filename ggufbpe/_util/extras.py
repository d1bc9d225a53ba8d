"""Imports packages that only an extra of ggufbpe brings, and raises an error that names the extra if one is missing."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from .lazy import IMPORT_LOCK

_PACKAGES = {"google": "protobuf"}  # whose modules have another name than the package


class NotInstalledError(ModuleNotFoundError):
    """A package of an extra is not installed; the message says which extra."""


def imported(module: str, extra: str, what: str) -> Any:
    """Return a module of a package of `extra`; `what` it is for, such as "a plot", begins the `NotInstalledError`."""
    name = module.partition(".")[0]
    package = _PACKAGES.get(name, name)
    return _imported(module, package, f"{what} takes the package {package}: {install_command(extra)}")


def imported_package(module: str, package: str, what: str) -> Any:
    """Return a module of a package that no extra brings. `NotInstalledError` with the command that installs it."""
    message = f"{what} needs the package {package}, which is not installed: {pip_command()} install {package}"
    return _imported(module, package, message)


def _imported(module: str, package: str, message: str) -> Any:
    try:
        with IMPORT_LOCK:
            return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the package is there and lacks something else
        raise NotInstalledError(message, name=package) from None


def file_system_at(url: str, extra: str) -> tuple[Any, str]:
    """fsspec's file system of a URL, and the path in it.

    `NotInstalledError` without fsspec; `ValueError` for a scheme that it does not know or whose package is missing.
    """
    fsspec = imported("fsspec", extra, f"{url.partition(':')[0]}://")
    try:
        located: tuple[Any, str] = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise ValueError(str(error)) from None
    return located


def install_command(extra: str) -> str:
    """Return the pip command that installs `extra` in the current environment."""
    return f"{pip_command()} install 'ggufbpe[{extra}]'"


def pip_command() -> str:
    """Return how to run the current environment's pip: `pip` if PATH finds it, otherwise by the interpreter's path."""
    import shlex
    import shutil

    pip = shutil.which("pip")
    is_ours = pip is not None and os.path.dirname(pip) == os.path.dirname(sys.executable)
    return "pip" if is_ours else f"{shlex.quote(sys.executable)} -m pip"
