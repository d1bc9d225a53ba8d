"""Recognizes templates that llama.cpp handles specially, by what their source contains.

For all other templates, `reasoning` and `output` find out what is needed.

Source: common_chat_template_detect_params_init in common/chat.cpp, and common/parsers/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..template.attributed_text import with_origin_of
from ..template.values import WHITE_SPACE, viewed
from .chat_message import Message
from .continuation_check import FENCE, may_begin
from .json_text import JSONError, parsed_as_llama_cpp
from .messages import Request
from .schemas import schemas_of_answer, schemas_of_tools

Messages = list[dict[str, Any]]
Adjust = Callable[[Messages, Mapping[str, Any]], Messages]


@dataclass(frozen=True)
class Handling:
    """One way of handling a template.

    It is that of sources with all texts of `present` and none of `absent`. A continued answer begins with `start` and
    its reasoning; if the content is continued, `middle` and the content follow. With `plain`, there is no place for
    reasoning: the content follows `start` in any case.
    """

    present: tuple[str, ...]
    absent: tuple[str, ...] = ()
    start: str = ""
    middle: str = ""
    plain: bool = False
    thinking: bool = True
    adjust: Adjust | None = None
    arguments: tuple[str, ...] = ()  # of the request's chat_template_kwargs, those that `adjust` reads
    handler: str = ""  # what else has to be done: a name in `render`
    both_prompts: bool = True  # whether llama.cpp renders it both with and without the generation prompt
    opening: str = ""  # what the parser of the output expects first
    json_openings: tuple[str, ...] = ()  # of which it expects one first, if JSON is asked for
    # of the request: "answer", "tools" or both; "either" is that of the answer first
    read_schemas: str = "either"
    # what the grammar has of the schemas of tools: "whole", "arguments" or nothing
    grammar_of_tools: str = "arguments"
    # and the values of tool_choice for which it lacks the schema of the answer if there are tools
    without_answer: tuple[str, ...] = ()
    output: str = "peg-native"  # the name of that parser

    def schemas(self, request: Request) -> list[Any]:
        """The schemas that the parser of the output has, in the order in which llama.cpp reads them."""
        of_answer, of_tools = schemas_of_answer(request), schemas_of_tools(request)
        if self.read_schemas == "either":
            return of_answer or of_tools
        if self.read_schemas == "answer without tools":
            return [] if request.tools and request.tool_choice != "none" else of_answer
        by_name = {"answer": of_answer, "tools": of_tools}
        return [schema for name in self.read_schemas.split() for schema in by_name[name]]

    def has(self, source: str) -> bool:
        """Whether a source belongs to it."""
        return all(text in source for text in self.present) and not any(
            text in source for text in self.absent
        )

    def may_begin_with(self, text: str, request: Request) -> bool:
        """Whether the parser of the output accepts a text as the start of an answer."""
        wanted: tuple[str, ...] = (self.opening,)
        if self.json_openings and isinstance(request.json_schema, dict):
            wanted = self.json_openings
            if request.extracts_reasoning:
                wanted += (self.start,)
        return any(may_begin(text, viewed(opening)) for opening in wanted)

    def prefill(self, message: Message, request: Request) -> str:
        """The start of an answer that goes on."""
        if self.plain:
            return self.start + message.rendered_content()
        out = self.start + message.reasoning
        if request.continuation == "content":
            out += self.middle + message.rendered_content()
        return out


# ---- messages changed before --------------------------------------------------------------------


def _as_thinking(messages: Messages, arguments: Mapping[str, Any]) -> Messages:
    """Messages whose reasoning is called `thinking`."""
    return [{**m, "thinking": m["reasoning_content"]} if "reasoning_content" in m else m for m in messages]


def _as_thinking_alone(messages: Messages, arguments: Mapping[str, Any]) -> Messages:
    """Messages whose reasoning is called `thinking`, and which have no content if they have tool calls."""
    out = _as_thinking(messages, arguments)
    for message in out:
        if "thinking" in message and message.get("tool_calls"):
            message.pop("content", None)
    return out


def _with_reasoning(messages: Messages, arguments: Mapping[str, Any]) -> Messages:
    """Reasoning in every answer, empty if need be."""
    return [
        {**m, "reasoning_content": ""} if m["role"] == "assistant" and "reasoning_content" not in m else m
        for m in messages
    ]


def _in_blocks(messages: Messages, arguments: Mapping[str, Any]) -> Messages:
    """Contents of system messages and answers as blocks, one of which is the reasoning."""
    out = []
    for message in messages:
        if message["role"] not in ("system", "assistant"):
            out.append(message)
            continue
        blocks: list[Any] = []
        if "reasoning_content" in message:
            blocks.append({"type": "thinking", "thinking": message["reasoning_content"]})
        content = message.get("content")
        if isinstance(content, str):
            blocks.append({"type": "text", "text": content})
        elif isinstance(content, list):
            blocks.extend(content)
        kept = {name: value for name, value in message.items() if name != "reasoning_content"}
        out.append({**kept, "content": blocks})
    return out


def _with_responses(messages: Messages, arguments: Mapping[str, Any]) -> Messages:
    """Moves the results of tool calls, and the answer after them, into the message with the calls."""
    out, position = [], 0
    while position < len(messages):
        message = messages[position]
        position += 1
        if message["role"] != "assistant" or not message.get("tool_calls"):
            out.append(message)
            continue
        calls = message["tool_calls"]
        responses: list[dict[str, Any]] = []
        while position < len(messages) and messages[position]["role"] == "tool":
            responses.append(_response(messages[position], calls, len(responses)))
            position += 1
        merged: dict[str, Any] = {"role": "assistant", "tool_calls": calls}
        if responses:
            merged["tool_responses"] = responses
        if position < len(messages):
            following = messages[position]
            if (
                following["role"] == "assistant"
                and not following.get("tool_calls")
                and following.get("content")
            ):
                merged["content"] = following["content"]
                position += 1
        if "reasoning_content" in message:
            merged["reasoning_content"] = message["reasoning_content"]
        out.append(merged)
    return out


def _response(message: dict[str, Any], calls: list[dict[str, Any]], number: int) -> dict[str, Any]:
    response = message.get("content")
    if isinstance(response, str):
        try:
            response = with_origin_of(response, parsed_as_llama_cpp(response))
        except JSONError:
            response = message["content"]
    name = calls[number]["function"]["name"] if number < len(calls) else ""
    return {"name": name or message.get("tool_call_id", ""), "response": response}


def _results_in_order(messages: Messages, arguments: Mapping[str, Any]) -> Messages:
    """Puts consecutive results into the order of their calls."""
    out, order, position = list(messages), dict[str, int](), 0
    while position < len(out):
        message = out[position]
        if message["role"] == "assistant" and message.get("tool_calls"):
            order = {call["id"]: n for n, call in enumerate(message["tool_calls"]) if call.get("id")}
        if message["role"] not in ("user", "tool"):
            position += 1
            continue
        end = position
        while end < len(out) and out[end]["role"] in ("user", "tool"):
            end += 1
        places = [at for at in range(position, end) if out[at]["role"] == "tool"]
        if len(places) > 1 and order:
            results = sorted(
                (out[at] for at in places), key=lambda m: order.get(m.get("tool_call_id", ""), 0)
            )
            for at, result in zip(places, results):
                out[at] = result
        position = end
    return out


_LANGUAGES = ("source_lang_code", "target_lang_code")


def _with_languages(messages: Messages, arguments: Mapping[str, Any]) -> Messages:
    """User messages as a single part, with the languages to translate from and to."""
    languages = {name: str(arguments.get(name, "en-GB")) for name in _LANGUAGES}
    out = []
    for message in messages:
        if message["role"] == "user":
            content = message.get("content")
            text = content if isinstance(content, str) else ""
            for part in content if isinstance(content, list) else ():
                text += ("\n" if text else "") + part.get("text", "")
            message = {**message, "content": [{"type": "text", "text": text, **languages}]}
        out.append(message)
    return out


# ---- the table, in the order in which llama.cpp asks --------------------------------------------

_HARMONY = Handling(
    ("<|channel|>",),
    start="<|start|>assistant<|channel|>analysis<|message|>",
    opening="<|start|>assistant",
    middle="<|end|><|start|>assistant<|channel|>final<|message|>",
    adjust=_as_thinking_alone,
    handler="end_for_return",
    grammar_of_tools="whole",
)
_GEMMA_4 = Handling(
    ("'<|tool_call>call:'",),
    start="<|channel>thought\n",
    json_openings=("<|turn>model\n", "<|channel>", FENCE),
    output="peg-gemma4",
    read_schemas="answer",
    middle="<channel|>",
    handler="turn_of_model",
)
_LFM_OPENING = "<|im_start|>assistant\n"
_LFM = Handling(
    ("<|tool_list_start|>", "<|tool_list_end|>"),
    start=_LFM_OPENING + "<think>",
    middle="</think>",
    opening=_LFM_OPENING,
    read_schemas="answer without tools",
    adjust=_as_thinking,
)
_CALL_AND_PARAMETERS = ("<tool_call>", "<function=", "<parameter=")

HANDLINGS = (
    Handling(
        ("[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"),
        ("[CALL_ID]",),
        start="[THINK]",
        middle="[/THINK]",
        json_openings=(FENCE, *WHITE_SPACE),
        adjust=_in_blocks,
        grammar_of_tools="whole",
        without_answer=("auto",),
    ),
    replace(_HARMONY, present=("chat_format=llm-jp-harmony-v1",), opening="<|start|>"),
    _HARMONY,
    Handling(
        ("<atem:function_calls>", "<|eom|>"),
        start="<|start|>assistant to=self<|message|>",
        opening="<|start|>assistant",
        middle="<|eom|><|start|>assistant to=user<|message|>",
        both_prompts=False,
    ),
    Handling(
        (">>>all", ">>>${recipient}"),
        start="<|start_header_id|>assistant<|end_header_id|>\n\n>>>all\n",
        opening="<|start_header_id|>assistant<|end_header_id|>\n\n>>>",
        read_schemas="tools",
        plain=True,
        thinking=False,
        grammar_of_tools="whole",
    ),
    Handling(
        ("<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
        start="<|im_assistant|>assistant<|im_middle|><think>",
        opening="<|im_assistant|>assistant<|im_middle|>",
        read_schemas="tools",
        middle="</think>",
        grammar_of_tools="whole",
    ),
    Handling(
        ("<|open|>", "<|close|>", "<|end_of_msg|>"),
        start='<|open|>message role="assistant"<|sep|><|open|>think<|sep|>',
        middle="<|close|>think<|sep|><|open|>response<|sep|>",
        read_schemas="",
    ),
    Handling(
        ("<|ifm|im_start|>", "<ifm|tool_calls>"),
        start="<|ifm|im_start|>assistant\n<{}>\n",
        opening="<|ifm|im_start|>assistant\n",
        middle="</{}>",
        adjust=_with_reasoning,
        handler="think_by_effort",
    ),
    Handling(
        ("<role>ASSISTANT</role>", "<arg_key>"),
        start="<role>ASSISTANT</role>\n<think>",
        json_openings=("<role>ASSISTANT</role>", "<think>"),
        middle="</think>",
    ),
    Handling(
        ("<|START_TEXT|>", "<|START_ACTION|>"),
        start="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>",
        opening="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        read_schemas="answer tools",
        middle="<|END_THINKING|><|START_TEXT|>",
        grammar_of_tools="whole",
        without_answer=("required",),
    ),
    _LFM,
    replace(_LFM, present=("List of tools: [",), absent=("<|tool_list_start|>",)),
    Handling(
        ("<|role_sep|>", "<|message_sep|>"),
        ("<|function_call|>",),
        start="assistant<|role_sep|>\n",
        opening="assistant<|role_sep|>\n",
        read_schemas="tools",
        plain=True,
        thinking=False,
        grammar_of_tools="whole",
    ),
    Handling(
        ("]<]minimax[>[", "<tool_call>", "<invoke name="),
        start="<mm:think>",
        middle="</mm:think>",
        handler="after_generation_prompt",
        output="peg-minimax-m3",
        grammar_of_tools="",
    ),
    Handling(
        ("dsml_token", "DSML", "function_calls"),
        start="<｜Assistant｜><think>",
        opening="<｜Assistant｜>",
        read_schemas="tools answer",
        without_answer=("auto", "none"),
        middle="</think>",
    ),
    Handling(
        ("dsml_token", "DSML", "tool_calls"),
        start="<｜Assistant｜><think>",
        opening="<｜Assistant｜>",
        read_schemas="tools answer",
        without_answer=("auto", "none"),
        middle="</think>",
        adjust=_results_in_order,
        handler="closed_without_reasoning",
    ),
    replace(_GEMMA_4, absent=("{#- OpenAI Chat Completions:",), adjust=_with_responses),
    _GEMMA_4,
    Handling(
        ("Tool usage guidelines:", '<function name="', '<param name="'),
        start="<|im_start|>assistant\n<think>\n",
        opening="<|im_start|>assistant\n",
        middle="\n</think>\n\n",
    ),
    Handling(
        ("[source_lang_code]", "[target_lang_code]"),
        start="<start_of_turn>model\n",
        read_schemas="",
        plain=True,
        thinking=False,
        adjust=_with_languages,
        arguments=_LANGUAGES,
    ),
    Handling(
        (*_CALL_AND_PARAMETERS, "<think>"),
        ("'<tool_call><function=' ~ tool_call.name ~ '>'",),
        start="<|im_start|>assistant\n<think>\n",
        opening="<|im_start|>assistant\n",
        middle="\n</think>\n\n",
        without_answer=("auto",),
    ),
    Handling(
        _CALL_AND_PARAMETERS,
        ("'<tool_call><function=' ~ tool_call.name ~ '>'",),
        start="<|im_start|>assistant\n",
        opening="<|im_start|>assistant\n",
        thinking=False,
        handler="without_reasoning",
        without_answer=("auto",),
    ),
)


def find_handling(source: str) -> Handling | None:
    """The family of a template; None for one that llama.cpp does not know."""
    return next((family for family in HANDLINGS if family.has(source)), None)
