"""The functions for Python give what the commands write, take models and texts in any form, and say what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, UNIGRAM
from reference import with_pre

import ggufbpe
from ggufbpe import Tokenizer
from ggufbpe.cli import main
from ggufbpe.gguf.constants import GGUFValueType, TokenizerKey, TokenType
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.gguf.value_types import Field

pytestmark = [pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning"), pytest.mark.tries_fixes]

K = TokenizerKey
TEXT = "in 2024, naïve \xff".encode("latin-1")
ADDED = {K.ADD_BOS: True}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with GPT-2's vocabulary under the names of two models, of which `b` splits otherwise, and a text."""
    monkeypatch.chdir(tmp_path)
    Path("a.gguf").symlink_to(GPT2)
    with_pre(GPT2, "llama-bpe", tmp_path / "b.gguf")
    Path("text").write_bytes(TEXT)
    Path("ids.json").write_text("[[1, 2]]")
    Path("empty").mkdir()
    return tmp_path


# What the command is given, and the same in Python.
SAME: dict[str, tuple[str, Callable[[], Any]]] = {
    "verify": (
        "verify -m a.gguf --against b.gguf text",
        lambda: ggufbpe.verify("a.gguf", Path("b.gguf"), Path("text")),
    ),
    "verify, flags": (
        "verify -m a.gguf --against b.gguf text --no-bos --no-parse-special "
        "--override-kv tokenizer.ggml.add_bos_token=bool:true",
        lambda: ggufbpe.verify(
            Tokenizer.from_gguf("a.gguf", overrides=ADDED),
            "b.gguf",
            [Path("text")],
            add_special=False,
            parse_special=False,
        ),
    ),
    "verify, random texts": (
        "verify -m a.gguf --against b.gguf --fuzz 30 --seed x",
        lambda: ggufbpe.verify("a.gguf", Tokenizer.from_gguf("b.gguf"), fuzz=30, seed="x"),
    ),
    "verify, recorded ids": (
        "verify -m a.gguf --against ids.json text",
        lambda: ggufbpe.verify("a.gguf", "ids.json", [Path("text")]),
    ),
    "diagnose": (
        "diagnose -m a.gguf -f text --ids [1,2]",
        lambda: ggufbpe.diagnose("a.gguf", Path("text"), [1, 2]),
    ),
    "diagnose, another model": (
        "diagnose -m a.gguf -m b.gguf -p in_2024 --ids [259,62,220,2366,19]",
        lambda: ggufbpe.diagnose("a.gguf", "in_2024", [259, 62, 220, 2366, 19], others=["b.gguf"]),
    ),
    "info": ("info a.gguf", lambda: ggufbpe.info("a.gguf")),
    "info, overridden": (
        "info b.gguf --override-kv tokenizer.ggml.pre=str:qwen2",
        lambda: ggufbpe.info(Path("b.gguf"), overrides={K.PRE: "qwen2"}),
    ),
    "count": ("count -m a.gguf text .", lambda: ggufbpe.count_files("a.gguf", ["text", Path(".")])),
    "count, flags": (
        "count -m a.gguf --no-bos --no-parse-special ids.json",
        lambda: ggufbpe.count_files("a.gguf", "ids.json", add_bos=False, parse_special=False),
    ),
    "doctor": ("doctor b.gguf", lambda: ggufbpe.doctor("b.gguf")),
    "doctor, overridden": (
        "doctor b.gguf --override-kv tokenizer.ggml.pre=str:gpt-2",
        lambda: ggufbpe.doctor("b.gguf", overrides={K.PRE: "gpt-2"}),
    ),
    "diff": ("diff a.gguf b.gguf", lambda: ggufbpe.diff("a.gguf", "b.gguf")),
    "diff, texts": ("diff a.gguf b.gguf -f text", lambda: ggufbpe.diff("a.gguf", "b.gguf", Path("text"))),
    "compare": ("compare a.gguf b.gguf -f text", lambda: ggufbpe.compare(["a.gguf", "b.gguf"], Path("text"))),
    "explain": ("explain -m a.gguf -f text", lambda: ggufbpe.explain("a.gguf", Path("text"))),
    "explain, flags": (
        "explain -m a.gguf -p <|endoftext|> --no-bos --no-parse-special",
        lambda: ggufbpe.explain("a.gguf", "<|endoftext|>", add_special=False, parse_special=False),
    ),
    "why_not": ("explain -m a.gguf -f text --why-not 20", lambda: ggufbpe.why_not("a.gguf", Path("text"), "20")),
}  # fmt: skip


