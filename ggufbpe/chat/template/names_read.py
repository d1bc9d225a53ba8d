"""Finds the names that a template reads and has not set itself: the values that a caller can give it."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import nodes

from .loop_uses import walked


def names_from_outside(body: Sequence[nodes.Node], own: set[str]) -> set[str]:
    """The names that statements read before they have set them; those that they set for certain are added to `own`.

    Names of loops, macros and their parameters are never from outside where they are bound. A name that only one
    branch of a condition sets can still be the caller's behind it.
    """
    read: set[str] = set()
    for node in body:
        if isinstance(node, nodes.Assign):
            read |= _names(node.node, "load") - own
            own |= _names(node.target, "store")
        elif isinstance(node, nodes.AssignBlock):
            read |= names_from_outside(node.body, set(own))
            own |= _names(node.target, "store")
        elif isinstance(node, nodes.If):
            read |= _of_condition(node, own)
        elif isinstance(node, nodes.For):
            inner = own | _names(node.target, "store")
            read |= _names(node.iter, "load") - own
            read |= set() if node.test is None else _names(node.test, "load") - inner
            read |= names_from_outside(node.body, inner) | names_from_outside(node.else_, set(own))
        elif isinstance(node, (nodes.Macro, nodes.CallBlock)):
            parameters = {argument.name for argument in node.args}
            own |= {node.name} if isinstance(node, nodes.Macro) else set()
            read |= _names(node.call, "load") - own if isinstance(node, nodes.CallBlock) else set()
            for default in filter(None, node.defaults):  # the parser has None for a parameter without one
                read |= _names(default, "load") - own
            read |= names_from_outside(node.body, own | parameters)
        else:
            read |= _names(node, "load") - own
    return read


def _of_condition(node: nodes.If, own: set[str]) -> set[str]:
    read = _names(node.test, "load") - own
    branches: list[Sequence[nodes.Node]] = [node.body, *([each] for each in node.elif_), node.else_]
    known = [set(own) for _ in branches]
    for branch, names in zip(branches, known):
        read |= names_from_outside(branch, names)
    own |= set.intersection(*known)
    return read


def _names(node: nodes.Node, context: str) -> set[str]:
    """The names in a part of a template that are read ("load") or set ("store")."""
    return {each.name for each in walked(node) if isinstance(each, nodes.Name) and each.ctx == context}
