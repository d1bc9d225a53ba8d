"""The number of processors that a process may use."""

from __future__ import annotations

import os
from collections.abc import Iterator

_V2, _V1 = "sys/fs/cgroup", "sys/fs/cgroup/cpu"


def processors(root: str = "/") -> int:
    """Return how many processors this process may use, at least 1.

    On Linux that is the size of the process's affinity mask, or less where a control group allows less processor
    time: a container with a quota of two processors on a machine of 64 has two. A quota of a part of a processor
    counts as a whole one. `root` is the folder below which /proc and /sys are looked for.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    usable = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min([usable, *(-int(-quota // 1) for quota in _quotas(root))]))


def _quotas(root: str) -> Iterator[float]:
    """The quotas, in processors, of this process's control groups and of all groups around them."""
    for line in _read(root, "proc/self/cgroup").splitlines():
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        names = group.strip("/").split("/")
        for folder in ("/".join(["", *names[:depth]]) for depth in range(len(names), -1, -1)):
            if controllers:
                quota = _read(root, f"{_V1}{folder}/cpu.cfs_quota_us")
                period = _read(root, f"{_V1}{folder}/cpu.cfs_period_us")
            else:
                quota, _, period = _read(root, f"{_V2}{folder}/cpu.max").partition(" ")
            if quota.strip().isdecimal() and period.strip().isdecimal() and int(quota) and int(period):
                yield int(quota) / int(period)  # "max" and -1 mean that there is no quota


def _read(root: str, path: str) -> str:
    """The text of a small file, "" if it cannot be read."""
    try:
        with open(os.path.join(root, path), encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
