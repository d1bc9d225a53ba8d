"""transformers: chats have the prompts of llama-server, and masks that mark what the assistant wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from integration_cases import TOK, library

library("transformers")

from ggufbpe.chat.assistant_mask import AssistantSpans  # noqa: E402 - after its library
from ggufbpe.integrations.transformers import GGUFTokenizer  # noqa: E402 - after its library

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|endoftext|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
MADE = GGUFTokenizer(TOK, chat_template=TEMPLATE)
ASKED = [{"role": "user", "content": "Hi"}]
CHAT = [*ASKED, {"role": "assistant", "content": "Hello there"}]
WHOLE = "<|user|>Hi<|endoftext|><|assistant|>Hello there<|endoftext|>"


def test_prompts() -> None:
    assert MADE.apply_chat_template(CHAT, tokenize=False) == WHOLE
    assert MADE.apply_chat_template([CHAT, ASKED], tokenize=False) == [WHOLE, "<|user|>Hi<|endoftext|>"]
    asked = MADE.apply_chat_template(ASKED, tokenize=False, add_generation_prompt=True)
    assert asked == TOK.apply_chat_template(ASKED, chat_template=TEMPLATE, tokenize=False)
    begun = MADE.apply_chat_template(CHAT, tokenize=False, continue_final_message=True)
    assert begun == WHOLE.removesuffix("<|endoftext|>")


@pytest.mark.parametrize("value", [1, 0, None])
def test_flags_need_not_be_bools_as_in_transformers(value: Any) -> None:
    asked = MADE.apply_chat_template(ASKED, tokenize=False, add_generation_prompt=bool(value))
    assert MADE.apply_chat_template(ASKED, tokenize=False, add_generation_prompt=value) == asked


def test_what_no_prompt_can_be_made_of() -> None:
    with pytest.raises(ValueError, match="needs a last message with the role 'assistant', not 'user'"):
        MADE.apply_chat_template(ASKED, tokenize=False, continue_final_message=True)
    for nothing in ([], [ASKED, []]):
        with pytest.raises(ValueError, match="at least one message"):
            MADE.apply_chat_template(nothing, tokenize=False)


def test_ids() -> None:
    asked = MADE.apply_chat_template(ASKED, add_generation_prompt=True)
    assert asked["input_ids"] == TOK.apply_chat_template(ASKED, chat_template=TEMPLATE)
    assert asked["attention_mask"] == [1] * len(asked["input_ids"])
    assert (
        MADE.apply_chat_template(ASKED, add_generation_prompt=True, return_dict=False) == asked["input_ids"]
    )
    assert MADE.apply_chat_template(ASKED, add_generation_prompt=True, return_tensors="np")[
        "input_ids"
    ].shape == (
        1,
        len(asked["input_ids"]),
    )


@dataclass
class Message:
    role: str
    content: str | None
    tool_calls: list[Any] | None = None


def test_messages_are_also_objects() -> None:
    """As in transformers: those of an OpenAI client, also within a dict."""
    pydantic = library("pydantic")
    model = pydantic.create_model("Model", role=(str, ...), content=(str, ...), name=(str | None, None))
    for kind in (Message, model):
        chat = [kind(role="user", content="Hi"), kind(role="assistant", content="Hello there")]
        for each in (chat, [CHAT[0], chat[1]], tuple(chat)):
            assert MADE.apply_chat_template(each, tokenize=False) == WHOLE
        assert MADE.apply_chat_template([chat, chat], tokenize=False) == [WHOLE, WHOLE]
    function = pydantic.create_model("Function", name=(str, ...), arguments=(str, ...))
    call = pydantic.create_model("Call", id=(str, "1"), type=(str, "function"), function=(function, ...))
    calls = [call(function=function(name="weather", arguments='{"city": "Rome"}'))]
    chat = [*ASKED, {"role": "assistant", "content": None, "tool_calls": calls}]
    plain = [*ASKED, {**chat[1], "tool_calls": [each.model_dump() for each in calls]}]
    template = TEMPLATE.replace(
        "{{ m.content }}", "{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}"
    )
    prompts = [
        MADE.apply_chat_template(each, chat_template=template, tokenize=False) for each in (chat, plain)
    ]
    assert prompts[0] == prompts[1]
    assert "Rome" in prompts[0]


def test_messages_of_a_dataset_have_none_for_what_they_lack() -> None:
    """As in transformers; llama-server would refuse a name that is null."""
    answer = {"role": "assistant", "content": "Hello there", "name": "a", "reasoning_content": "Hm"}
    rows = library("datasets").Dataset.from_dict({"messages": [[*ASKED, answer]] * 2})
    assert MADE.apply_chat_template(rows[0]["messages"], tokenize=False) == WHOLE
    for batch in (rows["messages"], rows.to_pandas()["messages"]):
        assert MADE.apply_chat_template(batch, tokenize=False) == [WHOLE, WHOLE]


def test_an_answer_may_have_no_content() -> None:
    """OpenAI's client has None there, too, and sends it: llama-server takes a content that is null."""
    message = library("openai.types.chat").ChatCompletionMessage
    thought = {"role": "assistant", "content": None, "reasoning_content": "Hm"}
    for answer in (thought, message.model_validate(thought), Message("assistant", None)):
        found = MADE.apply_chat_template([*ASKED, answer], tokenize=False)
        assert found == "<|user|>Hi<|endoftext|><|assistant|><|endoftext|>"


