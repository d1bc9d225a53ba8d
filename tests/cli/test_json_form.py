"""The form of `--json`: a schema for each command, the names that all share, errors; and `--quiet`.

That outputs are what their schemas allow is checked wherever tests run a command (helpers/json_answers.py).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
import pytest
from commands import Result, Run, run
from conftest import GPT2, ROOT

from ggufbpe import json_schema
from ggufbpe.cli import COMMANDS
from ggufbpe.cli._arguments import Parser

__all__ = ["run"]  # the fixture

VOCABULARIES = ROOT / "fixtures" / "vocabs"
SCHEMAS = ROOT / "ggufbpe" / "analysis" / "views" / "schemas" / "1"
WITHOUT = {"serve", "completion"}  # what they print is a log, and code of a shell


@pytest.fixture
def bad(tmp_path: Path, run: Run) -> Path:
    """GPT-2 with another pre-tokenizer."""
    path = tmp_path / "bad.gguf"
    assert run("fix", GPT2, "--set", "tokenizer.ggml.pre=llama-bpe", "-o", path, "-q").code == 0
    return path


def test_every_command_has_the_flag_and_a_schema() -> None:
    for name in COMMANDS.keys() - WITHOUT:
        parser = Parser(name)
        module = "import_" if name == "import" else name.replace("-", "_")
        import_module(f"ggufbpe.cli.{module}").add_arguments(parser)
        assert "--json" in parser.flags(), name
    named = {path.stem for path in SCHEMAS.glob("*.json")}
    assert named == COMMANDS.keys() - WITHOUT | {"common", "error"}


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.stem)
def test_schemas_are_sound_and_what_they_name_is_there(path: Path) -> None:
    from jsonschema import Draft202012Validator

    if path.stem != "common":
        schema = json_schema(path.stem)
        Draft202012Validator.check_schema(schema)
        assert schema["$id"] == f"ggufbpe:1/{path.name}"
        assert "common.json" not in json.dumps(schema)
        for reference in references(schema):
            assert reference.removeprefix("#/$defs/") in schema["$defs"]


def references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [each for item in value for each in references(item)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"]] if "$ref" in value else []
    return own + [each for item in value.values() for each in references(item)]


def test_a_schema_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="no JSON Schema is called 'nothing'; there are chat, check"):
        json_schema("nothing")


Make = Callable[[Path, Path], list[object]]
CASES: dict[str, tuple[Make, dict[str, object]]] = {
    "detokenize": (lambda bad, out: ["-m", bad, "15496"], {"text": "Hello", "ids": [15496]}),
    "compare": (lambda bad, out: [GPT2, bad, "-p", "in 1990"], {"verdict": "different"}),
    "verify": (
        lambda bad, out: ["-m", bad, "--against", GPT2, "-p", "in 1990", "--no-bos"],
        {"verdict": "different"},
    ),
    "diagnose": (lambda bad, out: ["-m", bad, "-p", "in 1990", "--ids", "[1]"], {"verdict": "different"}),
    "doctor": (lambda bad, out: [bad], {"verdict": "warning"}),
    "diff": (lambda bad, out: [GPT2, bad], {"verdict": "different"}),
    "fix": (
        lambda bad, out: [bad, "--set", "tokenizer.ggml.pre=gpt-2", "-o", out / "fixed.gguf"],
        {"written": "copied"},
    ),
    "export": (
        lambda bad, out: [bad, "--to", "vocab-gguf", "-o", out / "v.gguf"],
        {"verdict": "not_compared", "format": "vocab-gguf"},
    ),
    "encode": (lambda bad, out: ["-m", bad, ROOT / "run", "-o", out / "shards"], {"documents": 1}),
    "train": (
        lambda bad, out: [ROOT / "run", "--vocab-size", "260", "--trace", "-o", out / "v.json"],
        {"tokens": 260},
    ),
}


@pytest.mark.parametrize("command", CASES)
def test_shared_names(command: str, run: Run, bad: Path, tmp_path: Path) -> None:
    make, expected = CASES[command]
    result = run(command, *make(bad, tmp_path), "--json")
    found = json.loads(result.out)
    assert next(iter(found)) == "schema"
    assert found["schema"] == 1
    assert {name: found[name] for name in expected} == expected
    if command in ("verify", "diagnose", "doctor", "diff"):
        assert found["model"] == str(bad)
        for finding in found["findings"]:
            assert {"id", "what", "fix", "severity"} <= finding.keys()
            assert finding["what"]
        assert found["findings"]
    assert set(found) <= set(json_schema(command)["properties"])


def test_shards_and_imports(run: Run, bad: Path, tmp_path: Path) -> None:
    run("encode", "-m", bad, ROOT / "run", "-o", tmp_path / "shards")
    assert json.loads(run("check", tmp_path / "shards", "--json").out)["verdict"] == "healthy"
    part = tmp_path / "shards" / "part-00000.bin"
    part.write_bytes(part.read_bytes()[:-2] + b"\0\0")
    found = json.loads(run("check", tmp_path / "shards", "--json").out)
    assert (found["verdict"], found["path"]) == ("error", str(tmp_path / "shards"))
    assert "part-00000.bin" in found["findings"][0]["what"]
    run("export", bad, "--to", "merges.txt", "-o", tmp_path / "hf", "--no-check")
    result = run("import", tmp_path / "hf", "--json", "-o", tmp_path / "again.gguf", "--no-check")
    found = json.loads(result.out)
    assert (found["verdict"], found["tokens"], found["path"]) == (
        "not_compared",
        50257,
        str(tmp_path / "again.gguf"),
    )
    assert run("import", tmp_path / "hf", "--json", "-o", "-").code == 2


ERRORS = [
    (["doctor", "no-such.gguf"], "FileNotFoundError", {"path": "no-such.gguf"}),
    (["tokenize", "-p", "a", "--word"], "UsageError", {}),
    (["count", "-m", "ollama:none-such", "-p", "a", "--offline"], "OfflineError", {}),
]


@pytest.mark.parametrize(("arguments", "kind", "more"), ERRORS)
def test_errors_are_objects_on_standard_output(
    arguments: list[str], kind: str, more: dict[str, str], run: Run
) -> None:
    result = run(*arguments, "--json")
    found = json.loads(result.out)
    assert (result.code, list(found), found["error"]["type"]) == (2, ["schema", "error"], kind)
    assert result.err.endswith(f"ggufbpe: error: {found['error']['message']}\n")
    assert {name: found["error"][name] for name in more} == more
    assert run(*arguments).out == b""  # only with --json


def test_an_error_of_a_file_has_its_place_and_remedy(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(GPT2.read_bytes()[:1000])
    error = json.loads(run("info", path, "--json").out)["error"]
    assert (error["type"], error["path"]) == ("TruncatedFileError", str(path))
    assert {"problem", "offset", "remedy"} <= error.keys()


def test_a_result_with_an_error_is_one_object(run: Run, tmp_path: Path) -> None:
    """`info` shows what there is of a file whose tokenizer is broken."""
    path = tmp_path / "odd.gguf"
    changed = ["--set", "tokenizer.ggml.pre=no-such-name", "--force", "-q"]
    run("fix", GPT2, *changed, "-o", path)
    result = run("info", path, "--json")
    found = json.loads(result.out)
    assert (result.code, found["error"]["key"]) == (2, "tokenizer.ggml.pre")
    assert found["file"]["path"] == str(path)


# ---- --quiet --------------------------------------------------------------------------------------------


def test_quiet_leaves_out_notes_and_warnings_but_no_errors(run: Run, bad: Path) -> None:
    loud = run("tokenize", "-m", bad, "-p", r"a\n", "--ids")
    assert "warning" in loud.err
    assert "--no-escape" in loud.err
    for flags in (["-q"], ["--quiet"]):
        quiet = run("tokenize", "-m", bad, "-p", r"a\n", "--ids", *flags)
        assert quiet == Result(loud.code, loud.out, "")
    assert run("--quiet", "tokenize", "-p", "a", "--ids") == Result(0, b"[64]\n", "")
    assert run("tokenize", "-m", "no-such.gguf", "-p", "a", "-q").err.startswith("ggufbpe: error: ")


# ---- what is not UTF-8 ----------------------------------------------------------------------------------


def test_a_path_that_is_not_utf8(run: Run, tmp_path: Path) -> None:
    name = tmp_path / "m\udcff.gguf"
    named = os.fsencode(name).hex()
    shown = str(name).replace("\udcff", "\ufffd")
    error = orjson.loads(run("info", name, "--json").out)["error"]
    assert (error["path"], error["path_bytes"]) == (shown, named)
    name.write_bytes(GPT2.read_bytes())
    for arguments in (["doctor", name], ["tokenize", "-m", name, "-p", "a"], ["diff", GPT2, name]):
        assert run(*arguments, "--json").out.decode().count("\\udcff") == 0
    found = orjson.loads(run("doctor", name, "--json").out)
    assert (found["model"], found["model_bytes"]) == (shown, named)
    log = tmp_path / "log.sarif"
    assert run("doctor", name, "--sarif", log).code == 0
    [artifact] = orjson.loads(log.read_bytes())["runs"][0]["artifacts"]
    assert artifact["location"]["uri"].endswith("m%FF.gguf")


SYMBOLS = [
    ("spm", b"ab\xff", {"text_bytes": "e296816162ff", "written_bytes": "e296816162ff"}),
    ("rwkv", "者".encode(), {"written_bytes": "e8"}),
    ("gpt-2", b"\xed\xa0\x80", {"text_bytes": "eda080"}),
]


@pytest.mark.parametrize(("model", "text", "expected"), SYMBOLS, ids=[each[0] for each in SYMBOLS])
def test_a_word_that_is_not_utf8(
    model: str, text: bytes, expected: dict[str, str], run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "text"
    path.write_bytes(text)
    file = GPT2 if model == "gpt-2" else VOCABULARIES / f"{model}.gguf"
    command = ["explain", "-m", file, "-f", path, "--merges", "--json"]
    word = orjson.loads(run(*command).out)["words"][0]
    assert {name: value for name, value in word.items() if name.endswith("_bytes")} == expected
    assert orjson.loads(run(*command, "--word", "0").out)["written"] == word["written"]


def test_a_number_that_is_not_finite(run: Run, tmp_path: Path) -> None:
    changed = ["--set", "gpt2.rope.freq_base=FLOAT32:nan", "-o", tmp_path / "nan.gguf"]
    [change] = orjson.loads(run("fix", GPT2, *changed, "--json").out)["changes"]
    assert change["after"] == "nan"
