"""The compiled engine: splitting and merging in C++, by tables made from registry entry and vocabulary.

    registry entry -> models/bpe/tables.py -> patterns -+
                                                        +-> pipeline/compiled.py -> _native -> ids
    file.gguf -> vocab/ -> strings (lazy.py) -----------+

`_native` is the extension module built from `src/`. Where it is not there, because the install found no compiler,
`native` is None and the reference engine does the work. So it is where the environment says
GGUFBPE_ENGINE=reference. One that is there and does not load is a warning, as nobody would expect the slow engine;
with GGUFBPE_ENGINE=native, whatever keeps the compiled engine from running is an error.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType

_NAME = f"{__name__}._native"
_CHOICES = ("auto", "native", "reference")


def _find() -> tuple[ModuleType | None, str, bool]:
    """The module; without it, why it is not there, and whether that is a defect of the install."""
    wanted = os.environ.get("GGUFBPE_ENGINE") or "auto"
    if wanted not in _CHOICES:
        raise ValueError(f"GGUFBPE_ENGINE must be one of {', '.join(_CHOICES)}, not {wanted!r}")
    if wanted == "reference":
        return None, "it is turned off: GGUFBPE_ENGINE=reference is in the environment", False
    try:
        return import_module(_NAME), "", False
    except Exception as error:  # whatever a module that is half there may raise
        others = _for_other_pythons()
        is_absent = isinstance(error, ModuleNotFoundError) and error.name == _NAME
        if is_absent and others:
            version = ".".join(map(str, sys.version_info[:2]))
            reason = (
                f"it does not load: {', '.join(others)} is not for {sys.implementation.name} {version} here"
            )
        elif is_absent:
            reason = "it is not installed"
        else:
            reason = f"it does not load: {' '.join(str(error).split()) or type(error).__name__}"
    if wanted == "native":
        raise ValueError(f"GGUFBPE_ENGINE=native asks for the compiled engine, but {reason}")
    return None, reason, bool(others) or not is_absent


def _for_other_pythons() -> list[str]:
    """The files beside this one that are compiled modules."""
    return sorted(
        name
        for folder in __path__
        if os.path.isdir(folder)
        for name in os.listdir(folder)
        if name.startswith("_native.") and name.endswith((".so", ".pyd"))
    )


native, why_not_native, is_broken = _find()
if is_broken:
    import warnings

    warnings.warn(
        f"ggufbpe runs on its reference engine, which is much slower; the compiled one is there, but "
        f"{why_not_native}. Install ggufbpe again, or set GGUFBPE_ENGINE=reference if that is meant.",
        RuntimeWarning,
        stacklevel=2,
    )