@pytest.mark.parametrize("chat", ["Hi", ASKED[0], [5]])
def test_what_is_no_message_is_refused(chat: Any) -> None:
    with pytest.raises(TypeError, match="a message is a dict, a dataclass or a pydantic model, not"):
        MADE.apply_chat_template(chat)


def test_templates_by_name() -> None:
    """As in transformers: tools choose the template `tool_use`, and any other is chosen by its name."""
    named = {
        "default": TEMPLATE,
        "tool_use": "tools: {{ tools[0].function.name }}",
        "rag": "rag: {{ messages[0].content }}",
    }
    made = GGUFTokenizer(TOK, chat_template=named)
    assert made.apply_chat_template(CHAT, tokenize=False) == WHOLE
    assert made.apply_chat_template(CHAT, chat_template="rag", tokenize=False) == "rag: Hi"
    assert made.apply_chat_template(CHAT, [weather], tokenize=False) == "tools: weather"
    assert made.apply_chat_template(CHAT, [weather], chat_template="default", tokenize=False) == WHOLE
    assert made.apply_chat_template(CHAT, chat_template="known:chatml", tokenize=False).startswith(
        "<|im_start|>"
    )


def test_assistant_mask() -> None:
    """The answer and the token that ends it; padding and what is cut off are not marked."""
    found = MADE.apply_chat_template(CHAT, return_assistant_tokens_mask=True)
    marked = [token for token, mask in zip(found["input_ids"], found["assistant_masks"]) if mask]
    assert TOK.decode(marked, unparse_special=True) == "Hello there<|endoftext|>"
    assert set(found) == {"input_ids", "attention_mask", "assistant_masks"}
    cut = MADE.apply_chat_template(
        CHAT, return_assistant_tokens_mask=True, truncation=True, max_length=len(found["input_ids"]) - 1
    )
    assert cut["assistant_masks"] == found["assistant_masks"][:-1]


def test_assistant_masks_of_a_batch() -> None:
    made = GGUFTokenizer(TOK, chat_template=TEMPLATE, pad_token="<|endoftext|>")
    found = made.apply_chat_template(
        [CHAT, ASKED], return_assistant_tokens_mask=True, padding=True, return_tensors="np"
    )
    alone = made.apply_chat_template(CHAT, return_assistant_tokens_mask=True)
    assert found["assistant_masks"].tolist() == [alone["assistant_masks"], [0] * len(alone["input_ids"])]


def weather(city: str) -> str:
    """Tell the weather.

    Args:
        city: The name of the city.
    """
    return city


def test_a_function_as_a_tool() -> None:
    template = "{% for t in tools %}{{ t.function.name }}: {{ t.function.description }}{% endfor %}"
    assert MADE.apply_chat_template(ASKED, [weather], chat_template=template, tokenize=False).startswith(
        "weather: Tell"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sanitize_control_tokens": True}, "sanitize_control_tokens is not supported"),
        ({"return_assistant_tokens_mask": True, "tokenize": False}, "requires"),
        ({"chat_template": "{{ raise_exception('no') }}"}, "no"),
    ],
)
def test_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MADE.apply_chat_template(ASKED, **options)


def test_no_template() -> None:
    with pytest.raises(ValueError, match="no chat template"):
        GGUFTokenizer(TOK).apply_chat_template(ASKED)


BLOCKS = {
    "to the end of the line": "{{ m.content }}<|endoftext|>\n{% endgeneration %}",
    "without the end": "{{ m.content }}{% endgeneration %}<|endoftext|>\n",
    "without white space": "\n {%- if true %}{{ m.content }}{% endif -%}\n {%- endgeneration %}<|endoftext|>",
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_masks_of_generation_blocks_are_those_of_transformers(block: str) -> None:
    template = (
        "{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' %}{% generation %}"
        f"{block}{{% else %}}{{{{ m.content }}}}\n{{% endif %}}{{% endfor %}}"
    )
    chat = [*CHAT, {"role": "user", "content": "naïve 者?"}, {"role": "assistant", "content": "者 yes"}]
    render = library("transformers.utils.chat_template_utils").render_jinja_template
    [prompt], [theirs] = render([chat], chat_template=template, return_assistant_tokens_mask=True)
    found = AssistantSpans(TOK).find({"messages": chat}, template)
    assert found[0].prompt.decode() == prompt
    marked = ["".join(prompt[start:end] for start, end in theirs)]
    assert marked == ["".join(found[0].prompt[start:end].decode() for start, end, _ in found[1])]
