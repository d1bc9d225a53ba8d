"""`ggufbpe serve` turns its flags into the settings of a server, which is not started here."""

from __future__ import annotations

import errno
import re
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from commands import Run, call
from make_mmproj import make_mmproj
from reference import write_metadata
from small_models import small_keys, small_model

from ggufbpe.cli import count, serve
from ggufbpe.cli._arguments import Parser, UsageError
from ggufbpe.cli._llama_flags import INSTEAD
from ggufbpe.server.settings import Settings

__all__ = ["call", "small_model"]  # fixtures


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings of the servers that would have been started; each says that it listens.

    None of them has a thread, so none may end the process, which is pytest's.
    """
    pytest.importorskip("uvicorn")
    from ggufbpe.server import run

    settings: list[Settings] = []

    def start(given: Settings, listening: Callable[[str], object]) -> None:
        settings.append(given)
        listening("http://127.0.0.1:8080")

    monkeypatch.setattr(run, "serve", start)
    monkeypatch.setattr("os._exit", lambda code: pytest.fail(f"the process would have ended with {code}"))
    return settings


def test_defaults(call: Run, started: list[Settings], small_model: Path) -> None:
    found = call(serve, "-m", small_model)
    assert (found.code, found.err) == (0, "ggufbpe: listening at http://127.0.0.1:8080\n")
    [settings] = started
    default = Settings({"small": str(small_model)}, threads=settings.threads)
    assert settings == default
    assert settings.threads >= 1


@pytest.mark.parametrize(
    ("flags", "fields"),
    [
        (["--port", "0", "--workers", "3", "--threads", "2"], {"port": 0, "workers": 3, "threads": 2}),
        (["--max-body", "2", "--max-waiting", "5"], {"most_body": 2 << 20, "most_waiting": 5}),
        (["--timeout", "7", "--template-timeout", "8"], {"timeout": 7, "template_timeout": 8}),
        (["--read-timeout", "9", "--log-requests"], {"read_timeout": 9, "logs_requests": True}),
        (["--allowed-host", "a", "--allowed-host", "b"], {"allowed_hosts": ("a", "b")}),
        (["--allowed-origin", "https://a"], {"allowed_origins": ("https://a",)}),
        (["--allowed-origin", "*"], {"allowed_origins": ("*",)}),
        (["--models-max", "1"], {"most_open": 1}),
        (["--api-key", "a, b", "--api-key", "c"], {"api_keys": ("a", "b", "c")}),
        (["--override-kv", "tokenizer.ggml.pre=str:qwen2"], {"overrides": {"tokenizer.ggml.pre": "qwen2"}}),
    ],
)
def test_flags(
    flags: list[str], fields: dict[str, Any], call: Run, started: list[Settings], small_model: Path
) -> None:
    call(serve, "-m", small_model, *flags)
    assert {name: getattr(started[0], name) for name in fields} == fields


def test_models_by_name(call: Run, started: list[Settings], small_model: Path) -> None:
    call(serve, "-m", f"chat={small_model}", "-m", small_model)
    assert started[0].models == {"chat": str(small_model), "small": str(small_model)}
    with pytest.raises(FileNotFoundError):
        call(serve, "-m", small_model.with_name("nowhere.gguf"))


def test_keys_of_a_file(call: Run, started: list[Settings], small_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text("# ours\none\n\n two \n")
    call(serve, "-m", small_model, "--api-key-file", path, "--api-key", "three")
    assert started[0].api_keys == ("three", "one", "two")
    path.write_text("# none\n")
    with pytest.raises(UsageError, match="--api-key and --api-key-file contain no key"):
        call(serve, "-m", small_model, "--api-key-file", path)


@pytest.mark.parametrize(
    ("flags", "warns"),
    [([], False), (["--host", "0.0.0.0"], True), (["--host", "0.0.0.0", "--api-key", "x"], False)],
)
def test_a_server_that_others_can_reach(
    flags: list[str], warns: bool, call: Run, started: list[Settings], small_model: Path
) -> None:
    found = call(serve, "-m", small_model, *flags)
    assert ("other machines can reach this server, and it asks for no --api-key" in found.err) is warns


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--port", "65536"], "--port must be 0 to 65535, not 65536"),
        (["--port", "-1"], "--port must be 0 to 65535, not -1"),
        (["--workers", "0"], "argument --workers: must be a whole number of 1 or more, not '0'"),
        (
            ["--workers", "99999999999999999999"],
            "^--workers must be at most 64 on this machine: 32 for each processor$",
        ),
        (["--max-body", "-1"], "argument --max-body: must be a whole number of 1 or more, not '-1'"),
        (["--timeout", "x"], "argument --timeout: must be a whole number of 1 or more, not 'x'"),
        (["--allowed-origin", "example.org"], "argument --allowed-origin: must be an origin such as https"),
        (["--allowed-origin", "https://a/b"], "argument --allowed-origin: must be an origin such as https"),
        (["--allowed-host", "http://a.org"], "argument --allowed-host: must be a bare name such as tokens"),
        (["--allowed-host", "a.org/b"], "argument --allowed-host: must be a bare name such as tokens"),
        (
            ["--allowed-host", "a.org:80"],
            r"path or port \(every port is allowed\), not 'a\.org:80'",
        ),
        (["--allowed-host", "*"], "argument --allowed-host: must be a bare name such as tokens"),
        (["--allowed-host", ""], "argument --allowed-host: must be a bare name such as tokens"),
        (["--host", "/tmp/a.sock"], "--host takes an address or a name; Unix sockets are not supported"),
    ],
)
def test_values_that_make_no_sense(
    flags: list[str],
    words: str,
    call: Run,
    started: list[Settings],
    small_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ggufbpe.server.run.processors", lambda: 2)
    with pytest.raises(UsageError, match=words):
        call(serve, "-m", small_model, *flags)
    assert started == []


@pytest.mark.parametrize("number", [errno.EADDRINUSE, errno.EACCES])
def test_a_port_that_cannot_be_had(
    number: int, call: Run, started: list[Settings], small_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(sys.modules["ggufbpe.server.run"], "serve", fail)
    is_taken = number == errno.EADDRINUSE
    with pytest.raises(
        UsageError if is_taken else OSError, match="port 8080 is already in use" if is_taken else "no"
    ):
        call(serve, "-m", small_model)


@pytest.mark.parametrize("is_interrupted", [False, True])
@pytest.mark.parametrize(("prefix", "ends"), [("ggufbpe", True), ("ggufbpe-encode", False)])
def test_only_a_thread_of_the_server_that_is_at_work_ends_the_process(
    prefix: str,
    ends: bool,
    is_interrupted: bool,
    call: Run,
    started: list[Settings],
    small_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Threads of others, such as those of `encode_corpus`, finish what they do."""
    done = threading.Event()

    def start(*_: object) -> None:
        if is_interrupted:
            raise KeyboardInterrupt

    def end(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(sys.modules["ggufbpe.server.run"], "serve", start)
    monkeypatch.setattr("os._exit", end)
    with ThreadPoolExecutor(1, prefix) as executor:
        executor.submit(done.wait)
        try:
            code = call(serve, "-m", small_model).code
        except (SystemExit, KeyboardInterrupt) as error:
            code = repr(error)
        finally:
            done.set()
    expected = {
        (True, False): "SystemExit(0)",
        (True, True): "SystemExit(130)",
        (False, False): 0,
        (False, True): "KeyboardInterrupt()",
    }
    assert code == expected[ends, is_interrupted]


@pytest.mark.parametrize(("length", "warns"), [(16, True), (8, False)])
def test_a_projector_of_another_model_is_warned_of(
    length: int, warns: bool, call: Run, started: list[Settings], tmp_path: Path
) -> None:
    make_mmproj(tmp_path / "mmproj.gguf", "gemma3", {})
    write_metadata(tmp_path / "model.gguf", {**small_keys(), "gpt2.embedding_length": length})
    pair = ("-m", tmp_path / "model.gguf", "--mmproj", tmp_path / "mmproj.gguf")
    assert ("the projector is for another model" in call(serve, *pair).err) is warns
    assert len(started) == 1
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "Hi"}]')
    given = (*pair, "--chat", tmp_path / "chat.json", "--chat-template", "known:chatml")
    assert ("the projector is for another model" in call(count, *given).err) is warns


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["-c", "4096"], "there is no flag '-c' (it concerns the weights, which this server does not read"),
        (["--verbose"], "'--verbose' (the log is on standard error, and --log-requests adds to it"),
        (["--log-file", "x"], "there is no flag '--log-file' (the log is on standard error"),
        (["--n-gpu-layers", "9"], "there is no flag '--n-gpu-layers' (it concerns the weights"),
        (["--alias", "x"], "there is no flag '--alias' (-m NAME=PATH gives a model its name)"),
        (["--alias=x"], "there is no flag '--alias' (-m NAME=PATH gives a model its name)"),
        (["--jinja"], "there is no flag '--jinja' (chats are always rendered as with --jinja: leave it out)"),
        (["--chat-template", "x"], "ggufbpe fix MODEL --chat-template ... -o COPY"),
    ],
)
def test_flags_of_llama_server_say_what_to_do_instead(
    flags: list[str], words: str, call: Run, started: list[Settings], small_model: Path
) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        call(serve, "-m", small_model, *flags)
    assert started == []


def test_flags_that_serve_has_are_not_sent_elsewhere() -> None:
    parser = Parser("ggufbpe serve")
    serve.add_arguments(parser)
    assert INSTEAD.keys() & parser.flags().keys() == {"--threads"}  # which is of both
