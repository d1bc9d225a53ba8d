"""Starts a server whose page a browser opens."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """Run `ggufbpe serve` with the arguments, and yield its address."""
    command = [sys.executable, "-m", "ggufbpe", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        found = re.search(r"http://\S+", server.stderr.readline())
        assert found
        yield found[0]
        server.terminate()
