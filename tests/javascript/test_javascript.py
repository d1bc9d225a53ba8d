"""The package for JavaScript, in Node and in Debian's Chromium: llama.cpp's ids, and what is read of a model for them.

scripts/wasm.sh builds what it needs.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, PLAMO, RAW_UTF8, ROOT, UNIGRAM, UNSPLIT, missing
from javascript_runs import (
    HELPERS,
    PACKAGE,
    Run,
    built_package,
    debian_chromium,
    file_of_40_gb,
    in_node,
    on_page,
    whole_characters,
)
from record_fixtures import REAL, read_recorded, variant
from reference import NotPreparedError, vocabulary
from remote_server import RemoteServer, remote_server

from ggufbpe import GGUFWarning, Tokenizer

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")]

RECORDED = {"byte_level": GPT2, "unsplit": UNSPLIT, "raw_utf8": RAW_UTF8, "unigram": UNIGRAM, "plamo": PLAMO}
TEXT = "Hello world! naïve 者 🙂 1234567\n\tint x = 0;"
MEGABYTE = 1 << 20


@pytest.fixture
def remote() -> Iterator[RemoteServer]:
    """A server with the package, recorded.js, and an empty page."""
    with remote_server() as server:
        for path in (*built_package().iterdir(), HELPERS / "recorded.js"):
            kind = "text/javascript" if path.suffix == ".js" else "application/wasm"
            server.put(f"/{path.name}", path.read_bytes(), headers={"Content-Type": kind})
        server.put("/page", b"<!doctype html>", headers={"Content-Type": "text/html"})
        yield server


@pytest.fixture
def node(tmp_path: Path) -> Run:
    built_package()
    return in_node(tmp_path)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with debian_chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Any, remote: RemoteServer) -> Iterator[Any]:
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(600_000)
    page.goto(f"{remote.home}/page")
    yield page
    context.close()


@pytest.fixture
def chromium(page: Any) -> Run:
    return on_page(page)


@pytest.fixture(params=["node", "chromium"])
def run(request: pytest.FixtureRequest) -> Run:
    found: Run = request.getfixturevalue(request.param)
    return found


@cache
def recorded(name: str) -> dict[str, Any]:
    return read_recorded(name)


def compared(run: Run, remote: RemoteServer, cases: list[tuple[str, str, Path]]) -> int:
    """Hold models to their recorded answers; returns how many answers were compared."""
    for name, case, path in cases:
        if f"/{name}.json" not in remote.files:
            remote.put(f"/{name}.json", json.dumps(recorded(name)).encode())
        remote.put(f"/{name}/{case}.gguf", path.read_bytes())
    found = run(
        "return compareAll(Tokenizer, given.base, given.cases);",
        {"base": remote.home, "cases": [(name, case) for name, case, _ in cases]},
    )
    assert found["wrong"] == []
    count: int = found["count"]
    return count


def test_the_readme_of_the_package(node: Run) -> None:
    page = (ROOT / "ggufbpe" / "javascript" / "README.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```js\n(.+?)```", page, re.DOTALL)
    opening, *rest = [line for line in block.splitlines() if line and not line.startswith("import")]
    lines = [line.partition(" // ") for line in rest]
    found = node(
        f"const {{ model }} = given; {opening}\nconst seen = [];\n"
        + "".join(f"seen.push({code.rstrip(';')});\n" for code, _, _ in lines)
        + "const shown = (value) => JSON.stringify(ArrayBuffer.isView(value) ? [...value] : value);"
        + "return seen.map((value) => (ArrayBuffer.isView(value) ? 'Int32Array ' : '') + shown(value));",
        {"model": str(GPT2)},
    )
    assert [value.replace(",", ", ") for value in found] == [
        comment.partition(" with ")[0] for _, _, comment in lines
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_answers(name: str, run: Run, remote: RemoteServer, tmp_path: Path) -> None:
    cases = [
        (name, case, variant(RECORDED[name], case, tmp_path / f"{case}.gguf"))
        for case in recorded(name)["ids"]["index"]
    ]
    assert compared(run, remote, cases) > 3000 * len(cases)


@pytest.mark.parametrize("name", REAL)
def test_recorded_answers_of_real_vocabularies(name: str, run: Run, remote: RemoteServer) -> None:
    try:
        path = vocabulary(name)
    except NotPreparedError as error:
        missing(str(error))
    assert compared(run, remote, [("real", name, path)]) > 3000


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".cache" / "vocabs").glob("*.gguf")), ids=lambda path: path.stem
)
def test_ids_of_native_engine(path: Path, node: Run) -> None:
    text = (ROOT / "README.md").read_text() + TEXT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        ours = Tokenizer.from_gguf(path)
    ids, offsets = ours.encode_with_offsets(text)
    found = node(
        """
        const tokenizer = await Tokenizer.fromGGUF(given.path);
        const { ids, offsets } = tokenizer.encodeWithOffsets(given.text);
        const inBytes = tokenizer.encodeWithOffsets(new TextEncoder().encode(given.text)).offsets;
        return { ids: [...ids], inBytes: [...inBytes], pieces: [...ids].map((_, i) =>
            given.text.slice(offsets[2 * i], offsets[2 * i + 1])) };
        """,
        {"path": str(path), "text": text},
    )
    data = text.encode()
    assert found["ids"] == ids
    assert found["inBytes"] == [place for span in offsets for place in span]
    assert found["pieces"] == [whole_characters(data, *span) for span in offsets]


def test_a_model_of_40_gb_is_opened_by_its_header(remote: RemoteServer, run: Run) -> None:
    url = remote.put("/large.gguf", GPT2.read_bytes(), size=40 << 30)
    found = run(
        "const t = await Tokenizer.fromGGUF(given); return [t.bytesRead, [...t.encode('Hello world')]];", url
    )
    assert found == [2 * MEGABYTE, [15496, 995]]
    assert remote.asked == 2 * MEGABYTE


def test_a_file_of_40_gb_in_node(node: Run, tmp_path: Path) -> None:
    path = file_of_40_gb(tmp_path)
    found = node(
        "const t = await Tokenizer.fromGGUF(given); return [t.bytesRead, t.count('Hello world')];", str(path)
    )
    assert found == [2 * MEGABYTE, 2]


def test_a_file_of_40_gb_in_the_browser_is_read_by_slices(
    page: Any, remote: RemoteServer, tmp_path: Path
) -> None:
    page.set_content('<input type="file">')
    page.locator("input").set_input_files(file_of_40_gb(tmp_path))
    before = len(remote.requests)
    found = page.evaluate(
        """async () => {
            const { Tokenizer } = await import("/index.js");
            const [file] = document.querySelector("input").files;
            const tokenizer = await Tokenizer.fromGGUF(file);
            return [file.size, tokenizer.bytesRead, tokenizer.count("Hello world")];
        }"""
    )
    assert found == [40 << 30, 2 * MEGABYTE, 2]
    assert {each.method for each in remote.requests[before:]} == {"GET"}  # the package's own files


def test_a_worker_opens_a_file(page: Any, remote: RemoteServer) -> None:
    code = b"""import { Tokenizer } from "/index.js";
        onmessage = async ({ data }) => postMessage((await Tokenizer.fromGGUF(data)).count("Hello world"));"""
    remote.put("/worker.js", code, headers={"Content-Type": "text/javascript"})
    remote.put("/model.gguf", GPT2.read_bytes())
    count = page.evaluate(
        """async () => {
            const worker = new Worker("/worker.js", { type: "module" });
            worker.postMessage(await (await fetch("/model.gguf")).blob());
            return new Promise((done) => (worker.onmessage = ({ data }) => done(data)));
        }"""
    )
    assert count == 2


def test_a_server_without_ranges_is_read_until_the_header_is_whole(remote: RemoteServer, run: Run) -> None:
    url = remote.put("/stream.gguf", GPT2.read_bytes(), size=4 << 30, has_ranges=False)
    found = run(
        "const t = await Tokenizer.fromGGUF(given); return [t.bytesRead, t.count('Hello world')];", url
    )
    assert found[1] == 2
    assert GPT2.stat().st_size <= found[0] < 32 * MEGABYTE  # as the stream is cut into chunks
    assert sum(request.sent for request in remote.requests if request.path == "/stream.gguf") < 100 * MEGABYTE


def with_headers_by_number(**texts: str) -> dict[str, Any]:
    """A server without an ETag whose headers have the number of the answer in place of `{}`."""

    def change(headers: dict[str, str], number: int) -> None:
        for name, text in texts.items():
            headers[name.replace("_", "-")] = text.format(number)

    return {"headers": {}, "changes": change}


def another_total(headers: dict[str, str], number: int) -> None:
    headers["Content-Range"] += str(number)


FAILURES = {
    "not there": ({"refusals": [(404, {})] * 9}, "IO", r"status 404"),
    "another ETag": (with_headers_by_number(ETag='"{}"'), "IO", "changed"),
    "another ETag, the same date": (
        with_headers_by_number(ETag='"{}"', Last_Modified="Sat, 28 Nov 2026 12:00:00 GMT"),
        "IO",
        "changed",
    ),
    "no ETag, another date": (
        with_headers_by_number(Last_Modified="Sat, 28 Nov 2026 12:00:0{} GMT"),
        "IO",
        "changed",
    ),
    "no ETag, another date, ranges hidden": (
        with_headers_by_number(Last_Modified="Sat, 28 Nov 2026 12:00:0{} GMT", Content_Range=""),
        "IO",
        "changed",
    ),
    "no ETag, another size": ({"headers": {}, "changes": another_total}, "IO", "changed"),
    "the same ETag, another size": ({"changes": another_total}, "IO", "changed"),
    "connection cut": ({"cuts": [1000] * 9}, "IO", "connection broke"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_of_servers(name: str, remote: RemoteServer, run: Run) -> None:
    how, code, words = FAILURES[name]
    url = remote.put("/model.gguf", GPT2.read_bytes(), size=1 << 30, **how)
    said = run(f"return Tokenizer.fromGGUF(given).catch({CAUGHT});", url)
    assert said["name"] == "TokenizerError"
    assert said["code"] == code
    assert re.search(words, said["message"])


CAUGHT = "({ name, code, message, key, offset }) => ({ name, code, message, key, offset })"


def test_a_file_that_becomes_shorter_between_ranges(run: Run) -> None:
    said = run(
        f"""
        const range = new Response(new Uint8Array(given), {{
            status: 206, headers: {{ "Content-Range": `bytes 0-${{given.length - 1}}/1000000` }},
        }});
        const answers = [range, new Response(null, {{ status: 416 }})];
        return Tokenizer.fromGGUF("https://example.org/model.gguf", {{ fetch: async () => answers.shift() }})
            .catch({CAUGHT});
        """,
        [*GPT2.read_bytes()[:1000]],
    )
    assert said["code"] == "IO"
    assert "changed" in said["message"]


def test_a_server_of_another_site_that_hides_all_headers(remote: RemoteServer, run: Run) -> None:
    how = with_headers_by_number(Content_Range="")
    url = remote.put("/model.gguf", GPT2.read_bytes(), size=1 << 30, **how)
    assert run("return (await Tokenizer.fromGGUF(given)).count('Hello world');", url) == 2


def test_a_server_that_says_the_size_later(remote: RemoteServer, run: Run) -> None:
    def change(headers: dict[str, str], number: int) -> None:
        if number == 1:
            headers["Content-Range"] = headers["Content-Range"].partition("/")[0] + "/*"

    url = remote.put("/model.gguf", GPT2.read_bytes(), size=1 << 30, changes=change)
    assert run("return (await Tokenizer.fromGGUF(given)).count('Hello world');", url) == 2


def test_a_fetch_without_streams(node: Run) -> None:
    found = node(
        """
        const bytes = Uint8Array.from(given);
        const fetch = async (_, { headers }) => {
            const [, start, end] = /(\\d+)-(\\d+)/.exec(headers.Range).map(Number);
            const part = bytes.slice(start, end + 1);
            return { status: part.length ? 206 : 416, headers: new Headers(), arrayBuffer: async () => part.buffer };
        };
        return (await Tokenizer.fromGGUF("https://example.org/model.gguf", { fetch })).count("Hello world");
        """,
        [*GPT2.read_bytes()],
    )
    assert found == 2


BODIES = {
    "more than announced": ("bytes 0-999/5000", 1001, "sent more bytes"),
    "more than announced, without an end": (
        f"bytes 0-{MEGABYTE - 1}/9999999",
        64 * MEGABYTE,
        "sent more bytes",
    ),
    "range not named, more than asked": (None, MEGABYTE + 1, "sent more bytes"),
    "range not named, without an end": (None, 64 * MEGABYTE, "sent more bytes"),
    "fewer than announced": ("bytes 0-999/5000", 999, "sent fewer bytes"),
    "none": ("bytes 0-999/5000", 0, "sent fewer bytes"),
}


@pytest.mark.parametrize(
    ("headers", "most", "words"),
    [
        ({"Content-Type": "multipart/byteranges; boundary=x"}, 1, "sent another range"),
        ({}, 101, "sent fewer than 16384 bytes"),
    ],
)
def test_a_server_that_answers_with_a_few_bytes_is_not_asked_forever(
    headers: dict[str, str], most: int, words: str, run: Run
) -> None:
    """Each request has a signal of its own: on one for all, Node warns of a leak after ten."""
    said, requests, signals = run(
        f"""
        const signals = [];
        const fetch = async (_, {{ signal }}) => {{
            if (signals.push(signal) > 1000) throw new Error("too many requests");
            return new Response("GGUF", {{ status: 206, headers: given }});
        }};
        const {{ signal }} = new AbortController();
        const said = await Tokenizer.fromGGUF("https://example.org/model.gguf", {{ fetch, signal }}).catch({CAUGHT});
        return [said, signals.length, new Set(signals).size];
        """,
        headers,
    )
    assert said["code"] == "IO"
    assert words in said["message"]
    assert requests == signals == most


@pytest.mark.parametrize("name", BODIES)
def test_bodies_of_another_length_than_the_range(name: str, run: Run) -> None:
    content_range, size, words = BODIES[name]
    said = run(
        f"""
        let sent = 0, isCancelled = false;
        const body = new ReadableStream({{
            pull(controller) {{
                const size = Math.min(given.size - sent, 1 << 16);
                if (!size) return controller.close();
                sent += size;
                controller.enqueue(new Uint8Array(size));
            }},
            cancel() {{ isCancelled = true; }},
        }});
        const response = new Response(body, {{ status: 206, headers: given.headers }});
        const error = await Tokenizer.fromGGUF("https://example.org/model.gguf", {{ fetch: async () => response }})
            .catch({CAUGHT});
        return {{ ...error, sent, isCancelled }};
        """,
        {"size": size, "headers": {"Content-Range": content_range} if content_range else {}},
    )
    assert said["code"] == "IO"
    assert f"the server {words}" in said["message"]
    assert said["sent"] < 2 * MEGABYTE
    assert said["isCancelled"] == (size > 2 * MEGABYTE)  # a shorter body has already come whole


OPENED_BLOB = f"""
    const bytes = await (await fetch(given.url)).arrayBuffer();
    const url = URL.createObjectURL(new Blob([bytes.slice(0, given.end), new Uint8Array(given.zeros)]));
    return Tokenizer.fromGGUF(url).then((t) => [t.bytesRead, t.count("Hello world")], {CAUGHT});
