"""A server's settings as plain data, so that they can be passed to worker processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_WORKERS = 32  # for each processor


@dataclass(frozen=True)
class Settings:
    """The models by name, where to listen, who may ask, and the limits. Times are in seconds, sizes in bytes."""

    models: Mapping[str, str]  # name: path
    overrides: Mapping[str, Any] = field(default_factory=dict)
    mmproj: str | None = None  # the file of the first model's projector
    media_path: str | None = None  # the folder of images and audio that requests may name
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1  # processes, at most `MOST_WORKERS` for each processor
    threads: int = 2  # in each process
    most_open: int = 8  # models
    api_keys: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()  # besides localhost and addresses
    allowed_origins: tuple[str, ...] = ()  # of other pages that may send requests
    most_body: int = 16 << 20
    most_waiting: int = 256  # requests that wait for a thread
    timeout: float = 60.0  # of an answer
    template_timeout: float = 5.0  # processor time of all chat templates of a request
    read_timeout: float = 20.0  # until a request has arrived with its body
    stop_timeout: float = 30.0  # for requests that are under way when the server is told to stop
    logs_requests: bool = False
