"""A parsed template as Python source whose every operation is a function of `Runtime`.

jinja2.nodes -> [this file] -> source -> Environment.compile

jinja2 would keep names in Python's variables and call Python's operators and attributes. Here a scope is a dict that
loops and macros copy, as in llama.cpp, and every name, member, call, filter, test and operator is a call of `run`.
Text of the template gets into the source only as a literal.

Source of what each statement does: common/jinja/runtime.cpp; of what is refused: parser.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jinja2 import TemplateSyntaxError, nodes

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
_HEAD = """\
from ggufbpe.chat.arguments import bound
from ggufbpe.chat.values import UNDEFINED, Function, Keyword
name, blocks, debug_info = None, {}, ''
def root(run, s0):
    o0 = []
    w = o0.append; N = run.name; A = run.attribute; I = run.item; C = run.call; F = run.filter; T = run.test
    O = run.operate; X = run.text; J = run.appended
"""


def source_of(template: nodes.Template, exact: bool) -> str:
    """The source of a module whose function `root(run, scope)` returns the text.

    With `exact`, each literal is a value that is identical to no other.
    """
    emitter = _Emitter()
    emitter.exact = exact
    emitter.block(template.body)
    emitter.line(f"return J({emitter.out})")
    lines = "&".join(f"{line}={at}" for line, at in emitter.lines)
    return _HEAD.replace("''", repr(lines), 1) + "\n".join(emitter.source) + "\n"


def _unknown_statement(node: nodes.Node) -> TemplateSyntaxError:
    """The error for a statement that only jinja2 has; `autoescape` is wrapped in a scope, which has the line inside."""
    name = type(node).__name__.lower()
    if isinstance(node, nodes.Scope):
        [node], name = node.body, "autoescape"
    return TemplateSyntaxError(f"Unknown statement: {name}", node.lineno)


class _Emitter:
    """Writes source, one statement after the other."""

    def __init__(self) -> None:
        self.source: list[str] = []
        self.lines: list[tuple[int, int]] = []
        self.depth = 1
        self.scope, self.out, self.write = "s0", "o0", "w"
        self.made = 0
        self.mark = ""  # to where a `break` cuts the output back; "-" in a loop without a mark
        self.loops = 0
        self.exact = False

    def line(self, text: str) -> None:
        self.source.append("    " * self.depth + text)

    def new(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    def at(self, node: nodes.Node) -> None:
        """Notes that what follows comes from the line of this node."""
        self.lines.append((node.lineno, _HEAD.count("\n") + len(self.source) + 1))

    def block(self, body: Sequence[nodes.Node]) -> None:
        for node in body:
            self.at(node)
            method = _STATEMENTS.get(type(node))
            if method is None:
                raise _unknown_statement(node)
            method(self, node)

    def inner(self, body: Sequence[nodes.Node]) -> None:
        self.depth += 1
        self.line("pass")
        self.block(body)
        self.depth -= 1

    def captured(self, body: Sequence[nodes.Node]) -> str:
        """Emits statements whose output goes to a variable; returns the expression for it."""
        outer = self.out, self.write
        self.out, self.write = self.new("o"), self.new("w")
        self.line(f"{self.out} = []; {self.write} = {self.out}.append")
        self.block(body)
        text = f"J({self.out})"
        self.out, self.write = outer
        return text

    # ---- statements -----------------------------------------------------------------------------

    def output(self, node: nodes.Output) -> None:
        for part in node.nodes:
            if isinstance(part, nodes.TemplateData):
                self.line(f"{self.write}(X({part.data!r}))")
            else:
                self.at(part)
                self.line(f"{self.write}(X({self.expression(part)}))")

    def condition(self, node: nodes.If) -> None:
        marked = self.mark == "-" and _leaves_loop(node)
        if marked:
            self.mark = self.new("m")
            self.line(f"{self.mark} = len({self.out}), {self.out}")
        self.line(f"if {self.expression(node.test)}:")
        self.inner(node.body)
        for other in node.elif_:
            self.at(other)
            self.line(f"elif {self.expression(other.test)}:")
            self.inner(other.body)
        if node.else_:
            self.line("else:")
            self.inner(node.else_)
        if marked:
            self.mark = "-"

    def leave(self, node: nodes.Node) -> None:
        kind = "break" if isinstance(node, nodes.Break) else "continue"
        if not self.loops:
            self.line(f"run.fail('{kind.capitalize()} statement executed')")
            return
        if self.mark != "-":
            self.line(f"del {self.mark}[1][{self.mark}[0]:]")
        self.line(kind)

    def loop(self, node: nodes.For) -> None:
        if node.recursive:
            raise TemplateSyntaxError("Expected %} (Got recursive)", node.lineno)
        if node.test is None and isinstance(node.iter, nodes.CondExpr) and node.iter.expr2 is None:
            node.test, node.iter = node.iter.test, node.iter.expr1  # `in (x if y)`, despite the brackets
        outer_scope, outer_mark = self.scope, self.mark
        scope, rows, row = self.new("s"), self.new("r"), self.new("v")
        several = isinstance(node.target, nodes.Tuple)
        names = node.target.items if isinstance(node.target, nodes.Tuple) else [node.target]
        bind = f"{scope}.update({{{', '.join(f'{self.identifier(n)}: {row}[{i}]' for i, n in enumerate(names))}}})"
        if not several:
            bind = f"{scope}[{self.identifier(node.target)}] = {row}"
        self.line(f"{scope} = run.copied({outer_scope})")
        self.scope = scope
        self.line(f"{rows} = run.rows({self.expression(node.iter)}, {len(names) if several else 0})")
        if node.test is not None:
            self.filtered(node, rows, row, scope, bind)
        ran = self.new("n") if node.else_ else ""
        if ran:
            self.line(f"{ran} = False")
        self.line(f"for {row} in run.loop({scope}, {rows}, {1 + _weight(node.body)}):")
        self.mark, self.loops = "-", self.loops + 1
        self.depth += 1
        self.line(bind)
        self.block(node.body)
        if ran:
            self.line(f"{ran} = True")
        self.depth -= 1
        self.scope, self.mark, self.loops = outer_scope, outer_mark, self.loops - 1
        if ran:
            self.line(f"if not {ran}:")
            self.inner(node.else_)

    def filtered(self, node: nodes.For, rows: str, row: str, scope: str, bind: str) -> None:
        """`for x in y if test`: the test has a scope of its own for each row."""
        assert node.test is not None
        all_rows, self.scope = self.new("r"), self.new("s")
        self.line(f"{all_rows}, {rows} = {rows}, []")
        self.line(f"for {row} in {all_rows}:")
        self.depth += 1
        self.line(f"{self.scope} = run.copied({scope}, {1 + _weight([node.test])})")
        self.line(bind.replace(scope, self.scope, 1))
        self.line(f"if {self.expression(node.test)}: {rows}.append({row})")
        self.depth -= 1
        self.scope = scope

    def assign(self, node: nodes.Assign) -> None:
        self.store(node.target, self.expression(node.node))

    def assign_block(self, node: nodes.AssignBlock) -> None:
        if node.filter is not None:
            raise TemplateSyntaxError(
                "Invalid LHS inside assignment expression: FilterExpression", node.lineno
            )
        self.store(node.target, self.captured(node.body))

    def store(self, target: nodes.Expr, value: str) -> None:
        if isinstance(target, nodes.NSRef):
            held = self.new("v")
            self.line(f"{held} = {value}")
            self.line(f"run.set_member(N({self.scope}, {target.name!r}), {target.attr!r}, {held})")
        elif isinstance(target, nodes.Tuple):
            names = ", ".join(f"{self.scope}[{self.identifier(item)}]" for item in target.items)
            self.line(f"{names}, = run.unpacked({value}, {len(target.items)})")
        else:
            self.line(f"{self.scope}[{self.identifier(target)}] = {value}")

    def identifier(self, node: nodes.Node) -> str:
        if not isinstance(node, nodes.Name):
            raise TemplateSyntaxError("Cannot unpack to non-identifier", node.lineno)
        return repr(node.name)

    def function(
        self,
        name: str,
        arguments: list[nodes.Name],
        defaults: Sequence[nodes.Expr | None],
        body: list[nodes.Node],
        inside: str,
    ) -> str:
        """A Python function for a macro or the body of a call, defined here; returns its name.

        `inside` is the scope that its body adds to: "" for the caller's.
        """
        function, scope, caller = self.new("f"), self.new("s"), self.new("c")
        outer = self.scope, self.out, self.write, self.mark, self.loops
        parameters = []
        self.scope = caller
        for argument, default in zip(arguments, [*[None] * (len(arguments) - len(defaults)), *defaults]):
            given = "None" if default is None else f"lambda {caller}: {self.expression(default)}"
            parameters.append(f"({argument.name!r}, {given})")
        listed = self.new("p")
        self.line(f"{listed} = [{', '.join(parameters)}]")
        self.line(f"def {function}({caller}, given):")
        self.depth += 1
        self.scope, self.mark, self.loops = scope, "", 0
        self.line(f"run.enter({inside or caller}, {_weight([*filter(None, defaults), *body])})")
        self.line(f"{scope} = bound({name!r}, {listed}, {inside or caller}, given)")
        self.line(f"return {self.captured(body)}")
        self.depth -= 1
        self.line(f"{function}.is_macro = True")
        self.scope, self.out, self.write, self.mark, self.loops = outer
        return function

    def macro(self, node: nodes.Macro) -> None:
        function = self.function(node.name, node.args, node.defaults, node.body, "")
        self.line(f"{self.scope}[{node.name!r}] = Function({node.name!r}, {function})")

    def call_block(self, node: nodes.CallBlock) -> None:
        inside, calling = self.new("s"), self.new("s")
        self.line(f"{inside} = run.copied({self.scope})")
        function = self.function("caller", node.args, node.defaults, node.body, inside)
        self.line(f"{calling} = run.copied({self.scope})")
        self.line(f"{calling}['caller'] = Function('caller', {function})")
        called = self.expression(node.call.node)
        self.line(f"{self.write}(X(C({calling}, [{self.arguments(node.call)}], {called})))")

    def filter_block(self, node: nodes.FilterBlock) -> None:
        text = self.captured(node.body)
        self.line(f"{self.write}(X({self.filter(node.filter, text)}))")

    # ---- expressions ----------------------------------------------------------------------------

    def expression(self, node: nodes.Node) -> str:
        method = _EXPRESSIONS.get(type(node))
        if method is None:
            raise TemplateSyntaxError(f"Unexpected expression: {type(node).__name__}", node.lineno)
        return method(self, node)

    def constant(self, node: nodes.Const) -> str:
        is_new = self.exact and isinstance(node.value, (str, float))
        return f"run.own({node.value!r})" if is_new else repr(node.value)

    def several(self, items: Sequence[nodes.Node]) -> str:
        return ", ".join(self.expression(item) for item in items)

    def arguments(self, node: nodes.Call | nodes.Filter | nodes.Test) -> str:
        if "." in getattr(node, "name", ""):  # jinja2 takes the names of filters and tests with dots
            raise TemplateSyntaxError(f"Unexpected '.' in {node.name}", node.lineno)  # type: ignore[union-attr]
        return self.several(node.args)  # including those given by name

    def item(self, node: nodes.Getitem) -> str:
        of = self.expression(node.node)
        if isinstance(node.arg, nodes.Slice):
            bounds = (node.arg.start, node.arg.stop, node.arg.step)
            return (
                f"run.slice({of}, {', '.join('None' if b is None else self.expression(b) for b in bounds)})"
            )
        return f"I({of}, {self.expression(node.arg)})"

    def call(self, node: nodes.Call) -> str:
        arguments = self.arguments(node)
        return f"C({self.scope}, [{arguments}], {self.expression(node.node)})"

    def filter(self, node: nodes.Filter, value: str = "") -> str:
        value = value or self.expression(node.node)  # type: ignore[arg-type]
        return f"F({value}, {node.name!r}, [{self.arguments(node)}])"

    def test(self, node: nodes.Test) -> str:
        rest = self.arguments(node)
        return f"T({node.name!r}, [{self.expression(node.node)}{', ' + rest if rest else ''}])"

    def comparison(self, node: nodes.Compare) -> str:
        found = self.expression(node.expr)
        for operand in node.ops:
            found = f"O({found}, {_OPERATORS[operand.op]!r}, {self.expression(operand.expr)})"
        return found

    def joined(self, node: nodes.Concat) -> str:
        found, *rest = map(self.expression, node.nodes)
        for part in rest:
            found = f"O({found}, '~', {part})"
        return found

    def binary(self, node: nodes.BinExpr) -> str:
        return f"O({self.expression(node.left)}, {node.operator!r}, {self.expression(node.right)})"

    def logical(self, node: nodes.BinExpr) -> str:
        return f"({self.expression(node.left)} {node.operator} {self.expression(node.right)})"

    def chosen(self, node: nodes.CondExpr) -> str:
        otherwise = "UNDEFINED" if node.expr2 is None else self.expression(node.expr2)
        return f"({self.expression(node.expr1)} if {self.expression(node.test)} else {otherwise})"

    def object(self, node: nodes.Dict) -> str:
        pairs = (f"({self.expression(pair.key)}, {self.expression(pair.value)})" for pair in node.items)
        return f"run.made_object({', '.join(pairs)})"


def _weight(body: Sequence[nodes.Node]) -> int:
    """How many steps a body counts for each time, by its size."""
    return sum(1 + sum(1 for _ in node.find_all(nodes.Node)) for node in body) // 20


def _leaves_loop(node: nodes.Node) -> bool:
    """Whether it has a `break` or `continue` that belongs to the loop around it."""
    for child in node.iter_child_nodes():
        if isinstance(child, (nodes.Break, nodes.Continue)):
            return True
        if not isinstance(child, (nodes.For, nodes.Macro)) and _leaves_loop(child):
            return True
        if isinstance(child, nodes.For) and any(map(_leaves_loop, child.else_)):
            return True
    return False


_E = _Emitter
_STATEMENTS: dict[type[nodes.Node], Callable[[_Emitter, Any], None]] = {
    nodes.Output: _E.output,
    nodes.If: _E.condition,
    nodes.For: _E.loop,
    nodes.Break: _E.leave,
    nodes.Continue: _E.leave,
    nodes.Assign: _E.assign,
    nodes.AssignBlock: _E.assign_block,
    nodes.Macro: _E.macro,
    nodes.CallBlock: _E.call_block,
    nodes.FilterBlock: _E.filter_block,
}
_EXPRESSIONS: dict[type[nodes.Node], Callable[[_Emitter, Any], str]] = {
    nodes.Const: _E.constant,
    nodes.Name: lambda e, node: f"N({e.scope}, {node.name!r})",
    nodes.Getattr: lambda e, node: f"A({e.expression(node.node)}, {node.attr!r})",
    nodes.Getitem: _E.item,
    nodes.Call: _E.call,
    nodes.Filter: _E.filter,
    nodes.Test: _E.test,
    nodes.Compare: _E.comparison,
    nodes.Concat: _E.joined,
    nodes.Not: lambda e, node: f"(not {e.expression(node.node)})",
    nodes.Neg: lambda e, node: f"run.negative({e.expression(node.node)})",
    nodes.Pos: lambda e, node: f"run.positive({e.expression(node.node)})",
    nodes.And: _E.logical,
    nodes.Or: _E.logical,
    nodes.CondExpr: _E.chosen,
    nodes.Keyword: lambda e, node: f"Keyword({node.key!r}, {e.expression(node.value)})",
    nodes.MarkSafe: lambda e, node: "run.spread()",
    nodes.List: lambda e, node: f"run.made([{e.several(node.items)}])",
    nodes.Tuple: lambda e, node: f"run.made(({e.several(node.items)}{',' if node.items else ''}))",
    nodes.Dict: _E.object,
    nodes.Add: _E.binary,
    nodes.Sub: _E.binary,
    nodes.Mul: _E.binary,
    nodes.Div: _E.binary,
    nodes.Mod: _E.binary,
}
