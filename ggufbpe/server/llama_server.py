"""The endpoints of llama-server that need only a vocabulary: ids, texts, prompts, and token counts.

Where llama-server answers 500 to a mistake of the client, the status is 400 here: an id that no token has, a chat that
the template refuses.

Source: server_routes in tools/server/server-context.cpp.
"""

from __future__ import annotations

import time
from array import array
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._util.errors import ChatError
from .._util.llama_cpp_states import CHATS
from ..chat.chats import prompt_text
from ..chat.media import chat_media
from ..chat.request.capabilities import Capabilities
from ..tokenizer import Tokenizer
from .failures import RequestError
from .request_body import field, has_field, require_id, require_ids, require_string
from .request_forms import from_anthropic, from_responses
from .served_models import Models
from .streamed_answers import Items, JoinedPieces

if TYPE_CHECKING:
    from numpy.typing import NDArray


def health_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/health`: whether the server is running."""
    return {"status": "ok"}


def tokenize_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/tokenize`: the ids of `content`, a text or an array of texts and ids; with `with_pieces`, their pieces, too."""
    if not has_field(body, "content"):
        return {"tokens": []}
    tokenizer = models.of(body)
    flags = {
        "add_special": field(body, "add_special", False),
        "parse_special": field(body, "parse_special", True),
    }
    content, with_pieces = body["content"], field(body, "with_pieces", False)
    if isinstance(content, list):
        ids = mixed_ids(tokenizer, content, **flags)
    else:
        ids = tokenizer.encode_to_numpy(require_string(content), **flags)
    return {"tokens": Items(ids, partial(_id_and_piece, tokenizer)) if with_pieces else ids}


def _id_and_piece(tokenizer: Tokenizer, token: int) -> dict[str, Any]:
    return {"id": token, "piece": shown_piece(shown_bytes(tokenizer, token))}


def mixed_ids(
    tokenizer: Tokenizer, content: list[Any], add_special: bool, parse_special: bool
) -> NDArray[np.int32]:
    """The ids of an array of texts and ids. Only a text at its beginning gets BOS and EOS.

    Source: tokenize_mixed in tools/server/server-common.cpp.
    """
    ids = array("i")
    for number, part in enumerate(content):
        if isinstance(part, str):
            adds = add_special and number == 0
            ids.extend(tokenizer.encode(part, add_special=adds, parse_special=parse_special))
        else:
            ids.append(require_id(part))
    return np.array(ids, np.int32)


def shown_bytes(tokenizer: Tokenizer, token: int) -> bytes:
    """The bytes of a token, the text of a control token. `RequestError` 400 for an id that no token has."""
    try:
        return tokenizer.token_to_piece(token)
    except ValueError as error:
        raise RequestError(400, str(error)) from None


def shown_piece(piece: bytes) -> str | list[int]:
    """A piece as text, or its bytes as numbers if they are not UTF-8.

    Source: is_valid_utf8 in tools/server/server-common.cpp. It accepts surrogates and overlong characters, which are
    then written as U+FFFD.
    """
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return piece.decode("utf-8", "replace") if _has_characters(piece) else list(piece)


def _has_characters(data: bytes) -> bool:
    """Whether each leading byte is followed by as many continuation bytes as it announces."""
    at = 0
    while at < len(data):
        first = data[at]
        rest = next((count for mask, lead, count in _LEADS if first & mask == lead), None)
        if rest is None or len(data) < at + 1 + rest:
            return False
        if any(byte & 0xC0 != 0x80 for byte in data[at + 1 : at + 1 + rest]):
            return False
        at += 1 + rest
    return True


_LEADS = ((0x80, 0, 0), (0xE0, 0xC0, 1), (0xF0, 0xE0, 2), (0xF8, 0xF0, 3))


def detokenize_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/detokenize`: the pieces of `tokens` joined, without the clean-up of llama_detokenize."""
    if not has_field(body, "tokens"):
        return {"content": ""}
    return {"content": pieces_text(models.of(body), require_ids(body["tokens"]))}


def pieces_text(tokenizer: Tokenizer, ids: list[int]) -> JoinedPieces:
    """The pieces of ids, joined. `RequestError` 400 for an id that no token has."""
    return JoinedPieces(np.array(ids, np.int32), partial(shown_bytes, tokenizer))


def apply_template(models: Models, body: Any) -> dict[str, Any]:
    """`/apply-template`: the prompt of a chat."""
    return {"prompt": prompt_text(render_chat(models, models.of(body), body))}


def render_chat(models: Models, tokenizer: Tokenizer, body: Any, chat_template: str | None = None) -> bytes:
    """The prompt of a chat. `RequestError` 400 if the chat is refused, 500 if the model's template cannot be used.

    `chat_template` replaces the model's template, which is then not checked.
    """
    if not chat_template:
        template_in_force(tokenizer)
    try:
        return tokenizer.chats.prompt(body, chat_template)
    except ChatError as error:
        raise refused_chat(models, error) from None


