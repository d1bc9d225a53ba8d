"""Runs a parsed Go template. Source: text/template/exec.go and funcs.go of Go 1.19."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..._util.errors import ChatError
from ..go_values import FUNCTIONS, NO_VALUE, Named, Struct, go_truth, printed
from ..template.lexer import MOST_SOURCE
from ..template.run_limits import Bounds, ChatSize, look_at_clock
from ..template.values import TemplateError, Value
from .go_lexer import fail
from .go_parser import Branch, GoParser, Invocation, Nodes, Operand, Pipe

_CHAINED = ("and", "or")


class GoTemplate:
    """A template that can be run repeatedly. `functions` are those besides Go's own. `ChatError` for a broken one."""

    def __init__(self, source: str, functions: Mapping[str, Callable[..., Value]]) -> None:
        self.source = source
        self.functions = {**functions, **FUNCTIONS}
        if len(source) > MOST_SOURCE:
            raise ChatError(f"a chat template of more than {MOST_SOURCE:,} bytes")
        try:
            self.templates = GoParser(source, frozenset((*self.functions, *_CHAINED))).templates
        except RecursionError:
            raise ChatError("the chat template is nested too deeply") from None

    def render(self, data: Mapping[str, Value], chat_size: Callable[[], ChatSize] = ChatSize) -> str:
        """The text for `data`. `ChatError` with line and column where Go fails, and at the limits of a run."""
        return GoRun(self, chat_size).text(self.templates[""], data)


