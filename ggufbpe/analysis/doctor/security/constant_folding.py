"""Evaluates what a template makes of constants alone, as jinja2 does: `'__cla' ~ 'ss__'`, `['a', 'b']|join`.

Only strings, numbers and lists of these are followed, through the operations by which a name can be put together;
a result of more than 4,096 characters is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from jinja2 import nodes

from ....chat.template.run_limits import look_at_clock

_MOST = 4096  # characters or items
_MOST_OF_LIST = 1 << 16  # characters of all items together
_DEEPEST = 60


def _joined(items: Iterable[Any], between: str = "") -> str | None:
    texts, size = [], 0
    for each in items:
        texts.append(str(each))
        size += len(texts[-1]) + len(between)
        if size > _MOST + len(between):
            return None
    return between.join(texts)


_METHODS = (
    *("lower", "upper", "title", "capitalize", "swapcase", "strip", "lstrip", "rstrip"),
    *("removeprefix", "removesuffix", "split"),
)
_OF_TEXT: dict[str, Callable[..., Any]] = {
    **{name: getattr(str, name) for name in _METHODS},
    **dict.fromkeys(("string", "safe", "escape", "e"), str),
    "trim": str.strip,
    "replace": lambda text, old, new, *_: text.replace(old, new) if len(text) * len(new) < _MOST else text,
    "reverse": lambda text: text[::-1],
    "list": list,
    "first": lambda text: text[0],
    "last": lambda text: text[-1],
    "join": _joined,
}
_OF_LIST: dict[str, Callable[..., Any]] = {
    "join": _joined,
    "first": lambda items: items[0],
    "last": lambda items: items[-1],
    "reverse": lambda items: items[::-1],
    "list": lambda items: items,
    "sort": sorted,
}


class Constants:
    """The constants of one template; a name that is always set to the same one is one, too."""

    def __init__(self, ordered: Sequence[nodes.Node]) -> None:
        self._names: dict[str, Any] = {}
        self._known: dict[int, Any] = {}
        self._rows: dict[str, list[list[Any]]] = {}  # of loops over constants, by the name of a row
        changed = {node.name for node in ordered if isinstance(node, nodes.Name) and node.ctx == "param"}
        for node in ordered:
            if isinstance(node, nodes.For):
                changed |= {each.name for each in node.target.find_all(nodes.Name)}
                changed |= {node.target.name} if isinstance(node.target, nodes.Name) else set()
        for node in ordered:
            if isinstance(node, (nodes.Assign, nodes.AssignBlock)):
                self._assign(node, changed)
            elif isinstance(node, nodes.For) and isinstance(node.target, nodes.Name):
                rows = self.of(node.iter)
                if isinstance(rows, list):
                    self._rows.setdefault(node.target.name, []).append(rows)

    def _assign(self, node: nodes.Assign | nodes.AssignBlock, changed: set[str]) -> None:
        name = _name_of(node.target)
        if name is None or name in changed:
            return
        value = self.of(node.node) if isinstance(node, nodes.Assign) else self._written(node.body)
        known = self._names.setdefault(name, value)
        if known != value:
            self._names[name] = None

    def of(self, node: nodes.Node | None, depth: int = 0) -> Any:
        """The string, number or list that an expression always gives; None if it depends on anything else."""
        look_at_clock(False)
        if node is None or depth > _DEEPEST:
            return None
        if id(node) not in self._known or isinstance(node, nodes.Name):
            try:
                value = self._evaluated(node, depth + 1)
            except (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError):
                value = None
            self._known[id(node)] = None if _is_large(value) else value
        return self._known[id(node)]

    def all_of(self, node: nodes.Node) -> Iterable[Any]:
        """The values that an expression may have, as far as they are constant: of a row of a loop, all of them."""
        value = self.of(node)
        if isinstance(node, nodes.Name) and node.name in self._rows:
            return chain.from_iterable(self._rows[node.name])
        return value if isinstance(value, list) else [value]

    def _written(self, body: Sequence[nodes.Node]) -> str | None:
        parts = [part for each in body if isinstance(each, nodes.Output) for part in each.nodes]
        if len(body) != sum(isinstance(each, nodes.Output) for each in body):
            return None
        texts = [part.data if isinstance(part, nodes.TemplateData) else self.of(part) for part in parts]
        return None if None in texts else _joined(texts)

    def _evaluated(self, node: nodes.Node, depth: int) -> Any:
        if isinstance(node, nodes.Const):
            return node.value if isinstance(node.value, (str, int)) else None
        if isinstance(node, (nodes.Name, nodes.Getattr)) and (name := _name_of(node)) in self._names:
            return self._names[name or ""]
        if isinstance(node, (nodes.List, nodes.Tuple)):
            items = [self.of(item, depth) for item in node.items]
            return None if any(item is None or isinstance(item, list) for item in items) else items
        if isinstance(node, (nodes.Concat, nodes.Add)):
            both = node.nodes if isinstance(node, nodes.Concat) else [node.left, node.right]
            left, right = (self.of(each, depth) for each in both)
            if left is None or right is None:
                return None
            return f"{left}{right}" if isinstance(node, nodes.Concat) else left + right
        if isinstance(node, nodes.Mod):
            left, right = self.of(node.left, depth), self.of(node.right, depth)
            return _formatted(left, right if isinstance(right, list) else [right])
        if isinstance(node, nodes.Mul):
            left, right = self.of(node.left, depth), self.of(node.right, depth)
            return left * right if isinstance(right, int) and right * len(left) < _MOST else None
        if isinstance(node, nodes.Getitem):
            return self._item(node, depth)
        if isinstance(node, nodes.Filter):
            return self._applied(node.name, node.node, node.args or (), depth)
        if isinstance(node, nodes.Call):
            return self._called(node, depth)
        return None

    def _item(self, node: nodes.Getitem, depth: int) -> Any:
        value = self.of(node.node, depth)
        if value is None:
            return None
        if not isinstance(node.arg, nodes.Slice):
            return value[self.of(node.arg, depth)]
        bounds = (node.arg.start, node.arg.stop, node.arg.step)
        return value[slice(*(None if bound is None else self._number(bound, depth) for bound in bounds))]

    def _number(self, node: nodes.Node, depth: int) -> Any:
        return -self.of(node.node, depth) if isinstance(node, nodes.Neg) else self.of(node, depth)

    def _called(self, node: nodes.Call, depth: int) -> Any:
        if isinstance(node.node, nodes.Getattr):
            return self._applied(node.node.attr, node.node.node, node.args, depth)
        if isinstance(node.node, nodes.Name) and node.node.name == "dict":
            return [each.key for each in node.args if isinstance(each, nodes.Keyword)]
        return None

    def _applied(self, name: str, of: nodes.Node | None, given: Sequence[nodes.Node], depth: int) -> Any:
        value = self.of(of, depth)
        arguments = [
            self.of(each.value if isinstance(each, nodes.Keyword) else each, depth) for each in given
        ]
        if value is None or None in arguments:
            return None
        if name == "format" and isinstance(value, str):
            return _formatted(value, arguments)
        table = _OF_TEXT if isinstance(value, str) else _OF_LIST if isinstance(value, list) else {}
        return table[name](value, *arguments)


def _is_large(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) > _MOST or sum(len(each) for each in value if isinstance(each, str)) > _MOST_OF_LIST
    return isinstance(value, str) and len(value) > _MOST


def _formatted(text: str, arguments: list[Any]) -> str | None:
    """A format of either kind with its arguments; only plain places, so that no width makes it long."""
    parts = text.split("%s") if "%" in text else text.split("{}")
    if len(parts) == len(arguments) + 1:
        return _joined(chain.from_iterable(zip(parts, [*arguments, ""])))
    if text == "%c" * len(arguments) and text:
        return "".join(map(chr, arguments))
    out = text
    for number, each in enumerate(arguments):
        place, new = f"{{{number}}}", str(each)
        if len(out) + out.count(place) * len(new) > _MOST:
            return None
        out = out.replace(place, new)
    return out


def _name_of(node: nodes.Node) -> str | None:
    """The name of a variable, or of the member of a namespace."""
    if isinstance(node, nodes.Name):
        return node.name
    if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name):
        return f"{node.node.name}.{node.attr}"
    return None
