"""`ggufbpe serve`: ids over HTTP, as llama-server, vLLM and Ollama answer, from metadata alone."""

from __future__ import annotations

import argparse
import os

from ..by_name import ModelName, locate
from ..extras import imported
from ..gguf.reader import GGUFFile
from . import _output
from ._arguments import Parser, UsageError, add_models, located, model_paths, models_of, overrides_of
from ._input import read_file

_DESCRIPTION = """\
Answer over HTTP from models' metadata alone: /tokenize, /detokenize, /apply-template, /v1/models, /props and the \
counting of a chat's tokens as llama-server answers them, also /tokenize and /detokenize as vLLM; and /v1/explain, \
/v1/diff, /v1/diagnose and /v1/count. /docs lists all addresses, /openapi.json describes them, /metrics has numbers \
for Prometheus.

Where there are several models, the field "model" of a request names one, by the name of its file without suffix or by \
NAME of -m NAME=PATH; the first is the default. A model is opened when it is first asked for.

Only this machine is listened to unless --host says otherwise, and requests that pages of other origins make a browser \
send are refused. The log is lines of JSON on standard error, and has no texts. SIGTERM ends the server after what was \
begun is answered."""
_EXAMPLES = """\
examples:
  ggufbpe serve -m model.gguf
  ggufbpe serve -m model.gguf -m chat=other.gguf --port 8081 --log-requests
  ggufbpe serve -m model.gguf --host 0.0.0.0 --api-key-file keys.txt --allowed-host tokens.example.org
  curl http://localhost:8080/tokenize -d '{"content": "Hello world", "with_pieces": true}'
  curl http://localhost:8080/v1/messages/count_tokens -d '{"messages": [{"role": "user", "content": "Hi"}]}'"""

_MEGABYTE = 1 << 20


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    add_models(parser, "several are several models; NAME=PATH names one")
    _add_access(parser)
    _add_limits(parser)
    parser.add_argument(
        "--log-requests", action="store_true", help="log each request, not only those refused"
    )


def _add_access(parser: Parser) -> None:
    """Where to listen, and who may ask."""
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (default: 127.0.0.1)")
    parser.add_argument(
        "--port",
        type=int,
        default=8080,
        help="the port (default: 8080); 0 is one that is free, which is told",
    )
    keys = (
        "comma-separated keys, of which a request must bring one as Authorization: Bearer KEY, or X-Api-Key"
    )
    parser.add_argument("--api-key", action="append", default=[], metavar="KEYS", help=keys)
    parser.add_argument(
        "--api-key-file",
        action="append",
        default=[],
        metavar="FILE",
        help="the same in a file, one a line, without those that begin with #",
    )
    parser.add_argument(
        "--allowed-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name that the server goes by, too",
    )
    parser.add_argument(
        "--allowed-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="an origin whose pages may ask, such as https://example.org",
    )


def _add_limits(parser: Parser) -> None:
    """How much may be done at once, and for how long."""
    parser.add_argument(
        "--threads", type=_positive, default=None, metavar="N", help="that encode (default: the processors)"
    )
    parser.add_argument("--workers", type=_positive, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument(
        "--models-max", type=_positive, default=8, metavar="N", help="models that stay open (default: 8)"
    )
    parser.add_argument(
        "--max-body", type=_positive, default=16, metavar="MB", help="megabytes of a request (default: 16)"
    )
    parser.add_argument(
        "--max-waiting",
        type=_positive,
        default=256,
        metavar="N",
        help="requests that may wait for a thread (default: 256); more are answered 429",
    )
    parser.add_argument(
        "--timeout",
        type=_positive,
        default=60,
        metavar="SECONDS",
        help="of an answer (default: 60); then 503",
    )
    parser.add_argument(
        "--read-timeout",
        type=_positive,
        default=20,
        metavar="SECONDS",
        help="until a request is there with its body (default: 20); then 408",
    )


def run(arguments: argparse.Namespace) -> int:
    for module in ("uvicorn", "httptools", "starlette", "orjson", "prometheus_client", "jinja2"):
        imported(module, "serve", "a server")
    from ..server.guard import is_loopback
    from ..server.run import serve
    from ..server.settings import Settings

    keys = tuple(key for given in arguments.api_key for key in given.split(",") if key)
    keys += tuple(key for file in arguments.api_key_file for key in _keys_in(file))
    if (arguments.api_key or arguments.api_key_file) and not keys:
        raise UsageError("--api-key and --api-key-file give no key")
    if not 0 <= arguments.port < 1 << 16:
        raise UsageError(f"--port is 0 to 65535, not {arguments.port}")
    models = _models(arguments)
    for model in models.values():
        GGUFFile(locate(model).opened()).close()  # one that is not there is said now
    settings = Settings(
        models={name: os.fspath(model) for name, model in models.items()},
        overrides=overrides_of(arguments),
        host=arguments.host,
        port=arguments.port,
        workers=arguments.workers,
        threads=arguments.threads or os.cpu_count() or 1,
        most_open=arguments.models_max,
        api_keys=keys,
        allowed_hosts=tuple(arguments.allowed_host),
        allowed_origins=tuple(arguments.allowed_origin),
        most_body=arguments.max_body * _MEGABYTE,
        most_waiting=arguments.max_waiting,
        timeout=arguments.timeout,
        read_timeout=arguments.read_timeout,
        logs_requests=arguments.log_requests,
    )
    if not is_loopback(settings.host) and not keys:
        _output.warning("others can reach this server, and no --api-key is asked of them")
    serve(settings, lambda address: _output.note(f"ggufbpe: listening at {address}"))
    return 0


def _models(arguments: argparse.Namespace) -> dict[str, ModelName]:
    """The models by what requests call them."""
    from ..server.models import named_models

    found = named_models(arguments.model, lambda model: located(arguments, model))
    others = models_of(arguments, ()) if found else model_paths(arguments)
    by_path = {os.fspath(model): model for model in others}
    return {**found, **named_models(list(by_path), by_path.__getitem__)}


def _keys_in(path: str) -> list[str]:
    lines = read_file(path).decode("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number
