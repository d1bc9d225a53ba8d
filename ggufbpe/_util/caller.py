"""Finds the line outside of this package that led to a warning, for the warning to point at."""

from __future__ import annotations

import os
import sys

_PACKAGE = os.path.dirname(os.path.dirname(__file__))


def frames_to_caller() -> int:
    """Return the `stacklevel`, seen from the caller, of the first frame outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
