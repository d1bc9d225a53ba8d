"""Random chats, as bodies of requests that llama-server takes for the most part. Everything follows from a seed."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from chat_kinds import BARE, CHATS, SEARCH, WEATHER, Json, answer, call, chat, message, text, tool

_NAMES = ["get_weather", "search", "now", "a.b", "Ünï", "f-1"]
_NUMBERS = [0, 1, -1, 42, 2**31, 2**53, 2**63 - 1, 1.0, 0.1, -2.5, 1e16, 1.5e-7, 100000.0, 1 / 3]
_KEYWORDS: dict[str, list[Any]] = {
    "enable_thinking": [True, False, False, None, 1],
    "thinking": [True, False],
    "preserve_reasoning": [True, False],
    "preserve_thinking": [True, False],
    "clear_thinking": [True, False],
    "reasoning_effort": ["low", "medium", "high", "none", "max"],
    "documents": [[], [{"title": "T", "text": "Body", "doc_id": 1}]],
    "date_string": ["26 Jul 2024"],
    "add_vision_id": [True],
    "custom": [None, 3, 2.5, "x", [1], {"b": 1, "a": [None]}],
    "keep_all_reasoning": [True],
    "builtin_tools": [["wikipedia"], []],
    "tools_in_user_message": [True, False],
    "system_prompt": ["Be brief."],
}


_NO_SCHEMAS: list[Any] = [
    {"type": "float"},
    "string",
    {"enum": []},
    {"properties": []},
    {"$ref": "#/a"},
    {"anyOf": {}},
]


def choices(table: str) -> list[str]:
    """The entries of a table, between which are two spaces or a line's end."""
    return re.split(r"\s{2,}|\n", table.strip())


_SPACES = ["", " ", " ", " ", "\n", "\n\n", "\t", "  ", "\r\n", "\u00a0", "\u3000", "\x0b", "\x85"]
_WORDS = choices(
    r"""Hi  Hello  there  what  is  2  +  2  ?  the  weather  in  Paris  é  ñ  日本語  🙂  "quoted"  it's  <b>  &amp;
    {{  {%  {#  #}  %}  }}  <|im_start|>  <|im_end|>  <think>  </think>  <tool_call>  </tool_call>  [INST]  [/INST]
    <s>  </s>  <|eot_id|>  <|channel|>  {"a": 1}  [1,2]  null  true  \\  \n  /  /think  /no_think  ```  **bold**  |  ~
    'x'  007  -1.5  1e3"""
)


def _goes_on(made: Json) -> bool:
    """Whether an answer is to go on, most likely."""
    last = made["messages"][-1:] if isinstance(made.get("messages"), list) else []
    return "continue_final_message" in made or any(
        isinstance(m, dict) and m.get("role") == "assistant" for m in last
    )


