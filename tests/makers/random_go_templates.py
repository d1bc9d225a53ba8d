"""Random Go templates with values or chats, in the forms that Ollama's models use. Everything follows from a seed."""

from __future__ import annotations

import random
from typing import Any

_TEXTS = (
    *("", "a", "user", "system", "<|end|>", " pad \n", "é🙂", "a<b>&c", '"q"\\'),
    *("\x00\x1f\x08\x0c", "\u2028", "12", "x\r\ny"),
)
_NUMBERS = (
    *(0, 1, 2, -3, 7, 0.5, -0.0, 1.5, 1e21, 1e-07, 123456789.0, 1e20, 2.5e-05, 1000000.0, 3.0),
    *(100000.0, 123456.5, 1e-06, 0.0001, 1e-05),
)
_SPACES = ["", "", " ", "\n", "  \n\t", "\r\n"]
_ROLES = ["system", "user", "assistant", "tool", "User", "other"]
_WORDS = ["name", "city", "b", "a", "Z", "é", "x y", "<k>"]
_FIELDS = (
    *("Role", "Content", "Thinking", "ToolCalls", "Function", "Name", "Arguments", "Index", "ID"),
    *("Type", "Items", "Description", "Parameters", "Properties", "Required", "Enum", "AnyOf"),
    *("Messages", "Tools", "System", "Prompt", "Response", "Suffix", "Think", "ThinkLevel"),
    *("IsThinkSet", "ToolName", "ToolCallID", "a", "b", "c", "d", "nope"),
)
_LITERALS = (
    *('"a"', '"user"', '""', "`r\\n`", '"\\u00e9\\x41\\n\\t"', "0", "1", "2", "-3", "1.5"),
    *("true", "false", "0x1F", '"%s|%s"', '"%d"', '"%v"', "1e3", ".5", '"\\\\ \\""', '"é"'),
)
_COMPARISONS = ("eq", "eq", "eq", "ne", "lt", "le", "gt", "ge")
_OF_ONE = ("json", "len", "json", "toTypeScriptType", "print")
_FORMATS = ('"%s"', '"%s\\n\\n%s"', '"%d"', '"%v-%v"', '"%t%%"', '"x"', '"%é"', '"%"')
_PIPED = ("json", "len", "not", "print", 'printf "%v"', 'printf "%s."', "eq 1", "index . ", "slice")
_TOOLS = (
    "{{ range .Tools }}{{ . }}{{ .Function }}{{ .Function.Name }}"
    "{{ range $n, $p := .Function.Parameters.Properties }}{{ $n }}: {{ $p.Type }} {{ toTypeScriptType $p }} "
    "{{ $p.Description }}{{ $p.Enum }}{{ json $p }}{{ end }}{{ end }}"
)
_CALLS = "{{ range .ToolCalls }}{{ .Function.Name }}({{ .Function.Arguments }}){{ json . }}{{ end }}"


