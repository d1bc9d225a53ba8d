"""The language of chat templates where llama.cpp's differs from jinja2's, and that it reaches nothing beyond itself."""

from __future__ import annotations

import time

import pytest

from ggufbpe import ChatError
from ggufbpe.chat.bos_eos import BosEos
from ggufbpe.chat.render import ChatTemplate
from ggufbpe.chat.request.chat_message import Message
from ggufbpe.chat.request.messages import Request
from ggufbpe.chat.template.environment import Template
from ggufbpe.chat.template.values import plain, viewed

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
    "a loop that has found what it looked for": (
        "{% set ns = namespace(found=false) %}{% for i in range(9) %}{% if not ns.found %}{{ i }}"
        "{% if i == 2 %}{% set ns.found = true %}{% endif %}{% endif %}{% endfor %}",
        "012",
    ),
    "a loop that is stopped": (
        "{% set ns = namespace(stop=false) %}{% for i in range(9) %}{% if ns.stop %}{% elif i == 2 %}"
        "{% set ns.stop = true %}{% else %}{{ i }}{% endif %}{% endfor %}",
        "01",
    ),
    "a loop that is stopped only to the eye": (
        "{% set ns = namespace(stop=false) %}{% for i in range(4) %}{% if i == 1 %}{% set ns.stop = true %}"
        "{% elif ns.stop %}{% else %}{{ i }}{% endif %}{% if i == 2 %}{% set ns.stop = false %}{% endif %}{% endfor %}",
        "03",
    ),
    "a loop with a test of its variable": (
        "{% for i in [0, 1, 0, 2] %}{% if i %}{{ i }}{% endif %}{% endfor %}",
        "12",
    ),
    "a loop with a test of what it sets": (
        "{% for i in range(4) %}{% if not done %}{{ i }}{% set done = true %}{% endif %}{% endfor %}{{ done }}",
        "0",
    ),
    "a loop with a test of the loop": (
        "{% for i in range(3) %}{% if loop.first or loop.last %}{{ i }}{% endif %}{% endfor %}",
        "02",
    ),
    "a loop that never does anything, with else": (
        "{% for i in range(3) %}{% if missing %}x{% endif %}{% else %}y{% endfor %}",
        "",
    ),
    "a row of texts and others set to its first": (
        "{% set s = 'a' %}{% set s = s ~ 1 ~ 2.5 ~ true + none ~ missing ~ [1] ~ 'b' + 'c' %}{{ s }}",
        "a12.5True[1]bc",
    ),
    "a sum set to its first": (
        "{% set ns = namespace(n=1, l=[]) %}{% for i in range(3) %}{% set ns.n = ns.n + 1 + i %}"
        "{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.n }}{{ ns['l']|tojson }}",
        "7[0, 1, 2]",
    ),
    "a range with its neighbours": (
        "{% for i in range(3, 0, -1) %}{{ loop.previtem|default('-') }}{{ i }}{{ loop.revindex }} {% endfor %}",
        "-33 322 211 ",
    ),
    "a range of another name": ("{% set r = range %}{% for i in r(2) %}{{ i }}{% endfor %}", "01"),
    "a function in place of range": (
        "{% set range = dict %}{% for i in range(a=1) %}{{ i }}{% endfor %}",
        "a",
    ),
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
    "parameters without commas": (
        "{% macro m(a b=2 c=3) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}",
        "123",
    ),
    "a parameter without a default behind one with": (
        "{% macro m(a=1, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(3, 4) }}",
        "34",
    ),
    "a list as arguments that is not reached": ("{% if false %}{{ f(*[1]) }}{% endif %}a", "a"),
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
    "the smallest int without its sign": (
        "{{ -(0 - 9223372036854775807 - 1) }} {{ (0 - 9223372036854775807 - 1)|abs }} {{ -(9.5) }}",
        "-9223372036854775808 -9223372036854775808 -9.5",
    ),
    "texts are the same by place": (
        "{{ 'a' is sameas 'a' }}{{ 1.5 is sameas 1.5 }}{{ '' is sameas '' }}{% set a = 'x' %}{% set b = 'x' %}"
        "{{ a is sameas a }}{{ a is sameas b }}{{ 5 is sameas 5 }}{{ 500 is sameas 500 }}{{ none is sameas none }}",
        "FalseFalseFalseTrueFalseTrueFalseTrue",
    ),
    "texts that a filter makes are others": (
        "{% set a = 'x' %}{{ a|string is sameas a }}{{ a|trim is sameas a }}{{ a|replace('q', 'q') is sameas a }}"
        "{{ (a ~ none) is sameas a }}"
        "{{ a|safe is sameas a }}{{ a|default('b') is sameas a }}{{ [a]|first is sameas a }}",
        "FalseFalseFalseFalseTrueTrueTrue",
    ),
    "parts of a text have their own capitals": (
        "{{ ('ab' ~ 'cd ef')|title }} {{ ('ab' + 'CD')|capitalize }} {{ ('ab' * 2).title() }} "
        "{{ (none ~ 'ab')|title }}",
        "AbCd Ef AbCd AbAb Ab",
    ),
    "parts of what is written": (
        "{% macro m() %}ab{{ 'cd' }}{% if true %}ef{{ 1 }}gh{% endif %}{% endmacro %}{{ m()|title }} "
        "{% set s %}ab{{ ['cd', 'ef'] }}{% endset %}{{ s|capitalize }} "
        "{% filter title %}ab{# #}cd{% for x in 'e f'.split() %}{{ x }}{% endfor %}{% endfilter %}",
        "AbCdEf1Gh AbCdEf AbCdEF",
    ),
    "what keeps the parts": (
        "{% set s = ' ab' ~ 'cd' %}{{ s|trim|title }} {{ s.strip(' a')|title }} {{ s|upper|capitalize }} "
        "{{ s|string|title }} {{ '{}ef{}'.format('ab', s)|title }} {{ [s][0]|title }}",
        "AbCd BCd  abCd  AbCd AbEf AbCd  AbCd",
    ),
    "what makes a single part": (
        "{% set s = 'ab' ~ 'cd' %}{{ s[0:]|title }} {{ [s, s]|join|title }} {{ s|replace('b', 'b')|title }} "
        "{{ s.split('x')[0]|title }} {{ s|indent|title }} {{ [s]|string|title }} {{ 'ab' 'cd'|title }}",
        "Abcd Abcdabcd Abcd Abcd Abcd ['abcd'] Abcd",
    ),
    "a method by a name that is made": ("{% set n = 'ti' ~ 'tle' %}{{ ('ab' ~ 'cd')[n]() }}", "AbCd"),
    "slices as methods": (
        "{{ 'abcd'.slice(1, 3, 1) }} {{ [1, 2, 3, 4]|slice(0, 4, 2) }} {{ (1, 2)|slice(0, 1, 1)|string }}",
        "bc 13 (1,)",
    ),
    "what is no number": (
        "{{ 0 / 0 }} {{ 0.1 % 0 }} {{ (1 / 0) % 2 }} {{ (0 / 0) + 1 }} {{ -(0 / 0) }} {{ (0 / 0)|abs }} "
        "{{ (0 / 0)|tojson }} {{ 'nan'|float }} {{ 5 % 0 }}",
        "-nan -nan -nan -nan nan -nan -nan nan -9223372036854775808",
    ),
    "ints out of no number": (
        "{{ (0 / 0)|int }} {{ (1 / 0)|int }} {{ ('1e30'|float)|int }}",
        "-9223372036854775808 -9223372036854775808 -9223372036854775808",
    ),
    "true as a name": ("{% set true = 1 %}{{ true }}{{ True }}", "1True"),
    "none as a loop's name": ("{% for none in [1, 2] %}{{ none }}{% endfor %}{{ none is none }}", "12True"),
    "false as a parameter": (
        "{% macro m(a, false=2) %}{{ false }}{% endmacro %}{{ m(1) }}{{ m(1, false=4) }}",
        "24",
    ),
    "no word is reserved": ("{% set if = 1 %}{{ if }}[{{ for }}]", "1[]"),
    "members of members are set": ("{% set d = {'k': {}} %}{% set d.k.z = 4 %}{{ d.k.z }}", "4"),
    "an item by its number": ("{{ [1, 2].1 }}{{ [1, 2][] is defined }}{{ 'abc'[0:2:1:9] }}", "2Falseab"),
    "a filter that is no name is not reached": ("{% if false %}{{ 'a'|upper(1)(2) }}{% endif %}b", "b"),
    "a row of operators": ("{{ 0" + " + 1" * 1900 + " }}{{ 'a'" + "|upper" * 300 + " }}", "1900A"),
    "a row of words": ("{{ false" + " or false" * 1000 + " or 3 }}", "3"),
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
    "a list as arguments": ("\n{{ range(*[1]) }}", "cannot exec SpreadExpression", 2),
    "an unknown test": ("{{ 1 is foo }}", "Unknown test 'foo'", 1),
    "an unknown function": ("{{ foo() }}", "Callee is not a function: got Undefined (hint: 'foo')", 1),
    "an argument that is missing": (
        "{% macro m(a) %}{% endmacro %}\n{{ m() }}",
        "Not enough arguments provided to 'm'",
        2,
    ),
    "a slice of a function": ("{{ range[1:] }}", "Function has no builtins", 1),
    "a slice of a number": ("{{ 5[1:] }}", "Unknown (built-in) filter 'slice' for type Integer", 1),
    "a filter that is no name": ("{{ 'a'|upper(1)(2) }}", "Filter callee must be an identifier", 1),
    "a filter that is a member": ("{{ 'a'|upper().x }}", "Invalid filter expression", 1),
    "a computed target": ("{% set d = {} %}\n{% set d['k'] = 4 %}", "Cannot assign to computed member", 2),
    "a number as a target": (
        "{% set 3 = 4 %}",
        "Invalid LHS inside assignment expression: IntegerLiteral",
        1,
    ),
    "a number among targets": (
        "{% set a, 3 = [4, 5] %}",
        "Cannot unpack to non-identifier in set: IntegerLiteral",
        1,
    ),
    "a number in a loop": ("{% for 3 in [4] %}{% endfor %}", "Invalid loop variable(s): IntegerLiteral", 1),
    "a number as a parameter": (
        "{% macro m(3) %}{% endmacro %}\n{{ m(1) }}",
        "Invalid parameter type in 'm'",
        1,
    ),
    "an unknown statement": ("\n{% do x %}", "Unknown statement: do", 2),
    "include": ("{% include '/etc/passwd' %}", "Unknown statement: include", 1),
    "import": ("{% import '/etc/passwd' as p %}", "Unknown statement: import", 1),
    "from": ("{% from 'x' import y %}", "Unknown statement: from", 1),
    "extends": ("{% extends 'x' %}", "Unknown statement: extends", 1),
    "block": ("{% block x %}{% endblock %}", "Unknown statement: block", 1),
    "with": ("{% with x = 1 %}{% endwith %}", "Unknown statement: with", 1),
    "autoescape": ("\n{% autoescape true %}x{% endautoescape %}", "Unknown statement: autoescape", 2),
    "a power": ("{{ 2 ** 3 }}", "Unexpected token: * of type 22", 1),
    "a float too large": ("{{ 1" + "0" * 400 + ".0 }}", "stod", 1),
    "a slice from a bool": (
        "{{ 'abc'[true:] }}",
        "Function 'slice' expected value of type St10shared_ptrIN5jinja11value_int_tEE, got Boolean",
        1,
    ),
    "an unknown escape": ("{{ '\\x41' }}", "unknown escape character \\x", 1),
    "an open string": ("{{ 'a", "unexpected end of input", 1),
    "an open comment": ("a {# b", "missing end of comment tag", 1),
    "an open block": ("{% if true %}", "Unexpected token type", 1),
    "an empty tuple": ("{{ () }}", "Unexpected token: ) of type 7", 1),
    "a minus behind a word": ("{{ not -1 }}", "Unexpected token: - of type 21", 1),
    "a test with a member": (
        "{% if false %}{{ 1 is none.x }}{% endif %}",
        "Parser Error: Expected }} (Got .)",
        1,
    ),
    "a filter with a member": (
        "{% if false %}{{ 'a'|upper.x }}{% endif %}",
        "Parser Error: Expected }} (Got .)",
        1,
    ),
    "a filter behind a test": ("{{ 1 is odd|string }}", "Parser Error: Expected }} (Got |)", 1),
    "a letter in no string": ("{{ é }}", "unexpected character", 1),
    "a filter behind its block": ("{% filter nope %}\n{{ 1 }}{% endfilter %}", "Unknown", 1),
    "a call behind its block": ("{% call nope() %}\n{{ 1 }}{% endcall %}", "Callee is not a function", 1),
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
    template = ChatTemplate(source, BosEos())
    assert template.prompt(Request((Message("user", "GO"),)), NOW) == expected


def test_messages_are_taken_away() -> None:
    with pytest.raises(ChatError, match="takes messages away"):
        _ = ChatTemplate("{% set m = messages.pop(0) %}{{ m.content }}", BosEos()).capabilities
