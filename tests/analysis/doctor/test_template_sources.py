"""Chat templates are read from files of their own, from transformers' settings, and from other models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reference import write_metadata
from small_models import CHATML, small_keys, with_template

from ggufbpe._util.errors import RemoteNotFoundError
from ggufbpe.analysis.doctor.template_sources import template_text, transformers_settings
from ggufbpe.chat.template.lexer import MOST_SOURCE
from ggufbpe.hub.remote import huggingface

NAMED = [{"name": "default", "template": CHATML}, {"name": "tool_use", "template": "x"}]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xef\xbb\xbf{{ a }}", "{{ a }}"),  # the byte order mark is no part of it
        (b"a\r\nb", "a\r\nb"),
        (b"a\xff", "is not UTF-8: invalid start byte at byte 1"),
        (b" \n", "is empty; to remove the model's"),
        (b"a\0b", "contains a NUL character"),
        (b"x" * (MOST_SOURCE + 1), "too many for a chat template"),
    ],
)
def test_the_text_of_a_file(data: bytes, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "template.jinja"
    path.write_bytes(data)
    if expected[0] in "{a" and expected[1] != "s":
        assert template_text(path) == template_text(data) == expected
        return
    for given, what in ((path, "template.jinja'"), (data, "the chat template")):
        with pytest.raises(ValueError, match=f"{what} ?{expected[:20]}|{expected}"):
            template_text(given)


@pytest.mark.parametrize(
    ("files", "named", "expected"),
    [
        ({"tokenizer_config.json": {"chat_template": CHATML}}, "tokenizer_config.json", CHATML),
        ({"tokenizer_config.json": {"chat_template": NAMED}}, "tokenizer_config.json", CHATML),
        ({"tokenizer_config.json": {"chat_template": CHATML}}, "", CHATML),
        ({"tokenizer_config.json": {"chat_template": "old"}, "chat_template.jinja": CHATML}, "", CHATML),
        ({"tokenizer_config.json": {"model_max_length": 5}}, "tokenizer_config.json", 'without a "chat_template"'),
        ({"tokenizer_config.json": {}}, "", "has no chat template, in chat_template.jinja or tokenizer_config"),
        ({"tokenizer_config.json": "{"}, "", "is not a JSON object of at most"),
        ({}, "", "has no chat template, in chat_template.jinja or tokenizer_config"),
        ({"tokenizer_config.json": "\ufeff" + json.dumps({"chat_template": CHATML})}, "tokenizer_config.json", CHATML),
        ({"tokenizer_config.json": "\ufeff" + json.dumps({"chat_template": CHATML})}, "", CHATML),
    ],
)  # fmt: skip
def test_the_settings_of_transformers(
    files: dict[str, Any], named: str, expected: str, tmp_path: Path
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
    if expected == CHATML:
        assert template_text(tmp_path / named) == expected
    else:
        with pytest.raises(ValueError, match=expected):
            template_text(tmp_path / named)


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt", "tokenizer.model"])
def test_the_template_beside_a_tokenizer_of_another_program(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`diff` proposes the template of a model by the path that the model was opened by."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("{}")
    Path("tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML}))
    assert template_text(Path(name)) == template_text(tmp_path / name) == CHATML


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a\xff", "is not UTF-8: invalid start byte at byte 1"),
        (b"x" * (MOST_SOURCE + 1), "too many for a chat"),
    ],
)
def test_the_template_in_a_folder_is_checked_as_the_file(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_bytes(data)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML}))
    for given in (tmp_path, tmp_path / "chat_template.jinja"):
        with pytest.raises(ValueError, match=words):
            template_text(given)


def test_the_template_of_another_model(tmp_path: Path) -> None:
    good = write_metadata(tmp_path / "good.gguf", with_template(CHATML))
    bare = write_metadata(tmp_path / "bare.gguf", small_keys())
    assert template_text(Path(good)) == CHATML
    with pytest.raises(ValueError, match=r"the model '.+' has no chat template"):
        template_text(Path(bare))


@pytest.mark.parametrize("there", ["chat_template.jinja", "tokenizer_config.json", ""])
def test_the_template_of_a_repository(there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = CHATML if there.endswith("jinja") else json.dumps({"chat_template": CHATML})
    (tmp_path / "found").mkdir()
    if there:
        (tmp_path / "found" / there).write_text(content)
    asked: list[str] = []

    def downloaded(name: Any, file: str, *, offline: bool = False) -> str:
        asked.append(f"{name.repository}/{file}")
        if file != there:
            raise RemoteNotFoundError("no such file")
        return str(tmp_path / "found" / file)

    monkeypatch.setattr(huggingface, "downloaded", downloaded)
    if there:
        assert template_text("hf:org/model") == CHATML
    else:  # the repository may have a GGUF, and is asked for that as well
        monkeypatch.setattr(
            "ggufbpe.hub.remote.opening.remote_source",
            lambda *_, **__: (_ for _ in ()).throw(RemoteNotFoundError("no such model")),
        )
        with pytest.raises(RemoteNotFoundError, match="no such model"):
            template_text("hf:org/model")
    assert asked[0] == "org/model/chat_template.jinja"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"chat_template": "x"}', {"chat_template": "x"}),
        (b'\n {"a": 1}', {"a": 1}),
        (b'\xef\xbb\xbf\n{"a": 1}', {"a": 1}),
        ('\ufeff{"a": 1}', {"a": 1}),
        (b'{"a": "\xff"}', None),
        (CHATML, None),
        ("{{ messages }}", None),
        ('{"a": {{ messages }} }', None),
        ("[1]", None),
    ],
)
def test_what_is_json(text: str | bytes, expected: dict[str, Any] | None) -> None:
    assert transformers_settings(text) == expected