"""


def test_the_address_of_a_blob(remote: RemoteServer, run: Run) -> None:
    size = GPT2.stat().st_size
    given = {"url": remote.put("/model.gguf", GPT2.read_bytes()), "zeros": 0}
    assert run(OPENED_BLOB, {**given, "end": size}) == [size, 2]
    assert run(OPENED_BLOB, {**given, "end": size - 1})["code"] == "TRUNCATED"
    bytes_read, count = run(OPENED_BLOB, {**given, "end": size, "zeros": 64 * MEGABYTE})
    assert count == 2
    assert bytes_read < 32 * MEGABYTE


def test_file_addresses_in_any_case(node: Run) -> None:
    for scheme in ("file", "FILE", "File"):
        found = node(
            "return (await Tokenizer.fromGGUF(given)).count('Hello world');",
            GPT2.as_uri().replace("file", scheme, 1),
        )
        assert found == 2


NO_ANSWER = f"""
    const fetch = given.fails ? async () => {{ throw new TypeError("Failed to fetch"); }} : globalThis.fetch;
    return Tokenizer.fromGGUF(given.url, {{ fetch }}).catch({CAUGHT});
"""


def test_cors_is_named_in_a_browser_for_another_site(remote: RemoteServer, chromium: Run) -> None:
    remote.put("/model.gguf", GPT2.read_bytes())
    said = chromium(NO_ANSWER, {"url": f"{remote.cdn}/model.gguf"})
    assert said["code"] == "IO"
    assert "CORS" in said["message"]


def test_cors_is_not_named_where_it_is_not_the_reason(remote: RemoteServer, node: Run, chromium: Run) -> None:
    own, other, invalid = f"{remote.home}/model.gguf", "https://example.org/model.gguf", "https://["
    in_browser = [
        chromium(NO_ANSWER, {"url": own, "fails": True}),
        chromium(NO_ANSWER, {"url": "model.gguf", "fails": True}),
        chromium(NO_ANSWER, {"url": invalid}),
        chromium(NO_ANSWER, {"url": "file:///model.gguf"}),
    ]
    in_node = [
        node(NO_ANSWER, {"url": other, "fails": True}),
        node(NO_ANSWER, {"url": invalid}),
        node(NO_ANSWER, {"url": "ftp://example.org/model.gguf"}),
    ]
    for said in in_browser + in_node:
        assert said["code"] == "IO"
        assert "no answer" in said["message"]
        assert "CORS" not in said["message"]


@pytest.mark.parametrize("form", ["own", "Object.entries(own)", "new Headers(own)"])
def test_headers_have_any_form_that_fetch_takes(form: str, remote: RemoteServer, node: Run) -> None:
    url = remote.put("/model.gguf", GPT2.read_bytes())
    node(
        f'const own = {{ Authorization: "Bearer x" }}; await Tokenizer.fromGGUF(given, {{ headers: {form} }});',
        url,
    )
    for request in remote.requests:
        sent = {name.lower(): value for name, value in request.headers.items()}
        assert sent["authorization"] == "Bearer x"
        assert sent["range"].startswith("bytes=")


def test_shared_memory(node: Run) -> None:
    found = node(
        """
        const bytes = (await import("node:fs")).readFileSync(given);
        const shared = new SharedArrayBuffer(bytes.length);
        new Uint8Array(shared).set(bytes);
        const opened = await Promise.all([shared, new Uint8Array(shared)].map((model) => Tokenizer.fromGGUF(model)));
        return opened.map((tokenizer) => tokenizer.count("Hello world"));
        """,
        str(GPT2),
    )
    assert found == [2, 2]


BROKEN = {
    "empty": (b"", "TRUNCATED"),
    "text": (b"Hello world, this is no model", "NOT_GGUF"),
    "cut": (GPT2.read_bytes()[:MEGABYTE], "TRUNCATED"),
    "no vocabulary": (b"GGUF\3\0\0\0" + bytes(16), "BAD_VOCABULARY"),
    "a lying count": (b"GGUF\3\0\0\0" + bytes(8) + b"\xff" * 7 + b"\x00" + bytes(64), None),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(name: str, node: Run, tmp_path: Path) -> None:
    content, code = BROKEN[name]
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    said = node(f"return Tokenizer.fromGGUF(given).catch({CAUGHT});", str(path))
    assert said["name"] == "TokenizerError"
    assert said["code"] == (code or said["code"])
    assert said["message"]


def test_malformed_files_end_in_an_error_of_the_package_or_open(node: Run) -> None:
    paths = sorted(map(str, (ROOT / "fixtures" / "malformed").glob("*.gguf")))
    names = node(
        """
        const names = [];
        for (const path of given) {
            names.push(await Tokenizer.fromGGUF(path).then(() => "opened", (error) => error.name));
        }
        return names;
        """,
        paths,
    )
    assert len(names) > 250
    assert set(names) == {"opened", "TokenizerError"}


def test_texts(node: Run) -> None:
    """Surrogates, bytes, an empty text, offsets in UTF-16, and a byte order mark."""
    found = node(
        """
        const t = await Tokenizer.fromGGUF(given);
        const marked = t.encode("\\uFEFFa");
        return {
            lone: [...t.encode("a\\uD83Db")], replaced: [...t.encode("a\\uFFFDb")],
            bytes: [...t.encode(new Uint8Array([0x61, 0xFF, 0x62]))], invalid: [...t.encode("a\\uFFFDb")],
            empty: [...t.encode("")], places: [...t.encodeWithOffsets("🙂a").offsets].at(-2),
            marked: t.decode(marked), none: t.decode([]),
        };
        """,
        str(GPT2),
    )
    assert found["lone"] == found["replaced"]
    assert found["bytes"] == Tokenizer.from_gguf(GPT2).encode(b"a\xffb")
    assert (found["empty"], found["places"], found["marked"], found["none"]) == ([], 2, "\ufeffa", "")


def test_a_string_of_any_length_takes_the_room_of_its_bytes(node: Run) -> None:
    """Up to 4 Mi characters are written to the memory directly, longer strings by a copy."""
    counts = node(
        """
        const t = await Tokenizer.fromGGUF(given);
        return [1 << 22, (1 << 22) + 1].map((length) => {
            const ids = t.encode("é ".repeat(length / 2).padEnd(length, "x"));
            return [ids.length, t.decode(ids).length];
        });
        """,
        str(GPT2),
    )
    assert counts == [[(1 << 21) + 1, 1 << 22], [(1 << 21) + 1, (1 << 22) + 1]]


def test_incremental_ids_are_those_of_the_whole_text(node: Run) -> None:
    found = node(
        """
        const t = await Tokenizer.fromGGUF(given.path), growing = t.incremental();
        let ids = [];
        for (let i = 0; i < given.text.length; ++i) {
            const { kept, removed, inserted } = growing.append(given.text[i]);
            const now = [...growing.ids];
            if (ids.length - kept - removed < 0 || now.length !== ids.length - removed + inserted) return "lengths";
            if (String(now.slice(0, kept)) !== String(ids.slice(0, kept))) return "kept";
            ids = now;
        }
        const stream = t.decodeStream();
        return { ids, text: ids.map((id) => stream.push(id)).join("") + stream.finish(), count: growing.count };
        """,
        {"path": str(GPT2), "text": TEXT},
    )
    expected = Tokenizer.from_gguf(GPT2).encode(TEXT)
    assert found == {"ids": expected, "text": TEXT, "count": len(expected)}


def test_wrong_arguments(node: Run) -> None:
    said = node(
        f"""
        const t = await Tokenizer.fromGGUF(given), said = [], half = t.incremental();
        half.append("\\ud83d");
        for (const append of [null, new Uint8Array(1)]) {{
            try {{ half.append(append); said.push(null); }} catch (error) {{ said.push(error.message); }}
        }}
        const calls = [() => t.encode(1), () => t.piece(-1), () => t.tokenText(10 ** 6), () => t.decode([-1])];
        for (const ids of [15496, Promise.resolve([15496]), undefined]) calls.push(() => t.decode(ids));
        for (const call of calls) {{
            try {{ call(); said.push(null); }} catch (error) {{ said.push(({CAUGHT})(error)); }}
        }}
        said.push(await Tokenizer.fromGGUF(7).catch({CAUGHT}));
        return said;
        """,
        str(GPT2),
    )
    assert said[:2] == ["a text is a string or a Uint8Array", "bytes cannot follow half of a surrogate pair"]
    assert [each and (each.get("code") or each["name"]) for each in said[2:]] == [
        "TypeError",
        "NO_SUCH_ID",
        "NO_SUCH_ID",
        "NO_SUCH_ID",
        *["TypeError"] * 4,
    ]


def test_ids_that_no_token_has(node: Run) -> None:
    found = node(
        """
        const t = await Tokenizer.fromGGUF(given);
        return [-1, t.vocabularySize].map((id) => [t.attributes(id), t.isEndOfGeneration(id)]);
        """,
        str(GPT2),
    )
    assert found == [[[], False], [[], False]]


def test_memory_is_freed_with_the_tokenizers(node: Run) -> None:
    held = node(
        """
        for (let i = 0; i < 60; ++i) {
            (await Tokenizer.fromGGUF(given)).incremental().append("Hello world");
            if (i % 10 === 9) { await new Promise((done) => setTimeout(done)); gc(); }
        }
        return process.memoryUsage().external + process.memoryUsage().arrayBuffers;
        """,
        str(GPT2),
    )
    assert held < 60 * 8 * MEGABYTE


def test_types_name_what_there_is(node: Run) -> None:
    """Each class in index.d.ts has the members that it has in JavaScript."""
    declared = {}
    types = re.sub(r"/\*\*.*?\*/", "", (PACKAGE / "index.d.ts").read_text(), flags=re.DOTALL)
    for name, body in re.findall(r"^export class (\w+)[^{]*\{(.*?)^\}", types, re.MULTILINE | re.DOTALL):
        members = re.findall(r"^  (?:static |readonly )*(\w+)[(:]", body, re.MULTILINE)
        declared[name] = sorted(set(members) - {"private", "constructor"})
    found = node(
        """
        const tokenizer = await Tokenizer.fromGGUF(given.path), made = {
            Tokenizer: tokenizer, IncrementalEncoding: tokenizer.incremental(), DecodeStream: tokenizer.decodeStream(),
            TokenizerError: await Tokenizer.fromGGUF(new Uint8Array()).catch((error) => error),
        };
        return Object.fromEntries(Object.entries(made).map(([name, object]) => [name, [
            ...Object.getOwnPropertyNames(object), ...Object.getOwnPropertyNames(Object.getPrototypeOf(object)),
            ...(name === "Tokenizer" ? ["fromGGUF"] : []),
        ].filter((each) => !each.startsWith("_") && !given.inherited.includes(each)).sort()]));
        """,
        {"path": str(GPT2), "inherited": ["constructor", "name", "message", "stack", "cause"]},
    )
    assert found == declared
    exported = node(f"return Object.keys(await import({json.dumps((PACKAGE / 'index.js').as_uri())}));", {})
    assert set(exported) == set(declared)


@pytest.mark.parametrize(
    ("id", "named"),
    [
        ("undefined", "undefined (undefined)"),
        ("NaN", "NaN (number)"),
        ("1.5", "1.5 (number)"),
        ("2 ** 32", "4294967296 (number)"),
        ("1n", "1 (bigint)"),  # as in the tensors of transformers.js
        ("'1'", "1 (string)"),
    ],
)
def test_what_is_no_id_is_refused(node: Run, id: str, named: str) -> None:
    found = node(
        f"""
        const tokenizer = await Tokenizer.fromGGUF(given.path), stream = tokenizer.decodeStream();
        const calls = [(id) => tokenizer.decode([id]), (id) => tokenizer.piece(id), (id) => tokenizer.tokenText(id),
            (id) => tokenizer.attributes(id), (id) => tokenizer.isEndOfGeneration(id), (id) => stream.push(id)];
        return calls.map((call) => {{
            try {{ call({id}); return "no error"; }} catch (error) {{ return String(error); }}
        }});
        """,
        {"path": str(GPT2)},
    )
    assert found == [f"TypeError: an id is a whole number of 32 bits, not {named}"] * 6


def test_types_compile() -> None:
    compiler = shutil.which("tsc")
    if compiler is None:
        missing("the TypeScript compiler is not installed: apt-get install node-typescript")
    options = (
        "--noEmit --strict --target es2022 --lib es2022,dom --module nodenext --moduleResolution nodenext"
    )
    done = subprocess.run(
        [compiler, *options.split(), str(HELPERS / "types.mts")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_version_is_that_of_the_python_package() -> None:
    import ggufbpe

    assert json.loads((PACKAGE / "package.json").read_text())["version"] == ggufbpe.__version__
