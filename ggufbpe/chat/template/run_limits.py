"""Limits a run of a template: its work in steps, and the number of characters that it makes.

A step is about 0.1 microseconds of a current processor. Functions of a template pay for what they will do before they
do it: by the items that they visit and the characters that they read and copy.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from .call_arguments import Parameters, Scope, bind
from .values import Function, Keyword, TemplateError, Undefined, Value

# Of a run; a chat adds to both by its size.
MOST_STEPS = 2_000_000
STEPS_PER_MESSAGE = 50_000
STEPS_PER_BYTE = 16
# Characters that a run may make and hold, intermediate results included.
MOST_CHARACTERS = 16 << 20
CHARACTERS_PER_MESSAGE = 16 << 10
MOST_CHARACTERS_OF_MESSAGES = 128 << 20
CHARACTERS_PER_BYTE = 16

MOST_OPERATORS = 2000  # one after the other; llama.cpp has a call on its stack for each
_SLICE = 20_000  # steps between two looks at the clock
_LONG = 1000  # characters of a string that costs more to copy than to handle
_SHORT_TEXT = 2500  # characters; CPython searches longer ones by an algorithm without a worst case
_MANY_NAMES = 50  # in a scope, from which on its copies are counted
_VISIT = 5  # steps for each member of a value that is looked at
_FLOAT = 24  # characters of a number, and of one of 17 digits or more before the point
_LARGE_FLOAT = 320


class LimitError(TemplateError):
    """A template that loops or grows for ever, or calls itself."""


class ChatSize(NamedTuple):
    """The size of a request: its messages with their parts, tools and other objects, and the bytes of all texts."""

    messages: int = 0
    bytes: int = 0


def measure_chat(value: object) -> ChatSize:
    """The number of arrays and objects in a JSON value, and the bytes of its strings."""
    stack, containers, size = [value], 0, 0
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            size += size_in_bytes(value)
        elif isinstance(value, (Mapping, list, tuple)):
            containers += 1
            stack += [*value, *value.values()] if isinstance(value, Mapping) else value
    return ChatSize(containers, size)


def size_in_bytes(text: str) -> int:
    """The size of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


Look: TypeAlias = Callable[[bool], None]


class _Watching(threading.local):
    """What templates call in this thread."""

    look: Look | None = None


_WATCHING = _Watching()


@contextmanager
def watched_by(look: Look) -> Iterator[None]:
    """Call `look` every few milliseconds while this thread compiles and runs templates.

    Its argument is true at the start of each, so that the time between two calls can be added up. An exception from it
    ends the run and passes through everything that renders; so it should not be a `ChatError`, which means that a
    template refuses a chat.
    """
    before, _WATCHING.look = _WATCHING.look, look
    try:
        yield
    finally:
        _WATCHING.look = before


def look_at_clock(starts: bool) -> None:
    """Call what watches the templates of this thread."""
    if _WATCHING.look is not None:
        _WATCHING.look(starts)


def _references_to_old_member() -> int:
    """What `sys.getrefcount` reports in `Bounds.replace` for a value that nothing else holds."""
    holder = {"a": "".join(("a", "b"))}
    old = holder.get("a")
    holder["a"] = ""
    return _getrefcount(old)


_getrefcount: Callable[[object], int] = getattr(sys, "getrefcount", lambda value: 1 << 30)  # PyPy has none
_ALONE = _references_to_old_member()


def _references_to_scope() -> int:
    """What `sys.getrefcount` reports in `Bounds.released` for a scope that only its loop holds."""

    def released(scope: dict[str, str]) -> int:
        return _getrefcount(scope)

    scope = {"a": ""}
    return released(scope)


_OF_LOOP = _references_to_scope()


