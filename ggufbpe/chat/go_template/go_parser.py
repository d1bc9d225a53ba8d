"""Parses a Go template into nodes. Source: text/template/parse/parse.go and strconv.Unquote of Go 1.19."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, NoReturn, TypeAlias

from .go_lexer import SPACE, GoToken, fail, go_tokens


class Operand(NamedTuple):
    """A value of a command, with the fields that are taken of it; as a node, what ends a round of a loop."""

    kind: str  # "field", "variable", "function", "literal", "dot", "nil" or "pipe"; as a node, "break" or "continue"
    value: Any
    names: tuple[str, ...]  # the fields after it
    position: int


class Pipe(NamedTuple):
    """Commands, each of which gets the value of the one before, and the variables that get the last value."""

    variables: tuple[str, ...]
    assigns: bool
    commands: tuple[tuple[Operand, ...], ...]
    position: int


class Branch(NamedTuple):
    """An `if`, `with` or `range`."""

    word: str  # "if", "with" or "range"
    pipe: Pipe
    body: Nodes
    other: Nodes | None  # after `else`, if there is one


class Invocation(NamedTuple):
    """A `template`, or the place of a `block`: another template, run with a value of its own."""

    name: str
    pipe: Pipe | None
    position: int


Node: TypeAlias = "str | Pipe | Branch | Invocation | Operand"
Nodes: TypeAlias = "tuple[Node, ...]"


class GoParser:
    """Has the `templates`: that of the source, named "", and those that it defines. `ChatError` for what Go refuses."""

    def __init__(self, source: str, functions: frozenset[str]) -> None:
        self._source, self._functions = source, functions
        self._tokens, self._next = go_tokens(source), 0
        self._variables, self._loops = ["$"], 0
        self.templates: dict[str, Nodes] = {}
        nodes, end = self._nodes(may_define=True)
        if end.kind != "the end":
            self._unexpected(end)
        self._add("", nodes, 0)

    def _add(self, name: str, nodes: Nodes, position: int) -> None:
        if _is_empty(self.templates.get(name, ())):
            self.templates[name] = nodes
        elif not _is_empty(nodes):
            fail(self._source, position, f'multiple definition of template "{name}"')

    def _peek(self) -> GoToken:
        while self._tokens[self._next].kind == "space":
            self._next += 1
        return self._tokens[self._next]

    def _take(self, *kinds: str) -> GoToken:
        token = self._peek()
        if token.kind not in kinds:
            self._unexpected(token)
        self._next += 1
        return token

    def _unexpected(self, token: GoToken) -> NoReturn:
        fail(self._source, token.position, f"unexpected {token.text.strip() or token.kind}")

    def _nodes(self, may_define: bool = False) -> tuple[Nodes, GoToken]:
        """The nodes up to an `else`, an `end` or the end of the template, and that token."""
        found: list[Node] = []
        while (token := self._take("text", "{{", "the end")).kind != "the end":
            if token.kind == "text":
                found.append(token.text)
            elif (word := self._peek()).kind in ("else", "end"):
                return tuple(found), self._take("else", "end")
            elif word.kind == "define" and may_define:
                self._next += 1
                name = self._text(self._take("string"))
                self._take("}}")
                self._define(name, word)
            else:
                found.append(self._node(word))
        return tuple(found), token

    def _define(self, name: str, word: GoToken) -> None:
        outer, self._variables, self._loops = (self._variables, self._loops), ["$"], 0
        nodes, end = self._nodes()
        self._close(end, word)
        self._add(name, nodes, word.position)
        self._variables, self._loops = outer

    def _close(self, end: GoToken, word: GoToken) -> None:
        if end.kind != "end":
            fail(self._source, word.position, f"{word.kind} has no end: unexpected {end.kind}")
        self._take("}}")

    def _node(self, word: GoToken) -> Node:
        if word.kind in ("if", "with", "range"):
            return self._branch(self._take(word.kind))
        if word.kind not in ("break", "continue", "template", "block"):
            return self._pipe("command")
        self._next += 1
        if word.kind in ("break", "continue"):
            self._take("}}")
            if not self._loops:
                fail(self._source, word.position, f"{word.kind} outside range")
            return Operand(word.kind, None, (), word.position)
        name = self._text(self._take("string"))
        is_bare = word.kind == "template" and self._peek().kind == "}}"
        pipe = None if is_bare else self._pipe(word.kind)
        self._next += is_bare
        if word.kind == "block":
            self._define(name, word)
        return Invocation(name, pipe, word.position)

    def _branch(self, word: GoToken) -> Branch:
        outer = len(self._variables)
        pipe = self._pipe(word.kind)
        self._loops += word.kind == "range"
        body, end = self._nodes()
        self._loops -= word.kind == "range"
        other: Nodes | None = None
        if (end.kind, word.kind) == ("else", "if") and self._peek().kind == "if":
            other = (self._branch(self._take("if")),)  # whose end is that of both
        else:
            if end.kind == "else":
                self._take("}}")
                other, end = self._nodes()
            self._close(end, word)
        del self._variables[outer:]
        return Branch(word.kind, pipe, body, other)

    def _pipe(self, context: str, end: str = "}}") -> Pipe:
        position = self._peek().position
        variables, assigns = self._declarations(context)
        commands: list[tuple[Operand, ...]] = []
        while self._peek().kind != end:
            commands.append(self._command())
            if len(commands) > 1 and commands[-1][0].kind in ("literal", "dot", "nil"):
                fail(self._source, commands[-1][0].position, "this takes no value from a pipeline")
        self._next += 1
        if not commands:
            fail(self._source, position, f"missing value for {context}")
        return Pipe(variables, assigns, tuple(commands), position)

    def _declarations(self, context: str) -> tuple[tuple[str, ...], bool]:
        start, names = self._next, []
        while self._peek().kind == "variable":
            names.append(self._take("variable").text)
            after = self._peek()
            if after.kind in ("declare", "assign"):
                if after.kind == "assign" and context == "range":  # versions of Go differ in it
                    fail(self._source, after.position, "range with = is not supported")
                self._next += 1
                self._variables += names
                return tuple(names), after.kind == "assign"
            if after.kind != "comma" or context != "range" or len(names) > 1:
                break
            self._next += 1
        self._next = start
        return (), False

    def _command(self) -> tuple[Operand, ...]:
        operands: list[Operand] = []
        while not operands or (self._tokens[self._next].kind == "space" and self._peek().kind in _OPERANDS):
            operands.append(self._operand(self._take(*_OPERANDS)))
        if self._peek().kind not in ("}}", "close"):
            self._take("pipe")
        return tuple(operands)

    def _operand(self, token: GoToken) -> Operand:
        kind, made = token.kind, token.text or None  # type: str, Any
        names: tuple[str, ...] = (token.text[1:],) if kind == "field" else ()
        if kind == "word":
            is_constant = made in ("true", "false")
            kind, made = ("literal", made == "true") if is_constant else ("function", made)
            if not is_constant and made not in self._functions:
                fail(self._source, token.position, f'function "{made}" not defined')
        elif kind == "open":
            kind, made = "pipe", self._pipe("parenthesized pipeline", "close")
        elif kind in ("string", "number"):
            kind, made = "literal", self._text(token) if kind == "string" else self._number(token)
        elif kind == "variable" and made not in self._variables:
            fail(self._source, token.position, f"undefined variable {made}")
        while self._tokens[self._next].kind == "field":
            if kind in ("literal", "dot", "nil"):
                self._unexpected(self._peek())
            names += (self._take("field").text[1:],)
        return Operand(kind, made, names, token.position)

    def _number(self, token: GoToken) -> int | float:
        match = _NUMBER.fullmatch(token.text)
        if match is None or not (match[1] or set(token.text) & set(".eE")):
            fail(self._source, token.position, f"a number that is not supported: {token.text}")
        return int(token.text) if match[1] else float(token.text)

    def _text(self, token: GoToken) -> str:
        """What a quoted text means. Python reads its escapes as Go does, but for those of characters."""
        inner = token.text[1:-1]
        if token.text[0] == "`":
            return inner.replace("\r", "")
        try:
            if _QUOTED.fullmatch(inner):
                inner = re.sub(r"\\(?:u(.{4})|U(.{8})|.)", _in_utf8, inner)
                return inner.encode("latin-1").decode("unicode_escape")
        except ValueError:  # no character has the number
            pass
        return fail(self._source, token.position, f"invalid escape in {token.text}")


_OPERANDS = ("string", "number", "variable", "field", "dot", "word", "nil", "open")
_HEX = "[0-9a-fA-F]"
_NUMBER = re.compile(r"[+-]?(?:(0|[1-9][0-9]{0,17})|(?=\.?[0-9])[0-9]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,2})?)")
_QUOTED = re.compile(rf'(?:[^\\]|\\(?:[abfnrtv\\"]|x{_HEX}{{2}}|[0-3][0-7]{{2}}|u{_HEX}{{4}}|U{_HEX}{{8}}))*')


def _in_utf8(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    return chr(int(code, 16)).encode().decode("latin-1") if code else escape[0]


def _is_empty(nodes: Nodes) -> bool:
    return all(isinstance(node, str) and not node.strip(SPACE + "\v\f") for node in nodes)
