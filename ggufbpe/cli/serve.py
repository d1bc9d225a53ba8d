"""`ggufbpe serve`: the tokenizer APIs of llama-server, vLLM and Ollama, from metadata alone."""

from __future__ import annotations

import argparse
import errno
import os
import re
import threading

from .._util.errors import printable
from .._util.extras import imported
from .._util.processors import processors
from ..gguf.reader import GGUFFile
from ..hub.model_location import ModelName, locate
from . import EXIT_INTERRUPTED, _output
from ._arguments import Parser, UsageError, overrides_of
from ._chat import check_media, warn_of_mismatch
from ._given_models import located, model_paths, models_of
from ._input import read_file
from ._llama_flags import INSTEAD

_MEGABYTE = 1 << 20
_MOMENT = 0.1  # seconds


def add_arguments(parser: Parser) -> None:
    parser.instead = INSTEAD
    parser.add_models("may be repeated; NAME=PATH gives a model a name")
    _add_access(parser)
    _add_limits(parser)
    parser.add_argument(
        "--mmproj",
        metavar="FILE",
        help="count images and audio in chats of the first model with this projector",
    )
    parser.add_argument(
        "--media-path",
        metavar="DIR",
        help="the folder of images and audio that requests may name by file:// (default: none)",
    )
    parser.add_switch("--log-requests", help="log every request, not only refused ones")


def _add_access(parser: Parser) -> None:
    """Where to listen, and who has access."""
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_number(
        "--port", default=8080, metavar="PORT", help="the port (default: 8080); 0 chooses a free one"
    )
    keys = "comma-separated keys; a request must have one as Authorization: Bearer KEY or X-Api-Key: KEY"
    parser.add_repeated("--api-key", metavar="KEYS", help=keys)
    parser.add_repeated(
        "--api-key-file",
        metavar="FILE",
        help="a file of keys, one per line; lines that begin with # are comments",
    )
    parser.add_repeated(
        "--allowed-host",
        type=_host_name,
        metavar="NAME",
        help="another name of this server, such as tokens.example.org; it is valid with every port",
    )
    parser.add_repeated(
        "--allowed-origin",
        type=_origin,
        metavar="ORIGIN",
        help="an origin whose pages may send requests, such as https://example.org; '*' allows every page",
    )


def _add_limits(parser: Parser) -> None:
    """Limits on size, concurrency and time."""
    parser.add_number("--threads", type=_positive, help="threads (default: the number of processors)")
    parser.add_number("--workers", type=_positive, default=1, help="worker processes (default: 1)")
    parser.add_number("--models-max", type=_positive, default=8, help="models kept open (default: 8)")
    parser.add_number(
        "--max-body",
        type=_positive,
        default=16,
        metavar="MB",
        help="the largest request in megabytes (default: 16)",
    )
    parser.add_number(
        "--max-waiting",
        type=_positive,
        default=256,
        help="requests that may wait for a thread (default: 256); further ones get 429",
    )
    parser.add_number(
        "--timeout",
        type=_positive,
        default=60,
        metavar="SECONDS",
        help="the time for an answer (default: 60), after which it is 503",
    )
    parser.add_number(
        "--template-timeout",
        type=_positive,
        default=5,
        metavar="SECONDS",
        help="the processor time for the chat templates of a request (default: 5), after which it gets 400",
    )
    parser.add_number(
        "--read-timeout",
        type=_positive,
        default=20,
        metavar="SECONDS",
        help="the time for a request to arrive with its body (default: 20), after which it gets 408",
    )


