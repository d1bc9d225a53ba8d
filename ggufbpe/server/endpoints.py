"""Lists the endpoints of the API, each with the function that answers it and all that the description says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from ..chat.fitting import FitPolicy
from ..chat.prompt_tokenizer import SIDES
from ..tokenizer.boundaries import BOUNDARIES, SEPARATORS
from ..tokenizer.truncation import CUT_AT
from . import answer_schemas as schemas
from . import budgets_api, llama_server, model_inputs_api, native_api, ollama_api, other_servers, page_api
from .answer_schemas import Schema
from .served_models import Models


class Endpoint(NamedTuple):
    """A function from the JSON of a request to the JSON of its answer.

    The body of a GET is an object of its query, with the fields `query`. `is_quick`: a short body takes less time than
    handing it to a thread. `is_long`: it may take seconds of processor time, so nothing else should wait for it.
    `examples` are bodies of requests; between them, each field has every type that it may have. A body without one of
    the fields `required` is refused. `returns` is the schema of the answer, and `fields` has those of fields of which
    the description says more than their type.
    """

    method: str
    path: str
    answer: Callable[[Models, Any], Any]
    returns: Schema
    is_quick: bool = False
    examples: tuple[Mapping[str, Any], ...] = ()
    is_long: bool = False
    query: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    fields: Mapping[str, Schema] = {}

    @property
    def takes_model(self) -> bool:
        """Whether a request may name a model."""
        return self.method == "POST" or "model" in self.query

    @property
    def summary(self) -> str:
        """What it does: the first line of the function's docstring, which is "`PATH`: WHAT", from behind ": "."""
        return (self.answer.__doc__ or "").partition(": ")[2].partition("\n")[0]


_CHAT: Mapping[str, Any] = {"messages": [{"role": "user", "content": "Hello"}]}
_PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
_FUNCTION = {"name": "weather", "description": "The weather of a city.", "parameters": _PARAMETERS}
_WITH_TOOLS: Mapping[str, Any] = {
    **_CHAT,
    "tools": [{"type": "function", "function": _FUNCTION}],
    "tool_choice": "auto",
    "add_generation_prompt": True,
    "chat_template_kwargs": {"enable_thinking": False},
}
_OF_ANTHROPIC: Mapping[str, Any] = {
    **_CHAT,
    "system": "Answer briefly.",
    "tools": [{"name": "weather", "description": "The weather of a city.", "input_schema": _PARAMETERS}],
    "tool_choice": {"type": "auto"},
    "chat_template_kwargs": {"enable_thinking": False},
}
_RESPONSE: tuple[Mapping[str, Any], ...] = (
    {"input": "Hello"},
    {
        "input": _CHAT["messages"],
        "instructions": "Answer briefly.",
        "tools": [{"type": "function", **_FUNCTION}],
        "tool_choice": "auto",
        "reasoning": {"effort": "low"},
        "chat_template_kwargs": {"enable_thinking": False},
    },
)
_TEMPLATE = {"chat_template": "known:chatml"}
_FLAGS = {"add_special": True, "parse_special": True}


def _post(
    path: str,
    answer: Callable[[Models, Any], Any],
    *examples: Any,
    returns: Schema,
    fields: Mapping[str, Schema] | None = None,
    is_quick: bool = False,
    is_long: bool = False,
    required: tuple[str, ...] = (),
) -> Endpoint:
    return Endpoint("POST", path, answer, returns, is_quick, examples, is_long, (), required, fields or {})


def _one_of(values: Iterable[Any]) -> Schema:
    return {"enum": [*values]}


def _policy() -> Schema:
    """The fields of `FitPolicy`, each with its default."""
    types = {str: {"type": "string"}, int: {"type": "integer"}}
    properties = {}
    for name, value in asdict(FitPolicy()).items():
        if isinstance(value, tuple):
            properties[name] = {"type": "array", "items": types[str], "default": [*value]}
        else:
            properties[name] = {**types[type(value)], "default": value}
    properties["side"] |= _one_of(SIDES)
    return {"type": "object", "properties": properties, "additionalProperties": False}


