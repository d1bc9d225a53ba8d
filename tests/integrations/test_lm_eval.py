"""lm-evaluation-harness: its model `local-completions` sends our ids, by the ways that docs/integrations.md gives."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, ROOT
from integration_cases import DOCUMENT, END, TOK, library

import ggufbpe
from ggufbpe import Tokenizer

utils = library("lm_eval.utils")
completions = library("lm_eval.models.openai_completions")
instances = library("lm_eval.api.instance")
uvicorn = library("uvicorn")

from ggufbpe.server.app import Application  # noqa: E402 - after its library
from ggufbpe.server.settings import Settings  # noqa: E402

PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
SPM = ROOT / ".cache" / "vocabs" / "ggml-vocab-llama-spm.gguf"
TOKENIZER_PATHS = ("/tokenizer_info", "/tokenize", "/detokenize")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a server with GPT-2's vocabulary, in a thread."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(Application(Settings({"gpt2": str(GPT2)})), port=port, log_level="error")
    )
    running = threading.Thread(target=server.run)
    running.start()
    while not server.started:
        assert running.is_alive()
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    running.join()


class Completions(ThreadingHTTPServer):
    """A model that gives the token `id` the log-probability -id, behind a proxy to the server of `tokenizer`."""

    def __init__(self, tokenizer: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.tokenizer = tokenizer
        self.prompts: list[list[int]] = []
        self.url = f"http://127.0.0.1:{self.server_port}/v1/completions"

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        self.prompts += body["prompt"]
        return {"choices": [choice(*each) for each in enumerate(body["prompt"])]}


def choice(index: int, prompt: list[int]) -> dict[str, Any]:
    ids = [*prompt, 0]  # and the one that is generated
    chances = [-float(each) for each in ids]
    tops = [{"best": each} for each in chances]
    return {"index": index, "text": " there", "logprobs": {"token_logprobs": chances, "top_logprobs": tops}}


class Handler(BaseHTTPRequestHandler):
    server: Completions

    def do_GET(self) -> None:
        self.reply(None)

    def do_POST(self) -> None:
        self.reply(self.rfile.read(int(self.headers["Content-Length"])))

    def reply(self, body: bytes | None) -> None:
        if self.path in TOKENIZER_PATHS:
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(self.server.tokenizer + self.path, body, headers)
            with urllib.request.urlopen(request) as response:
                data = response.read()
        else:
            assert self.path == "/v1/completions"
            data = json.dumps(self.server.answer(json.loads(body or b""))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Write nothing."""


@pytest.fixture
def model(address: str) -> Iterator[Completions]:
    with Completions(address) as server:
        running = threading.Thread(target=server.serve_forever)
        running.start()
        yield server
        server.shutdown()
        running.join()


def asked(harness: Any, kind: str, *arguments: Any) -> Any:
    """The harness's result for one request."""
    request = instances.Instance(request_type=kind, doc={}, arguments=arguments, idx=0)
    return getattr(harness, kind)([request])[0]


@pytest.mark.parametrize("path", [GPT2, SPM], ids=["gpt2", "llama-spm"])
@pytest.mark.parametrize("adds_bos", [False, True])
def test_an_exported_tokenizer_json(path: Path, adds_bos: bool, tmp_path: Path, model: Completions) -> None:
    """With the arguments that the page gives."""
    if not path.exists():
        pytest.skip(f"{path.name} is fetched by scripts/reference.py prepare")
    ggufbpe.export(path, to="tokenizer.json", check=False).save(tmp_path)
    given = re.search(r"--model_args (\S+)$", PAGE, re.MULTILINE)
    assert given is not None
    arguments = utils.simple_parse_args_string(given[1])
    arguments |= {"base_url": model.url, "tokenizer": str(tmp_path), "add_bos_token": adds_bos}
    harness = completions.LocalCompletionsAPI(**arguments)
    tok = Tokenizer.from_gguf(path)
    whole, first = (tok.encode(text, add_special=adds_bos) for text in ("Hello world", "Hello"))
    assert asked(harness, "loglikelihood", "Hello", " world") == (-sum(whole[len(first) :]), True)
    assert asked(harness, "generate_until", "Hello world", {"until": ["\n"]}) == " there"
    assert model.prompts == [whole, whole]
    assert (harness.prefix_token_id, harness.eot_token_id) == (tok.bos_id, tok.eos_id)


@pytest.mark.parametrize("backend", ["remote", "auto"])
def test_one_address_for_completions_and_our_server(backend: str, model: Completions) -> None:
    """A proxy gives requests about ids to ours."""
    harness = completions.LocalCompletionsAPI(base_url=model.url, model="m", tokenizer_backend=backend)
    assert asked(harness, "loglikelihood", "Hello", " world") == (-995.0, True)
    assert asked(harness, "generate_until", "Hello world", {"until": ["\n"]}) == " there"
    assert model.prompts == [[15496, 995], [15496, 995]]


def test_its_client(address: str) -> None:
    assert utils.check_remote_tokenizer_support(address)
    client = utils.RemoteTokenizer(f"{address}/v1/completions")
    assert client.encode(DOCUMENT) == TOK.encode(DOCUMENT, add_special=False)
    assert client.decode(TOK.encode(DOCUMENT)) == DOCUMENT
    assert (client.bos_token, client.eos_token, client.pad_token) == ("<|endoftext|>", "<|endoftext|>", None)
    assert (client.bos_token_id, client.eos_token_id) == (END, END)
    assert "Hello" in client.apply_chat_template([{"role": "user", "content": "Hello"}])
