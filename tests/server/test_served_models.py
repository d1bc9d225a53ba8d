"""The models of a server: what they say of their files, and what is told of a file that cannot be used."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, RAW_UTF8

from ggufbpe import ModelNameError, fix
from ggufbpe.chat.request.capabilities import Capabilities
from ggufbpe.gguf import source
from ggufbpe.gguf.source import Source
from ggufbpe.hub.model_location import ModelLocation
from ggufbpe.server.failures import RequestError
from ggufbpe.server.llama_server import list_models, props_answer, tokenize_answer
from ggufbpe.server.ollama_api import show_answer, tags_answer
from ggufbpe.server.other_servers import tokenize_either
from ggufbpe.server.served_models import Models

GPT2_CONTEXT, OTHER_CONTEXT = 1024, 77


@pytest.fixture
def models(tmp_path: Path) -> Models:
    """Two models, of which one at a time is open."""
    for name in "ab":
        shutil.copy(GPT2, tmp_path / f"{name}.gguf")
    return Models({name: str(tmp_path / f"{name}.gguf") for name in "ab"}, most_open=1)


def replace_a(models: Models) -> None:
    """Put another model at the path of the first one."""
    fix(RAW_UTF8, models.paths["a"], set={"gemma4.context_length": OTHER_CONTEXT}, force=True)


@pytest.fixture
def opened(models: Models, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of models that are opened."""
    paths: list[str] = []
    real = source._open_file

    def open_file(path: str) -> Any:
        paths.append(path)
        return real(path)

    monkeypatch.setattr(source, "_open_file", open_file)
    return paths


def facts_of_a(models: Models) -> tuple[int, int]:
    facts = models.facts("a")
    return facts["n_vocab"], facts["n_ctx"]


# ---- facts ----------------------------------------------------------------------------------------------


def test_facts_are_those_of_the_file_that_is_open(models: Models) -> None:
    models.named("a")
    replace_a(models)
    assert facts_of_a(models) == (50257, GPT2_CONTEXT)
    models.named("b")  # closes a
    assert facts_of_a(models) == (2200, OTHER_CONTEXT)
    assert len(models.named("a")) == 2200
    assert facts_of_a(models) == (2200, OTHER_CONTEXT)


def test_facts_of_a_model_that_is_not_open_are_those_of_its_file(models: Models) -> None:
    assert facts_of_a(models) == (50257, GPT2_CONTEXT)
    replace_a(models)
    assert facts_of_a(models) == (2200, OTHER_CONTEXT)


@pytest.mark.parametrize("answer", [list_models, tags_answer])
def test_a_file_that_stays_as_it_is_is_read_once_for_lists(
    answer: Callable[..., Any], models: Models, opened: list[str]
) -> None:
    listed = "data" if answer is list_models else "models"
    first = answer(models, None)[listed]
    assert [answer(models, None)[listed], opened] == [first, list(models.paths.values())]
    replace_a(models)
    opened.clear()
    [a, b] = answer(models, None)[listed]
    assert (a != first[0], b, opened) == (True, first[1], [models.paths["a"]])


