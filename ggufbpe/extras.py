"""Packages that only an extra of ggufbpe brings, imported where they are used.

the name of a package, what it is for -> [this file] -> the module, or an error that names the extra
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .once import making

_PACKAGES = {"google": "protobuf"}  # whose modules have another name than the package


class NotInstalledError(ModuleNotFoundError):
    """A package of an extra is not installed; the message says which extra."""


def imported(module: str, extra: str, what: str) -> Any:
    """A module of a package of `extra`. `NotInstalledError` that says what it is for, such as "a plot"."""
    try:
        with making:
            return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        package = _PACKAGES.get(name, name)
        raise NotInstalledError(
            f"{what} takes the package {package}: pip install 'ggufbpe[{extra}]'", name=package
        ) from None
