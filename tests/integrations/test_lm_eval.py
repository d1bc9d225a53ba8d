"""lm-evaluation-harness with `tokenizer_backend=remote`: its own client talks to our server."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from conftest import GPT2
from integration_cases import DOCUMENT, END, TOK, library

utils = library("lm_eval.utils")
uvicorn = library("uvicorn")

from ggufbpe.server.app import Application  # noqa: E402 - after its library
from ggufbpe.server.settings import Settings  # noqa: E402


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


def test_its_client(address: str) -> None:
    assert utils.check_remote_tokenizer_support(address)
    client = utils.RemoteTokenizer(f"{address}/v1/completions")
    assert client.encode(DOCUMENT) == TOK.encode(DOCUMENT, add_special=False)
    assert client.decode(TOK.encode(DOCUMENT)) == DOCUMENT
    assert (client.bos_token, client.eos_token, client.pad_token) == ("<|endoftext|>", "<|endoftext|>", None)
    assert (client.bos_token_id, client.eos_token_id) == (END, END)
    assert "Hello" in client.apply_chat_template([{"role": "user", "content": "Hello"}])
