"""The JSON Schemas of answers, for /openapi.json: those of commands from the package, the others written here."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ..analysis.views.answers import json_schema

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_TRUTH: Schema = {"type": "boolean"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_IDS: Schema = {"type": "array", "items": {"type": "integer"}}
_OBJECT: Schema = {"type": "object"}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(optional: Iterable[str] = (), **properties: Schema) -> Schema:
    """An object with these fields and no others, of which some may be missing."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _in_description(schema: Any) -> Any:
    """A copy of schemas of commands whose shared definitions stand where a description has them."""
    return json.loads(json.dumps(schema).replace("#/$defs/", "#/components/schemas/"))


def _of_command(command: str, *without: str, form: str = "") -> Schema:
    """What a command prints with `--json`, without the fields that only commands have.

    Of a command with several forms, `form` is the title of one.
    """
    schema: Schema = _in_description(json_schema(command))
    for name in ("$schema", "$id", "$defs"):
        del schema[name]
    if form:
        schema = next(each for each in schema["anyOf"] if each["title"] == form)
    left_out = {"schema", *without}
    properties = {name: each for name, each in schema["properties"].items() if name not in left_out}
    required = [name for name in schema["required"] if name not in left_out]
    return {**schema, "properties": properties, "required": required}


def shared_definitions() -> dict[str, Schema]:
    """The definitions that the schemas of commands refer to, by name."""
    found: dict[str, Schema] = _in_description(json_schema("error")["$defs"])
    return found


def _diff() -> Schema:
    """What `diff` prints of two models that are compared, not of a draft and its target."""
    schema = _of_command("diff", "model", "verdict", "findings", "target", "draft", "reason")
    del schema["anyOf"]
    return {**schema, "required": [name for name in schema["properties"] if name != "texts"]}


_DURATIONS = {"total_duration": _COUNT, "load_duration": _COUNT}
_PIECE = _object(id=_COUNT, piece={"anyOf": [_TEXT, _array(_COUNT)]})
_TOKEN = _object(
    ("id",),
    id=_COUNT,
    piece=_or_null(_TEXT),
    bytes=_TEXT,
    text=_TEXT,
    types=_array(_TEXT),
    special=_TRUTH,
)
_CHAT = json_schema("chat")["properties"]
_ORIGINS: dict[str, Schema] = _in_description(
    {name: _CHAT[name] for name in ("parts", "tokens_by_origin", "injected")}
)
_VERIFIED = _of_command("verify", "verdict", "findings")
_SMALLEST = _or_null(_object(text=_TEXT, ours=_IDS, theirs=_IDS))

# ---- of other servers; what those leave open is open here -----------------------------------------------

STATUS = _object(status={"const": "ok"})
PROPS = _object(
    ("chat_template_tool_use",),
    default_generation_settings=_OBJECT,
    total_slots=_COUNT,
    model_alias=_TEXT,
    model_path=_TEXT,
    modalities=_object(vision=_TRUTH, video=_TRUTH, audio=_TRUTH),
    endpoint_slots=_TRUTH,
    endpoint_props=_TRUTH,
    endpoint_metrics=_TRUTH,
    chat_template=_TEXT,
    chat_template_caps={"type": "object", "additionalProperties": _TRUTH},
    chat_template_tool_use=_TEXT,
    bos_token=_TEXT,
    eos_token=_TEXT,
    build_info=_TEXT,
    is_sleeping=_TRUTH,
)
TOKENIZER_INFO = _object(
    tokenizer_class=_TEXT,
    vocab_size=_COUNT,
    **{f"{name}_token": _or_null(_TEXT) for name in ("bos", "eos", "pad", "unk")},
    add_bos_token=_TRUTH,
    add_eos_token=_TRUTH,
    chat_template=_TEXT,
)
MODELS = _object(models=_array(_OBJECT), object={"const": "list"}, data=_array(_OBJECT))
TOKENIZED = _object(
    ("count", "max_model_len", "token_strs"),
    tokens=_array({"anyOf": [{"type": "integer"}, _PIECE]}),
    count=_COUNT,
    max_model_len=_or_null(_COUNT),
    token_strs=_or_null(_array(_TEXT)),
)
DETOKENIZED = _object(content=_TEXT, prompt=_TEXT)
PROMPT = _object(prompt=_TEXT)
COUNTED = _object(input_tokens=_COUNT, object={"const": "response.input_tokens"})
COUNTED_OF_EACH = _object(**COUNTED["properties"], documents=_array(_COUNT))
COUNTED_MESSAGES = _object(input_tokens=_COUNT)
TOKENIZED_BY_OLLAMA = _object(model=_TEXT, tokens=_IDS, **_DURATIONS)
DETOKENIZED_BY_OLLAMA = _object(model=_TEXT, content=_TEXT, **_DURATIONS)
VERSION = _object(version=_TEXT)
TAGS = _object(models=_array(_OBJECT))
SHOWN = _object(
    template=_TEXT, details=_OBJECT, model_info=_OBJECT, capabilities=_array(_TEXT), modified_at=_TEXT
)

# ---- our own, wherever their paths are ------------------------------------------------------------------

COUNTS = _object(counts=_array(_COUNT), total=_COUNT)
COMMON_PREFIX = _object(ids=_COUNT, position=_COUNT, cause=_TEXT)
FITS = _object(fits=_TRUTH, count=_or_null(_COUNT))
TRUNCATED = _object(text=_TEXT, count=_COUNT, truncated=_TRUTH)
SPANS = _object(spans=_array({**_array(_COUNT), "minItems": 2, "maxItems": 2}))
FITTED = _object(
    messages=_array(_OBJECT),
    prompt=_TEXT,
    count=_COUNT,
    limit=_COUNT,
    dropped=_array(_COUNT),
    shortened=_array(_COUNT),
    tokens_by_origin=_ORIGINS["tokens_by_origin"],
)
EXPLAINED = {"anyOf": [_of_command("explain", "model", form=form) for form in ("trace", "why not")]}
DIFF = _diff()
DIAGNOSED = _of_command("diagnose", "model", "verdict", "findings")
TOKENS = _object(
    ("text", "prompt", "notes", *_ORIGINS),
    ids=_IDS,
    spans=_array(_COUNT),
    tokens={"type": "object", "additionalProperties": _TOKEN},
    characters=_COUNT,
    bytes=_COUNT,
    text=_TEXT,
    prompt=_TEXT,
    notes=_array(_TEXT),
    **_ORIGINS,
)
FOUND = _object(found=_array(_TOKEN), count=_COUNT)
WORD = _of_command("explain", "model", form="token")
WHY = _object(sentences=_array(_array({"anyOf": [_TEXT, _object(text=_TEXT)]})))
PARTING = {**_VERIFIED, "properties": {**_VERIFIED["properties"], "smallest": _SMALLEST}}
