"""The conditions of the measurement: machine, versions, time."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

PACKAGES = (
    "ggufbpe",
    "llama-cpp-python",
    "tokenizers",
    "tiktoken",
    "gigatoken",
    "sentencepiece",
    "nanotoken",
    "blingfire",
    "tokie",
    "pyrwkv-tokenizer",
    "numpy",
)


def machine() -> dict[str, Any]:
    """Facts about this machine in JSON types; None if the system does not report one."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor() or None,
        "cores": usable,
        "architecture": platform.machine(),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def versions() -> dict[str, str | None]:
    """The versions of the measured packages; None for those not installed."""
    found: dict[str, str | None] = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def _field(file: str, name: str) -> str | None:
    """The first value of that name in a file of "name: value" lines."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)
