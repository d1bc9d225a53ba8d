"""Go templates give the texts that the real Go recorded, and refuse what it refuses, with line and column."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from compare_go_templates import NOT_DONE, RECORDED, answer_of_ours, differ

from ggufbpe import ChatError
from ggufbpe.chat.go_template.execution import GoTemplate
from ggufbpe.chat.go_template.go_lexer import go_tokens
from ggufbpe.chat.go_template.go_parser import GoParser
from ggufbpe.chat.go_values import Struct, float_text, go_equal, go_json_text, part, sprintf
from ggufbpe.chat.ollama_prompt import OllamaTemplate
from ggufbpe.chat.template.run_limits import LimitError
from ggufbpe.chat.template.values import TemplateError, viewed


def rendered(source: str, data: Any = None) -> str:
    return GoTemplate(viewed(source), {"json": go_json_text}).render(viewed(data or {}))


@pytest.mark.slow
def test_recorded_answers_of_go() -> None:
    cases = json.loads(gzip.decompress(RECORDED.read_bytes()))
    assert len(cases) >= 2000
    assert sum("text" in case for case in cases) > 900
    wrong = []
    for case in cases:
        ours = answer_of_ours(case)
        if differ(case, ours) and not ("error" in ours and NOT_DONE.search(ours["error"])):
            wrong.append((case, ours))
    assert wrong == []


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("", ""),
        ("a {{- 1 -}} b", "a1b"),
        ("{{/* nothing */}}x{{- /* nothing */ -}} y", "xy"),
        ('{{ $x := "a" }}{{ if true }}{{ $x = "b" }}{{ end }}{{ $x }}', "b"),
        ("{{ range $i, $e := .list }}{{ $i }}{{ if eq $i 1 }}{{ break }}{{ end }}{{ $e }}{{ end }}", "0a1"),
        ("{{ range .none }}x{{ else }}empty{{ end }}", "empty"),
        ("{{ range .list }}{{ range $.none }}{{ else }}{{ break }}{{ end }}{{ . }}{{ end }}", "ab"),
        ("{{ range .list }}{{ range $.none }}{{ else }}{{ continue }}{{ end }}{{ . }}{{ end }}", ""),
        ("{{ with .map }}{{ .b }}{{ end }}{{ .map }}{{ .none }}", "1map[a:x b:1]<no value>"),
        ('{{ define "t" }}<{{ . }}>{{ end }}{{ template "t" .list }}', "<[a b]>"),
        ('{{ "é" | len }}{{ slice "abc" 1 }}{{ index .list 1 }}{{ not (and 1 "") }}', "2bcbtrue"),
        (
            '{{ json .map }}{{ json "<&>" }}{{ printf "%s=%d" "x" 3 }}',
            '{"a":"x","b":1}"\\u003c\\u0026\\u003e"x=3',
        ),
    ],
)
def test_what_templates_write(source: str, text: str) -> None:
    assert rendered(source, {"list": ["a", "b"], "map": {"b": 1, "a": "x"}}) == text


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("a\n {{ .x", "line 2 .*column 7: unclosed action"),
        ("{{ if .x }}", "line 1 .*column 4: if has no end"),
        ("é{{ nosuch 1 }}", r'column 5: function "nosuch" not defined'),
        ("{{ html .x }}", 'function "html" not defined'),
        ("{{ end }}", "column 4: unexpected end"),
        ("{{ $x }}", r"undefined variable \$x"),
        ('{{ template "none" . }}', 'template "none" not defined'),
        ("{{ break }}", "break outside range"),
        ('{{ "\\q" }}', "invalid escape"),
        ("{{ /* x */ }}", "unexpected /"),
        ("{{ .x.y }}", "can't evaluate field y of nil"),
        ('{{ lt 1 "a" }}', "values of these types have no order"),
        ('{{ printf "%5d" 1 }}', "printf: %5 is not supported"),
        ("{{ range 3 }}{{ end }}", "range can't iterate over 3"),
        ("{{ len }}", "wrong arguments for len"),
        ("{{ index .none }}", "index of untyped nil"),
        ("{{ printf \"%d\" 'a' }}", "column 16: a constant of one character is not supported"),
        ("\n{{ slice .s 3 9 }}", "line 2 .*column 4: index out of range: 3"),
    ],
)
def test_refusals_name_line_and_column(source: str, words: str) -> None:
    with pytest.raises(ChatError, match=words):
        rendered(source, {"s": "ab"})


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('{{ define "t" }}{{ template "t" . }}{{ end }}{{ template "t" . }}', "calls itself for ever"),
        ("{{if 1}}" * 2500 + "{{end}}" * 2500, "nested too deeply"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "nested too deeply"),
        ('{{ $x := "aaaaaaaa" }}' + '{{ $x = printf "%s%s" $x $x }}' * 40, "more than 16,777,216 characters"),
        (
            "{{ range .l }}{{ range $.l }}{{ range $.l }}{{ range $.l }}{{ $ }}{{ end }}{{ end }}{{ end }}{{ end }}",
            "more than",
        ),
        ("{{1}}" * 10_000, "more than 20,000 tokens"),
        ("x" * ((1 << 20) + 1), "more than 1,048,576 bytes"),
    ],
)
def test_hostile_templates_end(source: str, words: str) -> None:
    with pytest.raises(ChatError, match=words):
        rendered(source, {"l": list(range(200)), "text": "x" * 10_000})


def test_parts() -> None:
    assert [token.kind for token in go_tokens("a{{ .b | json }}")] == [
        *("text", "{{", "space", "field", "space", "pipe", "space", "word", "space", "}}", "the end"),
    ]
    assert set(GoParser('{{ define "t" }}x{{ end }}{{ block "u" . }}{{ end }}', frozenset()).templates) == {
        "",
        "t",
        "u",
    }
    assert [float_text(number) for number in (0.0, -0.0, 1e6, 100000.0, 1.5, 1e-5)] == [
        *("0", "-0", "1e+06", "100000", "1.5", "1e-05"),
    ]
    assert issubclass(LimitError, TemplateError)
    with pytest.raises(TemplateError, match="more values than verbs"):
        sprintf("x", 1)


@pytest.mark.parametrize(("left", "right"), [((), ()), (None, ()), (None, None)])
def test_what_is_nil_is_equal(left: object, right: object) -> None:
    assert go_equal(left, right)


def test_what_is_not_there_equals_no_value() -> None:
    assert not go_equal(None, 0, "", "x", ["a"])


@pytest.mark.parametrize(
    ("left", "right"),
    [(0, ()), ("", ()), ((), {}), (["a"], ["a"]), ({}, {}), (Struct({}, is_pointer=True), Struct({}))],
)
def test_what_has_other_types_is_not_compared(left: object, right: object) -> None:
    """A nil slice has a type, too: only what is not there at all can be compared with anything."""
    with pytest.raises(TemplateError):
        go_equal(left, right)


def test_a_slice_of_tools_is_printed_as_tools_are() -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in "abc"]
    template = OllamaTemplate("{{ range .Messages }}{{ slice $.Tools 1 }}{{ end }}")
    prompt = template.prompt({"messages": [{"role": "user", "content": "x"}], "tools": tools}).decode()
    assert [tool["function"]["name"] for tool in json.loads(prompt)] == ["b", "c"]


def test_what_is_left_of_a_slice_is_not_nil() -> None:
    assert go_json_text(part(("a",), 1)) == "[]"
    assert go_json_text(part((), 0)) == "null"