def run(arguments: argparse.Namespace) -> int:
    for module in ("uvicorn", "httptools", "starlette", "orjson", "prometheus_client", "jinja2"):
        imported(module, "serve", "a server")
    from ..server.guard import is_loopback
    from ..server.run import serve
    from ..server.settings import Settings

    keys = [key for given in arguments.api_key for key in given.split(",")]
    keys += [key for file in arguments.api_key_file for key in _keys_in(file)]
    keys = [stripped for key in keys if (stripped := key.strip())]  # as the values of headers
    if (arguments.api_key or arguments.api_key_file) and not keys:
        raise UsageError("--api-key and --api-key-file contain no key")
    _check_process(arguments)
    models = _models(arguments)
    for model in models.values():
        GGUFFile(locate(model).opened()).close()  # reports a missing file now
    check_media(arguments)
    if arguments.mmproj is not None:
        from ..chat.media.mmproj import Mmproj

        Mmproj.from_file(arguments.mmproj)  # likewise
        warn_of_mismatch(arguments.mmproj, next(iter(models.values())))
    settings = Settings(
        models={name: os.fspath(model) for name, model in models.items()},
        overrides=overrides_of(arguments),
        mmproj=arguments.mmproj,
        media_path=arguments.media_path,
        host=arguments.host,
        port=arguments.port,
        workers=arguments.workers,
        threads=arguments.threads or processors(),
        most_open=arguments.models_max,
        api_keys=tuple(keys),
        allowed_hosts=tuple(arguments.allowed_host),
        allowed_origins=tuple(arguments.allowed_origin),
        most_body=arguments.max_body * _MEGABYTE,
        most_waiting=arguments.max_waiting,
        timeout=arguments.timeout,
        template_timeout=arguments.template_timeout,
        read_timeout=arguments.read_timeout,
        logs_requests=arguments.log_requests,
    )
    if not is_loopback(settings.host) and not keys:
        _output.warning("other machines can reach this server, and it asks for no --api-key")
    try:
        serve(settings, lambda address: _output.note(f"ggufbpe: listening at {address}"))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"port {settings.port} is already in use, maybe by another server; "
                "choose another with --port, or a free one with --port 0"
            ) from None
        raise
    except KeyboardInterrupt:
        _end_if_a_thread_works(EXIT_INTERRUPTED)
        raise
    _end_if_a_thread_works(0)
    return 0


def _end_if_a_thread_works(code: int) -> None:
    """End the process if a thread of the server is at work: Python would wait for it, and its client is gone."""
    for thread in threading.enumerate():
        if thread.name.startswith("ggufbpe_"):  # those of server/worker_threads.py
            thread.join(_MOMENT)  # one that is idle ends at once
            if thread.is_alive():
                _output.flush()
                os._exit(code)


def _check_process(arguments: argparse.Namespace) -> None:
    from ..server.run import check_workers

    if not 0 <= arguments.port < 1 << 16:
        raise UsageError(f"--port must be 0 to 65535, not {arguments.port}")
    if "/" in arguments.host or arguments.host.endswith(".sock"):
        raise UsageError("--host takes an address or a name; Unix sockets are not supported")
    try:
        check_workers(arguments.workers)
    except ValueError as error:
        raise UsageError(f"--{error}") from None


def _models(arguments: argparse.Namespace) -> dict[str, ModelName]:
    """The models by the names that requests use."""
    from ..server.served_models import named_models

    found = named_models(arguments.model, lambda model: located(arguments, model))
    others = models_of(arguments, ()) if found else model_paths(arguments)
    by_path = {os.fspath(model): model for model in others}
    return {**found, **named_models(list(by_path), by_path.__getitem__)}


def _keys_in(path: str) -> list[str]:
    lines = read_file(path).decode("utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def _positive(text: str) -> int:
    """A number of 1 or more. The error goes behind the name of the flag."""
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of 1 or more, not {printable(text)}")
    return number


def _host_name(text: str) -> str:
    """A name as `Host` has it, without its port. The error goes behind the name of the flag."""
    if not re.fullmatch(r"[A-Za-z0-9._-]+", text):
        raise argparse.ArgumentTypeError(
            "must be a bare name such as tokens.example.org, without http://, path or port (every port is allowed), "
            f"not {printable(text)}"
        )
    return text


def _origin(text: str) -> str:
    """An origin, or "*" for all of them. The error goes behind the name of the flag."""
    if text != "*" and not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]+/?", text):
        raise argparse.ArgumentTypeError(
            f"must be an origin such as https://example.org, or '*' for every page, not {printable(text)}"
        )
    return text
