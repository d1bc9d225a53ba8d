"""Compiles a parsed template to Python source whose every operation is a method of `Runtime`.

jinja2 would keep names in Python's variables and call Python's operators and attributes. Here a scope is a dict that
loops and macros copy, as in llama.cpp, and every name, member, call, filter, test and operator is a call of `run`.
Text of the template gets into the source only as a literal.

Source of what each statement does: common/jinja/runtime.cpp; of what is refused: parser.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jinja2 import nodes

from .expressions import Expressions, continues
from .loop_uses import LoopUses, walked

_HEAD = """\
from ggufbpe.chat.template.values import GIVEN as G, PLAIN as K, SIZED as Z, UNDEFINED as U
from ggufbpe.chat.template.values import Keyword, Loop, Macro, Undefined
name, blocks, debug_info = None, {}, ''
def root(run, s0):
    o0 = []
    w = o0.append; N = run.name; A = run.attribute; I = run.item; C = run.call; M = run.call_method; F = run.filter
    T = run.test; O = run.operate; P = run.plus; E = run.equal; S = run.stripped; X = run.text; J = run.written
"""


_KINDS: dict[type[nodes.Node], str] = {  # what llama.cpp calls expressions
    nodes.Name: "Identifier",
    nodes.Call: "CallExpression",
    nodes.Getattr: "MemberExpression",
    nodes.Getitem: "MemberExpression",
    nodes.Filter: "FilterExpression",
    nodes.Test: "TestExpression",
    nodes.CondExpr: "Ternary",
    nodes.List: "ArrayLiteral",
    nodes.Tuple: "TupleLiteral",
    nodes.Dict: "ObjectLiteral",
    nodes.Not: "UnaryExpression",
    nodes.Neg: "UnaryExpression",
    nodes.Pos: "UnaryExpression",
}


def python_source(template: nodes.Template, exact: bool, constants: bool) -> str:
    """The source of a module whose function `root(run, scope)` returns the text.

    With `exact`, each literal is a value that is identical to no other; with `constants`, `true`, `false` and `none`
    are what they are everywhere.
    """
    emitter = _Emitter(exact, constants, LoopUses(template))
    emitter.block(template.body)
    emitter.line(f"return J({emitter.out})")
    lines = "&".join(f"{line}={at}" for line, at in emitter.lines)
    return _HEAD.replace("''", repr(lines), 1) + "\n".join(emitter.source) + "\n"


def _kind_of(node: nodes.Node) -> str:
    """What llama.cpp calls an expression."""
    if isinstance(node, nodes.Const):
        return {int: "IntegerLiteral", float: "FloatLiteral"}.get(type(node.value), "StringLiteral")
    return _KINDS.get(type(node), "BinaryExpression")


class _Emitter(Expressions):
    """Writes source, one statement after the other."""

    def __init__(self, exact: bool, constants: bool, loop_uses: LoopUses) -> None:
        super().__init__(exact, constants)
        self.loop_uses = loop_uses
        self.source: list[str] = []
        self.lines: list[tuple[int, int]] = []
        self.depth = 1
        self.out, self.write = "o0", "w"
        self.mark = ""  # to where a `break` cuts the output back; "-" in a loop without a mark
        self.loops = 0
        self.idle_branches: set[int] = set()  # of conditions that end their loops

    def line(self, text: str) -> None:
        self.source.append("    " * self.depth + text)

    def at(self, node: nodes.Node) -> None:
        """Notes that what follows comes from the line of this node."""
        self.lines.append((node.lineno, _HEAD.count("\n") + len(self.source) + 1))

    def block(self, body: Sequence[nodes.Node]) -> None:
        for node in body:
            self.at(node)
            _STATEMENTS[type(node)](self, node)

    def inner(self, body: Sequence[nodes.Node], ends_loop: bool = False) -> None:
        self.depth += 1
        self.line("break" if ends_loop else "pass")
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
                self.line(f"{self.write}({part.data!r})")
            else:
                self.at(part)
                self.line(f"{self.write}({self.text(self.expression(part))})")

    def condition(self, node: nodes.If) -> None:
        marked = self.mark == "-" and _leaves_loop(node)
        if marked:
            self.mark = self.new("m")
            self.line(f"{self.mark} = len({self.out}), {self.out}")
        self.line(f"if {self.expression(node.test)}:")
        self.inner(node.body, id(node) in self.idle_branches)
        for other in node.elif_:
            self.at(other)
            self.line(f"elif {self.expression(other.test)}:")
            self.inner(other.body, id(other) in self.idle_branches)
        if node.else_ or id(node.else_) in self.idle_branches:
            self.line("else:")
            self.inner(node.else_, not node.else_)
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
        if node.test is None and isinstance(node.iter, nodes.CondExpr) and node.iter.expr2 is None:
            node.test, node.iter = node.iter.test, node.iter.expr1  # `in (x if y)`, despite the brackets
        outer_scope, outer_mark = self.scope, self.mark
        scope, rows, row = self.new("s"), self.new("r"), self.new("v")
        names = node.target.items if isinstance(node.target, nodes.Tuple) else []
        bind = self.bound(node.target, scope, row)
        self.line(f"{scope} = run.copied({outer_scope})")
        self.scope = scope
        self.line(f"{rows} = {self.rows(node.iter, len(names))}")
        if node.test is not None:
            self.filtered(node, rows, row, scope, bind)
        ran = self.new("n") if node.else_ else ""
        if ran:
            self.line(f"{ran} = False")
        members = self.loop_uses.members_in(node)
        rounds = f"run.rounds({rows}, {2 + _weight(node.body) + 2 * len(members or ())})"
        if members is None:
            self.idle_branches |= _idle_branches(node)
            self.line(f"for {row} in {rounds}:")
        else:
            held, number = self.new("l"), self.new("i")
            made = f"{held} = {scope}['loop'] = Loop()"
            if not self.loop_uses.whole:
                self.line(made)
            self.line(f"for {number}, {row} in enumerate({rounds}):")
        self.mark, self.loops = "-", self.loops + 1
        self.depth += 1
        if members is not None:
            if self.loop_uses.whole:
                self.line(made)
            for member, value in members.items():
                self.line(f"{held}[{member!r}] = {value.format(i=number, rows=rows)}")
        self.line(bind)
        self.block(node.body)
        if ran:
            self.line(f"{ran} = True")
        self.depth -= 1
        self.scope, self.mark, self.loops = outer_scope, outer_mark, self.loops - 1
        if ran:
            self.line(f"if not {ran}:")
            self.inner(node.else_)
        self.line(f"run.released({scope}, {outer_scope})")

    def rows(self, node: nodes.Node, names: int) -> str:
        """The rows of a loop over an expression."""
        if names or not isinstance(node, nodes.Call) or not isinstance(node.node, nodes.Name):
            return f"run.rows({self.expression(node)}, {names})"
        return f"run.rows_of_call({self.scope}, [{self.several(node.args)}], {self.expression(node.node)})"

    def filtered(self, node: nodes.For, rows: str, row: str, scope: str, bind: str) -> None:
        """`for x in y if test`: the test has a scope of its own for each row."""
        assert node.test is not None
        all_rows, self.scope = self.new("r"), self.new("s")
        self.line(f"{all_rows}, {rows} = {rows}, []")
        self.line(f"for {row} in {all_rows}:")
        self.depth += 1
        self.line(f"{self.scope} = run.copied({scope}, {4 + _weight([node.test])})")
        self.line(bind.replace(scope, self.scope, 1))
        self.line(f"if {self.expression(node.test)}: {rows}.append({row})")
        self.line(f"run.released({self.scope}, {scope})")
        self.depth -= 1
        self.scope = scope

    def assign(self, node: nodes.Assign) -> None:
        if not continues(node.target, node.node):
            self.store(node.target, self.expression(node.node))
            return
        held = self.new("v")
        self.line(f"{held} = {self.row_of_texts(node.node)}")
        self.line("t = v = None")  # which may hold the old value
        if isinstance(node.target, nodes.Name):
            self.line(f"run.replace({self.scope}, {node.target.name!r}, {held}); {held} = None")
        elif isinstance(node.target, nodes.Getattr):
            target = self.expression(node.target.node)
            self.line(f"run.set_member({target}, {node.target.attr!r}, {held}, True); {held} = None")
        else:
            self.store(node.target, held)

    def assign_block(self, node: nodes.AssignBlock) -> None:
        self.store(node.target, self.captured(node.body))

    def bound(self, target: nodes.Node, scope: str, value: str) -> str:
        """The statement that gives a loop's names the value of a row."""
        if isinstance(target, nodes.Name):
            return f"{scope}[{target.name!r}] = {value}"
        if not isinstance(target, nodes.Tuple):
            return f"run.fail('Invalid loop variable(s): {_kind_of(target)}')"
        pairs = (
            f"{item.name!r}: {value}[{number}]"
            if isinstance(item, nodes.Name)
            else f"'': run.fail('Cannot unpack non-identifier type: {_kind_of(item)}')"
            for number, item in enumerate(target.items)
        )
        return f"{scope}.update({{{', '.join(pairs)}}})"

    def store(self, target: nodes.Expr, value: str) -> None:
        if isinstance(target, nodes.Name):
            self.line(f"{self.scope}[{target.name!r}] = {value}")
            return
        held = self.new("v")
        self.line(f"{held} = {value}")
        if isinstance(target, nodes.Getattr):
            self.line(f"run.set_member({self.expression(target.node)}, {target.attr!r}, {held})")
        elif isinstance(target, nodes.Tuple):
            self.line(f"run.unpacked({held}, {len(target.items)})")
            for number, item in enumerate(target.items):
                if isinstance(item, nodes.Name):
                    self.line(f"{self.scope}[{item.name!r}] = {held}[{number}]")
                else:
                    self.line(f"run.fail('Cannot unpack to non-identifier in set: {_kind_of(item)}')")
        elif isinstance(target, nodes.Getitem):
            self.line("run.fail('Cannot assign to computed member')")
        else:
            self.line(f"run.fail('Invalid LHS inside assignment expression: {_kind_of(target)}')")

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
        for argument, default in zip(arguments, defaults):
            given = "None" if default is None else f"lambda {caller}: {self.expression(default)}"
            parameters.append(f"({argument.name!r}, {given})")
        listed = self.new("p")
        self.line(f"{listed} = [{', '.join(parameters)}]")
        of_call = f", {inside}={inside}" if inside else ""
        # defaults instead of cells, which cost more
        self.line(f"def {function}({caller}, given, {listed}={listed}{of_call}):")
        self.depth += 1
        self.scope, self.mark, self.loops = scope, "", 0
        weight = _weight([*filter(None, defaults), *body])
        self.line(f"{scope} = run.bound({name!r}, {listed}, {inside or caller}, given, {weight})")
        self.line(f"return {self.captured(body)}")
        self.depth -= 1
        self.scope, self.out, self.write, self.mark, self.loops = outer
        return function

    def macro(self, node: nodes.Macro) -> None:
        function = self.function(node.name, node.args, node.defaults, node.body, "")
        self.line(f"{self.scope}[{node.name!r}] = Macro({node.name!r}, {function})")

    def call_block(self, node: nodes.CallBlock) -> None:
        inside, calling = self.new("s"), self.new("s")
        self.line(f"{inside} = run.copied({self.scope})")
        function = self.function("caller", node.args, node.defaults, node.body, inside)
        self.at(node)  # again, behind the body
        self.line(f"{calling} = run.copied({self.scope})")
        self.line(f"{calling}['caller'] = Macro('caller', {function})")
        called = self.expression(node.call.node)
        called = f"C({calling}, [{self.several(node.call.args)}], {called})"
        self.line(f"{self.write}({self.text(called)})")

    def filter_block(self, node: nodes.FilterBlock) -> None:
        text = self.captured(node.body)
        self.at(node)
        self.line(f"{self.write}({self.text(self.filter(node.filter, text))})")


