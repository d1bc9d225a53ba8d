"""The limits of a run of a template: steps, and characters made.

[this file] -> runtime

Functions of a template count what they will do before they do it.
"""

from __future__ import annotations

from collections.abc import Iterable

from .arguments import Parameters, Scope, bind
from .values import Keyword, TemplateError, Value

MOST_STEPS = 2_000_000  # iterations of loops, calls of macros, and items that filters look at
MOST_CHARACTERS = 64 << 20  # that a run may make, intermediate results included
MOST_OPERATORS = 2000  # one after the other; llama.cpp has a call on its stack for each


class LimitError(TemplateError):
    """A template that loops or grows for ever, or calls itself."""


class Bounds:
    """What is left of the limits of one run."""

    def __init__(self) -> None:
        self.steps = MOST_STEPS
        self.characters = MOST_CHARACTERS

    def step(self, count: int = 1) -> None:
        """Count steps; `LimitError` beyond the limit."""
        self.steps -= count
        if self.steps < 0:
            raise LimitError(f"the template takes more than {MOST_STEPS:,} steps")

    def spend(self, characters: int) -> None:
        """Count characters before they are made; `LimitError` beyond the limit."""
        self.characters -= characters
        if self.characters < 0:
            raise LimitError(f"the template writes more than {MOST_CHARACTERS:,} characters")

    def weigh(self, value: Value, each: int = 4, margin: int = 0) -> None:
        """Count what writing or comparing a value will take, each member as often as it is reached.

        A member counts `each` characters, and `margin` for each array or object that it is in.
        """
        stack, steps, size = [(value, 1)], 0, 0
        most_steps, most_size = self.steps, self.characters
        while stack:
            value, level = stack.pop()
            steps += 1
            size += each + margin * level
            if isinstance(value, str):
                size += len(value)
            elif isinstance(value, dict):
                stack.extend([(member, level + 1) for pair in value.items() for member in pair])
            elif isinstance(value, (list, tuple)):
                stack.extend([(member, level + 1) for member in value])
            if steps > most_steps or size > most_size:
                break
        self.step(steps)
        self.spend(size)

    def read(self, values: Iterable[Value]) -> None:
        """Count the reading of long strings from which nothing is made."""
        long = 0
        for value in values:
            if isinstance(value, str):
                long += len(value)
        if long >= 1000:
            self.step(long // 1000)

    def copied(self, scope: Scope, weight: int = 0) -> Scope:
        """A scope of its own for a loop or a call; `weight` are the steps that its body takes by its size."""
        self.steps -= weight
        if self.steps < 0 or len(scope) >= 50:
            self.step(len(scope) // 50)
            self.spend(8 * len(scope))
        return scope.copy()

    def bound(
        self, name: str, parameters: Parameters, scope: Scope, given: list[Value], weight: int
    ) -> Scope:
        """The scope of a macro's body: the caller's names and its parameters."""
        self.steps -= weight
        if self.steps < 0 or len(scope) >= 50:
            self.copied(scope)
        inner = scope.copy()
        if len(given) == len(parameters) and Keyword not in map(type, given):  # as nearly always
            for (parameter, _), value in zip(parameters, given):
                inner[parameter] = value
        else:
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
