"""Files of a repository of the hub, from a server on the loopback."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import close_session, constants, utils
from remote_server import COMMIT, RemoteServer, Served, remote_server

from ggufbpe._util.errors import RemoteAccessError, RemoteError, RemoteNotFoundError
from ggufbpe.hub.name_grammar import HubName
from ggufbpe.hub.remote import retries
from ggufbpe.hub.remote.huggingface import endpoint, files_on_hub, is_offline, locate_on_hub

NAME = HubName("owner", "repo")
FILES = {"m-Q8_0.gguf": Served(b"12345678"), "m-Q4_K_M.gguf": Served(b"1234"), "README.md": Served(b"#")}


@pytest.fixture(scope="module")
def server() -> Iterator[RemoteServer]:
    """A server for all tests."""
    with remote_server() as far:
        yield far


@pytest.fixture
def hub(server: RemoteServer, monkeypatch: pytest.MonkeyPatch) -> RemoteServer:
    """A hub with one repository."""
    server.clear()
    server.put_hub(NAME.repository, dict(FILES))
    monkeypatch.setattr(constants, "ENDPOINT", server.home)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(
        constants,
        "HUGGINGFACE_CO_URL_TEMPLATE",
        server.home + "/{repo_id}/resolve/{revision}/{filename}",
    )
    return server


def test_settings_are_those_of_the_library(hub: RemoteServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert endpoint() == hub.home
    assert not is_offline()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert is_offline()


def test_files_on_hub(hub: RemoteServer) -> None:
    assert [(file.name, file.size) for file in files_on_hub(NAME)] == [
        ("m-Q8_0.gguf", 8),
        ("m-Q4_K_M.gguf", 4),
    ]


CHOSEN = [
    (HubName("owner", "repo"), "m-Q4_K_M.gguf"),
    (HubName("owner", "repo", "q8_0"), "m-Q8_0.gguf"),
    (HubName("owner", "repo", None, "m-Q8_0.gguf", COMMIT), "m-Q8_0.gguf"),
]


@pytest.mark.parametrize(("name", "file"), CHOSEN)
def test_locate_on_hub(hub: RemoteServer, name: HubName, file: str) -> None:
    location = locate_on_hub(name)
    assert location.size == len(FILES[file].head)
    assert f"/{file}" in location.url
    assert location.version == "one"


def test_a_quantization_that_is_not_there(hub: RemoteServer) -> None:
    with pytest.raises(RemoteNotFoundError) as refusal:
        locate_on_hub(HubName("owner", "repo", "Q2_K"))
    assert (refusal.value.problem, refusal.value.remedy) == (
        "no file is a 'Q2_K'",
        "there are Q8_0, Q4_K_M",
    )


TREE = f"/api/models/{NAME.repository}/tree/main"
ANSWERS: dict[str, tuple[dict[str, Any], type[RemoteError]]] = {
    "there is no such repository, or it is private": (
        {"refusals": [(401, {"X-Error-Code": "RepoNotFound"})]},
        RemoteNotFoundError,
    ),
    "the repository is gated": ({"refusals": [(403, {"X-Error-Code": "GatedRepo"})]}, RemoteAccessError),
    "the hub denies access (403)": ({"refusals": [(403, {})]}, RemoteAccessError),
    "is not understood (TypeError: a list of files is dict)": ({"head": b"{}"}, RemoteError),
    "is not understood (ValueError: the list of files is at another server": (
        {"redirect": "http://localhost:1/elsewhere"},
        RemoteError,
    ),
}


@pytest.mark.parametrize("problem", ANSWERS)
def test_answers_of_the_hub(hub: RemoteServer, problem: str) -> None:
    how, kind = ANSWERS[problem]
    hub.put(TREE, **{"headers": {"Content-Type": "application/json"}, **how})
    with pytest.raises(kind) as refusal:
        files_on_hub(NAME)
    assert type(refusal.value) is kind
    assert problem in refusal.value.problem


SETTINGS = {  # what says nothing of the hub is not its fault, and no bug of ours
    (
        "ALL_PROXY",
        "socks5://127.0.0.1:1",
    ): "the hub cannot be asked (Using SOCKS proxy, but the 'socksio' package",
    ("SSL_CERT_FILE", "/nonexistent"): "the hub cannot be asked ([Errno 2] No such file or directory)",
    ("HF_TOKEN", "é"): "is not understood (UnicodeEncodeError: ",
}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting[0])
def test_settings_that_cannot_be(
    hub: RemoteServer, setting: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv(*setting)
    close_session()
    try:
        with pytest.raises(RemoteError) as refusal:
            files_on_hub(NAME)
    finally:
        monkeypatch.undo()
        close_session()
    assert SETTINGS[setting] in refusal.value.problem
    assert setting[0] in str(refusal.value.remedy)


def test_an_answer_that_the_library_stumbles_over(hub: RemoteServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a mirror that answers every address with a list: the library asks for more than the files."""
    monkeypatch.setattr(utils, "build_hf_headers", lambda **_: [].get)  # type: ignore[attr-defined]
    with pytest.raises(RemoteError, match="AttributeError"):
        files_on_hub(NAME)


