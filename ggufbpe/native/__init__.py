"""The compiled engine: splitting and merging in C++, by tables made from registry entry and vocabulary.

    registry entry -> models/pretokenizers/compiled_splitter.py -+
                                                                 +-> tokenizer/native_engine.py -> _native -> ids
    file.gguf -> models/ -> strings (lazy_strings.py) -----------+

`_native` is the extension module built from `src/`. Where it is not there or does not load, `native` is None and the
reference engine does the work. Nobody expects the slow engine, so `warn_if_slow` says once a process why it runs, and
`ggufbpe --version` says so, too. GGUFBPE_ENGINE=reference in the environment chooses the reference engine, without a
warning; with GGUFBPE_ENGINE=native, whatever keeps the compiled engine from running is an error.

An install whose compiler failed leaves `build_error.txt` beside this file: the first error, then the whole output.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType

_NAME = f"{__name__}._native"
_CHOICES = ("auto", "native", "reference")
_BUILD_ERROR = "build_error.txt"  # written by build_backend/ggufbpe_build.py
_LONGEST_ERROR = 300  # characters
REMEDY = (
    "To get the compiled engine, install ggufbpe again where a C++17 compiler works: "
    "pip install --force-reinstall --no-deps --no-cache-dir ggufbpe (or . in a checkout)"
)


def _find() -> tuple[ModuleType | None, str, bool]:
    """Return the module (None without it), why it is missing, and whether its absence was asked for."""
    wanted = os.environ.get("GGUFBPE_ENGINE") or "auto"
    if wanted not in _CHOICES:
        raise ValueError(f"GGUFBPE_ENGINE must be one of {', '.join(_CHOICES)}, not {wanted!r}")
    if wanted == "reference":
        return None, "it is turned off: GGUFBPE_ENGINE=reference is in the environment", True
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
            reason = _why_not_built() or "it is not installed"
        else:
            reason = f"it does not load: {' '.join(str(error).split()) or type(error).__name__}"
    if wanted == "native":
        raise ValueError(f"GGUFBPE_ENGINE=native asks for the compiled engine, but {reason}")
    return None, reason, False


def _why_not_built() -> str:
    """Return what the compiler's error was when ggufbpe was installed, and where its output is; "" if none is kept."""
    for folder in __path__:
        path = os.path.join(folder, _BUILD_ERROR)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                error = file.readline(_LONGEST_ERROR).strip()
        except OSError:
            continue
        return f"it could not be built when ggufbpe was installed: {error} (the whole output: {path})"
    return ""


def _for_other_pythons() -> list[str]:
    """The files beside this one that are compiled modules."""
    return sorted(
        name
        for folder in __path__
        if os.path.isdir(folder)
        for name in os.listdir(folder)
        if name.startswith("_native.") and name.endswith((".so", ".pyd"))
    )


native, why_not_native, is_meant = _find()
_is_said = False


def warn_if_slow() -> None:
    """Raise a `RuntimeWarning`, once a process, if the reference engine runs though nobody asked for it.

    `Tokenizer` and `train` call this where the choice of the engine is left to them.
    """
    global _is_said
    if native is not None or is_meant or _is_said:
        return
    _is_said = True
    import warnings

    from .._util.caller import frames_to_caller

    warnings.warn(
        f"ggufbpe's compiled engine does not run: {why_not_native}. The reference engine does its work, and is much "
        f"slower; GGUFBPE_ENGINE=reference in the environment silences this warning. {REMEDY}",
        RuntimeWarning,
        stacklevel=frames_to_caller(),
    )
