"""Records llama-server's answers to requests that need no inference, in fixtures/server/answers.json.

    python scripts/reference.py prepare --newer
    python tests/makers/record_server.py

Requests are in the tables below, by kind; `CHATS` are sent under each of `TEMPLATES`, `TEXTS` under the first. An
answer is [status, JSON], and of /props and /v1/models what the metadata says. The model is that of make_tiny_model.py
over the vocabulary of fixtures/chats.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from make_tiny_model import make_tiny_model
from record_chats import VOCABULARY, read_chats

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from chat_server import ChatServer
from reference import CHATS as CHATS_STATE
from reference import ROOT

ANSWERS = ROOT / "fixtures" / "server" / "answers.json"
TEMPLATES = "Qwen-Qwen3-0.6B", "google-gemma-2-2b-it", ""  # tools and reasoning; no system role; ChatML


class Request(NamedTuple):
    """A request; the body is bytes, or what JSON is made of."""

    path: str
    body: Any
    method: str = "POST"

    @property
    def data(self) -> bytes:
        """The bytes of the body."""
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.method == "GET" else json.dumps(self.body, ensure_ascii=False).encode()


_EMOJI = "者😀 naïve"

TEXTS: Mapping[str, Request] = {
    **{
        f"tokenize: {kind}": Request("/tokenize", body)
        for kind, body in {
            "text": {"content": "Hello world"},
            "empty": {"content": ""},
            "special tokens added": {"content": "Hello world", "add_special": True},
            "special tokens parsed": {"content": "Hello<|im_end|>"},
            "special tokens as text": {"content": "Hello<|im_end|>", "parse_special": False},
            "pieces": {"content": "Hello<|im_end|> world", "with_pieces": True, "add_special": True},
            "pieces that are bytes": {"content": _EMOJI, "with_pieces": True},
            "mixed": {"content": ["Hello", 1, 2, " world"], "add_special": True},
            "mixed, an id first": {"content": [1, "Hello"], "add_special": True},
            "mixed, two texts": {"content": ["Hello", "Hello"], "add_special": True},
            "numbers of all kinds": {
                "content": [2.7, True, -5.5, 4294967297, 2147483648, 2**64 - 1, 2**64, 1e30]
            },
            "ids that no token has": {"content": [-1, 99999999]},
            "pieces of ids that no token has": {"content": [-1], "with_pieces": True},
            "no content": {},
            "content of another name": {"text": "Hello"},
            "null": {"content": None},
            "a number": {"content": 5},
            "a truth": {"content": True},
            "an object": {"content": {"a": 1}},
            "null in an array": {"content": [None]},
            "an array in an array": {"content": [[1]]},
            "an empty array": {"content": []},
            "flags of other types": {
                "content": "Hello<|im_end|>",
                "add_special": 1,
                "parse_special": "false",
            },
            "flags that are null": {"content": "a", "add_special": None, "with_pieces": None},
            "an array as the body": ["content"],
            "a text as the body": "content",
            "null as the body": None,
            "no body": b"",
            "half a body": b'{"content"',
            "more than a body": b'{"content": "a"} x',
            "a zero byte behind the body": b'{"content": "a"}\0',
            "more behind a zero byte": b'{"content": "a"} \0x',
            "a zero byte in a text": b'{"content": "a\0"}',
            "a zero byte in place of a body": b"\0",
            "a lone surrogate": b'{"content": "\\ud800"}',
            "two surrogates": b'{"content": "\\ud83d\\ude00"}',
            "no UTF-8": b'{"content": "\xff"}',
            "a zero byte": {"content": "a\0b"},
            "no number": b'{"content": NaN}',
            "a number that is too large": b'{"content": 1e999}',
            "a mark of byte order": b'\xef\xbb\xbf{"content": "a"}',
            "a field twice": b'{"content": "a", "content": "b"}',
        }.items()
    },
    **{
        f"detokenize: {kind}": Request("/detokenize", body)
        for kind, body in {
            "ids": {"tokens": [39, 68, 75]},
            "special tokens": {"tokens": [1756, 39, 1757]},
            "half a character": {"tokens": [160, 239, 39]},
            "none": {"tokens": []},
            "no tokens": {},
            "an array as the body": [],
            "floats and truths": {"tokens": [39.9, True]},
            "a text": {"tokens": "a"},
            "null": {"tokens": None},
            "a number": {"tokens": 5},
            "an object": {"tokens": {"a": 39}},
            "texts": {"tokens": ["39"]},
            "null in it": {"tokens": [None]},
            "a negative id": {"tokens": [-1]},
            "an id that no token has": {"tokens": [99999999]},
        }.items()
    },
    "health": Request("/health", None, "GET"),
    "health of v1": Request("/v1/health", None, "GET"),
    "health, posted": Request("/health", {}),
    "tokenize, got": Request("/tokenize", None, "GET"),
    "an address that there is not": Request("/nothing", {}),
}

_USER = {"role": "user", "content": "What is 2 + 2?"}
_TOOL = {
    "type": "function",
    "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}},
}
_CALL = {"type": "function", "id": "c1", "function": {"name": "add", "arguments": '{"a": 2}'}}
_CHAT: Mapping[str, Any] = {
    "one message": {"messages": [_USER]},
    "system": {"messages": [{"role": "system", "content": "Be terse."}, _USER]},
    "tools": {"messages": [_USER], "tools": [_TOOL]},
    "a call": {
        "messages": [
            _USER,
            {"role": "assistant", "content": None, "tool_calls": [_CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "4"},
        ],
        "tools": [_TOOL],
    },
    "thinking off": {"messages": [_USER], "chat_template_kwargs": {"enable_thinking": False}},
    "no messages": {},
    "messages of another type": {"messages": "Hello"},
    "an array as the body": [],
    "an unknown role": {"messages": [{"role": "nobody", "content": "x"}]},
    "an image": {
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
    },
    "a wrong choice of tools": {"messages": [_USER], "tool_choice": "sometimes"},
}
_A_TOOL = {"name": "add", "description": "Adds.", "input_schema": {"type": "object"}}
_STAMPED = "x-anthropic-billing-header: cc_version=2; cch=a5145;You are terse."
_ANTHROPIC: Mapping[str, Any] = {
    "one message": {"model": "m", "messages": [_USER]},
    "system": {"system": "Be terse.", "messages": [_USER]},
    "system in blocks": {
        "system": [{"type": "text", "text": "Be "}, {"type": "x"}, {"type": "text", "text": "terse."}],
        "messages": [_USER],
    },
    "system of another type": {"system": 5, "messages": [_USER]},
    "a stamp of billing": {"system": _STAMPED, "messages": [_USER]},
    "a stamp of another length": {"system": _STAMPED.replace("a5145", "a51"), "messages": [_USER]},
    "blocks": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
        ]
    },
    "thinking": {
        "messages": [
            _USER,
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "4"}],
            },
            _USER,
        ]
    },
    "tools": {"messages": [_USER], "tools": [_A_TOOL], "tool_choice": {"type": "auto"}},
    "any tool": {"messages": [_USER], "tools": [_A_TOOL], "tool_choice": {"type": "any"}},
    "a call and its result": {
        "messages": [
            _USER,
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "So:"},
                    {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 2, "b": [1.5, "者"]}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "4"}]},
                    {"type": "text", "text": "Thanks."},
                ],
            },
        ],
        "tools": [_A_TOOL],
    },
    "results of several kinds": {
        "messages": [
            _USER,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "add"}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "4"},
                    {"type": "tool_result", "tool_use_id": "t2"},
                    {"type": "tool_result", "content": []},
                ],
            },
        ]
    },
    "an image": {
        "messages": [
            {"role": "user", "content": [{"type": "image", "source": {"type": "base64", "data": "aGk="}}]}
        ]
    },
    "an answer goes on": {"messages": [_USER, {"role": "assistant", "content": "It is"}]},
    "an answer without content": {"messages": [_USER, {"role": "assistant"}]},
    "a question without content": {"messages": [{"role": "user"}]},
    "content of another type": {"messages": [{"role": "user", "content": 5}]},
    "a message of another type": {"messages": ["Hello"]},
    "blocks of unknown types": {"messages": [{"role": "user", "content": [{"type": "x"}, 5]}, _USER]},
    "messages of another type": {"messages": "Hello"},
    "no messages": {},
    "an array as the body": [],
    "thinking off": {"messages": [_USER], "chat_template_kwargs": {"enable_thinking": False}},
    "limits and sampling": {"messages": [_USER], "max_tokens": 5, "stop_sequences": ["x"], "temperature": 0},
}
_R_TOOL = {"type": "function", "name": "add", "description": "Adds.", "parameters": {"type": "object"}}
_R_CALL = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 2}'}
_R_ANSWER = {
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "So:"}],
}
_R_THOUGHT = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
_RESPONSES: Mapping[str, Any] = {
    "a text": {"model": "m", "input": "What is 2 + 2?"},
    "instructions": {"input": "Hello", "instructions": "Be terse."},
    "instructions of another type": {"input": "Hello", "instructions": 5},
    "messages": {"input": [{"role": "developer", "content": "Be terse."}, _USER]},
    "parts": {
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}]
    },
    "an answer": {"input": [_USER, _R_ANSWER, _USER]},
    "an answer as text": {
        "input": [_USER, {"type": "message", "role": "assistant", "content": "So:"}, _USER]
    },
    "two answers": {"input": [_USER, _R_ANSWER, _R_ANSWER, _USER]},
    "a refusal": {
        "input": [
            _USER,
            {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            _USER,
        ]
    },
    "a call": {
        "input": [_USER, _R_CALL, {"type": "function_call_output", "call_id": "c1", "output": "4"}],
        "tools": [_R_TOOL, {"type": "web_search"}],
    },
    "an answer with calls": {
        "input": [
            _USER,
            _R_ANSWER,
            _R_CALL,
            {**_R_CALL, "call_id": "c2"},
            {
                "type": "function_call_output",
                "call_id": "c1",
                "output": [{"type": "input_text", "text": "4"}],
            },
            {"type": "function_call_output", "call_id": "c2", "output": "5"},
        ],
        "tools": [_R_TOOL],
    },
    "reasoning": {"input": [_USER, _R_THOUGHT, _R_ANSWER, _USER]},
    "reasoning behind an answer": {"input": [_USER, _R_ANSWER, _R_THOUGHT, _USER]},
    "reasoning without content": {"input": [_USER, {"type": "reasoning", "summary": []}]},
    "empty reasoning": {"input": [_USER, {"type": "reasoning", "summary": [], "content": []}]},
    "reasoning of another type": {"input": [_USER, {"type": "reasoning", "summary": [], "content": [5]}]},
    "an effort": {"input": "Hello", "reasoning": {"effort": "none"}, "max_output_tokens": 5},
    "no input": {},
    "input of another type": {"input": 5},
    "an item of another type": {"input": [5]},
    "an unknown item": {"input": [{"type": "x"}]},
    "an answer before": {"input": "Hello", "previous_response_id": "r1"},
    "a file": {"input": [{"role": "user", "content": [{"type": "input_file"}]}]},
    "an image": {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
    "an image without address": {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
    "a part without text": {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
    "an unknown part": {"input": [{"role": "user", "content": [{"type": "x"}]}]},
    "an unknown part of an answer": {"input": [{**_R_ANSWER, "content": [{"type": "x"}]}]},
    "tools of another type": {"input": "Hello", "tools": {}},
    "output of an unknown type": {
        "input": [{"type": "function_call_output", "call_id": "c", "output": [{"type": "x"}]}]
    },
    "output without a type": {"input": [{"type": "function_call_output", "call_id": "c", "output": [{}]}]},
    "an array as the body": [],
}
CHATS: Mapping[str, Request] = {
    f"{path}: {kind}": Request(path, body)
    for path, bodies in (
        ("/apply-template", _CHAT),
        ("/v1/chat/completions/input_tokens", _CHAT),
        ("/v1/messages/count_tokens", _ANTHROPIC),
        ("/v1/responses/input_tokens", _RESPONSES),
    )
    for kind, body in bodies.items()
}
_ABOUT: Mapping[str, Request] = {
    "props": Request("/props", None, "GET"),
    "models": Request("/v1/models", None, "GET"),
}


def requests() -> Iterator[tuple[str, str, Request]]:
    """(template, kind, request) of all that is recorded."""
    for template in TEMPLATES:
        for kind, request in {**(TEXTS if template == TEMPLATES[0] else {}), **CHATS, **_ABOUT}.items():
            yield template, kind, request


_KEPT = ("chat_template", "chat_template_caps", "bos_token", "eos_token", "modalities")  # of /props
_WEIGHED = ("n_params", "size", "ftype", "n_ctx")  # of a model: what its weights and the command line decide


def metadata_of(kind: str, answer: Any) -> Any:
    """What of an answer the metadata says."""
    if kind == "props":
        return {name: answer[name] for name in _KEPT}
    if kind == "models":
        return {name: value for name, value in answer["data"][0]["meta"].items() if name not in _WEIGHED}
    return answer


def answers(server: ChatServer, template: str) -> dict[str, list[Any]]:
    """What the server answers to the requests of a template, by kind."""
    refused = server.open(read_chats("templates")[template] or None)
    assert refused is None, refused
    found = {}
    for name, kind, request in requests():
        if name == template:
            status, answer = server.request(request.method, request.path, request.data)
            found[kind] = [status, metadata_of(kind, answer)]
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = make_tiny_model(Path(folder) / "tiny.gguf", VOCABULARY)
        with ChatServer(model) as server:
            found = {template: answers(server, template) for template in TEMPLATES}
    ANSWERS.parent.mkdir(exist_ok=True)
    text = json.dumps({"llama.cpp": CHATS_STATE, "answers": found}, ensure_ascii=False, indent=1)
    ANSWERS.write_text(text + "\n", "utf-8")
    print(f"{ANSWERS}: {sum(map(len, found.values()))} answers")


if __name__ == "__main__":
    main()
