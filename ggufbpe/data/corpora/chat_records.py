"""Makes messages of the records in which chats are published: each record is recognized by its fields.

| fields | messages |
| --- | --- |
| `chosen`, `rejected`, perhaps `prompt` | a preference pair: the chat with one of both answers |
| `messages` or `conversations` | a list of messages, OpenAI's or ShareGPT's (`from`, `value`) |
| `prompt`, `completion` | texts, which become a message of the user and one of the assistant, or lists of messages |
| `instruction`, `output`, perhaps `input` and `history` | Alpaca's: the user's message and the assistant's |

`system` and `tools` of a record go with any of them.

Sources: data_utils.py of TRL (which messages of a pair are its prompt); data/README.md of LLaMA-Factory (roles of
ShareGPT, `history`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from ..._util.errors import ChatError, printable

Preference = Literal["chosen", "rejected"]
PREFERENCES: tuple[Preference, ...] = get_args(Preference)
COLUMNS = (  # all that are read
    *PREFERENCES,
    "messages",
    "conversations",
    "prompt",
    "completion",
    "instruction",
    "input",
    "output",
    "history",
    "system",
    "tools",
    "label",
)
_TRAINED = ("weight", "train", "training")  # fields of a message that say whether it is trained on
_ROLES = {  # of ShareGPT
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "chatgpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "function_call": "assistant",
    "system": "system",
    "tool": "tool",
    "observation": "tool",
    "function_response": "tool",
}


class ChatRecord(NamedTuple):
    """A chat; what the assistant wrote from message number `answer` on is trained on, the rest is its prompt.

    Messages with `weight` 0 (OpenAI) or `train`/`training` false (axolotl) are not trained on.
    """

    messages: list[Any]
    tools: Any = None
    answer: int = 0

    @property
    def body(self) -> dict[str, Any]:
        """The body of a request."""
        return {"messages": self.messages, **({"tools": self.tools} if self.tools else {})}

    @property
    def left_out(self) -> frozenset[int]:
        """The numbers of messages that are not trained on. `ChatError` where a field says neither yes nor no."""
        return frozenset(
            number
            for number, message in enumerate(self.messages)
            if number < self.answer or (isinstance(message, dict) and not _is_trained_on(message, number))
        )


def chat_of_record(record: Mapping[str, Any], preference: Preference | None = None) -> ChatRecord:
    """Return the chat of a record; `preference` says which answer of a pair. `ValueError` if it has no known form.

    >>> chat_of_record({"instruction": "Add.", "input": "1, 2", "output": "3"}).messages
    [{'role': 'user', 'content': 'Add.\\n\\n1, 2'}, {'role': 'assistant', 'content': '3'}]
    >>> chat_of_record({"prompt": "Hi", "chosen": "Hello", "rejected": "Go"}, "rejected").messages
    [{'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Go'}]
    """
    given = {name: value for name, value in record.items() if value is not None}
    found = _chat(given, preference)
    messages, answer = found.messages, found.answer
    if system := given.get("system"):
        if not isinstance(system, str):
            raise ValueError("the field 'system' is not a text")
        if _role(messages[:1]) != "system":
            messages, answer = [{"role": "system", "content": system}, *messages], answer + bool(answer)
    tools = given.get("tools")
    return ChatRecord(
        messages, _parsed(tools, "tools") if isinstance(tools, str) and tools.strip() else tools, answer
    )


def is_chat_record(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the fields of a form in which chats are published.

    >>> is_chat_record({"messages": []}), is_chat_record({"body": "Hi"})
    (True, False)
    """
    return any(all(field in record for field in fields) for fields, _ in _FORMS)


def as_record(value: Any) -> Any:
    """Return a list of messages as the record of a chat; anything else is returned as it is.

    >>> as_record([{"role": "user", "content": "Hi"}])
    {'messages': [{'role': 'user', 'content': 'Hi'}]}
    """
    if not isinstance(value, list) or not value:
        return value
    is_chat = all(isinstance(each, dict) and "role" in each and not is_chat_record(each) for each in value)
    return {"messages": value} if is_chat else value


def chats_in(found: Any) -> list[Any]:
    """Return the chats in a file of JSON: each of an array of chats, or the one that the file is."""
    records = list(map(as_record, found)) if isinstance(found, list) else []
    are_chats = all(isinstance(each, dict) and is_chat_record(each) for each in records)
    return records if records and are_chats else [found]


def request_body_of(found: Any) -> Any:
    """Return the body of a request for a record in a published form; anything else is returned as it is.

    Fields that no form reads stay in the body. `ValueError` for a preference pair, which is two chats.

    >>> request_body_of({"conversations": [{"from": "human", "value": "Hi"}], "tool_choice": "none"})
    {'tool_choice': 'none', 'messages': [{'role': 'user', 'content': 'Hi'}]}
    >>> request_body_of([{"role": "user", "content": "Hi"}])
    [{'role': 'user', 'content': 'Hi'}]
    """
    if not isinstance(found, dict) or "messages" in found or not is_chat_record(found):
        return found
    if all(name in found for name in PREFERENCES):
        raise ValueError("a preference pair, which is two chats")
    others = {name: value for name, value in found.items() if name not in COLUMNS}
    return {**others, **chat_of_record(found).body}


def _chat(given: Mapping[str, Any], preference: Preference | None) -> ChatRecord:
    for fields, make in _FORMS:
        if all(field in given for field in fields):
            return _pair(given, preference) if make is None else make(given)
    there = ", ".join(printable(name, 40) for name in list(given)[:8])
    raise ValueError(
        "no known form of a chat: messages, conversations, prompt and completion, instruction and output, or chosen "
        f"and rejected; {f'its fields are {there}' if there else 'it has none of these fields'}"
    )


