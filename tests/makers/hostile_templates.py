"""Chat templates that cost as much as they can: each uses one operation again and again, on large values.

Each must end at a limit within moments. tests/chat/template/test_template_attacks.py runs them, and
scripts/attack_server.py sends them to a server.
"""

from __future__ import annotations


def again(body: str, before: str = "") -> str:
    """A template that repeats a body for ever."""
    return f"{before}{{% for i in range(1000000000) %}}{body}{{% endfor %}}"


def of_text(body: str, text: str = "'a' * 100000") -> str:
    """A template that does something with a long text `a` for ever."""
    return again(body, f"{{% set a = {text} %}}")


def of_array(body: str, items: str = "range(10000)") -> str:
    """A template that does something with a long array `l` for ever."""
    return again(body, f"{{% set l = {items} %}}")


def doubled(value: str, step: str, then: str, times: int = 40) -> str:
    """A template that doubles a value many times by way of references, and then reaches all of its members."""
    grown = f"{{% set ns.v = {step} %}}"
    return f"{{% set ns = namespace(v={value}) %}}{{% for i in range({times}) %}}{grown}{{% endfor %}}{then}"


_MINUS = "".join(f"{{% for {name} in [-1, -2] %}}" for name in "bcdefghijkmnopqr")
_COLLIDING = (
    "{% set l = [] %}"
    + _MINUS
    + "{% set _ = l.append(((b,c,d,e,f,g,h,i,j,k,m,n,o,p,q,r), 1)) %}"
    + "{% endfor %}" * 16
)
_NAMES = "".join(f"{{% set n{number} = {number} %}}" for number in range(1000))
_MACROS = "{%% macro m(n%s) %%}{%% if n %%}%s{%% endif %%}{%% endmacro %%}"
_MEMBERS = "".join(f"'k{number}': {number}, " for number in range(1000))

