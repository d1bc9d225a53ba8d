"""The docstring of a public class describes its fields: `help()` and editors show it, and no comment beside a field."""

from __future__ import annotations

import dis
import inspect
import re
from dataclasses import dataclass
from typing import NamedTuple

import pytest

import ggufbpe
from ggufbpe.analysis.verify.align import Placed
from ggufbpe.data.training.training_steps import CutWord, PairCount, TrainingStep
from ggufbpe.gguf.value_types import Field

EXPORTED = [value for name in ggufbpe.__all__ if inspect.isclass(value := getattr(ggufbpe, name))]
IN_OTHERS = [CutWord, Field, PairCount, Placed, TrainingStep]  # arguments and fields of what is exported


def undescribed(kind: type) -> list[str]:
    """Return the public fields of a class, also those that `__init__` sets, that no `code` of its docstring names."""
    init = vars(kind).get("__init__")
    code = dis.get_instructions(init) if inspect.isfunction(init) else ()
    fields = dict.fromkeys(inspect.get_annotations(kind))
    fields |= dict.fromkeys(each.argval for each in code if each.opname == "STORE_ATTR")
    named = " ".join(re.findall("`([^`]+)`", inspect.getdoc(kind) or ""))
    return [name for name in fields if not name.startswith("_") and not re.search(rf"\b{name}\b", named)]


@pytest.mark.parametrize("kind", EXPORTED + IN_OTHERS, ids=lambda kind: kind.__name__)
def test_fields_are_described(kind: type) -> None:
    assert undescribed(kind) == []


def test_fields_without_a_description_are_found() -> None:
    class Pair(NamedTuple):
        """A `left` and a right."""

        left: int
        right: int  # not shown by help()

    @dataclass(frozen=True)
    class Place:
        start: int

    class Change:
        """What changed in `old[:kept]`."""

        def __init__(self) -> None:
            self.kept = self._size = self.made = 0

    assert list(map(undescribed, (Pair, Place, Change))) == [["right"], ["start"], ["made"]]