class RandomGoTemplates:
    """Cases: a template, and its `data` or its `chat`."""

    def __init__(self, seed: str) -> None:
        self._dice = random.Random(seed)
        self._names: list[str] = []
        self._loops = 0
        self._defined: list[str] = []

    def case(self) -> dict[str, Any]:
        """A case as `scripts/go_template/main.go` reads it."""
        dice = self._dice
        self._names, self._loops, self._defined = ["$"], 0, []
        kind = dice.random()
        if kind < 0.35:
            return {"template": self._template(), "data": self._data()}
        source = self._template() if kind < 0.55 else self._of_messages() if kind < 0.8 else self._of_turns()
        return {"template": source, "chat": self.chat()}

    def _template(self) -> str:
        dice = self._dice
        defined = ""
        for name in ("t", "u")[: dice.choice((0, 0, 0, 1, 2))]:
            self._names, self._loops = ["$"], 0
            defined += f'{{{{{self._open()}define "{name}"{self._close()}}}}}{self._body(2)}{self._end()}'
            self._defined.append(name)
        self._names = ["$"]
        return defined + self._body(3)

    def _open(self) -> str:
        return self._dice.choice(("", "", " ", "- ", "-\n"))

    def _close(self) -> str:
        return self._dice.choice(("", "", " ", " -", "\t-"))

    def _action(self, inside: str) -> str:
        return f"{{{{{self._open()}{inside}{self._close()}}}}}"

    def _end(self) -> str:
        return self._action("end")

    def _body(self, depth: int) -> str:
        return "".join(self._node(depth) for _ in range(self._dice.randint(1, 4)))

    def _text(self) -> str:
        dice = self._dice
        return (
            dice.choice(_SPACES)
            + dice.choice(("", "x", "<|im|>", "é", "{", "}", "a b"))
            + dice.choice(_SPACES)
        )

    def _node(self, depth: int) -> str:
        dice = self._dice
        kind = dice.random()
        if kind < 0.2 or depth <= 0:
            return self._text()
        if kind < 0.48:
            return self._action(self._pipe())
        if kind < 0.55:
            name = dice.choice(("$x", "$y", "$z", "$é"))
            known = name in self._names
            source = self._action(f"{name} {'=' if known and dice.random() < 0.6 else ':='} {self._pipe()}")
            self._names.append(name)
            return source
        if kind < 0.58:
            return self._action("/* a comment {{ . }} */") if dice.random() < 0.7 else "{{/* c */ -}}"
        if kind < 0.61 and self._loops:
            word = dice.choice(("break", "continue"))
            return f"{self._action(f'if {self._pipe()}')}{self._action(word)}{self._end()}"
        if kind < 0.65 and (self._defined or dice.random() < 0.1):
            name = dice.choice(self._defined or ["missing"])
            return self._action(f'template "{name}" {self._pipe() if dice.random() < 0.8 else ""}')
        if kind < 0.67:
            outer, self._names, loops, self._loops = self._names, ["$"], self._loops, 0
            body = self._body(depth - 1)
            self._names, self._loops = outer, loops
            return (
                f'{self._action(f"""block "b{dice.randint(0, 9999)}" {self._pipe()}""")}{body}{self._end()}'
            )
        return self._branch(depth)

    def _branch(self, depth: int) -> str:
        dice, outer = self._dice, list(self._names)
        word = dice.choice(("if", "if", "range", "range", "with"))
        head = self._pipe()
        if word == "range":
            head = dice.choice(
                (
                    head,
                    head,
                    ".Messages",
                    ".Tools",
                    ".ToolCalls",
                    ".a",
                    "$.Messages",
                    "$.a",
                    ".Function.Arguments",
                )
            )
            names = dice.choice(((), (), ("$m",), ("$i", "$m"), ("$k", "$v"), ("$i", "$_")))
        else:
            names = dice.choice(((), (), (), ("$w",)))
        self._names += names
        self._loops += word == "range"
        source = self._action(f"{word} {', '.join(names) + ' := ' if names else ''}{head}") + self._body(
            depth - 1
        )
        self._loops -= word == "range"
        while word == "if" and dice.random() < 0.3:
            source += self._action(f"else if {self._pipe()}") + self._body(depth - 1)
        if dice.random() < 0.4:
            source += self._action("else") + self._body(depth - 1)
        self._names = outer
        return source + self._end()

    def _pipe(self, depth: int = 2) -> str:
        dice = self._dice
        source = self._command(depth)
        while dice.random() < 0.12:
            source += " | " + dice.choice(_PIPED)
        return source

    def _command(self, depth: int) -> str:
        dice = self._dice
        kind = dice.random()
        if kind < 0.45 or depth <= 0:
            return self._operand(depth)
        one, two = self._operand(depth - 1), self._operand(depth - 1)
        if kind < 0.6:
            left = dice.choice((one, ".Role", ".Role", "$i", f"(len {one})"))
            right = dice.choice((two, '"user"', "1", '"system" "tool"'))
            return f"{dice.choice(_COMPARISONS)} {left} {right}"
        if kind < 0.72:
            more = [self._operand(depth - 1) for _ in range(dice.randint(0, 2))]
            return " ".join((dice.choice(("and", "or")), one, *more))
        if kind < 0.78:
            return f"not {one}"
        if kind < 0.84:
            return f"{dice.choice(_OF_ONE)} {one}"
        if kind < 0.9:
            value = dice.choice((one, ".Messages", "$.Messages", ".a", "$.a"))
            place = dice.choice(("0", "1", "2", "$i", two, "0 1", '"a"'))
            return f"{dice.choice(('index', 'slice'))} {value} {place}"
        if kind < 0.96:
            return f"printf {dice.choice(_FORMATS)} {one} {dice.choice(('', two))}"
        return f"print {one} {two}"

    def _operand(self, depth: int) -> str:
        dice = self._dice
        kind = dice.random()
        if kind < 0.12:
            return "."
        if kind < 0.55:
            fields = [dice.choice(_FIELDS) for _ in range(dice.choice((1, 1, 1, 1, 2, 3)))]
            if fields[0] == "Function" and dice.random() < 0.8:
                fields[1:] = [
                    dice.choice(("Name", "Arguments", "Parameters", "Parameters.Properties", "Description"))
                ]
            return dice.choice(("", "", "$")) + "." + ".".join(fields)
        if kind < 0.7:
            name = (
                dice.choice((*self._names, *self._names, "$none"))
                if dice.random() < 0.1
                else dice.choice(self._names)
            )
            return name + dice.choice(("", "", "", ".Content", ".a", ".Type", ".Function.Name"))
        if kind < 0.88 or depth <= 0:
            return (
                dice.choice(_LITERALS)
                if dice.random() < 0.95
                else dice.choice(("nil", "currentDate", "'", "@", '"'))
            )
        return f"({self._pipe(depth - 1)}){dice.choice(('', '', '', '.Content', '.a'))}"

    def _of_messages(self) -> str:
        """A template of the common form: a loop over the messages with a branch for each role."""
        dice = self._dice
        self._names += ["$i", "$m", "$system"]
        body = ""
        for word, role in zip(
            ("if", "else if", "else if", "else if"), dice.sample(_ROLES, dice.randint(1, 4))
        ):
            extra = dice.choice(
                ("", "{{ $.System }}", "{{ json .ToolCalls }}", "{{ .Thinking }}", self._text())
            )
            body += (
                self._action(f'{word} eq .Role "{role}"')
                + f"<{role}>{{{{ .Content }}}}{extra}{dice.choice(('', _CALLS))}"
            )
        body += self._end() if body else ""
        last = "{{- $last := eq (len (slice $.Messages $i)) 1 }}{{ if $last }}<assistant>{{ end }}"
        head = dice.choice(
            (
                "",
                "",
                f"{{{{ if .Tools }}}}{_TOOLS}{{{{ .Tools }}}}{{{{ end }}}}",
                "{{ json .Tools }}{{ .Tools }}",
            )
        )
        loop = (
            self._action("range $i, $m := .Messages")
            + body
            + dice.choice(("", last, self._node(2)))
            + self._end()
        )
        think = "{{ if and .IsThinkSet .Think (not .ThinkLevel) }}/think{{ else }}{{ .ThinkLevel }}{{ end }}"
        return (
            head + dice.choice(("", '{{ $system := "" }}')) + loop + dice.choice(("", think, "<assistant>"))
        )

    def _of_turns(self) -> str:
        """A template of the older kind."""
        dice = self._dice
        parts = [
            "{{ if .System }}<s>{{ .System }}{{ end }}",
            dice.choice(("{{ .Prompt }}", "{{ if .Prompt }}<u>{{ .Prompt }} {{ end }}")),
            dice.choice(
                (
                    "<a>{{ .Response }}</a>",
                    "{{ .Response }}",
                    "",
                    "{{ if .Response }}<r>{{ .Response }}{{ end }}",
                )
            ),
            dice.choice(
                (
                    "",
                    "{{ print .Response .Think }}",
                    "</e>",
                    "{{ with .Prompt }}{{ else }}x{{ end }}",
                    self._text(),
                )
            ),
        ]
        if dice.random() < 0.3:
            parts.insert(dice.randint(0, 4), self._node(2))
        if dice.random() < 0.1:
            parts.append("{{ if .Suffix }}<fim>{{ .Prompt }}<hole>{{ .Suffix }}{{ end }}")
        return "".join(parts)

    def _data(self) -> dict[str, Any]:
        return {
            name: self._value(2)
            for name in ("a", "b", "c", "Role", "Content", "Messages")
            if self._dice.random() < 0.8
        }

    def _value(self, depth: int) -> Any:
        dice = self._dice
        kind = dice.random()
        if kind < 0.35 or depth <= 0:
            return dice.choice(
                (dice.choice(_TEXTS), dice.choice(_NUMBERS), True, False, None, dice.choice(_TEXTS))
            )
        if kind < 0.7:
            return [self._value(depth - 1) for _ in range(dice.randint(0, 3))]
        return {
            dice.choice((*_WORDS, "Role", "Content", "a", "b")): self._value(depth - 1)
            for _ in range(dice.randint(0, 3))
        }

    def chat(self) -> dict[str, Any]:
        """A chat in the form of Ollama's API."""
        dice = self._dice
        found: dict[str, Any] = {"messages": [self._message() for _ in range(dice.randint(0, 5))]}
        if dice.random() < 0.5:
            found["tools"] = [self._tool() for _ in range(dice.randint(0, 2))]
        if dice.random() < 0.5:
            found["think"] = dice.choice((True, False, "low", "high", "max"))
        if dice.random() < 0.1:
            found |= {"prompt": dice.choice(_TEXTS), "suffix": dice.choice(_TEXTS)}
        return found

    def _message(self) -> dict[str, Any]:
        dice = self._dice
        found: dict[str, Any] = {
            "role": dice.choice(_ROLES[: dice.choice((3, 3, 6))]),
            "content": dice.choice(_TEXTS),
        }
        if dice.random() < 0.2:
            found["thinking"] = dice.choice(_TEXTS)
        if dice.random() < 0.3:
            found["tool_calls"] = [
                {
                    **({"id": dice.choice(_TEXTS)} if dice.random() < 0.3 else {}),
                    "function": {
                        "name": dice.choice(_WORDS),
                        **({"index": dice.randint(0, 3)} if dice.random() < 0.3 else {}),
                        **({"arguments": self._arguments()} if dice.random() < 0.9 else {}),
                    },
                }
                for _ in range(dice.randint(1, 2))
            ]
        if dice.random() < 0.2:
            found |= {"tool_name": dice.choice(_WORDS), "tool_call_id": dice.choice(_TEXTS)}
        return found

    def _arguments(self) -> dict[str, Any]:
        return {self._dice.choice(_WORDS): self._value(2) for _ in range(self._dice.randint(0, 3))}

    def _tool(self) -> dict[str, Any]:
        dice = self._dice
        parameters: dict[str, Any] = {"type": "object"}
        if dice.random() < 0.9:
            parameters["properties"] = {
                dice.choice(_WORDS): self._property(2) for _ in range(dice.randint(0, 3))
            }
        if dice.random() < 0.5:
            parameters["required"] = dice.sample(_WORDS, dice.randint(0, 2))
        if dice.random() < 0.1:
            parameters |= {"$defs": self._value(2), "items": self._value(1)}
        function = {"name": dice.choice(_WORDS), "description": dice.choice(_TEXTS), "parameters": parameters}
        return {
            "type": "function",
            "function": function,
            **({"items": self._value(1)} if dice.random() < 0.1 else {}),
        }

    def _property(self, depth: int) -> dict[str, Any]:
        dice = self._dice
        kinds = ["string", "integer", "array", "object", "null", "boolean", "strange"]
        found: dict[str, Any] = {
            "type": dice.choice((dice.choice(kinds), dice.sample(kinds, dice.randint(0, 2))))
        }
        options = {
            "description": dice.choice(_TEXTS),
            "enum": [self._value(0) for _ in range(dice.randint(0, 2))],
            "items": self._value(1),
            "required": dice.sample(_WORDS, dice.randint(0, 2)),
        }
        found |= {name: value for name, value in options.items() if dice.random() < 0.3}
        if depth and dice.random() < 0.15:
            found["anyOf"] = [self._property(depth - 1) for _ in range(dice.randint(0, 2))]
        if depth and dice.random() < 0.15:
            found["properties"] = {
                dice.choice(_WORDS): self._property(depth - 1) for _ in range(dice.randint(0, 2))
            }
        return found
