"""Every example in the help texts runs, in a folder of files with the names that they use.

What cannot be run here is in `NOT_RUN`, each with a reason that is itself tested. The examples of pages are run by
test_pages_for_people.py.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from commands import write_command
from conftest import ROOT, missing
from make_mmproj import make_mmproj
from reference import NotPreparedError, library_is_installed, llama_tokenize_command
from stores import make_named_stores
from synthetic import gpt2_vocabulary

from ggufbpe import Tokenizer
from ggufbpe.chat.known_templates import CHATML
from ggufbpe.cli import _EXAMPLES, COMMANDS, main
from ggufbpe.cli._help import help_texts
from ggufbpe.convert.exporters.sentencepiece_model import to_sentencepiece
from ggufbpe.convert.exporters.tiktoken_files import to_tiktoken
from ggufbpe.convert.exporters.tokenizer_json import to_tokenizer_json
from ggufbpe.convert.imported import pack
from ggufbpe.convert.importers.import_hf import import_tokenizer
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS


class Example(NamedTuple):
    """One example: the command whose help it stands in, and what a shell runs."""

    home: str
    text: str


def of_help() -> Iterator[Example]:
    """The lines under "examples:", of the program and of each command."""
    for command in ("", *COMMANDS):
        text = help_texts(command)[1] if command else _EXAMPLES
        part = text.split("\n\n")[0]
        yield from (Example(command or "ggufbpe", line.strip()) for line in part.splitlines()[1:])


EXAMPLES = list(of_help())


def of(home: str, beginning: str) -> Example:
    [found] = [e for e in EXAMPLES if e.home == home and e.text.startswith(beginning)]
    return found


ON_A_CLUSTER = of("encode", "ggufbpe encode -m model.gguf s3://")
BY_HUB = of("models", "ggufbpe models --remote")
IN_FISH = of("completion", "ggufbpe completion fish")
STANDALONE = of("page", "ggufbpe page -o site")
BY_SERVER = of("verify", "ggufbpe verify -m model.gguf --against server:http://127.0.0.1:8080 --stdin")
CHATS_BY_SERVER = of("verify", "ggufbpe verify -m model.gguf --against server:http://127.0.0.1:8080 --chat")
CHATS_OF_HUB = of("verify", "ggufbpe verify -m model.gguf --against hf:")
DOCTOR_OF_HUB = of("doctor", "ggufbpe doctor model.gguf --upstream hf:")
TEMPLATE_OF_HUB = of("fix", "ggufbpe fix model.gguf --chat-template hf:")
NOT_RUN = {
    ON_A_CLUSTER: "neither a cluster nor an S3 store is here",
    BY_HUB: "no hub is asked in tests; test_names.py has one of its own",
    IN_FISH: "this is no bash",
    STANDALONE: "test_standalone_page.py runs it, where scripts/wasm.sh was run before",
    BY_SERVER: "no llama-server listens there; test_oracles.py starts one",
    CHATS_OF_HUB: "no hub is asked in tests; test_transformers_templates.py compares with folders",
    DOCTOR_OF_HUB: "the same",
    TEMPLATE_OF_HUB: "no hub is asked in tests; test_template_sources.py has one of its own",
    CHATS_BY_SERVER: "no llama-server listens there; test_chat_comparison.py asks it",
}
SERVED = [e for e in EXAMPLES if e.text.startswith(("ggufbpe serve", "curl "))]
"""Servers, which end when they are told to, and what they are asked."""

# ---- the folder -----------------------------------------------------------------------------------------

TEXT = "Hello world, I'll count 1234567 words: naïve 你好.\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that each example gets a copy of; the model is GPT-2's vocabulary, with ChatML and its two tokens."""
    folder = tmp_path_factory.mktemp("files")
    for name in (
        "docs",
        "src",
        "fr",
        "corpus/de",
        "corpus/fr",
        "Qwen2-7B",
        "bin",
        "llama-2",
    ):
        (folder / name).mkdir(parents=True)
        (folder / name / "text.md").write_text(TEXT, encoding="utf-8")
    for name in ("prompt.txt", "text.txt", "corpus.txt", "de.txt", "more.txt", "README.md"):
        (folder / name).write_text(TEXT, encoding="utf-8")
    (folder / "keys.txt").write_text("# of the tests\nkey\n")
    (folder / "words.tsv").write_text("low\t5\nlower\t2\nnewest\t6\n")
    messages = [{"role": "user", "content": TEXT}]
    function = {"name": "now", "description": "the time", "parameters": {"type": "object", "properties": {}}}
    marker = [{"role": "user", "content": "Hi<|im_end|>"}]
    (folder / "markers.json").write_text(json.dumps(marker))
    (folder / "messages.json").write_text(json.dumps(messages))
    make_mmproj(folder / "mmproj.gguf", "gemma3", {})
    (folder / "tools.json").write_text(json.dumps([{"type": "function", "function": function}]))
    (folder / "request.json").write_text(json.dumps({"messages": messages}))
    (folder / "template.jinja").write_text("{% for message in messages %}{{ message.content }}\n{% endfor %}")
    for name in ("dump.gz", "dump.txt.gz"):
        (folder / name).write_bytes(gzip.compress(TEXT.encode()))
    lines = "".join(json.dumps({"lang": lang, "text": TEXT, "body": TEXT}) + "\n" for lang in ("de", "fr"))
    (folder / "a.jsonl").write_text(lines)
    for name in ("wiki.jsonl.gz", "b.jsonl.gz"):
        (folder / name).write_bytes(gzip.compress(lines.encode()))

    export = to_tokenizer_json(gpt2_vocabulary())
    document = json.loads(export.files["tokenizer.json"])
    flags = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    chat = ("<|im_start|>", "<|im_end|>")
    document["added_tokens"] += [{"id": 50257 + i, "content": text, **flags} for i, text in enumerate(chat)]
    for path in ("tokenizer.json", "Qwen2-7B/tokenizer.json"):
        (folder / path).write_text(json.dumps(document))
    config = {**json.loads(export.files["tokenizer_config.json"]), "chat_template": CHATML}
    model = folder / "model.gguf"
    model.write_bytes(pack(import_tokenizer(document, config).metadata))
    for name in ("a", "b", "c", "other", "gpt-2", "llama-3"):
        shutil.copy(model, folder / f"{name}.gguf")
    for name, other in (("llama-2", "spm"), ("bge", "wpm")):
        shutil.copy(ROOT / "fixtures" / "vocabs" / f"{other}.gguf", folder / f"{name}.gguf")
    for name, data in to_sentencepiece(Tokenizer.from_gguf(folder / "llama-2.gguf").vocabulary).files.items():
        (folder / "llama-2" / name).write_bytes(data)
    tok = Tokenizer.from_gguf(model)
    for name in ("ids", "recorded", "expected"):
        (folder / f"{name}.json").write_text(json.dumps(tok.encode(TEXT)))
    for name, data in to_tiktoken(tok.vocabulary, "model").files.items():
        (folder / name.replace("ranks", "model")).write_bytes(data)

    make_named_stores(folder / "home", model.read_bytes())
    write_command(folder / "bin" / "ggufbpe")
    with contextlib.suppress(NotPreparedError):
        command = llama_tokenize_command()
        (folder / "bin" / command.name).symlink_to(command)
        (folder / "llama.cpp" / "build").mkdir(parents=True)
        (folder / "llama.cpp" / "build" / "bin").symlink_to(command.parent)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for arguments in (["init", "-q"], ["add", "README.md"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *arguments], cwd=folder, check=True, capture_output=True)
    (folder / "README.md").write_text(TEXT * 2, encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home folder with these stores, and nothing in the environment that says where others are."""
    for name in list(os.environ):
        if name.startswith(("HF_", "HUGGINGFACE_", "LLAMA_CACHE", "OLLAMA_", "XDG_CACHE")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setenv("GGUFBPE_CACHE_DIR", str(folder / "cache"))


@pytest.fixture
def folder(files: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "files"
    shutil.copytree(files, copy, symlinks=True)
    return copy


# ---- what is run ----------------------------------------------------------------------------------------

WRITTEN = {
    "--to tokenizer.json": ["tokenizer.json"],
    "--to sentencepiece": ["tokenizer.model", "llama-2/tokenizer.model", "llama-2/tokenizer_config.json"],
    "import llama-2": ["llama-2.gguf"],
    "--to tiktoken": ["model.tiktoken", "model.tiktoken.json"],
}
"""What an example writes, which must not be there before."""

OTHER_FILES = {  # examples that speak of another model than the one that is there
    of("fix", "ggufbpe fix model.gguf --set my.key"): ("model.gguf", "scores-of-integers.gguf"),
    of("import", "ggufbpe import tokenizer.json --pre"): ("tokenizer.json", "llama-bpe"),
}
CODES = {
    of(
        "verify", "ggufbpe verify -m model.gguf --against llama-cpp:"
    ): 1,  # an older build decodes other bytes
    of(
        "diagnose", 'ggufbpe diagnose -m model.gguf -p "Hello world"'
    ): 1,  # the ids are Llama 3's, not GPT-2's
    of(
        "diagnose", "ggufbpe diagnose -m model.gguf --chat messages.json --ids"
    ): 1,  # the ids of the text alone
    of("diagnose", "ggufbpe diagnose -m model.gguf --chat messages.json --tools"): 1,  # the text alone
}


def prepare(example: Example, folder: Path) -> None:
    """What this example needs to be otherwise."""
    if "sharegpt.jsonl" in example.text:  # its lines are no texts, so that others do not count it
        turns = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]
        (folder / "sharegpt.jsonl").write_text(json.dumps({"conversations": turns}) + "\n")
    for flag, names in WRITTEN.items():
        for name in names * (flag in example.text):
            (folder / name).unlink(missing_ok=True)
    if "recorded.json -p" in example.text:
        (folder / "recorded.json").write_text("[15496, 995]")
    if "chats.jsonl" in example.text:
        messages = json.loads((folder / "messages.json").read_text())
        (folder / "chats.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    if example.home in ("decode", "check"):
        assert run("ggufbpe encode -m model.gguf wiki.jsonl.gz -o shards", folder).returncode == 0
    if example in OTHER_FILES:
        name, other = OTHER_FILES[example]
        if name.endswith(".json"):
            vocabulary = gpt2_vocabulary()._replace(pre=other, pre_tokenizer=PRE_TOKENIZERS[other])
            (folder / name).write_bytes(to_tokenizer_json(vocabulary).files[name])
        else:
            shutil.copy(ROOT / "fixtures" / "vocabs" / other, folder / name)


def environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "MPLCONFIGDIR": str(folder)}


def run(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", text],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",  # a byte token has a line of its own
    )


def named(example: Example) -> str:
    return f"{example.home}: {example.text[:60]}"


@pytest.mark.slow
@pytest.mark.parametrize("example", [e for e in EXAMPLES if e not in NOT_RUN and e not in SERVED], ids=named)
def test_example_runs(example: Example, folder: Path) -> None:
    if re.search("llama-tokenize|llama-cpp:", example.text) and not (folder / "llama.cpp").exists():
        missing("no llama-tokenize: `python scripts/reference.py prepare --older` builds it")
    if "llama-cpp-python" in example.text and not library_is_installed():
        missing("no llama-cpp-python: `python scripts/reference.py prepare --package` installs it")
    prepare(example, folder)
    ran = run(example.text, folder)
    assert ran.returncode == CODES.get(example, 0), ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("example", SERVED, ids=named)
def test_example_with_a_server_runs(example: Example, folder: Path) -> None:
    """Each server on a port that is free; what is asked with curl is asked of one with its own flags."""
    is_asked = example.text.startswith("curl ")
    command = "ggufbpe serve -m model.gguf" if is_asked else re.sub(r" --port \d+", "", example.text)
    command = command.replace("ggufbpe serve", "exec ggufbpe serve --port 0")
    server = subprocess.Popen(
        ["bash", "-c", command], cwd=folder, env=environment(folder), stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    line = next(line for line in server.stderr if "listening at" in line or "error" in line)
    if is_asked:
        asked = run(example.text.replace("http://localhost:8080", line.split()[-1]), folder)
        assert (asked.returncode, '"error"' in asked.stdout) == (0, False), asked.stdout
    server.terminate()
    server.communicate(timeout=60)
    assert server.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_shows_the_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*([command] if command else []), "--help"]) == 0
    shown = capsys.readouterr().out
    examples = [example.text for example in EXAMPLES if example.home == (command or "ggufbpe")]
    assert examples
    assert [text for text in examples if text not in shown] == []


# ---- what is not run, and why ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("example", [BY_SERVER, CHATS_BY_SERVER], ids=named)
def test_no_server_listens(example: Example, folder: Path) -> None:
    prepare(example, folder)
    ran = run(example.text, folder)
    assert ran.returncode == 2
    assert "127.0.0.1:8080" in ran.stderr
