"""Attacks `ggufbpe serve` on this machine: each answer must be clear, and an ordinary chat must still be answered soon.

    python scripts/attack_server.py [--seconds 240] [--seed 1]      # `.ci/run` takes --seconds 40

Starts a server with a key, one ordinary model and one with a hostile chat template, and attacks it in phases: heads
that smuggle headers and requests, hosts, keys and trailers; bodies that are deep, large or no JSON; pipelined and
mutated requests; clients that are slow or hang up; hostile templates, patterns and schemas; and Ctrl-C amid it all.

An answer is clear if it has one of the statuses that its request may get and, from 400 on, its reason as JSON. Nothing
may be answered with 500, except that a hostile template of a model cannot be used, and nothing may stay unanswered.
During each phase, a client asks for an ordinary chat again and again, and another whether the server runs: half of
these must be answered within `USUAL` seconds more than without an attack, and each within `WORST`. Exit code 1 if
anything of this fails; the same seed asks the same questions.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from reference import ROOT

sys.path.insert(0, str(ROOT / "tests" / "makers"))

from hostile_templates import HOSTILE

from ggufbpe.gguf.constants import GGUFValueType
from ggufbpe.gguf.edit import Edit, write_edited
from ggufbpe.server.endpoints import ENDPOINTS

GPT2 = ROOT / "ggufbpe" / "models" / "gpt2.gguf"
READ_TIMEOUT = 5  # seconds, of the server
PATIENCE = 90  # seconds, after which a client counts an answer as missing
USUAL, WORST = 1.0, 5.0  # seconds that an ordinary chat may take longer than without an attack
STOPPED_WITHIN = 40  # seconds from Ctrl-C to the end of the process
ATTACKERS = 12
TURNS = [{"role": ("user", "assistant")[number % 2], "content": f"Message {number}."} for number in range(21)]
CHAT = {"messages": TURNS, "model": "ordinary"}
QUESTION = {"messages": [{"role": "user", "content": "Hi"}]}
KEY = "x-api-key: secret"
UNANSWERED = 0  # in place of a status: the server hung up, or the client did
FINE, REFUSED = frozenset({200}), frozenset({400})
BUSY = frozenset({429, 503})
# the examples of the addresses that take a body, whose models are those of this server, and one that needs weights
EXAMPLES = {
    path: [
        {**example, **{name: ["ordinary", "ordinary"] for name in ("models", "others") if name in example}}
        for example in endpoint.examples
    ]
    for (method, path), endpoint in ENDPOINTS.items()
    if method == "POST"
} | {"/v1/chat/completions": [QUESTION]}


class Attack(NamedTuple):
    """What is sent, in parts with pauses; the statuses that the first answer may have; when the client hangs up."""

    name: str
    parts: tuple[bytes, ...]
    statuses: frozenset[int]
    pause: float = 0.0
    leaves_after: float | None = None


@dataclass
class Findings:
    """What the attacks found."""

    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    chats: list[float] = field(default_factory=list)  # seconds until ordinary chats were answered
    health: list[float] = field(default_factory=list)


def head(
    path: str, *headers: str, method: str = "POST", host: str | None = "localhost", key: str = KEY
) -> bytes:
    """The head of a request."""
    lines = [f"{method} {path} HTTP/1.1", *([f"host: {host}"] if host is not None else []), key, *headers]
    return "".join(f"{line}\r\n" for line in lines if line).encode("latin-1") + b"\r\n"


def post(path: str, body: bytes | dict[str, Any], *headers: str, **more: Any) -> bytes:
    """A whole request."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return head(path, f"content-length: {len(data)}", *headers, **more) + data


# ---- the attacks ----------------------------------------------------------------------------------------

BODY = b'{"content": "Hello"}'
CHUNKED = b"%x\r\n%s\r\n0\r\n" % (len(BODY), BODY)