def _pair(given: Mapping[str, Any], preference: Preference | None) -> ChatRecord:
    """A preference pair. Both answers must be of the form, so that the rows of both stay side by side."""
    if preference is None:
        raise ValueError(
            "a preference pair; preference='chosen' or preference='rejected' says which answer to take"
        )
    answers = {name: given[name] for name in PREFERENCES}
    prompt = given.get("prompt")
    if all(isinstance(answer, list) for answer in answers.values()) and not isinstance(prompt, list):
        chats = {name: normalized_messages(answer, name) for name, answer in answers.items()}
        if not all(chats.values()):
            raise ValueError("a preference pair with no answer")
        if not prompt or any(_role(chat) != "assistant" for chat in chats.values()):  # the prompt is in both
            same = 0  # messages at the beginning of both
            for one, other in zip(chats["chosen"], chats["rejected"]):
                if one != other:
                    break
                same += 1
            chat = chats[preference]
            return ChatRecord(chat, answer=min(same, len(chat) - 1))
    if "prompt" not in given:
        raise ValueError("a preference pair of texts without a prompt")
    return {name: _answered(prompt, answers[name], name) for name in PREFERENCES}[preference]


def _answered(prompt: Any, answer: Any, name: str) -> ChatRecord:
    before = _text_or_messages(prompt, "prompt", "user")
    return ChatRecord(before + _text_or_messages(answer, name, "assistant"), answer=len(before))


def _completion(given: Mapping[str, Any]) -> ChatRecord:
    if isinstance(given.get("label"), (bool, int)):
        raise ValueError("a completion that is rated (label), not one to be learnt")
    return _answered(given["prompt"], given["completion"], "completion")


def _alpaca(given: Mapping[str, Any]) -> ChatRecord:
    parts = [_text(given, name) for name in ("instruction", "input")]
    messages = []
    history = given.get("history") or []
    for turn in history if isinstance(history, (list, tuple)) else [history]:
        if not (
            isinstance(turn, (list, tuple)) and len(turn) == 2 and all(isinstance(text, str) for text in turn)
        ):
            raise ValueError("the field 'history' is not a list of pairs of texts")
        messages += [{"role": "user", "content": turn[0]}, {"role": "assistant", "content": turn[1]}]
    question = {"role": "user", "content": "\n\n".join(part for part in parts if part)}
    return ChatRecord([*messages, question, {"role": "assistant", "content": _text(given, "output")}])


_FORMS: tuple[tuple[tuple[str, ...], Any], ...] = (
    (PREFERENCES, None),
    (("messages",), lambda given: ChatRecord(normalized_messages(given["messages"], "messages"))),
    (
        ("conversations",),
        lambda given: ChatRecord(normalized_messages(given["conversations"], "conversations")),
    ),
    (("prompt", "completion"), _completion),
    (("instruction", "output"), _alpaca),
)


def normalized_messages(value: Any, name: str) -> list[Any]:
    """Return the messages in a field, given as a list or as JSON, ShareGPT's as OpenAI's; `ValueError` if none."""
    if isinstance(value, (str, bytes)):
        value = _parsed(value, name)
    if not isinstance(value, list):
        raise ValueError(f"the column {printable(name)} has no chat, which is a list of messages")
    return [
        _message({key: part for key, part in message.items() if part is not None}, number)
        if isinstance(message, dict)
        else message
        for number, message in enumerate(value, 1)
    ]


def _message(message: dict[str, Any], number: int) -> dict[str, Any]:
    """A message without the keys that a table gives to all."""
    if "role" in message or not {"from", "value"} <= message.keys():
        return message
    role, text = message["from"], message["value"]
    kept = {name: message[name] for name in _TRAINED if message.get(name, 1) != 1}
    if not isinstance(role, str) or role.lower() not in _ROLES:
        raise ValueError(f"message {number} is from {printable(str(role), 40)}, which is no known role")
    if role.lower() == "function_call":
        return {"role": "assistant", "content": "", "tool_calls": _calls(text, number), **kept}
    return {"role": _ROLES[role.lower()], "content": text, **kept}


def _is_trained_on(message: dict[str, Any], number: int) -> bool:
    given = {name: message[name] for name in _TRAINED if message.get(name) is not None}
    for name, value in given.items():
        if value not in (0, 1):  # which false and true are equal to
            shown = json.dumps(value, default=str)[:40]
            raise ChatError(f"message {number + 1}: {name!r} is {shown}, not 0, 1, true or false")
    return all(given.values())


def _calls(text: Any, number: int) -> list[dict[str, Any]]:
    """The calls in a text: JSON of one or several, each with `name` and `arguments`."""
    try:
        found = json.loads(text)
        calls = found if isinstance(found, list) else [found]
        return [
            {"type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}} for c in calls
        ]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError(f"message {number} is no function call: JSON with a name and arguments") from None


def _text_or_messages(value: Any, name: str, role: str) -> list[Any]:
    if isinstance(value, list):
        return normalized_messages(value, name)
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    raise ValueError(f"the field {printable(name)} is neither a text nor a list of messages")


def _text(given: Mapping[str, Any], name: str) -> str:
    text = given.get(name, "")
    if not isinstance(text, str):
        raise ValueError(f"the field {printable(name)} is not a text")
    return text


def _parsed(value: str | bytes, name: str) -> Any:
    try:
        return json.loads(value)
    except RecursionError:
        raise ValueError(f"the column {printable(name)}: not JSON: nested too deep") from None
    except ValueError as error:
        raise ValueError(f"the column {printable(name)}: not JSON: {error}") from None


def _role(messages: list[Any]) -> Any:
    return messages[0].get("role") if messages and isinstance(messages[0], dict) else None