def test_facts_of_a_remote_model_are_those_of_its_last_opening(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it has changed could only be asked over the network."""

    def located(model: str) -> ModelLocation:
        with open(model, "rb") as file:
            return ModelLocation(model, source=Source(model, file.read()))

    monkeypatch.setattr("ggufbpe.server.served_models.locate", located)
    assert facts_of_a(models) == (50257, GPT2_CONTEXT)
    replace_a(models)
    assert facts_of_a(models) == (50257, GPT2_CONTEXT)
    models.named("a")
    models.named("b")  # closes a
    assert facts_of_a(models) == (2200, OTHER_CONTEXT)


def test_the_facts_of_an_open_model_are_of_the_file_that_was_opened(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = source._open_file

    def replaced_when_opened(path: str) -> Any:
        file = real(path)
        if path == models.paths["a"]:
            monkeypatch.undo()
            replace_a(models)
        return file

    monkeypatch.setattr(source, "_open_file", replaced_when_opened)
    assert len(models.named("a")) == 50257
    assert facts_of_a(models) == (50257, GPT2_CONTEXT)


@pytest.mark.parametrize(
    ("answer", "body", "called", "context"),
    [
        (props_answer, {}, "llama_server.template_in_force", ["default_generation_settings", "n_ctx"]),
        (tokenize_either, {"messages": []}, "other_servers.render_chat", ["max_model_len"]),
    ],
    ids=["props", "tokenize"],
)
def test_an_answer_is_about_one_file_though_the_model_is_closed_meanwhile(
    answer: Callable[..., Any],
    body: dict[str, Any],
    called: str,
    context: list[str],
    models: Models,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def close_a(*_: object) -> Any:
        models.named("b")
        replace_a(models)
        return ("", Capabilities()) if answer is props_answer else "Hello"

    monkeypatch.setattr(f"ggufbpe.server.{called}", close_a)
    found: Any = answer(models, {"model": "a", **body})
    for key in context:
        found = found[key]
    assert found == GPT2_CONTEXT


# ---- a file that cannot be used -------------------------------------------------------------------------


ANSWERS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (tokenize_answer, {"model": "a", "content": "x"}),
    (props_answer, {"model": "a"}),
    (show_answer, {"model": "a"}),
]


@pytest.mark.parametrize(("answer", "body"), ANSWERS, ids=["tokenize", "props", "show"])
def test_only_the_log_says_why_a_model_cannot_be_used(
    models: Models, answer: Callable[..., Any], body: dict[str, Any]
) -> None:
    a = Path(models.paths["a"])
    a.rename(a.with_name("a1.gguf"))
    with pytest.raises(RequestError) as refusal:
        answer(models, body)
    assert refusal.value.to_dict()["error"] == {
        "code": 500,
        "message": "the model 'a' cannot be used; the server's log says why",
        "type": "server_error",
    }
    assert refusal.value.reason.startswith(
        f"{a}: No such file or directory (did you mean {a.with_name('a1.gguf')}"
    )


@pytest.mark.parametrize(("answer", "body"), ANSWERS, ids=["tokenize", "props", "show"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"tokenizer.ggml.model", b"tokenizer.ggml.nobod"),
        (b"\4\0\0\0\0\0\0\0gpt2", b"\4\0\0\0\0\0\0\0gpt9"),
        (b"\5\0\0\0\0\0\0\0gpt-2", b"\5\0\0\0\0\0\0\0gpt-9"),
    ],
    ids=["no model", "model", "pre"],
)
def test_a_vocabulary_that_cannot_be_loaded_is_no_fault_of_the_client(
    old: bytes, new: bytes, answer: Callable[..., Any], body: dict[str, Any], models: Models
) -> None:
    path = Path(models.paths["a"])
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(RequestError, match="the model 'a' cannot be used; the server's log says") as refusal:
        answer(models, body)
    assert (refusal.value.status, str(path) in refusal.value.reason) == (500, True)


def test_a_folder_in_place_of_a_model_is_not_listed(models: Models) -> None:
    a = Path(models.paths["a"])
    a.unlink()
    a.mkdir()
    (a / "private.gguf").touch()
    with pytest.raises(RequestError) as refusal:
        models.named("a")
    assert "private" not in refusal.value.message
    assert "private.gguf" in refusal.value.reason


def test_a_name_that_fits_several_models_is_no_fault_of_the_client(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    def located(model: object) -> None:
        raise ModelNameError("'a' fits 2 models; type one of secret, secret2", ["secret", "secret2"])

    monkeypatch.setattr("ggufbpe.server.served_models.locate", located)
    with pytest.raises(RequestError) as refusal:
        models.named("a")
    assert (refusal.value.status, "secret" in refusal.value.message) == (500, False)