def heads() -> list[Attack]:
    """Heads that want to be let in, or to be read in two ways."""
    chunks = "transfer-encoding: chunked"
    length = f"content-length: {len(BODY)}"
    found: list[tuple[str, bytes, set[int]]] = [
        (
            "a key in a trailer",
            head("/tokenize", chunks, key="") + CHUNKED + b"x-api-key: secret\r\n\r\n",
            {401},
        ),
        (
            "a bearer in a trailer",
            head("/tokenize", chunks, key="") + CHUNKED + b"authorization: Bearer secret\r\n\r\n",
            {401},
        ),
        (
            "a host in a trailer",
            head("/tokenize", chunks, host="evil.example") + CHUNKED + b"host: localhost\r\n\r\n",
            {403},
        ),
        (
            "a length in a trailer",
            head("/tokenize", chunks) + CHUNKED + b"content-length: 5\r\n\r\n",
            {200, 400},
        ),
        ("many trailers", head("/tokenize", chunks) + CHUNKED + b"x: a\r\n" * 20_000 + b"\r\n", {200, 431}),
        ("two hosts", post("/tokenize", BODY, "host: localhost"), {400}),
        ("two other hosts", post("/tokenize", BODY, "host: evil.example"), {400}),
        ("no host", post("/tokenize", BODY, host=None), {400}),
        ("a length and chunks", head("/tokenize", length, chunks) + CHUNKED + b"\r\n", {400}),
        ("chunks and a length", head("/tokenize", chunks, length) + CHUNKED + b"\r\n", {400}),
        ("two lengths", post("/tokenize", BODY, "content-length: 5"), {400}),
        ("two equal lengths", post("/tokenize", BODY, length), {400}),
        ("a signed length", head("/tokenize", f"content-length: +{len(BODY)}") + BODY, {400}),
        ("a list of lengths", head("/tokenize", f"content-length: {len(BODY)}, {len(BODY)}") + BODY, {400}),
        ("a hexadecimal length", head("/tokenize", "content-length: 0x14") + BODY, {400}),
        ("a length beyond 64 bits", head("/tokenize", "content-length: 99999999999999999999") + BODY, {400}),
        ("a long length", head("/tokenize", "content-length: 1099511627776") + BODY, {413}),
        (
            "chunks of another kind",
            head("/tokenize", "transfer-encoding: xchunked") + CHUNKED + b"\r\n",
            {400},
        ),
        (
            "compressed chunks",
            head("/tokenize", "transfer-encoding: gzip, chunked") + CHUNKED + b"\r\n",
            {501},
        ),
        ("chunks, then none", head("/tokenize", "transfer-encoding: chunked, identity") + BODY, {400}),
        (
            "chunks behind a tab",
            head("/tokenize", "transfer-encoding:\tchunked") + CHUNKED + b"\r\n",
            {200, 400},
        ),
        (
            "chunks behind a space",
            head("/tokenize", "transfer-encoding : chunked") + CHUNKED + b"\r\n",
            {400},
        ),
        ("a chunk beyond 64 bits", head("/tokenize", chunks) + b"fffffffffffffffff\r\n" + BODY, {400}),
        ("a signed chunk", head("/tokenize", chunks) + b"-5\r\n" + BODY, {400}),
        ("a chunk that is too long", head("/tokenize", chunks) + b"5\r\nHello world\r\n0\r\n\r\n", {400}),
        ("a folded header", head("/tokenize", f"x: a\r\n {KEY}", length, key="") + BODY, {400, 401}),
        (
            "a key behind a bare line feed",
            head("/tokenize", f"x: a\n{KEY}", length, key="") + BODY,
            {400, 401},
        ),
        ("a key behind a bare return", head("/tokenize", f"x: a\r{KEY}", length, key="") + BODY, {400, 401}),
        ("NUL in a header", head("/tokenize", "x: a\0b", length) + BODY, {400}),
        ("NUL in a name", head("/tokenize", "x\0: a", length) + BODY, {400}),
        ("an empty name", head("/tokenize", ": a", length) + BODY, {400}),
        ("no colon", head("/tokenize", "x", length) + BODY, {400}),
        ("an unknown method", head("/tokenize", length, method="HELLO") + BODY, {400}),
        ("an address of a proxy", head("http://localhost/tokenize", length) + BODY, {200, 400, 404}),
        ("a tunnel", head("localhost:80", method="CONNECT"), {400, 404, 405}),
        ("HTTP/0.9", b"GET /health\r\n\r\n", {400}),
        ("HTTP/3", head("/health", method="GET").replace(b"HTTP/1.1", b"HTTP/3.0"), {400}),
        ("HTTP/2 without asking", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400}),
        ("an upgrade", head("/health", "upgrade: websocket", "connection: upgrade", method="GET"), {400}),
        ("TLS", bytes.fromhex("16030100a5010000a10303") + b"\0" * 100, {400}),
        ("a head of a megabyte", b"GET / HTTP/1.1\r\nx: " + b"a" * 1_000_000, {431}),
        ("a million headers", b"GET / HTTP/1.1\r\n" + b"x: a\r\n" * 100_000, {431}),
        ("an address of a megabyte", b"GET /" + b"a" * 1_000_000, {431}),
        ("an address that goes up", head("/../../etc/passwd", method="GET"), {404}),
        ("an address with percent signs", head("/%2e%2e/%00%ff", method="GET"), {404, 400}),
        ("an address that is none", head("//[::1/x", method="GET"), {400, 404}),
        ("an expectation", head("/tokenize", length, "expect: 200-ok") + BODY, {200, 417}),
        ("a model by its path", head(f"/props?model={GPT2}", method="GET"), {400}),
        ("an origin", post("/tokenize", BODY, "origin: https://evil.example"), {403}),
        ("a request of another site", post("/tokenize", BODY, "sec-fetch-site: cross-site"), {403}),
    ]
    for host in (
        "evil.example",
        "[::1].evil.example",
        "127.0.0.1:evil.example",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "localhost.evil.example:80",
        "[::1%evil.example]",
        "127.0.0.1:80:80",
        "",
        "\xe4",
        "a" * 10_000,
    ):
        found.append((f"the host {host[:40]!r}", post("/tokenize", BODY, host=host), {403, 400}))
    for host in ("127.0.0.1", "[::1]:80", "LOCALHOST:1", "192.168.0.1", "localhost "):
        found.append((f"the host {host!r}", post("/tokenize", BODY, host=host), {200}))
    for key in (
        "",
        "x-api-key: secre",
        "x-api-key: secret2",
        "x-api-key: ",
        "authorization: secretsecret",
        "authorization: Bearer",
        "authorization: Basic c2VjcmV0",
        "authorization: Bearer secret, Bearer other",
        f"x-api-key: {'secret' * 1000}",
        "x-api-key: s\xe4cret",
        "cookie: x-api-key=secret",
    ):
        found.append((f"the key {key[:40]!r}", post("/tokenize", BODY, key=key), {401}))
        found.append((f"nothing with {key[:40]!r}", head("/nothing", method="GET", key=key), {401}))
    for key in (
        "authorization: bearer secret",
        "authorization: BEARER  secret ",
        "X-API-KEY: secret\t",
        "authorization: Basic x\r\nx-api-key: secret",
        "authorization: Bearer secret\r\nx-api-key: other",
    ):
        found.append((f"the key {key!r}", post("/tokenize", BODY, key=key), {200}))
    return [Attack(name, (data,), frozenset(statuses)) for name, data, statuses in found]


