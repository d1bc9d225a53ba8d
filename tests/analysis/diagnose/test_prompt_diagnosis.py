"""What is found out about a prompt, or ids, from elsewhere: each cause made alone and with others, and found first."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mending
import pytest
from record_chats import read_chats
from recorded_chats import VOCABULARY
from reference import write_metadata
from small_models import CHATML, with_template

from ggufbpe import Tokenizer, diagnose, fix
from ggufbpe.analysis.diagnose import plain_jinja, prompt_diagnosis
from ggufbpe.analysis.diagnose.cause import CAUSES
from ggufbpe.analysis.diagnose.chat_changes import Rendering, as_transformers, changes, with_fields
from ggufbpe.analysis.diagnose.explanation import Diagnosis
from ggufbpe.analysis.doctor.proposal import Proposal
from ggufbpe.cli import main

pytestmark = [pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning"), pytest.mark.tries_fixes]

KEY = "tokenizer.chat_template"
TEMPLATES = read_chats("templates")
THINKING, DATED = "Qwen-Qwen3-0.6B", "meta-llama-Llama-3.2-3B-Instruct"
ALIKE = "meta-llama-Llama-3.1-8B-Instruct"  # as DATED for chats without tools
SYSTEM = {"role": "system", "content": "Be terse."}
USER = {"role": "user", "content": "What is 2 + 2? "}
ANSWER = {"role": "assistant", "content": "Four.", "reasoning_content": "Two and two."}
AGAIN = {"role": "user", "content": "And 3 + 3?"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Adds.",
            "parameters": {"type": "object", "properties": {}},
        },
    }
]
CHAT: dict[str, Any] = {"messages": [SYSTEM, USER, ANSWER, AGAIN]}
WITH_TOOLS = {**CHAT, "tools": TOOLS}


@pytest.fixture(scope="module")
def plain() -> Tokenizer:
    return Tokenizer.from_gguf(VOCABULARY)


@pytest.fixture(scope="module")
def tok(plain: Tokenizer) -> Tokenizer:
    return plain.with_overrides({KEY: TEMPLATES[THINKING]})


def stripped(messages: list[Any]) -> list[Any]:
    return [{**message, "content": message["content"].strip()} for message in messages]


def merged(messages: list[Any]) -> list[Any]:
    first, second, *rest = messages
    return [{**second, "content": f"{first['content']}\n\n{second['content']}"}, *rest]


# ---- prompts, and the ids of them -----------------------------------------------------------------------

Body = dict[str, Any]
CASES: dict[
    str, tuple[Body, Callable[[Body], Body], list[str]]
] = {  # a chat, what was rendered elsewhere, causes
    "nothing": (CHAT, lambda body: body, []),
    "no generation prompt": (CHAT, lambda b: {**b, "add_generation_prompt": False}, ["generation_prompt"]),
    "a generation prompt": (
        {**CHAT, "add_generation_prompt": False},
        lambda b: {**b, "add_generation_prompt": True},
        ["generation_prompt"],
    ),
    "no tools": (WITH_TOOLS, lambda b: CHAT, ["tools"]),
    "tools": (CHAT, lambda b: WITH_TOOLS, ["tools"]),
    "thinking off": (CHAT, lambda b: {**b, "chat_template_kwargs": {"enable_thinking": False}}, ["thinking"]),
    "thinking on": (
        {**CHAT, "chat_template_kwargs": {"enable_thinking": False}},
        lambda b: CHAT,
        ["thinking"],
    ),
    "contents trimmed": (CHAT, lambda b: {"messages": stripped(b["messages"])}, ["trimmed"]),
    "no system message": (CHAT, lambda b: {"messages": b["messages"][1:]}, ["system"]),
    "the system message merged": (CHAT, lambda b: {"messages": merged(b["messages"])}, ["system"]),
    "a system message by default": (
        {"messages": [USER]},
        lambda b: {"messages": [{"role": "system", "content": "You are a helpful assistant."}, USER]},
        ["system"],
    ),
    "a message left out": (CHAT, lambda b: {"messages": [SYSTEM, USER, AGAIN]}, ["messages"]),
    "only the last message": (CHAT, lambda b: {"messages": [SYSTEM, AGAIN]}, ["messages"]),
    "two causes": (
        WITH_TOOLS,
        lambda b: {**CHAT, "add_generation_prompt": False},
        ["generation_prompt", "tools"],
    ),
    "three causes": (
        WITH_TOOLS,
        lambda b: {"messages": stripped(CHAT["messages"]), "add_generation_prompt": False},
        ["generation_prompt", "tools", "trimmed"],
    ),
}


def causes_of(found: Diagnosis) -> list[str]:
    """Those of the best explanation, if it explains all."""
    if not found.explanations or found.explanations[0].explains < 1:
        return []
    return [cause.id for cause in found.explanations[0].causes]


@pytest.mark.parametrize("name", CASES)
def test_cause_of_another_prompt(tok: Tokenizer, name: str) -> None:
    chat, elsewhere, expected = CASES[name]
    prompt = tok.chats.prompt(elsewhere(chat))
    assert causes_of(diagnose(tok, chat=chat, expected_prompt=prompt)) == expected


@pytest.mark.parametrize("name", CASES)
def test_cause_of_other_ids(tok: Tokenizer, name: str) -> None:
    chat, elsewhere, expected = CASES[name]
    ids = tok.encode(tok.chats.prompt(elsewhere(chat)))
    assert causes_of(diagnose(tok, chat=chat, ids=ids)) == expected


@pytest.mark.parametrize("name", CASES)
def test_the_request_of_causes_gives_the_prompt(tok: Tokenizer, name: str) -> None:
    """What causes say to put into the request makes it that of the other tool."""
    chat, elsewhere, _ = CASES[name]
    prompt = tok.chats.prompt(elsewhere(chat))
    for found in diagnose(tok, chat=chat, expected_prompt=prompt).explanations:
        body = chat
        if all("request" in cause.detail for cause in found.causes):
            for cause in found.causes:
                body = with_fields(body, cause.detail["request"])  # type: ignore[arg-type]
            assert tok.chats.prompt(body) == prompt


OTHER_TEMPLATES: dict[
    str, tuple[dict[str, Any], str | None, str]
] = {  # keys of the file, elsewhere, which one it is
    "ChatML": ({KEY: TEMPLATES[DATED]}, "chatml", "ChatML"),
    "one for tools": (
        {KEY: "{{ messages[0].content }}", f"{KEY}.tool_use": "tools"},
        "tool_use",
        "the file's tool_use",
    ),
}


@pytest.mark.parametrize("name", OTHER_TEMPLATES)
def test_another_template(plain: Tokenizer, name: str) -> None:
    keys, template, which = OTHER_TEMPLATES[name]
    one = plain.with_overrides(keys)
    found = diagnose(one, chat=CHAT, expected_prompt=one.chats.prompt(CHAT, template))
    [cause] = found.explanations[0].causes
    assert (cause.id, cause.detail["change"]) == ("template", which)


@pytest.mark.parametrize("written", ["<|im_start|>", "<|start_header_id|>"])
def test_a_template_whose_markers_are_no_tokens(written: str, tmp_path: Path) -> None:
    """It is said to be for another model, and the file's fix is ChatML; else the other tool has another template."""
    own = CHATML.replace("<|im_start|>", f"{written} ")
    model = write_metadata(tmp_path / "model.gguf", with_template(own))
    right = Tokenizer.from_gguf(write_metadata(tmp_path / "right.gguf", with_template(CHATML)))
    found = diagnose(model, chat=[USER], expected_prompt=right.chats.prompt({"messages": [USER]}))
    first = found.explanations[0]
    assert causes_of(found) == ["template"]
    is_other = written == "<|start_header_id|>"
    assert ("the file's own is for another model" in str(first.causes[0].detail["what"])) is is_other
    assert first.fix.endswith(" --chat-template known:chatml -o fixed.gguf") is is_other


