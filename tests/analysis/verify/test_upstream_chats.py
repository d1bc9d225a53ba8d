"""What a file has other than its original: chats by recorded answers of transformers, and tokens."""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2
from record_chats import BOS, read_chats
from record_transformers import model_with, scenarios
from recorded_transformers import RecordedTransformers, recorded_transformers
from small_models import small_tokenizer

from ggufbpe import OracleError, Tokenizer
from ggufbpe.analysis.doctor.finding import Finding
from ggufbpe.analysis.doctor.sample_prompts import PLAIN_CHATS
from ggufbpe.analysis.verify.upstream import upstream
from ggufbpe.analysis.verify.upstream_chats import CHATS, prompt_findings, token_findings
from ggufbpe.models.vocabulary import CONTROL, NORMAL, USER_DEFINED

SCENARIOS = scenarios()


@functools.cache
def findings(name: str) -> dict[str, Finding]:
    """What is found in a file with one of the collection's templates; the folder has the same one."""
    source, folder = SCENARIOS[name]
    tokenizer = model_with(source)
    found = prompt_findings(tokenizer, RecordedTransformers(tokenizer, folder))
    return {finding.id: finding for finding in found}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "another"])
def test_the_same_template(name: str) -> None:
    found = findings(name)
    assert "upstream_template_same" in found
    assert not {"upstream_template_differs", "upstream_template_fails"} & found.keys()
    assert ("upstream_rendered_alike" in found) != ("upstream_rendered_otherwise" in found)


@pytest.mark.slow
def test_what_llama_cpp_renders_otherwise() -> None:
    """The numbers that docs/chat.md has: how many of the templates, and of them for plain chats, and for what."""
    named = [name for name in SCENARIOS if name != "another"]
    otherwise = [found for name in named if (found := findings(name).get("upstream_rendered_otherwise"))]
    plain = [found for found in otherwise if found.severity == "warning"]
    topics = Counter(topic for found in otherwise for topic in (found.detail or {})["topics"])
    assert (len(named), len(otherwise), len(plain)) == (73, 73, 24)
    assert dict(topics.most_common(4)) == {
        "developer": 61,
        "parts": 42,
        "continuation": 35,
        "thinking_default": 15,
    }
    assert sum(topics.values()) == 181
    of_plain = Counter(
        topic
        for found in plain
        for topic in {
            t for c in (found.detail or {})["chats"] if c["chat"] in PLAIN_CHATS for t in c["topics"]
        }
    )
    assert of_plain == {"thinking_default": 15, "other": 5, "turns": 3, "date": 2, "system": 1}


def test_recorded_prompts() -> None:
    """The numbers that docs/chat.md has: how many prompts of transformers are those of llama-server."""
    ours, theirs = read_chats("answers")["templates"], recorded_transformers()["prompts"]
    found: Counter[str] = Counter()
    for name, recorded in theirs.items():
        for one, other in zip(ours[name]["index"], recorded["index"], strict=True):
            answer, said = ours[name]["answers"][one][0], recorded["answers"][other]
            refused = [not isinstance(answer, str), isinstance(said, list)]
            is_same = not any(refused) and answer == said.removeprefix(BOS)
            found["both refuse" if all(refused) else "one refuses" if any(refused) else str(is_same)] += 1
    assert found == {"True": 5066, "False": 4153, "both refuse": 2202, "one refuses": 3617}


def test_another_template() -> None:
    """Another text is told from what llama.cpp does to the same one."""
    found = findings("another")["upstream_template_differs"]
    assert found.severity == "warning"
    assert found.detail is not None
    assert len(found.detail["chats"]) == len(CHATS) - 1  # transformers refuses one
    first = found.detail["chats"][0]
    assert first["topics"] == ["whitespace"]
    ours, theirs = (each["prompt"] for each in first["prompts"])
    assert theirs == ours.replace("<|im_end|>", "<|im_end|> ")


# ---- tokens ---------------------------------------------------------------------------------------------------

SPECIAL: dict[str, tuple[dict[str, str], str, dict[str, Any]]] = {
    "an EOS that ends no generation": ({"eos_token": "user"}, "warning", {"eos": ("</s>", "user")}),
    "an EOS that does": ({"eos_token": "<|im_end|>"}, "note", {"eos": ("</s>", "<|im_end|>")}),
    "BOS": ({"bos_token": "<|x|>"}, "warning", {"bos": ("<s>", "<|x|>")}),
    "PAD": ({"pad_token": "<pad>"}, "note", {"pad": (None, "<pad>")}),
}


