"""The oracles, each against the real thing, and what becomes of those that crash, hang or babble."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, ROOT, missing, prepared
from reference import (
    TOKENIZERS_1,
    NotPreparedError,
    library,
    library_is_installed,
    llama_tokenize_command,
    tokenizers_1,
    vocabulary,
    with_pre,
    xllamacpp_packages,
)

from ggufbpe import Tokenizer
from ggufbpe._util.llama_cpp_states import FOLLOWED, STATES
from ggufbpe.analysis.oracles import library_oracle
from ggufbpe.analysis.oracles.against import Against, against_of
from ggufbpe.analysis.oracles.id_parsing import parse_ids
from ggufbpe.analysis.oracles.llama_cpp_child import _named_builds, library_in
from ggufbpe.analysis.oracles.open_oracle import open_oracle
from ggufbpe.analysis.oracles.oracle import Failure, Oracle, OracleError
from ggufbpe.analysis.verify.id_comparison import verify
from ggufbpe.analysis.verify.result import ComparedText
from ggufbpe.convert.export_formats import export_to
from ggufbpe.convert.exporters.tokenizer_json import to_tokenizer_json
from ggufbpe.models.bpe.merge import CHAR_BYTES
from ggufbpe.models.loading import load_vocabulary

posix_only = pytest.mark.skipif(os.name != "posix", reason="fake commands are shell scripts")

TEXTS = [
    b"Hello world",
    b"",
    b"I'll pay 1234567  dollars,\r\n\tor <|endoftext|> not.",
    "Größe 中文 שלום 👍🏽".encode(),
    b"a \\n backslash, \x00, and \x1b[31m",
]
NOT_UTF8 = b"one \xff two \xe4\xb8"
FLAGS = [(True, True), (True, False), (False, True), (False, False)]


@pytest.fixture(scope="session")
def gpt2() -> Tokenizer:
    return Tokenizer.from_gguf(GPT2)


def opened(given: str, model: Path = GPT2, seconds: float = 30.0) -> Oracle:
    return open_oracle(given, str(model), Tokenizer(load_vocabulary(model)), seconds)


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        missing(f"no {package}: pip install 'ggufbpe[{package}]'")


# ---- the real ones --------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def tokenizer_json(gpt2: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GPT-2 as Hugging Face's package has it."""
    needs("tokenizers")
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    vocabulary = gpt2.vocabulary
    merges = [(left, right) for left, right in (merge.split(" ") for merge in vocabulary.merges)]
    made = tokenizers.Tokenizer(models.BPE(vocab=dict(vocabulary.token_to_id), merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|endoftext|>"])
    path = tmp_path_factory.mktemp("hf") / "tokenizer.json"
    made.save(str(path))
    return path


def tiktoken_file(gpt2: Tokenizer, path: Path) -> Path:
    """GPT-2's ranks in tiktoken's format; its ids are ranks."""
    with path.open("wb") as file:
        for rank, token in enumerate(gpt2.vocabulary.tokens[:-1]):
            file.write(base64.b64encode(bytes(CHAR_BYTES[char] for char in token)) + b" %d\n" % rank)
    return path


@pytest.fixture(scope="session")
def real_oracle(
    gpt2: Tokenizer, tokenizer_json: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Oracle]:
    """The oracle of a name, for GPT-2."""

    def make(name: str) -> Oracle:
        if name == "llama-tokenize":
            return opened(f"llama-tokenize:{prepared(llama_tokenize_command)}")
        if name in IN_PROCESS:
            return opened_in_process(name)
        if name.startswith("tiktoken"):
            needs("tiktoken")
            file = name.partition(":")[2]
            return opened(f"tiktoken:{tiktoken_file(gpt2, tmp_path_factory.mktemp('tiktoken') / file)}")
        return opened(str({"tokenizers": tokenizer_json, "gguf": GPT2}[name]))

    return make


IN_PROCESS = ["llama-cpp-python", "xllamacpp"]


@pytest.fixture(scope="module", autouse=True)
def newer_package() -> Iterator[None]:
    """The newer state's package, which is kept apart, is where the children look for packages."""
    with pytest.MonkeyPatch.context() as patch:
        with suppress(NotPreparedError):
            patch.setenv("PYTHONPATH", str(xllamacpp_packages()))
        yield


def opened_in_process(package: str, model: Path = GPT2) -> Oracle:
    if package == "xllamacpp":
        prepared(xllamacpp_packages)
    elif not library_is_installed():
        missing("no llama-cpp-python: `python scripts/reference.py prepare --package` installs it")
    return opened(package, model)


REAL = [
    "llama-tokenize",
    *IN_PROCESS,
    "tokenizers",
    "tiktoken:r50k_base.tiktoken",
    "tiktoken:own.tiktoken",
    "gguf",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_oracles_give_gpt2s_ids(
    name: str, real_oracle: Callable[[str], Oracle], gpt2: Tokenizer
) -> None:
    with real_oracle(name) as oracle:
        for add_special, parse_special in FLAGS if name != "llama-tokenize" else FLAGS[1:3]:
            expected = gpt2.encode_batch(TEXTS, add_special=add_special, parse_special=parse_special)
            assert oracle.encode(TEXTS, add_special, parse_special) == expected
        assert oracle.encode([], True, True) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_text_that_is_not_utf8(name: str, real_oracle: Callable[[str], Oracle], gpt2: Tokenizer) -> None:
    """llama.cpp takes it; the packages that take `str` refuse it, and go on."""
    with real_oracle(name) as oracle:
        answer, following = oracle.encode([NOT_UTF8, b"Hello"], True, True)
        if name.startswith(("tokenizers", "tiktoken")):
            assert isinstance(answer, Failure)
            assert answer.kind == "refused"
            assert "not UTF-8 at byte 4" in answer.detail
        else:
            assert answer == gpt2.encode(NOT_UTF8)
        assert following == gpt2.encode(b"Hello")


@pytest.mark.parametrize("state", STATES)
def test_llama_cpp_in_a_folder_gives_the_ids_of_its_build(state: str) -> None:
    """Each known state, by its folder or library; strict UTF-8 came with the last."""
    text = b"a\xc1\x81b"
    tok = Tokenizer.from_gguf(GPT2, llama_cpp=state)
    with opened(f"llama-cpp:{prepared(library, state)}") as oracle:
        assert oracle.encode([b"Hello world", text], True, True) == [[15496, 995], tok.encode(text)]
        assert (f"{state} (" if state == FOLLOWED else "unknown build") in oracle.name


@pytest.mark.parametrize("inside", ["", "lib", "bin", "build/bin", "lib/x86_64-linux-gnu"])
@pytest.mark.parametrize("name", ["libllama.so", "libllama.dylib", "llama.dll"])
def test_where_the_library_is_looked_for(inside: str, name: str, tmp_path: Path) -> None:
    place = tmp_path / inside / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.touch()
    assert library_in(str(tmp_path)) == str(place)


@pytest.mark.parametrize(
    ("folder", "content", "build"),
    [
        ("package", '__llama_cpp_tag__ = "b11739"\n', ["b11739"]),
        ("llama-b11600-bin-ubuntu-x64", "", ["b11600"]),
        ("llama-b11600/build/bin", "", ["b11600"]),
        ("b11600", "", ["b11600"]),
        ("ab11600", "", []),
        ("llama.cpp", '__version__ = "0.1"\n', []),
    ],
)
def test_builds_that_files_and_folders_name(
    folder: str, content: str, build: list[str], tmp_path: Path
) -> None:
    place = tmp_path / folder
    place.mkdir(parents=True)
    (place / "_version.py").write_text(content)
    assert list(_named_builds(str(place))) == build


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("llama-cpp", "needs something after a colon: a folder with llama.cpp's library"),
        ("llama-cpp:/no/such/folder", "there is no '/no/such/folder'"),
        ("llama-cpp:EMPTY", "cannot be asked: there is no libllama.so, libllama.dylib or llama.dll in "),
        ("llama-cpp:GARBAGE", "cannot be asked: "),
    ],
)
def test_a_folder_without_a_library_that_can_be_asked(given: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "garbage").mkdir()
    (tmp_path / "garbage" / "libllama.so").write_bytes(b"no library")
    given = given.replace("EMPTY", str(tmp_path / "empty")).replace("GARBAGE", str(tmp_path / "garbage"))
    with pytest.raises(OracleError, match=re.escape(told)):
        opened(given)


def test_llama_cpp_adds_bos_and_eos_as_asked(tmp_path: Path) -> None:
    command = prepared(llama_tokenize_command)
    keys = {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": True}
    model = with_pre(GPT2, None, tmp_path / "both.gguf", extra=keys)
    with opened(f"llama-tokenize:{command.parent}", model) as oracle:
        assert oracle.encode([b"Hi"], True, True) == [[50256, 17250, 50256]]
        assert oracle.encode([b"Hi"], False, True) == [[17250]]
        assert oracle.add_special(True)


def test_llama_tokenize_adds_no_eos_where_the_model_wants_no_bos(tmp_path: Path) -> None:
    command = prepared(llama_tokenize_command)
    model = with_pre(GPT2, None, tmp_path / "eos.gguf", extra={"tokenizer.ggml.add_eos_token": True})
    with opened(f"llama-tokenize:{command}", model) as oracle:
        assert oracle.encode([b"Hi"], True, True) == [[17250]]
        assert not oracle.add_special(True), "so both sides are asked without"


def test_llama_tokenize_is_found_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(prepared(llama_tokenize_command).parent))
    with opened("llama-tokenize") as oracle:
        assert oracle.encode([b"Hello world"], True, True) == [[15496, 995]]


def test_llama_tokenize_says_why_it_cannot_take_a_model(tmp_path: Path) -> None:
    command = prepared(llama_tokenize_command)
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(GPT2.read_bytes()[:1000])
    # What it says itself follows, if anything: the command often ends before its log is written.
    with pytest.raises(OracleError, match=r"cannot take this model \(exit code 1\): .+"):
        open_oracle(f"llama-tokenize:{command}", str(broken), Tokenizer.from_gguf(GPT2), 30)


def test_server_gives_gpt2s_ids(server: str, gpt2: Tokenizer) -> None:
    with opened(f"server:{server}") as oracle:
        for add_special, parse_special in FLAGS:
            expected = gpt2.encode_batch(TEXTS, add_special=add_special, parse_special=parse_special)
            assert oracle.encode(TEXTS, add_special, parse_special) == expected
        [refused, following] = oracle.encode([NOT_UTF8, b"Hello"], True, True)
        assert isinstance(refused, Failure)
        assert refused.kind == "refused"
        assert following == gpt2.encode(b"Hello")


def test_server_may_be_named_without_a_scheme(server: str) -> None:
    with opened(f"server:{server.removeprefix('http://')}/") as oracle:
        assert oracle.encode([b"Hello world"], True, True) == [[15496, 995]]


def test_tiktoken_is_compared_without_bos(real_oracle: Callable[[str], Oracle]) -> None:
    with real_oracle("tiktoken:r50k_base.tiktoken") as oracle:
        assert not oracle.add_special(True)
        assert "BOS" in oracle.note


def test_name_of_an_encoding_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    needs("tiktoken")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")  # there is no network in a test
    with pytest.raises(OracleError, match=r"needs the network, or a file in TIKTOKEN_CACHE_DIR"):
        opened("tiktoken:r50k_base")


# ---- recorded ids ---------------------------------------------------------------------------------------

RECORDED = {
    "a list": (b"[15496, 995]", [[15496, 995]]),
    "several lists": (b"[[1, 2], [], [3]]", [[1, 2], [], [3]]),
    "numbers between spaces": (b" 15496 995\n", [[15496, 995]]),
    "numbers between commas": (b"15496, 995,\n3", [[15496, 995, 3]]),
    "an answer of llama-server": (b'{"tokens":[15496,995]}', [[15496, 995]]),
    "an answer of it with pieces": (b'{"tokens":[{"id":15496,"piece":"Hello"}]}', [[15496]]),
    "an encoding of transformers": (b'{"input_ids": [[1, 2]], "attention_mask": [[1, 1]]}', [[1, 2]]),
    "such an encoding as Python prints it": (b"{'input_ids': [1, 2], 'attention_mask': [1, 1]}", [[1, 2]]),
    "ggufbpe tokenize --json": (b'[\n{"id": 1, "piece": "a", "start": 0, "end": 1}\n]', [[1]]),
    "a list a line": (b"[1, 2]\n[3]\n", [[1, 2], [3]]),
    "llama-tokenize": (b" 15496 -> 'Hello'\n   995 -> ' world'\n", [[15496, 995]]),
    "llama-tokenize after an empty line": (b"\n 15496 -> 'Hello'\n", [[15496]]),
    "a token with a line break": (b"   198 -> '\n'\n     0 -> '!'\n", [[198, 0]]),
    "a byte order mark": (b"\xef\xbb\xbf[1]", [[1]]),
    "nothing": (b"", [[]]),
}


@pytest.mark.parametrize(("data", "expected"), RECORDED.values(), ids=RECORDED)
def test_recorded_ids(data: bytes, expected: list[list[int]]) -> None:
    assert parse_ids(data) == expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"1 hello", "'hello' is not a token id"),
        (b"[1.5]", "1.5 is not a token id (item 1 of 1)"),
        (b"[true]", "true is not a token id (item 1 of 1)"),
        (b'[1, 2, "x\\u200b"]', '"x\\u200b" is not a token id (item 3 of 3)'),
        (b"[[1], 2]", "[1] is not a token id (item 1 of 2)"),
        (b'{"ids": [null]}', "null is not a token id (item 1 of 1)"),
        (b"[1", "the ids are not JSON: Expecting ',' delimiter: line 1 column 3 (char 2)"),
        (b"[1]\n[2", "line 2 is not JSON: Expecting ',' delimiter"),
        (b'\n[1]\n["2"]', 'line 3: "2" is not a token id (item 1 of 1)'),
        (
            b"{}",
            "the JSON is neither a list of ids nor an object with ids or tokens or input_ids or token_ids",
        ),
    ],
)
def test_what_is_no_recorded_ids(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_ids(data)


def test_recorded_ids_go_with_the_texts_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "ids.json"
    path.write_text("[[1, 2], [3]]")
    with opened(f"ids:{path}") as oracle:
        assert oracle.recorded
        assert oracle.encode([b"a"], True, True) == [[1, 2]]
        assert oracle.encode([b"b"], True, True) == [[3]]
        with pytest.raises(OracleError, match="has ids of 2 texts, but there are more"):
            oracle.encode([b"c"], True, True)


# ---- what cannot be asked -------------------------------------------------------------------------------

UNUSABLE = {
    "unknown": ("lama", "'lama' is not something to compare with; give one of llama-tokenize"),
    "a model's file": ("other.gguf", "other.gguf: No such file or directory"),
    "a tokenizer.json": ("to/tokenizer.json", "to/tokenizer.json: No such file or directory"),
    "an older form": ("hf:to/tokenizer.json", "to/tokenizer.json: No such file or directory"),
    "another file": (__file__, "is not recognized: neither a GGUF, a tokenizer.json, a tokenizer.model"),
    "a folder": (str(ROOT / "docs"), "docs has none of tokenizer.json, tokenizer.model"),
    "no address": ("server", "server needs something after a colon"),
    "no file": ("ids:", "ids needs something after a colon"),
    "a file that is not there": ("ids:/no/such/file", "/no/such/file: No such file or directory"),
    "no tokenizer.json": ("hf:/no/such/file", "/no/such/file: No such file or directory"),
    "no command": (
        "llama-tokenize:/no/such/command",
        "not an executable command; llama-tokenize comes with",
    ),
    "no server": (
        "server:127.0.0.1:1",
        "no llama-server answers at 'http://127.0.0.1:1/tokenize': no connection",
    ),
    "no address of a server": ("server:ftp://localhost", "is no address of a server, such as http"),
    "another file of a package": ("xllamacpp:x.gguf", "takes nothing after a colon"),
    "another file of the package": ("llama-cpp-python:x.gguf", "takes nothing after a colon"),
}


@pytest.mark.parametrize(("given", "said"), UNUSABLE.values(), ids=UNUSABLE)
def test_oracle_that_cannot_be_asked(given: str, said: str) -> None:
    with pytest.raises(OracleError) as caught:
        opened(given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


RANKS = b"".join(base64.b64encode(bytes([byte])) + b" %d\n" % byte for byte in range(256))
FILES = {  # a file's name and contents, and how it is opened
    "a GGUF": ("model.gguf", GPT2.read_bytes()[:64], "gguf"),
    "a GGUF of another name": ("model.bin", GPT2.read_bytes()[:64], "gguf"),
    "a tokenizer.json": ("tokenizer.json", b'{"model": {"vocab": {}}}', "tokenizers"),
    "one of another name": ("qwen.json", b'\n {"version": "1.0", "model": {"vocab": {}}}', "tokenizers"),
    "a sentencepiece model": ("spiece.model", b"\x0a\x0e\x0a\x05<unk>", "sentencepiece"),
    "ranks": ("cl100k.tiktoken", RANKS, "tiktoken"),
    "ranks of another name": ("ranks", RANKS, "tiktoken"),
    "recorded ids": ("ids.json", b"[[1, 2], [3]]", "ids"),
    "recorded ids by key": ("ids.json", b'{"input_ids": [1, 2]}', "ids"),
    "numbers": ("ids.txt", b"9906 1917\n", "ids"),
    "numbers on lines": ("ids", b"[1, 2]\n[3]\n", "ids"),
}


@pytest.mark.parametrize(("name", "data", "kind"), FILES.values(), ids=FILES)
def test_a_path_is_recognized_by_its_contents(name: str, data: bytes, kind: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    assert against_of(str(path)) == Against(kind, str(path))
    prefix = "hf" if kind == "tokenizers" else kind
    older = against_of(f"{prefix}:{path}")
    assert older[:2] == (kind, str(path))
    assert older.note.startswith(f"{prefix}: before a path is not needed any more")
    if kind in ("tokenizers", "sentencepiece") and name in ("tokenizer.json", "spiece.model"):
        assert against_of(str(tmp_path)).kind == kind


NAMES = {  # what is given, and what it means
    "the hub": ("hf:Qwen/Qwen3-0.6B", Against("hub", "hf:Qwen/Qwen3-0.6B")),
    "a file on the hub": ("hf:o/r/a.gguf@main", Against("hub", "hf:o/r/a.gguf@main")),
    "another store": ("ollama:gemma3", Against("gguf", "ollama:gemma3")),
    "an address": ("https://example.com/a.gguf", Against("gguf", "https://example.com/a.gguf")),
    "a command": ("llama-tokenize:build/bin", Against("llama-tokenize", "build/bin")),
    "an encoding": ("tiktoken:cl100k_base", Against("tiktoken", "cl100k_base")),
}


@pytest.mark.parametrize(("given", "meant"), NAMES.values(), ids=NAMES)
def test_names_that_are_no_paths(given: str, meant: Against) -> None:
    assert against_of(given) == meant


def test_a_file_that_is_not_recognized_keeps_its_older_form(tmp_path: Path) -> None:
    path = tmp_path / "answer.txt"
    path.write_text("  1234 -> 'Hello'\n")
    assert against_of(f"ids:{path}") == Against("ids", str(path))


def test_absent_command_comes_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        OracleError, match=r"not on PATH; .*llama\.cpp/releases.*or write llama-tokenize:PATH"
    ):
        opened("llama-tokenize")


@pytest.mark.parametrize(
    ("given", "package"),
    [
        *zip(IN_PROCESS, IN_PROCESS),
        ("FILE", "tokenizers"),
        ("tiktoken:gpt2", "tiktoken"),
        ("sentencepiece:FILE", "sentencepiece"),
    ],
)
def test_absent_package_comes_with_the_line_that_installs_it(
    given: str, package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A Python in which nothing is installed stands for one without the package."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    file = tmp_path / "tokenizer.json"
    file.write_text('{"model": {}}')
    with pytest.raises(OracleError, match=rf"is not installed .*pip install 'ggufbpe\[{package}\]'"):
        opened(given.replace("FILE", str(file)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama-spm", "phi-3", "nomic-bert-moe"])
def test_sentencepiece_gives_the_ids_of_what_was_exported_for_it(name: str, tmp_path: Path) -> None:
    """`verify` passes with BOS and EOS as the model wants them; control tokens in a text are plain text for both."""
    needs("sentencepiece")
    model = prepared(vocabulary, name)
    tok = Tokenizer(load_vocabulary(model))
    export = export_to("sentencepiece", tok.vocabulary)
    (tmp_path / "tokenizer.model").write_bytes(export.files["tokenizer.model"])
    control = tok.vocabulary.tokens[tok.vocabulary.special_ids["eos"] or 0]
    texts = [
        ComparedText("text", n, data) for n, data in enumerate([*TEXTS, f"an {control} is plain".encode()])
    ]
    with opened(f"sentencepiece:{tmp_path}", model) as oracle:
        result = verify(tok, oracle, texts)
        assert (result.differences, result.failures, oracle.parse_special(True)) == ([], [], False)
        assert oracle.encode([b"Hi"], True, False) == [tok.encode("Hi")]
        assert oracle.name.startswith("sentencepiece 0.2")


def test_sentencepiece_of_another_vocabulary_differs(tmp_path: Path) -> None:
    needs("sentencepiece")
    model, other = prepared(vocabulary, "llama-spm"), prepared(vocabulary, "baichuan")
    path = tmp_path / "other.model"
    path.write_bytes(export_to("sentencepiece", load_vocabulary(other)).files["tokenizer.model"])
    with opened(f"sentencepiece:{path}", model) as oracle:
        assert not verify(Tokenizer(load_vocabulary(model)), oracle, [ComparedText("text", 0, TEXTS[0])]).same


@pytest.mark.parametrize(
    ("oracle", "package", "name", "content"),
    [
        ("sentencepiece", "sentencepiece", "tokenizer.model", "no protocol buffer"),
        ("hf", "tokenizers", "tokenizer.json", '{"version": "1.0"}'),
    ],
)
def test_file_that_the_library_cannot_open(
    oracle: str, package: str, name: str, content: str, tmp_path: Path
) -> None:
    needs(package)
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(OracleError, match=f"{package} cannot open this: "):
        opened(f"{oracle}:{path}")


# ---- crashes, hangs and garbage -------------------------------------------------------------------------


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("name", ["llama-tokenize", *IN_PROCESS])
def test_crash_on_a_text_and_the_next_text(name: str, tmp_path: Path) -> None:
    """llama.cpp overflows its stack on a long run under gpt-4o (the C++ standard regex)."""
    model = with_pre(prepared(vocabulary, "gpt-2"), "gpt-4o", tmp_path / "gpt-4o.gguf")
    if name == "llama-tokenize":
        real = opened(f"llama-tokenize:{prepared(llama_tokenize_command)}", model)
    else:
        real = opened_in_process(name, model)
    with real as oracle:
        before, crash, after = oracle.encode([b"Hello", b"a" * 100_000, b" world"], True, True)
        assert (before, after) == ([15496], [995])
        assert isinstance(crash, Failure)
        assert crash.kind == "crash"
        assert "SIGSEGV" in crash.detail


def fake(folder: Path, script: str) -> str:
    """An oracle whose command is a script; `$TEXT` in it is the file of the text."""
    path = folder / "llama-tokenize"
    path.write_text(f"#!/bin/sh\nTEXT=$4\n{script}\n")
    path.chmod(0o755)
    return f"llama-tokenize:{path}"


ON_BAD = 'grep -q bad "$TEXT" && {}\necho "[1]"'  # what it does on a text with "bad" in it

FAULTS = {
    "hangs": (ON_BAD.format("sleep 60"), "timeout", "no answer within 2 s"),
    "hangs behind a child": (ON_BAD.format("{ sleep 60 & wait; }"), "timeout", "no answer within 2 s"),
    "prints rubbish": (ON_BAD.format("{ printf 'what \\033[31m'; exit; }"), "garbage", "'what \\x1b[31m'"),
    "prints nothing": (ON_BAD.format("exit 0"), "garbage", "no output"),
    "prints no ids": (ON_BAD.format("{ echo '[1, x]'; exit; }"), "garbage", "'[1, x]\\n'"),
    "does not stop printing": (ON_BAD.format("yes"), "garbage", "'y\\ny\\n"),
    "does not stop complaining": (ON_BAD.format("yes >&2"), "timeout", "no answer within 2 s"),
    "ends with an error": (
        ON_BAD.format("{ echo 'bad luck' >&2; exit 3; }"),
        "crash",
        "exit code 3: 'bad luck'",
    ),
    "is killed": (ON_BAD.format("kill -9 $$"), "crash", "ended by SIGKILL"),
}


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize(("script", "kind", "detail"), FAULTS.values(), ids=FAULTS)
def test_faults_of_a_command(script: str, kind: str, detail: str, tmp_path: Path) -> None:
    """What is to be answered has a minute where nothing is to time out, as a machine can be busy."""
    began = time.monotonic()
    with opened(fake(tmp_path, script), seconds=2 if kind == "timeout" else 60) as oracle:
        before, fault, after = oracle.encode([b"good", b"bad", b"good"], True, True)
    assert (before, after) == ([1], [1]), "the others have their answers"
    assert isinstance(fault, Failure)
    assert fault.kind == kind
    assert detail in fault.detail
    assert time.monotonic() - began < 30


@posix_only
def test_command_that_cannot_take_anything(tmp_path: Path) -> None:
    with pytest.raises(OracleError, match=r"cannot take this model \(exit code 1\): 'no such model'"):
        opened(fake(tmp_path, "echo 'no such model' >&2; exit 1"))


class _Fake(BaseHTTPRequestHandler):
    """A server that misbehaves when the text says so."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["content"]
        if asked == "hang":
            self.server.released.wait(60)  # type: ignore[attr-defined]
        elif asked == "hang up":
            self.close_connection = True
            return
        answers = {"rubbish": b"<html>", "no ids": b'{"tokens": ["a"]}', "endless": b"[" * (1 << 20)}
        body = answers.get(asked, b'{"tokens": [1]}')
        self.send_response(500 if asked == "error" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


@pytest.fixture
def fake_server() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), _Fake)
    server.released = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
@pytest.mark.parametrize("flags", FLAGS)
def test_version_1_of_tokenizers(
    flags: tuple[bool, bool], gpt2: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other interface, which has no `no_truncation`."""
    (tmp_path / "tokenizer.json").write_bytes(to_tokenizer_json(gpt2.vocabulary).files["tokenizer.json"])
    monkeypatch.setenv("PYTHONPATH", str(prepared(tokenizers_1)))
    with opened(str(tmp_path)) as oracle:
        found = oracle.encode([*TEXTS, NOT_UTF8], *flags)
        assert oracle.name.endswith(TOKENIZERS_1.replace("rc", "-rc."))
    assert found[:-1] == [gpt2.encode(text, add_special=flags[0], parse_special=flags[1]) for text in TEXTS]
    assert "not UTF-8 at byte 4" in str(found[-1])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"hang", "timeout"),
        (b"hang up", "crash"),
        (b"rubbish", "garbage"),
        (b"no ids", "garbage"),
        (b"endless", "garbage"),
        (b"error", "refused"),
    ],
)
def test_faults_of_a_server(text: bytes, kind: str, fake_server: HTTPServer) -> None:
    with opened(f"server:127.0.0.1:{fake_server.server_port}", seconds=60) as oracle:
        oracle._seconds = 0.4 if kind == "timeout" else 60  # type: ignore[attr-defined]
        [fault] = oracle.encode([text], True, True)
        assert isinstance(fault, Failure)
        assert fault.kind == kind
        fake_server.released.set()  # type: ignore[attr-defined]
        oracle._seconds = 60  # type: ignore[attr-defined]
        assert oracle.encode([b"good"], True, True) == [[1]]


def test_hang_of_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A library that sleeps stands for one that hangs: the child is ended, and a new one asked."""
    package = Path(library_oracle.__file__).parent
    shutil.copy(package / "library_child.py", tmp_path)
    slow = "import time\n\ndef open_tokenizers(data):\n"
    slow += "    return Adapter('1', lambda text, a, b: time.sleep(60) if text == 'hang' else [1])\n"
    (tmp_path / "library_adapters.py").write_text((package / "library_adapters.py").read_text() + slow)
    monkeypatch.setattr(library_oracle, "__file__", str(tmp_path / "library_oracle.py"))
    answers = []
    with library_oracle.LibraryOracle("tokenizers", {"file": __file__}, "slow", 60) as oracle:
        for text, oracle._seconds in ((b"a", 60), (b"hang", 0.3), (b"b", 60)):
            answers += oracle.encode([text], True, True)
    assert answers == [[1], Failure("timeout", "no answer within 0.3 s"), [1]]
