"""The language of chat templates where llama.cpp's differs from jinja2's, and templates that attack who runs them."""

from __future__ import annotations

import time

import pytest

from ggufbpe import ChatError
from ggufbpe.chat import bounds
from ggufbpe.chat.environment import Template
from ggufbpe.chat.messages import Message, Request
from ggufbpe.chat.render import ChatTemplate, Ends
from ggufbpe.chat.values import plain, viewed

NOW = time.gmtime(0)
NAMES = {"messages": [{"role": "user", "content": "Hé llo"}], "add_generation_prompt": True}


def render(source: str) -> str:
    """What a template writes."""
    return str(plain(Template(source).render(viewed(NAMES), NOW)))


# A template and what llama.cpp writes.
LANGUAGE: dict[str, tuple[str, str]] = {
    "none is empty": ("[{{ none }}]", "[]"),
    "floats out of texts": (
        "{{ '0x10'|float }} {{ '1e3x'|float }} {{ '-0.0'|float(7) }} {{ '0x'|float }}",
        "16.0 1000.0 -0.0 0.0",
    ),
    "floats out of range": (
        "{{ '1e400'|float(7) }} {{ '1e-400'|float(7) }} {{ '1e-310'|float(7) }}",
        "7.0 7.0 7.0",
    ),
    "objects are empty": ("[{{ {'a': 1} }}]", "[]"),
    "arrays are their items": ("{{ [1, 'a', 2.5, true, none] }}", "1a2.5True"),
    "objects as strings": ("{{ {'a': [none, true, \"it's\"]}|string }}", "{'a': [None, True, \"it's\"]}"),
    "tuples as strings": ("{{ (1, 'x')|string }}", "(1, 'x')"),
    "none joined with a text": ("{{ 'a' + none + missing ~ 'b' }}", "ab"),
    "a number joined with a text": ("{{ 'a' + 1 }}", "a1"),
    "sums before a text": ("{{ 1 + 2 ~ 'x' }}", "3x"),
    "lengths are bytes": ("{{ 'é日'|length }}", "5"),
    "no case beyond ASCII": ("{{ 'éÉa'|upper }}{{ 'ÉA'|lower }}", "éÉAÉa"),
    "a slice of bytes": ("{{ 'é日'[:2] }}", "é"),
    "half a character": ("{{ 'é'[:1] }}", "\ufffd"),
    "a byte from the end": ("[{{ 'abc'[-1] }}]", "[]"),
    "only ASCII is trimmed": ("[{{ ' \u00a0x\u00a0 '|trim }}]", "[\u00a0x\u00a0]"),
    "split at single spaces": ("{{ ' a  b '.split()|tojson }}", '["", "a", "", "b", ""]'),
    "division is of floats": ("{{ 6 / 2 }} {{ 7 % 4 }} {{ -7 % 4 }}", "3.0 3 -3"),
    "floats": ("{{ 0.1 + 0.2 }} {{ 2.50 }}", "0.3 2.5"),
    "floats in JSON": ("{{ [0.1, 12345678.9]|tojson }}", "[0.1, 1.23457e+07]"),
    "JSON": ("{{ {'é': '<\"&\\n'}|tojson }}", '{"é": "<\\"&\\n"}'),
    "JSON, indented": ("{{ {'a': [1, {}]}|tojson(indent=2) }}", '{\n  "a": [\n    1,\n    {}\n  ]\n}'),
    "JSON in ASCII": ("{{ 'é🙂'|tojson(ensure_ascii=true) }}", '"\\u00e9\\ud83d\\ude42"'),
    "a method before a member": ("{{ {'items': 1}.items is callable }}{{ {'items': 1}['items'] }}", "True1"),
    "aliases are no methods": ("{{ 'a'.trim is defined }}", "False"),
    "items of what is missing": ("a[{% for k, v in missing.items() %}x{% endfor %}]", "a[]"),
    "a single character before the first block is lost": ("a{% if true %}b{% endif %}", "b"),
    "keys of an object": ("{% for k in {'a': 1, 'b': 2} %}{{ k }}{% endfor %}", "ab"),
    "members of an object": ("{% for k, v in {'a': 1} %}{{ k }}{{ v }}{% endfor %}", "a1"),
    "a loop keeps what it sets": (
        "{% set n = 0 %}{% for x in [1, 2] %}{% set n = n + x %}{{ n }}{% endfor %}{{ n }}",
        "130",
    ),
    "what breaks off is not written": (
        "{% for x in [1, 2] %}{{ x }}{% if x == 2 %}y{% break %}{% endif %}{% endfor %}",
        "12",
    ),
    "else after nothing but continue": (
        "{% for x in [1] %}{% continue %}{% else %}E{% endfor %}",
        "E",
    ),
    "a macro sees its caller's names": (
        "{% macro m() %}{{ x }}{% endmacro %}{% for x in [1] %}{{ m() }}{% endfor %}",
        "1",
    ),
    "an argument by name that is passed over": (
        "{% macro m(a, b=1, c=2) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(0, c=5) }}",
        "02",
    ),
    "blocks take their line": ("a\n  {% if true %}\n  b\n  {% endif %}\nc", "a\n  b\nc"),
    "expressions do not": ("a\n  {{ 1 }}\n  b", "a\n  1\n  b"),
    "the last line break": ("a\n\n", "a\n"),
    "generation blocks": ("{% generation %}a{% endgeneration %}", "a"),
    "a literal true": ("{{ True }}{{ none is none }}{{ None == none }}", "TrueTrueTrue"),
    "none in an object": ("{{ none in {'a': 1} }}", "False"),
    "dictsort is an object": ("{% for k, v in {'b': 1, 'a': 2}|dictsort %}{{ k }}{% endfor %}", "ab"),
    "a condition in a condition": ("{% if 0 if 1 else 2 %}a{% else %}b{% endif %}", "b"),
    "a loop over one of two": ("{% for x in [1] if true else [2] %}{{ x }}{% endfor %}", "1"),
    "a loop with a condition": (
        "{% for x in [1, 2, 3] if x is odd %}{{ x }}{{ loop.length }}{% endfor %}",
        "1232",
    ),
    "commas left out": ("{{ [1 2 'a']|tojson }}{{ {'a': 1 'b': 2}|tojson }}", '[1, 2, "a"]{"a": 1, "b": 2}'),
    "a default is given": ("{{ ''|default('x') }}{{ ''|default('x', true) }}", "x"),
    "letters around the time": ("{{ strftime_now('é%d') }}", "é01"),
    "the time": ("{{ strftime_now('%Y-%m-%d') }}", "1970-01-01"),
}


