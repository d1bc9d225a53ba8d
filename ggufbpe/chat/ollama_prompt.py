"""The prompt that Ollama makes of a chat by a Go template.

A template that reads `.Messages` runs once. One of the older kind, with `.System`, `.Prompt` and `.Response`, runs once
for each turn, and for the last one only up to the first `.Response`.

Source: Execute, collate, Identifiers and deleteNode in Ollama's template/template.go (2026-08-21).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from .._util.arguments import checked_str
from .._util.errors import ChatError
from .go_template.execution import GoRun, GoTemplate
from .go_template.go_parser import Branch, Invocation, Nodes, Operand, Pipe
from .go_values import Struct, go_json_text
from .ollama_values import messages_of, tools_of, typescript_type
from .template.run_limits import ChatSize, measure_chat
from .template.values import TemplateError, Value, viewed

_RESPONSE = Pipe((), False, ((Operand("field", ".Response", ("Response",), 0),),), 0)


class OllamaTemplate:
    """A Go template of an Ollama model. `ChatError` with line and column for one that Ollama refuses.

    `template` is the parsed template, and `names` are the fields and variables in it, in lower case.
    """

    def __init__(self, source: str) -> None:
        self.template = GoTemplate(viewed(checked_str("source", source)), _functions(None))
        nodes = self.template.templates
        self.names = frozenset(name.lower() for each in nodes.values() for name in _names(each))
        if self.names.isdisjoint(("messages", "response")):
            nodes[""] = (*nodes[""], _RESPONSE)

    def prompt(self, body: Mapping[str, Any], now: datetime | None = None) -> bytes:
        """The UTF-8 of the prompt for a request's `messages`, `tools` and `think`, or its `prompt` and `suffix`.

        `ChatError` where Ollama fails, and at the limits of a run.
        """
        try:
            return self._prompt(body, now)
        except ChatError:
            raise
        except RecursionError:
            raise ChatError("the chat is nested too deeply") from None
        except (TypeError, ValueError) as error:  # of values that JSON or UTF-8 does not have
            raise ChatError(str(error)) from None

    def _prompt(self, body: Mapping[str, Any], now: datetime | None) -> bytes:
        run = partial(self._run, measure=lambda: measure_chat(body), functions=_functions(now))
        think, text, suffix = body.get("think"), body.get("prompt"), body.get("suffix")
        if not (think is None or isinstance(think, bool) or think in ("low", "medium", "high", "max")):
            raise ChatError('\'think\' must be true, false, "low", "medium", "high" or "max"')
        level = think if isinstance(think, str) else "medium" if think else ""
        values = {"Think": bool(think), "ThinkLevel": level, "IsThinkSet": think is not None}
        if isinstance(text, str) and isinstance(suffix, str) and text and suffix:
            values |= {"Prompt": viewed(text), "Suffix": viewed(suffix), "Response": ""}
            return run(self.template.templates[""], values)
        messages = messages_of(body.get("messages"))
        system = "\n\n".join(each["Content"] for each in messages if each["Role"] == "system")
        collated = _collated(messages)
        if "messages" in self.names:
            shown = [Struct(message, is_pointer=True) for message in collated] or ()
            values |= {
                "System": system,
                "Messages": shown,
                "Tools": tools_of(body.get("tools")),
                "Response": "",
            }
            return run(self.template.templates[""], values)
        *turns, last = _turns(collated)
        whole = self.template.templates[""]
        written = [run(whole, {**values, **turn}) for turn in turns]
        return b"".join([*written, run(_Cut().nodes(whole), {**values, **last}, alone=True)])

    def _run(
        self,
        nodes: Nodes,
        values: Mapping[str, Value],
        *,
        measure: Callable[[], ChatSize],
        functions: Mapping[str, Callable[..., Value]],
        alone: bool = False,
    ) -> bytes:
        return GoRun(self.template, measure, alone, functions).text(nodes, values).encode("latin-1")


def _functions(now: datetime | None) -> dict[str, Callable[..., Value]]:
    """Ollama's functions, whose dates are those of `now`, or of the time of a run if that is None."""

    def date(days_ago: int, *formats: Value) -> str:
        if not all(isinstance(each, str) for each in formats):
            raise TemplateError("the format of a date must be a text")
        return f"{(now or datetime.now()) - timedelta(days_ago):%Y-%m-%d}"

    return {
        "json": go_json_text,
        "currentDate": partial(date, 0),
        "yesterdayDate": partial(date, 1),
        "toTypeScriptType": typescript_type,
    }


