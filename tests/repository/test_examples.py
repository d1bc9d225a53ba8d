"""Every example in the help texts, README and docs runs, in a folder of files with the names that they use.

Of an example with its output shown, that is compared, too; the Python sessions of a page are one. What cannot be run
here is in `NOT_RUN`, each with a reason that is itself tested.
"""

from __future__ import annotations

import contextlib
import doctest
import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import ROOT, missing
from reference import NotPreparedError, library_is_installed, llama_tokenize_command
from reference import vocabulary as real_vocabulary
from stores import TEMPLATE, hub_cache, lm_studio_file, ollama_layer, ollama_model
from synthetic import gpt2_vocabulary

from ggufbpe import Tokenizer
from ggufbpe.chat.known_templates import CHATML
from ggufbpe.cli import COMMANDS, main
from ggufbpe.convert.exporters.sentencepiece_model import to_sentencepiece
from ggufbpe.convert.exporters.tiktoken_files import to_tiktoken
from ggufbpe.convert.exporters.tokenizer_json import to_tokenizer_json
from ggufbpe.convert.importers.import_hf import import_tokenizer, pack
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS

GO_TEMPLATE = b"""\
{{ range .Messages }}<start_of_turn>{{ if eq .Role "assistant" }}model{{ else }}{{ .Role }}{{ end }}
{{ .Content }}<end_of_turn>
{{ end }}<start_of_turn>model
"""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES.remove(
    ROOT / "docs" / "integrations.md"
)  # tests/integrations/test_integrations_page.py runs it, where its libraries are
HOMES = {"list-pre": "list_pre", "import": "import_"}  # modules of commands that have another name


class Example(NamedTuple):
    """One example: where it stands, what a shell or Python runs, and what it prints, if that is shown."""

    home: str
    kind: str  # "sh", "python" or "pycon"
    text: str
    output: str | None = None


def of_help() -> Iterator[Example]:
    """The lines under "examples:", of the program and of each command."""
    for command in ("", *COMMANDS):
        module = import_module(f"ggufbpe.cli.{HOMES.get(command, command)}".rstrip("."))
        part = module._EXAMPLES.split("\n\n")[0]
        yield from (Example(command or "ggufbpe", "sh", line.strip()) for line in part.splitlines()[1:])