def _weight(body: Sequence[nodes.Node]) -> int:
    """The number of steps that a body takes each time, by its size."""
    return sum(_STEPS.get(type(node), 1) for part in body for node in walked(part))


_STEPS: dict[type[nodes.Node], int] = {  # of nodes that take more than one
    nodes.Filter: 8,
    nodes.Call: 8,
    nodes.Test: 4,
    nodes.CallBlock: 8,
    nodes.For: 5,
    nodes.Macro: 5,
    nodes.Dict: 5,
    nodes.Operand: 2,
    nodes.Add: 2,
    nodes.Concat: 2,
}


def _idle_branches(loop: nodes.For) -> set[int]:
    """The branches of a loop's only condition that do nothing, and that all later rounds would take, too: their ids.

    A round that takes one changes nothing, so if the tests do not depend on the loop's variables, the next round is
    like it. Templates look for a message so: `{% for m in messages %}{% if not ns.found %}...{% endif %}{% endfor %}`.
    """
    body = [node for node in loop.body if not _is_nothing(node)]
    if len(body) != 1 or not isinstance(body[0], nodes.If) or loop.else_:
        return set()
    condition = body[0]
    idle: set[int] = set()
    own = {node.name for node in walked(loop.target) if isinstance(node, nodes.Name)} | {"loop"}
    for branch in (condition, *condition.elif_):
        if not _is_stable(branch.test, own):
            return idle
        if all(map(_is_nothing, branch.body)):
            branch.body = []
            idle.add(id(branch))
    return idle if condition.else_ else idle | {id(condition.else_)}


def _is_nothing(node: nodes.Node) -> bool:
    """Whether a statement is an empty text."""
    return isinstance(node, nodes.Output) and all(
        isinstance(part, nodes.TemplateData) and not part.data for part in node.nodes
    )


def _is_stable(test: nodes.Node, changing: set[str]) -> bool:
    """Whether a test consists of names and members that have other names than those in `changing`."""
    kinds = (nodes.Name, nodes.Getattr, nodes.Not, nodes.And, nodes.Or)
    return all(
        isinstance(node, kinds) and not (isinstance(node, nodes.Name) and node.name in changing)
        for node in walked(test)
    )


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
