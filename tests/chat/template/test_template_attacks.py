"""Templates and messages that attack who renders them: fixtures/attacks, each with what must happen.

`expected.json` has, for each file, the prompt, or why it is refused; what became a special token is `injected`.
What is too long for a file is made here.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hostile_templates import HOSTILE
from recorded_chats import VOCABULARY

from ggufbpe import ChatError, Tokenizer
from ggufbpe.chat.bos_eos import BosEos
from ggufbpe.chat.render import ChatTemplate
from ggufbpe.chat.template import run_limits
from ggufbpe.chat.template.environment import Template
from ggufbpe.chat.template.values import plain, viewed
from ggufbpe.chat.token_origins import chat_tokens
from ggufbpe.cli._chat import chat_json

FOLDER = Path(__file__).parents[3] / "fixtures" / "attacks"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
NAMES = {"messages": [{"role": "user", "content": "H\u00e9 llo"}], "add_generation_prompt": True}

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")


def test_every_file_has_its_end() -> None:
    for kind, suffix in (("templates", "jinja"), ("messages", "json")):
        assert {path.stem for path in (FOLDER / kind).glob(f"*.{suffix}")} == set(EXPECTED[kind])


# ---- templates ------------------------------------------------------------------------------------------

_NAMED = "".join(f"{{% set n{i} = 1 %}}" for i in range(2000))
_STEPS = "the template takes more than 2,000,000 steps"
_CHARACTERS = "the template writes more than 16,777,216 characters"
_NESTED = "the chat template is nested too deeply"
_KEPT = "{%- set s = 'a' * 100000 -%}{% set l = [] %}{% for i in range(100000) %}{% set _ = l.append("
_OBJECTS = (
    "{% set l = [] %}{% set d = dict(["
    + ", ".join(f"({i}, {i})" for i in range(1000))
    + "]) %}{% for i in range(100000) %}{% set _ = l.append("
)
MADE: dict[str, tuple[str, str]] = {  # a template, and why it is refused
    "parentheses": ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", _NESTED),
    "blocks": ("{% if true %}" * 500 + "{% endif %}" * 500, _NESTED),
    "filters": ("{{ 'a'" + "|upper" * 5000 + " }}", _NESTED),
    "a sum": ("{{ 1" + "+1" * 5000 + " }}", _NESTED),
    "many tokens": ("{{ a }}" * 10_000, "a chat template of more than 20,000 tokens"),
    "an array nested deeply": (
        "{% set ns = namespace(v=[]) %}{% for i in range(9000) %}{% set ns.v = [ns.v] %}{% endfor %}{{ ns.v|tojson }}",
        "values of the chat template are nested too deeply",
    ),
    "a large source": ("a" * (1 << 20) + "b", "a chat template of more than 1,048,576 bytes"),
    "keys that are kept": (_OBJECTS + "d.keys()) %}{% endfor %}", _CHARACTERS),
    "members that are kept": (_OBJECTS + "d.values()) %}{% endfor %}", _CHARACTERS),
    "pairs that are kept": (_OBJECTS + "d.items()) %}{% endfor %}", _CHARACTERS),
    "objects that are kept": (_OBJECTS + "dict(d)) %}{% endfor %}", _CHARACTERS),
    "arrays that are kept": (_KEPT + "[" + "1," * 1000 + "1]) %}{% endfor %}", _STEPS),
    "a loop of many statements": (
        "{% for i in range(90000) %}" + "{% set x = 1 %}" * 2000 + "{% endfor %}",
        _STEPS,
    ),
    "a macro of many statements": (
        "{% macro m() %}"
        + "{% set x = 1 %}" * 2000
        + "{% endmacro %}{% for i in range(90000) %}{{ m() }}{% endfor %}",
        _STEPS,
    ),
    "loops that copy many names": (
        _NAMED + "{% for i in range(90000) %}{% for j in [1] %}{% endfor %}{% endfor %}",
        _STEPS,
    ),
    "loops whose many names are kept": (
        _NAMED
        + "{% set l = [] %}{% macro keep() %}{% set _ = l.append(caller) %}{% endmacro %}"
        + "{% for i in range(90000) %}{% for j in [1] %}{% call keep() %}{% endcall %}{% endfor %}{% endfor %}",
        _CHARACTERS,
    ),
}


def source_of(name: str) -> str:
    return MADE[name][0] if name in MADE else (FOLDER / "templates" / f"{name}.jinja").read_text()


def answer(source: str) -> dict[str, str]:
    """What a template writes, or why it is refused."""
    try:
        return {"prompt": str(plain(Template(source).render(viewed(NAMES), time.gmtime(0))))}
    except ChatError as refusal:
        return {"refused": refusal.reason}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*EXPECTED["templates"], *MADE])
def test_templates_end_as_they_must(name: str) -> None:
    expected = {"refused": MADE[name][1]} if name in MADE else EXPECTED["templates"][name]
    assert answer(source_of(name)) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*(n for n, end in EXPECTED["templates"].items() if "refused" in end), *MADE]
)
def test_attacks_end_where_a_template_is_tried(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_limits, "MOST_STEPS", 20_000)  # each is run some ten times
    monkeypatch.setattr(run_limits, "MOST_CHARACTERS", 1 << 20)
    with pytest.raises(ChatError):
        _ = ChatTemplate(source_of(name), BosEos()).supports_thinking


FEWER_STEPS, FEWER_CHARACTERS = 200_000, 2_000_000
_ENDS = {
    f"the template takes more than {FEWER_STEPS:,} steps",
    f"the template writes more than {FEWER_CHARACTERS:,} characters",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("keeps_parts", [False, True], ids=["plain", "with parts"])
def test_hostile_templates_end_at_a_limit(
    name: str, keeps_parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit of a tenth is enough to see it; a template with `title` runs over texts that know their parts."""
    monkeypatch.setattr(run_limits, "MOST_STEPS", FEWER_STEPS)
    monkeypatch.setattr(run_limits, "MOST_CHARACTERS", FEWER_CHARACTERS)
    assert answer(HOSTILE[name] + "{{ ''|title }}" * keeps_parts).get("refused") in _ENDS