def of_page(page: Path) -> Iterator[Example]:
    """Blocks in sh and in Python, and the commands of blocks in console with what the last of them prints."""
    text = page.read_text(encoding="utf-8")
    if sessions := re.findall(r"^```pycon\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield Example(page.name, "pycon", "\n".join(sessions))
    for kind, block in re.findall(r"^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if kind == "python" or kind == "sh":
            yield Example(page.name, kind, block)
        elif kind == "console":
            session = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
            yield Example(page.name, "sh", "\n".join(line for line, _ in session), session[-1][1])


EXAMPLES = [*of_help(), *(example for page in PAGES for example in of_page(page))]


def of(home: str, beginning: str) -> Example:
    [found] = [e for e in EXAMPLES if e.home == home and e.text.startswith(beginning)]
    return found


RUN_BY_CI = of("README.md", './run tokenize -p "Hello world"      #')
MEASURING = of("performance.md", "python scripts/reference.py")
MEASURING_CORPORA = of("corpora.md", "python benchmarks/corpora.py")
ON_A_CLUSTER = of("encode", "ggufbpe encode -m model.gguf s3://")
ON_CLUSTERS = of("corpora.md", "ggufbpe encode -m model.gguf corpus -o shards --ray")
ON_RAY = of("corpora.md", "import ggufbpe, pathlib, ray")
BY_DATASETS = of("corpora.md", "import datasets")
BY_MANUALS = of("stats.md", "ggufbpe stats -m gpt-2.gguf -m llama-3.gguf")
BY_HUB = of("models", "ggufbpe models --remote")
IN_FISH = of("completion", "ggufbpe completion fish")
BY_SERVER = of("verify", "ggufbpe verify -m model.gguf --against server:http://127.0.0.1:8080 --stdin")
CHATS_BY_SERVER = of("verify", "ggufbpe verify -m model.gguf --against server:http://127.0.0.1:8080 --chat")
OTHER_BUILDS = of("llama_cpp.md", "ggufbpe tokenize -m model.gguf --llama-cpp b11549")
NOT_RUN = {
    OTHER_BUILDS: "no llama-server listens there; test_oracles.py asks libraries in folders",
    RUN_BY_CI: "the first sets up .venv and the second runs the tests, as .ci/run does",
    MEASURING: "it takes an hour of an idle machine",
    MEASURING_CORPORA: "it takes ten minutes of one",
    ON_A_CLUSTER: "neither a cluster nor an S3 store is here",
    ON_CLUSTERS: "the same; test_ray.py runs `--ray local` and `--ray auto`",
    ON_RAY: "test_ray.py runs it, on the cluster that its tests share",
    BY_DATASETS: "test_ray.py runs it, where all that lies in the folder `corpus` is JSON lines",
    BY_MANUALS: "the texts, 42 MB of Debian's manuals, are not here",
    BY_HUB: "no hub is asked in tests; test_names.py has one of its own",
    IN_FISH: "this is no bash",
    BY_SERVER: "no llama-server listens there; test_oracles.py starts one",
    CHATS_BY_SERVER: "the same; test_chat_comparison.py asks it",
}
SERVED = [e for e in EXAMPLES if e.kind == "sh" and e.text.startswith(("ggufbpe serve", "curl "))]
"""Servers, which end when they are told to, and what they are asked."""

# ---- the folder -----------------------------------------------------------------------------------------

TEXT = "Hello world, I'll count 1234567 words: naïve 你好.\n"
SHIM = """#!{python}
# The command itself; where it compares with a library, it does so on fewer texts.
import sys
import ggufbpe.analysis.conversion.parity as check
from ggufbpe.cli import main
check.agreement.__kwdefaults__["random_texts"] = 20
check._characters = lambda: list(range(9, 128))
sys.exit(main())
"""


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
        "manual/de",
        "manual/fr",
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
    (folder / "tools.json").write_text(json.dumps([{"type": "function", "function": function}]))
    (folder / "request.json").write_text(json.dumps({"messages": messages}))
    (folder / "template.jinja").write_text("{% for message in messages %}{{ message.content }}\n{% endfor %}")
    (folder / "man1").mkdir()
    for page in PAGES:  # for the manuals of the machine, which may have none or 100 MB of them
        (folder / "man1" / f"{page.stem}.1.gz").write_bytes(gzip.compress(page.read_bytes()))
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

    make_stores(folder / "home", model.read_bytes())
    shim = folder / "bin" / "ggufbpe"
    shim.write_text(SHIM.format(python=sys.executable))
    shim.chmod(0o755)
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


def make_stores(home: Path, model: bytes) -> None:
    """What other programs have of the models that examples name."""
    for tag in ("4b", "latest"):
        models = home / ".ollama/models"
        layers = [ollama_layer(models, model), ollama_layer(models, GO_TEMPLATE, TEMPLATE)]
        ollama_model(models, f"registry.ollama.ai/library/gemma3/{tag}", layers)
    for repository, file in (
        ("google/gemma-3-4b-it-qat-q4_0-gguf", "gemma-3-4b-it-q4_0.gguf"),
        ("bartowski/Llama-3.2-1B-Instruct-GGUF", "Llama-3.2-1B-Instruct-Q8_0.gguf"),
    ):
        hub_cache(home / ".cache/huggingface/hub", repository, {file: model})
    lm_studio_file(home / ".lmstudio/models", "someone/tiny/tiny-Q8_0.gguf", model)


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
        "README.md", "ggufbpe diagnose -m broken.gguf"
    ): 1,  # the ids are those of the file before it was broken
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
    of("chat.md", "ggufbpe chat -m ollama:gemma3"): 1,  # the prompts differ
    of("mending.md", "ggufbpe diagnose"): 1,  # the model is broken
}