def test_a_template_that_differs_in_its_words_alone(plain: Tokenizer) -> None:
    """The markers are the same, and the default message of the system is another one."""
    one = plain.with_overrides({KEY: TEMPLATES["Qwen-Qwen3-0.6B"]})
    expected = one.chats.prompt({"messages": [USER]}, TEMPLATES["Qwen-Qwen2.5-7B-Instruct"])
    [cause] = diagnose(one, chat=[USER], expected_prompt=expected).explanations[0].causes
    assert (cause.id, cause.detail["change"]) == ("template", "llama.cpp's Qwen-Qwen2.5-7B-Instruct")


@pytest.mark.slow
@pytest.mark.parametrize("asked", [True, False])
def test_a_template_that_llama_cpp_has(tmp_path: Path, asked: bool) -> None:
    """Its fix makes it the model's, which mending.py does; also together with another cause."""
    model = tmp_path / "model.gguf"
    fix(VOCABULARY, model, set={KEY: TEMPLATES[THINKING]})
    right = Tokenizer.from_gguf(VOCABULARY).with_overrides({KEY: TEMPLATES[DATED]})
    prompt = right.chats.prompt({**CHAT, "add_generation_prompt": asked})
    found = diagnose(model, chat=CHAT, expected_prompt=prompt)
    assert causes_of(found) == ["generation_prompt"] * (not asked) + ["template"]
    assert found.explanations[0].fix == f"ggufbpe fix {model} --chat-template known:{ALIKE} -o fixed.gguf"
    what = str(found.explanations[0].causes[-1].detail["what"])
    assert what.startswith(f"the template is llama.cpp's {ALIKE}, or {DATED}, ")


