"""Parses the expressions of a template into jinja2's nodes, by llama.cpp's grammar.

No word is reserved: `true` and `if` are names wherever a name may stand. Commas between items are optional, and what
jinja2 refuses at once, such as a filter that is no name, mostly fails only where it is reached.

Source: parse_expression in common/jinja/parser.cpp and what it calls; the functions have nearly the same names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from jinja2 import TemplateSyntaxError, nodes

from .lexer import SIGN, Token

_N = TypeVar("_N", bound=nodes.Node)
_BINARY: dict[str, type[nodes.BinExpr]] = {
    "or": nodes.Or,
    "and": nodes.And,
    "add": nodes.Add,
    "sub": nodes.Sub,
    "mul": nodes.Mul,
    "div": nodes.Div,
    "mod": nodes.Mod,
}
_COMPARISONS = frozenset(("eq", "ne", "lt", "lteq", "gt", "gteq"))
_ADDITIVE = frozenset(("add", "sub", "tilde"))
_MULTIPLICATIVE = frozenset(("mul", "div", "mod"))
_NUMBERS = frozenset(("integer", "float"))
# How llama.cpp numbers the types of tokens, for those that may stand where no expression can begin.
_NUMBERED = {
    "data": 1,
    "assign": 5,
    "rparen": 7,
    "block_begin": 8,
    "block_end": 9,
    "variable_begin": 10,
    "variable_end": 11,
    "rbracket": 13,
    "rbrace": 15,
    "comma": 16,
    "dot": 17,
    "colon": 18,
    "pipe": 19,
    **dict.fromkeys(_ADDITIVE, 21),
    **dict.fromkeys(_MULTIPLICATIVE, 22),
    **dict.fromkeys(_COMPARISONS, 23),
    SIGN: 24,
    "comment": 25,
}


def failing(reason: str, line: int, *evaluated: nodes.Expr) -> nodes.Expr:
    """An expression that fails when it is reached, after others are evaluated.

    It is a `MarkSafe`, for which templates have no other use.
    """
    return nodes.MarkSafe(nodes.Tuple([nodes.Const(reason), *evaluated], "load"), lineno=line)


class ExpressionParser:
    """Reads expressions from the tokens of a template."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._end: Token = (tokens[-1][0] if tokens else 1, "", "")
        self.at = 0

    # ---- tokens ---------------------------------------------------------------------------------

    def peek(self, ahead: int = 0) -> Token:
        """The next token or one after it; behind the last one, one without a type."""
        at = self.at + ahead
        return self._tokens[at] if at < len(self._tokens) else self._end

    def next(self) -> Token:
        """The next token, which is taken."""
        token = self.peek()
        if token is self._end:
            raise TemplateSyntaxError("Parser Error: Unexpected EOF", token[0])
        self.at += 1
        return token

    def follows(self, kind: str) -> bool:
        """Whether the next token is of a type."""
        return self.peek()[1] == kind

    def follows_word(self, *words: str) -> bool:
        """Whether the next token is one of these names."""
        _, kind, value = self.peek()
        return kind == "name" and value in words

    def expect(self, kind: str, shown: str) -> None:
        """Take a token of a type; `TemplateSyntaxError` for any other."""
        line, actual, value = self.peek()
        if actual != kind:
            raise TemplateSyntaxError(f"Parser Error: Expected {shown} (Got {value})", line)
        self.at += 1

    # ---- expressions, from the operators that bind least to those that bind most --------------------

    def sequence(self, item: Callable[[], nodes.Expr]) -> nodes.Expr:
        """One expression, or several with commas between them, which are a tuple."""
        line = self.peek()[0]
        items = [item()]
        is_tuple = self.follows("comma")
        while self.follows("comma"):
            self.at += 1
            items.append(item())
        return nodes.Tuple(items, "load", lineno=line) if is_tuple else items[0]

    def expression(self) -> nodes.Expr:
        """An expression without commas."""
        node = self._or()
        if not self.follows_word("if"):
            return node
        self.at += 1
        test, otherwise = self._or(), None
        if self.follows_word("else"):
            self.at += 1
            otherwise = self.expression()
        return nodes.CondExpr(test, node, otherwise, lineno=node.lineno)

    def _or(self) -> nodes.Expr:
        return self._row(self._and, lambda: self.follows_word("or"))

    def _and(self) -> nodes.Expr:
        return self._row(self._not, lambda: self.follows_word("and"))

    def _row(self, operand: Callable[[], nodes.Expr], goes_on: Callable[[], bool]) -> nodes.Expr:
        """Operands with operators between them, of which the first binds most."""
        line = self.peek()[0]
        left = operand()
        while goes_on():
            _, kind, word = self.next()
            right = operand()
            if kind == "tilde":
                left = nodes.Concat([left, right], lineno=line)
            else:
                left = _BINARY[str(word) if kind == "name" else kind](left, right, lineno=line)
        return left

    def _not(self) -> nodes.Expr:
        if not self.follows_word("not"):
            return self._comparison()
        line = self.next()[0]
        return nodes.Not(self._not(), lineno=line)

    def _comparison(self) -> nodes.Expr:
        line = self.peek()[0]
        left = self._sum()
        while True:
            _, kind, _ = self.peek()
            if self.follows_word("not") and self.peek(1)[1:] == ("name", "in"):
                self.at += 1
                kind = "notin"
            elif self.follows_word("in"):
                kind = "in"
            elif kind not in _COMPARISONS:
                return left
            self.at += 1
            left = nodes.Compare(left, [nodes.Operand(kind, self._sum())], lineno=line)

    def _sum(self) -> nodes.Expr:
        return self._row(self._product, lambda: self.peek()[1] in _ADDITIVE)

    def _product(self) -> nodes.Expr:
        return self._row(self._test, lambda: self.peek()[1] in _MULTIPLICATIVE)

    def _test(self) -> nodes.Expr:
        node = self._filter()
        while self.follows_word("is"):
            line = self.next()[0]
            negated = self.follows_word("not")
            self.at += negated
            test, arguments = self.primary(), list[nodes.Expr]()
            kind = self.peek()[1]
            if kind == "lparen":
                test = self.call(test)
                if isinstance(test, nodes.Call):
                    arguments, test = test.args, test.node
            elif (
                kind in _NUMBERS
                or kind in ("string", "lbrace", "lbracket")
                or (kind == "name" and not self.follows_word("and", "or", "else"))
            ):
                arguments = [self._unary()]
            if isinstance(test, nodes.Name):
                node = nodes.Test(node, test.name, arguments, [], None, None, lineno=line)
            else:
                node = failing("Test callee must be an identifier", line, node)
            node = nodes.Not(node, lineno=line) if negated else node
        return node

    def _filter(self) -> nodes.Expr:
        node = self._unary()
        while self.follows("pipe"):
            line = self.next()[0]
            name = self.primary()
            node = self.filtered(node, self.call(name) if self.follows("lparen") else name, line)
        return node

    def filtered(self, value: nodes.Expr | None, name: nodes.Expr, line: int) -> nodes.Expr:
        """A value and its filter, which is a name or a call of one; without a value, that of a block.

        A filter without brackets has None for its arguments, one with empty brackets an empty list: llama.cpp's filters
        of texts make a text of any other value only for the first.
        """
        arguments: list[nodes.Expr] | None = None
        reason = "Invalid filter expression"
        if isinstance(name, nodes.Call):
            arguments, reason = name.args, "Filter callee must be an identifier"
            name = name.node
        if isinstance(name, nodes.Name):
            return nodes.Filter(value, name.name, arguments, [], None, None, lineno=line)
        return failing(reason, line, *([] if value is None else [value]))

    def _unary(self) -> nodes.Expr:
        if not self.follows(SIGN):
            node = self._members(self.primary())
            return self.call(node) if self.follows("lparen") else node
        line, _, sign = self.next()
        return (nodes.Neg if sign == "-" else nodes.Pos)(self._unary(), lineno=line)

    def call(self, callee: nodes.Expr) -> nodes.Expr:
        """A call, and members and calls of what it gives."""
        line = self.peek()[0]
        node = self._members(nodes.Call(callee, self.arguments(), [], None, None, lineno=line))
        return self.call(node) if self.follows("lparen") else node

    def arguments(self) -> list[nodes.Expr]:
        """The arguments of a call; those given by name keep their place among the others."""
        self.expect("lparen", "(")
        arguments = []
        while not self.follows("rparen"):
            arguments.append(self._argument())
            self.at += self.follows("comma")
        self.at += 1
        return arguments

    def _argument(self) -> nodes.Expr:
        line = self.peek()[0]
        if self.follows("mul"):
            self.at += 1
            self.expression()
            return failing("cannot exec SpreadExpression", line)
        node = self.expression()
        if not self.follows("assign"):
            return node
        self.at += 1
        value = self.expression()
        if not isinstance(node, nodes.Name):
            return failing("Keyword argument key must be identifiers", line)
        return nodes.Keyword(node.name, value, lineno=line)  # type: ignore[return-value]

    def _members(self, node: nodes.Expr) -> nodes.Expr:
        while self.peek()[1] in ("dot", "lbracket"):
            line, kind, _ = self.next()
            if kind == "lbracket":
                node = nodes.Getitem(node, self._index(), "load", lineno=line)
                self.expect("rbracket", "]")
                continue
            member = self.primary()
            if isinstance(member, nodes.Name):
                node = nodes.Getattr(node, member.name, "load", lineno=line)
            elif isinstance(member, nodes.Const) and type(member.value) is int:
                node = nodes.Getitem(node, member, "load", lineno=line)
            else:
                node = failing("Static member property must be an identifier", line, node)
        return node

    def _index(self) -> nodes.Expr:
        """What stands in brackets: an expression, up to three with colons between them, or nothing."""
        line, is_slice = self.peek()[0], False
        bounds: list[nodes.Expr | None] = []
        while not self.follows("rbracket"):
            bounds.append(None if self.follows("colon") else self.expression())
            is_slice = is_slice or self.follows("colon")
            self.at += self.follows("colon")
        if is_slice:
            return nodes.Slice(*[*bounds, None, None][:3], lineno=line)
        # a name that no variable has
        return (bounds[0] if bounds else None) or nodes.Name("", "load", lineno=line)

    def primary(self) -> nodes.Expr:
        """A literal, a name, or anything in brackets."""
        line, kind, value = self.next()
        if kind in _NUMBERS:
            return nodes.Const(value, lineno=line)
        if kind == "name":
            return nodes.Name(value, "load", lineno=line)
        if kind == "string":
            while self.follows("string"):
                value = str(value) + str(self.next()[2])
            return nodes.Const(value, lineno=line)
        if kind == "lparen":
            node = self.sequence(self.expression)
            self.expect("rparen", ")")
            return node
        if kind == "lbracket":
            return nodes.List(self._items("rbracket", self.expression), lineno=line)
        if kind == "lbrace":
            return nodes.Dict(self._items("rbrace", self._pair), lineno=line)
        raise TemplateSyntaxError(f"Unexpected token: {value} of type {_NUMBERED[kind]}", line)

    def _items(self, end: str, item: Callable[[], _N]) -> list[_N]:
        """Everything up to a closing bracket."""
        items = []
        while not self.follows(end):
            items.append(item())
            self.at += self.follows("comma")
        self.at += 1
        return items

    def _pair(self) -> nodes.Pair:
        key = self.expression()
        self.expect("colon", ":")
        return nodes.Pair(key, self.expression(), lineno=key.lineno)
