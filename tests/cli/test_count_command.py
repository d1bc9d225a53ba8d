"""`ggufbpe count --limit` tells by its exit code whether texts fit, and -q prints only their number."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import GPT2
from json_answers import require_schema

from ggufbpe.cli import main


@pytest.mark.parametrize(("limit", "code"), [(2, 0), (1, 1), (0, 1), (-1, 2)])
def test_the_exit_code_tells_whether_a_text_fits(
    limit: int, code: int, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["count", "-m", str(GPT2), "-p", "Hello world", "-q", "--limit", str(limit)]) == code
    assert capsysbinary.readouterr().out == (b"" if code == 2 else b"2\n")


def test_a_chat_is_made_to_fit(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    path = tmp_path / "messages.json"
    contents = {"user": "hello " * 30, "assistant": "b"}
    chat = [{"role": role, "content": content} for role, content in contents.items()]
    path.write_text(json.dumps([*chat, {"role": "user", "content": "c"}]))
    given = ["chat", "-m", str(GPT2), str(path), "--chat-template", "known:chatml", "--fit"]
    assert main([*given, "40", "--prompt"]) == 0
    out, error = capsysbinary.readouterr()
    assert b"<|im_start|>user\nc<|im_end|>" in out
    assert b"hello" not in out
    assert b"2 messages were left out; the prompt has 28 tokens" in error
    assert main([*given, "40", "--json"]) == 0
    out = capsysbinary.readouterr().out
    require_schema([*given, "40", "--json"], 0, out)
    kept = [{"role": "user", "content": "c"}]
    fitted = {"limit": 40, "answer": 0, "dropped": [0, 1], "shortened": [], "messages": kept}
    assert json.loads(out)["fitted"] == fitted
    assert main([*given, "3"]) == 2
    assert b"the chat does not fit in 3 tokens" in capsysbinary.readouterr().err


def test_a_text_in_the_place_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    for name, said in (
        ("Hello world", "No such file or directory; a text needs -p: -p 'Hello world'"),
        ("no.txt", ""),
    ):
        assert main(["count", "-m", str(GPT2), name]) == 2
        shown = capsys.readouterr().err
        assert f"{name}: No such file or directory" in shown
        assert said in shown
        assert ("-p" in shown) is bool(said)


def test_folders_without_a_file_to_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, model = str(tmp_path), ["-m", str(GPT2)]
    (tmp_path / ".hidden").write_text("a")
    assert main(["count", *model, folder]) == 0
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == f"ggufbpe: no files to count in {folder}"
    assert main(["count", *model, folder, "-p", "a"]) == 0
    assert main(["count", *model, folder, "nowhere"]) == 2
    assert "no files to count" not in capsys.readouterr().err