class GoRun:
    """One run; `alone`, of nodes that know no other templates and only Go's functions.

    `functions` are those of this run, in place of the template's of the same names.
    """

    def __init__(
        self,
        template: GoTemplate,
        chat_size: Callable[[], ChatSize],
        alone: bool = False,
        functions: Mapping[str, Callable[..., Value]] | None = None,
    ) -> None:
        self._template, self._alone = template, alone
        self._functions = {**template.functions, **(functions or {})}
        self._bounds, self._out, self._at = Bounds(chat_size), list[str](), 0
        self._variables: list[tuple[str, Value]] = []

    def text(self, nodes: Nodes, data: Value) -> str:
        look_at_clock(True)
        try:
            self._variables = [("$", data)]
            self._walk(nodes, data)
        except (TemplateError, TypeError, ValueError, RecursionError) as error:
            reason = "calls itself for ever" if isinstance(error, RecursionError) else str(error)
            fail(self._template.source, self._at, reason)
        look_at_clock(False)
        return "".join(self._out)

    def _walk(self, nodes: Nodes, dot: Value) -> str:
        """Write nodes; return "break" or "continue" if one of them ends a round of a loop."""
        for node in nodes:
            self._bounds.step(4)
            text = node if isinstance(node, str) else ""
            if isinstance(node, Pipe):
                value = self._pipe(node, dot)
                text = "" if node.variables else "<no value>" if value is NO_VALUE else printed(value)
            elif isinstance(node, Operand):
                return node.kind
            elif isinstance(node, Invocation):
                self._invoke(node, dot)
            elif isinstance(node, Branch) and (jump := self._branch(node, dot)):
                return jump
            self._bounds.spend(len(text))
            self._out.append(text)
        return ""

    def _invoke(self, node: Invocation, dot: Value) -> None:
        self._at = node.position
        nodes = None if self._alone else self._template.templates.get(node.name)
        if nodes is None:
            raise TemplateError(f'template "{node.name}" not defined')
        dot = NO_VALUE if node.pipe is None else self._pipe(node.pipe, dot)
        outer, self._variables = self._variables, [("$", dot)]
        self._walk(nodes, dot)
        self._variables = outer

    def _branch(self, node: Branch, dot: Value) -> str:
        outer, value = len(self._variables), self._pipe(node.pipe, dot)
        if node.word == "range" and value is not NO_VALUE and not isinstance(value, (list, tuple, dict)):
            raise TemplateError(f"range can't iterate over {printed(value)}")
        jump = ""
        if node.word == "range" and go_truth(value):
            self._range(node, value)
        elif go_truth(value):
            jump = self._walk(node.body, value if node.word == "with" else dot)
        else:
            jump = self._walk(node.other or (), dot)
            if node.word == "range" and jump == "break":
                jump = ""  # Go has left the loop that is empty when it finds a break in its else
        del self._variables[outer:]
        return jump

    def _range(self, node: Branch, value: Value) -> None:
        self._bounds.step(len(value))
        items = sorted(value.items()) if isinstance(value, dict) else enumerate(value)
        names, outer = node.pipe.variables, len(self._variables) - len(node.pipe.variables)
        for index, item in items:
            self._variables[outer:] = zip(names, (index, item)[-len(names) :]) if names else ()
            if self._walk(node.body, item) == "break":
                break

    def _pipe(self, pipe: Pipe, dot: Value) -> Value:
        value: Value = NO_VALUE
        for number, command in enumerate(pipe.commands):
            value = self._command(command, dot, (value,) if number else ())
            value = NO_VALUE if value is None else value
        for name in pipe.variables:
            place = self._place(name) if pipe.assigns else len(self._variables)
            self._variables[place : place + 1] = [(name, value)]
        return value

    def _place(self, name: str) -> int:
        for place in range(len(self._variables) - 1, -1, -1):
            if self._variables[place][0] == name:
                self._bounds.step((len(self._variables) - place) >> 1)
                return place
        raise TemplateError(f"undefined variable: {name}")

    def _command(self, command: tuple[Operand, ...], dot: Value, piped: tuple[Value, ...]) -> Value:
        first, *rest = command
        if first.kind == "function" and not first.names:
            return self._call(first, rest, dot, piped)
        self._at = first.position
        if rest or piped or first.kind == "nil":
            raise TemplateError(
                "this is no function, and takes no arguments" if rest or piped else "nil alone"
            )
        return self._operand(first, dot)

    def _operand(self, operand: Operand, dot: Value) -> Value:
        self._bounds.step()
        self._at = operand.position
        value: Value = operand.value if operand.kind == "literal" else None
        if operand.kind in ("dot", "field"):
            value = dot
        elif operand.kind == "variable":
            value = self._variables[self._place(operand.value)][1]
        elif operand.kind == "pipe":
            value = self._pipe(operand.value, dot)
        elif operand.kind == "function":
            value = self._call(operand, [], dot, ())
        for name in operand.names:
            self._at = operand.position
            value = self._member(value, name)
        return value

    def _member(self, value: Value, name: str) -> Value:
        if value is NO_VALUE:
            return value
        if isinstance(value, (Struct, Named)) and name in value.methods:
            return value.methods[name]()
        if isinstance(value, dict):
            return value.get(name, NO_VALUE if self._alone else None)
        if isinstance(value, Struct) and name in value.fields:
            return value.fields[name]
        raise TemplateError(f"can't evaluate field {name} of {'nil' if value is None else 'such a value'}")

    def _call(self, function: Operand, rest: list[Operand], dot: Value, piped: tuple[Value, ...]) -> Value:
        name = function.value
        if name in _CHAINED:
            value: Value = NO_VALUE
            for operand in rest:
                value = self._operand(operand, dot)
                if go_truth(value) == (name == "or"):
                    return value
            if not (rest or piped):
                raise TemplateError(f"{name} needs an argument")
            return piped[0] if piped else value
        values = [*(self._operand(operand, dot) for operand in rest), *piped]
        self._at = function.position
        if self._alone and name not in FUNCTIONS:
            raise TemplateError(f'"{name}" is not a defined function')
        self._bounds.spend(sum(len(each) for each in values if isinstance(each, str)))
        try:
            made = self._functions[name](*values)
        except TypeError as error:
            raise TemplateError(f"wrong arguments for {name}") from error
        self._bounds.spend(len(made) if isinstance(made, (str, list, tuple)) else 0)
        return made