class RandomChats:
    """A source of requests."""

    def __init__(self, seed: str) -> None:
        self._dice = random.Random(f"{seed}/chats")

    def request(self, **keywords: Any) -> Json:
        """A body; the keywords get among its `chat_template_kwargs`."""
        chance, choose = self._chance, self._dice.choice
        if chance(0.1):
            made = dict(choose(list(CHATS.values())))
        else:
            made = chat(*self._messages())
            if chance(0.35):
                made["tools"] = [self._tool() for _ in range(choose((0, 1, 1, 2, 3)))]
                if chance(0.2):
                    made["tool_choice"] = choose(("auto", "none", "required"))
                if chance(0.2):
                    made["parallel_tool_calls"] = chance(0.5)
        if chance(0.15):
            made["add_generation_prompt"] = chance(0.2)
        if chance(0.05):
            made["continue_final_message"] = choose((True, False, "content", "reasoning_content"))
        if chance(0.1):
            made["reasoning_effort"] = choose(("low", "medium", "high", "none", ""))
        if chance(0.2 if _goes_on(made) else 0.04):
            made["response_format"] = {"type": choose(("json_object", "text"))}
        if chance(0.2 if _goes_on(made) else 0.04):
            made["reasoning_format"] = choose(("none", "auto", "deepseek"))
        for name in self._dice.sample(list(_KEYWORDS), k=choose((0, 0, 0, 1, 1, 2, 3))):
            keywords.setdefault(name, choose(_KEYWORDS[name]))
        if keywords and isinstance(made.get("chat_template_kwargs", {}), dict):
            made["chat_template_kwargs"] = made.get("chat_template_kwargs", {}) | keywords
        return made

    def text(self) -> str:
        """A short text of words that may mean something to a template, and of white space."""
        parts = []
        for _ in range(self._dice.choice((0, 1, 1, 2, 3, 5, 9))):
            parts += [self._dice.choice(_SPACES), self._dice.choice(_WORDS)]
        return "".join(parts) + self._dice.choice(_SPACES)

    def _chance(self, probability: float) -> bool:
        return self._dice.random() < probability

    def _messages(self) -> list[Json]:
        """Turns in the usual order, for the most part: a template refuses most others."""
        found: list[Json] = []
        if self._chance(0.4):
            role = "developer" if self._chance(0.15) else "system"
            found.append(message(role, self._content()))
        for _ in range(self._dice.choice((0, 1, 1, 1, 2, 2, 3, 5))):
            found.append(message("user", self._content()))
            if self._chance(0.3):
                found += self._calls()
            if self._chance(0.75):
                found.append(self._answer())
        if found and found[-1]["role"] == "assistant" and self._chance(0.75):
            found.append(message("user", self._content()))
        if self._chance(0.12):
            self._dice.shuffle(found)
        if found and self._chance(0.1):
            found.insert(self._dice.randrange(len(found)), self._odd())
        for turn in found:
            if self._chance(0.04):
                turn["name"] = self._dice.choice(("Ann", "bot", "", "Ünï"))
        return found

    def _content(self) -> Any:
        if self._chance(0.15):
            return [text(self.text()) for _ in range(self._dice.choice((0, 1, 1, 2, 3)))]
        return None if self._chance(0.02) else self.text()

    def _answer(self) -> Json:
        found = answer(self._content())
        if self._chance(0.25):
            found["reasoning_content"] = self.text()
        if self._chance(0.1):
            found["content"] = f"<think>{self.text()}</think>{self.text()}"
        return found

    def _calls(self) -> list[Json]:
        """An assistant's message that calls tools, and what these give back."""
        calls = [
            call(self._dice.choice(_NAMES), self._arguments(), f"call_{number}")
            for number in range(self._dice.choice((1, 1, 1, 2, 3)))
        ]
        asked = answer(self._dice.choice((None, "", self.text())), tool_calls=calls)
        if self._chance(0.3):
            asked["reasoning_content"] = self.text()
        results = []
        for one in calls:
            result = message("tool", self._dice.choice((self.text(), json.dumps(self._value(2)))))
            if self._chance(0.9):
                result["tool_call_id"] = one["id"]
            if self._chance(0.4):
                result["name"] = one["function"]["name"]
            if self._chance(0.95):
                results.append(result)
        if self._chance(0.1):
            del self._dice.choice(calls)["id"]
        return [asked, *results]

    def _arguments(self) -> Any:
        value = {self._dice.choice("abcdeé") + str(n): self._value(2) for n in range(self._dice.randrange(4))}
        if self._chance(0.04):
            return self._dice.choice(("", "Paris", "{", "[1]", "null", '"x"', "{}"))
        if self._chance(0.2):
            return value
        separators = self._dice.choice(((", ", ": "), (",", ":")))
        return json.dumps(value, ensure_ascii=self._chance(0.5), separators=separators)

    def _value(self, depth: int) -> Any:
        """A value of JSON."""
        dice = self._dice
        if depth and self._chance(0.3):
            if self._chance(0.5):
                return [self._value(depth - 1) for _ in range(dice.randrange(4))]
            names = [dice.choice(("b", "a", "C", "é", "x y", "")) for _ in range(dice.randrange(4))]
            return {name: self._value(depth - 1) for name in names}
        return dice.choice((None, True, False, self.text(), self.text(), dice.choice(_NUMBERS)))

    def _tool(self) -> Json:
        if self._chance(0.4):
            return self._dice.choice((WEATHER, SEARCH, BARE))
        properties = {
            self._dice.choice(("city", "n", "é", "a_b")) + str(number): self._property(1)
            for number in range(self._dice.randrange(4))
        }
        more: Json = {"required": list(properties)[:1]} if self._chance(0.6) else {}
        description = self.text() if self._chance(0.9) else None
        return tool(self._dice.choice(_NAMES), description, properties, **more)

    def _property(self, depth: int) -> Json:
        kinds: list[Any] = ["string", "integer", "number", "boolean", "array", "object", ["string", "null"]]
        found: Json = {"type": self._dice.choice(kinds)}
        if self._chance(0.02):
            return self._dice.choice(_NO_SCHEMAS)  # type: ignore[no-any-return]
        if self._chance(0.6):
            found["description"] = self.text()
        if found["type"] == "array" and depth and self._chance(0.8):
            found["items"] = self._property(depth - 1)
        if found["type"] == "object" and depth and self._chance(0.8):
            found["properties"] = {"inner": self._property(depth - 1)}
        if found["type"] == "string" and self._chance(0.3):
            found["enum"] = ["one", "two", self.text()]
        if self._chance(0.15):
            found["default"] = self._value(1)
        if self._chance(0.1):
            found["nullable"] = True
        return found

    def _odd(self) -> Any:
        """A message that few templates expect."""
        return self._dice.choice(
            (
                message("tool", self.text()),
                message("critic", self.text()),
                message("system", self.text()),
                message("assistant", self.text()),
                message("developer", self.text()),
                {"role": "user"},
                message("user", 7),
                message("user", [{"type": "text"}]),
            )
        )
