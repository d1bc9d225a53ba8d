"""vLLM's protocol for tokenizers, which is too large a package to be installed here.

The members are those of vllm/tokenizers/protocol.py of vLLM 0.33.0, and get_chat_template, which vllm/renderers/hf.py
calls; the calls are in vllm/tokenizers/registry.py and vllm/renderers/registry.py.
"""

from __future__ import annotations

import inspect
import shutil
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import GPT2
from integration_cases import TOK, library

library("transformers")

from ggufbpe.integrations import vllm  # noqa: E402 - after its library
from ggufbpe.integrations.vllm import VLLMTokenizer  # noqa: E402

PROPERTIES = (
    *("all_special_tokens", "all_special_ids", "bos_token_id", "eos_token_id", "pad_token_id", "is_fast"),
    *("vocab_size", "max_token_id", "max_chars_per_token", "truncation_side"),
)
METHODS = {  # the parameters that vLLM gives, by name or place
    "from_pretrained": ("path_or_repo_id", "trust_remote_code", "revision", "download_dir"),
    "num_special_tokens_to_add": (),
    "__hash__": (),
    "__len__": (),
    "__call__": ("text", "text_pair", "add_special_tokens", "truncation", "max_length"),
    "get_vocab": (),
    "get_added_vocab": (),
    "encode": ("text", "truncation", "max_length", "add_special_tokens"),
    "get_chat_template": ("chat_template", "tools"),
    "apply_chat_template": ("tools",),
    "convert_tokens_to_ids": ("tokens",),
    "convert_tokens_to_string": ("tokens",),
    "decode": ("skip_special_tokens",),
    "convert_ids_to_tokens": ("ids", "skip_special_tokens"),
}


def opened(**settings: Any) -> VLLMTokenizer:
    """As vllm/tokenizers/registry.py opens a GGUF: its folder, and the name of the file."""
    return VLLMTokenizer.from_pretrained(
        GPT2.parent,
        gguf_file=GPT2.name,
        trust_remote_code=False,
        revision=None,
        download_dir=None,
        **settings,
    )


@pytest.mark.parametrize("name", PROPERTIES)
def test_the_protocol_s_properties_are_there(name: str) -> None:
    assert getattr(opened(truncation_side="left"), name, None) is not None or name == "pad_token_id"


@pytest.mark.parametrize("name", METHODS)
def test_the_protocol_s_methods_take_what_vllm_gives(name: str) -> None:
    parameters = inspect.signature(getattr(VLLMTokenizer, name)).parameters
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    assert takes_any or set(METHODS[name]) <= set(parameters)


def test_ids_and_texts_are_those_of_the_gguf() -> None:
    made = opened(truncation_side="left", use_fast=True)
    ids = TOK.encode("naïve 者也 <|endoftext|>")
    assert made.encode("naïve 者也 <|endoftext|>") == made("naïve 者也 <|endoftext|>")["input_ids"] == ids
    assert (
        made.encode("one two three four", truncation=True, max_length=2)
        == TOK.encode("one two three four")[-2:]
    )
    assert made.decode(ids, skip_special_tokens=True) == "naïve 者也 "
    assert (made.max_token_id, made.is_fast, made.num_special_tokens_to_add()) == (len(TOK) - 1, True, 0)
    assert made.max_chars_per_token == max(len(piece.decode("utf-8", "replace")) for piece in TOK.token_bytes)


@pytest.mark.parametrize(
    "text", ["naïve 者也 😀👩‍👩‍👧 it's fine , isn't it?\n\n  two", "<|endoftext|> end", ""]
)
@pytest.mark.parametrize("prompt", ["", "Hello", "a b c d e f g h i j"])
def test_text_that_is_streamed_is_the_text(prompt: str, text: str) -> None:
    """As vLLM detokenizes a slow tokenizer's ids, one by one: the text of a window of tokens less that before it."""
    made = opened()
    begun = made.convert_ids_to_tokens(made.encode(prompt))
    begin, end, streamed = max(len(begun) - 5, 0), len(begun), ""
    for token in [*made.encode(text), len(made)]:  # the last one is none
        begun += made.convert_ids_to_tokens([token]) if token < len(made) else [""]
        before, now = (made.convert_tokens_to_string(begun[begin:at]) for at in (end, None))
        if len(now) > len(before) and not now.endswith("\ufffd"):
            begin, end, streamed = end, len(begun), streamed + now[len(before) :]
    assert streamed == text


def test_structured_outputs_need_a_fast_tokenizer() -> None:
    """As docs/integrations.md says: vllm/v1/structured_output has these two calls."""
    with pytest.raises(ValueError, match="Unsupported tokenizer type"):
        library("xgrammar").TokenizerInfo.from_huggingface(opened())
    with pytest.raises(ValueError, match="Only fast tokenizers are supported"):
        library("llguidance.hf").from_tokenizer(opened())


def test_chats_are_those_of_llama_server() -> None:
    messages = [{"role": "user", "content": "Hi"}]
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    made = opened()
    assert made.get_chat_template(None) is None
    assert made.get_chat_template(template) == template
    assert made.apply_chat_template(messages, chat_template=template) == "user: Hi\n"
    assert made.apply_chat_template(messages, chat_template=template, tokenize=True) == TOK.encode(
        "user: Hi\n"
    )


def test_a_folder_with_one_gguf_is_that_gguf(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must have one GGUF for the tokenizer mode ggufbpe; it has none"):
        VLLMTokenizer.from_pretrained(tmp_path)
    shutil.copy(GPT2, tmp_path / "a.gguf")
    assert VLLMTokenizer.from_pretrained(tmp_path).tok == TOK
    shutil.copy(GPT2, tmp_path / "b.gguf")
    with pytest.raises(ValueError, match=r"it has a\.gguf, b\.gguf"):
        VLLMTokenizer.from_pretrained(tmp_path)


def stand_ins(monkeypatch: pytest.MonkeyPatch, *missing: str) -> list[tuple[str, ...]]:
    """Put modules in the place of vLLM's, with or without some, and return what is registered."""
    registered: list[tuple[str, ...]] = []

    class Registry:
        register = staticmethod(lambda *arguments: registered.append(arguments))

    for module in ("vllm", "vllm.tokenizers", "vllm.renderers", "vllm.renderers.registry"):
        stand_in = ModuleType(module)
        stand_in.TokenizerRegistry = stand_in.RENDERER_REGISTRY = Registry  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module, None if module in missing else stand_in)
    return registered


def test_vllm_learns_of_the_mode_by_the_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has two registries, of tokenizers and of what renders chats, and looks for the mode in both."""
    registered = stand_ins(monkeypatch)
    [plugin] = entry_points(group="vllm.general_plugins", name="ggufbpe")
    plugin.load()()
    assert registered == [
        ("ggufbpe", vllm.__name__, "VLLMTokenizer"),
        ("ggufbpe", "vllm.renderers.hf", "HfRenderer"),
    ]


@pytest.mark.parametrize("missing", ["vllm.tokenizers", "vllm.renderers.registry"])
def test_a_vllm_without_a_registry_still_starts(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM calls `register` in every process, whatever the mode, and an exception there ends the process."""
    stand_ins(monkeypatch, missing)
    with pytest.warns(UserWarning, match=f"does not fit this version of vLLM: .*{missing}"):
        vllm.register()