def refused_chat(models: Models, error: ValueError) -> RequestError:
    """Return the error (400) for a chat that is refused.

    llama-server's words about images say to give a projector. What else may be meant is added if there is one.
    """
    message = str(error)
    if "input is not supported" in message:
        message += models.use_of_mmproj
    return RequestError(400, message, reason="the chat is refused")


def count_chat(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/chat/completions/input_tokens`: the token count of a chat."""
    return {"input_tokens": _chat_tokens(models, body, body), "object": "response.input_tokens"}


def count_response(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/responses/input_tokens`: the token count of a request to OpenAI's Responses API."""
    return {
        "input_tokens": _chat_tokens(models, body, from_responses(body)),
        "object": "response.input_tokens",
    }


def count_messages(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/messages/count_tokens`: the token count of a request to Anthropic's Messages API."""
    return {"input_tokens": _chat_tokens(models, body, from_anthropic(body))}


def _chat_tokens(models: Models, body: Any, chat: Any) -> int:
    """The number of tokens of a chat. Source: handle_count_tokens."""
    tokenizer = models.of(body)
    if (mmproj := models.mmproj_of(models.chosen(body))) is None:
        return tokenizer.count(render_chat(models, tokenizer, chat))
    template_in_force(tokenizer)
    try:
        return chat_media.count_with_media(tokenizer, chat, mmproj, models.media_path).count
    except ChatError as error:
        raise refused_chat(models, error) from None


def list_models(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/models`: the models, in OpenAI's form and in Ollama's."""
    now = int(time.time())
    return {
        "models": [_model_entry(name) for name in models.paths],
        "object": "list",
        "data": [_model_info(models, name, now) for name in models.paths],
    }


def _model_entry(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "model": name,
        "modified_at": "",
        "size": "",
        "digest": "",
        "type": "model",
        "description": "",
        "tags": [""],
        "capabilities": ["tokenize"],
        "parameters": "",
        "details": {
            "parent_model": "",
            "format": "gguf",
            "family": "",
            "families": [""],
            "parameter_size": "",
            "quantization_level": "",
        },
    }


def _input_modalities(models: Models, name: str) -> list[str]:
    mmproj = models.mmproj_of(name)
    images, audio = mmproj and mmproj.vision, mmproj and mmproj.audio
    return ["text", *(["image"] if images else []), *(["audio"] if audio else [])]


def _model_info(models: Models, name: str, now: int) -> dict[str, Any]:
    return {
        "id": name,
        "aliases": [name],
        "tags": [],
        "object": "model",
        "architecture": {"input_modalities": _input_modalities(models, name), "output_modalities": ["text"]},
        "created": now,
        "owned_by": "ggufbpe",
        "meta": _meta(models, name),
    }


def _meta(models: Models, name: str) -> dict[str, Any] | None:
    """The facts of a model; None if it cannot be used, so that the others are still listed."""
    try:
        return models.facts(name)
    except RequestError:
        return None


def props_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/props`: the model's chat template with its capabilities, BOS and EOS; nothing about sampling."""
    name = models.chosen(body)
    tokenizer, facts = models.opened(name)
    source, capabilities = template_in_force(tokenizer)
    ends, mmproj = tokenizer.chats.ends, models.mmproj_of(name)
    answer = {
        "default_generation_settings": {"params": {}, "n_ctx": facts["n_ctx"]},
        "total_slots": 0,
        "model_alias": name,
        "model_path": name,
        "modalities": {
            "vision": mmproj is not None and mmproj.vision is not None,
            "video": False,
            "audio": mmproj is not None and mmproj.audio is not None,
        },
        "endpoint_slots": False,
        "endpoint_props": False,
        "endpoint_metrics": True,
        "chat_template": source,
        "chat_template_caps": dict(sorted(asdict(capabilities).items())),
        "bos_token": ends.bos.decode("utf-8", "replace"),
        "eos_token": ends.eos.decode("utf-8", "replace"),
        "build_info": f"ggufbpe, as llama.cpp {CHATS}",
        "is_sleeping": False,
    }
    for_tools = tokenizer.chat_templates.get("tool_use")
    return {**answer, "chat_template_tool_use": for_tools} if for_tools else answer


def template_in_force(tokenizer: Tokenizer) -> tuple[str, Capabilities]:
    """The chat template in force and its capabilities. `RequestError` 500 if it cannot be used."""
    try:
        return tokenizer.chats.in_force()
    except ChatError as error:
        problem = "the model's chat template cannot be used"
        raise RequestError(500, f"{problem}: {error}", reason=problem) from None