_ALL = (
    Endpoint("GET", "/health", llama_server.health_answer, schemas.STATUS, is_quick=True),
    Endpoint("GET", "/v1/health", llama_server.health_answer, schemas.STATUS, is_quick=True),
    Endpoint("GET", "/props", llama_server.props_answer, schemas.PROPS, query=("model",)),
    Endpoint(
        "GET", "/tokenizer_info", other_servers.tokenizer_info, schemas.TOKENIZER_INFO, query=("model",)
    ),
    Endpoint("GET", "/models", llama_server.list_models, schemas.MODELS),
    Endpoint("GET", "/v1/models", llama_server.list_models, schemas.MODELS),
    _post(
        "/tokenize",
        other_servers.tokenize_either,
        {"content": "Hello world", "add_special": True, "parse_special": True, "with_pieces": True},
        {"content": ["Hello", 1, " world"]},
        {"prompt": "Hello world", "add_special_tokens": True, "return_token_strs": True},
        _CHAT,
        {**_WITH_TOOLS, **_TEMPLATE},
        returns=schemas.TOKENIZED,
        is_quick=True,
    ),
    _post(
        "/detokenize",
        other_servers.detokenize_either,
        {"tokens": [1, 2, 3]},
        returns=schemas.DETOKENIZED,
        is_quick=True,
    ),
    _post(
        "/apply-template",
        llama_server.apply_template,
        _CHAT,
        _WITH_TOOLS,
        returns=schemas.PROMPT,
        required=("messages",),
    ),
    _post(
        "/chat/completions/input_tokens",
        llama_server.count_chat,
        _CHAT,
        _WITH_TOOLS,
        returns=schemas.COUNTED,
        required=("messages",),
    ),
    _post(
        "/v1/chat/completions/input_tokens",
        llama_server.count_chat,
        _CHAT,
        _WITH_TOOLS,
        returns=schemas.COUNTED,
        required=("messages",),
    ),
    _post(
        "/responses/input_tokens",
        llama_server.count_response,
        *_RESPONSE,
        returns=schemas.COUNTED,
        required=("input",),
    ),
    _post(
        "/v1/responses/input_tokens",
        llama_server.count_response,
        *_RESPONSE,
        returns=schemas.COUNTED,
        required=("input",),
    ),
    _post(
        "/v1/messages/count_tokens",
        llama_server.count_messages,
        _CHAT,
        _OF_ANTHROPIC,
        returns=schemas.COUNTED_MESSAGES,
        required=("messages",),
    ),
    _post(
        "/api/tokenize",
        other_servers.ollama_tokenize,
        {"model": "NAME", "content": "Hello world"},
        returns=schemas.TOKENIZED_BY_OLLAMA,
        required=("model", "content"),
    ),
    _post(
        "/api/detokenize",
        other_servers.ollama_detokenize,
        {"model": "NAME", "tokens": [1, 2, 3]},
        returns=schemas.DETOKENIZED_BY_OLLAMA,
        required=("model", "tokens"),
    ),
    Endpoint("GET", "/api/version", ollama_api.version_answer, schemas.VERSION, is_quick=True),
    Endpoint("GET", "/api/tags", ollama_api.tags_answer, schemas.TAGS),
    _post(
        "/api/show",
        ollama_api.show_answer,
        {"model": "NAME", "verbose": False},
        {"name": "NAME"},
        returns=schemas.SHOWN,
    ),
    _post(
        "/infill/input_tokens",
        model_inputs_api.count_infill,
        {"input_prefix": "def f(", "input_suffix": "", "prompt": "", "input_extra": []},
        returns=schemas.COUNTED,
        required=("input_prefix", "input_suffix"),
    ),
    _post(
        "/v1/rerank/input_tokens",
        model_inputs_api.count_rerank,
        {"query": "Hello", "documents": ["world"]},
        {"query": "Hello", "texts": ["world"]},
        returns=schemas.COUNTED_OF_EACH,
        is_long=True,
        required=("query",),
    ),
    _post(
        "/v1/count",
        native_api.count_answer,
        {"texts": ["Hello", "world"], "add_special": True, "parse_special": True},
        {"texts": "Hello"},
        returns=schemas.COUNTS,
        required=("texts",),
    ),
    _post(
        "/v1/common_prefix",
        native_api.common_prefix_answer,
        {"tokens": [1, 2, 3], "content": "Hello world", "add_special": True, "parse_special": True},
        returns=schemas.COMMON_PREFIX,
        required=("tokens", "content"),
    ),
    _post(
        "/v1/fits",
        budgets_api.fits_answer,
        {"text": "Hello", "limit": 8192, "add_special": False, "parse_special": True},
        returns=schemas.FITS,
        required=("text", "limit"),
    ),
    _post(
        "/v1/truncate",
        budgets_api.truncate_answer,
        {"text": "Hello world", "limit": 1, "side": "right", "marker": "", "at": "character", **_FLAGS},
        returns=schemas.TRUNCATED,
        fields={"side": _one_of(SIDES), "at": _one_of(CUT_AT)},
        is_long=True,
        required=("text", "limit"),
    ),
    _post(
        "/v1/split",
        budgets_api.split_answer,
        {
            "text": "Hello world",
            "size": 3,
            "overlap": 0,
            "boundaries": "word",
            "keep_separator": "start",
            **_FLAGS,
        },
        {"text": "Hello world", "size": 1, "keep_separator": False},
        returns=schemas.SPANS,
        fields={"boundaries": _one_of(BOUNDARIES), "keep_separator": _one_of(SEPARATORS)},
        is_long=True,
        required=("text", "size"),
    ),
    _post(
        "/v1/fit",
        budgets_api.fit_answer,
        {**_WITH_TOOLS, **_TEMPLATE, "limit": 4096, "answer": 512, "keep": {"keep_last": 2}},
        returns=schemas.FITTED,
        fields={"keep": _policy()},
        is_long=True,
        required=("messages", "limit"),
    ),
    _post(
        "/v1/explain",
        native_api.explain_answer,
        {"text": "Hello", **_FLAGS},
        {"text": "Hello", "why_not": "He"},
        _CHAT,
        {**_WITH_TOOLS, **_TEMPLATE},
        returns=schemas.EXPLAINED,
        is_long=True,
    ),
    _post(
        "/v1/diff",
        native_api.diff_answer,
        {"models": ["A", "B"], "texts": ["Hello"]},
        returns=schemas.DIFF,
        is_long=True,
        required=("models",),
    ),
    _post(
        "/v1/diagnose",
        native_api.diagnose_answer,
        {"text": "Hello", "ids": [1, 2, 3], "others": ["B"], **_FLAGS},
        {**_WITH_TOOLS, "ids": [1, 2, 3]},
        {**_CHAT, "expected_prompt": "<|im_start|>user\nHello<|im_end|>\n"},
        returns=schemas.DIAGNOSED,
        is_long=True,
    ),
    _post(
        "/v1/tokens",
        page_api.tokens_answer,
        {"text": "Hello", **_FLAGS},
        {"ids": [1, 2, 3]},
        _WITH_TOOLS,
        returns=schemas.TOKENS,
    ),
    _post(
        "/v1/vocabulary",
        page_api.vocabulary_answer,
        {"query": "ell"},
        returns=schemas.FOUND,
        required=("query",),
    ),
    _post(
        "/v1/word",
        page_api.word_answer,
        {"text": "Hello", "token": 0, **_FLAGS},
        returns=schemas.WORD,
        is_long=True,
        required=("text", "token"),
    ),
    _post(
        "/v1/why",
        page_api.why_answer,
        {"text": "Hello", "piece": "He", **_FLAGS},
        returns=schemas.WHY,
        is_long=True,
        required=("text", "piece"),
    ),
    _post(
        "/v1/parting",
        page_api.parting_answer,
        {"models": ["A", "B"], "text": "Hello", **_FLAGS},
        {"text": "Hello", "ids": [1, 2, 3]},
        returns=schemas.PARTING,
        is_long=True,
        required=("text",),
    ),
)
ENDPOINTS: Mapping[tuple[str, str], Endpoint] = {(each.method, each.path): each for each in _ALL}
