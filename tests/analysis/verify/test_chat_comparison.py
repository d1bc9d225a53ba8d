"""Chats compared with what makes prompts: a real llama-server, another model, and a server that answers anything."""

from __future__ import annotations

import gzip
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2
from recorded_chats import VOCABULARY

from ggufbpe import Tokenizer, verify
from ggufbpe._util.extras import NotInstalledError
from ggufbpe.analysis.oracles.chat_answers import Refused, refusal
from ggufbpe.analysis.oracles.oracle import OracleError
from ggufbpe.analysis.oracles.recorded_ids import OtherModel
from ggufbpe.analysis.verify.chat_comparison import ChatResult
from ggufbpe.cli import main

pytestmark = [pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning"), pytest.mark.tries_fixes]

KEY = "tokenizer.chat_template"
USER = {"role": "user", "content": "What is 2 + 2?"}
SYSTEM = {"role": "system", "content": "Be terse."}
ANSWER = {"role": "assistant", "content": "Four."}
TOOLS = [{"type": "function", "function": {"name": "f", "description": "", "parameters": {}}}]
CHATS: list[Any] = [
    [USER],
    [SYSTEM, USER, ANSWER, USER],
    {"messages": [USER, ANSWER]},
    {"messages": [USER], "add_generation_prompt": False},
    [{"role": "user"}],  # which both refuse
]
BRACKETS = "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}"


@pytest.fixture(scope="module")
def gpt2() -> Tokenizer:
    return Tokenizer.from_gguf(GPT2)


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.from_gguf(VOCABULARY)


def compared(model: Tokenizer, against: Any, chats: Any, **more: Any) -> ChatResult:
    found = verify(model, against, chats=chats, **more).chats
    assert found is not None
    return found


# ---- a real llama-server --------------------------------------------------------------------------------


def test_chats_are_llama_servers(server: str, gpt2: Tokenizer) -> None:
    result = verify(gpt2, f"server:{server}", chats=CHATS)
    assert result.same
    assert result.chats is not None
    assert (result.chats.chats, result.chats.refused, result.texts) == (5, 1, 4)


def test_another_template_than_llama_servers(server: str, gpt2: Tokenizer) -> None:
    """Which one that is, it says itself; the smallest chat has no more than it takes."""
    found = compared(gpt2, f"server:{server}", CHATS, chat_template=BRACKETS)
    [difference] = found.differences
    assert difference.smallest is not None
    assert (found.different, [cause.id for cause in difference.causes], difference.smallest.chat.body) == (
        4,
        ["template"],
        {"messages": []},
    )


# ---- another model --------------------------------------------------------------------------------------

CHANGED: dict[str, tuple[dict[str, Any], list[str], Any]] = {  # of the other file, kinds, the smallest chat
    "nothing": ({}, [], None),
    "a template": ({KEY: BRACKETS + "!"}, ["prompt"], {"messages": []}),
    "a template that refuses": (
        {
            KEY: BRACKETS.replace(
                "{{ m.content }}", "{% if '2' in m.content %}{{ raise_exception('2') }}{% endif %}"
            )
        },
        ["refused"],
        {"messages": [{"role": "user", "content": "2"}]},
    ),
    "a place in a template": (
        {KEY: BRACKETS.replace("m.content", "m.content.replace('+', '-')")},
        ["prompt"],
        {"messages": [{"role": "user", "content": "+"}]},
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_the_smallest_chat_that_differs(tok: Tokenizer, name: str) -> None:
    changes, kinds, smallest = CHANGED[name]
    one = tok.with_overrides({KEY: BRACKETS})
    found = compared(one, one.with_overrides(changes), [[SYSTEM, USER], {"messages": [USER], "tools": TOOLS}])
    assert [difference.kind for difference in found.differences] == kinds
    for difference in found.differences:
        assert difference.smallest is not None
        assert difference.smallest.chat.body == smallest


def test_ids_are_compared_where_prompts_are_the_same(tok: Tokenizer) -> None:
    """What differs in the ids is found as of any text, with its cause."""
    result = verify(tok, tok.with_overrides({"tokenizer.ggml.add_bos_token": False}), chats=[[USER]])
    assert result.chats is not None
    assert (result.chats.same, result.same) == (True, False)
    assert [cause.id for difference in result.differences for cause in difference.causes] == ["bos"]


def test_the_fix_of_another_files_template_is_of_files(tok: Tokenizer) -> None:
    [difference] = compared(tok, tok.with_overrides({KEY: BRACKETS}), [[USER]]).differences
    assert [(cause.id, "llama-server" in cause.fix) for cause in difference.causes] == [("template", False)]


class _Silent(OtherModel):
    """Does not say which template it runs."""

    def chat_templates(self) -> dict[str, str]:
        return {}


def test_causes_are_those_of_diagnose(tok: Tokenizer) -> None:
    template = "{% for m in messages %}{{ m.content }}{% endfor %}{% if enable_thinking %}<think>{% endif %}"
    one = tok.with_overrides({KEY: template})
    chats = [
        {"messages": [USER], "chat_template_kwargs": {"enable_thinking": value}} for value in (True, False)
    ]
    other = one.with_overrides({KEY: template.replace("if enable", "if not enable")})
    found = compared(one, _Silent(other), chats)
    assert [[cause.id for cause in each.causes] for each in found.differences] == [["thinking"], ["thinking"]]


# ---- a server that answers anything ---------------------------------------------------------------------


class _Fake(BaseHTTPRequestHandler):
    """Answers by path: what a test sets; a path that is not set is one the server does not have."""

    answers: dict[str, tuple[int, Any]]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        status, answer = self.answers.get(self.path, (404, {"error": {"message": "File Not Found"}}))
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def fake() -> Iterator[str]:
    listening = HTTPServer(("127.0.0.1", 0), _Fake)
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    yield f"server:127.0.0.1:{listening.server_port}"
    listening.shutdown()
    thread.join()
    listening.server_close()


PROMPT = "<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n<|im_start|>assistant\n"
COUNTS = "/v1/chat/completions/input_tokens"
ANSWERS: dict[str, tuple[dict[str, tuple[int, Any]], tuple[bool, list[str], list[str]]]] = {
    # what is answered to a chat: whether it is the same, kinds of differences, kinds of failures
    "the prompt": ({"/apply-template": (200, {"prompt": PROMPT}), COUNTS: (200, {})}, (True, [], [])),
    "another number": (
        {"/apply-template": (200, {"prompt": PROMPT}), COUNTS: (200, {"input_tokens": 7})},
        (False, ["number of tokens"], []),
    ),
    "another prompt": (
        {"/apply-template": (200, {"prompt": PROMPT + " "}), COUNTS: (200, {})},
        (False, ["prompt"], []),
    ),
    "a refusal": (
        {"/apply-template": (400, {"error": {"message": "no"}})},
        (False, ["refused"], []),
    ),
    "a refusal to count": (
        {"/apply-template": (200, {"prompt": PROMPT}), COUNTS: (500, {"error": {"message": "no"}})},
        (False, ["refused"], []),
    ),
    "no such path": ({}, (False, [], ["garbage"])),
    "no JSON": ({"/apply-template": (200, b"<html>")}, (False, [], ["garbage"])),
    "no prompt": ({"/apply-template": (200, {"prompt": 1})}, (False, [], ["garbage"])),
    "a server that still loads": (
        {"/apply-template": (503, {"error": {"message": "Loading model"}})},
        (False, [], ["garbage"]),
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_a_server_answers(fake: str, tok: Tokenizer, name: str) -> None:
    answers, expected = ANSWERS[name]
    ids = {"tokens": tok.encode(PROMPT)}
    _Fake.answers = {"/tokenize": (200, ids), **answers}
    found = compared(tok, fake, [[USER]])
    kinds = [difference.kind for difference in found.differences]
    assert (found.same, kinds, [failure.kind for failure, _ in found.failures]) == expected


def test_reasons_of_refusals(fake: str, tok: Tokenizer) -> None:
    """Refused by both is the same, whatever the reasons are; other ones are kept."""
    _Fake.answers = {
        "/tokenize": (200, {"tokens": []}),
        "/apply-template": (400, {"error": {"message": "for fun"}}),
    }
    found = compared(tok, fake, [[{"role": "user"}]])
    assert (found.same, found.refused, found.reasons) == (True, 1, 1)


REFUSALS = {
    "Expected 'messages' to be an array": Refused("Expected 'messages' to be an array"),
    "Unable to generate parser for this template. Automatic parser generation failed: \n------------\n"
    "While executing CallExpression at line 3, column 4 in source:\n...x\n    ^\nError: Jinja Exception: no": Refused(
        "Jinja Exception: no", 3
    ),
}


@pytest.mark.parametrize("message", REFUSALS)
def test_a_refusal_in_a_servers_words(message: str) -> None:
    assert refusal(message) == REFUSALS[message]


# ---- what is refused ------------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no maker of prompts": ({"against": [[1]]}, OracleError, "makes no prompts"),
    "no BOS": ({"add_special": False}, ValueError, "with special tokens added"),
    "no JSON": (
        {"chats": [[{"role": "user", "content": b"Hi"}]]},
        ValueError,
        "chat 0 cannot be written as JSON",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_compared(tok: Tokenizer, name: str) -> None:
    given, error, reason = WRONG[name]
    with pytest.raises(error, match=reason):
        verify(tok, **{"against": tok, "chats": [[USER]], **given})


def test_jinja2_is_missing(tok: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    fresh = tok.with_overrides({KEY: "never prepared before"})
    with pytest.raises(NotInstalledError, match=r"pip install 'ggufbpe\[chat\]'"):
        verify(fresh, fresh, chats=[[USER]])


# ---- the command ----------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "one.json").write_text(json.dumps([USER]))
    (tmp_path / "some.jsonl").write_text("".join(f"{json.dumps(chat)}\n" for chat in CHATS))
    (tmp_path / "some.jsonl.gz").write_bytes(gzip.compress((tmp_path / "some.jsonl").read_bytes()))
    (tmp_path / "bad.jsonl").write_text("[]\n\n{\n")
    (tmp_path / "brackets.jinja").write_text(BRACKETS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


OTHER = ["--against", str(VOCABULARY)]
COMMANDS: dict[str, tuple[list[str], int, str]] = {  # arguments, exit code, what is in the output
    "one": ([*OTHER, "--chat", "one.json"], 0, "the prompt of 1 chat is the same\n"),
    "some": (
        [*OTHER, "--chat", "some.jsonl"],
        0,
        "the prompts of 4 chats are the same\n  1 chat refused by both\n",
    ),
    "ids of prompts": ([*OTHER, "--chat", "some.jsonl"], 0, "the ids of the prompts are the same\n"),
    "a compressed file": ([*OTHER, "--chat", "some.jsonl.gz"], 0, "the prompts of 4 chats are the same\n"),
    "chats and a text": (
        [*OTHER, "--chat", "one.json", "-p", "Hi"],
        0,
        "the ids are the same\n  compared           2 texts  66 bytes",
    ),
    "another template": (
        [*OTHER, "--chat", "some.jsonl", "--chat-template-file", "brackets.jinja"],
        1,
        "4 of 5 chats differ\n",
    ),
    "the smallest chat": (
        [*OTHER, "--chat", "one.json", "--chat-template-file", "brackets.jinja"],
        1,
        '   smallest chat: {"messages": []}\n     at byte 0, of 0 and 22\n     ours    ∅\n',
    ),
    "as JSON": ([*OTHER, "--chat", "some.jsonl", "--json"], 0, '"refused_by_both": 1'),
    "a page": (
        [*OTHER, "--chat", "one.json", "--chat-template-file", "brackets.jinja", "--html", "-"],
        1,
        "<h3>Smallest chat that differs</h3>",
    ),
    "no maker of prompts": (
        ["--against", "xllamacpp", "--chat", "one.json"],
        2,
        "server:URL, another GGUF",
    ),
    "a bad line": ([*OTHER, "--chat", "bad.jsonl"], 2, "bad.jsonl, line 3 is not JSON"),
    "tools of no chat": ([*OTHER, "-p", "Hi", "--tools", "t.json"], 2, "needs a chat: give --chat FILE"),
    "no BOS": (
        [*OTHER, "--chat", "one.json", "--no-bos"],
        2,
        "special tokens are always added and parsed in chats",
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_command(files: Path, capfdbinary: pytest.CaptureFixture[bytes], name: str) -> None:
    arguments, status, expected = COMMANDS[name]
    assert main(["verify", "-m", str(VOCABULARY), *arguments]) == status
    printed = capfdbinary.readouterr()
    assert expected in (printed.err if status == 2 else printed.out).decode()
