"""The models of a server: what they say of their files, and what is told of a file that cannot be used."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, RAW_UTF8

from ggufbpe import ModelNameError, fix
from ggufbpe.server.failures import RequestError
from ggufbpe.server.llama_server import props_answer, tokenize_answer
from ggufbpe.server.ollama_api import show_answer
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

    monkeypatch.setattr("ggufbpe.tokenizer.locate", located)
    with pytest.raises(RequestError) as refusal:
        models.named("a")
    assert (refusal.value.status, "secret" in refusal.value.message) == (500, False)
