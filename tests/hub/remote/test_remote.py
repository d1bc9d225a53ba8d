"""Far models: only as much is asked for as the metadata has, and every misbehaviour of a server is a named error.

All of it with a server on the loopback (remote_server.py), which counts what is asked for. No network.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
from conftest import GPT2, PLAMO, ROOT, UNIGRAM
from remote_server import RemoteServer, Served, remote_server

from ggufbpe import Tokenizer, doctor, verify
from ggufbpe._util.errors import (
    CorruptMetadataError,
    GGUFError,
    NotGGUFError,
    OfflineError,
    RemoteAccessError,
    RemoteError,
    RemoteNotFoundError,
    TruncatedFileError,
)
from ggufbpe._util.extras import NotInstalledError
from ggufbpe.analysis.verify.upstream import repositories, upstream
from ggufbpe.cli import _output, _progress, main
from ggufbpe.convert.exporters.tokenizer_json import to_tokenizer_json
from ggufbpe.gguf.constants import GGUFValueType
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.gguf.source import ByteRange, Source
from ggufbpe.gguf.value_types import Field
from ggufbpe.gguf.writer import packed_file
from ggufbpe.hub.name_grammar import Address, HubName, OllamaName, hub_name
from ggufbpe.hub.remote import hosts, http_file, huggingface, metadata_cache, range_stream, retries
from ggufbpe.hub.remote import opening as remote
from ggufbpe.hub.remote.range_stream import RemoteLocation
from ggufbpe.models.loading import load_vocabulary

LARGE = 40 << 30  # bytes
MODEL = GPT2.read_bytes()
SMALL = (ROOT / "fixtures" / "vocabs" / "add-bos.gguf").read_bytes()  # less than a block
DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def only_server() -> Iterator[RemoteServer]:
    """One server for all tests."""
    with remote_server() as server:
        yield server


@pytest.fixture
def server(
    only_server: RemoteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RemoteServer]:
    """The server without files, an empty cache, and the hub's settings leading to the server."""
    only_server.clear()
    for name in list(os.environ):
        if name.upper().endswith("_PROXY") or name.startswith(("HF_", "HUGGING")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GGUFBPE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", only_server.home)
    template = only_server.home + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(retries, "sleep", lambda _: None)
    yield only_server
    only_server.clear()


def opened(reference: Any, **how: Any) -> Source:
    """As remote.remote_source, of an address too."""
    return remote.remote_source(Address(reference) if isinstance(reference, str) else reference, **how)


def metadata(source: Source) -> dict[str, Any]:
    with GGUFFile(source) as file:
        return dict(zip(file, map(file.__getitem__, file)))


def refusal(reference: Any, **how: Any) -> RemoteError:
    with pytest.raises(RemoteError) as caught:
        opened(reference, **how)
    assert caught.value.remedy or "sent" in caught.value.problem
    assert caught.value.path
    return caught.value


# ---- how much is asked for ------------------------------------------------------------------------------

VOCABULARIES = [GPT2, UNIGRAM, PLAMO, *sorted((ROOT / ".cache" / "vocabs").glob("*.gguf"))]


@pytest.mark.slow
@pytest.mark.parametrize("path", VOCABULARIES, ids=lambda path: path.name)
def test_no_more_is_asked_for_than_the_metadata_and_a_little(server: RemoteServer, path: Path) -> None:
    with GGUFFile(path) as file:
        end, expected = file.metadata_end, dict(zip(file, map(file.__getitem__, file)))
    source = opened(server.put("/model.gguf", path.read_bytes()[:end], size=LARGE))
    assert server.asked <= end + range_stream.BLOCK
    assert server.asked <= max(1.1 * end, range_stream.BLOCK)
    assert len(server.requests) <= 16
    assert source.size == LARGE
    assert repr(metadata(source)) == repr(expected)


def test_a_small_file_takes_one_request(server: RemoteServer) -> None:
    opened(server.put("/model.gguf", SMALL))
    assert [request.end for request in server.requests] == [range_stream.BLOCK]


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1e6, 5e6, 20e6, 50e6])  # bytes a second
def test_a_line_of_a_rate_costs_few_requests(server: RemoteServer, rate: float) -> None:
    opened(server.put("/model.gguf", MODEL, size=LARGE, rate=rate, latency=0.02))
    assert server.asked <= len(MODEL) + range_stream.BLOCK
    assert len(server.requests) <= 6


@pytest.mark.slow
@pytest.mark.parametrize(("connecting", "is_same"), [(0.0, False), (60.0, True)])  # seconds
def test_the_second_range_waits_for_the_connection_of_the_first_if_a_new_one_takes_longer(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch, connecting: float, is_same: bool
) -> None:
    monkeypatch.setattr(http_file.HTTPFile, "connecting", connecting)
    opened(server.put("/model.gguf", MODEL, size=LARGE, rate=2e6, latency=0.02))
    assert (server.requests[0].client == server.requests[1].client) is is_same


