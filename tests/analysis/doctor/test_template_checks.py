"""Chat templates: whether they make prompts, with the right markers, one BOS, and an end of each turn."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from reference import write_metadata
from small_models import CHATML, NORMAL, FactsOf, K, Keys, facts_of, found, small_keys, with_template

from ggufbpe.analysis.doctor.examination import doctor
from ggufbpe.analysis.doctor.template_checks import (
    bos_twice,
    chat_markers,
    eos_behind_prompts,
    eos_not_added,
    other_bos,
    template_errors,
    template_missing,
)

__all__ = ["facts_of"]  # the fixture

SIZE = len(small_keys()[K.LIST])
WITH_USUAL = CHATML + "{{ '<|other|>' }}"
WITH_RARE = CHATML + "{% if images %}<|image|>{% endif %}"


@pytest.mark.parametrize(
    ("keys", "severity", "evidence"),
    [
        (with_template(CHATML), None, ""),
        (small_keys(), None, ""),
        (with_template("chat_template.jinja"), None, ""),  # text that llama-server writes into each prompt
        (with_template("a\n{% for"), "error", "line 2: "),
        (with_template("{{ raise_exception('not so') }}"), "error", "not so"),
        (with_template("{{ if .System }}{{ .System }}{{ end }}"), "error", "It is a Go template of Ollama's"),
        (
            with_template("{{- range $i, $_ := .Messages }}{{ end }}"),
            "error",
            "It is a Go template of Ollama's",
        ),
        (
            {**with_template(CHATML), f"{K.CHAT_TEMPLATE}.tool_use": "{% if"},
            "warning",  # llama.cpp ignores it
            "line 1: ",
        ),
        (
            {**with_template(CHATML), f"{K.CHAT_TEMPLATE}.rag": "{% if"},
            None,
            "",
        ),  # which llama.cpp does not read
    ],
)
def test_errors(keys: Keys, severity: str | None, evidence: str, facts_of: FactsOf) -> None:
    findings = list(template_errors(facts_of(keys)))
    assert found(findings) == ([("template_error", severity)] if severity else [])
    assert all(evidence in finding.evidence for finding in findings)


def test_the_fix_of_a_broken_template(facts_of: FactsOf) -> None:
    model = facts_of({**with_template("{% for"), "general.name": "Qwen2.5 7B Instruct"})
    assert [f.fix for f in template_errors(model)] == [
        "use llama.cpp's template for this model: "
        + model.command("--chat-template", "known:Qwen-Qwen2.5-7B-Instruct")
    ]
    unknown = facts_of(with_template("{% for"))  # with the tokens of ChatML
    assert [f.fix.endswith(unknown.remove(K.CHAT_TEMPLATE)) for f in template_errors(unknown)] == [True]


def test_without_jinja2_no_template_is_run(facts_of: FactsOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert found(template_errors(facts_of(with_template("{% for")))) == [("template_not_run", "note")]


@pytest.mark.parametrize(
    ("template", "add_bos", "expected"),
    [
        (CHATML, True, []),
        ("{{ bos_token }}" + CHATML, False, []),
        ("{{ bos_token }}" + CHATML, True, [("bos_twice", "note")]),  # of which llama-server removes one
        ("<|endoftext|>" + CHATML, True, [("bos_twice", "note")]),
        ("{# bos_token #}" + CHATML, True, []),
        ("{{ ' ' + bos_token }}" + CHATML, True, [("bos_twice", "warning")]),  # none is at the beginning
        ("{{ bos_token + bos_token }}" + CHATML, True, [("bos_twice", "warning")]),
    ],
)
def test_a_second_bos(
    template: str, add_bos: bool, expected: list[tuple[str, str]], facts_of: FactsOf
) -> None:
    assert found(bos_twice(facts_of(with_template(template, add_bos_token=add_bos)))) == expected


def test_bos_that_llama_server_writes_once_stays_before_other_texts(facts_of: FactsOf) -> None:
    """As in DeepSeek V3: its file adds BOS, which its pre-tokenizer alone does not, and its template writes it."""
    [finding] = bos_twice(facts_of(with_template("{{ bos_token }}" + CHATML, add_bos_token=True)))
    assert finding.fix == "nothing to do for llama-server; elsewhere, encode prompts without adding BOS"


@pytest.mark.parametrize(
    ("keys", "is_found"),
    [
        (with_template(CHATML, add_eos_token=True), True),
        (with_template(CHATML, add_eos_token=False), False),
        (with_template(CHATML), False),
        (small_keys(add_eos_token=True), False),  # nothing says that the model answers
        ({**with_template(CHATML, add_eos_token=True), "gpt2.pooling_type": 3}, False),  # an embedding
        ({**with_template(CHATML, add_eos_token=True), "general.name": "Qwen3 Embedding 0.6B"}, False),
        ({**with_template(CHATML, add_eos_token=True), "general.name": "Qwen3 0.6B"}, True),
    ],
)
def test_an_eos_behind_prompts(keys: Keys, is_found: bool, facts_of: FactsOf) -> None:
    model = facts_of(keys)
    findings = list(eos_behind_prompts(model))
    assert found(findings) == [("eos_behind_prompts", "warning")] * is_found
    assert [finding.fix for finding in findings] == [model.set(K.ADD_EOS, "false")] * is_found


@pytest.mark.parametrize(
    ("pooling", "add_eos", "is_found"),
    [(3, None, True), (3, False, True), (3, True, False), (1, None, False), (None, None, False)],
)
def test_an_embedding_of_the_last_token(
    pooling: int | None, add_eos: bool | None, is_found: bool, facts_of: FactsOf
) -> None:
    pooled = {} if pooling is None else {"gpt2.pooling_type": pooling}
    model = facts_of({**small_keys(add_eos_token=add_eos), **pooled})
    findings = list(eos_not_added(model))
    assert found(findings) == [("eos_not_added", "note")] * is_found
    assert all(finding.fix.endswith(model.set(K.ADD_EOS, "true")) for finding in findings)
    assert all("'<|im_end|>'" in finding.fix for finding in findings)


def test_an_embedding_of_the_last_token_whose_eos_is_not_given(facts_of: FactsOf) -> None:
    """llama.cpp would add token 11, an ordinary one."""
    model = facts_of({**small_keys(eos_token_id=None), "gpt2.pooling_type": 3})
    assert not list(eos_not_added(model))


@pytest.mark.parametrize(
    ("written", "add_bos", "is_found"),
    [("<s>", True, True), ("<s>", False, False), ("<|endoftext|>", True, False), ("<|im_end|>", True, False)],
)
def test_the_bos_of_another_model(written: str, add_bos: bool, is_found: bool, facts_of: FactsOf) -> None:
    model = facts_of(with_template(f"{{{{ '{written}' }}}}" + CHATML, "<s>", add_bos_token=add_bos))
    findings = list(other_bos(model))
    assert found(findings) == [("bos_differs", "warning")] * is_found
    if is_found:
        assert findings[0].fix.endswith(model.set(K.BOS_ID, SIZE))


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (CHATML, []),
        (WITH_USUAL, [("warning", ["<|other|>"])]),
        (WITH_RARE, [("note", ["<|image|>"])]),  # not in chats of only a user and the assistant
        (CHATML + "[INST]", [("note", ["[INST]"])]),  # plain text in Llama 2
        (WITH_USUAL + "{{ '<|more|>' }}", [("warning", ["<|other|>", "<|more|>"])]),  # told together
        ("{% set bar = '|>' %}{{ '<|begin' ~ bar }}" + CHATML, [("warning", ["<|begin|>"])]),
    ],
)
def test_markers_that_are_no_tokens(
    template: str, expected: list[tuple[str, list[str]]], facts_of: FactsOf
) -> None:
    findings = list(chat_markers(facts_of(with_template(template))))
    assert [(f.severity, f.detail and f.detail["markers"]) for f in findings] == expected


@pytest.mark.parametrize(
    ("tokens", "renamed"),
    [
        (("<|imend|>",), "<|imend|>"),
        (("<|IM-END|>",), "<|IM-END|>"),
        (("<|imend|>", "<|im-end|>"), None),  # which of them is not known
        (("<|/im_end|>", "<|im_ends|>", "imend"), None),
        (("[im_end]",), None),  # other brackets make another marker, as <think> and [THINK]
    ],
)
def test_a_marker_whose_token_has_nearly_its_text(
    tokens: tuple[str, ...], renamed: str | None, facts_of: FactsOf
) -> None:
    keys = with_template(CHATML, *tokens)
    keys[K.LIST] = ["<|other|>" if token == "<|im_end|>" else token for token in keys[K.LIST]]
    model = facts_of(keys)
    [finding] = chat_markers(model)
    if renamed:
        assert finding.fix.endswith(model.command("--rename-token", f"{renamed}=<|im_end|>"))
    else:
        assert finding.fix == (
            "the template is for another model, or tokens were renamed or lost; set the right template: "
            + model.set_template_file()
        )


def test_a_token_that_llama_cpps_templates_have_is_not_renamed(facts_of: FactsOf) -> None:
    """The template misspells that token, and other templates would no longer find it."""
    model = facts_of(with_template(CHATML.replace("im_start", "imstart")))
    [finding] = chat_markers(model)
    token = model.ids["<|im_start|>"]
    assert finding.fix == (
        f"the template misspells token {token}, '<|im_start|>'; set the right template: {model.set_template_file()}"
    )


@pytest.mark.parametrize(
    ("markers", "severity"),
    [
        ("<|im_start|>", None),  # others are tokens, and which chats have <|rare|> is not known
        ("", "warning"),
    ],
)
def test_markers_that_are_no_tokens_where_the_tokenizer_cannot_be_opened(
    markers: str, severity: str | None, facts_of: FactsOf
) -> None:
    keys = with_template(markers + "<|rare|>", add_bos_token="true")
    assert found(chat_markers(facts_of(keys))) == ([("chat_marker", severity)] if severity else [])


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("Qwen2.5 7B Instruct", "known:Qwen-Qwen2.5-7B-Instruct"),
        ("MedGemma 4b It", "known:chatml"),  # whose markers are tokens
        ("Mine 7b chat", "known:chatml"),
        ("Mine 7b", None),
        ("Gpt2 Small It", None),  # Italian
        ("gte-Qwen2-7B-instruct", None),  # for embeddings
    ],
)
def test_a_chat_model_without_template(name: str, fix: str | None, facts_of: FactsOf) -> None:
    model = facts_of({**small_keys(), "general.name": name})
    findings = list(template_missing(model))
    assert found(findings) == ([("template_missing", "warning")] if fix else [])
    assert [finding.fix for finding in findings] == ([model.command("--chat-template", fix)] if fix else [])


@pytest.mark.parametrize(
    "keys",
    [
        {"general.name": "Mine TTS", "general.base_model.0.name": "Llama 3.2 3B Instruct"},  # made from one
        {"general.name": "EAGLE3 Mine Instruct", "general.architecture": "eagle3"},  # only drafts for one
        {"general.name": "Gemma 4 31B It Assistant", "general.architecture": "gemma4-assistant"},
        {"general.name": "Chat Classifier", "gpt2.attention.causal": False},  # writes no text
    ],
)
def test_a_model_that_is_no_chat_model_needs_no_template(keys: Keys, facts_of: FactsOf) -> None:
    assert not list(template_missing(facts_of({**small_keys(), **keys})))


def test_a_chat_model_without_template_whose_markers_are_not_known(facts_of: FactsOf) -> None:
    keys = {**small_keys(), "general.name": "Mine 7b chat"}
    keys[K.LIST] = ["<|other|>" if token == "<|im_end|>" else token for token in keys[K.LIST]]
    model = facts_of(keys)
    [finding] = template_missing(model)
    assert finding.fix == f"set the original model's: {model.set_template_file()}"


def test_markers_that_are_ordinary_tokens(facts_of: FactsOf) -> None:
    assert not list(chat_markers(facts_of(with_template(WITH_USUAL, "<|other|>"))))
    model = facts_of(with_template(WITH_USUAL, "<|other|>", kind=NORMAL))
    [finding] = chat_markers(model)
    assert (finding.where.token, finding.fix) == (SIZE, model.set_types(CONTROL=[SIZE]))


def test_a_tokenizer_that_lacks_bytes_is_examined_as_well(tmp_path: Path, facts_of: FactsOf) -> None:
    """A tokenizer for scores with tokens of merges cannot encode what the template writes."""
    keys = {**with_template(CHATML + "{{ '\u2014<|other|>' }}"), K.MODEL: "llama", K.PRE: "default"}
    tokenizer = facts_of(keys).tokenizer
    assert tokenizer is not None
    with pytest.raises(ValueError, match="the text needs the byte 0xE2"):
        tokenizer.encode("\u2014")
    findings = doctor(write_metadata(tmp_path / "model.gguf", keys)).findings
    assert {"bytes_missing", "chat_marker"} <= {each.id for each in findings}
