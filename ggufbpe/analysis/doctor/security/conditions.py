"""Finds on what a template makes its text depend besides roles and tools: dates, chance, words, lengths.

Also where it changes the words of messages. Names that were set from a date or from contents count as these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from jinja2 import nodes

from ...._util.errors import printable
from ....chat.template.loop_uses import walked
from ....chat.template.run_limits import look_at_clock
from ....chat.template.values import plain
from ..finding import Finding
from .rules import template_finding
from .template_source import TemplateSource, names_in

_DATES = frozenset(("strftime_now", "date_string", "datetime", "now", "time", "today"))
_CONTENTS = frozenset(("content", "text"))
# Of a message or a part besides its text; a comparison with one of these is none with words.
_OTHER_MEMBERS = frozenset(("type", "role", "name", "id", "function", "tool_calls", "mime_type"))
_KEYS = frozenset(
    """
    text image image_url video video_url audio input_audio type content json none string array object
    thinking reasoning reasoning_content parts refusal tool_result tool_results document citations
    hallucinations None file blocks value
    """.split()
)
_SEARCHES = frozenset(
    ("startswith", "endswith", "find", "index", "count", "rfind", "rindex", "split", "rsplit", "partition")
)
# Switches that users write themselves, for which templates look; markers and line breaks have no letters outside.
_SWITCH = re.compile(
    r"(?:detailed )?(?:thinking|reasoning)(?: (?:on|off|effort|strength|mode))?|/\w+|CONTINUE_FINAL_MESSAGE_TAG",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|<\|?|\|?>|\{[^{}]*\}")
_LETTER = re.compile(r"\w")
_MARK = re.compile(r"<[|｜/]?|[|｜]>|\[/?[A-Z]+|<<")
_SHORT_CHAT, _SHORT_TEXT = 3, 8  # messages and characters; everybody tries chats as long as these


def conditions(source: TemplateSource) -> Iterator[Finding]:
    """Findings about the conditions and replacements of a template, in order; of a kind, one for each text."""
    seen = set()
    for position, id, evidence in _Conditions(source).found():
        if (id, evidence) not in seen:
            seen.add((id, evidence))
            yield template_finding(source, id, position, evidence)


class _Conditions:
    """The conditions and replacements of one template."""

    def __init__(self, source: TemplateSource) -> None:
        self.source = source

    def found(self) -> Iterator[tuple[int, str, str]]:
        """The position, the id and the evidence of each."""
        for node in self.source.ordered:
            look_at_clock(False)
            at = node.lineno or 0
            if isinstance(node, (nodes.If, nodes.CondExpr)):
                if self._reads(node.test, _DATES, self._dated) and not _only_asks(
                    node.test, _DATES | self._dated
                ):
                    yield at, "date_condition", "A condition reads the date."
            elif isinstance(node, nodes.Filter):
                if node.name in ("random", "shuffle"):
                    yield at, "random_choice", f"It has the filter {node.name}."
                if node.name == "replace":
                    yield from self._replaced(node, node.node, node.args or ())
                if node.name in ("selectattr", "rejectattr") and len(node.args or ()) > 2:
                    yield from self._words(
                        at, [nodes.Getitem(None, node.args[0], "load")], node.args[2:], node.name
                    )
            elif isinstance(node, nodes.Compare):
                yield from self._compared(node)
            elif isinstance(node, nodes.Test) and node.args:
                yield from self._words(at, [node.node], node.args, node.name)
            elif isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr):
                if node.node.attr in _SEARCHES:
                    yield from self._words(at, [node.node.node], node.args, node.node.attr)
                if node.node.attr == "get" and any(
                    self._reads(each, _DATES, self._dated) for each in node.args
                ):
                    yield at, "date_condition", "The date chooses a text."
                if node.node.attr == "replace":
                    yield from self._replaced(node, node.node.node, node.args)
            if isinstance(node, (nodes.Getitem, nodes.Mod, nodes.Filter)) and self._indexes_by_date(node):
                yield at, "date_condition", "The date chooses a text."

    # ---- what names stand for -------------------------------------------------------------------

    @cached_property
    def _dated(self) -> set[str]:
        return self._made_from(_DATES, frozenset())

    @cached_property
    def _worded(self) -> set[str]:
        return self._made_from(_CONTENTS, _OTHER_MEMBERS)

    def _made_from(self, names: frozenset[str], but: frozenset[str]) -> set[str]:
        """The names and members of namespaces that are set from others, directly or not."""
        uses: dict[str, list[set[str]]] = {}  # what is set from a name
        for node in self.source.ordered:
            if isinstance(node, nodes.Assign):
                parts: list[nodes.Node] = [node.node]
            elif isinstance(node, nodes.AssignBlock):
                parts = list(node.body)
            elif isinstance(node, nodes.For) and names is _CONTENTS:
                parts = [node.iter]
            else:
                continue
            read = set().union(*map(names_in, parts))
            if not read & but:
                for name in read:
                    uses.setdefault(name, []).append(_targets(node.target))
        found_names = set(self._parameters) if names is _CONTENTS else set()
        to_follow = [*names, *found_names]
        while to_follow:
            for targets in uses.pop(to_follow.pop(), ()):
                to_follow += targets - found_names
                found_names |= targets
        return found_names

    @cached_property
    def _parameters(self) -> set[str]:
        """The parameters of macros that are given the text of a message."""
        macros = {macro.name: macro for macro in self.source.of_kind(nodes.Macro)}
        return {
            parameter.name
            for call in self.source.of_kind(nodes.Call)
            if isinstance(call.node, nodes.Name) and call.node.name in macros
            for given, parameter in zip(call.args, macros[call.node.name].args)
            if (isinstance(given, nodes.Getattr) and given.attr == "content")
            or (isinstance(given, nodes.Getitem) and self._own(given.arg) == "content")
        }

    def _reads(self, node: nodes.Node, names: frozenset[str], made: set[str]) -> bool:
        return bool(names_in(node) & (names | made)) if node is not None else False

    def _is_content(self, node: nodes.Node | None) -> bool:
        """Whether an expression is the text of a message, or a part of it, or that text changed."""
        while True:
            if isinstance(node, nodes.Filter) and node.name not in ("length", "count", "items"):
                node = node.node
            elif (
                isinstance(node, nodes.Call)
                and isinstance(node.node, nodes.Getattr)
                and node.node.attr != "get"
            ):
                node = node.node.node
            elif isinstance(node, nodes.Getitem) and not isinstance(node.arg, nodes.Const):
                node = node.node
            elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
                if not isinstance(node.arg.value, int):
                    return node.arg.value in _CONTENTS
                node = node.node
            elif isinstance(node, nodes.Call) and node.args:
                return self._own(node.args[0]) in _CONTENTS
            elif isinstance(node, nodes.Getattr):
                return node.attr in _CONTENTS or node.attr in self._worded
            elif isinstance(node, (nodes.Concat, nodes.Add)):
                parts = node.nodes if isinstance(node, nodes.Concat) else [node.left, node.right]
                return any(map(self._is_content, parts))
            else:
                return isinstance(node, nodes.Name) and node.name in self._worded

    def _own(self, node: nodes.Node) -> str:
        value = self.source.constants.of(node)
        return value if isinstance(value, str) else ""

    # ---- conditions -----------------------------------------------------------------------------

    def _indexes_by_date(self, node: nodes.Node) -> bool:
        if not isinstance(node, nodes.Getitem) or isinstance(node.arg, (nodes.Const, nodes.Slice)):
            return False
        return self._reads(node.arg, _DATES, self._dated)

    def _compared(self, node: nodes.Compare) -> Iterator[tuple[int, str, str]]:
        sides = [node.expr, node.ops[0].expr]
        at = node.lineno or 0
        for one, other in (sides, sides[::-1]):
            yield from self._words(at, [one], [other], node.ops[0].op)
            number = self.source.constants.of(one.right if isinstance(one, nodes.Mod) else other)
            if (
                isinstance(number, int)
                and (of := self._length_of(one))
                and number > (_SHORT_CHAT if of == "chat" else _SHORT_TEXT)
            ):
                yield at, "length_condition", f"It compares the length of a {of} with {number}."

    def _words(
        self, at: int, texts: Sequence[nodes.Node], wanted: Sequence[nodes.Node], how: str
    ) -> Iterator[tuple[int, str, str]]:
        for text in texts:
            if not self._is_content(text):
                continue
            for each in wanted:
                for word in self.source.constants.all_of(each):
                    look_at_clock(False)
                    if isinstance(word, str) and not _is_usual(str(plain(word))):
                        yield at, "content_condition", f"It looks for {printable(str(plain(word)))} ({how})."

    def _length_of(self, node: nodes.Node) -> str:
        """What an expression is the length or number of."""
        inner: nodes.Node | None = None
        if isinstance(node, nodes.Filter) and node.name in ("length", "count"):
            inner = node.node
        elif isinstance(node, nodes.Call) and isinstance(node.node, nodes.Name) and node.node.name == "len":
            inner = node.args[0] if node.args else None
        elif (
            isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name) and node.node.name == "loop"
        ):
            return "chat" if node.attr in ("index", "index0", "length", "revindex", "revindex0") else ""
        elif isinstance(node, nodes.Mod):
            return self._length_of(node.left)
        if inner is None:
            return ""
        return "message" if self._is_content(inner) else "chat" if "messages" in names_in(inner) else ""

    # ---- replacements ---------------------------------------------------------------------------

    def _replaced(
        self, node: nodes.Node, text: nodes.Node | None, given: Sequence[nodes.Node]
    ) -> Iterator[tuple[int, str, str]]:
        if text is None or len(given) < 2 or not self._is_content(text):
            return
        old, new = (self.source.constants.of(each) for each in given[:2])
        at = node.lineno or 0
        shown = f"It replaces {_shown(old)} by {_shown(new)}."
        if isinstance(new, str) and _MARK.search(str(plain(new))) and not new.startswith("&"):
            yield at, "control_from_content", shown
        elif isinstance(old, str) and not _is_usual(str(plain(old))) and str(new).lower() != old.lower():
            yield at, "content_replaced", shown


def _shown(value: object) -> str:
    return printable(str(plain(value))) if isinstance(value, str) else "another text"


def _is_usual(word: str) -> bool:
    """Whether templates look for a text for other reasons than its words."""
    return (
        "<|" in word
        or word in _KEYS
        or bool(_SWITCH.fullmatch(word.strip()))
        or not _LETTER.search(_MARKUP.sub("", word))
    )


def _only_asks(test: nodes.Node, dates: set[str] | frozenset[str]) -> bool:
    """Whether a condition only asks whether names are there, as in `strftime_now is defined`."""
    tests = (nodes.Test, nodes.Name, nodes.Getattr, nodes.Not, nodes.And, nodes.Or)
    compared = [node for node in walked(test) if isinstance(node, (nodes.Compare, nodes.Call, nodes.Filter))]
    if not compared:
        return all(isinstance(node, tests) for node in walked(test)) or not names_in(test)
    return not any(names_in(node) & dates for node in compared)


def _targets(target: nodes.Node) -> set[str]:
    if isinstance(target, nodes.Getattr):
        return {target.attr}
    return {node.name for node in walked(target) if isinstance(node, nodes.Name)}
