"""Exported files brought to the disk: all of them under temporary names first, then each in its place.

    Export -> [this file] -> files

But: two files are two renames; a machine that goes down between them leaves one new and one old.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack

from ..files import open_replacing, settle


def write_files(files: Mapping[str, bytes]) -> None:
    """Write `files`, by path; those that are there are replaced. An `OSError` leaves all as they were."""
    with ExitStack() as stack:
        for path, data in files.items():
            target = os.path.realpath(path)  # a link stays one, to the new file
            file, temporary = stack.enter_context(open_replacing(target))
            file.write(data)
            settle(file, temporary, target)
