"""`ggufbpe diff` says what differs between the tokenizers of two models."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest
from commands import Run, call
from reference import write_metadata
from small_models import CHATML, K, small_model, with_template

from ggufbpe.cli import diff
from ggufbpe.cli._arguments import UsageError

__all__ = ["call", "small_model"]  # fixtures


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small model, which adds BOS and has seven tokens more."""
    path = tmp_path_factory.mktemp("other") / "other.gguf"
    more = [f"<|more_{number}|>" for number in range(7)]
    return inspect.unwrap(write_metadata)(path, with_template(CHATML, *more, add_bos_token=True))


def test_models_that_do_not_differ(call: Run, small_model: Path) -> None:
    found = call(diff, small_model, small_model)
    assert (found.code, found.out) == (0, b"the vocabularies and chat templates are the same\n")


def test_models_that_differ(call: Run, small_model: Path, other: Path) -> None:
    found = call(diff, small_model, other)
    lines = found.text.splitlines()
    assert found.code == 1
    assert lines[0] == f"small ({small_model}) and other ({other}) differ"
    assert lines[lines.index("tokens") + 1 : lines.index("flags")] == [
        "  number of tokens: 268 in small, 275 in other",
        "  7 tokens only in other",
        *(f"    {268 + number} '<|more_{number}|>'" for number in range(5)),
        "    … and 2 more",
    ]
    assert "  add_bos: off in small, on in other" in lines
    assert "the same: types, merges, pre-tokenizer, chat templates" in lines
    assert "--all shows up to 100 of each" in lines
    assert f"To be like small, other would need {K.ADD_BOS}=false." in lines
    assert "    274 '<|more_6|>'" in call(diff, small_model, other, "--all").text.splitlines()


def test_a_text_that_they_encode_differently(
    call: Run, small_model: Path, other: Path, tmp_path: Path
) -> None:
    found = call(diff, small_model, other, "-p", "hello")
    assert found.code == 1
    assert found.text.startswith("1 of 1 text differs")
    assert "<|more_" not in found.text  # differences of the vocabularies are only counted
    assert "--all shows which ones" in found.text.splitlines()
    path = tmp_path / "text.txt"
    path.write_bytes(b"hello")
    assert call(diff, small_model, other, "-f", path, "--stdin", stdin=b"x").text.startswith(
        "2 of 2 texts differ"
    )
    assert call(diff, small_model, small_model, "-p", "hello").text.startswith("the ids are the same")


def test_json(call: Run, small_model: Path, other: Path) -> None:
    found = json.loads(call(diff, small_model, other, "--json").out)
    assert (found["a"], found["b"]) == (str(small_model), str(other))


def test_overrides_are_those_of_both(call: Run, small_model: Path, other: Path) -> None:
    override = ("--override-kv", f"{K.ADD_BOS}=bool:true")
    assert "BOS" not in call(diff, small_model, other, *override).text.partition("the same:")[0]


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "give two models, not 0"), (1, "give two models, not 1"), (3, "did you mean -p ")],
)
def test_other_numbers_of_models(count: int, words: str, call: Run, small_model: Path) -> None:
    with pytest.raises(UsageError, match=words):
        call(diff, *[small_model] * count)
