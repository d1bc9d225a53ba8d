"""The compiled engine: splitting and merging in C++, by tables made from registry entry and vocabulary.

    registry entry -> tables.py -> patterns -+
                                             +-> _native -> ids
    file.gguf -> vocab.py -> strings --------+

`_native` is the extension module built from `src/`. Where it is not there, because the install found no compiler,
`native` is None and the reference engine does the work.
"""

from __future__ import annotations

from types import ModuleType

native: ModuleType | None
try:
    from . import _native as native
except ImportError:
    native = None
