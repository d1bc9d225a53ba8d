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
    """A module of a package of `extra`. `NotInstalledError` that says what it is for, such as "a plot"."""
    try:
        with IMPORT_LOCK:
            return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        package = _PACKAGES.get(name, name)
        raise NotInstalledError(
            f"{what} takes the package {package}: {install_command(extra)}", name=package
        ) from None


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
    """What installs an extra where this runs: `pip`, if that of PATH is of this environment, else it by its path."""
    import shlex
    import shutil

    pip = shutil.which("pip")
    is_ours = pip is not None and os.path.dirname(pip) == os.path.dirname(sys.executable)
    return f"{'pip' if is_ours else f'{shlex.quote(sys.executable)} -m pip'} install 'ggufbpe[{extra}]'"