GUESSES = {  # strings of a key that are not what a forecast takes them for
    "get shorter": (b"some.array", [b"x" * 500] * 2000 + [b""] * 200_000),
    "get longer, then shorter": (b"some.array", [b"x" * (n // 20) for n in range(9000)] + [b""] * 100_000),
    "tokens without types or merges": (b"tokenizer.ggml.tokens", [b"x" * 30] * 100_000),
    "merges without tokens": (b"tokenizer.ggml.merges", [b"x" * 30] * 100_000),
}


@pytest.mark.parametrize("name", GUESSES)
def test_a_wrong_forecast_costs_a_bounded_number_of_bytes(server: RemoteServer, name: str) -> None:
    data = gguf_of_strings(*GUESSES[name])
    opened(server.put("/model.gguf", data, size=LARGE))
    assert server.asked <= len(data) + max(range_stream.GUESS, len(data)) + range_stream.BLOCK


@pytest.mark.parametrize("path", [GPT2, UNIGRAM, PLAMO], ids=lambda path: path.name)
def test_the_order_of_keys_costs_no_more_than_a_block(server: RemoteServer, path: Path) -> None:
    """Ollama writes keys by their names, and so the merges before the tokens."""
    with GGUFFile(path) as file:
        fields = {key: Field(file.value_type(key), file[key], file.element_type(key)) for key in sorted(file)}
    data = packed_file(fields)
    with GGUFFile("model.gguf", data) as file:
        end = file.metadata_end
    opened(server.put("/model.gguf", data[:end], size=LARGE))
    assert server.asked <= end + range_stream.BLOCK


def gguf_of_strings(key: bytes, strings: list[bytes]) -> bytes:
    parts = [b"GGUF", number(3, 4), number(0), number(1), packed(key), number(9, 4), number(8, 4)]
    return b"".join([*parts, number(len(strings)), *map(packed, strings)])


def number(value: int, size: int = 8) -> bytes:
    return value.to_bytes(size, "little")


def packed(text: bytes) -> bytes:
    return number(len(text)) + text


# ---- the same tokenizer ---------------------------------------------------------------------------------


def test_a_remote_tokenizer_is_the_same_as_of_the_file(server: RemoteServer) -> None:
    near, far = (
        Tokenizer.from_gguf(GPT2),
        Tokenizer.from_gguf(server.put("/m.gguf", MODEL, size=LARGE)),
    )
    assert pickle.dumps(far) == pickle.dumps(near)
    assert far.vocabulary._replace(path="") == near.vocabulary._replace(path="")
    assert pickle.loads(pickle.dumps(far)).encode("Hello world") == near.encode("Hello world")


def test_tensors_are_not_here(server: RemoteServer) -> None:
    source = opened(server.put("/model.gguf", MODEL, size=LARGE))
    with GGUFFile(source) as file, pytest.raises(RemoteError, match="only the metadata of this file is here"):
        list(file.blocks(ByteRange(file.metadata_end, file.size)))


# ---- the cache ------------------------------------------------------------------------------------------


def test_the_second_time_needs_no_network(server: RemoteServer) -> None:
    url = server.put("/model.gguf", MODEL, size=LARGE)
    first = metadata(opened(url))
    server.clear()
    assert metadata(opened(url)) == metadata(opened(url, offline=True)) == first
    assert server.requests == []


def test_offline_needs_what_was_read_before(server: RemoteServer) -> None:
    url = server.put("/model.gguf", MODEL)
    with pytest.raises(OfflineError, match="not read before"):
        opened(url, offline=True)
    assert server.requests == []


@pytest.mark.parametrize("header", [{"ETag": '"one"'}, {"ETag": 'W/"weak"'}])
def test_refresh_asks_whether_it_is_the_same(server: RemoteServer, header: dict[str, str]) -> None:
    url = server.put("/model.gguf", MODEL, size=LARGE, headers=header)
    opened(url)
    server.requests.clear()
    opened(url, refresh=True)
    assert [(request.sent, request.headers["if-none-match"]) for request in server.requests] == [
        (0, header["ETag"])
    ]


def test_refresh_reads_what_has_changed(server: RemoteServer) -> None:
    url = server.put("/model.gguf", MODEL)
    opened(url)
    server.put("/model.gguf", SMALL, headers={"ETag": '"two"'})
    assert len(metadata(opened(url))["tokenizer.ggml.tokens"]) == 50257
    assert len(metadata(opened(url, refresh=True))["tokenizer.ggml.tokens"]) < 1000
    assert len(metadata(opened(url))["tokenizer.ggml.tokens"]) < 1000


def kept_files(kind: str) -> list[Path]:
    return sorted(Path(metadata_cache.cache_folder(), kind).iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["metadata", "references"])
@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"digest": "../../x"}', MODEL[:-1], b"\xff" * 100])
def test_a_damaged_entry_is_read_again(server: RemoteServer, kind: str, damage: bytes) -> None:
    url = server.put("/model.gguf", MODEL)
    expected = metadata(opened(url))
    [path] = kept_files(kind)
    path.write_bytes(damage)
    assert metadata(opened(url)) == expected
    server.requests.clear()
    assert metadata(opened(url)) == expected
    assert server.requests == []


def test_what_was_not_used_lately_is_deleted(server: RemoteServer, monkeypatch: pytest.MonkeyPatch) -> None:
    urls = [server.put(f"/{n}.gguf", gguf_of_strings(b"key", [b"%d" % n] * 1000)) for n in range(4)]
    for url in urls[:3]:
        opened(url)
    for path in kept_files("metadata"):
        os.utime(path, (1e9, 1e9))
    opened(urls[1])  # is used
    monkeypatch.setenv("GGUFBPE_CACHE_BYTES", str(2 * kept_files("metadata")[0].stat().st_size + 100))
    opened(urls[3])
    server.requests.clear()
    for url in (urls[1], urls[3]):
        opened(url, offline=True)
    for url in (urls[0], urls[2]):
        with pytest.raises(OfflineError):
            opened(url, offline=True)
    assert len(kept_files("metadata")) == len(kept_files("references")) == 2


@pytest.mark.parametrize("folder", ["metadata", "references", "."])
@pytest.mark.parametrize(("hours", "is_left"), [(1, True), (25, False)])
def test_what_a_killed_process_began_to_write_is_deleted_after_a_day(
    server: RemoteServer, folder: str, hours: int, is_left: bool
) -> None:
    opened(server.put("/model.gguf", SMALL))
    partial = Path(metadata_cache.cache_folder(), folder, ".0123.json.89abcdef.partial")
    partial.write_bytes(b"{")
    os.utime(partial, (time.time() - 3600 * hours,) * 2)
    opened(server.put("/other.gguf", SMALL))
    assert partial.exists() is is_left


@pytest.mark.parametrize("is_nameless", [False, True])
def test_a_kill_while_metadata_is_kept_leaves_nothing_that_counts(
    server: RemoteServer, is_nameless: bool
) -> None:
    """Killed between the two files, or before the second has its name."""
    url = server.put("/model.gguf", MODEL, size=LARGE)
    program = f"""if True:
        import os
        from ggufbpe._util import files
        from ggufbpe.hub.name_grammar import Address
        from ggufbpe.hub.remote.opening import remote_source
        put = files._put
        files._put = lambda path, place, *how: os._exit(9) if "references" in place else put(path, place, *how)
        files._NAMELESS *= {is_nameless:d}
        remote_source(Address({url!r}))"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == 9
    assert {path.suffix for path in kept_files("references")} <= {".partial"}
    assert is_nameless or kept_files("references")
    with pytest.raises(OfflineError):
        opened(url, offline=True)
    assert metadata(opened(url)) == metadata(opened(url, offline=True)) == metadata(Source(GPT2))


def test_several_processes_may_use_the_cache(server: RemoteServer) -> None:
    url = server.put("/model.gguf", MODEL, size=LARGE)
    program = f"""if True:
        from ggufbpe.hub.name_grammar import Address
        from ggufbpe.hub.remote.opening import remote_source
        print(len([remote_source(Address({url!r}), refresh=True) for _ in range(3)]))"""
    running = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(3)]
    assert [process.communicate()[0].strip() for process in running] == [b"3"] * 3
    assert len(kept_files("metadata")) == len(kept_files("references")) == 1


def test_a_folder_that_cannot_be_written_to_is_no_error(
    server: RemoteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("GGUFBPE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert opened(server.put("/model.gguf", MODEL)).size == len(MODEL)


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    platformdirs = pytest.importorskip("platformdirs")
    monkeypatch.delenv("GGUFBPE_CACHE_DIR", raising=False)
    assert metadata_cache.cache_folder() == platformdirs.user_cache_dir("ggufbpe", appauthor=False)


def test_nothing_secret_is_kept(server: RemoteServer) -> None:
    url = server.put("/model.gguf", MODEL).replace("//", "//user:password@") + "?signature=secret"
    opened(url)
    [record] = kept_files("references")
    assert "password" not in record.read_text()
    assert "secret" not in record.read_text()


# ---- servers that misbehave -----------------------------------------------------------------------------


def answering(header: str, value: str) -> Callable[[dict[str, str], int], None]:
    """A change of a header of every answer."""
    return lambda headers, number: headers.update({header: value})


def later(header: str, value: str) -> Callable[[dict[str, str], int], None]:
    """A change of a header from the second answer on."""
    return lambda headers, number: headers.update({header: value} if number else {})


REFUSED = {  # how the server behaves, and what is said
    "compressed": ({"changes": answering("Content-Encoding", "gzip")}, "compressed"),
    "another range": (
        {"changes": answering("Content-Range", f"bytes 5-131076/{LARGE}")},
        "a range other than",
    ),
    "no range": ({"changes": answering("Content-Range", "")}, "does not say which range"),
    "range without a size": (
        {"changes": answering("Content-Range", "bytes 0-131071/*")},
        "does not say which",
    ),
    "more than was requested": (
        {"changes": answering("Content-Range", f"bytes 0-99999999/{LARGE}")},
        "a range other than",
    ),
    "a size of 5000 digits": (
        {"changes": answering("Content-Range", f"bytes 0-131071/{'9' * 5000}")},
        "does not say which",
    ),
    "wrong length": (
        {"changes": answering("Content-Length", "17")},
        f"17 bytes come where {range_stream.BLOCK} should",
    ),
    "another size later": (
        {"changes": lambda h, n: h.update({"Content-Range": h["Content-Range"] + "0" * n})},
        "was replaced while it was read",
    ),
    "another tag later": ({"changes": later("ETag", '"two"')}, "was replaced while it was read"),
    "cut off always": ({"cuts": [1000] * 99}, "the line was cut 5 times"),
    "busy always": ({"refusals": [(503, {})] * 99}, "the server has an error"),
    "too many questions": ({"refusals": [(429, {"Retry-After": "3600"})]}, "try again in 3600 seconds"),
    "login": ({"refusals": [(401, {})]}, "requires a login"),
    "forbidden": ({"refusals": [(403, {})]}, "denies access"),
    "gone": ({"refusals": [(410, {})]}, "the file is gone"),
    "teapot": ({"refusals": [(418, {})]}, "is not understood"),
    "not modified": ({"refusals": [(304, {})]}, "is not understood"),
    "redirect to nowhere": ({"refusals": [(302, {})]}, "leads nowhere"),
    "redirect to a file": ({"redirect": "file:///etc/passwd"}, "leads nowhere"),
    "redirect to no port": ({"redirect": "http://host:99999/"}, "leads nowhere"),
    "redirect to no host": ({"redirect": "http://[::1/"}, "leads nowhere"),
    "redirect to itself": ({"redirect": "/model.gguf"}, "more than 10 redirects"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_server_that_misbehaves(server: RemoteServer, name: str) -> None:
    how, said = REFUSED[name]
    how = {key: list(value) if isinstance(value, list) else value for key, value in how.items()}
    error = refusal(server.put("/model.gguf", MODEL, size=LARGE, **how))
    assert said in str(error)
    assert sum(request.sent for request in server.requests) < 2 * len(MODEL)
    assert not Path(metadata_cache.cache_folder()).exists()


def test_a_file_that_is_not_there(server: RemoteServer) -> None:
    with pytest.raises(RemoteNotFoundError, match="there is no such file"):
        opened(server.home + "/nothing.gguf")


def test_an_empty_file(server: RemoteServer) -> None:
    with pytest.raises(GGUFError, match="empty"):
        opened(server.put("/model.gguf", b""))


def test_a_server_without_ranges_is_read_as_far_as_needed(server: RemoteServer) -> None:
    url = server.put("/model.gguf", MODEL, size=LARGE, has_ranges=False)
    expected = metadata(Source(GPT2))
    assert metadata(opened(url)) == expected
    assert len(server.requests) == 1


def test_a_server_without_ranges_that_is_cut_off(server: RemoteServer) -> None:
    url = server.put("/model.gguf", MODEL, size=LARGE, has_ranges=False, cuts=[300_000])
    assert metadata(opened(url)) == metadata(Source(GPT2))


def test_a_server_without_ranges_and_without_a_length(server: RemoteServer) -> None:
    without: dict[str, Any] = {"has_ranges": False, "changes": answering("Content-Length", "")}
    url = server.put("/model.gguf", MODEL, **without)
    assert "does not say how long" in str(refusal(url))
    url = server.put(
        "/page", b"<!doctype html>", headers={"Content-Type": "text/html; charset=utf-8"}, **without
    )
    assert "the server sends a web page, not a GGUF" in str(refusal(url))


def test_a_cut_line_goes_on_where_it_was_cut(server: RemoteServer) -> None:
    url = server.put("/model.gguf", MODEL, size=LARGE, cuts=[1000, 10**9, 50_000, 0])
    assert metadata(opened(url)) == metadata(Source(GPT2))
    assert server.requests[1].end - server.requests[1].asked in range(1000, 1001)
    assert sum(request.sent for request in server.requests) <= 1.1 * len(MODEL)


@pytest.mark.parametrize("version", [{"ETag": '"\xe9"'}, {"Last-Modified": "\xe9"}])
def test_a_version_that_cannot_be_sent_back(server: RemoteServer, version: dict[str, str]) -> None:
    url = server.put("/model.gguf", MODEL, size=LARGE, headers=version)
    assert opened(url).size == opened(url, refresh=True).size == LARGE


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again_as_late_as_it_says(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(retries, "sleep", waits.append)
    url = server.put("/model.gguf", SMALL, refusals=[(status, {"Retry-After": "7"}), (status, {})])
    assert opened(url).size == len(SMALL)
    assert waits[0] == 7
    assert len(waits) == 2


@contextmanager
def silent_server() -> Iterator[tuple[str, list[socket.socket]]]:
    """The address of a server that takes every connection and sends nothing, and the connections that it has."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def take() -> None:
            with suppress(OSError):  # the socket is closed at the end
                while True:
                    taken.append(listening.accept()[0])

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", taken
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(60)
    for each in taken:
        each.close()


def test_a_server_that_sends_nothing_is_asked_twice(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the limit that there is, that is 20 seconds."""
    assert http_file.TIMEOUT * http_file.SILENT_TRIES <= 20
    monkeypatch.setattr(http_file, "TIMEOUT", 0.2)
    with silent_server() as (home, taken):
        said = str(refusal(f"{home}/model.gguf"))
        assert "127.0.0.1 was asked 2 times and sent no answer within 0.2 seconds" in said
        assert len(taken) == 2


@pytest.mark.slow
def test_a_hub_that_sends_nothing(server: RemoteServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_file, "TIMEOUT", 0.2)
    with silent_server() as (home, taken):
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", home)
        assert "the hub cannot be reached (timed out)" in str(refusal(HUB))
        heads = [
            each.recv(1 << 16).partition(b"?")[0] for each in taken
        ]  # the library also asks for its list of agents
        assert heads.count(f"GET /api/models/{REPOSITORY}/tree/main".encode()) == 2


@contextmanager
def dripping_server(first: bytes, again: bytes, certificate: str = "") -> Iterator[tuple[int, list[int]]]:
    """The port of a server whose answers are `first` and then `again` without end; of each, what it sent."""
    sent: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip(connection: socket.socket, number: int) -> None:
            with suppress(OSError):  # the client has gone
                if certificate:
                    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                    context.load_cert_chain(certificate)
                    connection = context.wrap_socket(connection, server_side=True)
                connection.sendall(first + 2 * again)
                sent[number] = 2
                while True:
                    connection.sendall(again)
                    sent[number] += 1
                    time.sleep(0.02)
            connection.close()

        def take() -> None:
            with suppress(OSError):  # the socket is closed at the end
                while True:
                    connection = listening.accept()[0]
                    sent.append(0)
                    threading.Thread(target=drip, args=(connection, len(sent) - 1), daemon=True).start()

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1], sent
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(60)


DRIPS = {
    "a header line at a time": (b"HTTP/1.1 206 Partial Content\r\n", b"X: a\r\n"),
    "100 Continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("what", DRIPS)
def test_a_server_that_never_finishes_the_header_of_its_answer(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch, what: str, scheme: str
) -> None:
    """Each line comes in time. The header as a whole does not."""
    certificate = str(ROOT / "fixtures" / "models.example.pem") if scheme == "https" else ""
    monkeypatch.setenv("SSL_CERT_FILE", certificate or os.devnull)
    monkeypatch.setattr(socket, "getaddrinfo", NameServer(models=[["127.0.0.1"]]))
    monkeypatch.setattr(http_file, "HEADER_TIMEOUT", 0.3)
    with dripping_server(*DRIPS[what], certificate) as (port, sent):
        said = str(refusal(f"{scheme}://models.example:{port}/model.gguf"))
        assert "models.example did not finish the header of its answer within 0.3 seconds" in said
        assert len(sent) == 1  # such a server is not asked again
        assert sent[0] > 1


def test_a_command_says_what_it_waits_for(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where standard error is no terminal, in a line; on a terminal it is drawn (below)."""
    monkeypatch.setattr(http_file, "TIMEOUT", 0.5)
    monkeypatch.setattr(_progress, "SILENCE", 0.01)
    with silent_server() as (home, _):
        assert main(["info", f"{home}/model.gguf"]) == 2
    waiting, error = capsys.readouterr().err.splitlines()
    assert waiting == f"ggufbpe: waiting for an answer: {home}/model.gguf"
    assert error.startswith(f"ggufbpe: error: {home}/model.gguf: 127.0.0.1 was asked 2 times and sent no")
    monkeypatch.setattr(_progress, "SILENCE", 60.0)
    main(["info", server.put("/model.gguf", MODEL, size=LARGE)])
    assert capsys.readouterr().err == ""


def test_nobody_answers() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        with pytest.raises(RemoteError, match=r"127\.0\.0\.1 cannot be reached"):
            opened(f"http://127.0.0.1:{taken.getsockname()[1]}/model.gguf", refresh=True)


# ---- what is told to whom -------------------------------------------------------------------------------


def test_a_password_goes_to_its_own_server_alone(server: RemoteServer) -> None:
    server.put("/elsewhere.gguf", SMALL)
    url = server.put("/model.gguf", redirect=server.cdn + "/elsewhere.gguf")
    opened(url.replace("//", "//user:password@"))
    assert [(r.host.split(":")[0], "authorization" in r.headers) for r in server.requests] == [
        ("127.0.0.1", True),
        ("localhost", False),
    ]


LOGIN = "Basic dXNlcjpwQHNz"  # user:p@ss
REDIRECTS = {  # where the server redirects to, and the password that it gets there
    "to a path": ("/other.gguf", LOGIN),
    "to an address of its own": ("{home}/other.gguf", LOGIN),
    "to another server": ("{cdn}/other.gguf", None),
    "to another server with a password of its own choice": (
        "http://a:b@localhost:{port}/other.gguf",
        "Basic YTpi",
    ),
}


@pytest.mark.parametrize("case", REDIRECTS)
def test_where_a_password_goes(server: RemoteServer, case: str) -> None:
    target, told = REDIRECTS[case]
    server.put("/other.gguf", MODEL)
    target = target.format(home=server.home, cdn=server.cdn, port=server.port)
    url = server.put("/model.gguf", redirect=target)
    opened(url.replace("//", "//user:p%40ss@"))
    first, *others = (request.headers.get("authorization") for request in server.requests)
    assert (first, set(others)) == (LOGIN, {told})


def test_a_redirect_from_a_public_server_to_this_machine_is_refused(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is a proxy here, and so the only one that is asked."""
    monkeypatch.setenv("HTTP_PROXY", server.home)
    for number, target in enumerate(("127.0.0.1", "localhost", "10.0.0.1", "[::1]", "192.168.0.1", "0x7f.1")):
        server.put(f"/{number}.gguf", redirect=f"http://{target}:{server.port}/private")
        error = refusal(f"http://8.8.8.8/{number}.gguf")
        assert "this machine or its own network" in str(error)
    assert [request.path for request in server.requests] == [f"/{number}.gguf" for number in range(6)]


LINK_LOCAL = {
    "IPv4": "169.254.169.254",
    "another": "169.254.1.1",
    "as one number": "2852039166",
    "in hexadecimal": "0xa9fea9fe",
    "IPv6": "[fe80::1]",
    "mapped": "[::ffff:169.254.169.254]",
    "mapped, in hexadecimal": "[::ffff:a9fe:a9fe]",
    "compatible": "[::169.254.169.254]",
    "translated": "[64:ff9b::a9fe:a9fe]",
    "6to4": "[2002:a9fe:a9fe::1]",
    "Amazon's": "[fd00:ec2::254]",
    "Google's": "metadata.google.internal",
    "Alibaba's": "100.100.100.200",
    "Azure's": "168.63.129.16",
    "a name": "inner.example",
}


@pytest.mark.parametrize("name", LINK_LOCAL)
@pytest.mark.parametrize("way", ["given", "redirected"])
def test_link_local_addresses_are_never_asked(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    """Neither if they are given, nor if a server of this machine leads there. The proxy shows what is asked."""
    monkeypatch.setattr(socket, "getaddrinfo", NameServer(inner=[["8.8.8.8", "169.254.169.254"]]))
    address = f"http://{LINK_LOCAL[name]}/latest/meta-data"
    if way == "given":
        monkeypatch.setenv("HTTP_PROXY", server.home)
        assert "is a link-local address or a cloud's metadata service" in str(refusal(address))
        assert server.requests == []
    else:
        error = refusal(server.put("/model.gguf", redirect=address))
        assert "is a link-local address or a cloud's metadata service, which is never asked" in error.problem
        assert "that address itself" not in str(error.remedy)
        assert [request.path for request in server.requests] == ["/model.gguf"]


def test_a_hub_at_a_link_local_address_is_never_asked(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://169.254.169.254")
    monkeypatch.setenv("HTTP_PROXY", server.home)
    assert "is a link-local address" in str(refusal(HUB))
    assert server.requests == []


LEADS: dict[str, tuple[str, str, bool]] = {  # a host, where it redirects to, and whether that is followed
    "a private host to itself": ("10.0.0.1", "10.0.0.1", True),
    "a private host to another": ("10.0.0.1", "10.0.0.2", False),
    "a private host to this machine": ("10.0.0.1", "127.0.0.1", False),
    "this machine to a private host": ("127.0.0.1", "192.168.0.1", False),
    "this machine to itself": ("127.0.0.1", "localhost", True),
    "this machine by name": ("localhost", "127.0.0.1", True),
    "this machine to the world": ("127.0.0.1", "8.8.8.8", True),
    "a private host to the world": ("10.0.0.1", "8.8.8.8", True),
    "the world to the world": ("8.8.4.4", "8.8.8.8", True),
    "the world to a private host": ("8.8.8.8", "10.0.0.1", False),
    "a name of the same address": ("10.0.0.1", "one.example", True),
    "a name of one more address": ("10.0.0.1", "two.example", False),
    "a name that is also public to itself": ("both.example", "both.example", False),
}


@pytest.mark.parametrize("name", LEADS)
def test_where_a_redirect_may_lead(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"one": [["10.0.0.1"]], "two": [["10.0.0.1", "10.0.0.2"]], "both": [["8.8.8.8", "10.0.0.1"]]}
    monkeypatch.setattr(socket, "getaddrinfo", NameServer(**answers))
    host, other, expected = LEADS[name]
    assert hosts.Lookups().may_lead_to(host, other) is expected


def test_a_redirect_that_comes_back_from_the_world_is_refused(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.home)
    server.put("/first.gguf", redirect="http://8.8.8.8/second.gguf")
    server.put("/second.gguf", redirect="http://10.0.0.1/third.gguf")
    assert "a redirect leads to 10.0.0.1" in str(refusal("http://10.0.0.1/first.gguf"))
    assert [request.host for request in server.requests] == ["10.0.0.1", "8.8.8.8"]


def test_where_the_hub_leads_is_held_to_the_same(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub's library follows no redirect to another server, and says where it leads."""
    monkeypatch.setenv("HTTP_PROXY", server.home)
    leads = RemoteLocation("hf:o/r/x.gguf", "http://10.0.0.1/private", "http://8.8.8.8/x.gguf", {}, '"x"', 9)
    monkeypatch.setattr("ggufbpe.hub.remote.huggingface.locate_on_hub", lambda name: leads)
    error = refusal(HubName("o", "r", None, "x.gguf"))
    assert "10.0.0.1, which is this machine or its own network" in str(error)
    assert server.requests == []


class NameServer:
    """Stands in for the name server: answers each look-up of a name with the next of its answers, and notes it."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self.asked: list[str] = []
        self._answers = answers
        self._real = socket.getaddrinfo

    def __call__(self, host: str, port: Any, *how: Any, **keywords: Any) -> list[Any]:
        addresses = [host]
        if host.partition(".")[0] in self._answers:
            answers = self._answers[host.partition(".")[0]]
            addresses = answers[min(self.asked.count(host), len(answers) - 1)]
            self.asked.append(host)
        return [each for address in addresses for each in self._real(address, port, *how, **keywords)]


def test_a_name_that_is_local_among_others_is_not_asked_for_on_purpose(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server may say that a public server is this machine, too, so that redirects here look harmless."""
    names = NameServer(public=[["8.8.8.8", "127.0.0.1"]], inner=[["8.8.8.8", "10.0.0.1"]])
    monkeypatch.setattr(socket, "getaddrinfo", names)
    monkeypatch.setenv("HTTP_PROXY", server.home)
    url = server.put("/model.gguf", redirect="http://inner/private").replace(server.home, "http://public")
    assert "a redirect leads to inner" in str(refusal(url))
    assert [request.host for request in server.requests] == ["public"]


def test_the_address_that_was_checked_is_the_one_that_is_asked(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server may answer the check with a public address, and the connection with one of this network.

    127.0.0.1, where the server is, stands in for the public one.
    """
    names = NameServer(first=[["127.0.0.1"], ["127.0.0.9"]], other=[["127.0.0.1"], ["127.0.0.9"]])
    monkeypatch.setattr(socket, "getaddrinfo", names)
    monkeypatch.setattr(hosts, "_is_public", lambda address: address == "127.0.0.1")
    connect, connected = socket.create_connection, []

    def create_connection(address: tuple[str, int], *how: Any, **keywords: Any) -> socket.socket:
        connected.append(address[0])
        return connect(address, *how, **keywords)

    monkeypatch.setattr(socket, "create_connection", create_connection)
    server.put("/other.gguf", MODEL)
    url = server.put("/model.gguf", redirect=f"http://other:{server.port}/other.gguf")
    assert opened(url.replace("127.0.0.1", "first")).size == len(MODEL)
    assert set(connected) == {"127.0.0.1"}
    assert names.asked == ["first", "other"]
    assert {request.host for request in server.requests} == {f"{each}:{server.port}" for each in names.asked}


@pytest.mark.parametrize("host", ["models.example", "others.example"])
def test_a_certificate_is_held_to_the_name_though_the_address_is_asked(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    certificate = str(ROOT / "fixtures" / "models.example.pem")  # its own authority
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    monkeypatch.setattr(socket, "getaddrinfo", NameServer(models=[["127.0.0.1"]], others=[["127.0.0.1"]]))
    with remote_server(certificate) as secure:
        secure.put("/model.gguf", SMALL)
        url = f"https://{host}:{secure.port}/model.gguf"
        if host == "models.example":
            assert opened(url).size == len(SMALL)
        else:
            assert "certificate is not valid for 'others.example'" in str(refusal(url))
        assert [request.host for request in secure.requests] == [f"{host}:{secure.port}"] * (
            host == "models.example"
        )
        assert set(secure.names) == {host}


@pytest.mark.parametrize(
    ("no_proxy", "asked"), [("", "proxy"), ("127.0.0.1", "server"), ("*", "server"), ("other.org", "proxy")]
)
def test_no_proxy_is_heeded(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch, no_proxy: str, asked: str
) -> None:
    with remote_server() as proxy:
        for each in (proxy, server):
            each.put("/model.gguf", SMALL)
        monkeypatch.setenv("ALL_PROXY", proxy.home)
        monkeypatch.setenv("NO_PROXY", no_proxy)
        opened(server.home + "/model.gguf")
        assert (len(proxy.requests), len(server.requests)) == ((1, 0) if asked == "proxy" else (0, 1))


def test_a_proxy_that_cannot_be_used(server: RemoteServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "ftp://127.0.0.1")
    assert "cannot be reached" in str(refusal(server.put("/model.gguf", SMALL)))


def test_a_proxy_is_used_and_redirects_between_public_servers_are_followed(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.home)
    server.put("/other.gguf", SMALL)
    server.put("/model.gguf", redirect="http://8.8.4.4/other.gguf")
    assert opened("http://8.8.8.8/model.gguf").size == len(SMALL)
    assert [request.host for request in server.requests] == ["8.8.8.8", "8.8.4.4"]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *(("127.0.0.1", True), ("localhost", True), ("x.localhost", True), ("::1", True), ("fe80::1", True)),
        *(("10.1.2.3", True), ("192.168.0.1", True), ("169.254.169.254", True), ("::ffff:127.0.0.1", True)),
        *(("0.0.0.0", True), ("100.64.0.1", True), ("8.8.8.8", False), ("2606:4700::1111", False)),
        *(("2130706433", True), ("127.1", True), ("::127.0.0.1", True), ("fec0::1", True)),
        *(("64:ff9b::a00:1", True), ("64:ff9b::808:808", False), ("2002:a00:1::", True)),
    ],
)
def test_which_hosts_are_local(host: str, expected: bool) -> None:
    assert hosts.Lookups().is_local(host) is expected


# ---- headers that lie -----------------------------------------------------------------------------------

HEAD = [b"GGUF", number(3, 4), number(0)]
LIES = {
    "key of 2**60 bytes": ([number(1), number(2**60)], CorruptMetadataError),
    "2**40 keys": ([number(2**40)], CorruptMetadataError),
    "string of 2**60 bytes": ([number(1), packed(b"k"), number(8, 4), number(2**60)], CorruptMetadataError),
    "string of 2**32 bytes": ([number(1), packed(b"k"), number(8, 4), number(2**32)], CorruptMetadataError),
    "2**60 strings": (
        [number(1), packed(b"k"), number(9, 4), number(8, 4), number(2**60)],
        CorruptMetadataError,
    ),
    "2**30 strings": (
        [number(1), packed(b"k"), number(9, 4), number(8, 4), number(2**30)],
        CorruptMetadataError,
    ),
    "2**30 numbers": (
        [number(1), packed(b"k"), number(9, 4), number(0, 4), number(2**30)],
        CorruptMetadataError,
    ),
    "a web page": ([], NotGGUFError),
}


@pytest.mark.parametrize("name", LIES)
def test_a_header_that_lies_costs_a_block(server: RemoteServer, name: str) -> None:
    parts, kind = LIES[name]
    url = server.put("/model.gguf", b"".join([*HEAD, *parts]) if parts else b"<!doctype html>", size=LARGE)
    with pytest.raises(kind):
        opened(url)
    assert server.asked == range_stream.BLOCK


def test_metadata_that_is_cut_off(server: RemoteServer) -> None:
    with pytest.raises(TruncatedFileError):
        opened(server.put("/model.gguf", MODEL[:100_000]))


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytes_are_an_error_or_metadata(server: RemoteServer, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(SMALL)
    for _ in range(3):
        data[chance.randrange(600)] = chance.randrange(256)
    url = server.put("/model.gguf", bytes(data), size=LARGE)
    near = said_of(lambda: metadata(Source("near", bytes(data) + bytes(1 << 20), LARGE)))
    far = said_of(lambda: metadata(opened(url)))
    assert far == near or near is TruncatedFileError  # what is near has fewer zeros
    assert server.asked <= range_stream.LONGEST + range_stream.BLOCK


def said_of(read: Callable[[], dict[str, Any]]) -> Any:
    try:
        return repr(read())
    except GGUFError as error:
        return type(error)


# ---- the hub --------------------------------------------------------------------------------------------

REPOSITORY = "someone/Some-Model-GGUF"
HUB = HubName(*REPOSITORY.split("/"))


def put_repository(server: RemoteServer, **how: Any) -> None:
    files = [
        ("Some-Model-Q2_K.gguf", MODEL),
        ("Some-Model-Q4_K_M.gguf", MODEL),
        ("mmproj-Q4_K_M.gguf", SMALL),
    ]
    files += [("Q8_0/Some-Model-Q8_0-00001-of-00002.gguf", SMALL), ("README.md", b"#")]
    served = {name: Served(data, size=LARGE if data is MODEL else 0, **how) for name, data in files}
    server.put_hub(REPOSITORY, served)


def test_the_files_of_a_repository(server: RemoteServer) -> None:
    put_repository(server)
    assert [file.name for file in huggingface.files_on_hub(HUB)] == [
        "Some-Model-Q2_K.gguf",
        "Some-Model-Q4_K_M.gguf",
        "mmproj-Q4_K_M.gguf",
        "Q8_0/Some-Model-Q8_0-00001-of-00002.gguf",
    ]
    assert huggingface.files_on_hub(HUB)[1].size == LARGE
    assert (
        huggingface.files_on_hub(HUB)[1].url
        == f"{server.home}/{REPOSITORY}/resolve/main/Some-Model-Q4_K_M.gguf"
    )


@pytest.mark.parametrize(
    ("quant", "file"),
    [
        (None, "Some-Model-Q4_K_M.gguf"),
        ("q2_k", "Some-Model-Q2_K.gguf"),
        ("Q8_0", "Q8_0/Some-Model-Q8_0-00001-of-00002.gguf"),
    ],
)
def test_a_repository_is_opened_at_the_file_that_is_meant(
    server: RemoteServer, quant: str | None, file: str
) -> None:
    put_repository(server)
    assert opened(HubName(HUB.owner, HUB.repo, quant)).path == f"hf:{REPOSITORY}/{file}"


def test_the_file_that_was_meant_opens_by_its_own_name_without_network(server: RemoteServer) -> None:
    put_repository(server)
    name = opened(HUB).path
    server.clear()
    assert opened(hub_name(name)).path == name
    assert server.requests == []


def test_doctor_takes_a_remote_model(server: RemoteServer) -> None:
    put_repository(server)
    far, near = doctor(f"hf:{REPOSITORY}:Q8_0"), doctor(ROOT / "fixtures" / "vocabs" / "add-bos.gguf")
    assert [finding.id for finding in far.findings] == [finding.id for finding in near.findings]


def test_the_token_goes_to_the_hub_alone(server: RemoteServer) -> None:
    put_repository(server)
    opened(HUB)
    told = {(request.host.split(":")[0], request.headers.get("authorization")) for request in server.requests}
    asked = {each for each in told if each[0] == "localhost"}
    assert asked == {("localhost", None)}
    assert ("127.0.0.1", "Bearer hf_secret") in told


def test_a_file_that_the_hub_gives_itself_is_asked_for_with_the_token(server: RemoteServer) -> None:
    server.put(
        f"/{REPOSITORY}/resolve/main/x.gguf", SMALL, headers={"ETag": '"x"', "X-Repo-Commit": "0" * 40}
    )
    opened(HubName(HUB.owner, HUB.repo, None, "x.gguf"))
    asked = [request for request in server.requests if request.path.endswith("x.gguf")]
    assert [(request.method, request.headers["authorization"]) for request in asked] == [
        ("HEAD", "Bearer hf_secret"),
        ("GET", "Bearer hf_secret"),
    ]


def test_refresh_of_a_repository_asks_for_no_range_where_it_is_the_same(server: RemoteServer) -> None:
    put_repository(server)
    opened(HUB)
    server.requests.clear()
    opened(HUB, refresh=True)
    assert server.requests
    assert server.asked == 0


def test_the_second_time_the_hub_is_not_asked_whatever_its_library_says(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_repository(server)
    opened(HUB)
    server.clear()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert opened(HUB).size == LARGE
    with pytest.raises(OfflineError, match="HF_HUB_OFFLINE"):
        opened(HubName(HUB.owner, HUB.repo, "Q2_K"))
    assert server.requests == []


HUB_REFUSALS = [
    (401, {"X-Error-Code": "RepoNotFound"}, RemoteNotFoundError, "or it is private"),
    (403, {"X-Error-Code": "GatedRepo"}, RemoteAccessError, "accept its terms"),
    (404, {"X-Error-Code": "RepoNotFound"}, RemoteNotFoundError, "no such repository"),
    (404, {"X-Error-Code": "RevisionNotFound"}, RemoteNotFoundError, "no revision 'main'"),
    (404, {"X-Error-Code": "EntryNotFound"}, RemoteNotFoundError, "no such file"),
    (401, {"X-Error-Message": "Invalid credentials in Authorization header"}, RemoteAccessError, "HF_TOKEN"),
    (403, {}, RemoteAccessError, "HF_TOKEN"),
    (429, {"Retry-After": "300"}, RemoteError, "try again in 300 seconds"),
    (500, {}, RemoteError, "has an error"),
]


@pytest.mark.parametrize(("status", "headers", "kind", "said"), HUB_REFUSALS)
def test_what_the_hub_refuses(
    server: RemoteServer, status: int, headers: dict[str, str], kind: type[RemoteError], said: str
) -> None:
    server.put(f"/{REPOSITORY}/resolve/main/x.gguf", SMALL, refusals=[(status, headers)] * 4)
    error = refusal(HubName(HUB.owner, HUB.repo, None, "x.gguf"))
    assert type(error) is kind
    assert said in str(error)


TREES = {
    "deep": b"[" * 100_000,
    "a size that is infinite": b'[{"type": "file", "path": "x.gguf", "size": 1e999}]',
    "a size that is no number": b'[{"type": "file", "path": "x.gguf", "size": NaN}]',
    "a web page": b"<html>",
    "an object": b'{"a": 1}',
    "no size": b'[{"type": "file", "path": "x.gguf"}]',
    "a file elsewhere": b'[{"type": "file", "path": "../../x.gguf", "size": 3, "oid": "0"}]',
    "an unseen character": b'[{"type": "file", "path": "a\\nb.gguf", "size": 3, "oid": "0"}]',
}


@pytest.mark.parametrize("name", TREES)
def test_a_list_of_files_that_is_none(server: RemoteServer, name: str) -> None:
    server.put(f"/api/models/{REPOSITORY}/tree/main", TREES[name])
    said = "no .gguf model" if name in ("a file elsewhere", "an unseen character") else "is not understood"
    assert said in str(refusal(HUB))


def test_a_repository_that_was_renamed_and_one_at_another_server(server: RemoteServer) -> None:
    put_repository(server)
    server.put("/api/models/old/Name/tree/main", redirect=f"/api/models/{REPOSITORY}/tree/main")
    assert len(huggingface.files_on_hub(HubName("old", "Name"))) == 4
    for target in (server.cdn, "http://169.254.169.254"):
        server.put("/api/models/o/r/tree/main", redirect=f"{target}/api/models/{REPOSITORY}/tree/main")
        assert "the list of files is at another server" in str(refusal(HubName("o", "r")))
    server.put("/api/models/o/r/tree/main", redirect="/api/models/o/r/tree/main")
    assert "the list of files leads in a circle" in str(refusal(HubName("o", "r")))


def test_a_list_of_files_on_several_pages(server: RemoteServer) -> None:
    put_repository(server)
    tree = json.loads(server.files[f"/api/models/{REPOSITORY}/tree/main"].head)
    link = {"Link": f'<{server.home}/api/models/{REPOSITORY}/tree/more>; rel="next"'}
    server.put(f"/api/models/{REPOSITORY}/tree/main", json.dumps(tree[:2]).encode(), headers=link)
    server.put(f"/api/models/{REPOSITORY}/tree/more", json.dumps(tree[2:]).encode())
    assert [file.name for file in huggingface.files_on_hub(HUB)] == [
        each["path"] for each in tree if each["path"] != "README.md"
    ]


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        (1, "leads in a circle"),
        (2, "leads in a circle"),
        (99, "has more than 5 pages"),
    ],
)
def test_a_list_of_files_without_end(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch, pages: int, said: str
) -> None:
    """Pages without files, the last of which is followed by the first."""
    monkeypatch.setattr(huggingface, "MOST_PAGES", 5)
    query = "recursive=true&expand=false"  # of the first request
    paths = [f"/api/models/{REPOSITORY}/tree/{page}" for page in ("main", *range(1, pages))]
    for path, following in zip(paths, [*paths[1:], paths[0]]):
        server.put(path, b"[]", headers={"Link": f'<{server.home}{following}?{query}>; rel="next"'})
    assert said in str(refusal(HUB))
    assert len([request for request in server.requests if "/tree/" in request.path]) == min(pages, 5)


@pytest.mark.parametrize("repo", ["x.git", "x" * 100])
def test_a_repository_that_the_hub_cannot_have(server: RemoteServer, repo: str) -> None:
    assert "is not understood" in str(refusal(HubName("o", repo)))
    assert server.requests == []


def test_a_quantization_that_is_not_there(server: RemoteServer) -> None:
    put_repository(server)
    assert str(refusal(HubName(HUB.owner, HUB.repo, "Q3_K_S"))).endswith("there are Q2_K, Q4_K_M, Q8_0")


def test_a_repository_without_models(server: RemoteServer) -> None:
    server.put_hub(REPOSITORY, {"README.md": Served(b"#"), "mmproj-x.gguf": Served(SMALL)})
    assert "it has no .gguf model" in str(refusal(HUB))


def test_a_file_of_another_size_than_the_hub_says(server: RemoteServer) -> None:
    put_repository(server)
    server.files[f"/cdn/{REPOSITORY}/Some-Model-Q4_K_M.gguf"].size = 30 << 30
    assert "were announced" in str(refusal(HUB))


def test_the_address_of_the_hub_is_its_own_setting(server: RemoteServer) -> None:
    put_repository(server)
    program = """if True:
        from ggufbpe.hub.name_grammar import parse_name
        from ggufbpe.hub.remote.opening import remote_source
        print(remote_source(parse_name("hf:someone/Some-Model-GGUF")).path)"""
    environment = {**os.environ, "HF_ENDPOINT": server.home}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout == f"hf:{REPOSITORY}/Some-Model-Q4_K_M.gguf\n"


# ---- the repository that a model comes from -------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizer_json() -> bytes:
    return to_tokenizer_json(load_vocabulary(GPT2)).files["tokenizer.json"]


def with_keys(**values: str) -> bytes:
    """GPT-2's vocabulary with other values for some keys, "__" for dots."""
    with GGUFFile(GPT2) as file:
        fields = {key: Field(file.value_type(key), file[key], file.element_type(key)) for key in file}
    kind = GGUFValueType.STRING
    return packed_file(fields | {key.replace("__", "."): Field(kind, values[key], None) for key in values})


HERE = {"general__base_model__0__repo_url": "https://huggingface.co/org/base"}


def put_upstream(server: RemoteServer, tokenizer_json: bytes, repository: str = "org/base") -> None:
    headers = {"ETag": '"0123456789"', "X-Repo-Commit": "0" * 40}
    server.put(f"/{repository}/resolve/main/tokenizer.json", tokenizer_json, headers=headers)


@pytest.fixture
def model(server: RemoteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Writes a model, and gives its path; the hub's library has an empty cache."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))

    def write(**values: str) -> str:
        (tmp_path / "model.gguf").write_bytes(with_keys(**values))
        return str(tmp_path / "model.gguf")

    return write


def test_a_model_with_the_ids_of_its_repository(
    server: RemoteServer, model: Callable[..., str], tokenizer_json: bytes
) -> None:
    put_upstream(server, tokenizer_json)
    [finding] = upstream(model(**HERE))
    assert (finding.severity, finding.id, finding.where.key) == (
        *("note", "upstream_same"),
        "general.base_model.0.repo_url",
    )


@pytest.mark.slow
def test_a_model_whose_pre_tokenizer_is_not_that_of_its_repository(
    server: RemoteServer, model: Callable[..., str], tokenizer_json: bytes
) -> None:
    put_upstream(server, tokenizer_json)
    path = model(**HERE, tokenizer__ggml__pre="starcoder")
    findings = upstream(path)
    assert {finding.detail["whose"] for finding in findings if finding.detail} == {"file"}
    assert f"ggufbpe fix {path} --set tokenizer.ggml.pre=gpt-2" in findings[0].fix


@pytest.mark.slow
def test_a_repository_that_does_what_llama_cpp_cannot(
    server: RemoteServer, model: Callable[..., str], tokenizer_json: bytes
) -> None:
    document = json.loads(tokenizer_json)
    document["normalizer"] = {"type": "NFKC"}
    put_upstream(server, json.dumps(document).encode())
    findings = upstream(model(**HERE))
    assert findings
    assert {finding.detail["whose"] for finding in findings if finding.detail} == {"llama.cpp"}


def test_doctor_takes_upstream(
    server: RemoteServer,
    model: Callable[..., str],
    tokenizer_json: bytes,
    capsys: pytest.CaptureFixture[str],
) -> None:
    put_upstream(server, tokenizer_json)
    assert main(["doctor", model(**HERE), "--upstream", "--json"]) == 0
    assert "upstream_same" in capsys.readouterr().out


@pytest.mark.parametrize("by", ["python", "command"])
def test_verify_against_a_repository(
    by: str,
    server: RemoteServer,
    model: Callable[..., str],
    tokenizer_json: bytes,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """hf: is the hub: the GGUF of a repository, or where it has none its tokenizer.json, or else an error."""

    def name_of_the_other(given: str) -> str:
        if by == "python":
            return verify(path, given, ["Hello world"]).oracle
        assert main(["verify", "-m", path, "--against", given, "-p", "Hello world", "--json"]) == 0
        return str(json.loads(capsys.readouterr().out)["oracle"])

    path = model()
    server.put_hub("org/base", {"README.md": Served(b"#")})
    with pytest.raises(RemoteNotFoundError):
        verify(path, "hf:org/base", ["Hello world"])
    put_upstream(server, tokenizer_json)
    assert name_of_the_other("hf:org/base").startswith("tokenizers 0.")
    server.put_hub("org/base", {"base-Q4_K_M.gguf": Served(with_keys())})
    assert name_of_the_other("hf:org/base") == "base-Q4_K_M.gguf"


NAMED = [
    ({"general__source__repo_url": "https://huggingface.co/a/source", **HERE}, ["a/source", "org/base"]),
    ({"general__source__huggingface__repository": "a/old"}, ["a/old"]),
    ({"general__repo_url": "https://huggingface.co/a/own", **HERE}, ["org/base", "a/own"]),
    ({"general__url": "https://example.com/a/b", "general__source__url": "no address"}, []),
    ({"general__base_model__1__url": "https://huggingface.co/a/b/tree/main", **HERE}, ["a/b", "org/base"]),
    ({"general__source__url": "https://huggingface.co/org/base", **HERE}, ["org/base"]),
]


@pytest.mark.parametrize(("values", "expected"), NAMED)
def test_which_repositories_a_model_names(values: dict[str, str], expected: list[str]) -> None:
    with GGUFFile("model.gguf", with_keys(**values)) as file:
        assert [name.repository for name, _ in repositories(file)] == expected


def test_a_repository_without_a_tokenizer_is_passed_over(
    server: RemoteServer, model: Callable[..., str], tokenizer_json: bytes
) -> None:
    put_upstream(server, tokenizer_json)
    [finding] = upstream(model(general__source__repo_url="https://huggingface.co/a/none", **HERE))
    assert "org/base" in finding.what


@pytest.mark.parametrize(("values", "said"), [({}, "names no repository"), (HERE, "no such file")])
def test_no_repository_to_compare_with(
    server: RemoteServer, model: Callable[..., str], values: dict[str, str], said: str
) -> None:
    gone = [(404, {"X-Error-Code": "EntryNotFound"})] * 3
    server.put("/org/base/resolve/main/tokenizer.json", b"", refusals=gone)
    with pytest.raises(RemoteNotFoundError, match=said):
        upstream(model(**values))


@pytest.mark.parametrize("header", ["ETag", "X-Repo-Commit"])
def test_a_tokenizer_json_of_what_is_no_hub(
    server: RemoteServer, model: Callable[..., str], header: str
) -> None:
    headers = {"ETag": '"0123456789"', "X-Repo-Commit": "0" * 40}
    del headers[header]
    server.put("/org/base/resolve/main/tokenizer.json", b"{}", headers=headers)
    with pytest.raises(RemoteError, match="is not understood"):
        upstream(model(**HERE))


def test_a_tokenizer_json_of_40_gigabytes(server: RemoteServer, model: Callable[..., str]) -> None:
    headers = {"ETag": '"0123456789"', "X-Repo-Commit": "0" * 40}
    server.put("/org/base/resolve/main/tokenizer.json", b"{", headers=headers, size=LARGE)
    with pytest.raises(RemoteError, match="42949672960 bytes, too many for a tokenizer"):
        upstream(model(**HERE))
    assert sum(request.sent for request in server.requests) == 0


def test_no_more_repositories_are_asked_than_a_model_comes_from(
    server: RemoteServer, model: Callable[..., str]
) -> None:
    named = {f"general__base_model__{n}__repo_url": f"https://huggingface.co/a/b{n}" for n in range(100)}
    with pytest.raises(RemoteNotFoundError):
        upstream(model(**named))
    assert len({request.path for request in server.requests}) == 8


def test_offline_asks_for_no_repository(
    server: RemoteServer, model: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The library asks the hub once a process for what it says in the headers of its requests.
    monkeypatch.setattr("huggingface_hub.utils._detect_agent._registry", None)
    with pytest.raises(OfflineError):
        upstream(model(**HERE), offline=True)
    assert server.requests == []


# ---- Ollama's registry ----------------------------------------------------------------------------------


def ollama(server: RemoteServer, model: str = "some") -> OllamaName:
    return OllamaName(model, host=f"127.0.0.1:{server.port}", scheme="http")


def test_a_model_of_the_registry(server: RemoteServer) -> None:
    server.put_ollama("library/some", "latest", Served(MODEL, size=LARGE), DIGEST)
    assert metadata(opened(ollama(server))) == metadata(Source(GPT2))
    manifest = server.requests[0]
    assert manifest.path == "/v2/library/some/manifests/latest"
    assert manifest.headers["accept"] == "application/vnd.docker.distribution.manifest.v2+json"
    assert server.requests[1].path == f"/v2/library/some/blobs/{DIGEST}"
    assert server.asked - server.requests[1].asked <= len(MODEL) + range_stream.BLOCK


def test_refresh_of_a_model_of_the_registry_asks_for_its_manifest(server: RemoteServer) -> None:
    server.put_ollama("library/some", "latest", Served(MODEL, size=LARGE), DIGEST)
    opened(ollama(server))
    server.requests.clear()
    opened(ollama(server), refresh=True)
    assert [request.path for request in server.requests] == ["/v2/library/some/manifests/latest"]


LAYER = {"mediaType": "application/vnd.ollama.image.model", "digest": DIGEST, "size": len(SMALL)}


def test_of_several_models_in_a_manifest_the_last_one_counts_as_for_ollama(server: RemoteServer) -> None:
    server.put_ollama("library/some", "latest", Served(SMALL), DIGEST)
    layers = [{**LAYER, "digest": "sha256:" + "0" * 64}, LAYER]
    server.put("/v2/library/some/manifests/latest", json.dumps({"layers": layers}).encode())
    assert opened(ollama(server)).size == len(SMALL)


MANIFESTS = {
    "no JSON": (b"<html>", "is not a manifest"),
    "deep": (b"[" * 100_000, "is not a manifest"),
    "a list": (b"[]", "has no GGUF"),
    "no layers": (b"{}", "has no GGUF"),
    "layers of numbers": (b'{"layers": [1, null, {}]}', "has no GGUF"),
    "digest that leads elsewhere": ({**LAYER, "digest": "sha256:../../../etc/passwd"}, "digest of the model"),
    "digest of another kind": ({**LAYER, "digest": "md5:" + "0" * 32}, "digest of the model"),
    "digest in capitals": ({**LAYER, "digest": DIGEST.upper()}, "digest of the model"),
    "digest that is no text": ({**LAYER, "digest": 1}, "digest of the model"),
    "size that is none": ({**LAYER, "size": -1}, "size of the model"),
    "size that is another": ({**LAYER, "size": 10**9}, "were announced"),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_that_is_none(server: RemoteServer, name: str) -> None:
    given, said = MANIFESTS[name]
    server.put_ollama("library/some", "latest", Served(SMALL), DIGEST)
    data = given if isinstance(given, bytes) else json.dumps({"layers": [given]}).encode()
    server.put("/v2/library/some/manifests/latest", data)
    assert said in str(refusal(ollama(server)))


def test_a_manifest_of_a_gigabyte(server: RemoteServer) -> None:
    server.put("/v2/library/some/manifests/latest", b"{", size=1 << 30)
    assert "longer than" in str(refusal(ollama(server)))


@pytest.mark.parametrize(
    ("status", "said"), [(404, "no such model"), (401, "`ollama pull"), (500, "an error")]
)
def test_what_the_registry_refuses(server: RemoteServer, status: int, said: str) -> None:
    server.put("/v2/library/some/manifests/latest", b"", refusals=[(status, {})] * 9)
    assert said in str(refusal(ollama(server)))


# ---- other storages -------------------------------------------------------------------------------------


@pytest.fixture
def storage(server: RemoteServer) -> Iterator[Any]:
    """fsspec's storage in memory, counting what is asked for."""
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    files.store.clear()
    yield files
    files.store.clear()


def test_a_model_of_a_storage(storage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.pipe("/bucket/model.gguf", MODEL + bytes(10**7))
    asked: list[int] = []
    read = type(storage).cat_file

    def counted(self: Any, path: str, start: int, end: int) -> bytes:
        asked.append(end - start)
        return read(self, path, start, end)

    monkeypatch.setattr(type(storage), "cat_file", counted)
    assert metadata(opened("memory://bucket/model.gguf")) == metadata(Source(GPT2))
    assert sum(asked) <= 1.1 * len(MODEL)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("memory://bucket/nothing.gguf", "no such file"),
        ("memory://bucket", "this is not a file"),
        ("nosuchscheme://bucket/model.gguf", "Protocol not known"),
    ],
)
def test_what_a_storage_does_not_have(storage: Any, url: str, said: str) -> None:
    storage.pipe("/bucket/model.gguf", SMALL)
    assert said in str(refusal(url))


def test_a_file_of_a_storage_that_is_replaced(storage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.pipe("/bucket/model.gguf", SMALL)
    read = type(storage).cat_file

    def replacing(self: Any, path: str, start: int, end: int) -> bytes:
        data: bytes = read(self, path, start, end)
        time.sleep(0.001)
        self.pipe(path, SMALL)
        return data

    monkeypatch.setattr(type(storage), "cat_file", replacing)
    assert "was replaced" in str(refusal("memory://bucket/model.gguf"))


# ---- around it ------------------------------------------------------------------------------------------


def test_progress_is_told(server: RemoteServer) -> None:
    told: list[remote.RemoteProgress] = []
    opened(server.put("/model.gguf", MODEL, size=LARGE), progress=told.append)
    received = [each.received for each in told]
    assert received == sorted(set(received))
    assert received[-1] >= len(MODEL)
    assert all(each.received <= each.expected for each in told)


SHOWN = {  # how the server is, the seconds until something is shown, and what
    "slow to answer": ({"latency": 0.8}, 0.1, r"\rasking for http://.*/model.gguf \.\.\. [01] s"),
    "slow": ({"rate": 2e6}, 0.1, r"\r#+\.* +[0-9]+% [0-9.]+ [kM]B of http://"),
    "fast": ({}, 60.0, r"(?!.)"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_what_takes_more_than_a_second_is_shown(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    how, patience, shown = SHOWN[name]
    assert _progress.PATIENCE == 1.0
    monkeypatch.setattr(_progress, "PATIENCE", patience)
    monkeypatch.setattr(_output, "error_width", lambda: 200)
    assert main(["info", server.put("/model.gguf", MODEL, size=LARGE, **how)]) == 0
    drawn = capsys.readouterr().err
    assert re.match(shown, drawn)
    assert drawn.endswith("\r\x1b[K" * (name != "fast"))


def test_threads_end(server: RemoteServer) -> None:
    before = threading.active_count()
    opened(server.put("/model.gguf", MODEL, size=LARGE))
    mine = [thread for thread in threading.enumerate() if thread.name.startswith("ggufbpe-remote")]
    for thread in mine:
        thread.join(5)
    assert not any(thread.is_alive() for thread in mine), before


@pytest.mark.parametrize(
    ("package", "reference", "extra"),
    [
        ("huggingface_hub", HUB, "hub"),
        ("fsspec", Address("memory://model.gguf"), "fsspec"),
    ],
)
def test_a_package_that_is_not_installed(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch, package: str, reference: Any, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(NotInstalledError, match=rf"ggufbpe\[{extra}\]"):
        opened(reference)


def test_what_is_kept_opens_without_the_libraries_of_the_network(server: RemoteServer) -> None:
    put_repository(server)
    opened(HUB)
    program = f"import sys; from ggufbpe import Tokenizer; Tokenizer.from_gguf({str(HUB)!r})"
    program += "; print(*{'httpx', 'httpx2', 'huggingface_hub'}.intersection(sys.modules))"
    environment = {**os.environ, "HF_ENDPOINT": server.home}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr) == ("\n", "")


def test_a_near_file_imports_nothing_of_this_room() -> None:
    program = "import sys; from ggufbpe import Tokenizer; Tokenizer.from_gguf(sys.argv[1]).encode('Hello')"
    program += (
        "; print(*(name for name in sys.modules if name.startswith(('ggufbpe.hub.remote', 'httpx', 'hugg'))))"
    )
    done = subprocess.run([sys.executable, "-c", program, GPT2], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