CALLS = [
    "a macro that calls itself twice",
    "a caller in a caller",
    "an array of itself, sorted",
    "tuples twice in tuples as a key",
    "a loop of filters",
    "a loop of tests",
    "a long array selected",
    "a long array compared",
    "keys with one hash",
]


@pytest.mark.parametrize("name", CALLS)
def test_a_step_is_not_more_than_a_few_calls(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls of Python functions are counted in place of the time that they take."""
    monkeypatch.setattr(run_limits, "MOST_STEPS", FEWER_STEPS)
    template, calls = Template(HOSTILE[name]), 0

    def count(frame: FrameType, event: str, function: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        with pytest.raises(ChatError, match="steps"):
            template.render(viewed(NAMES), time.gmtime(0))
    finally:
        sys.setprofile(None)
    assert calls < 3 * FEWER_STEPS


def test_whoever_watches_may_end_a_run_at_any_time() -> None:
    starts: list[bool] = []

    def look(is_start: bool) -> None:
        starts.append(is_start)
        if len(starts) == 10:
            raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"), run_limits.watched_by(look):
        Template("{% for i in range(1000000000) %}{% endfor %}").render(viewed(NAMES), time.gmtime(0))
    assert starts == [True, False, True, *[False] * 7]
    Template("{% for i in range(100000) %}{% endfor %}").render(viewed(NAMES), time.gmtime(0))
    assert len(starts) == 10


# ---- messages -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.from_gguf(VOCABULARY)


@pytest.mark.parametrize("name", EXPECTED["messages"])
def test_messages_end_as_they_must(tok: Tokenizer, name: str) -> None:
    data = (FOLDER / "messages" / f"{name}.json").read_bytes()
    found: dict[str, Any] = {}
    try:
        body = chat_json(data, f"{name}.json")
        tokens = chat_tokens(tok, tok.chats.parts(body if isinstance(body, dict) else {"messages": body}))
        found["prompt"] = tokens.rendered.prompt.decode()
        if tokens.injected:
            found["injected"] = [each.in_words() for each in tokens.injected]
    except ValueError as refusal:
        found["refused"] = str(refusal)
    assert found == EXPECTED["messages"][name]


def nested(depth: int = 100_000) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


_NESTED = nested()
USER = {"role": "user", "content": "Hi"}
_DEEP = "the chat is nested too deeply"
NESTED: dict[str, tuple[Any, str]] = {  # the body of a request, and why it is refused
    "messages": ({"messages": _NESTED}, "All non-assistant messages must contain 'content'"),
    "a content": ({"messages": [{**USER, "content": _NESTED}]}, "unsupported content"),
    "a role": ({"messages": [{**USER, "role": _NESTED}]}, "type must be string, but is array"),
    "arguments": (
        {
            "messages": [
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": _NESTED}}],
                },
                USER,
            ]
        },
        _DEEP,
    ),
    "a tool": (
        {
            "messages": [USER],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {"a": _NESTED}}}],
        },
        _DEEP,
    ),
    "a template's argument": ({"messages": [USER], "chat_template_kwargs": {"a": _NESTED}}, _DEEP),
}


@pytest.mark.parametrize("name", NESTED)
def test_what_is_nested_too_deeply(tok: Tokenizer, name: str) -> None:
    body, reason = NESTED[name]
    with pytest.raises(ChatError, match=reason):
        tok.chats.prompt(body)


def test_json_that_is_nested_too_deeply() -> None:
    with pytest.raises(ValueError, match=r"^deep\.json is not JSON: nested too deeply$"):
        chat_json(b"[" * 100_000 + b"]" * 100_000, "deep.json")


def test_a_hundred_thousand_messages(tok: Tokenizer) -> None:
    prompt = tok.chats.prompt({"messages": [USER] * 100_000, "add_generation_prompt": False})
    assert prompt == b"<|im_start|>user\nHi<|im_end|>\n" * 100_000


FOR_EACH = "{% for m in messages %}{% for n in messages %}{{ n.role|trim }}{% endfor %}{% endfor %}"


def test_limits_grow_with_the_messages_but_not_with_their_square(
    tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_limits, "MOST_STEPS", 20_000)
    monkeypatch.setattr(run_limits, "STEPS_PER_MESSAGE", 5_000)
    body = {"messages": [USER] * 200, "add_generation_prompt": False}
    assert tok.chats.prompt(body, FOR_EACH) == b"user" * 200**2
    with pytest.raises(ChatError, match="more than 8,"):
        tok.chats.prompt({**body, "messages": [USER] * 1600}, FOR_EACH)


def test_a_long_message_raises_the_limits(tok: Tokenizer) -> None:
    template = "{% for i in range(5) %}{{ messages[0].content|replace('a', 'b') }}{% endfor %}"
    body = {"messages": [{**USER, "content": "a" * (4 << 20)}], "add_generation_prompt": False}
    assert len(tok.chats.prompt(body, template)) == 20 << 20
