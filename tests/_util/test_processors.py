"""How many processors a process may use, by control groups of both versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ggufbpe
from ggufbpe._util.processors import processors

HERE = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
V2, V1 = "sys/fs/cgroup", "sys/fs/cgroup/cpu"

CASES: dict[str, tuple[dict[str, str], int]] = {
    "no control groups": ({}, 64),
    "version 2, no quota": ({"proc/self/cgroup": "0::/a\n", f"{V2}/a/cpu.max": "max 100000\n"}, 64),
    "version 2": ({"proc/self/cgroup": "0::/a\n", f"{V2}/a/cpu.max": "200000 100000\n"}, 2),
    "version 2, at the root of a container": (
        {"proc/self/cgroup": "0::/\n", f"{V2}/cpu.max": "200000 100000\n"},
        2,
    ),
    "version 2, a part of a processor": (
        {"proc/self/cgroup": "0::/a\n", f"{V2}/a/cpu.max": "150000 100000\n"},
        2,
    ),
    "version 2, less than one": ({"proc/self/cgroup": "0::/a\n", f"{V2}/a/cpu.max": "5000 100000\n"}, 1),
    "version 2, the group around it has less": (
        {
            "proc/self/cgroup": "0::/a/b\n",
            f"{V2}/a/b/cpu.max": "800000 100000\n",
            f"{V2}/a/cpu.max": "300000 100000\n",
        },
        3,
    ),
    "version 1": (
        {
            "proc/self/cgroup": "3:memory:/m\n2:cpu,cpuacct:/a\n",
            f"{V1}/a/cpu.cfs_quota_us": "400000\n",
            f"{V1}/a/cpu.cfs_period_us": "100000\n",
        },
        4,
    ),
    "version 1, no quota": (
        {
            "proc/self/cgroup": "2:cpu,cpuacct:/a\n",
            f"{V1}/a/cpu.cfs_quota_us": "-1\n",
            f"{V1}/a/cpu.cfs_period_us": "100000\n",
        },
        64,
    ),
    "files that say nothing": ({"proc/self/cgroup": "x\n", f"{V2}/cpu.max": "\n"}, 64),
}


@pytest.mark.parametrize("name", CASES)
def test_quotas_of_control_groups_count(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, expected = CASES[name]
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(64), raising=False)
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert processors(str(tmp_path)) == expected


def test_this_machine() -> None:
    assert 1 <= ggufbpe.processors() <= HERE
