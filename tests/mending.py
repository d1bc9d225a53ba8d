"""What the doctor suggests for a file is done, and the file examined again: for all tests that make broken copies."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from conftest import ROOT

from ggufbpe import GGUFError
from ggufbpe.cli import main
from ggufbpe.doctor.examine import examine

COMMAND = re.compile(r"ggufbpe fix .+? -o fixed\.gguf")
FIXTURES = sorted((ROOT / "fixtures").rglob("*.gguf"))


def fixes_that_fail(path: Path) -> tuple[int, list[str]]:
    """How many commands the doctor has for a file, and those that `fix` refuses or that leave their finding.

    The copies are `fixed.gguf` in the current directory.
    """
    try:
        found = examine(path)
    except GGUFError:  # no sound GGUF
        return 0, []
    fixed, count, failed = Path("fixed.gguf"), 0, []
    for finding in found:
        for command in COMMAND.findall(finding.fix):
            count += 1
            fixed.unlink(missing_ok=True)
            if main(shlex.split(command)[1:]) != 0 or any(
                (left.id, left.where[:2]) == (finding.id, finding.where[:2]) for left in examine(fixed)
            ):
                failed.append(f"{finding.id}: {command}")
    return count, failed
