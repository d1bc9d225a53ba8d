"""Runs a template as transformers does: with plain jinja2, in a child process with limits.

jinja2's sandbox keeps a template away from files and Python's internals, but does not stop endless loops; so the child
has limits of time and memory. The child runs this file by its path, so it imports nothing of ggufbpe.

Source: utils/chat_template_utils.py of transformers, `_compile_jinja_template` and `render_jinja_template`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

SECONDS, MEMORY = 5, 1 << 30
_SAFE = (3, 1, 6)  # the first version of jinja2 whose sandbox transformers trusts
_MOST = 1 << 26  # characters of a prompt


def prompts(
    template: str, chats: Sequence[Mapping[str, Any]], now: float | None = None, seconds: int = SECONDS
) -> list[str | None]:
    """The prompt of each chat, given as the variables of the template; None if there is none.

    `now` is the time in seconds since 1970, for templates that write the date. All are None if the child fails, for
    example when they take more than `seconds` together.
    """
    import subprocess

    question = json.dumps({"template": template, "chats": list(chats), "now": now, "seconds": seconds})
    try:
        done = subprocess.run(
            [sys.executable, __file__],
            input=question.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # the child limits its own processor time, except on Windows; on a busy machine that takes longer
            timeout=seconds * (2 if os.name == "nt" else 6),
        )
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return [None] * len(chats)
    return [text if isinstance(text, str) else None for text in found]


_REASONING = ("reasoning_content", "thinking", "reasoning")


def with_all_names_of_reasoning(message: Any) -> Any:
    """A message as transformers 5 gives it to a template (`_alias_reasoning_fields`)."""
    if not isinstance(message, dict):
        return message
    found = next((message[name] for name in _REASONING if message.get(name) is not None), None)
    return message if found is None else {"thinking": found, **message, "reasoning_content": found}


# ---- the child ------------------------------------------------------------------------------------------


def _limit(seconds: int) -> None:
    with suppress(ImportError, ValueError, OSError):  # on Windows, there is only the parent's timeout
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _environment(now: float | None) -> Any:
    from datetime import datetime

    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """The tags around what the assistant said, which do not change the text."""

        tags = {"generation"}  # noqa: RUF012 - as jinja2 has it

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body).set_lineno(line)

    def refuse(message: str) -> None:
        raise TemplateError(message)

    def to_json(
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        return json.dumps(
            value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    moment = datetime.now() if now is None else datetime.fromtimestamp(now)
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = moment.strftime
    return environment


def _rendered(template: Any, chat: Mapping[str, Any]) -> str | None:
    try:
        text = template.render(**chat)
    except Exception:  # whatever is wrong with the template, there is no prompt
        return None
    return text if len(text) <= _MOST else None


def main() -> None:
    """Answer the one question on standard input."""
    import jinja2

    if tuple(map(int, re.findall(r"\d+", jinja2.__version__)[:3])) < _SAFE:
        raise SystemExit("the sandbox of this jinja2 is known to leak")
    question = json.loads(sys.stdin.buffer.read())
    _limit(question["seconds"])
    chats = question["chats"]
    try:
        template = _environment(question["now"]).from_string(question["template"])
    except Exception:
        found: list[str | None] = [None] * len(chats)
    else:
        found = [_rendered(template, chat) for chat in chats]
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    # modules of this folder are not to be taken for others of the same name
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]
    main()
