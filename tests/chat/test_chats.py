"""Chats: the recorded answers of llama-server under all templates, and what the public face does with them."""

from __future__ import annotations

import inspect
import json
import pickle
import re
import sys
import threading
import time
import typing
import warnings
from collections import UserDict, UserList
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from conftest import GPT2, ROOT
from gguf import GGUFWriter
from recorded_chats import VOCABULARY, Chat, recorded_chats, template_names

from ggufbpe import ChatError, GGUFWarning, Tokenizer
from ggufbpe._util.extras import NotInstalledError
from ggufbpe.chat.bos_eos import BosEos
from ggufbpe.chat.chats import MOST_TEMPLATES, Chats, NoTemplateError, body_from_arguments, prompt_text
from ggufbpe.chat.known_templates import known_template, known_templates
from ggufbpe.chat.render import ChatTemplate
from ggufbpe.cli import main
from ggufbpe.gguf.metadata import Metadata
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models.chat_templates import chat_templates

USER = {"role": "user", "content": "What is 2 + 2?"}
ANSWER = {"role": "assistant", "content": "It is"}
KEY = "tokenizer.chat_template"
NOW = datetime(2024, 2, 29, 12, 30)

pytestmark = pytest.mark.filterwarnings(
    "ignore::ggufbpe.GGUFWarning"
)  # of markers that are no tokens of one model


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.from_gguf(VOCABULARY)


_WRAPPED = "Unable to generate parser for this template. Automatic parser generation failed: "
_WORDS_ABOUT_JSON = re.compile(r"(?<=arguments as JSON: ).*", re.DOTALL)  # ours are Python's
_WHERE = re.compile(r"\n------------\nWhile executing \w+ at line (\d+), .*\nError: (.*)", re.DOTALL)


def expected(chat: Chat) -> tuple[str, int | None]:
    """The prompt and the number of its tokens; of a refusal its reason, and the line of the template if it says one."""
    if chat.prompt is not None:
        return chat.prompt, chat.tokens
    found = _WHERE.search(chat.message)
    if found:
        return found[2], int(found[1])
    return _WORDS_ABOUT_JSON.sub("", chat.message), None


def answered(tok: Tokenizer, chat: Chat) -> tuple[str, int | None]:
    """The same of ours."""
    now = datetime.fromtimestamp(chat.now, timezone.utc)
    try:
        prompt = tok.chats.prompt(chat.request, chat.template, now)
    except ChatError as refusal:
        return _WORDS_ABOUT_JSON.sub("", refusal.reason.removeprefix(_WRAPPED)), refusal.line
    return prompt.decode(), len(tok.encode(prompt))


@pytest.mark.slow
@pytest.mark.parametrize("name", template_names())
def test_recorded_chats(tok: Tokenizer, name: str) -> None:
    """For every kind of chat the prompt and its tokens are llama-server's, or the reason and line of its refusal."""
    chats = list(recorded_chats(name))
    assert {chat.kind: answered(tok, chat) for chat in chats} == {chat.kind: expected(chat) for chat in chats}


# ---- the public face ----------------------------------------------------------------------------


def test_prompt_and_ids(tok: Tokenizer) -> None:
    prompt = tok.apply_chat_template([USER], tokenize=False)
    assert prompt == "<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n<|im_start|>assistant\n"
    assert tok.apply_chat_template([USER]) == tok.encode(prompt)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="typing.get_overloads is new in 3.11")
def test_types_of_ids_and_prompt_follow_from_tokenize() -> None:
    def shape(function: Any) -> list[tuple[str, Any]]:
        """The parameters but for those that decide what is returned, with their annotations and defaults."""
        parameters = inspect.signature(function).parameters.values()
        deciding = ("tokenize", "return_assistant_mask")
        return [(str(each), each.kind) for each in parameters if each.name not in deciding]

    overloads = typing.get_overloads(Tokenizer.apply_chat_template)
    assert {(each.__annotations__["tokenize"], each.__annotations__["return"]) for each in overloads} == {
        ("Literal[True]", "list[int]"),
        ("Literal[True]", "tuple[list[int], list[int]]"),
        ("Literal[False]", "str"),
        ("bool", "list[int] | str"),
    }
    for each in overloads:
        assert shape(each) == shape(Tokenizer.apply_chat_template)
    assert inspect.signature(overloads[0]).parameters["tokenize"].default is True


TOOLS = [{"type": "function", "function": {"name": "f"}}]