HOSTILE: dict[str, str] = {
    # calls and loops
    "a macro that calls itself twice": _MACROS % ("", "{{ m(n-1) }}{{ m(n-1) }}") + "{{ m(60) }}",
    "a macro with many arguments": again(
        "{{ m(" + ", ".join(f"a{number}=1" for number in range(200)) + ") }}",
        "{% macro m(" + ", ".join(f"a{number}=0" for number in range(200)) + ") %}{% endmacro %}",
    ),
    "a macro that carries texts": _MACROS % (", a", "{{ m(n-1, a ~ a) }}{{ m(n-1, a) }}")
    + "{{ m(60, 'abc') }}",
    "a caller in a caller": (
        "{% macro c(n) %}{% if n %}{% call c(n-1) %}{{ caller() }}{{ caller() }}{% endcall %}"
        "{% else %}{{ caller() }}{% endif %}{% endmacro %}{% call c(40) %}x{% endcall %}"
    ),
    "loops in loops": "{% for i in range(100000) %}" * 10 + "{% endfor %}" * 10,
    "a loop that does nothing": again(""),
    "a loop of assignments": again("{% set x = i + 1 %}" * 50),
    "a loop of comparisons": again("{% if i == 1 or i == 2 or i in [3, 4] %}{% endif %}" * 20),
    "a loop of filters": again("{{ i|string|trim|upper|lower|length }}" * 10),
    "a loop of tests": again("{% if i is divisibleby(3) and i is odd and i is number %}{% endif %}" * 10),
    "a loop that uses loop": again("{{ loop.index }}{{ loop.last }}{{ loop.previtem }}{% set x = loop %}"),
    "a loop with a filter": "{% for i in range(1000000000) if i < 0 %}{% endfor %}",
    "a loop with pairs": "{% set d = {"
    + _MEMBERS
    + "} %}"
    + again("{% for k, v in d.items() %}{% endfor %}"),
    "many names": _NAMES + again("{% for j in [1] %}{% for k in [1] %}{% endfor %}{% endfor %}"),
    "many names in macros": _NAMES + "{% macro m() %}{% endmacro %}" + again("{{ m() }}" * 10),
    "a date for ever": again("{{ strftime_now('%A %B %d %Y %H %M %S') }}" * 10),
    # references to one value
    "an array of itself": "{% set l = [] %}{% for i in range(60) %}{% set _ = l.append(l) %}{% endfor %}{{ l }}",
    "an array of itself as JSON": "{% set l = [] %}{% set _ = l.append(l) %}{% set _ = l.append(l) %}{{ l|tojson }}",
    "an array of itself, sorted": "{% set l = [] %}{% set _ = l.append(l) %}{% set _ = l.append(l) %}{{ l|sort }}",
    "arrays twice in arrays": doubled("['a']", "[ns.v, ns.v]", "{{ ns.v }}"),
    "arrays twice in arrays as JSON": doubled("['a']", "[ns.v, ns.v]", "{{ ns.v|tojson(indent=2) }}"),
    "arrays twice in arrays as strings": doubled("['a']", "[ns.v, ns.v]", "{{ ns.v|string }}"),
    **{
        f"arrays twice in arrays in {call}": doubled("['a']", "[ns.v, ns.v]", f"{{{{ {call} }}}}")
        for call in (
            "'a'.split(ns.v)",
            "'a'.strip(ns.v)",
            "[1, 2]|join(ns.v)",
            "[1]|selectattr('a', ns.v, 1)",
            "[1]|tojson(separators=[ns.v, ns.v])",
        )
    },
    "objects twice in objects": doubled("{}", "{'a': ns.v, 'b': ns.v}", "{{ ns.v|string }}"),
    "tuples twice in tuples as a key": doubled("('a', 'b')", "(ns.v, ns.v)", "{{ {}[ns.v] }}"),
    "methods twice in methods": doubled("['a']", "[ns.v.append, ns.v.append]", "{{ ns.v|string }}"),
    "an undefined value with a long name": (
        "{% set k = 'a' * 10000 %}{% set d = {} %}{{ [" + "d[k], " * 2000 + "1]|string }}"
    ),
    "large numbers written": (
        "{% set ns = namespace(v=10.0) %}{% for i in range(8) %}{% set ns.v = ns.v * ns.v %}{% endfor %}"
        + of_array("{{ l|join }}{{ l|string }}", "[" + "ns.v, " * 1000 + "1]")
    ),
    # growing
    "an array doubled": doubled("[1]", "ns.v + ns.v", ""),
    "a text doubled": doubled("'ab'", "ns.v + ns.v", ""),
    "a text doubled by a join": doubled("'ab'", "[ns.v, ns.v]|join(ns.v)", ""),
    "a text doubled by replace": doubled("'ab'", "ns.v|replace('a', ns.v)", ""),
    "a text doubled by format": doubled("'ab'", "'{}{}'.format(ns.v, ns.v)", ""),
    "a text a billion times": "{{ 'a' * 1000000000000 }}",
    "an output of all outputs": again(
        "{% set ns.v = ns.v ~ 'abc' %}", "{% set ns = namespace(v='a' * 1000000) %}"
    ),
    "outputs that are kept": again(
        "{% set ns.v = ns.v ~ 'abc' %}{% set _ = l.append(ns.v) %}",
        "{% set l = [] %}{% set ns = namespace(v='a' * 100000) %}",
    ),
    "texts that macros hold": (
        "{% macro m(n) %}{% set a = 'a' * 1000000 ~ n %}"
        "{% if n %}{{ m(n-1) }}{% endif %}{{ a }}{% endmacro %}{{ m(140) }}"
    ),
    "messages that grow": again("{% set _ = messages.append(messages) %}{% for m in messages %}{% endfor %}"),
    # long texts
    "a long text in upper case": of_text("{% set x = a|upper %}{% set x = a|lower %}"),
    "a long text beyond ASCII in upper case": of_text(
        "{% set x = a|upper %}{% set x = a|lower %}", "'é' * 50000"
    ),
    "a long text with capitals": of_text("{% set x = a|title %}{% set x = a|capitalize %}", "'ab ' * 30000"),
    "a long text searched": of_text("{% if 'aaaaaaaaab' in a %}{% endif %}"),
    "a text searched for a long one": of_text(
        "{% if b in a %}{% endif %}", "'a' * 2400 %}{% set b = 'a' * 600 ~ 'b' ~ 'a' * 600"
    ),
    "a long text split": of_text("{% set x = a.split('a') %}"),
    "a long text split from its end": of_text("{% set x = a.rsplit('ab') %}", "'aab' * 30000"),
    "a long text replaced": of_text("{% set x = a|replace('aa', 'b') %}"),
    "a long text with something everywhere": of_text("{% set x = a|replace('', 'b') %}"),
    "a long text stripped": of_text("{% set x = a.strip('ba') %}"),
    "a text stripped of a long one": of_text("{% set x = 'b'.strip(chars=a) %}"),
    "a text stripped of many characters": of_text("{% set x = 'x'.strip(a) %}"),
    "a long text sliced": of_text("{% set x = a[::-1] %}{% set x = a[1:] %}"),
    "a long text compared": of_text(
        "{% if a == b %}{% endif %}{% if a is gt b %}{% endif %}", "'a' * 100000 %}{% set b = 'a' * 100000"
    ),
    "a long text as a key": of_text(
        "{% set x = d[b] %}", "'a' * 100000 %}{% set b = 'a' * 100000 %}{% set d = dict([(a, 1)])"
    ),
    "a long text as a number": of_text("{{ a|int }}{{ a|float }}", "'1' * 100000"),
    "a long text as JSON": of_text("{% set x = a|tojson %}", "'\"\\n' * 50000"),
    "a long text beyond ASCII as JSON": of_text("{% set x = a|tojson(ensure_ascii=true) %}", "'é' * 50000"),
    "a long text indented": of_text("{% set x = a|indent(1, true, true) %}", "'\\n' * 50000"),
    "a long text formatted": of_text("{% set x = a.format(" + "1, " * 999 + "1) %}", "'{}' * 1000"),
    "a long text is lower": of_text("{% if a is lower %}{% endif %}"),
    "parts of a text that keeps them": of_text(
        "{% set x = a|replace('', 'b') %}{% set x = a.split('a') %}{{ ''|title }}"
    ),
    # long arrays
    "a long array sorted": of_array("{% set x = l|sort(reverse=true) %}"),
    "a long array of texts sorted": again(
        "{% set x = l|sort %}",
        "{% set l = [] %}{% set a = 'a' * 900 %}{% for i in range(1000) %}{% set _ = l.append(a ~ i) %}{% endfor %}",
    ),
    "a long array selected": of_array("{% set x = l|select('odd')|list %}"),
    "a long array of objects selected": of_array(
        "{% set x = l|selectattr('a', 'equalto', 1)|list %}", "[" + "{'a': 1}, " * 1000 + "{}]"
    ),
    "a long array mapped": of_array(
        "{% set x = l|map(attribute='a')|list %}", "[" + "{'a': 1}, " * 1000 + "{}]"
    ),
    "a long array joined": of_array("{% set x = l|join(', ') %}"),
    "a long array searched": of_array("{% if 10001 in l %}{% endif %}{% if 'a' in l %}{% endif %}"),
    "the greatest of a long array": of_array("{% set x = l|max %}"),
    "a long array copied": of_array("{% set x = l|list %}{% set x = l[::-1] %}{% set x = l|reverse %}"),
    "a long array from its start": again(
        "{% set _ = l.pop(0) %}{% set _ = l.append(1) %}", "{% set l = range(300000) %}"
    ),
    "a long array compared": of_array("{% if l == m %}{% endif %}", "range(10000) %}{% set m = range(10000)"),
    "long arrays made": again("{% set x = range(10000) %}"),
    "long arrays written down": again("{% set x = [" + "1, " * 5000 + "] %}"),
    # large objects
    "a large object copied": again("{% set x = dict(d) %}", "{% set d = {" + _MEMBERS + "} %}"),
    "a large object listed": again(
        "{% set x = d.items() %}{% set x = d.keys() %}{% set x = d.values() %}",
        "{% set d = {" + _MEMBERS + "} %}",
    ),
    "a large object sorted": again("{% set x = d|dictsort %}", "{% set d = {" + _MEMBERS + "} %}"),
    "a large object as JSON": again("{% set x = d|tojson %}", "{% set d = {" + _MEMBERS + "} %}"),
    "a large object as a string": again("{% set x = d|string %}", "{% set d = {" + _MEMBERS + "} %}"),
    "keys with one hash": _COLLIDING + "{% set d = dict(l) %}" + again("{% set d = dict(l) %}"),
    "a key with one hash, sought": _COLLIDING
    + "{% set d = dict(l[:2000]) %}"
    + again("{% if l[1999][0] in d %}{% endif %}"),
}
