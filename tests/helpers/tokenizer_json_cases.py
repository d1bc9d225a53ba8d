"""A small tokenizer.json for tests of its readers, and random mutations."""

from __future__ import annotations

import random
from typing import Any

from ggufbpe.convert.exporters.hf_config import HFConfig
from ggufbpe.convert.importers.hf_document import HFDocument


def document(*, model: Any = None, config: dict[str, Any] | None = None, **parts: Any) -> HFDocument:
    """A tokenizer.json of three tokens, with some parts replaced."""
    own = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}
    return HFDocument({"model": own if model is None else model, **parts}, HFConfig(config or {}))


def mutations(value: Any, dice: random.Random) -> Any:
    """`value` with one part, somewhere in it, left out or replaced by something of another type."""
    if isinstance(value, (dict, list)) and value and dice.random() < 0.9:
        copy: Any = value.copy()
        key = dice.choice(list(value)) if isinstance(value, dict) else dice.randrange(len(value))
        if dice.random() < 0.2:
            del copy[key]
        else:
            copy[key] = mutations(value[key], dice)
        return copy
    return dice.choice([None, 1, -1, 1.5, "x", "\ud800", [], {}, [None], {"type": "BPE"}, True])