ARGUMENTS: dict[str, tuple[str, dict[str, Any], str]] = {  # a template, arguments, the prompt
    "generation prompt": ("{{ add_generation_prompt }}", {}, "True"),
    "no generation prompt": ("{{ add_generation_prompt }}", {"add_generation_prompt": False}, ""),
    "effort": ("{{ reasoning_effort }}", {"reasoning_effort": "low"}, "low"),
    "another argument": ("{{ colour }}", {"colour": "red"}, "red"),
    "arguments for the template": (
        "{{ colour }}",
        {"chat_template_kwargs": {"colour": "red", "unread": 1}},
        "red",
    ),
    "arguments in both ways": (
        "{{ colour }}{{ size }}",
        {"chat_template_kwargs": {"colour": "red"}, "size": 2},
        "red2",
    ),
    "kept reasoning": ("{{ preserve_thinking }}", {"preserve_reasoning": False}, "False"),
    "true, false and none": (
        "{{ true }}/{{ false }}/{{ none }}/{{ True }}/{{ None is none }}{{ 1 if true == 'yes' }}",
        {"true": "yes", "none": 5},
        "yes/False/5/True/True1",
    ),
    "date": ("{{ strftime_now('%d %b %Y %H:%M') }}", {"now": NOW}, "29 Feb 2024 12:30"),
    "date string": ("{{ date_string }}", {"now": NOW}, "29 Feb 2024"),
    "zone of a date without one": (
        "{{ strftime_now('%H %Z %z %s') }}",
        {"now": NOW},
        f"12 {time.strftime('%Z %z', time.localtime(NOW.timestamp()))} {NOW.timestamp():.0f}",
    ),
    "zone of a date": (
        "{{ strftime_now('%H %Z %z') }}",
        {"now": NOW.replace(tzinfo=timezone(timedelta(hours=-5), "EST"))},
        "12 EST -0500",
    ),
    "tools": ("{{ tools[0].function.name }}", {"tools": TOOLS}, "f"),
    "tools not to be called": (
        "{{ tools[0].function.name }}",
        {"tools": TOOLS, "tool_choice": "none"},
        "f",
    ),
    "a tuple of tools": ("{{ tools|length }}", {"tools": tuple(TOOLS)}, "1"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_reach_the_template(tok: Tokenizer, name: str) -> None:
    template, arguments, expected = ARGUMENTS[name]
    assert tok.apply_chat_template([USER], chat_template=template, tokenize=False, **arguments) == expected


UNKNOWN: dict[str, tuple[str, dict[str, Any], str]] = {  # a template, arguments, the end of the message
    "a slip": ("{{ messages }}", {"add_generation_promt": False}, "the nearest is 'add_generation_prompt'"),
    "of transformers": ("{{ messages }}", {"truncation": True, "max_length": 10}, "no argument 'truncation'"),
    "tensors": ("known:Qwen-Qwen3-0.6B", {"return_tensors": "pt"}, "no argument 'return_tensors'"),
    "what another template reads": ("known:chatml", {"enable_thinking": False}, "'enable_thinking'"),
    "a slip in what it reads": ("known:Qwen-Qwen3-0.6B", {"enable_thinkin": False}, "is 'enable_thinking'"),
    "a name that it sets": ("{% set colour = 1 %}{{ colour }}", {"colour": 2}, "no argument 'colour'"),
    "a name of a loop": ("{% for each in messages %}{{ each }}{% endfor %}", {"each": 2}, "no argument 'each'"),
    "a parameter": ("{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1) }}", {"a": 2}, "no argument 'a'"),
    "both ways": ("{{ a }}", {"a": 1, "chat_template_kwargs": {"a": 2}}, "'a' is given by name and in"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_argument_that_nothing_reads_is_a_type_error(tok: Tokenizer, name: str) -> None:
    template, arguments, message = UNKNOWN[name]
    with pytest.raises(TypeError, match=message):
        tok.apply_chat_template([USER], chat_template=template, **arguments)


READ: dict[str, tuple[str, set[str]]] = {  # a template, the names that it takes from its caller
    "a default": ("{% set a = a if a is defined else b %}{{ a }}", {"a", "b"}),
    "set in one branch": ("{% if a %}{% set b = 1 %}{% endif %}{{ b }}", {"a", "b"}),
    "set in both branches": ("{% if a %}{% set b = 1 %}{% else %}{% set b = 2 %}{% endif %}{{ b }}", {"a"}),
    "set in a branch alone": ("{% if a %}{% set b = 1 %}{{ b }}{% endif %}", {"a"}),
    "a loop": ("{% for b in a if b.c == d %}{{ loop.index }}{{ b }}{% endfor %}{{ b }}", {"a", "b", "d"}),
    "a macro": ("{% macro m(a, b=c) %}{{ a }}{{ d }}{% endmacro %}{{ m(e) }}", {"c", "d", "e"}),
    "a block": ("{% set a %}{{ b }}{% endset %}{{ a }}", {"b"}),
}


@pytest.mark.parametrize("name", READ)
def test_names_that_a_template_takes_from_its_caller(tok: Tokenizer, name: str) -> None:
    template, expected = READ[name]
    assert tok.chats.argument_names(template) == expected


def test_known_templates_are_taken_by_name(tok: Tokenizer) -> None:
    known = tok.apply_chat_template([USER], chat_template="known:Google-gemma-2-2b-it", tokenize=False)
    assert known == f"<start_of_turn>user\n{USER['content']}<end_of_turn>\n<start_of_turn>model\n"
    with pytest.raises(ValueError, match="no chat template named 'gemma2'; near: google-gemma-2-2b-it "):
        tok.apply_chat_template([USER], chat_template="known:gemma2")


NEAR = {  # what somebody may write, and the first of the names that are suggested
    "Meta Llama 3": "meta-llama-Llama-3.1-8B-Instruct",
    "Qwen/Qwen3-0.6B": "Qwen-Qwen3-0.6B",
    "chat-lm": "chatml",
    "qwen 2.5": "Qwen-Qwen2.5-7B-Instruct",
    "gpt-oss": "openai-gpt-oss-120b",
}


@pytest.mark.parametrize("name", NEAR)
def test_nearest_known_templates(name: str) -> None:
    with pytest.raises(ValueError, match=f"named '{name}'; near: {NEAR[name]}"):
        known_template(name)


def test_a_long_unknown_name_is_refused_at_once() -> None:
    """Only its beginning is compared: comparing all of it takes seconds, and a request may have megabytes."""
    known_templates()
    start = time.thread_time()
    with pytest.raises(ValueError, match=r"named 'chatmlaaa.*…'; near: "):
        known_template("chatml" + "a" * 400_000)
    assert time.thread_time() - start < 1


def test_a_model_without_a_template_warns_that_this_is_chatml(tok: Tokenizer) -> None:
    with pytest.warns(GGUFWarning, match="the model has no chat template, so this prompt is ChatML"):
        prompt = tok.apply_chat_template([USER])
    other = tok.with_overrides({KEY: "own"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for template in ("known:chatml", "chatml"):
            assert tok.apply_chat_template([USER], chat_template=template) == prompt
        other.apply_chat_template([USER])


def test_an_answer_that_comes_last_goes_on(tok: Tokenizer) -> None:
    prompt = tok.apply_chat_template([USER, ANSWER], tokenize=False)
    assert str(prompt).endswith("<|im_start|>assistant\nIt is")


def test_templates_of_a_file(tok: Tokenizer) -> None:
    assert (tok.chat_template, tok.chat_templates) == (None, {})
    changed = tok.with_overrides({KEY: "one"})
    assert (changed.chat_template, changed.chat_templates) == ("one", {"": "one"})
    assert changed.apply_chat_template([USER], tokenize=False) == "one"


# The pre-tokenizer and number of layers of a file, its template, and the one that llama-server takes.
MISTRALS: dict[str, tuple[str, int, str | None, str | None]] = {
    "Mistral-Small-2503": ("tekken", 40, None, "mistral-v7-tekken"),
    "another number of layers": ("tekken", 41, None, None),
    "another pre-tokenizer": ("qwen2", 40, None, None),
    "a template of its own": ("tekken", 40, "own", "own"),
}


@pytest.mark.parametrize("name", MISTRALS)
def test_a_template_that_one_model_does_not_have(tmp_path: Path, name: str) -> None:
    pre, layers, template, expected = MISTRALS[name]
    writer = GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_tokenizer_pre(pre)
    writer.add_block_count(layers)
    if template is not None:
        writer.add_chat_template(template)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with GGUFFile(tmp_path / "a.gguf") as file:
        assert chat_templates(Metadata(file)).get("") == expected


def test_a_template_stays_with_a_pickle(tok: Tokenizer) -> None:
    changed = tok.with_overrides({KEY: "{{ messages[0].content }}"})
    changed.apply_chat_template([USER])
    again: Tokenizer = pickle.loads(pickle.dumps(changed))
    assert again.apply_chat_template([USER], tokenize=False) == "What is 2 + 2?"


def test_chatml_by_name(tok: Tokenizer) -> None:
    changed = tok.with_overrides({KEY: "other"})
    assert changed.apply_chat_template([USER], chat_template="chatml") == tok.apply_chat_template([USER])


def test_refusals_are_value_errors_that_can_be_pickled(tok: Tokenizer) -> None:
    with pytest.raises(
        ValueError, match=r"^line 2 of the chat template: .*: Jinja Exception: no$"
    ) as refusal:
        tok.apply_chat_template([USER], chat_template="\n{{ raise_exception('no') }}")
    copied = pickle.loads(pickle.dumps(refusal.value))
    assert (copied.reason, copied.line) == (refusal.value.reason, 2)


def test_jinja2_is_missing(tok: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        NotInstalledError, match=r"a chat template takes the package jinja2: .*pip install 'ggufbpe\[chat\]'"
    ):
        tok.apply_chat_template([USER], chat_template="{# never prepared before #}")


def test_threads_share_a_template(tok: Tokenizer) -> None:
    expected = tok.apply_chat_template([USER])
    found: list[Any] = []
    shared = tok.with_overrides({KEY: None})
    threads = [
        threading.Thread(target=lambda: found.append(shared.apply_chat_template([USER]))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_named_template_for_tools(tok: Tokenizer) -> None:
    changed = tok.with_overrides({KEY: "plain", f"{KEY}.tool_use": "tools"})
    chats = [
        {},
        {"tools": TOOLS},
        {"chat_template": "tool_use"},
        {"chat_template": "{{ 'mine' }}", "tools": TOOLS},
    ]
    found = [changed.apply_chat_template([USER], tokenize=False, **more) for more in chats]  # type: ignore[arg-type]
    assert found == ["plain", "tools", "tools", "mine"]


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "a text": ("Hi", ChatError, "Expected 'messages' to be an array"),
    "none": (None, ChatError, "Expected 'messages' to be an array"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_chat(tok: Tokenizer, name: str) -> None:
    messages, error, reason = WRONG[name]
    with pytest.raises(error, match=reason):
        tok.apply_chat_template(messages)


# ---- the command --------------------------------------------------------------------------------

COMMANDS: dict[str, tuple[list[str], str]] = {  # arguments, what is printed
    "prompt": (["-p", "Hi"], "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"),
    "system": (
        ["-p", "Hi", "--system", "Be terse.", "--prompt"],
        "<|im_start|>system\nBe terse.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    ),
    "tokens by message": (
        ["-p", "Hi", "--by-message"],
        "tokens  share  of\n"
        "     1     7%  added by the tokenizer\n"
        "     4    29%  the template\n"
        "     4    29%  messages[0] user\n"
        "     5    36%  generation prompt\n"
        "    14         in all\n",
    ),
    "the prompt alone": (
        ["-p", "Hi", "--prompt", "--color", "always"],
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    ),
    "a file of messages": (
        ["messages.json"],
        "<|im_start|>user\nHo<|im_end|>\n<|im_start|>assistant\n",
    ),
    "a file of a request": (["request.json"], "<|im_start|>user\nHo<|im_end|>\n"),
    "template and tools": (
        ["messages.json", "--tools", "tools.json", "--chat-template-file", "template.jinja"],
        "f: Ho",
    ),
    "a template's text": (["messages.json", "--chat-template", "{{ messages[0].content }}"], "Ho"),
    "ChatML by name": (
        ["messages.json", "--chat-template", "known:chatml"],
        "<|im_start|>user\nHo<|im_end|>\n<|im_start|>assistant\n",
    ),
    "one of llama.cpp's templates": (
        ["messages.json", "--chat-template-file", "known:google-gemma-2-2b-it"],
        "<start_of_turn>user\nHo<end_of_turn>\n<start_of_turn>model\n",
    ),
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the command is given, to run it in."""
    chat = [{"role": "user", "content": "Ho"}]
    (tmp_path / "messages.json").write_text(json.dumps(chat))
    (tmp_path / "request.json").write_text(json.dumps({"messages": chat, "add_generation_prompt": False}))
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    (tmp_path / "empty.json").write_text("\n")
    (tmp_path / "latin.json").write_bytes(b'"\xe9t\xe9"')
    (tmp_path / "two.jsonl").write_text(f"{json.dumps(chat)}\n{json.dumps(chat)}\n")
    (tmp_path / "long.json").write_text(f'{{"messages": [], "seed": {"1" * 5000}}}')
    call = {"role": "assistant", "tool_calls": [{"id": 123456789012345678901234567890}]}
    (tmp_path / "shown.json").write_text(json.dumps([*chat, call]))
    (tmp_path / "template.jinja").write_text("{{ tools[0].function.name }}: {{ messages[0].content }}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_command(files: Path, capfdbinary: pytest.CaptureFixture[bytes], name: str) -> None:
    arguments, expected = COMMANDS[name]
    assert main(["chat", "-m", str(VOCABULARY), *arguments]) == 0
    assert capfdbinary.readouterr().out.decode() == expected


def test_command_in_colour(files: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Colour that is asked for shows who says what, as on a terminal, with the table of tokens."""
    main(["chat", "-m", str(VOCABULARY), "-p", "Hi", "--color", "always"])
    shown = capfdbinary.readouterr().out.decode()
    assert ("\x1b[36mHi\x1b[0m" in shown, shown.endswith("in all\n")) == (True, True)


def test_command_ids(files: Path, capfdbinary: pytest.CaptureFixture[bytes], tok: Tokenizer) -> None:
    ids = tok.apply_chat_template([{"role": "user", "content": "Hi"}])
    printed = []
    for flag in ("--ids", "--count", "--json"):
        main(["chat", "-m", str(VOCABULARY), "-p", "Hi", flag])
        printed.append(json.loads(capfdbinary.readouterr().out))
    of_chat = {key: printed[2][key] for key in ("prompt", "ids", "count")}
    assert [*printed[:2], of_chat] == [
        ids,
        len(ids),
        {"prompt": COMMANDS["prompt"][1], "ids": ids, "count": len(ids)},
    ]


def test_command_json_has_the_parts(files: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    main(
        [
            "chat",
            "-m",
            str(VOCABULARY),
            "-p",
            "Hi",
            "--chat-template-file",
            "template.jinja",
            "--tools",
            "tools.json",
            "--json",
        ]
    )
    printed = json.loads(capfdbinary.readouterr().out)
    assert printed["parts"] == [
        {"start": 0, "end": 1, "origin": "tool", "index": 0, "field": "f"},
        {"start": 1, "end": 3, "origin": "template"},
        {"start": 3, "end": 5, "origin": "message", "index": 0, "field": "content"},
    ]
    assert [row["tokens"] for row in printed["tokens_by_origin"]] == [
        1,
        2,
        1,
        1,
    ]  # ' H' begins in the template


def test_command_warns_of_injected_text(files: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    main(["chat", "-m", str(VOCABULARY), "-p", "<|im_end|>", "--count"])
    said = "messages[0].content: '<|im_end|>' of the user became the special token 1988"
    assert f"ggufbpe: warning: {said}" in capfdbinary.readouterr().err.decode().splitlines()


NOTES: dict[str, tuple[list[str], str]] = {
    "no template": (
        ["-p", "Hi"],
        "the model has no chat template; like llama-server, this uses ChatML",
    ),
    "a template": (["-p", "Hi", "--chat-template-file", "template.jinja"], ""),
    "tools not shown": (
        ["-p", "Hi", "--tools", "tools.json", "--chat-template-file", "plain.jinja"],
        "the template does not show the tools",
    ),
    "tools shown": (["-p", "Hi", "--tools", "tools.json", "--chat-template-file", "template.jinja"], ""),
}


@pytest.mark.parametrize("name", NOTES)
def test_command_says_what_is_not_in_the_prompt(
    files: Path, capfdbinary: pytest.CaptureFixture[bytes], name: str
) -> None:
    (files / "plain.jinja").write_text("{% for message in messages %}{{ message.content }}{% endfor %}")
    arguments, expected = NOTES[name]
    assert main(["chat", "-m", str(VOCABULARY), *arguments]) == 0
    said = [line for line in capfdbinary.readouterr().err.decode().splitlines() if "warning" not in line]
    assert said == [f"ggufbpe: {expected}"] * (expected != "")


REFUSED_COMMANDS: dict[str, tuple[list[str], str]] = {
    "nothing": ([], "give one chat: a FILE, -p TEXT or --stdin"),
    "both": (["messages.json", "-p", "Hi"], "give one chat"),
    "no JSON": (["template.jinja"], "template.jinja is not JSON"),
    "no UTF-8": (["latin.json"], "latin.json is not JSON: not UTF-8, invalid continuation byte at byte 1"),
    "an empty file": (["empty.json"], "empty.json is empty"),
    "several chats": (["two.jsonl"], "two.jsonl has 2 chats, one a line; this command takes one"),
    "a number beyond all": (["long.json"], "long.json is not JSON: number overflow parsing '1111"),
    "a number that is too long to be shown": (
        ["shown.json"],
        'Missing tool call type: {"id":1.2345678901234568e+29}',
    ),
    "what llama-server refuses": (["tools.json"], "All non-assistant messages must contain 'content'"),
    "no template of llama.cpp's": (
        ["messages.json", "--chat-template-file", "known:google-gemma-2-2b"],
        "no chat template named 'google-gemma-2-2b'; near: google-gemma-2-2b-it",
    ),
    "a text": (["Hello"], "Hello: No such file or directory; a message of the user is given as -p Hello"),
    "a part of a template's name": (
        ["messages.json", "--chat-template-file", "known:qwen3"],
        "no chat template named 'qwen3'; near: Qwen-Qwen3-0.6B, Qwen3-Coder, Qwen3.5-4B",
    ),
}


@pytest.mark.parametrize("name", REFUSED_COMMANDS)
def test_command_refuses(files: Path, capfdbinary: pytest.CaptureFixture[bytes], name: str) -> None:
    arguments, reason = REFUSED_COMMANDS[name]
    assert main(["chat", "-m", str(VOCABULARY), *arguments]) == 2
    assert reason in capfdbinary.readouterr().err.decode()


# ---- count --chat ---------------------------------------------------------------------------------------


@pytest.fixture
def chats(files: Path) -> Path:
    lines = [
        [{"role": "user", "content": "Hi"}],
        {"messages": [{"role": "user", "content": "Ho"}], "add_generation_prompt": False},
    ]
    (files / "chats.jsonl").write_text("\n\n".join(map(json.dumps, lines)))
    (files / "broken.jsonl").write_text(f"{json.dumps(lines[0])}\nnonsense\n[{{}}]\n{json.dumps(lines[1])}\n")
    (files / "folder").mkdir()
    (files / "folder" / "one.json").write_text(json.dumps(lines[0]))
    (files / "folder" / "notes.txt").write_text("no chat")
    return files


COUNTED: dict[str, tuple[list[str], list[int], list[str]]] = {  # arguments, tokens by file, errors
    "a file": (["messages.json"], [14], []),
    "a request": (["request.json"], [9], []),
    "a chat in each line": (["chats.jsonl"], [23], []),
    "several": (["messages.json", "chats.jsonl"], [14, 23], []),
    "a folder": (["folder"], [14], []),
    "lines that are no chats": (
        ["broken.jsonl", "messages.json"],
        [23, 14],
        ["left out: line 2: not JSON: Expecting value at line 1, column 1 (the first of 2 lines)"],
    ),
    "what is no JSON": (
        ["template.jinja", "messages.json"],
        [14],
        ["not JSON: Expecting property name enclosed in double quotes at line 1, column 2"],
    ),
    "what llama-server refuses": (["tools.json"], [], ["All non-assistant messages must contain 'content'"]),
    "another template, and tools": (
        ["messages.json", "--chat-template-file", "template.jinja", "--tools", "tools.json"],
        [5],
        [],
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_count_of_chats(chats: Path, capfdbinary: pytest.CaptureFixture[bytes], name: str) -> None:
    arguments, tokens, errors = COUNTED[name]
    template = [] if "--chat-template-file" in arguments else ["--chat-template", "known:chatml"]
    command = ["count", "-m", str(VOCABULARY), "--chat", "--json", *template, *arguments]
    assert main(command) == (2 if errors else 0)
    found = json.loads(capfdbinary.readouterr().out)
    assert [each["tokens"] for each in found["files"]] == tokens
    assert [each["error"] for each in found["errors"]] == errors


def test_count_of_chats_is_llama_servers(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    recorded = [chat for chat in recorded_chats("Qwen-Qwen3-0.6B") if chat.prompt is not None]
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps(chat.request) + "\n" for chat in recorded))
    (tmp_path / "template.jinja").write_text(recorded[0].template)
    template = str(tmp_path / "template.jinja")
    main(
        ["count", "-m", str(VOCABULARY), "--chat", "--json", str(tmp_path), "--chat-template-file", template]
    )
    [counted] = json.loads(capfdbinary.readouterr().out)["files"]
    assert counted["tokens"] == sum(chat.tokens for chat in recorded)


REFUSED_COUNTS: dict[str, tuple[list[str], str]] = {
    "no template": (["--chat", "chats.jsonl"], "--chat-template known:chatml"),
    "a misspelt template": (
        ["--chat", "chats.jsonl", "--chat-template", "chatlm"],
        "'chatlm' is neither the text of a template nor the name of one; near: known:chatml, ",
    ),
    "a path as a template": (
        ["--chat", "chats.jsonl", "--chat-template", "template.jinja"],
        "template.jinja is a file: give it as --chat-template-file template.jinja",
    ),
    "two templates": (
        ["--chat", "chats.jsonl", "--chat-template", "chatml", "--chat-template-file", "template.jinja"],
        "--chat-template or --chat-template-file, not both",
    ),
    "a text": (["--chat", "-p", "Hi"], "--chat counts chats in files"),
    "a field": (["--chat", "chats.jsonl", "--field", "text"], "--chat counts chats in files"),
    "no BOS": (["--chat", "chats.jsonl", "--no-bos"], "special tokens are always added and parsed in chats"),
    "tools of texts": (["chats.jsonl", "--tools", "tools.json"], "--tools needs a chat: give --chat FILE"),
}


@pytest.mark.parametrize("name", REFUSED_COUNTS)
def test_count_of_chats_refuses(chats: Path, capfdbinary: pytest.CaptureFixture[bytes], name: str) -> None:
    arguments, reason = REFUSED_COUNTS[name]
    assert main(["count", "-m", str(VOCABULARY), *arguments]) == 2
    assert reason in capfdbinary.readouterr().err.decode()


# ---- what Python may give -------------------------------------------------------------------------------

CALL = {"type": "function", "function": {"name": "f", "arguments": {"a": b"x"}}}
NO_JSON: dict[str, tuple[dict[str, Any], str]] = {  # the body of a request, and the place that is named
    "bytes as a message": ({"messages": [b"Hi"]}, "messages[0] is of type bytes, which JSON does not have"),
    "bytes as a content": (
        {"messages": [USER, {"role": "user", "content": b"Hi"}]},
        "messages[1].content is of type bytes, which JSON does not have",
    ),
    "bytes as a role": (
        {"messages": [{"role": b"user", "content": "Hi"}]},
        "messages[0].role is of type bytes, which JSON does not have",
    ),
    "bytes in a part": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": b"Hi"}]}]},
        "messages[0].content[0].text is of type bytes, which JSON does not have",
    ),
    "bytes in arguments": (
        {"messages": [USER, {"role": "assistant", "content": "", "tool_calls": [CALL]}, USER]},
        "messages[1].tool_calls[0].function.arguments.a is of type bytes, which JSON does not have",
    ),
    "bytes in a tool": (
        {"messages": [USER], "tools": [{"type": "function", "function": {"name": "f", "parameters": {"x": b""}}}]},
        "tools[0].function.parameters.x is of type bytes, which JSON does not have",
    ),
    "a tool that is no tool": (
        {"messages": [USER], "tools": [{"x": {1}}]},
        "tools[0].x is of type set, which JSON does not have",
    ),
    "a function as a tool": ({"messages": [USER], "tools": [print]}, "tools[0] is of type builtin_function_or_method"),
    "a set as an argument": (
        {"messages": [USER], "chat_template_kwargs": {"names": {"a"}}},
        "chat_template_kwargs.names is of type set, which JSON does not have",
    ),
    "a number as a key": (
        {"messages": [USER], "chat_template_kwargs": {"a": {1: 2}}},
        "chat_template_kwargs.a has a key of type int; those of JSON are strings",
    ),
    "a lone surrogate": (
        {"messages": [{"role": "user", "content": "a\ud800"}]},
        "messages[0].content has a lone surrogate at position 1",
    ),
    "a lone surrogate in a key": (
        {"messages": [USER], "chat_template_kwargs": {"a": {"\ud800": 1}}},
        "a key of chat_template_kwargs.a has a lone surrogate at position 0",
    ),
    "a number that is too large": (
        {"messages": [USER], "chat_template_kwargs": {"n": 10**400}},
        "chat_template_kwargs.n is too large a number",
    ),
    "a date": (
        {"messages": [USER], "chat_template_kwargs": {"now": NOW}},
        "chat_template_kwargs.now is of type datetime",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_JSON)
def test_what_is_no_json_is_named(tok: Tokenizer, name: str) -> None:
    body, reason = NO_JSON[name]
    with pytest.raises(ChatError, match=f"^{re.escape(reason)}"):
        tok.chats.prompt(body, "{{ messages[0].content }}")


OTHER_FORMS: dict[str, dict[str, Any]] = {  # of one and the same request
    "a tuple of messages": {"messages": (USER,)},
    "another sequence of messages": {"messages": UserList([USER])},
    "a mapping": MappingProxyType({"messages": [USER]}),
    "a mapping as a message": {"messages": [MappingProxyType(USER)]},
    "a tuple as a content": {
        "messages": [{"role": "user", "content": ({"type": "text", "text": USER["content"]},)}]
    },
    "a mapping as a part": {
        "messages": [{"role": "user", "content": [UserDict({"type": "text", "text": USER["content"]})]}]
    },
    "mappings as arguments": {
        "messages": [USER],
        "chat_template_kwargs": MappingProxyType({"enable_thinking": True}),
    },
    "a mapping as a tool": {"messages": [USER], "tools": (MappingProxyType(TOOLS[0]),)},
}


@pytest.mark.parametrize("name", OTHER_FORMS)
def test_mappings_and_sequences_are_objects_and_arrays(tok: Tokenizer, name: str) -> None:
    assert tok.chats.prompt(OTHER_FORMS[name]) == tok.chats.prompt({"messages": [USER]})


def test_a_mapping_of_arguments_is_read(tok: Tokenizer) -> None:
    body = {"messages": [USER], "chat_template_kwargs": MappingProxyType({"x": ("a", "b")})}
    assert tok.chats.prompt(body, "{{ x[1] }}") == b"b"


def test_page_lists_the_known_templates() -> None:
    page = (ROOT / "docs" / "chat.md").read_text(encoding="utf-8")
    listed = page.partition("### Templates of llama.cpp's collection")[2].partition("\n## ")[0]
    assert re.findall(r"`([^`]+)`", listed)[2:] == [*known_templates()]  # behind `known:chatml` and `known:`


# ---- the parts --------------------------------------------------------------------------------------------


def test_body_from_arguments() -> None:
    body = body_from_arguments([USER], None, "auto", True, None, None, {"a": 1})
    assert body == {
        "messages": [USER],
        "tool_choice": "auto",
        "add_generation_prompt": True,
        "chat_template_kwargs": {"a": 1},
    }
    assert body_from_arguments(None, None, "none", False, "content", "low", {}) == {
        "messages": None,  # for the parser of requests to refuse
        "tool_choice": "none",
        "add_generation_prompt": False,
        "continue_final_message": "content",
        "reasoning_effort": "low",
    }


def test_prompt_text() -> None:
    assert prompt_text("é".encode() + b"\xff") == "é\ufffd"


def test_templates_of_requests_make_room_but_those_of_the_file_stay(
    tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[str] = []

    class Counted(ChatTemplate):
        def __init__(self, source: str, ends: BosEos) -> None:
            prepared.append(source)
            super().__init__(source, ends)

    monkeypatch.setattr("ggufbpe.chat.chats.ChatTemplate", Counted)
    chats, body = Chats(tok), {"messages": [USER]}
    own, _ = chats.in_force()
    given = [f"{{{{ messages[0].content }}}}{number}" for number in range(MOST_TEMPLATES + 1)]
    prompts = [chats.prompt(body, source) for source in given]
    assert prompts == [f"{USER['content']}{number}".encode() for number in range(len(given))]
    chats.in_force()
    chats.prompt(body, given[-1])  # still prepared
    assert prepared == [own, *given]
    chats.prompt(body, given[0])
    assert prepared[-1] == given[0]


def test_a_finished_chat_is_closed(tok: Tokenizer) -> None:
    body = {"messages": [USER, {"role": "assistant", "content": "4"}]}
    source = "known:chatml"
    assert not tok.chats.prompt(body, source).endswith(b"<|im_end|>\n")
    assert tok.chats.prompt(body, source, whole=True).endswith(b"assistant\n4<|im_end|>\n")


def test_a_finished_chat_may_end_as_none_that_goes_on_can(tok: Tokenizer) -> None:
    """With a call, or with two answers."""
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for last in ([{"role": "assistant", "tool_calls": [call]}], 2 * [{"role": "assistant", "content": "4"}]):
        body = {"messages": [USER, *last]}
        with pytest.raises(ChatError):
            tok.chats.prompt(body, "known:Qwen-Qwen3-0.6B")
        prompt = tok.chats.prompt(body, "known:Qwen-Qwen3-0.6B", whole=True)
        assert prompt.endswith(b"<|im_end|>\n")


def test_a_template_is_required_of_what_is_to_be_kept() -> None:
    chats = Tokenizer.from_gguf(GPT2).chats
    chats.require_template("known:chatml")
    with pytest.raises(NoTemplateError, match="whose markers may be plain letters"):
        chats.require_template(None)
