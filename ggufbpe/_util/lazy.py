"""Attributes computed and modules imported on first use, by one thread, and never half-done in a child process.

`os.fork` copies only the thread that calls it. What another thread holds or has half made at that moment stays so in
the child for ever: the lock of `functools.cached_property` (Python 3.10 and 3.11), or that of a module being
imported. So all of this is done under one lock, which a fork waits for. The lock is reentrant: computing one
attribute computes others, and a signal handler may fork in the middle of it.
"""

from __future__ import annotations

import os
from _thread import RLock  # `threading` takes longer to import than all else here
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")

IMPORT_LOCK = RLock()


class cached_property(Generic[T]):  # noqa: N801 - used as functools.cached_property is
    """An attribute that is computed when it is first asked for, by the first thread that asks."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.func = make
        self.name = make.__name__
        self.__doc__ = make.__doc__

    def __repr__(self) -> str:  # what help() shows
        return "<made on first use>"

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object, owner: type) -> cached_property[T] | T:
        if instance is None:
            return self
        with IMPORT_LOCK:
            attributes = vars(instance)
            if self.name not in attributes:
                attributes[self.name] = self.func(instance)
            value: T = attributes[self.name]
            return value


class computed_once(cached_property[T]):  # noqa: N801 - used as functools.cached_property is
    """An attribute that is computed when it is first asked for, without the lock: several threads may compute it.

    For what runs the chat template of a stranger, which takes as long as it likes: with the lock, all threads would
    wait for whatever they have not made yet.
    """

    @overload
    def __get__(self, instance: None, owner: type) -> computed_once[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object, owner: type) -> computed_once[T] | T:
        if instance is None:
            return self
        attributes = vars(instance)  # the next look-up finds the value here, and not this descriptor
        value = attributes[self.name] = self.func(instance)
        return value


def _release() -> None:
    with suppress(RuntimeError):  # not ours: an interruption ended the wait for it
        IMPORT_LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=IMPORT_LOCK.acquire, after_in_parent=_release, after_in_child=_release)
