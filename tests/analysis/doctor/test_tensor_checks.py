"""How the doctor reports tensors that llama.cpp refuses; tests/gguf/test_tensors.py has what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensors_by_hand import Tensor, model_with

from ggufbpe.analysis.doctor.tensor_checks import broken_tensors
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.gguf.value_types import Field, GGUFValueType

PARTS = {"split.count": Field(GGUFValueType.UINT16, 2), "split.no": Field(GGUFValueType.UINT16, 0)}
PARTS["split.tensors.count"] = Field(GGUFValueType.INT32, 4)


@pytest.mark.parametrize(
    ("data", "name", "expected", "detail"),
    [
        (model_with(), "model.gguf", None, None),
        (model_with(cut=1), "model.gguf", "cut_off", {"tensor": "output_norm.weight", "missing_bytes": 1}),
        (model_with()[:-300], "model.gguf", "cut_off", None),  # within the infos
        (
            model_with([Tensor("a"), Tensor("b", offset=64)]),
            "model.gguf",
            "tensors",
            {"tensor": "b", "missing_bytes": 0},
        ),
        (
            model_with(changes=PARTS),
            "model-00001-of-00002.gguf",
            "parts",
            None,
        ),  # the second one is not there
    ],
    ids=["sound", "data cut off", "infos cut off", "overlapping", "a part missing"],
)
def test_broken_tensors(
    data: bytes, name: str, expected: str | None, detail: dict[str, object] | None, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with GGUFFile(path) as file:
        findings = list(broken_tensors(file))
    assert [(finding.severity, finding.id) for finding in findings] == (
        [("error", expected)] if expected else []
    )
    assert [finding.detail for finding in findings] == ([detail] if expected else [])
