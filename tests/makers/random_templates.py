"""Random templates of the constructs that real ones use. Everything follows from a seed.

A template has two parts. One renders the messages, in a random way. The other has `PROBES` random pieces, of which the
keyword `probe` chooses one: what goes wrong in a piece stays there, and a server that has started once answers for all
of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from random_chats import choices

PROBES = 120

_CALLS = [
    "<tool_call>{{ call.function | tojson }}</tool_call>",
    "<tool_call>{{ call.function.name ~ call.function.arguments }}</tool_call>",
    "<tool_call>{{ call.function.arguments | tojson }}</tool_call>",
    "<tool_call>{{ call.function.arguments | tojson if call.function.arguments is mapping else call.function.name }}"
    "</tool_call>",
    "<tool_call>{{ call.id ~ call.function.name }}</tool_call>",
    "<tool_call>{{ call | tojson }}</tool_call>",
    "{{ call.function | tojson }}",
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}',
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments }}}',
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | string }}}',
    '{"{{ call.function.name }}": {{ call.function.arguments | tojson }} }',
    "<function={{ call.function.name }}>{{ call.function.arguments | tojson }}</function>",
    "<function={{ call.function.name }}>{% for name, value in call.function.arguments.items() %}"
    "<parameter={{ name }}>{{ value }}</parameter>{% endfor %}</function>",
    "{{ call.function.name }}({{ call.function.arguments | tojson }})",
]
_AROUND_CALLS = [
    ("", ""),
    ("", ""),
    ("[TOOL_CALLS]", ""),
    ("[", "]"),
    ("<calls>\n", "</calls>"),
    ("<|call|> [", "]"),
]
_MARKERS = [
    "<|im_start|>",
    "<|im_end|>\n",
    "[INST] ",
    " [/INST]",
    "<|eot_id|>",
    "<s>",
    "</s>",
    "\n",
    "### ",
    ": ",
]
_VALUES = {
    "string": choices(
        r"""''  'a'  ' pad\n'  "it\"s"  'é🙂'  'x\ny\n'  '3'  '1.5'  'A_b-c D'  'a,b,,c'  'a\\b'  '%s-%d'  '{} {}'
        '<think>x</think>\n y'  ' '  'ß'  'aXbXc'  ('ab' ~ ' ' ~ 'cD')
        ('x' + messages[0].content)  messages[0]['content']  messages[-1].content  messages[0].role"""
    ),
    "number": choices("0  1  2  (-1)  3  10  7  1.5  2.0  (-0.5)  100  0.1  1000000"),
    "list": choices(
        """[]  [1, 2, 3]  ['b', 'a', 'C']  [1.5, 'x', none]  [[1, 2], [3]]  (1, 'a')  range(4)  range(1, 9, 3)  ['']
        [{'k': 1, 'n': 'x'}, {'k': 2, 'n': 'y'}, {'n': 'z'}]  ['a', 'a', 'b']  [true, false]  [3, 1, 2]  tools
        messages"""
    ),
    "dict": choices(
        """{}  {'b': 1, 'a': 'x'}  {'k': {'n': [1, 2]}}  {'é': none, 'q': '"'}  dict(x=1, y='z')  messages[0]
        messages[-1]  (tools or [{}])[0]  custom  ns  {1: 'one', 'B': 2.0}"""
    ),
    "other": choices(
        "true  false  none  True  False  None  missing  missing.x  loop  add_generation_prompt  bos_token"
    ),
}
_TESTS = choices(
    """defined  undefined  none  string  mapping  iterable  sequence  number  integer  float  boolean  true  false
    callable  odd  even  divisibleby(2)  eq(1)  equalto('a')  ne(1)  lower  upper  in([1, 'a'])  sameas(none)
    sameas true  sameas('a')  sameas(messages[0].role)  sameas(ns)  gt(1)  lt(2)  ge(1)  test  filter"""
)
_FILTERS = {
    "string": choices(
        """trim  upper  lower  title  capitalize  length  string  safe  list  first  last  replace('a', 'z')
        indent(2)  indent(4, first=true)  indent(2, true, true)  int  float  int(7)  tojson  default('d', true)
        wordcount  truncate(3)  reverse  join('-')  escape  e  unique  items  replace('a', 'z', 1)  strip
        format(1, 2)  count"""
    ),
    "number": choices("abs  int  float  string  round  tojson  default(3)  length  upper  trim  list"),
    "list": choices(
        """length  first  last  join(', ')  join  list  tojson  tojson(indent=2)  string  sort  reverse  unique
        min  max  sum  map('upper')  map('string')  map(attribute='k')  map(attribute='n', default='?')
        select('string')  reject('none')  select  selectattr('k')  selectattr('k', 'equalto', 1)
        rejectattr('k', 'defined')  map(attribute='role')  selectattr('role', 'equalto', 'user')
        sort(attribute='n')  sort(reverse=true)  items  batch(2)  slice(2)  join(',', attribute='n')
        tojson(indent=4, ensure_ascii=false)  map('tojson')"""
    ),
    "dict": choices(
        """items  dictsort  tojson  tojson(indent=2)  tojson(sort_keys=true)  length  string  list  join('+')
        first  tojson(separators=(',', ':'))  default({})  tojson(ensure_ascii=False)  sort  map('upper')
        dictsort(true)  dictsort(by='value')  dictsort(reverse=true)  items | list  keys  values"""
    ),
    "other": choices(
        "default('d')  default  default('d', true)  string  tojson  length  list  int  upper  trim  items"
    ),
}
_METHODS = {
    "string": choices(
        r"""strip()  strip('a ')  lstrip('\n')  rstrip()  upper()  lower()  title()  capitalize()  split()
        split(',')  split('</think>')  split('X', 1)  rsplit('X', 1)  split('')  startswith('a')  endswith('c')
        replace('a', '')  replace('', '-')  split(',')[-1]  format(1, 2)  startswith(('a', 'x'))  find('a')
        count('a')  join(['p', 'q'])  splitlines()  removeprefix('a')  replace('X', 'y', 1)  length
        slice(0, 3, 1)  slice(1, 2)"""
    ),
    "number": choices("real  bit_length()"),
    "list": choices(
        """append(9)  pop()  pop(0)  index(1)  count(1)  length  extend([1])  reverse()  insert(0, 5)  copy()
        slice(0, 2, 1)"""
    ),
    "dict": choices(
        """items()  keys()  values()  get('a')  get('zz')  get('zz', 'd')  get('role')  items  pop('a')  a  content
        role  update({'c': 3})  get('content', '')  setdefault('q', 1)  copy()  k.n  length  keys() | list"""
    ),
    "other": choices("x  get('x')  items()  strip()  __class__  first  index0"),
}
_COMMON = choices("~  +  ==  !=  and  or  in  not in  >  %")
_OPERATORS = [*_COMMON, *choices("-  *  /  <  <=  >=")]
_SLICES = choices(
    "[0]  [-1]  [1:]  [:-1]  [::-1]  [:1]  [::2]  [5]  ['a']  ['k']  [1:9]  [-2:]  [loop.index0]  [2:1]"
)
_OF_A_LOOP = choices(
    """x  x  loop.index  loop.index0  loop.first  loop.last  loop.length  loop.revindex  loop.previtem
    loop.nextitem  loop.cycle('a', 'b')  x ~ loop.index  loop.depth  x | tojson  loop.changed(x)  loop.revindex0"""
)


_DOUBTFUL = choices(
    """{{ 2 ** 3 }}  {{ 7 // 2 }}  {% raw %}{{ x }}{% endraw %}  {% with x = 1 %}{{ x }}{% endwith %}
    {%+ if 1 %}a{%+ endif %}  {{ 'a' is string | upper }}  {{ 1 is none.x }}  {% include 'x' %}
    {% block b %}x{% endblock %}  {{ x  {% if 1 %}a  }}  {% endif %}  {% for x in [1] %}{{ x }}
    {{ {'a': 1, 'b': } }}  {{ [1, 2,] }}  {{ (1,) }}  {{ 'a' 'b' }}  {{ 1_000 }}  {{ 1e3 }}  {{ .5 }}  {{ 5. }}
    {{ -x }}  {{ - 1 }}  {{ +1 }}  {{ a.b.c }}  {{ "\\x41\\u00e9\\t" }}  {{ 'a\\'b' }}  {% do x %}
    {% set x %}a{% endset %}{{ x }}  {% set x = 1, 2 %}{{ x }}  {% set a.b = 1 %}  {{ [x for x in [1]] }}
    {{ lambda x: x }}  {% for a, b in [[1, 2]] recursive %}{{ a }}{% endfor %}  {{ {} }}  {{ }}  {% %}  {# open
    {%- if 1 -%}a{%- elif -%}b{%- endif -%}  {% macro m(a=1, b) %}{% endmacro %}  {{ m(*[1]) }}
    {{ m(**{'a': 1}) }}  {{ 1 < 2 < 3 }}  {{ not not 1 }}  {{ 1 if 0 }}  {{ x[1:2, 3] }}  {{ x.1 }}  {{ 'é'.é }}
    {% elif 1 %}  {% else %}  {% if 1 %}{% else %}{% else %}{% endif %}  {{ a & b }}  {{ x|f|g(1)|h }}
    {{ "a" ~ 1 + 2 }}  {{ 1 ~ 2 * 3 }}  {% filter upper %}a{% endfilter %}  {% call m() %}a{% endcall %}
    {% autoescape true %}a{% endautoescape %}  {% import 'x' as y %}  {{ self }}  {{ true and }}  {{ x is not }}
    {% set true = 1 %}{{ true }}{{ True }}  {% for none in [1] %}{{ none }}{% endfor %}  {% set ns.a.b = 1 %}
    {% macro m(false=3) %}{{ false }}{% endmacro %}{{ m() }}  {% set if = 1 %}{{ if }}  {{ for }}
    {% set ns['a'] = 1 %}
    {% set 3 = 4 %}  {% set a, 'b' = [1, 2] %}{{ a }}  {% for 'a' in [1] %}{% endfor %}  {{ 'a'|upper(1)(2) }}
    {{ x[] }}
    {{ 'a'|upper().x }}  {{ [1, 2].1 }}  {{ [1, 2].'a' }}  {{ 'abc'[0:2:1:5] }}  {{ 'a' {# x #} }}  {% call(x) m(1) %}
    {% filter upper|lower %}aB{% endfilter %}  {{ 1 is divisibleby 1 }}  {{ 1 is odd is true }}  {{ 'a' is in ['a'] }}
    {% macro 3() %}{% endmacro %}  {% macro m(3) %}{% endmacro %}{{ m(1) }}
    {% set m = namespace() %}{% set m.x, b = 1, 2 %}
    {{ 'open }}"""
)


class RandomTemplates:
    """A source of templates."""

    def __init__(self, seed: str) -> None:
        self._dice = random.Random(f"{seed}/templates")

    def pieces(self) -> list[str]:
        """Pieces for a template: `PROBES`, or one time in ten a single one that llama.cpp may not be able to parse."""
        if self._chance(0.1):
            return [self._dice.choice(_DOUBTFUL)]
        return [self.piece() for _ in range(PROBES)]

    def template(self, pieces: Sequence[str]) -> str:
        """A template that renders chats, and one of the pieces where the keyword `probe` says which."""
        tests = "".join(
            f"{{%- {'elif' if number else 'if'} probe == {number} -%}}\n{piece}\n"
            for number, piece in enumerate(pieces)
        )
        head = "{%- set ns = namespace(found=false, n=0, s='') -%}\n"
        return f"{head}{tests}{{%- else -%}}\n{self._chat()}\n{{%- endif -%}}" if pieces else self._chat()

    def piece(self) -> str:
        """A random piece of a template."""
        return self._pick(
            (6, self._output),
            (2, self._condition),
            (2, self._loop),
            (2, self._set),
            (1, self._macro),
            (1, self._block),
        )

    def _pick(self, *choices: tuple[int, Callable[[], str]]) -> str:
        weights, makers = [weight for weight, _ in choices], [maker for _, maker in choices]
        return self._dice.choices(makers, weights)[0]()

    def _chance(self, probability: float) -> bool:
        return self._dice.random() < probability

    def _statement(self, inner: str) -> str:
        """A statement, with white space taken off on either side, or not."""
        left, right = self._dice.choice(("", "-", "-")), self._dice.choice(("", "-", "-"))
        return f"{{%{left} {inner} {right}%}}"

    def _print(self, expression: str) -> str:
        left, right = self._dice.choice(("", "-", "-")), self._dice.choice(("", "", "-"))
        return f"{{{{{left} {expression} {right}}}}}"

    def _space(self) -> str:
        return self._dice.choice(
            ("", "", " ", "\n", "  \n  ", "text ", "{# note #}", "\n{#- note -#}\n", "\t")
        )

    def _output(self) -> str:
        return self._space() + self._print(self.expression(3)) + self._space()

    def _set(self) -> str:
        form = self._dice.randrange(5)
        if form == 0:
            body = self._statement("set v") + self._output() + self._statement("endset")
            return body + self._print("v | tojson")
        if form == 1:
            return self._statement(f"set ns.s = {self.expression(2)}") + self._print("ns.s")
        if form == 2:
            return self._statement("set v, w = [1, " + self.expression(1) + "]") + self._print("w ~ v")
        return self._statement(f"set v = {self.expression(3)}") + self._print(
            self._dice.choice(("v", "v", "v | tojson", "v is defined", "v | string", "v | length"))
        )

    def _condition(self) -> str:
        parts = [self._statement(f"if {self.expression(2)}"), self._output()]
        if self._chance(0.4):
            parts += [self._statement(f"elif {self.expression(2)}"), self._output()]
        if self._chance(0.6):
            parts += [self._statement("else"), self._output()]
        return "".join(parts) + self._statement("endif")

    def _loop(self) -> str:
        names, source = self._dice.choice(
            (
                ("x", self._value("list")),
                ("x", self._value("list")),
                ("x", self._value("string")),
                ("x", self._value("dict")),
                ("k, x", self._value("dict") + ".items()"),
                ("k, x", self._value("dict") + " | items"),
                ("k, x", self._value("dict") + " | dictsort"),
                ("x", self.expression(2)),
            )
        )
        condition = (
            f" if {self._dice.choice(('x', 'x is string', 'x != 1', 'x is mapping', 'loop.first'))}"
            if self._chance(0.15)
            else ""
        )
        body = [self._space(), self._print(self._dice.choice(_OF_A_LOOP)), self._space()]
        if self._chance(0.3):
            body.append(self._statement("set ns.n = ns.n + 1"))
        if self._chance(0.1):
            leave = self._statement(self._dice.choice(("break", "continue")))
            body.insert(
                self._dice.randrange(3),
                self._statement("if loop.index0 == 1") + leave + self._statement("endif"),
            )
        if self._chance(0.15):
            body.append(self._output())
        if self._chance(0.2):
            body += [self._statement("else"), self._output()]
        whole = [self._statement(f"for {names} in {source}{condition}"), *body, self._statement("endfor")]
        return "".join(whole) + self._print(self._dice.choice(("ns.n", "'.'", "x", "loop")))

    def _macro(self) -> str:
        arguments = self._dice.choice(("x", "x, y=2", "x, y='d', z=none", "", "x=1"))
        body = self._space() + self._print(
            self._dice.choice(("x", "x ~ y", "y", "x | tojson", "ns.n", "messages | length"))
        )
        given = self._dice.choice(("", "1", "'a', 3", "x='k'", "'a', y=5", self.expression(1), "1, 2, 3, 4"))
        made = self._statement(f"macro m({arguments})") + body + self._statement("endmacro")
        shown = self._dice.choice(("m({})", "m({}) | upper", "m({}) ~ '!'", "m({}) | trim"))
        return made + self._print(shown.format(given))

    def _block(self) -> str:
        return self._dice.choice(
            (
                self._statement("filter upper") + self._output() + self._statement("endfilter"),
                self._statement("generation") + self._output() + self._statement("endgeneration"),
                self._statement("call m()") + "c" + self._statement("endcall"),
                self._print("raise_exception('No: ' ~ (" + self.expression(1) + "))"),
                self._print("strftime_now('%Y-%m-%d')"),
                self._print("strftime_now('%d %B %y %A %j')"),
                "{{ '{{' }} }} { % #} {%- if true %} x\n   {%- endif %}\n\n{% if 1 %}\ny{% endif %}\nz",
                "  {% if true %}\n  a\n  {% endif %}\n  b",
            )
        )

    def _value(self, kind: str) -> str:
        """An expression for a value that is most likely of a kind."""
        return self._dice.choice(_VALUES[kind])

    def expression(self, depth: int) -> str:
        """A random expression, with at most `depth` operations after each other."""
        kind = self._dice.choices(list(_FILTERS), (5, 3, 4, 4, 2))[0]
        made, simple = self._value(kind), kind != "number"
        for _ in range(self._dice.randrange(depth + 1)):
            made, simple = self._operation(made if simple else f"({made})", kind, depth)
            kind = kind if self._chance(0.5) else self._dice.choice(list(_FILTERS))
        return made

    def _operation(self, made: str, kind: str, depth: int) -> tuple[str, bool]:
        """An operation on an expression, and whether another can stand behind it without parentheses."""
        choose, form = self._dice.choice, self._dice.randrange(16)
        if form < 5:
            return f"{made} | {choose(_FILTERS[kind])}", False
        if form < 8:
            member = choose(_METHODS[kind])
            return f"{made}.{member}", "|" not in member
        if form < 10:
            return f"{made}{choose(_SLICES)}", True
        if form < 11:
            return f"{made} is {choose(('', '', 'not '))}{choose(_TESTS)}", False
        if form < 12:
            return f"not {made}", False
        if form < 13:
            otherwise = self.expression(depth - 1) if depth > 1 else "none"
            return f"{made} if {self._value('other')} else {otherwise}", False
        other = self._value(kind) if self._chance(0.6) else self._value(choose(list(_FILTERS)))
        return f"{made} {choose(_COMMON if self._chance(0.6) else _OPERATORS)} {other}", False

    # ---- what renders a chat ------------------------------------------------------------------------

    def _marker(self) -> str:
        return self._dice.choice(_MARKERS)

    def _chat(self) -> str:
        """A loop over the messages, with what comes before and behind it."""
        parts = []
        if self._chance(0.3):
            parts.append(self._dice.choice(("{{ bos_token }}", "{{- bos_token -}}", "<s>")))
        source = "messages"
        if self._chance(0.4):
            parts.append(self._system())
            source = "rest"
        if self._chance(0.5):
            parts.append(self._tools())
        if self._chance(0.2):
            alternate = "(m.role == 'user') != (loop.index0 % 2 == 0)"
            check = (
                f"{{%- if {alternate} -%}}{{{{ raise_exception('roles must alternate') }}}}{{%- endif -%}}"
            )
            parts.append(f"{{%- for m in {source} -%}}{check}{{%- endfor -%}}")
        parts.append(f"{{%- for message in {source} -%}}{self._message()}{{%- endfor -%}}")
        thinking = (
            "{%- if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{%- endif %}"
        )
        prompt = self._marker() + "assistant" + self._marker() + (thinking if self._chance(0.3) else "")
        if self._chance(0.8):
            parts.append(f"{{%- if add_generation_prompt -%}}{prompt}{{%- endif -%}}")
        return "\n".join(parts)

    def _system(self) -> str:
        trim = self._dice.choice(("", " | trim", ".strip()"))
        default = self._dice.choice(("''", "'You are helpful.'"))
        return (
            "{%- if messages and messages[0]['role'] == 'system' -%}{%- set system = messages[0]['content']"
            + trim
            + " -%}{%- set rest = messages[1:] -%}{%- else -%}{%- set system = "
            + default
            + " -%}{%- set rest = messages -%}{%- endif -%}"
            + self._marker()
            + "{{ system }}"
        )

    def _tools(self) -> str:
        shown = self._dice.choice(
            ("tool | tojson", "tool | tojson(indent=2)", "tool.function | tojson", "tool.function.name")
        )
        return (
            "{%- if tools"
            + self._dice.choice(("", " is defined and tools", " is not none"))
            + " -%}<tools>{%- for tool in tools %}"
            + self._marker()
            + f"{{{{ {shown} }}}}"
            + "{%- endfor %}</tools>{%- endif -%}"
        )

    def _message(self) -> str:
        content = self._dice.choice(
            (
                "message['content']",
                "message.content | trim",
                "message.content or ''",
                "(message.content if message.content is string else message.content | map(attribute='text') | join)",
                "message.get('content', '') | default('', true)",
                "message.content.split('</think>')[-1].lstrip('\\n')",
            )
        )
        parts = [f"{self._marker()}{{{{ message.role }}}}{self._marker()}{{{{ {content} }}}}"]
        if self._chance(0.3):
            parts.insert(
                0,
                "{%- if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{%- endif %}",
            )
        if self._chance(0.6):
            before, behind = self._dice.choice(_AROUND_CALLS)
            parts.append(
                f"{{%- if message.tool_calls -%}}{before}{{%- for call in message.tool_calls %}}"
                + self._dice.choice(_CALLS)
                + f"{{%- endfor -%}}{behind}{{%- endif -%}}"
            )
        if self._chance(0.3):
            role = self._dice.choice(("'user'", "'assistant'", "'system'", "'tool'"))
            parts = [
                f"{{%- if message.role == {role} -%}}{self._marker()}{{{{ {content} }}}}{{%- else -%}}",
                *parts,
                "{%- endif -%}",
            ]
        return "".join(parts) + self._marker()
