"""What the assistant wrote in a prompt, under llama.cpp's templates and under some with `{% generation %}`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy
import pytest
from recorded_chats import VOCABULARY

from ggufbpe import ChatError, Tokenizer
from ggufbpe.chat.assistant_mask import AssistantSpans, WrittenSpan, mask_of
from ggufbpe.chat.known_templates import known_templates

TOK = Tokenizer.from_gguf(VOCABULARY)
TOOLS = [
    {
        "type": "function",
        "function": {"name": "weather", "description": "d", "parameters": {"type": "object"}},
    }
]
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}
CHAT = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello!"},
    {"role": "user", "content": "Rain?"},
    {"role": "assistant", "content": "I look.", "reasoning_content": "A tool.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
    {"role": "assistant", "content": "Yes."},
]


def written(
    messages: Sequence[Mapping[str, Any]],
    template: str,
    parts: Collection[Any] | bool = True,
    tools: Sequence[Mapping[str, Any]] | None = TOOLS,
) -> list[str]:
    """The runs of tokens that the mask marks, as text."""
    ids, mask = TOK.apply_chat_template(
        messages,
        tools=tools,
        chat_template=template,
        return_assistant_mask=parts,  # type: ignore[arg-type]
    )
    assert len(ids) == len(mask)
    runs: list[list[int]] = [[]]
    for token, is_marked in zip(ids, mask):
        if is_marked:
            runs[-1].append(token)
        elif runs[-1]:
            runs.append([])
    return [
        b"".join(TOK.token_to_piece(token, special=True) for token in run).decode() for run in runs if run
    ]


QWEN3 = [
    "Hello!<|im_end|>",
    "<think>\nA tool.\n</think>\n\nI look.\n<tool_call>\n"
    '{"name": "weather", "arguments": {"city": "Bonn"}}\n</tool_call><|im_end|>',
    "<think>\n\n</think>\n\nYes.<|im_end|>",
]
GPT_OSS = [
    "<|channel|>final<|message|>Hello!",
    ' to=functions.weather<|channel|>commentary json<|message|>{"city": "Bonn"}<|call|>',
    "<|channel|>final<|message|>Yes.",
]


def test_turns_with_marks_calls_and_ends() -> None:
    assert written(CHAT, "known:Qwen-Qwen3-0.6B") == QWEN3


def test_the_name_of_a_function_before_its_result_is_not_the_assistants() -> None:
    found = written(
        [*CHAT[:3], {**CHAT[3], "reasoning_content": "", "content": ""}, *CHAT[4:]],
        "known:openai-gpt-oss-120b",
    )
    assert [each.replace("<|end|>", "").replace("<|return|>", "") for each in found] == GPT_OSS


PARTS = {
    ("content",): ["Hello!", "I look.", "<think>\n\n</think>\n\nYes."],
    ("reasoning",): ["<think>\nA tool.\n</think>\n\n"],
    ("tool_calls",): ['\n<tool_call>\n{"name": "weather", "arguments": {"city": "Bonn"}}\n</tool_call>'],
    ("end",): ["<|im_end|>"] * 3,
    ("content", "end"): [
        "Hello!<|im_end|>",
        "I look.",
        "<|im_end|>",
        "<think>\n\n</think>\n\nYes.<|im_end|>",
    ],
    (): [],
}


@pytest.mark.parametrize("parts", PARTS)
def test_parts(parts: tuple[str, ...]) -> None:
    assert written(CHAT, "known:Qwen-Qwen3-0.6B", parts) == PARTS[parts]


def test_a_generation_prompt_that_begins_the_reasoning_is_not_the_assistants() -> None:
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}<think>\n"
        "{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
    )
    chat = [CHAT[0], {"role": "assistant", "content": "Yes.", "reasoning_content": "hm"}]
    assert written(chat, template, tools=None) == ["hm</think>Yes.<|im_end|>"]


@pytest.mark.parametrize("name", known_templates())
def test_every_known_template_marks_all_contents_and_nothing_of_others(name: str) -> None:
    chat = [
        {"role": "user", "content": "QUESTION ONE"},
        {"role": "assistant", "content": "ANSWER ONE"},
        {"role": "user", "content": "QUESTION TWO"},
        {"role": "assistant", "content": "ANSWER TWO"},
    ]
    try:
        TOK.apply_chat_template(chat, chat_template=f"known:{name}")
    except ChatError:
        return  # llama-server refuses this chat, too
    found = "".join(written(chat, f"known:{name}", tools=None))
    assert "QUESTION" not in found
    assert ("ANSWER ONE" in found, "ANSWER TWO" in found) == (True, True)


GENERATION = (
    "{% for m in messages %}{% if m.role == 'assistant' %}<|im_start|>assistant\n{% generation %}"
    "{{ m.content }}<|im_end|>\n{%- endgeneration %}{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


EMPTY = "{% generation %}{% endgeneration %}"


def test_generation_blocks_decide() -> None:
    chat = [CHAT[0], CHAT[1], CHAT[2], {"role": "assistant", "content": "Yes."}]
    assert written(chat, GENERATION, tools=None) == ["Hello!<|im_end|>", "Yes.<|im_end|>"]
    without_end = GENERATION.replace("<|im_end|>\n{%- endgeneration %}", "{% endgeneration %}<|im_end|>\n")
    assert written(chat, without_end, tools=None) == ["Hello!", "Yes."]
    assert written(chat, GENERATION, ["end"], tools=None) == ["<|im_end|>"] * 2
    nothing = GENERATION.replace("{% generation %}", "").replace("{%- endgeneration %}", EMPTY)
    assert written(chat, nothing, tools=None) == []


def test_marks_of_blocks_in_a_message_change_nothing() -> None:
    chat = [{"role": "user", "content": "\x1f\x01Hi\x1f\x02"}, CHAT[1]]
    assert written(chat, GENERATION, tools=None) == ["Hello!<|im_end|>"]


def test_a_chat_that_goes_on() -> None:
    assert written(CHAT[:3], "known:chatml", tools=None) == ["Hello!<|im_end|>"]
    ids, mask = TOK.apply_chat_template(
        CHAT[:2],
        chat_template="known:chatml",
        add_generation_prompt=False,
        continue_final_message=True,
        return_assistant_mask=True,
    )
    assert [token for token, is_marked in zip(ids, mask) if is_marked] == TOK.encode(
        "Hello!", add_special=False
    )
    assert (
        sum(TOK.apply_chat_template(CHAT[:1], chat_template="known:chatml", return_assistant_mask=True)[1])
        == 0
    )


def test_a_bool_of_numpy_is_one_of_python() -> None:
    def found(flag: Any) -> Any:
        return TOK.apply_chat_template(CHAT[:2], chat_template="known:chatml", return_assistant_mask=flag)

    assert [found(numpy.True_), found(numpy.False_)] == [found(True), found(False)]


def test_an_eos_that_the_tokenizer_adds_ends_the_last_turn() -> None:
    tok = TOK.with_overrides({"tokenizer.ggml.add_eos_token": True})
    template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    for parts, expected in ((True, 1), (["content"], 0)):
        ids, mask = tok.apply_chat_template(
            CHAT[:2],
            chat_template=template,
            return_assistant_mask=parts,  # type: ignore[arg-type]
        )
        assert (ids[-1], mask[-1]) == (tok.eos_id, expected)


@pytest.mark.parametrize("template", ["known:chatml", GENERATION])
def test_messages_before_an_answer_can_be_left_out(template: str) -> None:
    chat = [CHAT[0], CHAT[1], CHAT[2], CHAT[5]]
    finder = AssistantSpans(TOK)
    for first, texts in ((0, [b"Hello!", b"Yes."]), (2, [b"Yes."]), (3, [b"Yes."]), (4, [])):
        rendered, spans = finder.find({"messages": chat}, template, left_out=range(first))
        found = b"".join(rendered.prompt[span.start : span.end] for span in spans)
        assert found == b"".join(text + b"<|im_end|>" for text in texts)


@pytest.mark.parametrize(
    "name",
    ["deepseek-ai-DeepSeek-V3.1", "Qwen3.5-4B", "deepseek-ai-DeepSeek-V3.2", "NVIDIA-Nemotron-Nano-v2"],
)
@pytest.mark.parametrize(
    "before",
    [[CHAT[5]], [{"role": "system", "content": "x"}, CHAT[5]], [{"role": "user", "content": "/no_think"}]],
)
def test_what_is_found_does_not_depend_on_the_chats_before(name: str, before: list[Any]) -> None:
    chats = [{"messages": [*before, *CHAT[:2]]}, {"messages": CHAT[:2]}]
    if before[0]["role"] == "user":
        chats[0]["messages"].insert(1, CHAT[1])
    template = f"known:{name}"
    forwards, backwards = AssistantSpans(TOK), AssistantSpans(TOK)
    found = [forwards.find(chat, template) for chat in chats]
    assert found == [backwards.find(chat, template) for chat in chats[::-1]][::-1]


def test_what_cannot_be_asked() -> None:
    with pytest.raises(ValueError, match="content, end, reasoning, tool_calls, not 'thoughts'"):
        AssistantSpans(TOK, ["thoughts"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="tokenize=True"):
        TOK.apply_chat_template(
            CHAT, chat_template="known:chatml", return_assistant_mask=True, tokenize=False
        )  # type: ignore[call-overload]
    with pytest.raises(ChatError):
        TOK.apply_chat_template(5, chat_template="known:chatml", return_assistant_mask=True)  # type: ignore[call-overload]


def test_tokens_that_overlap_a_span() -> None:
    spans = [WrittenSpan(2, 4, "content"), WrittenSpan(4, 5, "end"), WrittenSpan(9, 9, "end")]
    places = [(0, 0), (0, 3), (3, 5), (5, 9), (9, 9), (9, 12)]
    assert mask_of(spans, places) == [0, 1, 1, 0, 0, 0]
    assert mask_of([], places) == [0] * 6
    assert mask_of(spans, []) == []
