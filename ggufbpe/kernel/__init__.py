"""The compiled engine: splitting and merging in C++, by tables made from registry entry and vocabulary.

    registry entry -> tables.py -> patterns -+
                                             +-> _native -> ids
    file.gguf -> vocab.py -> strings --------+

`_native` is the extension module built from `src/`. Where it is not there, because the install found no compiler,
`native` is None and the reference engine does the work. So it is where the environment says
GGUFBPE_ENGINE=reference.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

native: ModuleType | None
try:
    is_wanted = os.environ.get("GGUFBPE_ENGINE") != "reference"
    native = import_module(f"{__name__}._native") if is_wanted else None
except ImportError:
    native = None
