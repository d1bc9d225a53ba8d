"""The compiled splitter of a registry entry.

The compiled engine has the entries of the registry as numbers (native/src/vocabulary/registry.h, which
scripts/generate_registry_header.py writes). Only an entry that is not in the registry is encoded here.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from .registry import PRE_TOKENIZERS, PreTokenizer

if TYPE_CHECKING:
    from ...native._native import Splitter


@cache
def compiled_splitter(entry: PreTokenizer) -> Splitter:
    """The compiled splitter of an entry, made once."""
    from ...native._native import Splitter

    named = Splitter.named(entry.name) if PRE_TOKENIZERS.get(entry.name) == entry else None
    if named is not None:
        return named
    from .automaton_tables import tables  # parsing patterns takes longer than all else here

    return Splitter(*tables(entry), entry.escape_whitespaces)
