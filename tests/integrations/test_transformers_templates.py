"""transformers: the chat templates of its folders, run in a child process, and what is recorded of them."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from integration_cases import library
from record_chats import read_chats
from record_transformers import SECONDS, folder_for, model_with, recorded_form, scenarios
from recorded_transformers import RecordedTransformers, recorded_transformers

library("transformers")

from ggufbpe import verify  # noqa: E402 - after its library
from ggufbpe.analysis.oracles.chat_answers import Prompt, Refused  # noqa: E402 - after its library
from ggufbpe.analysis.oracles.oracle import Failure, OracleError  # noqa: E402 - after its library
from ggufbpe.analysis.oracles.transformers_oracle import (  # noqa: E402 - after its library
    TransformersOracle,
    arguments_of,
)
from ggufbpe.analysis.verify.upstream import upstream  # noqa: E402 - after its library
from ggufbpe.analysis.verify.upstream_chats import prompt_findings  # noqa: E402 - after its library
from ggufbpe.cli import main  # noqa: E402 - after its library

ASKED = {"messages": [{"role": "user", "content": "Hi"}]}
QWEN = "Qwen-Qwen3-0.6B"
TEMPLATES = read_chats("templates")
pytestmark = pytest.mark.slow  # each starts transformers


def opened(folder: Path, template: str = TEMPLATES[QWEN], seconds: float = SECONDS) -> TransformersOracle:
    return TransformersOracle(str(folder_for(folder, template)), model_with(template), seconds)


@pytest.mark.parametrize("name", [QWEN, "google-gemma-2-2b-it", "meta-llama-Llama-3.1-8B-Instruct"])
def test_recorded_prompts(name: str, tmp_path: Path) -> None:
    chats, recorded = read_chats("answers"), recorded_transformers()["prompts"][name]
    now = datetime.fromtimestamp(chats["now"], timezone.utc).replace(tzinfo=None).isoformat()
    with opened(tmp_path / "folder", TEMPLATES[name]) as oracle:
        assert isinstance(oracle, TransformersOracle)
        for request, number in zip(chats["requests"].values(), recorded["index"], strict=True):
            said = oracle.answer({**arguments_of(request), "now": now})
            assert not isinstance(said, Failure)
            assert recorded_form(said) == recorded["answers"][number]


def test_recorded_findings(tmp_path: Path) -> None:
    source, folder = scenarios()["another"]
    tokenizer = model_with(source)
    with opened(tmp_path / "folder", folder) as oracle:
        assert isinstance(oracle, TransformersOracle)
        oracle.location, oracle.source = "hf:org/model", "org/model"  # as the recorded ones
        real = list(prompt_findings(tokenizer, oracle))
    assert real == list(prompt_findings(tokenizer, RecordedTransformers(tokenizer, folder)))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file whose template is the one of the folder `same`; `other` has another one."""
    from record_chats import VOCABULARY

    from ggufbpe import fix

    fix(VOCABULARY, tmp_path / "model.gguf", chat_template=TEMPLATES[QWEN])
    folder_for(tmp_path / "same", TEMPLATES[QWEN])
    folder_for(tmp_path / "other", TEMPLATES[QWEN].replace("user", "human"))
    return tmp_path / "model.gguf"


def test_verify(model: Path) -> None:
    chats = [ASKED, {"messages": [{"role": "developer", "content": "Be terse."}, *ASKED["messages"]]}]
    found = verify(model, str(model.parent / "same"), chats=chats).chats
    assert found is not None
    [difference] = found.differences
    assert (found.different, difference.kind, difference.explains) == (1, "prompt", 1.0)
    assert [cause.detail["topics"] for cause in difference.causes] == [["developer"]]
    assert difference.smallest is not None
    assert difference.smallest.chat.body == {"messages": [{"role": "developer", "content": ""}]}
    [difference] = verify(model, str(model.parent / "other"), chats=[ASKED]).chats.differences  # type: ignore[union-attr]
    assert [cause.id for cause in difference.causes] == ["template"]