def other_tokens(special: dict[str, str], added: dict[int, tuple[str, bool]]) -> list[Finding]:
    tokenizer = model_with("{{ messages }}")
    oracle = RecordedTransformers(tokenizer, "")
    oracle.special_tokens = {**oracle.special_tokens, **special}
    oracle.added_tokens = added
    return list(token_findings(tokenizer, oracle))


@pytest.mark.parametrize("name", SPECIAL)
def test_special_tokens(name: str) -> None:
    special, severity, others = SPECIAL[name]
    [finding] = other_tokens(special, {})
    assert (finding.id, finding.severity) == ("upstream_special_tokens", severity)
    expected = {kind: {"ours": ours, "theirs": theirs} for kind, (ours, theirs) in others.items()}
    assert finding.detail == {"tokens": expected}


def test_the_same_tokens() -> None:
    assert other_tokens({}, {1756: ("<s>", True)}) == []
    assert other_tokens({"image_token": "<image>"}, {}) == []  # llama.cpp has no such token


@pytest.mark.parametrize(
    ("added", "found"),
    [
        ({1756: ("<t>", True)}, "upstream_added_tokens"),
        ({999_999: ("<t>", True)}, "upstream_added_tokens"),
        ({65: ("b", False)}, "upstream_added_as_text"),
        ({65: ("b", True)}, "upstream_added_as_text"),
    ],
)
def test_added_tokens(added: dict[int, tuple[str, bool]], found: str) -> None:
    [finding] = other_tokens({}, added)
    assert (finding.id, finding.where.token) == (found, next(iter(added)))
    if found == "upstream_added_as_text":
        kind = "CONTROL" if added[65][1] else "USER_DEFINED"
        assert f" --set-token-type 65={kind} " in finding.fix


def test_added_tokens_whose_places_were_filled_up() -> None:
    """llama.cpp issue 4331: the markers of Qwen 72B were converted to tokens that fill up the vocabulary."""
    tokenizer = small_tokenizer("[PAD9]")
    oracle = RecordedTransformers(tokenizer, "")
    token = tokenizer.token_to_id("[PAD9]")
    assert token is not None
    oracle.special_tokens, oracle.added_tokens = {}, {token: ("<|x|>", True)}
    [finding] = token_findings(tokenizer, oracle)
    assert finding.id == "upstream_added_tokens"
    assert f" --rename-token '[PAD9]=<|x|>' --set-token-type {token}=CONTROL " in finding.fix


@pytest.mark.parametrize(
    ("text", "attributes", "is_special", "found"),
    [
        ("</s>", CONTROL | NORMAL, True, []),  # which llama.cpp makes a control token by its text
        ("<|x|>", CONTROL, False, []),
        ("<|x|>", USER_DEFINED, False, []),
        ("<|x|>", USER_DEFINED, True, ["upstream_special_as_shown"]),
        ("<|x|>", NORMAL, True, ["upstream_added_as_text"]),
    ],
)
def test_types_of_added_tokens(text: str, attributes: int, is_special: bool, found: list[str]) -> None:
    tokenizer = small_tokenizer(text, attributes={text: attributes})
    oracle = RecordedTransformers(tokenizer, "")
    token = tokenizer.token_to_id(text)
    assert token is not None
    oracle.special_tokens, oracle.added_tokens = {}, {token: (text, is_special)}
    findings = list(token_findings(tokenizer, oracle))
    assert [finding.id for finding in findings] == found
    assert all(f"--set-token-type {token}=CONTROL" in finding.fix for finding in findings)


@pytest.mark.parametrize(
    ("source", "folder", "found"),
    [
        ("", "", "upstream_no_template"),
        ("", "{{ messages }}", "upstream_template_missing"),
    ],
)
def test_no_template(source: str, folder: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing is said about how the file's is rendered."""
    tokenizer = model_with(source)
    monkeypatch.setattr(RecordedTransformers, "answer", lambda *_: {"prompt": "", "ids": []})
    findings = list(prompt_findings(tokenizer, RecordedTransformers(tokenizer, folder)))
    assert [finding.id for finding in findings] == [found]
    if folder:
        assert " --chat-template hf:org/model " in findings[0].fix


@pytest.mark.parametrize("name", ["hf:org/base", "https://huggingface.co/org/base"])
def test_the_repository_is_named_as_fix_takes_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: list[str] = []

    def opened(folder: str, tokenizer: Tokenizer, seconds: float, name: str) -> None:
        named.append(name)
        raise OracleError("asked for no more")

    monkeypatch.setattr(
        "ggufbpe.analysis.verify.upstream.folder_of_repository", lambda *_, **__: str(tmp_path)
    )
    monkeypatch.setattr("ggufbpe.analysis.verify.upstream.TransformersOracle", opened)
    with pytest.raises(OracleError, match="asked for no more"):
        upstream(GPT2, name)
    assert named == ["hf:org/base"]
