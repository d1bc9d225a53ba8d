"""The JSON Schemas of answers, for /openapi.json: those of commands from the package, the others from this table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
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


def _props() -> Schema:
    return _object(
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


def _of_others() -> dict[str, Schema]:
    """The answers that other servers give, too; what those leave open is open here."""
    status = _object(status={"const": "ok"})
    models = _object(models=_array(_OBJECT), object={"const": "list"}, data=_array(_OBJECT))
    counted = _object(input_tokens=_COUNT, object={"const": "response.input_tokens"})
    piece = _object(id=_COUNT, piece={"anyOf": [_TEXT, _array(_COUNT)]})
    ids_or_pieces: Schema = {"type": "array", "items": {"anyOf": [{"type": "integer"}, piece]}}
    durations = {"total_duration": _COUNT, "load_duration": _COUNT}
    tokenizer_info = _object(
        tokenizer_class=_TEXT,
        vocab_size=_COUNT,
        **{f"{name}_token": _or_null(_TEXT) for name in ("bos", "eos", "pad", "unk")},
        add_bos_token=_TRUTH,
        add_eos_token=_TRUTH,
        chat_template=_TEXT,
    )
    shown = _object(
        template=_TEXT, details=_OBJECT, model_info=_OBJECT, capabilities=_array(_TEXT), modified_at=_TEXT
    )
    return {
        "/health": status,
        "/v1/health": status,
        "/props": _props(),
        "/tokenizer_info": tokenizer_info,
        "/models": models,
        "/v1/models": models,
        "/tokenize": _object(
            ("count", "max_model_len", "token_strs"),
            tokens=ids_or_pieces,
            count=_COUNT,
            max_model_len=_or_null(_COUNT),
            token_strs=_or_null(_array(_TEXT)),
        ),
        "/detokenize": _object(content=_TEXT, prompt=_TEXT),
        "/apply-template": _object(prompt=_TEXT),
        "/chat/completions/input_tokens": counted,
        "/v1/chat/completions/input_tokens": counted,
        "/responses/input_tokens": counted,
        "/v1/responses/input_tokens": counted,
        "/infill/input_tokens": counted,
        "/v1/rerank/input_tokens": _object(**counted["properties"], documents=_array(_COUNT)),
        "/v1/messages/count_tokens": _object(input_tokens=_COUNT),
        "/api/tokenize": _object(model=_TEXT, tokens=_IDS, **durations),
        "/api/detokenize": _object(model=_TEXT, content=_TEXT, **durations),
        "/api/version": _object(version=_TEXT),
        "/api/tags": _object(models=_array(_OBJECT)),
        "/api/show": shown,
    }


@cache
def answer_schemas() -> Mapping[str, Schema]:
    """The schema of the answer of each endpoint, by its path."""
    token = _object(
        ("id",),
        id=_COUNT,
        piece=_or_null(_TEXT),
        bytes=_TEXT,
        text=_TEXT,
        types=_array(_TEXT),
        special=_TRUTH,
    )
    chat = json_schema("chat")["properties"]
    origins: dict[str, Schema] = _in_description(
        {name: chat[name] for name in ("parts", "tokens_by_origin", "injected")}
    )
    verified = _of_command("verify", "verdict", "findings")
    smallest = _or_null(_object(text=_TEXT, ours=_IDS, theirs=_IDS))
    return {
        **_of_others(),
        "/v1/count": _object(counts=_array(_COUNT), total=_COUNT),
        "/v1/common_prefix": _object(ids=_COUNT, position=_COUNT, cause=_TEXT),
        "/v1/fits": _object(fits=_TRUTH, count=_or_null(_COUNT)),
        "/v1/truncate": _object(text=_TEXT, count=_COUNT, truncated=_TRUTH),
        "/v1/split": _object(spans=_array({**_array(_COUNT), "minItems": 2, "maxItems": 2})),
        "/v1/fit": _object(
            messages=_array(_OBJECT),
            prompt=_TEXT,
            count=_COUNT,
            limit=_COUNT,
            dropped=_array(_COUNT),
            shortened=_array(_COUNT),
            tokens_by_origin=origins["tokens_by_origin"],
        ),
        "/v1/explain": {
            "anyOf": [_of_command("explain", "model", form=form) for form in ("trace", "why not")]
        },
        "/v1/diff": _diff(),
        "/v1/diagnose": _of_command("diagnose", "model", "verdict", "findings"),
        "/v1/tokens": _object(
            ("text", "prompt", "notes", *origins),
            ids=_IDS,
            spans=_array(_COUNT),
            tokens={"type": "object", "additionalProperties": token},
            characters=_COUNT,
            bytes=_COUNT,
            text=_TEXT,
            prompt=_TEXT,
            notes=_array(_TEXT),
            **origins,
        ),
        "/v1/vocabulary": _object(found=_array(token), count=_COUNT),
        "/v1/word": _of_command("explain", "model", form="token"),
        "/v1/why": _object(sentences=_array(_array({"anyOf": [_TEXT, _object(text=_TEXT)]}))),
        "/v1/parting": {
            **verified,
            "properties": {**verified["properties"], "smallest": smallest},
        },
    }