def bodies(dice: random.Random) -> list[Attack]:
    """Bodies that are deep, large, or no JSON, for all endpoints."""
    megabytes = 1 << 20
    depth = dice.choice((100, 254, 255, 1000, 1023, 1024, 1025, 100_000))
    deep = b"[" * depth + b"]" * depth
    objects = b'{"a":' * depth + b"1" + b"}" * depth
    values: list[tuple[str, bytes]] = [
        (f"nested {depth} deep", deep),
        (f"objects {depth} deep", objects),
        ("brackets that are never closed", b"[" * dice.randrange(1, 1_000_000)),
        ("a long number", b"1" * 1_000_000),
        ("a number beyond a double", b"1e400"),
        ("no number", b"NaN"),
        ("half a surrogate", b'"\\ud800"'),
        ("no UTF-8", b'"\xff"'),
        ("NUL", b'"\\u0000"'),
        ("a list of ids", b"[" + b"1," * 200_000 + b"1]"),
        ("ids that no token has", b"[-1, 99999999999, 1e30, -0.5]"),
        ("texts and ids", b'["a", 1, null, true, {}, []]'),
        ("other", dice.randbytes(1000)),
        ("nothing", b""),
        ("null", b"null"),
        ("a text of a megabyte", b'"' + b"a b " * (megabytes // 4) + b'"'),
        ("one long word", b'"' + b"a" * megabytes + b'"'),
        ("line breaks", b'"' + b"\\n" * 100_000 + b'"'),
    ]
    fields = ("content", "prompt", "messages", "tokens", "texts", "text", "ids", "input", "model", "models")
    found = []
    for name, value in values:
        path, key = dice.choice(list(EXAMPLES)), dice.choice(fields)
        statuses = {200, 400, 404, 413, 501}
        found.append((f"{name}: {path}", post(path, value), statuses))
        data = b'{"model": "ordinary", "%s": %s}' % (key.encode(), value)
        found.append((f"{name} as {key}: {path}", post(path, data), statuses))
        example = {**dice.choice(({}, QUESTION)), **dice.choice(EXAMPLES[path]), "model": "ordinary"}
        whole = json.dumps(example).encode()[:-1] + b', "tools": ' + value + b"}"
        found.append((f"{name} in a request: {path}", post(path, whole), statuses))
    bomb = dice.choice((b"{},", b"[],", b'"",', b'{"a":[]},', b'{"a":1},', b"1,", b"0.5,"))
    large = b"[" + bomb * ((15 * megabytes) // len(bomb)) + b"1]"
    found += [
        (f"15 MB of {bomb!r}", post("/tokenize", b'{"content": %s}' % large), {200, 400, 413, 503}),
        ("15 MB of text", post("/v1/count", b'{"texts": "%s"}' % (b"word " * (3 * megabytes))), {200, 503}),
        (
            "15 MB in chunks",
            head("/tokenize", "transfer-encoding: chunked") + b"100000\r\n" + b" " * megabytes,
            {408},
        ),
        ("more than 16 MB", post("/tokenize", b" " * (17 * megabytes)), {413, 503}),
        ("no body", head("/tokenize", "content-length: 100"), {408}),
        ("billing headers", _billing(megabytes), {200}),
    ]
    return [Attack(name, (data,), frozenset(statuses) | BUSY) for name, data, statuses in found]


def _billing(size: int) -> bytes:
    """Anthropic's billing header without its end, which the server looks for."""
    system = "x-anthropic-billing-header:" + "x" * (4 * size)
    return post("/v1/messages/count_tokens", {**QUESTION, "model": "ordinary", "system": system})


def rows(dice: random.Random) -> list[Attack]:
    """Pipelined requests, and requests with a few bytes changed."""
    sound = [
        post("/tokenize", BODY),
        post("/v1/count", {"texts": ["a"] * 100}),
        post("/apply-template", CHAT),
        head("/health", method="GET"),
        head("/v1/models", method="GET"),
        head("/props", method="OPTIONS"),
        head("/tokenize", "transfer-encoding: chunked") + CHUNKED + b"\r\n",
    ]
    any_of_them = (
        frozenset({UNANSWERED, 101, 200, 204, 400, 401, 403, 404, 405, 408, 413, 417, 431, 501}) | BUSY
    )
    found = []
    for _ in range(20):
        count = dice.choice((2, 10, 500))
        found.append(Attack("a row", (b"".join(dice.choices(sound, k=count)),), FINE | {404} | BUSY))
        found.append(
            Attack("a row with rubbish", (dice.choice(sound) * 3 + dice.randbytes(100),), any_of_them)
        )
    for _ in range(200):
        data = bytearray(dice.choice(sound))
        for _ in range(dice.randrange(1, 6)):
            at = dice.randrange(len(data))
            change = dice.choice((b"", dice.randbytes(1), b"\r\n", b"\0", b":", data[at : at + 20] * 2))
            data[at : at + dice.randrange(3)] = change
        found.append(Attack("a changed request", (bytes(data),), any_of_them))
    return found


def slow_clients(dice: random.Random) -> list[Attack]:
    """Clients that send or read byte by byte, stop in the middle, or leave."""
    whole = post("/tokenize", {"content": "Hello world " * 2000})
    answer = post("/tokenize", {"content": "a b " * 100_000, "with_pieces": True})
    asks = head("/tokenize", "expect: 100-continue", "content-length: 20")
    late = frozenset({200, 408})
    found = []
    for _ in range(30):
        cut = dice.randrange(1, len(whole))
        found += [
            Attack("a request that stops", (whole[:cut],), frozenset({408})),
            Attack("a request in two parts", (whole[:cut], whole[cut:]), late | BUSY, pause=1.0),
            Attack(
                "byte by byte", tuple(whole[at : at + 1] for at in range(60)), frozenset({408}), pause=0.2
            ),
            Attack("who leaves at once", (whole,), late | BUSY, leaves_after=0.0),
            Attack("who leaves early", (answer,), late | BUSY, leaves_after=0.05),
            Attack("who sends nothing", (b"",), frozenset({UNANSWERED, 408})),
            Attack("who waits to be asked", (asks,), late | {100}),
        ]
    return found


def templates(dice: random.Random) -> list[Attack]:
    """Hostile templates, patterns and schemas; half of the clients leave."""
    ended = REFUSED | BUSY
    found = []
    for name, source in HOSTILE.items():
        for text in (source, source + "{{ ''|title }}"):
            body = {**QUESTION, "chat_template": text, "model": "ordinary"}
            leaves = dice.choice((None, None, 0.2, 1.0))
            found.append(Attack(name, (post("/tokenize", body),), ended, leaves_after=leaves))
    many = [{"role": "user", "content": "Hi"}] * 20_000
    long = [{"role": "user", "content": "a b" * 1_000_000}]
    for name in dice.sample(sorted(HOSTILE), 12):
        for kind, messages in (("many messages", many), ("a long message", long)):
            body = {"messages": messages, "chat_template": HOSTILE[name], "model": "ordinary"}
            leaves = dice.choice((None, 2.0))
            found.append(Attack(f"{name}, {kind}", (post("/tokenize", body),), ended, leaves_after=leaves))
    for path in (
        "/apply-template",
        "/v1/diagnose",
        "/v1/explain",
        "/v1/tokens",
        "/v1/chat/completions/input_tokens",
    ):
        body = {**QUESTION, "model": "hostile", **({"ids": [1]} if path == "/v1/diagnose" else {})}
        statuses = ended | {500} | (FINE if path == "/v1/diagnose" else set())
        found.append(Attack(f"the model's template: {path}", (post(path, body),), statuses))
    found.append(
        Attack("the model's template: /props", (head("/props?model=hostile", method="GET"),), ended | {500})
    )
    found.append(
        Attack(
            "the model's template: /v1/diff",
            (post("/v1/diff", {"models": ["ordinary", "hostile"]}),),
            FINE | ended,
        )
    )
    for unit in (
        "{{a.b.c.d.e.f}}",
        "{%macro m()%}{%endmacro%}",
        "{%if x%}{%endif%}",
        "{%call a()%}{%endcall%}",
        "{#",
    ):
        source = (unit * (1 << 17))[: dice.choice((20_000, 100_000, 1 << 20))]
        body = {**QUESTION, "chat_template": source, "model": "ordinary"}
        found.append(Attack(f"a long template of {unit}", (post("/tokenize", body),), FINE | ended))
    loop: dict[str, Any] = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    schemas: list[tuple[str, Any]] = [
        ("a reference to itself", loop),
        ("a large enum", {"enum": list(range(100_000))}),
        (
            "many properties",
            {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(5000)}},
        ),
        ("a pattern of many", {"type": "string", "pattern": "^(a|b){1,1000000}$"}),
        ("a pattern in a pattern", {"type": "string", "pattern": "^" + "(" * 200 + "a" + ")*" * 200 + "$"}),
        ("a long pattern", {"type": "string", "pattern": "^" + "[a-z]+" * 20_000 + "$"}),
        ("alternatives in alternatives", {"anyOf": [{"anyOf": [{"type": "string"}] * 100}] * 100}),
        ("a length without end", {"type": "string", "minLength": 10**9, "maxLength": 10**18}),
        ("items without end", {"type": "array", "items": {"type": "string"}, "minItems": 10**9}),
    ]
    for name, schema in schemas:
        tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        for more in ({"json_schema": schema}, {"tools": [tool], "tool_choice": "required"}):
            body = {**QUESTION, "model": "ordinary", **more}
            found.append(Attack(name, (post("/apply-template", body),), FINE | ended))
    return found


PHASES: dict[str, Callable[[random.Random], list[Attack]]] = {
    "heads": lambda dice: heads(),
    "bodies": bodies,
    "rows": rows,
    "slow clients": slow_clients,
    "templates": templates,
}


# ---- the clients ----------------------------------------------------------------------------------------


async def exchange(port: int, attack: Attack) -> tuple[int, bytes]:
    """The status and body of the first answer; `UNANSWERED` without one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    answer = asyncio.create_task(read_answer(reader))
    try:
        for part in attack.parts:
            if answer.done():
                break
            writer.write(part)
            if attack.leaves_after is None:
                await asyncio.wait(
                    (answer, asyncio.create_task(drained(writer))), return_when=asyncio.FIRST_COMPLETED
                )
            await asyncio.sleep(attack.pause)
        if attack.leaves_after is not None:
            await asyncio.sleep(attack.leaves_after)
            return UNANSWERED, b""
        return await answer
    finally:
        answer.cancel()
        writer.transport.abort()


async def drained(writer: asyncio.StreamWriter) -> None:
    """Wait until the server has taken most of what was sent, or has hung up."""
    with contextlib.suppress(ConnectionError):
        await writer.drain()


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The status and body of an answer."""
    try:
        lines = await reader.readuntil(b"\r\n\r\n")
        length = lines.lower().partition(b"content-length:")[2].partition(b"\r")[0]
        return int(lines.split()[1]), await reader.readexactly(int(length)) if length else b""
    except (asyncio.IncompleteReadError, ConnectionError):
        return UNANSWERED, b""


def objection(attack: Attack, status: int, body: bytes) -> str | None:
    """What is wrong about an answer; None if it is clear."""
    if status == UNANSWERED:
        is_expected = attack.leaves_after is not None or status in attack.statuses
        return None if is_expected else "the server hung up without an answer"
    if status not in attack.statuses:
        return f"{status} {body[:200]!r}"
    if status >= 400:
        try:
            found = json.loads(body)["error"]
        except (ValueError, KeyError, TypeError):
            return f"{status} without a reason: {body[:200]!r}"
        if status == 500 and "chat template cannot be used" not in str(found):
            return f"500 {found}"
    return None


async def attacker(port: int, queue: list[Attack], end: float, findings: Findings) -> None:
    """Carry out one attack after the other, each at least once."""
    while queue and time.monotonic() < end:
        attack = queue.pop()
        try:
            status, body = await asyncio.wait_for(exchange(port, attack), PATIENCE)
        except (asyncio.TimeoutError, TimeoutError):
            findings.wrong.append(f"{attack.name}: no answer within {PATIENCE} seconds")
            continue
        findings.statuses[status] += 1
        said = objection(attack, status, body)
        if said is not None:
            findings.wrong.append(f"{attack.name}: {said}")


async def ask_ordinary_chat(port: int) -> float:
    """The seconds until an ordinary chat is answered."""
    return await seconds_until_answered(port, post("/v1/chat/completions/input_tokens", CHAT))


async def ask_health(port: int) -> float:
    """The seconds until the server says that it runs, for which it needs no thread."""
    return await seconds_until_answered(port, head("/health", method="GET"))


async def seconds_until_answered(port: int, request: bytes) -> float:
    begin = time.monotonic()
    status, body = await asyncio.wait_for(exchange(port, Attack("ordinary", (request,), FINE)), PATIENCE)
    if status != 200:
        raise AssertionError(f"an ordinary request is answered by {status} {body[:200]!r}")
    return time.monotonic() - begin


async def ordinary_client(
    ask: Callable[[int], Awaitable[float]],
    port: int,
    waits: list[float],
    wrong: list[str],
    stop: asyncio.Event,
) -> None:
    """Ask until the attack is over."""
    while not stop.is_set():
        try:
            waits.append(await ask(port))
        except (AssertionError, OSError, asyncio.TimeoutError, TimeoutError) as error:
            wrong.append(str(error) or "an ordinary request is not answered")
        await asyncio.sleep(0.05)


async def phase(name: str, attacks: list[Attack], port: int, seconds: float, idle: float) -> list[str]:
    """Attack in one way; what went wrong."""
    findings, stop = Findings(), asyncio.Event()
    count, begin = len(attacks), time.monotonic()
    ordinary = [
        asyncio.create_task(ordinary_client(ask, port, waits, findings.wrong, stop))
        for ask, waits in ((ask_ordinary_chat, findings.chats), (ask_health, findings.health))
    ]
    await asyncio.gather(*(attacker(port, attacks, begin + seconds, findings) for _ in range(ATTACKERS)))
    took = time.monotonic() - begin
    stop.set()
    await asyncio.gather(*ordinary)
    print(f"{name}: {count - len(attacks)} of {count} attacks in {took:.0f} s, by status", end=" ")
    print(dict(sorted(findings.statuses.items())))
    for what, waits in (("chats", findings.chats), ("health", findings.health)):
        usual, worst = statistics.median(waits), max(waits)
        print(
            f"    {what}: {len(waits)}, median {usual * 1000:.0f} ms, worst {worst * 1000:.0f} ms", flush=True
        )
        if usual > idle + USUAL or worst > idle + WORST:
            findings.wrong.append(
                f"{what} take {usual:.2f} s, at worst {worst:.2f} s; {idle:.3f} s without attack"
            )
    return [f"{name}: {each}" for each in findings.wrong]


async def attack_all(port: int, seconds: float, seed: int) -> list[str]:
    """All phases; what went wrong."""
    dice = random.Random(seed)
    await ask_ordinary_chat(port)
    idle = statistics.median([await ask_ordinary_chat(port) for _ in range(30)])
    print(f"without an attack, an ordinary chat takes {idle * 1000:.1f} ms", flush=True)
    wrong = []
    for name, make in PHASES.items():
        attacks = make(dice)
        dice.shuffle(attacks)
        wrong += await phase(name, attacks, port, seconds / len(PHASES), idle)
    after = statistics.median([await ask_ordinary_chat(port) for _ in range(30)])
    print(f"after all attacks, it takes {after * 1000:.1f} ms", flush=True)
    if after > 3 * idle + 0.1:
        wrong.append(f"after all attacks, an ordinary chat takes {after:.3f} s instead of {idle:.3f} s")
    return wrong


async def interrupt(port: int, process: subprocess.Popen[bytes], dice: random.Random) -> list[str]:
    """Ctrl-C while templates run; what went wrong."""
    attacks = [
        Attack(each.name, each.parts, each.statuses | {UNANSWERED})
        for each in dice.sample(templates(dice), ATTACKERS)
    ]
    waiting = [asyncio.create_task(exchange(port, each)) for each in attacks]
    await asyncio.sleep(0.5)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        code = await asyncio.to_thread(process.wait, STOPPED_WITHIN)
    except subprocess.TimeoutExpired:
        return [f"the server has not ended {STOPPED_WITHIN} seconds after Ctrl-C"]
    await asyncio.gather(*waiting, return_exceptions=True)
    print(f"Ctrl-C: ended after {time.monotonic() - begin:.1f} s with {code}", flush=True)
    return [] if code in (0, 130) else [f"the server ended with {code} after Ctrl-C"]


def memory(pid: int) -> int:
    """The most megabytes that a process has had."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024


def read(log: IO[bytes]) -> bytes:
    return os.pread(log.fileno(), 1 << 26, 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=240, help="for all phases together, at most")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # of writing to who has hung up
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        hostile = os.path.join(folder, "hostile.gguf")
        template = HOSTILE["a macro that calls itself twice"]
        write_edited(str(GPT2), hostile, [Edit("tokenizer.chat_template", GGUFValueType.STRING, template)])
        command = [
            sys.executable,
            "-m",
            "ggufbpe",
            "serve",
            "--port",
            "0",
            "--read-timeout",
            str(READ_TIMEOUT),
        ]
        command += ["--api-key", "secret", "-m", f"ordinary={GPT2}", "-m", f"hostile={hostile}"]
        process = subprocess.Popen(command, stderr=log)
        try:
            while b"\n" not in (told := read(log)) and process.poll() is None:
                time.sleep(0.1)
            port = int(told.partition(b"127.0.0.1:")[2].split()[0])
            wrong = asyncio.run(attack_all(port, arguments.seconds, arguments.seed))
            print(f"the server has had at most {memory(process.pid)} MB", flush=True)
            wrong += asyncio.run(interrupt(port, process, random.Random(arguments.seed)))
        finally:
            process.kill()
            process.wait()
        lines = read(log).decode("utf-8", "replace").splitlines()
    wrong += [f"log: {line[-1500:]}" for line in lines if "Traceback" in line or '"event": "failed"' in line]
    print("\n".join(wrong[:50]) or "all is well")
    if len(wrong) > 50:
        print(f"and {len(wrong) - 50} more")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