def test_doctor(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(model), "--upstream", str(model.parent / "other"), "--json"]) == 0
    findings = {each["id"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
    differs = findings["upstream_template_differs"]
    assert differs["severity"] == "warning"
    assert {"user", "turns", "system"} <= {each["chat"] for each in differs["detail"]["chats"]}
    assert "upstream_same" in findings  # the ids
    same = [finding.id for finding in upstream(model, str(model.parent / "same"))]
    assert "upstream_template_same" in same
    assert not {"upstream_template_differs", "upstream_special_tokens", "upstream_added_tokens"} & set(same)


def test_tokens_that_differ(model: Path) -> None:
    folder = model.parent / "same"
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(
        json.dumps({**config, "eos_token": "<|im_end|>", "pad_token": "a"})
    )
    document = json.loads((folder / "tokenizer.json").read_text())
    other = document["added_tokens"][-1]
    other["content"] = "<|other|>"
    (folder / "tokenizer.json").write_text(json.dumps(document))
    found = {finding.id: finding for finding in upstream(model, str(folder))}
    assert found["upstream_special_tokens"].detail == {
        "tokens": {"eos": {"ours": "</s>", "theirs": "<|im_end|>"}, "pad": {"ours": None, "theirs": "a"}}
    }
    assert found["upstream_special_tokens"].severity == "note"  # <|im_end|> ends a generation here, too
    detail: Any = found["upstream_added_tokens"].detail
    assert [each["theirs"] for each in detail["tokens"]] == ["<|other|>"]


# ---- folders that want to do harm ---------------------------------------------------------------------------

HOSTILE = {
    "internals": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "a function's globals": "{{ raise_exception.__globals__ }}",
    "a method of a loop": "{% for x in [1] %}{{ loop.__init__.__globals__ }}{% endfor %}",
    "attr": "{{ ''|attr('__class__') }}",
    "format": "{{ '{0.__class__}'.format(1) }}",
    "a namespace": "{% set ns = namespace(__class__=1) %}{{ ns.__class__ }}",
    "a change": "{{ messages.append(1) }}",
    "an include": "{% include '/etc/passwd' %}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_templates_cannot_reach_out(name: str, tmp_path: Path) -> None:
    with opened(tmp_path / "folder", HOSTILE[name]) as oracle:
        answer = oracle.chat(ASKED)
        assert isinstance(answer, Refused) or answer == Prompt(b"")


def test_code_of_a_folder_is_not_run(tmp_path: Path) -> None:
    folder = folder_for(tmp_path / "folder", TEMPLATES[QWEN])
    ran = tmp_path / "ran"
    (folder / "hostile.py").write_text(
        f"open({str(ran)!r}, 'w')\nclass Tokenizer: pass\nclass Config: pass\n"
    )
    auto = {"AutoTokenizer": ["hostile.Tokenizer", "hostile.Tokenizer"], "AutoConfig": "hostile.Config"}
    for name in ("tokenizer_config.json", "config.json"):
        before = json.loads((folder / name).read_text()) if (folder / name).exists() else {}
        made = {**before, "auto_map": auto, "model_type": "hostile", "tokenizer_class": "Tokenizer"}
        (folder / name).write_text(json.dumps(made))
    with suppress(OracleError):
        TransformersOracle(str(folder), model_with(TEMPLATES[QWEN]), SECONDS).close()
    assert not ran.exists()


def test_limits(tmp_path: Path) -> None:
    loop = "{% for a in range(99999) %}" * 3 + "{% endfor %}" * 3
    began = time.monotonic()
    with opened(tmp_path / "folder", loop, seconds=2) as oracle:
        assert oracle.chat(ASKED) == Failure("timeout", "no answer within 2 s")
    assert time.monotonic() - began < 30
    huge = "{{ 'x' * 9999999999 }}"
    with opened(tmp_path / "folder", huge) as oracle:
        assert oracle.chat(ASKED) == Refused("MemoryError: ")