def test_a_token_that_cannot_be_read(
    hub: RemoteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that `sudo hf auth login` wrote: it has nothing to do with proxies or certificates."""
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path))
    with pytest.raises((IsADirectoryError, PermissionError)) as refusal:
        files_on_hub(NAME)
    assert refusal.value.filename == str(tmp_path)


def test_our_own_errors_are_not_wrapped(hub: RemoteServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://169.254.169.254")
    with pytest.raises(RemoteError) as refusal:
        files_on_hub(NAME)
    assert refusal.value.problem.startswith("169.254.169.254 is a link-local address")


# ---- a busy hub -----------------------------------------------------------------------------------------

FILE = HubName(NAME.owner, NAME.repo, None, "m-Q8_0.gguf")
REQUESTS: dict[str, tuple[str, Callable[[], Any]]] = {  # a path of the hub, and what requests it
    "the list of files": (TREE, lambda: files_on_hub(NAME)),
    "a file": (f"/{NAME.repository}/resolve/main/{FILE.file}", lambda: locate_on_hub(FILE)),
}


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that are waited, by this project and by the hub's library; none of them pass."""
    seconds: list[float] = []
    monkeypatch.setattr(retries, "sleep", seconds.append)
    monkeypatch.setattr(time, "sleep", lambda wait: seconds.append(wait) if wait else None)
    return seconds


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("request_of", REQUESTS)
def test_a_busy_hub_is_asked_again_when_it_says(
    hub: RemoteServer, waits: list[float], request_of: str, status: int
) -> None:
    path, ask = REQUESTS[request_of]
    hub.files[path].refusals = [(status, {"Retry-After": "2"}), (status, {"RateLimit": '"api";r=0;t=5'})]
    ask()
    assert waits == [2, 5]


@pytest.mark.parametrize("request_of", REQUESTS)
def test_a_hub_that_is_busy_for_an_hour_is_not_waited_for(
    hub: RemoteServer, waits: list[float], request_of: str
) -> None:
    path, ask = REQUESTS[request_of]
    hub.files[path].refusals = [(429, {"Retry-After": "3600"})] * 9
    with pytest.raises(RemoteError, match="too many requests from here") as refusal:
        ask()
    assert refusal.value.remedy == "try again in 3600 seconds"
    assert waits == []


@pytest.mark.parametrize("request_of", REQUESTS)
def test_a_hub_that_stays_busy_is_waited_for_a_minute_at_most(
    hub: RemoteServer, waits: list[float], request_of: str
) -> None:
    path, ask = REQUESTS[request_of]
    hub.files[path].refusals = [(503, {"Retry-After": "25"})] * 9
    with pytest.raises(RemoteError, match="the server has an error"):
        ask()
    assert waits == [25, 25]
