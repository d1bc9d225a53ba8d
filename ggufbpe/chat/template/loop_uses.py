"""Finds which members of the variable `loop` a template uses, and in which of its loops.

Most loops use none or few, and making all nine takes longer than what most loops do in a round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

from jinja2 import nodes

_MEMBERS = {  # with the number of the round, from 0, and all rows
    "index": "{i} + 1",
    "index0": "{i}",
    "revindex": "len({rows}) - {i}",
    "revindex0": "len({rows}) - {i} - 1",
    "first": "{i} == 0",
    "last": "{i} == len({rows}) - 1",
    "length": "len({rows})",
    "previtem": "{rows}[{i} - 1] if {i} else Undefined('previtem')",
    "nextitem": "{rows}[{i} + 1] if {i} + 1 < len({rows}) else Undefined('nextitem')",
}


class LoopUses:
    """The uses of `loop` in one template.

    `whole` is True if it is not only asked for members by name: then it is another object in each round.
    """

    def __init__(self, template: nodes.Template) -> None:
        named, uses = set(), 0
        self.whole = self._seen_by_macros = False
        for node in walked(template):
            # the bodies of these see the names of where they are called
            if isinstance(node, (nodes.Macro, nodes.CallBlock)):
                self._seen_by_macros = self._seen_by_macros or _is_seen(node.body)
            uses += _is_loop(node)
            member = _member_of_loop(node)
            if member is not None:
                named.add(member)
                uses -= 1
            is_changed = _is_loop(node) and node.ctx == "store"  # as in `set loop.x = 1`
            self.whole = self.whole or is_changed or isinstance(node, nodes.CallBlock)
        self.whole = self.whole or uses > 0
        self._members = {name: _MEMBERS[name] for name in _MEMBERS if self.whole or name in named}

    def members_in(self, loop: nodes.For) -> dict[str, str] | None:
        """The members that are used, with their values in Python; None for a loop whose `loop` nothing sees."""
        return self._members if self.whole or self._seen_by_macros or _is_seen(loop.body) else None


def _member_of_loop(node: nodes.Node) -> str | None:
    if isinstance(node, (nodes.Getattr, nodes.Getitem)) and _is_loop(node.node):
        if isinstance(node, nodes.Getattr):
            return node.attr
        if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
            return node.arg.value
    return None


def _is_loop(node: nodes.Node) -> TypeGuard[nodes.Name]:
    return isinstance(node, nodes.Name) and node.name == "loop"


def _is_seen(body: Sequence[nodes.Node]) -> bool:
    """Whether a body has the name, apart from the bodies of loops, which have one of their own."""
    stack = list(body)
    while stack:
        node = stack.pop()
        if _is_loop(node):
            return True
        own = {id(part) for part in node.body} if isinstance(node, nodes.For) else ()
        stack += [part for part in node.iter_child_nodes() if id(part) not in own]
    return False


def walked(node: nodes.Node) -> Iterator[nodes.Node]:
    """A node and all that it is made of, however deep."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.iter_child_nodes())
