"""Which template Ollama uses for a model of its store, and what it puts before the messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reference import write_metadata
from small_models import CHATML, small_keys
from stores import TEMPLATE, ollama_layer, ollama_model

from ggufbpe import ChatError, StoreError, Tokenizer
from ggufbpe.chat.ollama_comparison import ollama_chat
from ggufbpe.chat.ollama_model import OllamaModel, thinking_tags
from ggufbpe.chat.ollama_prompt import OllamaTemplate
from ggufbpe.hub.name_grammar import OllamaName
from ggufbpe.hub.stores.ollama_store import OllamaLayers, ollama_layers

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}
GO = (
    "{{ range .Messages }}<|im_start|>{{ .Role }}\n{{ .Content }}<|im_end|>\n{{ end }}<|im_start|>assistant\n"
)
TOOLS = "{{ .Tools }}{{ range .Messages }}{{ .ToolCalls }}{{ .Content }}{{ end }}"
THINKS = "{{ range .Messages }}{{ if .Thinking }}<think>{{ .Thinking }}</think>{{ end }}{{ .Content }}"
THINKS += "{{ end }}{{ .Think }}"


@pytest.fixture(scope="module")
def tok(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("ollama") / "small.gguf"
    write_metadata(path, small_keys(chat_template=None) | {"tokenizer.chat_template": CHATML})
    return Tokenizer.from_gguf(path)


def layers(template: str | None = None, jinja: str = "", **config: Any) -> OllamaLayers:
    return OllamaLayers(OllamaName("small"), config, template)


class Other:
    """A tokenizer with another template in its file."""

    def __init__(self, tok: Tokenizer, jinja: str) -> None:
        self._tok, self.chat_templates = tok, {"": jinja} if jinja else {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tok, name)


@pytest.mark.parametrize(
    ("template", "jinja", "config", "source"),
    [
        (GO, CHATML, {}, "go_template"),
        (None, CHATML, {}, "gguf_chat_template"),
        (None, "", {}, "none"),
        (GO, CHATML, {"renderer": "qwen3-coder"}, "renderer"),
        (GO, "{{ tools }}", {}, "gguf_chat_template"),  # it has tools, and the Go template has not
        (TOOLS, "{{ tools }}", {}, "go_template"),
        (TOOLS, "{{ tools }}{{ tool_calls }}{{ tool_response }}", {}, "gguf_chat_template"),
        (TOOLS + "TOOL_RESULTS", "{{ tools }}{{ tool_calls }}{{ tool_response }}", {}, "go_template"),
        (TOOLS + "TOOL_RESULTS", "{{ tools }}<think></think>", {}, "go_template"),
        (GO, "{{ tools }}", {"parser": "x"}, "go_template"),
        ("<|start|>{{ .Prompt }}<|end|>", "{{ tools }}", {"model_family": "gptoss"}, "go_template"),
        (None, CHATML, {"parser": "x"}, "go_template"),
    ],
)
def test_which_template(
    template: str | None, jinja: str, config: dict[str, Any], source: str, tok: Tokenizer
) -> None:
    model = OllamaModel(layers(template, **config), Other(tok, jinja))  # type: ignore[arg-type]
    assert model.source == source
    assert model.in_words().startswith("Ollama ")


@pytest.mark.parametrize(
    ("source", "tags"),
    [
        (THINKS, ("<think>", "</think>")),
        (GO, ("", "")),
        ("{{ range .Other }}a{{ .Thinking }}b{{ end }}{{ .Messages }}", ("", "")),
        ("{{ range .Messages }} a {{ if .Thinking }}{{ .Thinking }}c{{ end }}{{ end }}", ("a", "c")),
    ],
)
def test_tags_around_thoughts(source: str, tags: tuple[str, str]) -> None:
    assert thinking_tags(OllamaTemplate(source)) == tags


def test_what_a_model_cannot_do_is_refused(tok: Tokenizer) -> None:
    model = OllamaModel(layers(GO), tok)
    for field, words in (
        ("tools", "'small' does not support tools"),
        ("think", "'small' does not support thinking"),
    ):
        with pytest.raises(ChatError, match=words):
            model.prompt({**CHAT, field: [{}]})
    with pytest.raises(ChatError, match="by code of its own, 'r'"):
        OllamaModel(layers(GO, renderer="r"), tok).prompt(CHAT)
    with pytest.raises(ChatError, match="'messages' must be an array"):
        model.prompt({"messages": 1})


def test_a_model_that_thinks_does_so_by_default(tok: Tokenizer) -> None:
    model = OllamaModel(layers(THINKS), tok)
    assert model.prompt(CHAT) == b"hellotrue"
    assert model.prompt({**CHAT, "think": False}) == b"hellofalse"


def test_what_the_model_has_before_the_messages(tok: Tokenizer) -> None:
    own = layers(GO)._replace(system="S", messages=[{"role": "user", "content": "m"}])
    shown = OllamaModel(own, tok).prompt(CHAT).decode()
    assert shown.startswith("<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nm\n\nhello<|im_end|>")
    given = {"messages": [{"role": "system", "content": "T"}]}
    assert "S" not in OllamaModel(own, tok).prompt(given).decode()
    thought = {"role": "assistant", "content": "<think>x</think> y"}
    chat = {"messages": [*CHAT["messages"], thought, *CHAT["messages"], thought]}
    shown = OllamaModel(layers(GO, model_family="qwen3"), tok).prompt(chat).decode()
    assert shown.count("<think>") == 1  # only after the last message of the user
    assert OllamaModel(layers(GO), tok).prompt(chat).decode().count("<think>") == 2


def test_beside_llama_server(tok: Tokenizer) -> None:
    same = ollama_chat(tok, layers(GO), CHAT, compares=True)
    assert same.is_same
    assert list(same.lines(tok)) == [f"The prompts have the same {len(same.ollama.ids)} ids."]
    other = ollama_chat(tok, layers("<|im_start|>{{ .Prompt }}"), CHAT, compares=True)
    assert not other.is_same
    lines = list(other.lines(tok))
    assert lines[:2] == [
        f"--- llama-server, {len(tok.encode(tok.chats.prompt(CHAT)))} tokens",
        "+++ Ollama, 2 tokens",
    ]
    assert lines[-1].startswith("ids differ from place 1 on: llama-server has 117 'u', Ollama has ")
    assert other.to_dict()["verdict"] == "different"
    assert ollama_chat(tok, layers(GO), CHAT).to_dict()["ollama"]["template"] == "go_template"


def test_layers_of_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    kind = TEMPLATE.removesuffix("template")
    made = [
        ollama_layer(tmp_path, b"GGUF"),
        ollama_layer(tmp_path, GO.encode(), TEMPLATE),
        ollama_layer(tmp_path, b"S\xff", f"{kind}system"),
        ollama_layer(tmp_path, b'{"stop": ["x"]}', f"{kind}params"),
        ollama_layer(tmp_path, b'[{"role": "user", "content": "m"}]', f"{kind}messages"),
    ]
    ollama_model(tmp_path, "registry.ollama.ai/library/small/latest", made)
    found = ollama_layers("ollama:SMALL")
    assert found == OllamaLayers(OllamaName("small"), {}, GO, "S�", [{"role": "user", "content": "m"}])
    assert ollama_layers("ollama:none") is None
    (tmp_path / "blobs" / str(made[1]["digest"]).replace(":", "-")).unlink()
    with pytest.raises(StoreError, match="its file is missing"):
        ollama_layers("ollama:small")


@pytest.mark.parametrize("digest", [1, "sha256:../../x", None])
def test_layers_that_lead_elsewhere(digest: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    hostile = {"mediaType": TEMPLATE, "digest": digest, "size": 1}
    ollama_model(
        tmp_path, "registry.ollama.ai/library/small/latest", [ollama_layer(tmp_path, b"GGUF"), hostile]
    )
    with pytest.raises(StoreError, match="digest of a layer is not a sha256"):
        ollama_layers("ollama:small")
