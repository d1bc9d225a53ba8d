"""What binds more than what, and what an expression may be made of, by llama.cpp's grammar."""

from __future__ import annotations

import pytest
from jinja2 import TemplateSyntaxError, nodes

from ggufbpe.chat.template.expression_parser import ExpressionParser
from ggufbpe.chat.template.lexer import tokens


def parser_of(source: str) -> ExpressionParser:
    """A parser of an expression, past the opening brackets."""
    parser = ExpressionParser(list(tokens("{{ " + source + " }}")))
    parser.expect("variable_begin", "{{")
    return parser


def shown(node: object) -> str:
    """An expression with all its brackets."""
    if isinstance(node, (list, tuple)):
        return ", ".join(map(shown, node))
    if isinstance(node, nodes.Const):
        return repr(node.value)
    if isinstance(node, nodes.Name):
        return node.name
    if isinstance(node, nodes.Compare):
        return f"({shown(node.expr)} {node.ops[0].op} {shown(node.ops[0].expr)})"
    if isinstance(node, nodes.BinExpr):
        return f"({shown(node.left)} {node.operator} {shown(node.right)})"
    if isinstance(node, nodes.UnaryExpr):
        return f"({node.operator} {shown(node.node)})"
    if isinstance(node, (nodes.Filter, nodes.Test)):
        sign = "|" if isinstance(node, nodes.Filter) else " is "
        arguments = "" if node.args is None else f"({shown(node.args)})"
        return f"({shown(node.node)}{sign}{node.name}{arguments})"
    if isinstance(node, nodes.Concat):
        return f"({' ~ '.join(map(shown, node.nodes))})"
    if isinstance(node, nodes.CondExpr):
        return f"({shown(node.expr1)} if {shown(node.test)} else {shown(node.expr2)})"
    if isinstance(node, nodes.Getattr):
        return f"{shown(node.node)}.{node.attr}"
    if isinstance(node, nodes.Getitem):
        return f"{shown(node.node)}[{shown(node.arg)}]"
    if isinstance(node, nodes.Slice):
        return ":".join(map(shown, (node.start, node.stop, node.step)))
    if isinstance(node, nodes.Call):
        return f"{shown(node.node)}({shown(node.args)})"
    if isinstance(node, nodes.Keyword):
        return f"{node.key}={shown(node.value)}"
    if isinstance(node, nodes.List):
        return f"[{shown(node.items)}]"
    if isinstance(node, nodes.Tuple):
        return f"<{shown(node.items)}>"
    if isinstance(node, nodes.Dict):
        return f"{{{', '.join(f'{shown(pair.key)}: {shown(pair.value)}' for pair in node.items)}}}"
    if isinstance(node, nodes.MarkSafe):  # an expression that fails when it is reached
        return f"fail({shown(node.expr.items if isinstance(node.expr, nodes.Tuple) else node.expr)})"
    return repr(node)


EXPRESSIONS = {
    "a or b and not c": "(a or (b and (not c)))",
    "a + b * c - d": "((a + (b * c)) - d)",
    "a - b ~ c": "((a - b) ~ c)",
    "a < b == c": "((a lt b) eq c)",
    "a not in b + c": "(a notin (b + c))",
    "a * b | length": "(a * (b|length))",
    "-a.b | abs": "((- a.b)|abs)",
    "a | f(1, x=2) | g": "((a|f(1, x=2))|g)",
    "a | f()": "(a|f())",
    "a is not divisibleby 3 and b": "((not (a is divisibleby(3))) and b)",
    "a is defined and b": "((a is defined()) and b)",
    "a if b else c if d": "(a if b else (c if d else None))",
    "a.b['c'].0(1)(d)": "a.b['c'][0](1)(d)",
    "a[:2]": "a[None:2:None]",
    "a[1::-1]": "a[1:None:-1]",
    "a[]": "a[]",
    "'x' 'y'": "'xy'",
    "(a, b)": "<a, b>",
    "[1, 2.5 c]": "[1, 2.5, c]",  # commas may be left out
    "{'a': 1, b: [2]}": "{'a': 1, b: [2]}",
    "f(*a)": "f(fail('cannot exec SpreadExpression'))",
    "f('a'=1)": "f(fail('Keyword argument key must be identifiers'))",
    "a | 1": "fail('Invalid filter expression', a)",
    "a is 'x'": "fail('Test callee must be an identifier', a)",
}


@pytest.mark.parametrize("source", EXPRESSIONS)
def test_expression(source: str) -> None:
    parser = parser_of(source)
    assert shown(parser.expression()) == EXPRESSIONS[source]
    assert parser.follows("variable_end")


def test_a_sequence_is_a_tuple() -> None:
    parser = parser_of("a, b")
    assert shown(parser.sequence(parser.primary)) == "<a, b>"
    parser = parser_of("a")
    assert shown(parser.sequence(parser.primary)) == "a"


REFUSED = {
    "": "Unexpected token: }} of type 11",
    "(a": "Parser Error: Expected ) (Got }})",
    "{'a' 1}": "Parser Error: Expected : (Got 1)",
    "a.": "Unexpected token: }} of type 11",
}


@pytest.mark.parametrize("source", REFUSED)
def test_refused(source: str) -> None:
    with pytest.raises(TemplateSyntaxError) as refusal:
        parser_of(source).expression()
    assert refusal.value.message == REFUSED[source]
