"""Compiles the expressions of a parsed template to Python source.

Every name, member, call, filter, test and operator is a call of `run`. What most templates do most of the time is
written out in front of that call, for values of the types in `PLAIN` alone: `v` and `t` hold a value for as long as it
takes to look at its type.

Source of what each expression does: common/jinja/runtime.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jinja2 import TemplateSyntaxError, nodes

from .functions import METHODS
from .run_limits import MOST_OPERATORS
from .values import CONSTANTS

_OPERATORS = {
    "eq": "==",
    "ne": "!=",
    "gt": ">",
    "gteq": ">=",
    "lt": "<",
    "lteq": "<=",
    "in": "in",
    "notin": "not in",
}
_ALIASES = {"count": "length", "d": "default", "e": "escape", "trim": "strip"}
_TESTS = {  # tests that the type of a plain value decides
    "defined": "True",
    "undefined": "False",
    "none": "t is None",
    "string": "type(t) is str",
    "mapping": "isinstance(t, dict)",
}
_FILTERS = {  # filters without arguments, for values of some types
    "strip": ("type(t := {}) is str", "S(t)"),
    "string": ("type(t := {}) is str", "t"),
    "length": ("type(t := {}) in Z", "len(t)"),
}
_SHORT = 1000  # characters of a literal whose comparison counts for nothing
_DEEP = 30  # operators in a row that are nested in the source; more would be too many for Python's parser


class Expressions:
    """Writes expressions; names are looked up in `scope`, or with `constants` those of `CONSTANTS` written out."""

    def __init__(self, exact: bool, constants: bool) -> None:
        self.exact = exact
        self.constants = constants
        self.scope = "s0"
        self.made = 0

    def new(self, prefix: str) -> str:
        """A name that is not used elsewhere."""
        self.made += 1
        return f"{prefix}{self.made}"

    def expression(self, node: nodes.Node) -> str:
        """The source of an expression."""
        row = [node]
        while (left := _left_of(row[-1])) is not None:
            row.append(left)
        if len(row) > MOST_OPERATORS:
            raise RecursionError
        source = self._one(row.pop(), "")
        if len(row) <= _DEEP:
            for outer in reversed(row):
                source = self._one(outer, source)
            return source
        held = self.new("h")
        steps = [f"{held} := {source}", *(f"{held} := {self._one(outer, held)}" for outer in reversed(row))]
        return f"({', '.join(steps)})[-1]"

    def row_of_texts(self, node: nodes.Node) -> str:
        """The source of a row of `+` and `~` that puts strings together once, and not after each of them."""
        row: list[tuple[nodes.Expr, str]] = []
        while isinstance(node, (nodes.Add, nodes.Concat)):
            if isinstance(node, nodes.Add):
                row.append((node.right, ""))
                node = node.left
            else:
                row += [(part, ", '~'") for part in reversed(node.nodes[1:])]
                node = node.nodes[0]
        source = self.expression(node)
        for right, operator in reversed(row):
            source = f"run.chain({source}, {self.expression(right)}{operator})"
        return f"run.chained({source})"

    def _one(self, node: nodes.Node, left: str) -> str:
        """Source of an expression whose leftmost operand is already written, as `left`."""
        method = _EXPRESSIONS.get(type(node))
        if method is None:
            raise TemplateSyntaxError(f"Unexpected expression: {type(node).__name__}", node.lineno)
        return method(self, node, left)

    def text(self, value: str) -> str:
        """What a value writes."""
        return f"t if type(t := {value}) is str else X(t)"

    def constant(self, node: nodes.Const, left: str) -> str:
        is_new = self.exact and isinstance(node.value, (str, float))
        return f"run.own({node.value!r})" if is_new else repr(node.value)

    def name(self, node: nodes.Name, left: str) -> str:
        if self.constants and node.name in CONSTANTS:
            return repr(CONSTANTS[node.name])
        return (
            f"(t if type(t := {self.scope}.get({node.name!r}, U)) in K else N({self.scope}, {node.name!r}))"
        )

    def several(self, items: Sequence[nodes.Node]) -> str:
        """Expressions with commas between them."""
        return ", ".join(self.expression(item) for item in items)

    def attribute(self, node: nodes.Getattr, left: str) -> str:
        if isinstance(node.node, nodes.Name) and node.node.name == "loop":
            return _member("Loop", "A", left, node.attr)
        return (
            f"A({left}, {node.attr!r})"
            if node.attr in METHODS[dict]
            else _member("dict", "A", left, node.attr)
        )

    def item(self, node: nodes.Getitem, left: str) -> str:
        if isinstance(node.arg, nodes.Slice):
            given = "".join(
                f", {name}={self.expression(bound)}"
                for name in ("step", "start", "stop")  # in the order in which llama.cpp evaluates them
                if (bound := getattr(node.arg, name)) is not None
            )
            return f"run.slice({left}{given})"
        if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
            return _member("dict", "I", left, node.arg.value)
        return f"I({left}, {self.expression(node.arg)})"

    def call(self, node: nodes.Call, left: str) -> str:
        arguments = f"{self.scope}, [{self.several(node.args)}]"  # before the function
        if isinstance(node.node, nodes.Getattr):
            return f"M({arguments}, {self.expression(node.node.node)}, {node.node.attr!r})"
        return f"C({arguments}, {self.expression(node.node)})"

    def filter(self, node: nodes.Filter, left: str) -> str:
        name, items = _ALIASES.get(node.name, node.name), node.args or []
        arguments = None if node.args is None else f"[{self.several(items)}]"
        if name in _FILTERS and not items:
            condition, source = _FILTERS[name]
            return f"({source} if {condition.format(left)} else F(t, {name!r}, {arguments}))"
        if name == "default" and len(items) == 1 and _is_literal(items[0]):
            return f"(t if type(t := {left}) in G else F(t, 'default', {arguments}))"
        return f"F({left}, {name!r}, {arguments})"

    def test(self, node: nodes.Test, left: str) -> str:
        rest = self.several(node.args)
        if node.name in _TESTS and not rest:
            return f"({_TESTS[node.name]} if type(t := {left}) in K else T({node.name!r}, [t]))"
        return f"T({node.name!r}, [{left}{', ' + rest if rest else ''}])"

    def comparison(self, node: nodes.Compare, left: str) -> str:
        for operand in node.ops:
            left = self._compared(left, _OPERATORS[operand.op], operand.expr)
        return left

    def _compared(self, left: str, operator: str, right: nodes.Expr) -> str:
        if operator not in ("==", "!="):
            return f"O({left}, {operator!r}, {self.expression(right)})"
        negated = "not " if operator == "!=" else ""
        text = right.value if isinstance(right, nodes.Const) and not self.exact else None
        if isinstance(text, str) and len(text) < _SHORT:
            literal = repr(text)
            return f"(t {operator} {literal} if type(t := {left}) is str else {negated}E(t, {literal}))"
        return f"({negated}E({left}, {self.expression(right)}))"

    def joined(self, node: nodes.Concat, left: str) -> str:
        for part in node.nodes[1:]:
            left = f"P({left}, {self.expression(part)}, '~')"
        return left

    def sum(self, node: nodes.Add, left: str) -> str:
        return f"P({left}, {self.expression(node.right)})"

    def binary(self, node: nodes.BinExpr, left: str) -> str:
        return f"O({left}, {node.operator!r}, {self.expression(node.right)})"

    def logical(self, node: nodes.BinExpr, left: str) -> str:
        return f"({left} {node.operator} {self.expression(node.right)})"

    def chosen(self, node: nodes.CondExpr, left: str) -> str:
        otherwise = "Undefined()" if node.expr2 is None else self.expression(node.expr2)
        return f"({self.expression(node.expr1)} if {self.expression(node.test)} else {otherwise})"

    def object(self, node: nodes.Dict, left: str) -> str:
        if all(isinstance(pair.key, nodes.Const) and isinstance(pair.key.value, str) for pair in node.items):
            members = (f"{self.expression(pair.key)}: {self.expression(pair.value)}" for pair in node.items)
            return f"run.made_with_names({{{', '.join(members)}}})"
        pairs = (f"({self.expression(pair.key)}, {self.expression(pair.value)})" for pair in node.items)
        return f"run.made_object({', '.join(pairs)})"


def _member(kind: str, otherwise: str, left: str, name: str) -> str:
    """A member of an object by a name that is no method of objects of this kind."""
    condition = f"type(v := {left}) is {kind} and type(t := v.get({name!r}, U)) in K"
    return f"(t if {condition} else {otherwise}(v, {name!r}))"


def continues(target: nodes.Node, value: nodes.Node) -> bool:
    """Whether a value is a short row of `+` and `~` that begins with its target, as in `set out = out ~ text`."""
    operators = 0
    while isinstance(value, (nodes.Add, nodes.Concat)):
        operators += 1 if isinstance(value, nodes.Add) else len(value.nodes) - 1
        value = value.left if isinstance(value, nodes.Add) else value.nodes[0]
    return 0 < operators <= _DEEP and _path_of(target) is not None and _path_of(value) == _path_of(target)


def _path_of(node: nodes.Node) -> tuple[str, ...] | None:
    """A name, or the name of an object and of its member; None for any other expression."""
    if isinstance(node, nodes.Name):
        return (node.name,)
    if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name):
        return (node.node.name, node.attr)
    if (
        isinstance(node, nodes.Getitem)
        and isinstance(node.node, nodes.Name)
        and isinstance(node.arg, nodes.Const)
    ):
        return (node.node.name, node.arg.value)
    return None


def _is_literal(node: nodes.Expr) -> bool:
    return isinstance(node, nodes.Const) or (isinstance(node, nodes.Name) and node.name in CONSTANTS)


def _left_of(node: nodes.Node) -> nodes.Node | None:
    """The operand that an expression begins with, if it is evaluated before all else."""
    if isinstance(node, (nodes.Getattr, nodes.Getitem, nodes.Filter, nodes.Test)):
        return node.node
    if isinstance(node, nodes.BinExpr):
        return node.left
    if isinstance(node, nodes.Concat):
        return node.nodes[0]
    return node.expr if isinstance(node, nodes.Compare) else None


_E = Expressions
_EXPRESSIONS: dict[type[nodes.Node], Callable[[Expressions, Any, str], str]] = {
    nodes.Const: _E.constant,
    nodes.Name: _E.name,
    nodes.Getattr: _E.attribute,
    nodes.Getitem: _E.item,
    nodes.Call: _E.call,
    nodes.Filter: _E.filter,
    nodes.Test: _E.test,
    nodes.Compare: _E.comparison,
    nodes.Concat: _E.joined,
    nodes.Not: lambda e, node, _: f"(not {e.expression(node.node)})",
    nodes.Neg: lambda e, node, _: f"run.negative({e.expression(node.node)})",
    nodes.Pos: lambda e, node, _: f"run.positive({e.expression(node.node)})",
    nodes.And: _E.logical,
    nodes.Or: _E.logical,
    nodes.CondExpr: _E.chosen,
    nodes.Keyword: lambda e, node, _: f"Keyword({node.key!r}, {e.expression(node.value)})",
    nodes.MarkSafe: lambda e, node, _: f"run.fail({e.several(node.expr.items)})",
    nodes.List: lambda e, node, _: f"run.made([{e.several(node.items)}])",
    nodes.Tuple: lambda e, node, _: f"run.made(({e.several(node.items)}{',' if node.items else ''}))",
    nodes.Dict: _E.object,
    nodes.Add: _E.sum,
    nodes.Sub: _E.binary,
    nodes.Mul: _E.binary,
    nodes.Div: _E.binary,
    nodes.Mod: _E.binary,
}
