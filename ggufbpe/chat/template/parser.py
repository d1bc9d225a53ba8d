"""Parses the tokens of a template into jinja2's nodes, by llama.cpp's grammar.

Source: common/jinja/parser.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jinja2 import TemplateSyntaxError, nodes

from .expression_parser import ExpressionParser, failing
from .lexer import Token


def parsed_template(tokens: Iterable[Token]) -> nodes.Template:
    """The template; `TemplateSyntaxError` in llama.cpp's words where it has no such template."""
    return _Parser(list(tokens)).template()


class _Parser(ExpressionParser):
    def _end_of(self, name: str) -> None:
        """The statement that ends another, up to its name."""
        self.expect("block_begin", "{%")
        if not self.follows_word(name):
            raise TemplateSyntaxError(f"Expected identifier: {name}", self.peek()[0])
        self.at += 1

    def _close(self) -> None:
        self.expect("block_end", "%}")

    # ---- statements -----------------------------------------------------------------------------

    def _is_statement(self, *names: str) -> bool:
        return self.follows("block_begin") and self.peek(1)[1] == "name" and self.peek(1)[2] in names

    def template(self) -> nodes.Template:
        """All of it."""
        body: list[nodes.Node] = []
        while self.peek()[1]:
            body += self._any()
        return nodes.Template(body, lineno=1)

    def _any(self) -> list[nodes.Node]:
        line, kind, value = self.peek()
        if kind == "comment":
            self.at += 1
            return []
        if kind == "data":
            self.at += 1
            return [nodes.Output([nodes.TemplateData(value, lineno=line)], lineno=line)]
        if kind == "variable_begin":
            self.at += 1
            written = self.expression()
            self.expect("variable_end", "}}")
            return [nodes.Output([written], lineno=written.lineno)]
        if kind != "block_begin":
            raise TemplateSyntaxError("Unexpected token type", line)
        self.at += 1
        return self._statement()

    def _statement(self) -> list[nodes.Node]:
        line, kind, name = self.peek()
        if kind != "name":
            raise TemplateSyntaxError("Unknown statement", line)
        self.at += 1
        if name in ("generation", "endgeneration"):
            self.at += 1
            return []
        parse = _STATEMENTS.get(str(name))
        if parse is None:
            raise TemplateSyntaxError(f"Unknown statement: {name}", line)
        statement = parse(self, line)
        if name != "set":  # which has its own
            self._close()
        return [statement]

    def _body(self, *ends: str) -> list[nodes.Node]:
        """Everything up to one of these statements."""
        body: list[nodes.Node] = []
        while not self._is_statement(*ends):
            body += self._any()
        return body

    def _else(self, end: str) -> list[nodes.Node]:
        if not self._is_statement("else"):
            return []
        self.at += 2
        self._close()
        return self._body(end)

    def set_statement(self, line: int) -> nodes.Node:
        """`{% set %}`, up to its end."""
        target = self.sequence(self.expression)
        target.set_ctx("store")
        node: nodes.Node
        if self.follows("assign"):
            self.at += 1
            node = nodes.Assign(target, self.sequence(self.expression), lineno=line)
        else:
            self._close()
            node = nodes.AssignBlock(target, None, self._body("endset"), lineno=line)
            self._end_of("endset")
        self._close()
        return node

    def condition_statement(self, line: int) -> nodes.If:
        """`{% if %}`."""
        node = self._branch(line)
        while self._is_statement("elif"):
            other = self.peek(1)[0]
            self.at += 2
            node.elif_.append(self._branch(other))
        node.else_ = self._else("endif")
        self._end_of("endif")
        return node

    def _branch(self, line: int) -> nodes.If:
        test = self.expression()
        self._close()
        return nodes.If(test, self._body("elif", "else", "endif"), [], [], lineno=line)

    def loop_statement(self, line: int) -> nodes.For:
        """`{% for %}`."""
        target = self.sequence(self.primary)
        target.set_ctx("store")
        if not self.follows_word("in"):
            raise TemplateSyntaxError("Expected 'in'", self.peek()[0])
        self.at += 1
        source = self.expression()
        self._close()
        body = self._body("endfor", "else")
        otherwise = self._else("endfor")
        self._end_of("endfor")
        return nodes.For(target, source, body, otherwise, None, False, lineno=line)

    def macro_statement(self, line: int) -> nodes.Node:
        """`{% macro %}`."""
        name = self.primary()
        parameters = self.arguments()
        self._close()
        body = self._body("endmacro")
        self._end_of("endmacro")
        if not isinstance(name, nodes.Name):
            return nodes.Output([failing("Macro name must be an identifier", line)], lineno=line)
        return nodes.Macro(name.name, *_bound(name.name, parameters, body), lineno=line)

    def call_statement(self, line: int) -> nodes.CallBlock:
        """`{% call %}`."""
        parameters = self.arguments() if self.follows("lparen") else []
        callee = self.primary()
        if not isinstance(callee, nodes.Name):
            raise TemplateSyntaxError("Expected identifier", line)
        called = nodes.Call(callee, self.arguments(), [], None, None, lineno=line)
        self._close()
        body = self._body("endcall")
        self._end_of("endcall")
        return nodes.CallBlock(called, *_bound("caller", parameters, body), lineno=line)

    def filter_statement(self, line: int) -> nodes.Node:
        """`{% filter %}`."""
        name = self.primary()
        if isinstance(name, nodes.Name) and self.follows("lparen"):
            name = self.call(name)
        self._close()
        body = self._body("endfilter")
        self._end_of("endfilter")
        node = self.filtered(None, name, line)
        if not isinstance(node, nodes.Filter):
            return nodes.Output([node], lineno=line)
        return nodes.FilterBlock(body, node, lineno=line)


def _bound(
    name: str, parameters: list[nodes.Expr], body: list[nodes.Node]
) -> tuple[list[nodes.Name], list[nodes.Expr | None], list[nodes.Node]]:
    """The parameters of a macro, their defaults (None for one without), and its body, which fails if one is no name."""
    names: list[nodes.Name] = []
    for node in parameters:
        if not isinstance(node, (nodes.Keyword, nodes.Name)):
            reason = f"Invalid parameter type in '{name}'"
            return [], [], [nodes.Output([failing(reason, node.lineno)], lineno=node.lineno)]
        target = node.key if isinstance(node, nodes.Keyword) else node.name
        names.append(nodes.Name(target, "param", lineno=node.lineno))
    return names, [node.value if isinstance(node, nodes.Keyword) else None for node in parameters], body


_STATEMENTS: dict[str, Callable[[_Parser, int], nodes.Node]] = {
    "set": _Parser.set_statement,
    "if": _Parser.condition_statement,
    "for": _Parser.loop_statement,
    "macro": _Parser.macro_statement,
    "call": _Parser.call_statement,
    "filter": _Parser.filter_statement,
    "break": lambda _, line: nodes.Break(lineno=line),
    "continue": lambda _, line: nodes.Continue(lineno=line),
}