@pytest.mark.parametrize("name", LANGUAGE)
def test_language(name: str) -> None:
    source, expected = LANGUAGE[name]
    assert render(source) == expected


# A template that llama.cpp refuses, its reason, and the line.
REFUSED: dict[str, tuple[str, str, int | None]] = {
    "raise_exception": ("\n{{ raise_exception('no ' ~ 1) }}", "Jinja Exception: no 1", 2),
    "none in a loop": ("{% for x in none %}{% endfor %}", "Expected iterable or object type in for loop", 1),
    "a text in a loop": ("{% for x in 'ab' %}{% endfor %}", "got String", 1),
    "texts are not compared": ("{{ 'a' < 'b' }}", 'Unknown operator "<" between String and String', 1),
    "sum of what is missing": ("{{ missing + 1 }}", "Cannot perform operation + on undefined values", 1),
    "an unknown filter": ("\n\n{{ 'a'|escape }}", "Unknown (built-in) filter 'escape' for type String", 3),
    "no default": ("{{ 'a'|default }}", "Function 'default' expected between 2 and 3 arguments, got 1", 1),
    "a condition in brackets is a filter": ("{% for x in ('' if true) %}{% endfor %}", "got String", 1),
    "an unknown test": ("{{ 1 is foo }}", "Unknown test 'foo'", 1),
    "an unknown function": ("{{ foo() }}", "Callee is not a function: got Undefined (hint: 'foo')", 1),
    "an argument that is missing": (
        "{% macro m(a) %}{% endmacro %}\n{{ m() }}",
        "Not enough arguments provided to 'm'",
        2,
    ),
    "an unknown statement": ("\n{% do x %}", "unknown tag 'do'", 2),
    "include": ("{% include '/etc/passwd' %}", "Unknown statement: include", 1),
    "import": ("{% import '/etc/passwd' as p %}", "Unknown statement: import", 1),
    "from": ("{% from 'x' import y %}", "Unknown statement: fromimport", 1),
    "extends": ("{% extends 'x' %}", "Unknown statement: extends", 1),
    "block": ("{% block x %}{% endblock %}", "Unknown statement: block", 1),
    "with": ("{% with x = 1 %}{% endwith %}", "Unknown statement: with", 1),
    "autoescape": ("\n{% autoescape true %}x{% endautoescape %}", "Unknown statement: autoescape", 2),
    "a power": ("{{ 2 ** 3 }}", "unexpected", 1),
    "a float too large": ("{{ 1" + "0" * 400 + ".0 }}", "stod", 1),
    "a slice from a bool": (
        "{{ 'abc'[true:] }}",
        "Function 'slice' expected value of type St10shared_ptrIN5jinja11value_int_tEE, got Boolean",
        1,
    ),
    "an unknown escape": ("{{ '\\x41' }}", "unknown escape character \\x", 1),
    "an open string": ("{{ 'a", "unexpected end of input", 1),
    "an open comment": ("a {# b", "missing end of comment tag", 1),
    "an open block": ("{% if true %}", "Unexpected end of template", 1),
    "an empty tuple": ("{{ () }}", "unexpected", 1),
    "a minus behind a word": ("{{ not -1 }}", "unexpected", 1),
    "a filter behind a test": ("{{ 1 is odd|string }}", "expected token", 1),
    "a letter in no string": ("{{ é }}", "unexpected character", 1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    source, reason, line = REFUSED[name]
    with pytest.raises(ChatError) as refusal:
        render(source)
    assert reason in refusal.value.reason
    assert refusal.value.line == line


# Ways from a value to Python's insides that sandboxes have been left by: all of them lead to nothing.
_INSIDES = (
    "__class__",
    "__init__",
    "__globals__",
    "__mro__",
    "__subclasses__",
    "__builtins__",
    "__dict__",
    "__getattribute__",
)
_HOLDERS = (
    "''",
    "[]",
    "{}",
    "1",
    "2.5",
    "messages",
    "namespace(a=1)",
    "range(2)",
    "strftime_now",
    "''.upper",
    "(1, 2)",
    "missing",
)


def answer_to(source: str) -> str:
    """What a template writes, or why it cannot be run."""
    try:
        return render(source)
    except ChatError as refusal:
        return refusal.reason


@pytest.mark.parametrize(
    "inside", [*_INSIDES, "gi_frame", "f_globals", "func_code", "mro", "_asdict", "format_map"]
)
@pytest.mark.parametrize("holder", _HOLDERS)
def test_no_way_to_the_insides(holder: str, inside: str) -> None:
    for way in (f"({holder}).{inside}", f"({holder})['{inside}']"):
        assert answer_to(f"{{{{ {way} is defined }}}}") in ("False", "Function has no builtins")


@pytest.mark.parametrize(
    "name",
    ["self", "environment", "run", "s0", "o0", "cycler", "lipsum", "joiner", "__import__", "open", "eval"],
)
def test_no_names_but_those_of_llama_cpp(name: str) -> None:
    assert render(f"{{{{ {name} is defined }}}}") == "False"


# What loops, grows or nests without end. Each ends soon, with a ChatError.
_DOUBLING = "{%- set ns = namespace(x='a', l=[1]) -%}{%- for i in range(60) -%}"
_TUPLES = "{%- set ns = namespace(t=(1, 2)) -%}{%- for i in range(60) -%}{%- set ns.t = (ns.t, ns.t) -%}{%- endfor -%}"
_STEPS = "the template takes more than 2,000,000 steps"
_CHARACTERS = "the template writes more than 67,108,864 characters"
_NESTED = "the chat template is nested too deeply"
_CALLS = "the template's macros call each other more than 150 deep"
_LONG = "{%- set s = 'a' * 100000 -%}"
_KEPT = _LONG + "{% set l = [] %}{% for i in range(100000) %}{% set _ = l.append("
_OBJECTS = (
    "{% set l = [] %}{% set d = dict(["
    + ", ".join(f"({i}, {i})" for i in range(1000))
    + "]) %}{% for i in range(100000) %}{% set _ = l.append("
)
_READ = _LONG + "{%- set t = 'a' * 100000 -%}{% for i in range(500000) %}{% "
ATTACKS: dict[str, tuple[str, str]] = {
    "a long range": ("{% for i in range(10000000000) %}{% endfor %}", _STEPS),
    "loops in loops": (
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        _STEPS,
    ),
    "text that doubles": (_DOUBLING + "{%- set ns.x = ns.x + ns.x -%}{%- endfor -%}", _CHARACTERS),
    "text that doubles, joined": (
        _DOUBLING + "{%- set ns.x = [ns.x, ns.x]|join -%}{%- endfor -%}",
        _CHARACTERS,
    ),
    "text that doubles, replaced": (
        _DOUBLING + "{%- set ns.x = ns.x|replace('a', 'aa') -%}{%- endfor -%}",
        _CHARACTERS,
    ),
    "text that doubles, formatted": (
        _DOUBLING + "{%- set ns.x = '{}{}'.format(ns.x, ns.x) -%}{%- endfor -%}",
        _CHARACTERS,
    ),
    "array that doubles": (_DOUBLING + "{%- set ns.l = ns.l + ns.l -%}{%- endfor -%}", _STEPS),
    "array of itself": ("{% set l = [] %}{% set q = l.append(l) %}{{ l }}", _STEPS),
    "array of itself as JSON": ("{% set l = [] %}{% set q = l.append(l) %}{{ l|tojson }}", _STEPS),
    "array of itself as a string": ("{% set l = [] %}{% set q = l.append(l) %}{{ l|string }}", _STEPS),
    "array of itself, sought": ("{% set l = [] %}{% set q = l.append(l) %}{{ {}[l] }}", _STEPS),
    "arrays twice in arrays": (_DOUBLING + "{%- set ns.l = [ns.l, ns.l] -%}{%- endfor -%}{{ ns.l }}", _STEPS),
    "arrays twice in arrays, as JSON": (
        _DOUBLING + "{%- set ns.l = [ns.l, ns.l] -%}{%- endfor -%}{{ ns.l|tojson }}",
        _STEPS,
    ),
    "tuples twice in tuples, compared": (
        _DOUBLING + "{%- set ns.l = (ns.l, ns.l) -%}{%- endfor -%}{{ ns.l == ns.l }}",
        _STEPS,
    ),
    "tuples twice in tuples, as a key": (_TUPLES + "{{ {}[ns.t] }}", _STEPS),
    "tuples twice in tuples, as an index": (_TUPLES + "{{ [1][ns.t] }}", _STEPS),
    "tuples twice in tuples, sought in an object": (_TUPLES + "{{ ns.t in {} }}", _STEPS),
    "tuples twice in tuples, on the right": (_TUPLES + "{{ (1, 2) == ns.t }}", _STEPS),
    "tuples twice in tuples, mapped": (_TUPLES + "{{ [{}]|map(attribute=ns.t) }}", _STEPS),
    "tuples twice in tuples, sorted": (_TUPLES + "{{ [{}]|sort(attribute=ns.t) }}", _STEPS),
    "tuples twice in tuples, the greatest": (_TUPLES + "{{ [{}]|max(attribute=ns.t) }}", _STEPS),
    "tuples twice in tuples, joined": (_TUPLES + "{{ [{}]|join(attribute=ns.t) }}", _STEPS),
    "a text many times": ("{{ 'a' * 10000000000 }}", _CHARACTERS),
    "a margin": ("{{ 'a\nb'|indent(10000000000) }}", _CHARACTERS),
    "a wide JSON": ("{{ [1, [2]]|tojson(indent=10000000000) }}", _CHARACTERS),
    "a replacement of nothing": ("{{ ('a' * 60000)|replace('', 'b' * 60000) }}", _CHARACTERS),
    "a macro that calls itself": ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", _CALLS),
    "macros that call each other": (
        (
            "{% macro a() %}{{ b() }}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{{ a() }}{% endmacro %}{{ a() }}"
        ),
        _CALLS,
    ),
    "parentheses": ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", _NESTED),
    "blocks": ("{% if true %}" * 500 + "{% endif %}" * 500, _NESTED),
    "loops": ("{% for a in [1] %}" * 50 + "{% endfor %}" * 50, _NESTED),
    "filters": ("{{ 'a'" + "|upper" * 5000 + " }}", _NESTED),
    "a sum": ("{{ 1" + "+1" * 20000 + " }}", _NESTED),
    "a large number": ("{{ 99999999999999999999 }}", "stoll"),
    "a large source": ("a" * (1 << 20) + "b", "a chat template of more than 1,048,576 bytes"),
    "a date": ("{{ strftime_now('%A' * 100) }}", "strftime_now: failed to format time"),
    "a long text written again and again": (
        _LONG + "{% for i in range(2000) %}{{ s }}{% endfor %}",
        _CHARACTERS,
    ),
    "a text of the template again and again": (
        "{% for i in range(100000) %}" + "x" * 1000 + "{% endfor %}",
        _CHARACTERS,
    ),
    "slices that are kept": (_KEPT + "s[1:]) %}{% endfor %}", _CHARACTERS),
    "parts that are kept": (_KEPT + "s.split('a')) %}{% endfor %}", _CHARACTERS),
    "parts from the end that are kept": (_KEPT + "s.rsplit('a')) %}{% endfor %}", _CHARACTERS),
    "keys that are kept": (_OBJECTS + "d.keys()) %}{% endfor %}", _CHARACTERS),
    "members that are kept": (_OBJECTS + "d.values()) %}{% endfor %}", _CHARACTERS),
    "pairs that are kept": (_OBJECTS + "d.items()) %}{% endfor %}", _CHARACTERS),
    "objects that are kept": (_OBJECTS + "dict(d)) %}{% endfor %}", _CHARACTERS),
    "arrays that are kept": (_KEPT + "[" + "1," * 1000 + "1]) %}{% endfor %}", _CHARACTERS),
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
        "".join(f"{{% set n{i} = 1 %}}" for i in range(2000))
        + "{% for i in range(90000) %}{% for j in [1] %}{% endfor %}{% endfor %}",
        _CHARACTERS,
    ),
    "a text searched again and again": (_READ + "if 'b' in s %}{% endif %}{% endfor %}", _STEPS),
    "texts compared again and again": (_READ + "if s == t %}{% endif %}{% endfor %}", _STEPS),
    "beginnings compared again and again": (_READ + "if s.startswith(t) %}{% endif %}{% endfor %}", _STEPS),
    "small letters sought again and again": (_READ + "if s is lower %}{% endif %}{% endfor %}", _CHARACTERS),
    "a text trimmed again and again": (_READ + "set x = s|trim('a') %}{% endfor %}", _CHARACTERS),
    "texts sorted again and again": (_READ + "set x = [s, t]|sort %}{% endfor %}", _STEPS),
    "a deep and wide JSON": (
        "{% set ns = namespace(l=[]) %}{% for i in range(90) %}{% set ns.l = [ns.l] %}{% endfor %}"
        "{{ ns.l|tojson(indent=20000) }}",
        _CHARACTERS,
    ),
    "a long format of a date": ("{{ strftime_now('%' * 5000) }}", "strftime_now: failed to format time"),
    "division by nothing": ("{{ 1 is divisibleby(0) }}", "division by zero"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_end_with_their_reason(name: str) -> None:
    source, reason = ATTACKS[name]
    with pytest.raises(ChatError) as refusal:
        render(source)
    assert refusal.value.reason == reason


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_end_where_a_template_is_tried(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_STEPS", 20_000)  # each is run some ten times
    monkeypatch.setattr(bounds, "MOST_CHARACTERS", 1 << 20)
    with pytest.raises(ChatError):
        _ = ChatTemplate(ATTACKS[name][0], Ends()).supports_thinking


# A template that changes the messages, and what it writes.
CHANGING: dict[str, tuple[str, str]] = {
    "a content is set": (
        "{% for m in messages %}{% set m.content = m.content|trim %}{{ m.content }}{% endfor %}",
        "GO",
    ),
    "each run has its own messages": (
        "{% for m in messages %}{% set m.content = m.content ~ '!' %}{{ m.content }}{% endfor %}"
        "{% if add_generation_prompt %}{{ messages.append(1)|length }}{% endif %}",
        "GO!2",
    ),
}


@pytest.mark.parametrize("name", CHANGING)
def test_messages_are_changed(name: str) -> None:
    source, expected = CHANGING[name]
    template = ChatTemplate(source, Ends())
    assert template.prompt(Request((Message("user", "GO"),)), NOW) == expected


def test_messages_are_taken_away() -> None:
    with pytest.raises(ChatError, match="takes messages away"):
        _ = ChatTemplate("{% set m = messages.pop(0) %}{{ m.content }}", Ends()).capabilities
