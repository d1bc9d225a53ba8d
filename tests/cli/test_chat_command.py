"""`ggufbpe chat` prints a prompt, its ids, their number, or the tokens of each message."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from commands import Run, call
from conftest import GPT2
from make_mmproj import AUDIO, make_mmproj
from record_media import AUDIO_CONTENTS, CONTENTS, chat_of
from small_models import small_model
from stores import TEMPLATE as TEMPLATE_LAYER
from stores import ollama_layer, ollama_model

from ggufbpe import ChatTooLongError, FitPolicy, GGUFWarning, Tokenizer
from ggufbpe.chat.known_templates import known_source, known_templates
from ggufbpe.cli import chat, count
from ggufbpe.cli._arguments import Parser, UsageError
from ggufbpe.cli._fit import add_fit_flags

__all__ = ["call", "small_model"]  # fixtures

CHATML = ("--chat-template", "known:chatml")
MESSAGES = [{"role": "user", "content": "hello"}]
PROMPT = b"<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(MESSAGES))
    return path


def test_the_same_chat_from_everywhere(call: Run, small_model: Path, messages: Path) -> None:
    model, body = ("-m", small_model), json.dumps({"messages": MESSAGES}).encode()
    assert call(chat, *model, messages).out == PROMPT
    assert call(chat, *model, "-p", "hello").out == PROMPT
    assert call(chat, *model, "--stdin", stdin=body).out == PROMPT
    assert call(chat, *model, "-", stdin=body).out == PROMPT


def test_shapes(call: Run, small_model: Path) -> None:
    ids = Tokenizer.from_gguf(small_model).encode(PROMPT)
    given = ("-m", small_model, "-p", "hello")
    assert call(chat, *given, "--ids").text == f"{ids}\n"
    assert call(chat, *given, "--count").text == f"{len(ids)}\n"
    assert call(chat, *given, "--prompt", "--color", "always").out == PROMPT
    found = json.loads(call(chat, *given, "--json").out)
    assert (found["prompt"], found["ids"], found["count"]) == (PROMPT.decode(), ids, len(ids))
    table = call(chat, *given, "--by-message").text
    assert "user" in table
    assert "<|im_start|>" not in table


def test_a_system_message_comes_first(call: Run, small_model: Path, messages: Path) -> None:
    expected = b"<|im_start|>system\nBe terse.<|im_end|>\n" + PROMPT
    for chat_given in ([messages], ["-p", "hello"]):
        assert call(chat, "-m", small_model, *chat_given, "--system", "Be terse.").out == expected


def test_another_template(call: Run, small_model: Path) -> None:
    found = call(chat, "-m", small_model, "-p", "hello", "--chat-template", "{{ messages[0].content }}!")
    assert found.out == b"hello!"


def test_text_that_becomes_a_special_token_is_reported(call: Run, small_model: Path) -> None:
    found = call(chat, "-m", small_model, "-p", "a<|im_end|>b")
    assert found.err.startswith("ggufbpe: warning: ")
    assert "<|im_end|>" in found.err


def test_tools_that_are_not_shown_are_reported(call: Run, small_model: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([{"type": "function", "function": {"name": "f", "parameters": {}}}]))
    found = call(chat, "-m", small_model, "-p", "hello", "--tools", tools)
    assert found.err == "ggufbpe: the template does not show the tools\n"
    path = tmp_path / "chats.jsonl"
    path.write_text(f"{json.dumps(MESSAGES)}\n" * 2)
    with pytest.warns(GGUFWarning, match="the chat template does not show the tools"):
        call(count, "-m", small_model, "--chat", path, "--tools", tools)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give one chat: a FILE, -p TEXT or --stdin"),
        (["nowhere.json"], "No such file or directory; a message of the user is given as -p nowhere.json"),
        (["nowhere.json", "-p", "x"], "give one chat"),
    ],
)
def test_what_is_no_chat(arguments: list[str], words: str, call: Run, small_model: Path) -> None:
    with pytest.raises(UsageError, match=words):
        call(chat, "-m", small_model, *arguments)


TEMPLATE = (
    "{{ messages[0].content }} {{ style }} {{ strftime_now('%Y-%m-%d') }}"
    "{% if add_generation_prompt %}>{% endif %}"
)


def test_fields_of_a_request_without_json_around_them(call: Run, small_model: Path, tmp_path: Path) -> None:
    given = ("-m", small_model, "--chat-template", TEMPLATE, "--date", "2020-01-02")
    assert call(chat, *given, "-p", "hello").out == b"hello  2020-01-02>"
    flags = ("--chat-template-kwargs", '{"style": "short"}', "--no-generation-prompt")
    assert call(chat, *given, "-p", "hello", *flags).out == b"hello short 2020-01-02"
    body = {"messages": MESSAGES, "chat_template_kwargs": {"style": "long", "other": 1}}
    path = tmp_path / "body.json"
    path.write_text(json.dumps(body))
    assert call(chat, *given, path).out == b"hello long 2020-01-02>"
    assert (
        call(chat, *given, path, *flags).out == b"hello short 2020-01-02"
    )  # a flag replaces what the file says
    limited = call(chat, *given, path, *flags, "--fit", "100", "--json")
    assert json.loads(limited.out)["prompt"] == "hello short 2020-01-02"
    counted = [call(count, *given, "--chat", path, "-q", *more).text for more in ((), flags)]
    prompts = (b"hello long 2020-01-02>", b"hello short 2020-01-02")
    assert counted == [f"{len(Tokenizer.from_gguf(small_model).encode(prompt))}\n" for prompt in prompts]


def test_a_chat_that_must_fit_keeps_the_numbers_of_its_messages(
    call: Run, small_model: Path, tmp_path: Path
) -> None:
    roles = ("system", "user", "assistant", "user")
    path = tmp_path / "chat.json"
    path.write_text(json.dumps([{"role": role, "content": "hello " * 9} for role in roles]))
    given = ("-m", small_model, *CHATML, path)
    shorter = Tokenizer.from_gguf(small_model).count(call(chat, *given).out) - 1
    found = json.loads(call(chat, *given, "--fit", shorter, "--json").out)
    assert found["fitted"]["dropped"] == [1, 2]
    assert {share.get("index") for share in found["tokens_by_origin"]} == {None, 0, 3}
    table = call(chat, *given, "--fit", shorter, "--by-message").text
    assert "messages[3] user" in table
    assert "messages[1]" not in table
    with pytest.raises(ChatTooLongError, match=r"does not fit in 5 tokens: what must stay has \d+ tokens$"):
        call(chat, *given, "--fit", "5")


FIT: dict[str, tuple[list[str], dict[str, Any]]] = {
    "the default": ([], {}),
    "both ends": (["--keep-first", "1", "--keep-last", "1"], {"keep_first": 1, "keep_last": 1}),
    "no roles": (["--keep-roles", ""], {"keep_roles": []}),
    "roles": (["--keep-roles", "system,tool"], {"keep_roles": ["system", "tool"]}),
    "roles with spaces": (["--keep-roles", "system, tool ,"], {"keep_roles": ["system", "tool"]}),
    "cut at the right": (
        ["--shorten", "tool", "--shorten-to", "6", "--side", "right", "--marker", "hello"],
        {"shorten": ["tool"], "shorten_to": 6, "side": "right", "marker": "hello"},
    ),
    "a note": (["--note", "hello {dropped}"], {"note": "hello {dropped}"}),
    "room for the answer": (["--answer", "3", "--keep-last", "0"], {"keep_last": 0}),
}


def test_every_field_of_the_policy_has_a_flag() -> None:
    parser = Parser("chat")
    add_fit_flags(parser)
    assert {field.name for field in fields(FitPolicy)} <= set(vars(parser.parse_args([])))


@pytest.mark.parametrize("what", FIT)
def test_flags_of_a_chat_that_must_fit_are_the_policy_of_python(
    what: str, call: Run, small_model: Path, tmp_path: Path
) -> None:
    flags, keep = FIT[what]
    roles = ("system", "user", "assistant", "tool", "user", "assistant", "user")
    messages = [{"role": role, "content": "hello " * (30 if role == "tool" else 3)} for role in roles]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(messages))
    tokenizer, answer_size = Tokenizer.from_gguf(small_model), 3 if "--answer" in flags else 0
    limit = tokenizer.count(call(chat, "-m", small_model, *CHATML, path).out) - 20
    expected = tokenizer.fit_chat(
        messages, limit, keep=keep, answer=answer_size, chat_template="known:chatml"
    )
    assert expected.dropped or expected.shortened
    found = call(chat, "-m", small_model, *CHATML, path, "--fit", limit, *flags, "--json")
    assert json.loads(found.out)["fitted"] == {
        "limit": limit,
        "answer": answer_size,
        "dropped": list(expected.dropped),
        "shortened": list(expected.shortened),
        "messages": expected.messages,
    }
    assert json.loads(found.out)["prompt"] == expected.prompt.decode()
    assert ("were left out" in found.err) == bool(expected.dropped)
    assert ("was cut" in found.err) == bool(expected.shortened)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--keep-last", "2"], "--keep-last is for --fit: give --fit N"),
        (["--answer", "2"], "--answer is for --fit"),
        (["--fit", "9", "--marker", "x"], "--marker is for --shorten: give --shorten ROLES"),
        (["--fit", "-1"], "--fit must be 0 or more, not -1"),
        (["--fit", "9", "--keep-first", "-2"], "--keep-first must be 0 or more, not -2"),
    ],
)
def test_flags_of_a_policy_that_cannot_be(flags: list[str], words: str, call: Run, small_model: Path) -> None:
    with pytest.raises(UsageError, match=words):
        call(chat, "-m", small_model, *CHATML, "-p", "hello", *flags)


def test_a_message_that_is_too_long_by_itself_is_told_with_the_flags_that_cut_it(
    call: Run, small_model: Path
) -> None:
    given = ("-m", small_model, *CHATML, "-p", "hello " * 300, "--fit", "150")
    with pytest.raises(
        ChatTooLongError, match=r"alone has more, and is cut with --shorten user --shorten-to \d+$"
    ) as raised:
        call(chat, *given)
    assert raised.value.limit == 150 < raised.value.count
    flags = str(raised.value).rpartition("is cut with ")[2].split()
    assert int(call(chat, *given, *flags, "--count").out) <= 150


def test_images(call: Run, tmp_path: Path) -> None:
    make_mmproj(tmp_path / "mmproj.gguf", "gemma3", {})
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(chat_of(CONTENTS[3])))
    given = ("-m", GPT2, path, "--mmproj", tmp_path / "mmproj.gguf")
    found = json.loads(call(chat, *given, "--json").out)
    assert found["images"] == [{"width": 640, "height": 480, "image": 36, "marks": 14, "count": 50}]
    assert call(chat, *given, "--count").text == f"{found['count']}\n"
    assert call(chat, *given, "--prompt").text == found["prompt"]
    assert call(chat, *given).text == (
        f"image 1, 640 x 480: 36 tokens and 14 around it\n{found['count']} tokens in all\n"
    )
    assert call(count, "--chat", *given, *CHATML, "-q").text == f"{found['count']}\n"


def test_audio(call: Run, tmp_path: Path) -> None:
    make_mmproj(tmp_path / "mmproj.gguf", "gemma4ua", {}, usual=AUDIO)
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(chat_of(AUDIO_CONTENTS[1])))
    given = ("-m", GPT2, path, "--mmproj", tmp_path / "mmproj.gguf")
    found = json.loads(call(chat, *given, "--json").out)
    assert found["audio"] == [{"samples": 12345, "audio": 20, "marks": 8, "count": 28}]
    assert call(chat, *given).text == (
        f"audio 1, 12345 samples: 20 tokens and 8 around it\n{found['count']} tokens in all\n"
    )
    assert (
        json.loads(call(count, "--chat", *given, *CHATML, "--json").out)["total"]["tokens"] == found["count"]
    )


def test_chats_with_images_are_counted_line_by_line(call: Run, tmp_path: Path) -> None:
    """Those that llama-server refuses are reported, and the others counted."""
    make_mmproj(tmp_path / "mmproj.gguf", "gemma3", {})
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps(chat_of(CONTENTS[at])) + "\n" for at in (1, 3, -1)))
    given = ("--chat", "-m", GPT2, path, "--mmproj", tmp_path / "mmproj.gguf", *CHATML, "--json")
    result = call(count, *given)
    assert result.code == 2
    found = json.loads(result.out)
    tok = Tokenizer.from_gguf(GPT2)
    chats = [chat_of(CONTENTS[at])["messages"] for at in (1, 3)]
    assert found["total"]["tokens"] == sum(
        tok.count_chat(each, tmp_path / "mmproj.gguf", chat_template="known:chatml").count for each in chats
    )
    assert "audio input is not supported" in found["errors"][0]["error"]


WRONG = [
    (chat, ["-p", "hello", "--date", "yesterday"], "--date takes a day or time"),
    (chat, ["-p", "hello", "--chat-template-kwargs", "[1]"], "takes a JSON object"),
    (chat, ["-p", "hello", "--chat-template-kwargs", "{"], "--chat-template-kwargs is not JSON"),
    (chat, ["-p", "hello", "--media-path", "."], "give --mmproj"),
    (chat, ["-p", "hello", "--mmproj", "x", "--ids"], "images and audio have no ids"),
    (chat, ["-p", "hello", "--mmproj", "x", "--ollama"], "leave out --ollama"),
    (count, ["-p", "hello", "--date", "2020-01-02"], "--date needs a chat"),
    (count, ["-p", "hello", "--mmproj", "x"], "--mmproj needs a chat"),
    (count, ["--chat", "x", "--media-path", "."], "give --mmproj"),
    (count, ["-p", "hello", "--no-generation-prompt"], "--no-generation-prompt needs a chat"),
]


@pytest.mark.parametrize(("command", "flags", "problem"), WRONG)
def test_flags_that_make_no_sense(
    command: Any, flags: list[str], problem: str, call: Run, small_model: Path
) -> None:
    with pytest.raises((UsageError, ValueError), match=problem):
        call(command, "-m", small_model, *flags)


def test_templates_are_listed_and_each_can_be_given(call: Run, small_model: Path) -> None:
    lines = call(chat, "--list-templates").text.splitlines()
    assert lines[0] == "known:chatml"
    assert any(line.split() == ["known:Qwen-Qwen3-0.6B", "Qwen3-0.6B"] for line in lines)
    found = json.loads(call(chat, "--list-templates", "--json").out)["templates"]
    assert [each["name"] for each in found] == [line.split()[0] for line in lines]
    assert len(found) == len(known_templates()) + 1
    assert all(known_source(each["name"]) for each in found)


def test_what_ollama_makes_of_a_chat(
    call: Run, small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    source = b"{{ range .Messages }}<|im_start|>{{ .Role }}: {{ .Content }}{{ end }}"
    layers = [
        ollama_layer(tmp_path, small_model.read_bytes()),
        ollama_layer(tmp_path, source, TEMPLATE_LAYER),
    ]
    ollama_model(tmp_path, "registry.ollama.ai/library/small/latest", layers)
    given = ("-m", "ollama:small", "-p", "hello")
    found = call(chat, *given, "--ollama")
    assert (found.out, found.code) == (b"<|im_start|>user: hello", 0)
    assert found.err == "ggufbpe: Ollama renders chats of this model by the Go template beside the file\n"
    assert "the prompt below is llama-server's (--ollama prints Ollama's)" in call(chat, *given).err
    ids = json.loads(call(chat, *given, "--ollama", "--ids").text)
    assert call(chat, *given, "--ollama", "--count").text == f"{len(ids)}\n"
    found = call(chat, *given, "--ollama-diff")
    assert found.code == 1
    assert found.text.startswith("--- llama-server, ")
    assert json.loads(call(chat, *given, "--ollama-diff", "--json").out)["verdict"] == "different"
    with pytest.raises(UsageError, match="--ollama takes no --fit"):
        call(chat, *given, "--ollama", "--fit", "3")
    with pytest.raises(UsageError, match="--ollama-diff needs a model of Ollama's store"):
        call(chat, "-m", small_model, "-p", "hello", "--ollama-diff")
    broken = [layers[0], ollama_layer(tmp_path, b"{{ if }}", TEMPLATE_LAYER)]
    ollama_model(tmp_path, "registry.ollama.ai/library/broken/latest", broken)
    given = ("-m", "ollama:broken", "-p", "hello")
    assert "Ollama refuses the Go template beside the file: line 1" in call(chat, *given).err
    (tmp_path / "blobs" / broken[1]["digest"].replace(":", "-")).unlink()
    found = call(chat, *given)
    assert found.out == PROMPT
    assert "which template Ollama uses cannot be told: " in found.err
