"""GGUF files with tensors, written by hand, so that their infos can be wrong in every way.

`model_with` lays tensors out as ggml wants them, from the sizes of the `gguf` package; each part can be made to lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import NamedTuple

import gguf
from gguf_by_hand import Section, T, tiny_vocabulary

from ggufbpe.gguf.value_types import Field

ALIGNMENT = "general.alignment"


class Tensor(NamedTuple):
    """A tensor info. Without an offset, it has the one that ggml expects; `size` is for types that have no size."""

    name: str | bytes
    shape: tuple[int, ...] = (32,)
    kind: int = 0  # F32
    offset: int | None = None
    size: int | None = None
    rank: int | None = None  # what the info says, if that is not the length of the shape


FOUR = (  # tensors of several types and ranks, none of which fills its last block of alignment
    Tensor("token_embd.weight", (5, 3)),
    Tensor("blk.0.attn_q.weight", (64, 3), gguf.GGMLQuantizationType.Q4_0),
    Tensor("blk.0.ffn_up.weight", (2, 3, 2), gguf.GGMLQuantizationType.F16),
    Tensor("output_norm.weight", (7,)),
)


def model_with(
    tensors: Iterable[Tensor] = FOUR,
    *,
    changes: Mapping[str, Field | None] | None = None,
    alignment: int | None = None,
    tensor_count: int | None = None,
    byteorder: str = "little",
    cut: int = 0,
    tail: bytes = b"",
) -> bytes:
    """A tiny model with these tensors; `cut` bytes are missing at the end of the last tensor, or `tail` follows it.

    `changes` are those to the keys of the tiny vocabulary. The data of each tensor is its number, repeated.
    """
    given = {} if alignment is None else {ALIGNMENT: Field(T.UINT32, alignment)}
    section = Section(3, byteorder)
    for key, field in tiny_vocabulary({**given, **(changes or {})}).items():
        section.add(key, field)
    step = alignment or gguf.GGUF_DEFAULT_ALIGNMENT
    infos, data, padding = b"", b"", b""
    tensors = list(tensors)
    for number, tensor in enumerate(tensors):
        data += padding
        size = size_of(tensor) if tensor.size is None else tensor.size
        infos += info_of(tensor, section, len(data))
        data += bytes([(number + 1) % 256]) * size
        padding = bytes(-len(data) % step)
    count = len(tensors) if tensor_count is None else tensor_count
    head = section.file(tensor_count=count) + infos
    head += bytes(-len(head) % step) if tensors else b""
    return head + data[: len(data) - cut] + tail


def size_of(tensor: Tensor) -> int:
    """The bytes of a tensor by the sizes of the `gguf` package; 0 if its shape or type cannot be."""
    sizes = gguf.GGML_QUANT_SIZES
    if min(tensor.shape, default=0) < 0 or tensor.kind not in {int(kind) for kind in sizes}:
        return 0
    block, width = sizes[gguf.GGMLQuantizationType(tensor.kind)]
    size = prod(tensor.shape) // block * width
    return size if size < 1 << 20 else 0


def info_of(tensor: Tensor, section: Section, expected: int) -> bytes:
    """The bytes of a tensor info."""
    pack = section.pack
    rank = len(tensor.shape) if tensor.rank is None else tensor.rank
    return b"".join(
        [
            pack.string(tensor.name),
            pack.number(T.UINT32, rank),
            *(pack.number(T.INT64, elements) for elements in tensor.shape),
            pack.number(T.INT32, tensor.kind),
            pack.number(T.UINT64, expected if tensor.offset is None else tensor.offset),
        ]
    )