def without_times(found: dict[str, Any]) -> dict[str, Any]:
    return {
        key: without_times(value) if isinstance(value, dict) else value
        for key, value in found.items()
        if key not in ("seconds", "mb_per_second")
    }


def assert_same_fields(given: Any, written: Any) -> None:
    """What a function gives is what its command writes, beside the fields that all commands share."""
    given = without_times(json.loads(json.dumps(given)))
    if isinstance(written, dict):
        written = without_times(written)
        more = {name: written.pop(name) for name in list(written) if name not in given}
        assert more.keys() <= {"schema", "model", "verdict", "findings"}
        assert more["schema"] == 1
    assert given == written


@pytest.mark.slow
@pytest.mark.parametrize("case", SAME)
def test_function_gives_what_the_command_writes(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    line, function = SAME[case]
    main([*line.split(), "--json"])
    written = json.loads(capfd.readouterr().out)
    found = function()
    assert_same_fields(found.to_dict(), written)
    assert capfd.readouterr() == ("", "")
    assert len(repr(found)) < 150
    assert "\n" not in repr(found)


@pytest.mark.slow
@pytest.mark.parametrize("against", ["gguf:b.gguf", "ids:ids.json"])
def test_older_forms_of_paths_still_work_with_a_note(against: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The command says it in a line, Python in a warning, each once."""
    prefix, _, path = against.partition(":")
    note = f"{prefix}: before a path is not needed any more: {path} is recognized"
    assert main(["verify", "-m", "a.gguf", "--against", against, "text", "--json"]) == 1
    out, err = capfd.readouterr()
    assert [line for line in err.splitlines() if "not needed any more" in line] == [f"ggufbpe: {note}"]
    with pytest.warns(DeprecationWarning, match=note):
        found = ggufbpe.verify("a.gguf", against, Path("text"))
    assert_same_fields(found.to_dict(), json.loads(out))


# ---- forms of models and texts --------------------------------------------------------------------------

MODELS: dict[str, Callable[[], Any]] = {
    "str": lambda: "a.gguf",
    "path": lambda: Path("a.gguf"),
    "tokenizer": lambda: Tokenizer.from_gguf("a.gguf"),
}
TEXTS: dict[str, Callable[[], Any]] = {
    "bytes": lambda: TEXT,
    "bytearray": lambda: bytearray(TEXT),
    "memoryview": lambda: memoryview(TEXT),
    "path": lambda: Path("text"),
}


@pytest.mark.parametrize("form", MODELS)
def test_models_are_taken_in_each_form(form: str) -> None:
    model, ids = MODELS[form](), Tokenizer.from_gguf(GPT2).encode("in 2024")
    assert ggufbpe.diagnose(model, "in 2024", ids).match
    assert ggufbpe.explain(model, "in 2024").ids == ids
    assert ggufbpe.why_not(model, "in 2024", "in").reason == "produced"
    assert ggufbpe.verify(model, [ids], "in 2024").same
    assert ggufbpe.diff(model, model, "in 2024").same
    assert ggufbpe.compare([model, "b.gguf"], "in").is_same
    assert ggufbpe.compare({"one": model}, "in").names == ("one",)


@pytest.mark.parametrize("form", TEXTS)
def test_texts_are_taken_in_each_form(form: str) -> None:
    text, ids = TEXTS[form](), Tokenizer.from_gguf(GPT2).encode(TEXT)
    assert ggufbpe.diagnose(GPT2, text, ids).match
    assert ggufbpe.explain(GPT2, text).ids == ids
    assert ggufbpe.verify(GPT2, [ids, ids], [text, text]).same
    assert ggufbpe.compare([GPT2], text).counts == [len(ids)]
    with open("text", "rb") as stream:
        assert ggufbpe.verify(GPT2, [ids], stream).same


def test_a_tokenizer_with_overrides_is_a_file_for_others() -> None:
    """What opens the model's file by itself opens one with the same overrides."""
    tok = Tokenizer.from_gguf("a.gguf", overrides={K.PRE: "llama-bpe"}).with_overrides(ADDED)
    with tok.gguf_file() as path:
        other = Tokenizer.from_gguf(path)
        assert Path(path).name == "a.gguf"
    assert (other.encode("in 2024"), other.add_bos) == (tok.encode("in 2024"), True)
    assert not Path(path).exists()
    with Tokenizer.from_gguf("a.gguf").gguf_file() as path:
        assert path == "a.gguf"


# ---- fix ------------------------------------------------------------------------------------------------

# What is changed, as the command has it and in Python.
CHANGES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "a string": (["--set", f"{K.PRE}=olmo"], {"set": {K.PRE: "olmo"}}),
    "a flag": (["--set", f"{K.ADD_BOS}=true"], {"set": ADDED}),
    "an id": (["--set", f"{K.EOS_ID}=5"], {"set": {K.EOS_ID: 5}}),
    "a key that goes": (["--remove", K.EOS_ID], {"remove": [K.EOS_ID]}),
    "a type": (["--set", "my.key=UINT8:5"], {"set": {"my.key": Field(GGUFValueType.UINT8, 5)}}),
    "a new key": (["--set", "my.key=UINT32:5"], {"set": {"my.key": 5}}),
    "a list": (["--set", "my.key=STRING:[\"a\"]"], {"set": {"my.key": ["a"]}}),
    "types of tokens": (
        ["--set-token-type", "3..5=UNUSED", "--set-token-type", "a=CONTROL"],
        {"token_types": {range(3, 6): "UNUSED", "a": TokenType.CONTROL}},
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_fix_writes_what_the_command_writes(change: str) -> None:
    flags, options = CHANGES[change]
    assert main(["fix", "a.gguf", *flags, "-o", "by-command.gguf"]) == 0
    done = ggufbpe.fix("a.gguf", Path("fixed.gguf"), **options)
    assert Path("fixed.gguf").read_bytes() == Path("by-command.gguf").read_bytes()
    assert (done.path, done.size, len(done.changes)) == ("fixed.gguf", Path("fixed.gguf").stat().st_size, 1)
    with GGUFFile("a.gguf") as before, GGUFFile("fixed.gguf") as after:
        [(key, old, new, _)] = done.changes
        assert [old, new] == [file[key] if key in file else None for file in (before, after)]  # noqa: SIM401
    assert repr(done) == "<Fixed 'fixed.gguf': 1 key changed, copied>"


def test_fix_in_place() -> None:
    done = ggufbpe.fix("b.gguf", in_place=True, set={K.PRE: "olmo", K.ADD_BOS: True})
    assert [change.key for change in done.changes] == [K.PRE, K.ADD_BOS]
    assert Tokenizer.from_gguf("b.gguf").pre == "olmo"


# ---- errors ---------------------------------------------------------------------------------------------

SET = {K.PRE: "olmo"}
ERRORS: dict[str, tuple[type[Exception], str, Callable[[], Any]]] = {
    "no file": (OSError, "no.gguf", lambda: ggufbpe.doctor("no.gguf")),
    "no GGUF": (ggufbpe.NotGGUFError, "text", lambda: ggufbpe.explain("text", "a")),
    "no model": (ValueError, "no model", lambda: ggufbpe.compare([], "a")),
    "two models of one name": (ValueError, "'5'", lambda: ggufbpe.compare({"5": "a.gguf", 5: "b.gguf"}, "a")),  # type: ignore[dict-item]
    "no text": (TypeError, "int", lambda: ggufbpe.explain("a.gguf", 5)),  # type: ignore[arg-type]
    "no ids": (TypeError, "integer", lambda: ggufbpe.diagnose("a.gguf", "a", ["a"])),  # type: ignore[list-item]
    "no texts": (ValueError, "give some, or fuzz=N", lambda: ggufbpe.verify("a.gguf", "b.gguf")),
    "an empty list of texts": (ValueError, "give some", lambda: ggufbpe.verify("a.gguf", "b.gguf", [])),
    "an empty folder": (ValueError, "give some", lambda: ggufbpe.verify("a.gguf", "b.gguf", Path("empty"))),
    "fewer texts than none": (ValueError, "0 or more", lambda: ggufbpe.verify("a.gguf", "b.gguf", "a", fuzz=-3)),
    "no oracle": (ValueError, "'x' is not something to compare with", lambda: ggufbpe.verify("a.gguf", "x", "a")),
    "no file for an oracle": (
        ValueError,
        "llama-tokenize opens the model's file, and this tokenizer has none",
        lambda: ggufbpe.verify(
            Tokenizer(Tokenizer.from_gguf("a.gguf").vocabulary._replace(path="")), "llama-tokenize", "a"
        ),
    ),
    "random texts, recorded ids": (ValueError, "random ones are new", lambda: ggufbpe.verify("a.gguf", [[1]], fuzz=2)),
    "left-over ids": (ValueError, "2 are left", lambda: ggufbpe.verify("a.gguf", [[64], [1], [3]], "a")),
    "an unread file": (OSError, "nowhere", lambda: ggufbpe.verify("a.gguf", "b.gguf", Path("nowhere"))),
    "an empty piece": (ValueError, "the piece is empty", lambda: ggufbpe.why_not("a.gguf", "a", "")),
    "a number for a piece": (TypeError, "not int", lambda: ggufbpe.why_not("a.gguf", "a", 5)),  # type: ignore[arg-type]
    "a path for a piece": (TypeError, "Path", lambda: ggufbpe.why_not("a.gguf", "a", Path("text"))),  # type: ignore[arg-type]
    "nothing to change": (ValueError, "nothing to change", lambda: ggufbpe.fix("a.gguf", "c.gguf")),
    "no place": (ValueError, "where should the copy go", lambda: ggufbpe.fix("a.gguf", set=SET)),
    "two places": (ValueError, "where should the copy go", lambda: ggufbpe.fix("a.gguf", "c", in_place=True, set=SET)),
    "the file itself": (ValueError, "in_place=True changes that", lambda: ggufbpe.fix("a.gguf", "a.gguf", set=SET)),
    "an existing file": (FileExistsError, "'text' already exists", lambda: ggufbpe.fix("a.gguf", "text", set=SET)),
    "a directory": (ValueError, "is a directory", lambda: ggufbpe.fix("a.gguf", ".", set=SET)),
    "changed twice": (ValueError, "changed twice", lambda: ggufbpe.fix("a.gguf", "c", set=SET, remove=[K.PRE])),
    "a text for a flag": (
        TypeError,
        "tokenizer.ggml.add_bos_token cannot be \"'true'\": it is of type BOOL",
        lambda: ggufbpe.fix("a.gguf", "c", set={K.ADD_BOS: "true"}),
    ),
    "a number too large": (TypeError, "of type UINT32", lambda: ggufbpe.fix("a.gguf", "c", set={K.EOS_ID: 1 << 40})),
    "a list for a name": (TypeError, "of type STRING", lambda: ggufbpe.fix("a.gguf", "c", set={K.PRE: ["olmo"]})),
    "a name for a list": (TypeError, "a list of STRING", lambda: ggufbpe.fix("a.gguf", "c", set={K.MERGES: "a b"})),
    "an empty list": (ValueError, "cannot be an empty array", lambda: ggufbpe.fix("a.gguf", "c", set={"my.key": []})),
    "no such key": (ValueError, f"near: {K.PRE}", lambda: ggufbpe.fix("a.gguf", "c", remove=["tokenizer.ggml.pr"])),
    "one key alone": (ValueError, "general.nam", lambda: ggufbpe.fix("a.gguf", "c", remove="general.nam")),
    "a name for types": (TypeError, "not 'abc'", lambda: ggufbpe.fix("a.gguf", "c", token_types="abc")),  # type: ignore[arg-type]
    "no such token": (ValueError, "no token", lambda: ggufbpe.fix("a.gguf", "c", token_types={"§§": "CONTROL"})),
    "a negative id": (ValueError, "out of range", lambda: ggufbpe.fix("a.gguf", "c", token_types={-1: "CONTROL"})),
    "no such type": (ValueError, "'X' is not a token type", lambda: ggufbpe.fix("a.gguf", "c", token_types={1: "X"})),
    "a broken copy": (ggufbpe.GGUFError, "nothing was written", lambda: ggufbpe.fix("a.gguf", "c", set={K.PRE: "no"})),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_is_wrong(case: str, folder: Path) -> None:
    kind, said, function = ERRORS[case]
    before = sorted(folder.iterdir())
    with pytest.raises(kind) as raised:
        function()
    assert said in str(raised.value)
    assert sorted(folder.iterdir()) == before


def test_files_that_cannot_be_read_are_reported() -> None:
    told: list[str] = []
    result = ggufbpe.verify(
        "a.gguf", "a.gguf", [Path("nowhere"), "a"], report=lambda name, error: told.append(name)
    )
    assert (told, result.texts) == (["nowhere"], 1)


WARNED, NOTED = (ggufbpe.Finding(severity, "a", "a", "a", "") for severity in ("warning", "note"))
VERDICTS: dict[str, tuple[Callable[[], Any], str]] = {
    "doctor": (lambda: ggufbpe.doctor(GPT2), "healthy"),
    "doctor of a suspicious file": (lambda: ggufbpe.Examination("a", (WARNED, NOTED)), "warning"),
    "doctor with notes": (lambda: ggufbpe.Examination("a", (NOTED,)), "healthy"),
    "diagnose": (lambda: ggufbpe.diagnose(GPT2, "a", [64]), "same"),
    "diagnose other ids": (lambda: ggufbpe.Diagnosis(False, ()), "different"),
    "verify": (lambda: ggufbpe.verify(GPT2, [[64]], "a"), "same"),
    "verify nothing": (lambda: ggufbpe.Verification("nobody"), "not_compared"),
    "compare": (lambda: ggufbpe.compare(["a.gguf", "b.gguf"], "in 2024"), "different"),
    "diff": (lambda: ggufbpe.diff("a.gguf", "a.gguf"), "same"),
    "check": (lambda: ggufbpe.Checked(1, [], 0, "no model"), "warning"),
    "check what is right": (lambda: ggufbpe.Checked(1, [], 9, ""), "healthy"),
    "check what is wrong": (lambda: ggufbpe.Checked(1, ["a"], 0, ""), "error"),
    "export": (lambda: ggufbpe.export(GPT2, "tokenizer.json", check=False), "not_compared"),
}


@pytest.mark.parametrize("what", VERDICTS)
def test_the_verdict_is_a_word(what: str, folder: Path) -> None:
    function, verdict = VERDICTS[what]
    assert function().verdict == verdict


# ---- how it looks ---------------------------------------------------------------------------------------

REPRS: dict[str, tuple[Callable[[], Any], str]] = {
    "match": (lambda: ggufbpe.diagnose(GPT2, "a", [64]), "<Diagnosis: match>"),
    "diagnosis": (
        lambda: ggufbpe.diagnose(GPT2, "a", [50256, 64]),
        "<Diagnosis: no match, <Explanation bos, explains 100.0%>>",
    ),
    "finding": (
        lambda: ggufbpe.doctor(UNIGRAM).findings[0],
        "<Finding note special_id_missing: The file does not say which token is BOS.>",
    ),
    "word": (lambda: ggufbpe.explain(GPT2, "a b").words[1], "<Word ' b' at 1 to 3>"),
    "trace": (lambda: ggufbpe.explain(GPT2, "a b"), "<Trace gpt2 gpt-2: 3 bytes, 2 words, 2 tokens>"),
    "answer": (lambda: ggufbpe.why_not(GPT2, "a b", "ab"), "<WhyNot 'ab': absent>"),
    "result": (
        lambda: ggufbpe.verify(GPT2, [[64]], "a"),
        "<Verification against recorded ids: 1 text, 0 different, 0 failed>",
    ),
    "differences": (
        lambda: ggufbpe.verify("a.gguf", "b.gguf", "in 2024").differences,
        "[<Difference in words: 2 places, pre_type>]",
    ),
    "compared": (
        lambda: ggufbpe.compare(["a.gguf", "b.gguf"], "in 2024"),
        "<Comparison: 7 bytes; a 2 tokens, b 4 tokens>",
    ),
    "diff": (
        lambda: ggufbpe.diff("a.gguf", "b.gguf"),
        "<Differences of a and b: 3 differences of vocabularies and chat templates>",
    ),
    "stats": (lambda: ggufbpe.stats("a.gguf", ["a"]), "<Stats of a: 1 text, 1 group>"),
    "patterns": (lambda: ggufbpe.patterns("llama-bpe"), "<Patterns of llama-bpe: 1>"),
    "vocabulary": (lambda: ggufbpe.train(["a"], vocab_size=256), "<TrainedVocabulary gpt-2 of 256 tokens>"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", REPRS)
def test_what_python_shows_is_short(what: str) -> None:
    function, shown = REPRS[what]
    assert repr(function()) == shown


def test_why_not_prints_as_a_sentence() -> None:
    answer = ggufbpe.why_not(GPT2, "Hello\u200b world", "Hell")
    assert str(answer) == answer.what == answer.to_dict()["what"]
    assert str(answer) == (
        "'Hell' (token 28254) occurs once in the text, but was not produced. Bytes 0 to 4: in the word 'Hello' "
        "(word 0), the merge 'ell' + 'o' (rank 10853) took part of it first; its own merge 'H' + 'ell' "
        "(rank 27998) has a higher rank, so it comes later."
    )
    unknown = ggufbpe.why_not(GPT2, "a", "\u200b no")
    assert str(unknown) == "'\\u200b no' is not a token of this vocabulary."


def test_nothing_heavy_is_imported_for_a_name() -> None:
    program = (
        "import sys, ggufbpe; dir(ggufbpe); print(*sorted(m for m in sys.modules if m.startswith('ggufbpe')))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [
        "ggufbpe",
        "ggufbpe._util",
        "ggufbpe._util.lazy",
        "ggufbpe._util.llama_cpp_states",
    ]  # the package, the lock of imports, and which llama.cpp is followed