class Bounds:
    """What is left of the limits of one run. `chat_size` is called at most once, if the run needs more than most."""

    def __init__(self, chat_size: Callable[[], ChatSize] = ChatSize) -> None:
        self.steps = 0  # until the next look at the clock
        self._steps_left = self._most_steps = MOST_STEPS  # besides those
        self.characters = self._most_characters = MOST_CHARACTERS
        self._chat_size: Callable[[], ChatSize] | None = chat_size

    @property
    def steps_taken(self) -> int:
        """How many steps were paid for so far."""
        return self._most_steps - self._steps_left - self.steps

    def step(self, count: int = 1) -> None:
        """Pay for `count` steps; `LimitError` beyond the limit."""
        self.steps -= count
        if self.steps < 0:
            self._next_slice()

    def spend(self, characters: int) -> None:
        """Pay for characters before they are made; `LimitError` beyond the limit."""
        self.characters -= characters
        if self.characters < 0:
            self._grow()
            if self.characters < 0:
                raise LimitError(f"the template writes more than {self._most_characters:,} characters")
        if characters >= _LONG:
            self.step(characters >> 10)

    def scan(self, characters: int) -> None:
        """Pay for reading characters one by one, as a search or a change of case does."""
        self.step(characters >> 3)

    def search(self, text: str, wanted: str) -> None:
        """Pay for looking for one string in another, which CPython may compare at each place of a short text."""
        size = len(text)
        compared = len(wanted) if size < _SHORT_TEXT else min(len(wanted), 100)
        self.step((size >> 3) + (size * compared >> 9))

    def _next_slice(self) -> None:
        """Let whoever waits for the run look at the clock, and take the next steps."""
        look_at_clock(False)
        self._steps_left += self.steps
        self.steps = 0
        if self._steps_left < 0:
            self._grow()
            if self._steps_left < 0:
                raise LimitError(f"the template takes more than {self._most_steps:,} steps")
        self.steps = min(_SLICE, self._steps_left)
        self._steps_left -= self.steps

    def _grow(self) -> None:
        """Raise the limits by what belongs to the size of the chat, the first time that one of them is reached."""
        if self._chat_size is None:
            return
        size, self._chat_size = self._chat_size(), None
        steps = STEPS_PER_MESSAGE * size.messages + STEPS_PER_BYTE * size.bytes
        characters = min(CHARACTERS_PER_MESSAGE * size.messages, MOST_CHARACTERS_OF_MESSAGES)
        characters += CHARACTERS_PER_BYTE * size.bytes
        self._most_steps += steps
        self._steps_left += steps
        self._most_characters += characters
        self.characters += characters

    def weigh(self, value: Value, each: int = 4, margin: int = 0, visit: int = _VISIT) -> None:
        """Pay for writing or comparing a value, for each member as often as it is reached.

        A member counts `each` characters, `margin` more for each array or object that it is in, and `visit` steps.
        """
        stack, members, size = [(value, 1)], 1, 0
        while stack:
            value, level = stack.pop()
            size += each + margin * level
            if isinstance(value, str):
                size += len(value)
            elif isinstance(value, float):
                size += _FLOAT if abs(value) < 1e16 else _LARGE_FLOAT
            elif isinstance(value, int):
                size += _FLOAT
            elif isinstance(value, Undefined):
                size += len(value.hint)
            else:
                inner = _members_of(value)
                members += len(inner)
                if members > _LONG:
                    self._pay(members, size, visit)
                    members = size = 0
                stack.extend([(member, level + 1) for member in inner])
        self._pay(members, size, visit)

    def _pay(self, members: int, size: int, visit: int) -> None:
        self.step(members * visit)
        self.scan(size)
        self.spend(size)

    def read(self, values: Iterable[Value]) -> None:
        """Pay for the reading of long strings from which nothing is made."""
        long = 0
        for value in values:
            if isinstance(value, str):
                long += len(value)
        if long >= _LONG:
            self.step(long >> 10)

    def items(self, count: int) -> None:
        """Pay for copying `count` items of an array before it is done."""
        self.step(count >> 4)
        self.spend(8 * count)

    def parts(self, count: int, characters: int = 0) -> None:
        """Pay for `count` strings that are cut out of another, and for their characters."""
        self.steps -= count + (characters >> 10)
        self.characters -= characters + 64 * count
        if self.steps < 0 or self.characters < 0:
            self.step(0)
            self.spend(0)

    def replacements(self, count: int) -> None:
        """Pay for the replacement of `count` parts of a string, besides their characters."""
        self.step(count)

    def replace(self, target: dict[Value, Value], key: Value, value: Value) -> None:
        """Set a member whose new value continues the old one, which is given back if nothing else holds it.

        Templates make their output so: `{% set out = out ~ text %}`. All values of `out` together have the square of
        its length, but one at a time is held.
        """
        old = target.get(key)
        target[key] = value
        if isinstance(old, (str, list)) and _getrefcount(old) <= _ALONE:
            size = len(old) if isinstance(old, str) else 8 * len(old)
            self.step(size >> 10)
            self.characters += size

    def copied(self, scope: Scope, weight: int = 0) -> Scope:
        """A scope of its own for a loop or a call; `weight` are the steps that its body takes by its size."""
        self.steps -= weight
        if self.steps < 0 or len(scope) >= _MANY_NAMES:
            self.step(len(scope) >> 3)
            self.spend(8 * len(scope))
        return scope.copy()

    def released(self, scope: Scope, outer: Scope) -> None:
        """Give back what `copied(outer)` took for a loop's scope, unless something else holds that scope.

        The outer scope has no other names than at the start: the loop sets those of its own scope.
        """
        if len(outer) >= _MANY_NAMES and _getrefcount(scope) <= _OF_LOOP:
            self.characters += 8 * len(outer)

    def bound(
        self, name: str, parameters: Parameters, scope: Scope, given: list[Value], weight: int
    ) -> Scope:
        """The scope of a macro's body: the caller's names and its parameters."""
        self.steps -= weight
        if self.steps < 0 or len(scope) >= _MANY_NAMES:
            self.copied(scope)
        inner = scope.copy()
        if len(given) == len(parameters) and Keyword not in map(type, given):  # as nearly always
            for (parameter, _), value in zip(parameters, given):
                inner[parameter] = value
        else:
            self.step(len(parameters) * len(given))
            bind(name, parameters, inner, scope, given)
        return inner

    def made_with_names(self, members: dict[Value, Value]) -> dict[Value, Value]:
        """An object that the template writes down, with strings as keys, counted."""
        self.spend(64 + 16 * len(members))
        return members

    def made(self, array: Value) -> Value:
        """An array that the template writes down, counted."""
        self.spend(56 + 8 * len(array))
        return array


def _members_of(value: Value) -> list[Value]:
    """What a value is made of: items, names and members, or the value that a method belongs to."""
    if isinstance(value, dict):
        return [member for pair in value.items() for member in pair]
    if isinstance(value, (list, tuple)):
        return list(value)
    return list(value.this) if isinstance(value, Function) else []