def _collated(messages: list[dict[str, Value]]) -> list[dict[str, Value]]:
    """The messages, of which each takes up those after it of the same role, except for results of tools."""
    found: list[dict[str, Value]] = []
    for message in messages:
        if found and found[-1]["Role"] == message["Role"] != "tool":
            found[-1] = {**found[-1], "Content": f"{found[-1]['Content']}\n\n{message['Content']}"}
        else:
            found.append(message)
    return found


def _turns(messages: list[dict[str, Value]]) -> Iterator[dict[str, Value]]:
    """What a template of the older kind gets for each turn; the last turn may be empty."""
    empty = {"System": "", "Prompt": "", "Response": ""}
    turn = dict(empty)
    for message in messages:
        role = message["Role"]
        if (turn["Response"] and role in ("system", "user")) or (turn["Prompt"] and role == "system"):
            yield turn
            turn = dict(empty)
        if name := {"system": "System", "user": "Prompt", "assistant": "Response"}.get(role):
            turn[name] = message["Content"]
    yield turn


def _names(nodes: Nodes) -> Iterator[str]:
    """The fields and variables that Ollama finds in a template. `ChatError` for what it refuses."""
    for node in nodes:
        if isinstance(node, Pipe):
            yield from _names_of_pipe(node)
        elif isinstance(node, Branch):
            yield from _names_of_pipe(node.pipe)
            yield from _names(node.body)
            yield from _names(node.other or ())
        elif isinstance(node, Invocation):
            if node.pipe is None:
                raise ChatError(f'Ollama refuses {{{{ template "{node.name}" }}}} without a value')
            yield from _names_of_pipe(node.pipe)


def _names_of_pipe(pipe: Pipe) -> Iterator[str]:
    for operand in (operand for command in pipe.commands for operand in command):
        if operand.kind in ("field", "variable"):
            yield from (operand.value, *operand.names) if operand.kind == "variable" else operand.names
        elif operand.kind == "pipe" and not operand.names:
            yield from _names_of_pipe(operand.value)


class _Cut:
    """Takes off what stands after the first `.Response`."""

    def __init__(self) -> None:
        self._found = False

    def nodes(self, nodes: Nodes) -> Nodes:
        """The nodes up to there. `ChatError` where Ollama crashes."""
        if self._found:
            raise ChatError("Ollama crashes on this template: .Response stands before an else")
        kept = []
        for node in nodes:
            if self._found:
                break
            if isinstance(node, Branch):
                body = self.nodes(node.body)
                node = node._replace(body=body, other=None if node.other is None else self.nodes(node.other))
            elif isinstance(node, Pipe):
                cut = self._pipe(node)
                if cut is None:
                    continue
                node = cut
            kept.append(node)
        return tuple(kept)

    def _pipe(self, pipe: Pipe) -> Pipe | None:
        commands = []
        for command in pipe.commands:
            operands = [kept for operand in command if (kept := self._operand(operand))]
            if not operands:
                return None
            commands.append(tuple(operands))
        return pipe._replace(commands=tuple(commands))

    def _operand(self, operand: Operand) -> Operand | None:
        if operand.kind == "field" and "Response" in operand.names:
            self._found = True
            return operand
        if self._found:
            return None
        if operand.kind == "pipe" and not operand.names:
            inner = self._pipe(operand.value)
            return None if inner is None else operand._replace(value=inner)
        return operand
