"""What a server is started with: plain data, so that it can be handed to other processes.

cli/serve.py -> [this file] -> run.py, app.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Settings:
    """The models by name, where to listen, who may ask, and the limits. Times are in seconds, sizes in bytes."""

    models: Mapping[str, str]  # name: path
    overrides: Mapping[str, Any] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1  # processes
    threads: int = 2  # that encode, in each process
    most_open: int = 8  # models
    api_keys: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()  # names of this server beside those of the loopback
    allowed_origins: tuple[str, ...] = ()  # of pages elsewhere that may ask
    most_body: int = 16 << 20
    most_waiting: int = 256  # requests for a thread
    timeout: float = 60.0  # of an answer
    read_timeout: float = 20.0  # until a request is there with all of its body
    stop_timeout: float = 30.0  # for answers that were begun when the server is told to stop
    logs_requests: bool = False