def test_a_template_that_does_not_help_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What mending.py does around each call of `diagnose_prompt`, tried with a fix for something else."""
    model = tmp_path / "model.gguf"
    fix(VOCABULARY, model, set={KEY: TEMPLATES[THINKING]})
    prompt = Tokenizer.from_gguf(VOCABULARY).with_overrides({KEY: TEMPLATES[DATED]}).chats.prompt(CHAT)
    command = f"ggufbpe fix {model} --set general.name=x -o fixed.gguf"
    monkeypatch.setattr(prompt_diagnosis, "prove", lambda _, change, *__: Proposal(change, command))
    assert causes_of(diagnose(model, chat=CHAT, expected_prompt=prompt)) == ["template"]
    failed, mending.watch.failed = mending.watch.failed, []
    assert any(each.startswith("the prompt, ['template']") for each in failed)


@pytest.mark.parametrize("as_ids", [False, True])
def test_another_date(plain: Tokenizer, as_ids: bool) -> None:
    one = plain.with_overrides({KEY: TEMPLATES[DATED]})
    prompt = one.chats.prompt(CHAT, now=datetime(2024, 2, 29))
    expected: Any = {"ids": one.encode(prompt)} if as_ids else {"expected_prompt": prompt}
    found = diagnose(one, chat=CHAT, **expected)
    [cause] = found.explanations[0].causes
    assert (cause.id, cause.detail["now"]) == ("date", "2024-02-29T00:00:00")


def test_a_date_that_the_template_writes_itself(plain: Tokenizer) -> None:
    """Llama 3.1 has one for a caller that gives none: the remedy is the argument, whatever day it is."""
    name = "meta-llama-Llama-3.1-8B-Instruct"
    one = plain.with_overrides({KEY: TEMPLATES[name]})
    fields = {"chat_template_kwargs": {"date_string": "26 Jul 2024"}}
    prompt = one.chats.prompt({**CHAT, **fields})
    assert b"26 Jul 2024" in prompt != one.chats.prompt(CHAT)
    [cause] = diagnose(one, chat=CHAT, expected_prompt=prompt).explanations[0].causes
    assert (cause.id, cause.detail["request"], "now" in cause.detail) == ("date", fields, False)
    assert "the other tool gave no date_string" in str(cause.detail["what"])
    assert "date_string=" in cause.fix


AROUND: dict[str, tuple[Callable[[bytes], bytes], list[str]]] = {  # what was done to the prompt as text
    "BOS in the text": (lambda prompt: b"<s>" + prompt, ["bos"]),
    "the last line end removed": (lambda prompt: prompt[:-1], ["trailing_newline"]),
    "line ends of Windows": (lambda prompt: prompt.replace(b"\n", b"\r\n"), ["newlines"]),
}


@pytest.mark.parametrize("name", AROUND)
def test_cause_around_the_prompt(tok: Tokenizer, name: str) -> None:
    change, expected = AROUND[name]
    found = diagnose(tok, chat=CHAT, expected_prompt=change(tok.chats.prompt(CHAT)))
    assert causes_of(found) == expected


IDS: dict[
    str, tuple[Callable[[Tokenizer, bytes], list[int]], list[str]]
] = {  # ids of the prompt, as made elsewhere
    "BOS twice": (lambda tok, prompt: [tok.bos_id or 0, *tok.encode(prompt)], ["bos"]),
    "BOS missing": (lambda tok, prompt: tok.encode(prompt, add_special=False), ["bos"]),
    "markers as plain text": (lambda tok, prompt: tok.encode(prompt, parse_special=False), ["parse_special"]),
    "both": (
        lambda tok, prompt: tok.encode(prompt, add_special=False, parse_special=False),
        ["bos", "parse_special"],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("asked", [True, False])
def test_cause_of_ids_alone(tok: Tokenizer, name: str, asked: bool) -> None:
    """Also together with what makes another prompt."""
    make, expected = IDS[name]
    ids = make(tok, tok.chats.prompt({**CHAT, "add_generation_prompt": asked}))
    assert causes_of(diagnose(tok, chat=CHAT, ids=ids)) == ["generation_prompt"] * (not asked) + expected


def test_bos_twice_is_told_as_it_comes_about(tok: Tokenizer) -> None:
    ids = [tok.bos_id or 0, *tok.apply_chat_template(CHAT["messages"])]
    [cause] = diagnose(tok, chat=CHAT, ids=ids).explanations[0].causes
    assert "add_special_tokens=False" in cause.fix


def test_a_marker_that_is_no_special_token(tmp_path: Path) -> None:
    """Where the file has the wrong type for it, the fix is a command, which mending.py runs."""
    marker, chat = "<|start_header_id|>", {"messages": [USER]}
    template = f"{{% for m in messages %}}{marker}{{{{ m.content }}}}{{% endfor %}}"
    broken = tmp_path / "broken.gguf"
    fix(VOCABULARY, broken, set={KEY: template}, token_types={marker: "NORMAL"})
    right = Tokenizer.from_gguf(VOCABULARY).with_overrides({KEY: template})
    found = diagnose(broken, chat=chat, ids=right.encode(right.chats.prompt(chat)))
    assert causes_of(found) == ["special_token_types"]
    assert found.explanations[0].fix.startswith("ggufbpe fix ")


REQUESTS: dict[str, Body] = read_chats("answers")["requests"]


@pytest.mark.parametrize("name", REQUESTS)
def test_changes_take_whatever_a_request_is(name: str) -> None:
    """Also those that llama-server refuses, with members of any type; a change leaves what it was given."""
    chat = Rendering(REQUESTS[name])
    before = json.dumps(chat.body)
    for change in [*changes(chat, '{"name": "f", "parameters": 1} 2024-02-29'), *as_transformers()]:
        assert change.apply(chat).body is not None
    assert json.dumps(chat.body) == before


# ---- what nothing explains ------------------------------------------------------------------------------


def test_the_message_in_which_prompts_part(tok: Tokenizer) -> None:
    other = {"messages": [SYSTEM, USER, ANSWER, {"role": "user", "content": "And 3 + 4?"}]}
    [found] = diagnose(tok, chat=CHAT, expected_prompt=tok.chats.prompt(other)).explanations
    [cause] = found.causes
    assert (cause.id, cause.detail["message"], found.explains < 1) == ("prompt_differs", 3, True)


def test_markers_of_another_template(tok: Tokenizer) -> None:
    cause = diagnose(tok, chat=CHAT, expected_prompt="<|unheard|>user[UNSEEN] Hi").explanations[0].causes[-1]
    assert cause.detail["markers"] == ["<|unheard|>", "[UNSEEN]"]


def test_what_is_nearest_is_told_with_the_rest(tok: Tokenizer) -> None:
    expected = tok.chats.prompt(CHAT).replace(b"terse", b"kind")
    [found] = diagnose(tok, chat=WITH_TOOLS, expected_prompt=expected).explanations
    assert [cause.id for cause in found.causes] == ["tools", "prompt_differs"]


def test_a_refused_chat(tok: Tokenizer) -> None:
    [found] = diagnose(tok, chat=[{"role": "user"}], expected_prompt="Hi").explanations
    assert [cause.id for cause in found.causes] == ["refused"]


def test_all_causes_have_a_place() -> None:
    assert {"prompt_differs", "refused", "plain_jinja"} <= set(CAUSES)


# ---- plain jinja2 ---------------------------------------------------------------------------------------

PLAIN: dict[str, tuple[str, Body, bytes]] = {  # a template, a chat, the prompt of transformers
    "arguments stay a text": (
        "{{ messages[0].tool_calls[0].function.arguments }}{{ messages[0].tool_calls[0].function.arguments.a }}",
        {
            "messages": [
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
                }
            ]
        },
        b'{"a":1}',
    ),
    "none is written": ("{{ none }}{{ messages[0].content }}", {"messages": [USER]}, b"NoneWhat is 2 + 2? "),
    "an answer is not to go on": (
        "{% for m in messages %}[{{ m.content }}]{% endfor %}",
        {"messages": [USER, {"role": "assistant", "content": "It is"}]},
        b"[What is 2 + 2? ][It is]",
    ),
    "reasoning by the name that version 5 gives it": (
        "{{ messages[0].thinking }}",
        {"messages": [{"role": "assistant", "content": "", "reasoning_content": "Hm."}, USER]},
        b"Hm.",
    ),
    "the tags of answers": (
        "{% generation %}{{ messages[0].content }}{% endgeneration %}{{ none }}",
        {"messages": [USER]},
        b"What is 2 + 2? None",
    ),
    "a date": (
        "{{ strftime_now('%Y') }}{{ none }}",
        {"messages": [USER]},
        f"{datetime.now():%Y}None".encode(),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAIN)
def test_a_template_by_transformers(plain: Tokenizer, name: str) -> None:
    template, chat, prompt = PLAIN[name]
    found = diagnose(plain.with_overrides({KEY: template}), chat=chat, expected_prompt=prompt)
    assert causes_of(found) == ["plain_jinja"]


def test_a_template_by_transformers_with_another_cause(plain: Tokenizer) -> None:
    template = "{{ none }}{{ messages[0].content }}{% if add_generation_prompt %}!{% endif %}"
    found = diagnose(
        plain.with_overrides({KEY: template}), chat=[USER], expected_prompt="NoneWhat is 2 + 2? "
    )  # type: ignore[arg-type]
    assert causes_of(found) == ["generation_prompt", "plain_jinja"]


ENDLESS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
BAD = {  # what a template of a stranger may do to its child
    "loops for ever": ENDLESS,
    "grows for ever": "{% set x = namespace(a='x' * 9999) %}"
    "{% for i in range(99) %}{% set x.a = x.a + x.a %}{% endfor %}",
    "raises": "{{ raise_exception('no') }}",
    "is no template": "{% if %}",
    "reaches for files": "{{ cycler.__init__.__globals__.os.listdir('/') }}",
    "is nested deeply": "{{ " + "(" * 5000 + ")" * 5000 + " }}",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD)
def test_a_strangers_template_gives_no_prompt(name: str) -> None:
    assert plain_jinja.prompts(BAD[name], [{"messages": []}], seconds=1) == [None]


@pytest.mark.parametrize(("system", "expected"), [("posix", 6), ("nt", 2)])
def test_the_parent_waits_less_where_the_child_has_no_limit_of_its_own(
    system: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def run(*_: object, timeout: float, **__: object) -> None:
        waited.append(timeout)
        raise subprocess.TimeoutExpired("python", timeout)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(plain_jinja, "os", SimpleNamespace(name=system))
    assert plain_jinja.prompts("{{ 1 }}", [{}], seconds=1) == [None]
    assert waited == [expected]


# ---- the command ----------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tok: Tokenizer) -> Path:
    (tmp_path / "chat.json").write_text(json.dumps(CHAT))
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    (tmp_path / "refused.json").write_text('[{"role": "user"}]')
    (tmp_path / "own.jinja").write_text(TEMPLATES[THINKING])
    (tmp_path / "prompt.txt").write_bytes(tok.chats.prompt(CHAT))
    (tmp_path / "ids.json").write_text(json.dumps(tok.encode(tok.chats.prompt(CHAT))))
    monkeypatch.chdir(tmp_path)
    return tmp_path


OWN = ["--chat", "chat.json", "--chat-template-file", "own.jinja"]
COMMANDS: dict[str, tuple[list[str], int, str]] = {  # arguments, exit code, what is in the output
    "the prompt": (
        [*OWN, "--expected-prompt", "prompt.txt"],
        0,
        "match: the model gives this prompt of 180 bytes\n",
    ),
    "the ids": ([*OWN, "--ids", "ids.json"], 0, "match: the model gives these 54 ids\n"),
    "another prompt": (
        [*OWN, "--tools", "tools.json", "--expected-prompt", "prompt.txt"],
        1,
        "1. tools: explains the whole prompt\n   The tools are not in the prompt.\n",
    ),
    "both prompts": (
        [*OWN, "--tools", "tools.json", "--expected-prompt", "prompt.txt"],
        1,
        "  model  <|im_start|>system\\nBe terse.\\n\\n# Tools",
    ),
    "other ids": ([*OWN, "--tools", "tools.json", "--ids", "ids.json"], 1, "1. tools: explains all ids\n"),
    "a chat that is refused": (
        ["--chat", "refused.json", "--expected-prompt", "prompt.txt"],
        1,
        "no match: llama-server refuses this chat: All non-assistant messages must",
    ),
    "as JSON": ([*OWN, "--tools", "tools.json", "--ids", "ids.json", "--json"], 1, '"request": {\n'),
    "one id": (["-p", "a", "--ids", "[64]", "--no-bos"], 0, "match: the model gives this 1 id"),
    "nothing expected": (OWN, 2, "--chat needs either --ids or --expected-prompt"),
    "both expected": (
        [*OWN, "--ids", "ids.json", "--expected-prompt", "prompt.txt"],
        2,
        "--chat needs either --ids or --expected-prompt",
    ),
    "no chat": (["--expected-prompt", "prompt.txt"], 2, "--expected-prompt needs a chat"),
    "a template of no chat": (["-p", "Hi", "--ids", "[1]", *OWN[2:]], 2, "needs a chat: give --chat FILE"),
    "a text as well": ([*OWN, "--ids", "ids.json", "-p", "Hi"], 2, "give a text or --chat, not both"),
    "no BOS": (
        [*OWN, "--ids", "ids.json", "--no-bos"],
        2,
        "special tokens are always added and parsed in chats",
    ),
    "everything from standard input": (
        ["--chat", "-", "--ids", "-"],
        2,
        "only one of chat, ids and prompt can come from standard input",
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_command(files: Path, capfdbinary: pytest.CaptureFixture[bytes], name: str) -> None:
    arguments, status, expected = COMMANDS[name]
    assert main(["diagnose", "-m", str(VOCABULARY), *arguments]) == status
    printed = capfdbinary.readouterr()
    assert expected in (printed.err if status == 2 else printed.out).decode()


WRONG: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a text and a chat": {"text": "Hi", "ids": [1], "chat": CHAT},
    "a chat alone": {"chat": CHAT},
    "a chat with both": {"chat": CHAT, "ids": [1], "expected_prompt": "Hi"},
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_asked(tok: Tokenizer, name: str) -> None:
    with pytest.raises(ValueError, match="chat"):
        diagnose(tok, **WRONG[name])
