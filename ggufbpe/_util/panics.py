"""Turns a panic of a package that is written in Rust into an ordinary error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .errors import printable


class PanicError(ValueError):
    """A package written in Rust panicked; the message says which package, and why."""


@contextmanager
def panics_as_errors(package: str) -> Iterator[None]:
    """Raise `PanicError` if `package` panics: PyO3's PanicException is no `Exception`, so nothing would catch it."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise PanicError(
            f"the package {package} crashes on this file: {printable(str(error), 200)}"
        ) from error