def prepare(example: Example, folder: Path) -> None:
    """What this example needs to be otherwise."""
    for flag, names in WRITTEN.items():
        for name in names * (flag in example.text):
            (folder / name).unlink(missing_ok=True)
    if "broken.gguf" in example.text:
        run("ggufbpe fix model.gguf --set tokenizer.ggml.pre=qwen2 -o broken.gguf", folder)
    if "recorded.json -p" in example.text:
        (folder / "recorded.json").write_text("[15496, 995]")
    if "chats.jsonl" in example.text:
        messages = json.loads((folder / "messages.json").read_text())
        (folder / "chats.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    if "bad.jsonl" in example.text:
        (folder / "bad.jsonl").write_text('{"text": "Hello world"}\nnot JSON\n')
    if example.home in ("decode", "check"):
        assert run("ggufbpe encode -m model.gguf wiki.jsonl.gz -o shards", folder).returncode == 0
    if example.home == "mending.md":
        break_model(folder)
        for earlier in EXAMPLES[: EXAMPLES.index(example)]:  # the page is one session
            if earlier.home == example.home:
                run(earlier.text, folder)
    if example.home == "explain.md":  # whose merges and scores it shows
        try:
            shutil.copy(real_vocabulary("llama-spm"), folder / "llama-2.gguf")
        except NotPreparedError as error:
            missing(str(error))
    if example in OTHER_FILES:
        name, other = OTHER_FILES[example]
        if name.endswith(".json"):
            vocabulary = gpt2_vocabulary()._replace(pre=other, pre_tokenizer=PRE_TOKENIZERS[other])
            (folder / name).write_bytes(to_tokenizer_json(vocabulary).files[name])
        else:
            shutil.copy(ROOT / "fixtures" / "vocabs" / other, folder / name)


def break_model(folder: Path) -> None:
    """Give model.gguf the two defects of docs/mending.md; expected.json has the ids of the good model."""
    (folder / "prompt.txt").write_text(
        "<|im_start|>user\nWhat is 1234567 + 7654321?<|im_end|>\n<|im_start|>assistant\n"
    )
    (folder / "model.gguf").rename(folder / "good.gguf")
    made = run(
        "ggufbpe tokenize -m good.gguf -f prompt.txt --ids > expected.json && "
        "ggufbpe fix good.gguf --set tokenizer.ggml.pre=llama-bpe --set-token-type 50257=NORMAL -o model.gguf",
        folder,
    )
    assert made.returncode == 0, made.stderr


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
    return f"{example.home}: {example.text.splitlines()[0][:60]}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "example", [e for e in EXAMPLES if e.kind == "sh" and e not in NOT_RUN and e not in SERVED], ids=named
)
def test_example_runs(example: Example, folder: Path) -> None:
    if re.search("llama-tokenize|llama-cpp:", example.text) and not (folder / "llama.cpp").exists():
        missing("no llama-tokenize: `python scripts/reference.py prepare --older` builds it")
    if "llama-cpp-python" in example.text and not library_is_installed():
        missing("no llama-cpp-python: `python scripts/reference.py prepare --package` installs it")
    prepare(example, folder)
    text = example.text.replace("./run ", "ggufbpe ").replace("/usr/share/man/man1", "man1")
    ran = run(text, folder)
    assert ran.returncode == CODES.get(example, 0), ran.stderr
    if example.output is not None:
        assert sorted([*ran.stderr.splitlines(), *ran.stdout.splitlines()]) == sorted(
            example.output.splitlines()
        )


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
@pytest.mark.parametrize(
    "example", [e for e in EXAMPLES if e.kind == "python" and e not in NOT_RUN], ids=named
)
def test_example_in_python_runs(example: Example, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of the files that a short example leaves open
        exec(compile(example.text, example.home, "exec"), {"text": TEXT})


@pytest.mark.slow
@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.kind == "pycon"], ids=named)
def test_session_gives_what_is_shown(example: Example, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("builtins._", None, raising=False)  # what Python keeps of the line before
    session = doctest.DocTestParser().get_doctest(example.text, {}, example.home, None, None)
    assert doctest.DocTestRunner(verbose=False).run(session).failed == 0


@pytest.mark.slow
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_shows_the_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*([command] if command else []), "--help"]) == 0
    shown = capsys.readouterr().out
    examples = [example.text for example in EXAMPLES if example.home == (command or "ggufbpe")]
    assert examples
    assert [text for text in examples if text not in shown] == []


# ---- what is not run, and why ---------------------------------------------------------------------------


def test_what_ci_runs_itself_is_there() -> None:
    assert "sh scripts/test.sh" in (ROOT / ".ci" / "run").read_text()
    for name in ("run", "scripts/test.sh"):
        assert "environment" in (ROOT / name).read_text()
        assert subprocess.run(["sh", "-n", str(ROOT / name)]).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("example", [MEASURING, MEASURING_CORPORA], ids=named)
def test_what_measures_takes_the_flags_that_are_shown(example: Example) -> None:
    project = (ROOT / "pyproject.toml").read_text()
    for line in example.text.splitlines():
        program, script, *arguments = shlex.split(line, comments=True)
        if program == "pip":
            assert "\nbench = [" in project
            continue
        command = [script, *(word for word in arguments if word == "prepare"), "--help"]
        shown = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
        assert shown.returncode == 0
        assert [flag for flag in arguments if flag.startswith("--") and flag not in shown.stdout] == []


def test_table_of_manuals_has_the_columns_of_today(folder: Path) -> None:
    assert BY_MANUALS.output is not None
    shown, now = BY_MANUALS.output.splitlines(), run(BY_MANUALS.text, folder).stdout.splitlines()
    for beginning in ("bytes", "vocabulary"):
        columns = [
            next(line.split() for line in lines if line.split()[:1] == [beginning]) for lines in (shown, now)
        ]
        assert columns[0] == columns[1]


@pytest.mark.slow
@pytest.mark.parametrize("example", [BY_SERVER, CHATS_BY_SERVER], ids=named)
def test_no_server_listens(example: Example, folder: Path) -> None:
    prepare(example, folder)
    ran = run(example.text, folder)
    assert ran.returncode == 2
    assert "127.0.0.1:8080" in ran.stderr
