"""Finds what a template reaches for that no chat has: insides of Python objects, functions, other files.

Names are looked for where they are used (members, keys, `attr`) and wherever constants make one, however it is put
together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jinja2 import nodes

from ...._util.errors import printable
from ....chat.template.functions import GLOBALS, METHODS
from ....chat.template.value_tests import TESTS
from ....chat.template.values import plain
from ..finding import Finding
from .rules import template_finding
from .template_source import TemplateSource

_INSIDE = re.compile(r"__\w+__")
_INSIDES = frozenset(
    """
    mro func_globals func_code gi_frame gi_code cr_frame cr_code ag_frame ag_code f_globals f_builtins
    f_locals f_back f_code tb_frame tb_next co_consts im_func _module _TemplateReference__context
    _load_form_data environment builtins subclasses
    """.split()
)
_FUNCTIONS = frozenset(
    """
    popen Popen system check_output getoutput spawn spawnl execv execve eval exec compile open
    import_module load_module getattr setattr globals locals vars breakpoint input fork urlopen read_text
    write_text writelines run_module from_string get_data get_source import_string
    """.split()
)
_MODULES = frozenset(
    ("os", "sys", "subprocess", "importlib", "socket", "shutil", "ctypes", "pty", "builtins")
)
_FOREIGN = frozenset(
    (
        *("self", "lipsum", "cycler", "joiner", "get_flashed_messages", "url_for", "request", "session", "g"),
        *("config", "application", "debug", "environ", "context"),
    )
)
# Methods of Python's strings, lists and dicts, and functions of transformers, which llama.cpp lacks but jinja2 allows.
_ELSEWHERE = frozenset(
    (
        *(name for kind in (str, list, dict) for name in dir(kind) if not name.startswith("_")),
        *("isoformat", "caller", "super", "loop", "now"),
    )
)
_KNOWN = frozenset(name for table in METHODS.values() for name in table) | _ELSEWHERE
_BY_MEMBER = ("attr", "map", "selectattr", "rejectattr", "sort")  # filters that take the name of one
_FORMAT = re.compile(r"\{[^{}\n]{0,60}(?:__\w+__|\.(?:mro|f_globals|gi_frame))")
_FILE = re.compile(r"\{%[-+]?\s*(include|import|from|extends)\b")
_ESCAPED = re.compile(r"\\(?:x5f|u005f|137|x5F|N\{LOW LINE\}){1,2}", re.IGNORECASE)
_IN_BLOCK = re.compile(r"\{[{%][^{}%]*?\b(__\w{2,30}__|popen|lipsum|cycler|joiner|get_flashed_messages)\b")


def accesses(source: TemplateSource) -> Iterator[Finding]:
    """What the template reaches for, each name at each place once."""
    if source.problem:
        yield from _in_text(source)
        return
    seen: set[tuple[str, str]] = set()
    for position, id, name in _names(source):
        if (id, name) not in seen:
            seen.add((id, name))
            yield template_finding(source, id, position, f"It has {printable(str(plain(name)))}.")


def inside_names(source: TemplateSource) -> set[str]:
    """The names of insides that the source shows to be asked for."""
    return {name for _, id, name in _names(source) if id == "sandbox_escape"}


def _names(source: TemplateSource) -> Iterator[tuple[int, str, str]]:
    macros = {node.name for node in source.of_kind(nodes.Macro)}
    own = macros | {node.name for node in source.of_kind(nodes.Name) if node.ctx != "load"}
    for node in source.of_kind(nodes.Expr):
        at = node.lineno or 0
        if isinstance(node, nodes.Dict):
            keys = [source.constants.of(each.key) for each in node.items]
            given = {key: each.value for key, each in zip(keys, node.items) if isinstance(key, str)}
            said = source.constants.of(given.get("content"))
            if "role" in given and isinstance(said, str) and said.strip():
                yield at, "turn_invented", said
        if isinstance(node, nodes.Call):
            yield from _called(source, node, own)
        elif isinstance(node, nodes.Name):
            if node.ctx == "load" and node.name not in own and node.name in _FOREIGN - {"debug", "context"}:
                yield at, "foreign_object", node.name
            if node.name in ("__builtins__", "__import__", "__name__", "__file__", "__globals__"):
                yield at, "sandbox_escape", node.name
        elif isinstance(node, nodes.Filter) and node.name in _BY_MEMBER:
            for each in node.args or ():  # None without brackets
                value = source.constants.of(each.value if isinstance(each, nodes.Keyword) else each)
                if isinstance(value, str) and _is_inside(value):
                    yield at, "sandbox_escape", value
            if node.name == "attr":
                yield at, "unknown_call", "attr"
        for name in _members(source, node):
            if _is_inside(name):
                yield at, "sandbox_escape", name


def _members(source: TemplateSource, node: nodes.Expr) -> Iterator[str]:
    """The names of members that an expression asks for, or that it makes."""
    if isinstance(node, nodes.Getattr):
        yield node.attr
    elif isinstance(node, nodes.Getitem):
        yield from str(source.constants.of(node.arg) or "").split(".")
    made: Any = source.constants.of(node)
    if isinstance(made, str) and made and (_INSIDE.fullmatch(made.strip()) or _FORMAT.search(made)):
        yield "__" + made if not _INSIDE.search(made) else made


def _is_inside(name: str) -> bool:
    return name in _INSIDES or any(_INSIDE.search(part) for part in name.split("."))


def _called(source: TemplateSource, node: nodes.Call, own: set[str]) -> Iterator[tuple[int, str, str]]:
    at = node.lineno or 0
    if isinstance(node.node, nodes.Name):
        name = node.node.name
        if name in own or name in GLOBALS or name in ("caller", "loop") or name in TESTS:
            return
        grave = name in _FUNCTIONS or name in _MODULES or bool(_INSIDE.fullmatch(name))
        yield at, "forbidden_call" if grave else "unknown_call", name
        return
    name = ""
    if isinstance(node.node, nodes.Getattr):
        name = node.node.attr
    elif isinstance(node.node, nodes.Getitem):
        name = str(source.constants.of(node.node.arg) or "")
    elif isinstance(node.node, nodes.Filter) and node.node.name == "attr" and node.node.args:
        name = str(source.constants.of(node.node.args[0]) or "")
    if name in _FUNCTIONS or (name in ("read", "write", "run") and name not in own):
        yield at, "forbidden_call", name
    elif name and name not in _KNOWN and not _INSIDE.search(name) and name not in own:
        yield at, "unknown_call", name


def _in_text(source: TemplateSource) -> Iterator[Finding]:
    """What can be said of a template that has no tree."""
    if not source.limit:
        said = f"llama.cpp says: {printable(source.problem, 120)}."
        yield template_finding(source, "template_unreadable", source.problem_at, said)
    seen = set()
    for match in _IN_BLOCK.finditer(source.view):
        if match[1] not in seen:
            seen.add(match[1])
            yield template_finding(source, "sandbox_escape", match.start(1), f"It has {printable(match[1])}.")
    for match in _FILE.finditer(source.view):
        yield template_finding(source, "outside_file", match.start(), f"It has the statement {match[1]}.")
        break
    if escape := _ESCAPED.search(source.view):
        yield template_finding(
            source, "sandbox_escape", escape.start(), "It writes an underscore as an escape."
        )
