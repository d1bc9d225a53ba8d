"""Compiles and runs templates with jinja2's nodes and its immutable sandbox, by llama.cpp's grammar and operators.

    source -> lexer.py -> parser.py -> compiler.py -> environment.py, which runs it with runtime.py -> text

Only this module and those that it imports use jinja2; every other module imports this one where it is used.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any

from jinja2 import TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ..._util.errors import ChatError
from ..._util.lazy import computed_once
from . import lexer
from .attributed_text import NOBODY, with_one_origin
from .attributing_runtime import AttributingRuntime
from .call_arguments import Scope
from .compiler import python_source
from .loop_uses import walked
from .names_read import names_from_outside
from .parser import parsed_template
from .run_limits import ChatSize, look_at_clock
from .runtime import Runtime
from .values import CONSTANTS, CallError, TemplateError, plain, viewed


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, with another code generator; `exact` and `constants` are told to it."""

    def __init__(self, exact: bool, constants: bool) -> None:
        super().__init__(optimized=False, cache_size=0)
        self._choices = exact, constants

    def _generate(self, source: nodes.Template, name: Any, filename: Any, defer_init: bool = False) -> str:
        return python_source(source, *self._choices)


class Template:
    """A template that can be run repeatedly, and by several threads at once.

    `ChatError` with the line if it cannot be parsed.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        view = viewed(source)
        if len(view) > lexer.MOST_SOURCE:
            raise ChatError(f"a chat template of more than {lexer.MOST_SOURCE:,} bytes")
        look_at_clock(True)
        try:
            self._tree = _tree_of(view)
            self.generation_prompt_is_only_added = _only_adds(self._tree)
            self.exact = _needs_exact_texts(self._tree)
            self._compiled = self._compiled_with(constants=not _redefines_constants(self._tree))
        except TemplateSyntaxError as error:
            raise ChatError(str(plain(str(error.message))), error.lineno) from None
        except (SyntaxError, RecursionError, MemoryError, ValueError):
            raise ChatError("the chat template is nested too deeply") from None
        self._root: Any = self._compiled.root_render_func
        look_at_clock(False)

    @computed_once
    def names_read(self) -> frozenset[str]:
        """The names of values that the template takes from its caller (`names_from_outside`)."""
        names: Iterable[str] = map(plain, names_from_outside(self._tree.body, {"loop"}))
        return frozenset(names)

    def _compiled_with(self, constants: bool) -> Any:
        return _Environment(self.exact, constants).from_string(self._tree)

    def render(
        self, names: Scope, now: time.struct_time, chat_size: Callable[[], ChatSize] = ChatSize
    ) -> str:
        """The text for these names; both are `viewed`. The limits grow with the size of the chat.

        `ChatError` with the line for what the template refuses or is not allowed to do.
        """
        if not self.exact:
            return self.render_by(Runtime(now, chat_size), names)
        return self.render_by(
            AttributingRuntime(now, chat_size),
            {name: with_one_origin(value, NOBODY) for name, value in names.items()},
        )

    def render_by(self, run: Runtime, names: Scope) -> str:
        """The text that the template writes for `names`, by the given run."""
        root = self._root if CONSTANTS.keys().isdisjoint(names) else self._root_of_names
        look_at_clock(True)
        try:
            text: str = root(run, {**CONSTANTS, **names})
        except TemplateError as error:
            raise ChatError(str(plain(str(error))), self._line(error)) from None
        except RecursionError as error:
            raise ChatError("values of the chat template are nested too deeply", self._line(error)) from None
        except (MemoryError, OverflowError, ValueError, TypeError) as error:
            raise ChatError(f"the chat template cannot be run: {error}", self._line(error)) from None
        look_at_clock(False)
        return text

    @computed_once
    def _root_of_names(self) -> Any:
        """The compiled template for a request that redefines `true`, `false` or `none`."""
        return self._compiled_with(constants=False).root_render_func

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


def _tree_of(source: str) -> nodes.Template:
    try:
        return parsed_template(lexer.tokens(source))
    except lexer.LexerError as error:
        raise TemplateSyntaxError(str(error), source.count("\n", 0, error.position) + 1) from None


def _redefines_constants(tree: nodes.Template) -> bool:
    """Whether a template gives `true`, `false` or `none` another value."""
    return any(
        node.name in CONSTANTS
        for node in walked(tree)
        if isinstance(node, nodes.Macro) or (isinstance(node, nodes.Name) and node.ctx != "load")
    )


_OF_EXACT_TEXTS = frozenset(("capitalize", "title", "sameas"))


def _needs_exact_texts(tree: nodes.Template) -> bool:
    """Whether a template can tell of which parts a text was joined, or whether two equal ones are the same."""
    for node in walked(tree):
        names: list[Any] = []
        if isinstance(node, (nodes.Filter, nodes.Test)):
            # the name of a test, too, as in `select("sameas", x)`
            names = [node.name, *_literals(node.args or [])]
        elif isinstance(node, nodes.Call):
            names = _literals(node.args)
            if isinstance(node.node, nodes.Getitem):  # a method by a name that may be anything
                return True
        elif isinstance(node, nodes.Getattr):
            names = [node.attr]
        elif isinstance(node, nodes.Getitem):
            names = _literals([node.arg])
        if not _OF_EXACT_TEXTS.isdisjoint(names):
            return True
    return False


def _literals(items: list[nodes.Expr]) -> list[Any]:
    return [item.value for item in items if isinstance(item, nodes.Const)]


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
        count = sum(map(_is_prompt_name, walked(node.test)))
        if count and not node.elif_ and _cannot_fail(node.else_):
            decides += count if _wants_prompt(node.test) or _cannot_fail(node.body) else 0
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
    """Whether statements only write text and names, or set names to literals or names."""
    return all(
        isinstance(node.node, (nodes.Const, nodes.Name)) and isinstance(node.target, nodes.Name)
        if isinstance(node, nodes.Assign)
        else isinstance(node, nodes.Output)
        and all(isinstance(part, (nodes.TemplateData, nodes.Name, nodes.Const)) for part in node.nodes)
        for node in body
    )
