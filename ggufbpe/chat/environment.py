"""Templates compiled and run: jinja2's parser and its immutable sandbox, with llama.cpp's lexer and operators.

source -> lexer -> jinja2.parser -> compiler -> [this file] -> text

The only file that imports jinja2 together with `compiler`; everything else imports this one where it is used.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, cast

from jinja2 import TemplateSyntaxError, nodes
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ..errors import ChatError
from ..once import made_once
from . import lexer
from .arguments import Scope
from .attributed import NOBODY, all_of
from .attributing import AttributingRuntime
from .compiler import source_of
from .loop_uses import walked
from .runtime import Runtime
from .values import CallError, TemplateError, plain, viewed

_CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None}


class _Parser(Parser):
    """jinja2's parser with llama.cpp's grammar: `~` binds as `+` and `-` do, and no comma ends a tuple."""

    def parse_math1(self) -> nodes.Expr:
        lineno = self.stream.current.lineno
        left = self.parse_math2()
        while self.stream.current.type in ("add", "sub", "tilde"):
            kind = next(self.stream).type
            right = self.parse_math2()
            if kind == "tilde":
                left = nodes.Concat([left, right], lineno=lineno)
            else:
                left = (nodes.Add if kind == "add" else nodes.Sub)(left, right, lineno=lineno)
        return left

    def parse_unary(self, with_filter: bool = True) -> nodes.Expr:
        lineno = self.stream.current.lineno
        if self.stream.current.type == lexer.SIGN:
            kind = nodes.Neg if next(self.stream).value == "-" else nodes.Pos
            found: nodes.Expr = kind(self.parse_unary(False), lineno=lineno)
        else:
            found = self.parse_postfix(self.parse_primary())
        return self.parse_filter_expr(found) if with_filter else found

    def parse_filter_expr(self, node: nodes.Expr) -> nodes.Expr:
        while self.stream.current.type == "pipe":
            node = cast(nodes.Expr, self.parse_filter(node))
        while self.stream.current.test("name:is"):  # no filter may follow a test
            node = self.parse_test(node)
        return node

    def parse_list(self) -> nodes.List:
        lineno = self.stream.expect("lbracket").lineno
        return nodes.List(list(self._until("rbracket", self.parse_expression)), lineno=lineno)

    def parse_dict(self) -> nodes.Dict:
        lineno = self.stream.expect("lbrace").lineno
        return nodes.Dict(list(self._until("rbrace", self._pair)), lineno=lineno)

    def parse_call_args(self) -> Any:
        self.stream.expect("lparen")
        return list(self._until("rparen", self._argument)), [], None, None

    def parse_signature(self, node: Any) -> None:
        """The parameters of a macro; the default of a parameter is None if only an earlier one has any."""
        node.args, node.defaults = [], []
        self.stream.expect("lparen")
        for parameter in self._until("rparen", lambda: self.parse_assign_target(name_only=True)):
            node.args.append(parameter.set_ctx("param"))
            if self.stream.skip_if("assign"):
                node.defaults.append(self.parse_expression())
            elif node.defaults:
                node.defaults.append(None)

    def _until(self, end: str, parse: Callable[[], nodes.Node]) -> Iterator[Any]:
        """Everything up to a closing bracket; commas are optional."""
        while self.stream.current.type != end:
            yield parse()
            self.stream.skip_if("comma")
        next(self.stream)

    def _pair(self) -> nodes.Pair:
        key = self.parse_expression()
        self.stream.expect("colon")
        return nodes.Pair(key, self.parse_expression(), lineno=key.lineno)

    def _argument(self) -> nodes.Node:
        """An argument; those given by name keep their place among the others.

        `*items` is a `MarkSafe`, for which templates have no other use; it fails when it is reached.
        """
        if self.stream.current.type == "mul":
            lineno = next(self.stream).lineno
            return nodes.MarkSafe(self.parse_expression(), lineno=lineno)
        found = self.parse_expression()
        if not self.stream.skip_if("assign"):
            return found
        if not isinstance(found, nodes.Name):
            self.fail("Keyword argument key must be identifiers", found.lineno)
        return nodes.Keyword(found.name, self.parse_expression(), lineno=found.lineno)

    def parse_tuple(
        self,
        simplified: bool = False,
        with_condexpr: bool = True,
        extra_end_rules: tuple[str, ...] | None = None,
        explicit_parentheses: bool = False,
        with_namespace: bool = False,
    ) -> nodes.Tuple | nodes.Expr:
        lineno = self.stream.current.lineno
        found = [  # with `x if y` wherever an expression stands
            self.parse_primary(with_namespace=with_namespace) if simplified else self.parse_expression()
        ]
        if self.stream.current.type != "comma" or (
            extra_end_rules and not simplified
        ):  # a loop goes over one
            return found[0]
        while self.stream.skip_if("comma"):
            found.append(self.parse_primary() if simplified else self.parse_expression())
        return nodes.Tuple(found, "load", lineno=lineno)


class _ParserOfNames(_Parser):
    """The same, but with `true`, `false` and `none` as names, as in llama.cpp: a request may redefine them."""

    def parse_primary(self, with_namespace: bool = False) -> nodes.Expr:
        token = self.stream.current
        if token.type != "name" or token.value not in _CONSTANTS:
            return super().parse_primary(with_namespace)
        next(self.stream)
        return nodes.Name(token.value, "load", lineno=token.lineno)


class _Tags(Extension):
    """`break`, `continue`, and the tags of transformers that mean nothing here."""

    tags = {"break", "continue", "generation", "endgeneration"}  # noqa: RUF012 - as jinja2 has it

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        token = next(parser.stream)
        if token.value == "break":
            return nodes.Break(lineno=token.lineno)
        return nodes.Continue(lineno=token.lineno) if token.value == "continue" else []


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, with another lexer, parser and code generator."""

    def _tokenize(self, source: str, name: Any, filename: Any = None, state: Any = None) -> TokenStream:
        try:
            found = [Token(line, kind, value) for line, kind, value in lexer.tokens(source)]  # type: ignore[arg-type]
        except lexer.LexerError as error:
            line = source.count("\n", 0, error.position) + 1
            raise TemplateSyntaxError(str(error), line) from None
        return TokenStream(iter(found), name, filename)

    parser: type[_Parser] = _Parser

    def _parse(self, source: str, name: Any, filename: Any) -> nodes.Template:
        return self.parser(self, source, name, filename).parse()

    def _generate(self, source: nodes.Template, name: Any, filename: Any, defer_init: bool = False) -> str:
        return source_of(source, needs_exact_texts(source))


