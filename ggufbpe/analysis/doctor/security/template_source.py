"""A template as the checks see it: its nodes with their places, and the constants that its expressions make."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar

from jinja2 import TemplateSyntaxError, nodes

from ....chat.template import lexer
from ....chat.template.loop_uses import walked
from ....chat.template.parser import parsed_template
from ....chat.template.run_limits import look_at_clock
from ....chat.template.values import plain, viewed
from .constant_folding import Constants

_Node = TypeVar("_Node", bound=nodes.Node)


class TemplateSource:
    """A template by name ("" for the default one), with the metadata key that it is stored under."""

    def __init__(self, text: str, name: str, key: str) -> None:
        self.text = text
        self.name = name
        self.key = key
        self.view: str = lexer.uniform_breaks(viewed(text))
        self.problem = ""  # why it has no tree, and where; llama.cpp says so unless it is beyond a limit
        self.problem_at = 0
        self.limit = ""  # what of it is beyond a limit of ours
        try:
            if len(self.view) > lexer.MOST_SOURCE:
                raise lexer.TooLargeError(f"a chat template of more than {lexer.MOST_SOURCE:,} bytes", 0)
            self.tree = parsed_template(lexer.tokens(self.view, by_position=True))
        except lexer.TooLargeError as error:
            self._fail(str(error), error.position)
            self.limit = (
                f"ggufbpe reads at most {lexer.MOST_TOKENS:,} tokens and {lexer.MOST_SOURCE:,} bytes."
            )
        except lexer.LexerError as error:
            self._fail(str(error), error.position)
        except TemplateSyntaxError as error:
            self._fail(str(error.message), error.lineno)
        except (RecursionError, MemoryError, ValueError):
            self._fail("the chat template is nested too deeply")
            self.limit = "It is nested more deeply than ggufbpe reads."

    def _fail(self, reason: str, at: int = 0) -> None:
        self.problem, self.problem_at = str(plain(reason)), at
        self.tree = nodes.Template([], lineno=0)

    @cached_property
    def ordered(self) -> list[nodes.Node]:
        """All nodes in the order of their places; `lineno` is the position in `view`."""
        return sorted(walked(self.tree), key=lambda node: node.lineno or 0)

    @cached_property
    def constants(self) -> Constants:
        """What the expressions of the template make without a chat."""
        return Constants(self.ordered)

    def place(self, position: int) -> tuple[int, int]:
        """The line and the column of a position in `view`, both from 1; columns are counted in characters."""
        start = self.view.rfind("\n", 0, position) + 1
        before = self.view[start:position].encode("latin-1").decode("utf-8", "replace")
        return self.view.count("\n", 0, position) + 1, len(before) + 1

    def position_of(self, index: int) -> int:
        """The position in `view` of a character of `text`."""
        return len(lexer.uniform_breaks(viewed(self.text[:index])))

    def of_kind(self, kind: type[_Node]) -> Iterator[_Node]:
        """The nodes of a kind, in order."""
        return (node for node in self.ordered if isinstance(node, kind))


def names_in(node: nodes.Node) -> set[str]:
    """The names, members and constant keys that an expression reads."""
    look_at_clock(False)
    found = set()
    for each in walked(node):
        if isinstance(each, nodes.Name):
            found.add(each.name)
        elif isinstance(each, nodes.Getattr):
            found.add(each.attr)
        elif isinstance(each, nodes.Getitem) and isinstance(each.arg, nodes.Const):
            found.add(str(each.arg.value))
    return found
