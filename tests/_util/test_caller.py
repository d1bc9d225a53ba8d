"""Warnings point at the line outside of the package."""

from __future__ import annotations

import warnings
from pathlib import Path

from conftest import ROOT

import ggufbpe
from ggufbpe._util.caller import frames_to_caller


def test_a_caller_outside_of_the_package_is_the_first_frame() -> None:
    assert frames_to_caller() == 1


def test_frames_inside_the_package_are_passed_over() -> None:
    """Code that counts as the package's own, by its file name, calls itself three deep."""
    inside = str(Path(ggufbpe.__file__).parent / "made_up.py")
    source = "def call(depth):\n    return call(depth - 1) if depth else frames_to_caller()\n"
    names = {"frames_to_caller": frames_to_caller}
    exec(compile(source, inside, "exec"), names)
    call = names["call"]
    assert [call(depth) for depth in (0, 1, 2)] == [2, 3, 4]


def test_a_warning_of_a_model_points_here() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ggufbpe.Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / "bos-wanted-but-none.gguf")
    assert [warning.filename for warning in caught] == [__file__]
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[caught[0].lineno - 1]
    assert "Tokenizer.from_gguf" in line