class Template:
    """A template that can be run repeatedly, and by several threads at once.

    `ChatError` with the line if it cannot be parsed.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        view = viewed(source)
        if len(view) > lexer.MOST_SOURCE:
            raise ChatError(f"a chat template of more than {lexer.MOST_SOURCE:,} bytes")
        environment = _Environment(extensions=[_Tags], optimized=False, cache_size=0)
        try:
            tree = environment.parse(view)
            self.generation_prompt_is_only_added = _only_adds(tree)
            self.exact = needs_exact_texts(tree)
            self._compiled = environment.from_string(tree)
        except TemplateSyntaxError as error:
            raise ChatError(str(plain(str(error.message))), error.lineno) from None
        except (SyntaxError, RecursionError, MemoryError, ValueError):
            raise ChatError("the chat template is nested too deeply") from None
        self._root: Any = self._compiled.root_render_func
        self._view = view

    def render(self, names: Scope, now: time.struct_time) -> str:
        """The text for these names; both are `viewed`.

        `ChatError` with the line for what the template refuses or is not allowed to do.
        """
        if not self.exact:
            return self.render_by(Runtime(now), names)
        return self.render_by(
            AttributingRuntime(now), {name: all_of(value, NOBODY) for name, value in names.items()}
        )

    def render_by(self, run: Runtime, names: Scope) -> str:
        """The same with a given run."""
        root = self._root if _CONSTANTS.keys().isdisjoint(names) else self._root_of_names
        try:
            text: str = root(run, {**_CONSTANTS, **names})
        except TemplateError as error:
            raise ChatError(str(plain(str(error))), self._line(error)) from None
        except RecursionError as error:
            raise ChatError("values of the chat template are nested too deeply", self._line(error)) from None
        except (MemoryError, OverflowError, ValueError, TypeError) as error:
            raise ChatError(f"the chat template cannot be run: {error}", self._line(error)) from None
        return text

    @made_once
    def _root_of_names(self) -> Any:
        """The same for a request that redefines `true`, `false` or `none`."""
        environment = _Environment(extensions=[_Tags], optimized=False, cache_size=0)
        environment.parser = _ParserOfNames
        return environment.from_string(self._view).root_render_func

    def _line(self, error: BaseException) -> int | None:
        """The line of the innermost part of the template that was running."""
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__, limit=-1000)
            if frame.filename == "<template>" and frame.lineno is not None
        ]
        if isinstance(error, CallError) and len(lines) > 1:
            lines.pop()  # of the macro
        return self._compiled.get_corresponding_lineno(lines[-1]) if lines else None


_OF_EXACT_TEXTS = frozenset(("capitalize", "title", "sameas"))


def needs_exact_texts(template: nodes.Template) -> bool:
    """Whether a template can tell of which parts a text was joined, or whether two equal ones are the same."""
    return any(map(_needs_exact_texts, walked(template)))


def _needs_exact_texts(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getitem):
        return True  # of a method by a name that may be anything
    names = [getattr(node, "name", ""), getattr(node, "attr", "")]
    if isinstance(node, (nodes.Call, nodes.Filter)):  # the name of a test, as in `select("sameas", x)`
        names += [part.value for part in node.args if isinstance(part, nodes.Const)]
    return not _OF_EXACT_TEXTS.isdisjoint(names)


def _only_adds(tree: nodes.Template) -> bool:
    """Whether a run without `add_generation_prompt` cannot fail where one with it does not.

    That is so if the name only selects blocks, and the blocks that it deselects cannot fail.
    """
    decides = 0
    conditions = [node for node in walked(tree) if isinstance(node, nodes.If)]
    alternatives = {id(other) for node in conditions for other in node.elif_}
    for node in conditions:
        if id(node) in alternatives:  # what follows is not its own
            continue
        found = sum(map(_is_prompt_name, walked(node.test)))
        if found and not node.elif_ and _cannot_fail(node.else_):
            decides += found if _wants_prompt(node.test) or _cannot_fail(node.body) else 0
    return decides == sum(map(_is_prompt_name, walked(tree)))


def _is_prompt_name(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Name) and node.name == "add_generation_prompt" and node.ctx == "load"


def _wants_prompt(test: nodes.Node) -> bool:
    """Whether a condition can hold only if the name does, and has the name once."""
    if isinstance(test, nodes.And):
        return sum(map(_is_prompt_name, walked(test))) == 1 and (
            _wants_prompt(test.left) or (_wants_prompt(test.right))
        )
    return _is_prompt_name(test)


def _cannot_fail(body: list[nodes.Node]) -> bool:
    """Whether statements only write text and names, or set names to literals."""
    return all(
        isinstance(node.node, nodes.Const) and isinstance(node.target, nodes.Name)
        if isinstance(node, nodes.Assign)
        else isinstance(node, nodes.Output)
        and all(isinstance(part, (nodes.TemplateData, nodes.Name, nodes.Const)) for part in node.nodes)
        for node in body
    )
